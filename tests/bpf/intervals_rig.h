/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interval programs in the kernel, attached to nothing: a test runs them itself. */
#ifndef VP_TESTS_BPF_INTERVALS_RIG_H
#define VP_TESTS_BPF_INTERVALS_RIG_H

#include "base/vec.h"
#include "bpf/intervals_abi.h"
#include "kernel.h"
#include "schema/records.h"

#include "intervals.skel.h"

struct interval {
	struct vp_interval head;
	uint64_t values[VP_COUNTS]; /* all counts that there are */
	uint64_t guest[VP_GUEST_COUNT];
	uint32_t guest_known; /* bits of those */
};
typedef VP_VEC(struct interval) intervals;

struct rig {
	struct intervals_bpf *programs;
	struct ring_buffer *rings;
	VP_VEC(int) maps;
	intervals found;
	uint32_t tasks; /* records that name a thread */
};

struct rig_options {
	enum vp_interval_unit unit;
	uint64_t width;
	uint32_t subjects, ring_bytes;
	/* Where this process has the counts of its "guest"; or NULL. */
	const struct vp_guest_counters *guest;
};
/* Loads them for vCPUs, and has them count. */
struct rig *rig_open(const struct rig_options *options);
void rig_close(struct rig *rig);
void rig_drain(struct rig *rig);
/* Closes the interval of the thread that runs here, as its last. */
void rig_end(struct rig *rig);
/* Has the programs find out anew which thread has which pCPU. */
void rig_forget_pcpus(struct rig *rig);

/* KVM's events. An exit: what it is for, as this kernel's KVM says it. */
enum rig_exit { RIG_HYPERCALL, RIG_HALT, RIG_PAGE_FAULT };
void rig_exit(const struct rig *rig, enum rig_exit why);
void rig_entry(const struct rig *rig);

/* The sum of a count over the intervals. */
uint64_t rig_sum(const intervals *found, uint32_t count);
/* One interval begins where the one before it ends; each has all of its time in its states. */
void rig_expect_gapless(const intervals *found);

#endif
