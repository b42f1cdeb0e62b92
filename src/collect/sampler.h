/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the sampling programs, hands over what they record. */
#ifndef VP_COLLECT_SAMPLER_H
#define VP_COLLECT_SAMPLER_H

#include <stdint.h>

#include "base/error.h"
#include "collect/rings.h"
#include "collect/trigger.h"
#include "schema/records.h"

struct vp_sampler;

/* `trigger` must live as long as the sampler. */
struct vp_error *vp_sampler_start(const struct vp_trigger *trigger, size_t buffer_pages,
				  vp_records_taker take, void *context,
				  struct vp_sampler **ret) VP_MUST_CHECK;
/* Waits until a buffer is half full or `timeout_ms` has passed. */
struct vp_error *vp_sampler_wait(struct vp_sampler *sampler, int timeout_ms) VP_MUST_CHECK;
/* Hands over everything there is, pCPU by pCPU. */
struct vp_error *vp_sampler_drain(struct vp_sampler *sampler) VP_MUST_CHECK;
/* Records that found the buffer of this pCPU full, from the start until now. */
uint64_t vp_sampler_lost(const struct vp_sampler *sampler, uint32_t pcpu);
void vp_sampler_free(struct vp_sampler *sampler);

/* Which vendor's KVM this kernel runs (enum vp_vendor). */
enum vp_vendor vp_sampler_vendor(void);

#endif
