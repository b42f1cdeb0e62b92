/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_BASE_PCPUS_H
#define VP_BASE_PCPUS_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

struct vp_pcpus {
	int *at;
	size_t count;
	size_t room;
};

/* Numbers of the online pCPUs, from /sys/devices/system/cpu/online; free with vp_vec_deinit(). */
struct vp_error *vp_pcpus_online(struct vp_pcpus *ret) VP_MUST_CHECK;
/* The highest number of a present pCPU, online or not, + 1. */
struct vp_error *vp_pcpus_present(uint32_t *ret) VP_MUST_CHECK;
/* Parses a kernel CPU list such as "0-3,8"; `source` names it in the error. */
struct vp_error *vp_pcpus_parse(const char *list, const char *source,
				struct vp_pcpus *ret) VP_MUST_CHECK;
/* Formats ascending numbers as such a list, to be freed. */
char *vp_pcpus_format(const struct vp_pcpus *pcpus);

#endif
