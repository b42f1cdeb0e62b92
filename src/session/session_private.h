/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Internals of the session for its own files (session*.c, admit.c); instruments use
 * instrument.h. */
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
#include "store/sample_counts.h"
#include "store/trace_writer.h"

struct vp_session {
	struct vp_session_options options;
	const struct vp_hypervisor *hypervisor;
	struct vp_recording info;
	VP_VEC(struct vp_instrument *) instruments;
	struct vp_pcpus pcpus; /* online at the start */
	/* pCPUs that came online later, with the classes of their streams. */
	vp_late_pcpus late_pcpus;
	struct vp_trace_writer *trace;
	vp_event_classes event_classes; /* `prepare` of each instrument adds its own */
	struct vp_recording_dir dir;    /* the recording's directory */
	struct vp_host_maps *host_maps;
	struct vp_guest_watch *guest_watch; /* NULL: guest memory is not read */
	struct vp_services services;        /* services between instruments */
	struct vp_kernel_btf *kernel_btf;   /* for instruments that load BPF programs */
	vp_vms vms;
	uint64_t vms_revision; /* incremented when the VM of a process or thread may have changed */
	uint64_t vms_forgotten; /* number of VMs removed from `vms` after the last packet of them in
				   memory was overwritten */
	struct vp_map no_vms;   /* pids that were checked and have no VM (any more) */
	struct vp_map varying;  /* number of the last VM scan of the hypervisor */
	uint64_t vm_generation; /* of the hypervisor, at the last search for VMs */
	bool vms_changed;
	uint64_t seconds;              /* number of once-a-second steps done */
	uint64_t next_second;          /* time of the next of these steps */
	uint64_t names_at, names_wait; /* the next write of names, and the time before it; ns */
	struct vp_sample_counts samples;
	vp_notices notices;
	bool said_unwritten;
	struct vp_session_flight *flight; /* session_flight.c; NULL: records go to disk */
	int cpu_hotplug;                  /* hotplug events of pCPUs; -1: not available */
	int wake;                         /* see vp_session_wake_on(); -1: none */
};

/* session_pcpus.c: finds the pCPUs that are online now, and watches for new ones. */
struct vp_error *vp_session_find_pcpus(struct vp_session *session) VP_MUST_CHECK;
/* Makes the instruments record pCPUs that came online since the last call. */
void vp_session_watch_pcpus(struct vp_session *session);

/* session_vms.c: processes the newly found VMs from index `from` on; starts watching all; checks
 * which have ended, `closely` also which VMs their processes have closed or opened. */
void vp_session_take_vms(struct vp_session *session, size_t from);
void vp_session_watch_vms(struct vp_session *session);
void vp_session_check_vms(struct vp_session *session, bool closely);
/* Right before the start: finds VMs that started, and vCPUs that first ran, since VMs were searched
 * for. One that halts for good has no later event that would show it. */
void vp_session_find_late_vms(struct vp_session *session);
/* Writes data about guests of ended VMs; drops VMs that ended well before that time, with all state
 * about them. */
void vp_session_put_away_vms(struct vp_session *session);
void vp_session_forget_vms(struct vp_session *session, uint64_t before);
/* Whether VMs may have started since the last call. */
bool vp_session_may_be_new_vms(struct vp_session *session);

/* session.c: drains; once a second also writes clocks, VMs and other slowly changing data. */
struct vp_error *vp_session_keep_up(struct vp_session *session) VP_MUST_CHECK;
/* session_maps.c: writes names if they are due, so that a killed recorder leaves some. */
void vp_session_write_names_meanwhile(struct vp_session *session, uint64_t now);
/* session_maps.c: writes the symbol maps: of the host, with names seen from `from` on, and of the
 * guests, from their memory and from their agents. */
struct vp_error *vp_session_write_maps(struct vp_session *session, const char *directory,
				       uint64_t from) VP_MUST_CHECK;
void vp_session_ask_agents(struct vp_session *session);

/* session.c, for session_flight.c: makes the instruments flush everything up to now, and returns
 * that time; whether the recording needs symbol maps; stores the outcome of reading each guest's
 * memory. */
uint64_t vp_session_gather(struct vp_session *session);
bool vp_session_needs_names(const struct vp_session *session);
void vp_session_note_guests(struct vp_session *session);

#endif
