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
#include "base/vec.h"
#include "collect/guests/guest_watch.h"
#include "collect/guests/notices.h"
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

/*
 * In the order in which they are called; what an instrument does not need is NULL, but open, drain,
 * lost, put_total and free. Times are CLOCK_MONOTONIC, ns.
 */
struct vp_instrument_ops {
	const char *name; /* in the recording's line `instruments` */
	unsigned classes; /* of streams that only it writes (VP_STREAMS()) */
	bool needs_names; /* its records have addresses: the recording is to have symbol maps */
	bool often;       /* `drain` must be called at least every 0.1 s */

	/* Loads its programs and opens its events. The VMs are known, the directory does not exist
	 * yet. */
	struct vp_error *(*open)(struct vp_instrument *instrument);
	void (*describe)(const struct vp_instrument *instrument, struct vp_recording *about);
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
	void (*hasten)(struct vp_instrument *instrument);
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

struct vp_session {
	struct vp_session_options options;
	const struct vp_hypervisor *hypervisor;
	struct vp_recording about;
	VP_VEC(struct vp_instrument *) instruments;
	VP_VEC(int) pcpus; /* that were online at the start */
	/* That came later, and of which classes there are streams of them. */
	VP_VEC(struct vp_late_pcpu) late_pcpus;
	struct vp_trace_writer *trace;
	vp_event_classes event_classes; /* to which `prepare` adds those that it defines */
	struct vp_place place;          /* its directory */
	struct vp_host_maps *host_maps;
	struct vp_guest_watch *guest_watch; /* NULL: guests' memory is not read */
	bool wants_unwind_tables;           /* of guests' kernels */
	/* Those of the account, if it has any; for instruments that are opened after it. */
	struct vp_exit_programs exit_programs;
	struct vp_guest_sampler *guest_sampler; /* NULL: guests are not sampled apart; likewise */
	struct vp_exit_event *exit_event;       /* vp_session_knows_rip() */
	struct vp_kernel_btf *kernel_btf;       /* for those that load programs */
	vp_vms vms;
	uint64_t vms_revision;  /* changes when a process's or a thread's VM may have changed */
	uint64_t vms_forgotten; /* that were in `vms` until no packet in memory was of them */
	struct vp_map no_vms;   /* pids that were looked at and have no VM (any more) */
	struct vp_map varying;  /* pids: their VM ended, or they have or had several */
	uint64_t vm_generation; /* of the hypervisor, when more VMs were looked for last */
	bool vms_changed;
	uint64_t seconds;     /* of slow work done */
	uint64_t next_second; /* when to look for what changes slowly */
	vp_notices notices;
	bool said_unwritten;
	struct vp_session_flight *flight; /* session_flight.c; NULL: records go to disk */
	int cpu_hotplug;                  /* hotplug events of pCPUs; -1: not available */
};

#define VP_NOTICE(session, ...) vp_vec_push(&(session)->notices, vp_format(__VA_ARGS__))

/* The VM of that number, found now if it is new; NULL if there is none. */
struct vp_vm *vp_session_vm(struct vp_session *session, uint32_t id);
/* The number in the recording of the VM of VMM process `pid`, found now if it is new; `pid` if
 * there is none. `tid` is the vCPU's thread, 0 if it is not known. */
uint32_t vp_session_vm_id(struct vp_session *session, uint32_t pid, uint32_t tid);
/* Whether the VM is selected by --vm. */
bool vp_session_is_chosen(const struct vp_session *session, const struct vp_vm *vm);
/* The vCPU's thread is `tid` from now on. */
void vp_session_vcpu(struct vp_session *session, struct vp_vm *vm, uint32_t number, uint32_t tid);
/* Reports progress, see struct vp_session_options. */
void vp_session_say(const struct vp_session *session, bool only_agents_left, const char *what);
/* Sees to it that programs which are attached from now on know where a guest leaves; false: this
 * host does not let them. */
bool vp_session_knows_rip(struct vp_session *session);
/* Makes this user receive the kernels of selected guests. */
void vp_session_watch_guests(struct vp_session *session, const struct vp_guest_user *user);
/* Adds to the outcome of asking the VM's agent. */
void vp_session_note_agent(struct vp_session *session, struct vp_vm *vm, const char *outcome);
/* The first of two errors (either may be NULL); the other is freed. */
struct vp_error *vp_session_first_of(struct vp_error *first, struct vp_error *second) VP_MUST_CHECK;

/* session_pcpus.c: the pCPUs that are online now, and hears from now on of those that come. */
struct vp_error *vp_session_find_pcpus(struct vp_session *session) VP_MUST_CHECK;
/* Makes the instruments record pCPUs that came online since. */
void vp_session_watch_pcpus(struct vp_session *session);
/* There are streams of these classes of that pCPU, too, if it was not online at the start. */
void vp_session_add_pcpu(struct vp_session *session, uint32_t pcpu, unsigned classes);

/* session_vms.c: takes the VMs from index `from` on, which were just found; starts watching all;
 * checks which have ended, `closely` also which their processes have closed or opened. */
void vp_session_take_vms(struct vp_session *session, size_t from);
void vp_session_watch_vms(struct vp_session *session);
void vp_session_check_vms(struct vp_session *session, bool closely);
/* For ended VMs: writes the facts about their guests; forgets those that ended well before that
 * time, with everything about them. */
void vp_session_put_away_vms(struct vp_session *session);
void vp_session_forget_vms(struct vp_session *session, uint64_t before);
/* Whether VMs may have come since this was asked last. */
bool vp_session_may_be_new_vms(struct vp_session *session);

/* session_maps.c: symbol maps of the host, of what was seen from `from` on, and of the guests from
 * their memory and from their agents. */
struct vp_error *vp_session_write_maps(struct vp_session *session, const char *directory,
				       uint64_t from) VP_MUST_CHECK;
void vp_session_ask_agents(struct vp_session *session);

/* session.c, for session_flight.c: has all that instruments know up to now flushed, and returns
 * now; only takes what they have; whether the recording is to have symbol maps; keeps with each VM
 * how it went with its guest's memory. */
uint64_t vp_session_gather(struct vp_session *session);
struct vp_error *vp_session_drain(struct vp_session *session) VP_MUST_CHECK;
bool vp_session_needs_names(const struct vp_session *session);
void vp_session_note_guests(struct vp_session *session);

#endif
