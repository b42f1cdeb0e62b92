/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data sources of a session. An instrument is a file that fills one table of operations; the second
 * part of this header is what the session offers to instruments. */
#ifndef VP_SESSION_INSTRUMENT_H
#define VP_SESSION_INSTRUMENT_H

#include "base/alloc.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/notices.h"
#include "base/pcpus.h"
#include "base/vec.h"
#include "collect/guests/guest_watch.h"
#include "collect/programs/exit_event.h"
#include "collect/programs/exit_programs.h"
#include "host/host_maps.h"
#include "host/kernel_btf.h"
#include "schema/event_class.h"
#include "schema/vm.h"
#include "session/hypervisor_choice.h"
#include "session/session.h"
#include "store/directory.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/sample_counts.h"
#include "store/trace_writer.h"

/* Services that an instrument can provide to others. */
enum vp_service {
	VP_SERVICE_GUEST_SAMPLER = 1,
	VP_SERVICE_EXIT_PROGRAMS = 2,
};

struct vp_services {
	/* Receives guest exits for interrupts; NULL: guests are not sampled separately. */
	struct vp_guest_sampler *guest_sampler;
	struct vp_exit_programs
	    exit_programs; /* BPF programs of the accounting; empty without accounting */
	struct vp_exit_event *exit_event; /* see vp_session_enable_exit_rip() */
	bool unwind_tables;               /* unwind tables of guest kernels are needed */
};

/* In the order of calls; operations may be NULL except open, drain, lost, put_total and free. Times
 * are CLOCK_MONOTONIC, ns. */
struct vp_instrument_ops {
	const char *name; /* name in the recording's line `instruments` */
	unsigned classes; /* streams that only it writes (VP_STREAMS()) */
	bool needs_names; /* its records have addresses: the recording needs symbol maps */
	bool often;       /* `drain` must run at least every 0.1 s */

	/* Bits of enum vp_service: services that `open` provides, and services that it uses if
	 * another instrument provides them; that one is opened first. */
	unsigned provides, uses;

	/* Loads its programs and opens its events. The VMs are known; the directory does not exist
	 * yet. */
	struct vp_error *(*open)(struct vp_instrument *instrument, struct vp_services *services);
	void (*describe)(const struct vp_instrument *instrument, struct vp_recording *info);
	/* Registers for information about guest kernels with vp_session_watch_guests(). */
	void (*watch_guests)(struct vp_instrument *instrument);
	/* The directory exists, and guest kernels were searched for. */
	struct vp_error *(*prepare)(struct vp_instrument *instrument);
	struct vp_error *(*start)(struct vp_instrument *instrument, uint64_t now);
	/* A descriptor that becomes readable when `drain` is urgent. */
	int (*fd)(const struct vp_instrument *instrument);
	/* Writes the records collected so far. */
	struct vp_error *(*drain)(struct vp_instrument *instrument);
	/* A pCPU came online, possibly again. An error is reported; the other instruments
	 * continue. */
	struct vp_error *(*add_pcpu)(struct vp_instrument *instrument, uint32_t pcpu);
	/* Called once a second. */
	void (*second)(struct vp_instrument *instrument, uint64_t now);
	struct vp_error *(*stop)(struct vp_instrument *instrument);
	/* After the last `drain`: writes its last records and its own files. */
	struct vp_error *(*finish)(struct vp_instrument *instrument, uint64_t end);
	/* Writes its own files, if any, to the directory of a snapshot. */
	struct vp_error *(*put_files)(struct vp_instrument *instrument, const char *directory);
	/* Before a snapshot: asks remote buffers (agents) to flush; must not block long. */
	void (*request_flush)(struct vp_instrument *instrument);
	/* For streams that it keeps in its own memory: writes them, from `from` on, to the
	 * directory of a snapshot. */
	struct vp_error *(*put_streams)(struct vp_instrument *instrument, const char *directory,
					uint64_t from);
	/* Called after the guests' symbol maps were read: reports the outcome (warnings, the VMs'
	 * outcomes). */
	void (*conclude)(struct vp_instrument *instrument);
	/* The VM with that number has ended, and no record in memory refers to it; its number may
	 * be reused soon. */
	void (*forget_vm)(struct vp_instrument *instrument, uint32_t id);
	void (*free)(struct vp_instrument *instrument);

	/* Number of lost records of a stream since the start. */
	uint64_t (*lost)(const struct vp_instrument *instrument, struct vp_stream_id id);
	/* Appends "12 samples". */
	void (*put_total)(const struct vp_instrument *instrument, struct vp_buffer *out);
};

/* The first member of every instrument. */
struct vp_instrument {
	const struct vp_instrument_ops *ops;
	struct vp_session *session;
	/* If it cannot be opened and there are other instruments, the recording is made without it:
	 * name of the missing data ("no vCPU accounting"). NULL: that is an error. */
	const char *absence;
};

struct vp_late_pcpu {
	uint32_t pcpu;
	unsigned classes; /* VP_STREAMS() */
};
typedef VP_VEC(struct vp_late_pcpu) vp_late_pcpus;

#define VP_NOTICE(session, ...) vp_vec_push(vp_session_notices(session), vp_format(__VA_ARGS__))

/* Shared by all instruments. The session is valid throughout, the trace and the directory from
 * `prepare` on. */
const struct vp_session_options *vp_session_options(const struct vp_session *session);
const struct vp_hypervisor *vp_session_hypervisor(const struct vp_session *session);
struct vp_kernel_btf *vp_session_kernel_btf(const struct vp_session *session);
struct vp_recording *vp_session_recording(struct vp_session *session);
const char *vp_session_directory(const struct vp_session *session);
struct vp_trace_writer *vp_session_trace(const struct vp_session *session);
/* Samples of VMs, which the accounting writes; added by the instruments that take them. */
struct vp_sample_counts *vp_session_sample_counts(struct vp_session *session);
/* Classes of the recording; `prepare` adds those of the instrument. */
vp_event_classes *vp_session_event_classes(struct vp_session *session);
vp_vms *vp_session_vms(struct vp_session *session);
/* pCPUs that were online at the start; pCPUs that came online later. */
const struct vp_pcpus *vp_session_pcpus(const struct vp_session *session);
const vp_late_pcpus *vp_session_late_pcpus(const struct vp_session *session);
struct vp_host_maps *vp_session_host_maps(const struct vp_session *session);
/* NULL: guest memory is not read. */
struct vp_guest_watch *vp_session_guest_watch(const struct vp_session *session);
vp_notices *vp_session_notices(struct vp_session *session);

/* Incremented when the VM of a process or thread may have changed. */
const uint64_t *vp_session_vms_revision(const struct vp_session *session);
/* The VM with that number, looked up now if new, or NULL. */
struct vp_vm *vp_session_vm(struct vp_session *session, uint32_t id);
/* The recording number of the VM of VMM process `pid`, looked up now if new; without a VM, `pid`.
 * `tid`: the vCPU thread, 0 if unknown. */
uint32_t vp_session_vm_id(struct vp_session *session, uint32_t pid, uint32_t tid);
/* Whether the VM is selected by --vm. */
bool vp_session_is_chosen(const struct vp_session *session, const struct vp_vm *vm);
/* Notes that the vCPU's thread is `tid` from now on. */
void vp_session_vcpu(struct vp_session *session, struct vp_vm *vm, uint32_t number, uint32_t tid);
/* Reports progress, see struct vp_session_options. */
void vp_session_say(const struct vp_session *session, bool only_agents_left, const char *what);
/* Makes programs that are attached from now on receive the guest RIP of VM exits; false: not
 * possible on this host. */
bool vp_session_enable_exit_rip(struct vp_session *session);
/* Registers a client that receives the kernels of selected guests. */
void vp_session_watch_guests(struct vp_session *session, const struct vp_guest_watch_client *user);
/* Adds a warning if times converted from the pCPUs' TSCs may be wrong. */
void vp_session_warn_of_clock(struct vp_session *session);
/* Adds an outcome of a request to the VM's agent. */
void vp_session_note_agent(struct vp_session *session, struct vp_vm *vm,
			   const struct vp_agent_outcome *outcome);
/* The first of two errors (either may be NULL); frees the other. */
struct vp_error *vp_session_first_of(struct vp_error *first, struct vp_error *second) VP_MUST_CHECK;

/* Announces streams of these classes for a pCPU, if it was not online at the start. */
void vp_session_add_pcpu(struct vp_session *session, uint32_t pcpu, unsigned classes);

#endif
