/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages from the process that reads a file to the one that writes the recording. */
#ifndef VP_IMPORT_COMMON_IMPORT_CHANNEL_H
#define VP_IMPORT_COMMON_IMPORT_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

enum { VP_IMPORT_MAX_BYTES = 1 << 26 /* size of a message */ };

/* Messages of a file, in this order: machine, clock, guests and vCPUs; time span; start; names;
 * events of its CPUs; end. All times are in ns. */
enum vp_import_kind {
	VP_IMPORT_MACHINE, /* cpu: enum vp_import_machine; bytes: text */
	VP_IMPORT_CPUS,    /* number: number of CPUs */
	VP_IMPORT_CLOCK,   /* number, signed: offset of the clock, its reading minus the time since
			      the Epoch */
	VP_IMPORT_UNSHIFTED, /* the file has no measured offset between its clock and the host's */
	VP_IMPORT_MARKS,     /* bytes: an array of struct vp_import_mark */
	VP_IMPORT_GUEST,     /* number: id of the guest; bytes: its name */
	VP_IMPORT_THREAD,    /* cpu: vCPU of the latest guest; number: its host thread */
	VP_IMPORT_VCPU,   /* cpu: vCPU of an unknown guest; number: thread that entered it, and from
			     bit 32 on its process, if known */
	VP_IMPORT_SPAN,   /* times of first and last event: bytes, two u64 */
	VP_IMPORT_BEGIN,  /* bytes: event classes as text; number: id of the trace */
	VP_IMPORT_TASKS,  /* bytes: lines "TID NAME" */
	VP_IMPORT_EVENTS, /* bytes: records of the classes, sorted by time */
	VP_IMPORT_MISSED, /* number: gaps with missing events of a CPU */
	VP_IMPORT_LOST,   /* number: lost events */
	VP_IMPORT_MALFORMED, /* number: malformed entries of a CPU */
	VP_IMPORT_LEFT_OUT,  /* number: fields that cannot be represented in a recording */
	VP_IMPORT_SAMPLING,  /* before the start, if there are samples. bytes: struct
				vp_import_sampling, then the event's name */
	VP_IMPORT_MAPS, /* bytes: next part of the symbol map of the host, or of the VM of process
			   `number` */
	VP_IMPORT_SAMPLES, /* bytes: an array of struct vp_import_sample, each followed by its
			      frames */
	VP_IMPORT_NOTE,    /* at any time. bytes: a note for the user, without a full stop */
	VP_IMPORT_END,
	VP_IMPORT_PROBLEM /* bytes: an error message; the last message */
};

enum vp_import_machine { VP_IMPORT_HOSTNAME, VP_IMPORT_KERNEL };

/* A message between guest and host (vmsync), as sent or as received. */
enum vp_import_side {
	VP_IMPORT_GUEST_SENDS, /* vmsync_gh_guest */
	VP_IMPORT_HOST_RECV,   /* vmsync_gh_host */
	VP_IMPORT_HOST_SENDS,  /* vmsync_hg_host */
	VP_IMPORT_GUEST_RECV   /* vmsync_hg_guest */
};

struct vp_import_mark {
	uint64_t time, vm;     /* vm: a random number chosen by the guest */
	uint32_t count;        /* the same on both sides */
	uint32_t side;         /* enum vp_import_side */
	uint32_t tid, process; /* the host thread; 0: unknown */
};

struct vp_import_sampling {
	/* With a clock as sampling event: ns between two samples of weight 1. 0: the weight of a
	 * sample is its `period`. */
	uint64_t tick_ns;
	uint32_t has_chains, reserved;
};

struct vp_import_sample {
	uint64_t time, ip;
	uint64_t period;        /* number of events that the sample represents */
	uint32_t pid, tid;      /* of the host; in a guest's file, of the guest */
	uint32_t machine, vcpu; /* VMM process, or 0: unknown */
	uint16_t mode;          /* enum vp_mode */
	uint16_t kernel, user;  /* number of u64 after it: frames of the stack, kernel and user
				   space, innermost first */
	uint16_t reserved;
	char comm[16];
};

/* Options of 'vperf import'. */
struct vp_import_options {
	const char *event; /* event whose samples are imported; NULL: the first one with samples */
};

struct vp_import_msg {
	uint32_t kind; /* enum vp_import_kind */
	uint32_t cpu;
	uint64_t number;
	uint32_t size, reserved; /* number of bytes after it */
};

/* The sending side; if the receiver is gone, the process exits. */
struct vp_import_channel {
	int fd;
};
void vp_import_send(const struct vp_import_channel *channel, struct vp_import_msg msg,
		    const void *bytes, size_t size);

#endif
