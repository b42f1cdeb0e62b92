/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The session, for its own files (session*.c, admit.c): instruments use instrument.h. */
#ifndef VP_SESSION_SESSION_PRIVATE_H
#define VP_SESSION_SESSION_PRIVATE_H

#include "base/macros.h"
#include "base/map.h"
#include "base/notices.h"
#include "base/pcpus.h"
#include "base/vec.h"
#include "collect/guests/guest_watch.h"
#include "host/host_maps.h"
#include "host/kernel_btf.h"
#include "schema/event_class.h"
#include "schema/vm.h"
#include "session/hypervisor_choice.h"
#include "session/instrument.h"
#include "session/session.h"
#include "store/directory.h"
#include "store/recording.h"
#include "store/trace_writer.h"

struct vp_session {
	struct vp_session_options options;
	const struct vp_hypervisor *hypervisor;
	struct vp_recording info;
	VP_VEC(struct vp_instrument *) instruments;
	struct vp_pcpus pcpus; /* that were online at the start */
	/* That came later, and of which classes there are streams of them. */
	vp_late_pcpus late_pcpus;
	struct vp_trace_writer *trace;
	vp_event_classes event_classes; /* to which `prepare` adds those that it defines */
	struct vp_recording_dir dir;    /* its directory */
	struct vp_host_maps *host_maps;
	struct vp_guest_watch *guest_watch; /* NULL: guests' memory is not read */
	struct vp_services services;        /* what instruments provide to each other */
	struct vp_kernel_btf *kernel_btf;   /* for those that load programs */
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
	int wake;                         /* of vp_session_wake_on(); -1: none */
};

/* session_pcpus.c: the pCPUs that are online now, and watches for new ones from now on. */
struct vp_error *vp_session_find_pcpus(struct vp_session *session) VP_MUST_CHECK;
/* Makes the instruments record pCPUs that came online since. */
void vp_session_watch_pcpus(struct vp_session *session);

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
