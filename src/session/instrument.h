/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data sources of a session: an instrument is a file that fills one table of operations. And what
 * the session has for its instruments.
 */
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
#include "store/trace_writer.h"

/* Services that an instrument may provide to others. */
enum vp_service {
	VP_SERVICE_GUEST_SAMPLER = 1,
	VP_SERVICE_EXIT_PROGRAMS = 2,
};

struct vp_services {
	/* NULL: guests are not sampled apart. It receives guest exits for interrupts. */
	struct vp_guest_sampler *guest_sampler;
	struct vp_exit_programs exit_programs; /* those of the account; none if it has none */
	struct vp_exit_event *exit_event;      /* vp_session_enable_exit_rip() */
	bool unwind_tables;                    /* of guests' kernels are wanted */
};

/*
 * In the order in which they are called; what an instrument does not need is NULL, but open, drain,
 * lost, put_total and free. Times are CLOCK_MONOTONIC, ns.
 */
struct vp_instrument_ops {
	const char *name; /* in the recording's line `instruments` */
	unsigned classes; /* of streams that only it writes (VP_STREAMS()) */
	bool needs_names; /* its records have addresses: the recording is to have symbol maps */
	bool often;       /* `drain` must be called at least every 0.1 s */

	/* Bits of enum vp_service: those that `open` provides, and those that it uses if another
	 * instrument provides them: that one is opened before. */
	unsigned provides, uses;

	/* Loads its programs and opens its events. The VMs are known, the directory does not exist
	 * yet. */
	struct vp_error *(*open)(struct vp_instrument *instrument, struct vp_services *services);
	void (*describe)(const struct vp_instrument *instrument, struct vp_recording *info);
	/* Says by vp_session_watch_guests() what it wants to know of guests' kernels. */
	void (*watch_guests)(struct vp_instrument *instrument);
	/* The directory is there, and the guests' kernels were found as far as they can be. */
	struct vp_error *(*prepare)(struct vp_instrument *instrument);
	struct vp_error *(*start)(struct vp_instrument *instrument, uint64_t now);
	/* A descriptor that can be read when `drain` should not wait any longer. */
	int (*fd)(const struct vp_instrument *instrument);
	/* Writes the records that have gathered. */
	struct vp_error *(*drain)(struct vp_instrument *instrument);
	/* A pCPU came online, which may have been online before. An error is reported, and the
	 * others go on. */
	struct vp_error *(*add_pcpu)(struct vp_instrument *instrument, uint32_t pcpu);
	/* Once a second. */
	void (*second)(struct vp_instrument *instrument, uint64_t now);
	struct vp_error *(*stop)(struct vp_instrument *instrument);
	/* After the last `drain`: writes its last records, and its own files. */
	struct vp_error *(*finish)(struct vp_instrument *instrument, uint64_t end);
	/* Writes its own files, if it has any, to a snapshot's directory. */
	struct vp_error *(*put_files)(struct vp_instrument *instrument, const char *directory);
	/* Before a snapshot: asks remote buffers (agents) to flush; must not block long. */
	void (*request_flush)(struct vp_instrument *instrument);
	/* For streams that it keeps in memory itself: writes them, from `from` on, to a snapshot's
	 * directory. */
	struct vp_error *(*put_streams)(struct vp_instrument *instrument, const char *directory,
					uint64_t from);
	/* The guests' symbol maps were read: reports the outcome (notices, the VMs' states). */
	void (*conclude)(struct vp_instrument *instrument);
	/* No record that is kept is of the VM of that number, which ended; there may be another one
	 * of that number soon. */
	void (*forget_vm)(struct vp_instrument *instrument, uint32_t id);
	void (*free)(struct vp_instrument *instrument);

	/* Records of a stream that were lost on their way here, from the start on. */
	uint64_t (*lost)(const struct vp_instrument *instrument, struct vp_stream_id id);
	/* Appends "12 samples". */
	void (*put_total)(const struct vp_instrument *instrument, struct vp_buffer *out);
};

/* The first member of every instrument. */
struct vp_instrument {
	const struct vp_instrument_ops *ops;
	struct vp_session *session;
	/* Name of the missing data ("no vCPU accounting") if it cannot be opened and there are
	 * other instruments, which then record without it. NULL: that is an error. */
	const char *absence;
};

struct vp_late_pcpu {
	uint32_t pcpu;
	unsigned classes; /* VP_STREAMS() */
};
typedef VP_VEC(struct vp_late_pcpu) vp_late_pcpus;

#define VP_NOTICE(session, ...) vp_vec_push(vp_session_notices(session), vp_format(__VA_ARGS__))

/* Shared by all instruments: valid as long as the session, the trace and the directory from
 * `prepare` on. */
const struct vp_session_options *vp_session_options(const struct vp_session *session);
const struct vp_hypervisor *vp_session_hypervisor(const struct vp_session *session);
struct vp_kernel_btf *vp_session_kernel_btf(const struct vp_session *session);
struct vp_recording *vp_session_recording(struct vp_session *session);
const char *vp_session_directory(const struct vp_session *session);
struct vp_trace_writer *vp_session_trace(const struct vp_session *session);
/* To which `prepare` adds those that the instrument defines. */
vp_event_classes *vp_session_event_classes(struct vp_session *session);
vp_vms *vp_session_vms(struct vp_session *session);
/* The pCPUs that were online at the start, and those that came later. */
const struct vp_pcpus *vp_session_pcpus(const struct vp_session *session);
const vp_late_pcpus *vp_session_late_pcpus(const struct vp_session *session);
struct vp_host_maps *vp_session_host_maps(const struct vp_session *session);
/* NULL: guest memory is not read. */
struct vp_guest_watch *vp_session_guest_watch(const struct vp_session *session);
vp_notices *vp_session_notices(struct vp_session *session);

/* Changes when a process's or a thread's VM may have changed. */
const uint64_t *vp_session_vms_revision(const struct vp_session *session);
/* The VM of that number, found now if it is new, or NULL. */
struct vp_vm *vp_session_vm(struct vp_session *session, uint32_t id);
/* The number in the recording of the VM of VMM process `pid`, found now if it is new, or `pid`.
 * `tid` is the vCPU's thread, 0 if it is not known. */
uint32_t vp_session_vm_id(struct vp_session *session, uint32_t pid, uint32_t tid);
/* Whether the VM is selected by --vm. */
bool vp_session_is_chosen(const struct vp_session *session, const struct vp_vm *vm);
/* The vCPU's thread is `tid` from now on. */
void vp_session_vcpu(struct vp_session *session, struct vp_vm *vm, uint32_t number, uint32_t tid);
/* Reports progress, see struct vp_session_options. */
void vp_session_say(const struct vp_session *session, bool only_agents_left, const char *what);
/* Makes programs that are attached from now on know the guest RIP of VM exits; false: this host
 * does not let them. */
bool vp_session_enable_exit_rip(struct vp_session *session);
/* Makes this user receive the kernels of selected guests. */
void vp_session_watch_guests(struct vp_session *session, const struct vp_guest_watch_client *user);
/* Adds a notice if times that are converted from the pCPUs' counters may be off. */
void vp_session_warn_of_clock(struct vp_session *session);
/* Adds to the outcome of asking the VM's agent. */
void vp_session_note_agent(struct vp_session *session, struct vp_vm *vm,
			   const struct vp_agent_outcome *outcome);
/* The first of two errors (either may be NULL); the other is freed. */
struct vp_error *vp_session_first_of(struct vp_error *first, struct vp_error *second) VP_MUST_CHECK;

/* There are streams of these classes of that pCPU, too, if it was not online at the start. */
void vp_session_add_pcpu(struct vp_session *session, uint32_t pcpu, unsigned classes);

#endif
