/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protocol by which the host receives guest events from the agent. The host sends
 *
 *   vperf-request 1 events SET...
 *
 * and the agent replies with the line "vperf-events 1" and then frames: a header (struct
 * vp_events_frame, little endian) and `size` bytes. Times in pages are the guest's counter; where
 * its kernel has no trace clock that is (64-bit Arm), they are another clock's, and frames
 * VP_EVENTS_CLOCK, the first before all pages, map it to the counter. In a guest of Xen, frames
 * VP_EVENTS_TIME, of each vCPU one before its pages, map its counter to Xen's system time. It sends
 * until the host shuts its direction of the connection; then what is left, and an end. If its frame
 * VP_EVENTS_BEGIN has VP_EVENTS_CAN_FLUSH, the host may send a byte, which it answers with what it
 * has up to then, and VP_EVENTS_FLUSHED. The events of a set are listed only here: the host can
 * neither request nor accept others.
 */
#ifndef VP_PROTOCOL_EVENTS_PROTOCOL_H
#define VP_PROTOCOL_EVENTS_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"

#define VP_EVENTS_HEAD "vperf-events 1\n"

enum vp_events_kind {
	VP_EVENTS_FORMAT = 1, /* "SYSTEM:EVENT " and its `format`; all of them precede … */
	VP_EVENTS_BEGIN,      /* … this frame: a u32, bytes of a page of the ring buffer */
	VP_EVENTS_TASKS,      /* struct vp_events_task for each existing thread */
	VP_EVENTS_PAGES,      /* whole pages of the ring buffer of `vcpu` */
	VP_EVENTS_LOST,       /* a u64: number of events of `vcpu` lost since the start */
	VP_EVENTS_END,
	VP_EVENTS_FLUSHED,
	VP_EVENTS_CLOCK, /* a struct vp_events_clock */
	VP_EVENTS_TIME   /* a struct vp_events_time: of `vcpu`, from now on */
};

enum {
	VP_EVENTS_FRAME_MAX = 1 << 20,
	VP_EVENTS_PAGE_MAX = 1 << 18,
	VP_EVENTS_VCPUS_MAX = 4096,
	VP_EVENTS_STALL_S = 30, /* a host that reads nothing for N seconds is considered gone */
	VP_EVENTS_CAN_FLUSH = 1
};

struct vp_events_frame {
	uint32_t kind; /* enum vp_events_kind */
	uint32_t vcpu; /* the hypervisor's number; 0 in frames of no vCPU */
	uint32_t size;
	uint32_t can; /* capability bits; in VP_EVENTS_BEGIN only */
};

struct vp_events_task {
	uint32_t pid, tid;
	char comm[16];
};

struct vp_events_clock {
	uint64_t ns;       /* the clock of times in pages … */
	uint64_t counter;  /* … and the counter, read together … */
	uint64_t error_ns; /* … within this many ns */
};

/* As in struct vcpu_time_info of Xen's public/xen.h. */
struct vp_events_time {
	uint64_t tsc, ns;
	uint32_t mul;
	int32_t shift;
};

/* Bits of event sets. */
enum vp_events_set {
	VP_EVENTS_SET_sched = 1,
	VP_EVENTS_SET_irq = 2,
	VP_EVENTS_SET_block = 4,
	VP_EVENTS_SET_net = 8,
	VP_EVENTS_SET_syscalls = 16,
	VP_EVENTS_SET_timer = 32
};

/* The set with that name; 0: unknown. */
unsigned vp_events_set_named(struct vp_slice name);
/* Name of set `number`, counted from 0; NULL: no more. */
const char *vp_events_set_name(size_t number);
/* "SYSTEM:EVENT": event `number` of the sets, counted from 0; NULL: no more. */
const char *vp_events_of_sets(unsigned sets, size_t number);
/* Whether any set contains the event. */
bool vp_events_is_allowed(struct vp_slice name);

/* Writes the request line with its newline; parses one without it (false: a different request). */
void vp_events_request_write(unsigned sets, struct vp_buffer *text);
bool vp_events_request_parse(struct vp_slice line, unsigned *sets) VP_MUST_CHECK;

#endif
