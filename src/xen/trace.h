/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses records of Xen's trace buffers (Xen's public/trace.h). Although they come from the
 * hypervisor, they are not trusted: they may be overwritten while being read. */
#ifndef VP_XEN_TRACE_H
#define VP_XEN_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"

/* Event masks for Xen: classes and subclasses (public/trace.h, TRC_*). */
enum {
	VP_XEN_TRACE_SCHED = 0x00021000, /* TRC_SCHED_MIN: runstates */
	VP_XEN_TRACE_EXITS = 0x00081000, /* TRC_HVM_ENTRYEXIT */
	VP_XEN_TRACE_PV = 0x00201000,    /* TRC_PV_ENTRY: hypercalls and traps */
	VP_XEN_TRACE_ALL = 0x0ffff000,   /* TRC_ALL: Xen's default */
};

/* Numbers in events of runstate changes. */
enum vp_xen_runstate { VP_XEN_RUNNING, VP_XEN_RUNNABLE, VP_XEN_BLOCKED, VP_XEN_OFFLINE };

enum vp_xen_event {
	VP_XEN_OTHER,    /* unused record */
	VP_XEN_RUNSTATE, /* domain, vcpu, before, after */
	VP_XEN_EXIT,     /* reason, ip; of the running vCPU */
	VP_XEN_ENTRY,    /* of the running vCPU */
	VP_XEN_WORK,     /* PV guest: reason, and ip if has_ip; of the running vCPU */
	VP_XEN_LOST,     /* count, since */
};

enum { VP_XEN_MAX_WORDS = 7 };

struct vp_xen_record {
	enum vp_xen_event event;
	uint64_t tsc; /* 0: none */
	uint32_t id;  /* Xen's event number */
	uint16_t domain, vcpu;
	uint8_t before, after; /* enum vp_xen_runstate */
	uint32_t reason;
	bool has_ip;
	uint64_t ip;
	uint32_t count;
	uint64_t since;                   /* TSC */
	uint8_t n_words;                  /* words after the record's time … */
	uint32_t words[VP_XEN_MAX_WORDS]; /* … the rest is undefined */
};

/* A record with its pCPU and time. */
struct vp_xen_traced {
	uint64_t time; /* CLOCK_MONOTONIC, ns */
	uint32_t pcpu;
	struct vp_xen_record record;
};

/* Reads the next record; false: malformed, or the end. */
bool vp_xen_record_read(struct vp_cursor *cursor, struct vp_xen_record *ret);

#endif
