/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages from the process that reads a file to the one that makes a recording of it. */
#ifndef VP_IMPORT_IMPORT_CHANNEL_H
#define VP_IMPORT_IMPORT_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

enum { VP_IMPORT_MAX_BYTES = 1 << 26 /* at once */ };

/* Messages of a file, in this order: its machine, clock, guests and vCPUs; its time; its start;
 * names; then the events of its CPUs; its end. All times are ns. */
enum vp_import_kind {
	VP_IMPORT_MACHINE,   /* cpu: enum vp_import_machine; bytes: text */
	VP_IMPORT_CPUS,      /* number: how many */
	VP_IMPORT_CLOCK,     /* number, signed: what its clock showed less than the Epoch's */
	VP_IMPORT_UNSHIFTED, /* what wrote it has not measured how far its clock is from the host's
			      */
	VP_IMPORT_MARKS,     /* bytes: struct vp_import_mark, as many as there are */
	VP_IMPORT_GUEST,     /* number: the guest's id; bytes: its name */
	VP_IMPORT_THREAD,    /* cpu: of the latest guest; number: the host thread */
	VP_IMPORT_VCPU,      /* cpu: of whatever guest; number: a thread that entered one, and from
				bit 32 on its process, if that is known */
	VP_IMPORT_SPAN,      /* times of its first and last event: bytes, two u64 */
	VP_IMPORT_BEGIN,     /* bytes: event classes as text; number: its id */
	VP_IMPORT_TASKS,     /* bytes: lines "TID NAME" */
	VP_IMPORT_EVENTS,    /* bytes: records of the classes, in order of time */
	VP_IMPORT_MISSED,    /* number: places of a CPU where events are missing */
	VP_IMPORT_LOST,      /* number: events that are missing */
	VP_IMPORT_MALFORMED, /* number: entries of a CPU that are no events */
	VP_IMPORT_LEFT_OUT,  /* number: fields of events that have no place in a recording */
	VP_IMPORT_SAMPLING,  /* before the start: there are samples. bytes: struct
				vp_import_sampling, then the name of the event */
	VP_IMPORT_MAPS,      /* bytes: the next piece of the symbol map of the host, or of the VM
				of process `number` */
	VP_IMPORT_SAMPLES,   /* bytes: each a struct vp_import_sample and its frames */
	VP_IMPORT_NOTE,      /* at any time. bytes: a sentence for the user, without its end */
	VP_IMPORT_END,
	VP_IMPORT_PROBLEM /* bytes: a sentence; the last of all */
};

enum vp_import_machine { VP_IMPORT_HOSTNAME, VP_IMPORT_KERNEL };

/* A message between a guest and its host (vmsync), on one of the two sides. */
enum vp_import_side {
	VP_IMPORT_GUEST_SENDS, /* vmsync_gh_guest */
	VP_IMPORT_HOST_RECV,   /* vmsync_gh_host */
	VP_IMPORT_HOST_SENDS,  /* vmsync_hg_host */
	VP_IMPORT_GUEST_RECV   /* vmsync_hg_guest */
};

struct vp_import_mark {
	uint64_t time, vm;     /* a number that the guest drew */
	uint32_t count;        /* one for both sides */
	uint32_t side;         /* enum vp_import_side */
	uint32_t tid, process; /* the host's thread; 0: not known */
};

struct vp_import_sampling {
	/* For a clock with even ticks: ns between two samples, which count 1 each. 0: each counts
	 * for its `period`. */
	uint64_t tick_ns;
	uint32_t has_chains, reserved;
};

struct vp_import_sample {
	uint64_t time, ip;
	uint64_t period;        /* number of events that it stands for */
	uint32_t pid, tid;      /* the host's; of a guest's machine its own */
	uint32_t machine, vcpu; /* the VMM's process, or 0: unknown */
	uint16_t mode;          /* enum vp_mode */
	uint16_t kernel,
	    user; /* number of u64 after it: the stack's frames there, innermost first */
	uint16_t reserved;
	char comm[16];
};

/* Options of vperf import. */
struct vp_import_options {
	const char *event; /* whose samples to import; NULL: of the first with some */
};

struct vp_import_msg {
	uint32_t kind; /* enum vp_import_kind */
	uint32_t cpu;
	uint64_t number;
	uint32_t size, reserved; /* bytes after it */
};

/* The receiver; if it is gone, the process ends. */
struct vp_import_channel {
	int fd;
};
void vp_import_send(const struct vp_import_channel *channel, struct vp_import_msg msg,
		    const void *bytes, size_t size);

#endif
