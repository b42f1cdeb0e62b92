/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events that the agent of one VM's guest sends: checked, with the host's times, in a CTF trace
 * of the guest's own. That the agent sends garbage, ends or floods costs these events only.
 */
#ifndef VP_SESSION_GUEST_EVENTS_H
#define VP_SESSION_GUEST_EVENTS_H

#include "base/macros.h"
#include "base/notices.h"
#include "collect/agent/events_client.h"
#include "collect/agent/guest_clock.h"
#include "schema/agent_outcome.h"

struct vp_guest_events;

struct vp_guest_events_options {
	const char *directory; /* the recording's; its name may change where it lies */
	unsigned port;         /* of the agents, 0: the usual one */
	unsigned sets;         /* bits of enum vp_events_set */
	uint64_t max_bytes;    /* of one guest's events */
	unsigned compression;  /* zstd's level; 0: they are not compressed */
	size_t flight_bytes; /* in which the latest of them are kept; 0: they are written to disk */
	vp_notices *notices;
	struct vp_guest_clock *clock; /* that of all guests */
};

/* Contacts the VM's agent. Objects that the options point to must outlive it; `part` is copied. A
 * VM without a reachable agent has a problem, and is no error. */
struct vp_guest_events *vp_guest_events_new(const struct vp_guest_events_options *options,
					    const struct vp_vm *vm, const char *part);
void vp_guest_events_free(struct vp_guest_events *events);
/* Once a second while the VM runs: reconnects to an agent that is gone, at growing intervals; true
 * if vp_guest_events_fd() changed. */
bool vp_guest_events_again(struct vp_guest_events *events, const struct vp_vm *vm, uint64_t now);
/* The VM has ended: an agent that does not send by now never will. */
void vp_guest_events_give_up(struct vp_guest_events *events);
/* The VM's number in the recording. */
uint32_t vp_guest_events_vm(const struct vp_guest_events *events);
/* A descriptor that is readable when a message has arrived, or -1. */
int vp_guest_events_fd(const struct vp_guest_events *events);
/* Its vCPUs, and how their counters differ from the host's now. */
void vp_guest_events_update_vcpu(struct vp_guest_events *events, const struct vp_vm *vm);
/* Receives available data, with a timeout. False: there is no agent. */
bool vp_guest_events_receive(struct vp_guest_events *events, int timeout_ms);
/* Whether it is still not known if there is an agent. */
bool vp_guest_events_is_asking(const struct vp_guest_events *events);
/* Whether an agent is connected and may send more. */
bool vp_guest_events_is_open(const struct vp_guest_events *events);
/* Events from then on are recorded; those before, and all until it is called, are not. */
void vp_guest_events_begin(struct vp_guest_events *events, uint64_t now);
/* Asks the agent to send its remaining data; events later than `now` are not recorded. */
void vp_guest_events_stop(struct vp_guest_events *events, uint64_t now);
/* Writes what has gathered. */
void vp_guest_events_flush(struct vp_guest_events *events);
/* Asks the agent to flush; returns whether the reply is pending. */
void vp_guest_events_request_flush(struct vp_guest_events *events);
bool vp_guest_events_flush_pending(const struct vp_guest_events *events);
/* For events in memory: writes those from `from` on to `path`, the guest's part of a recording. */
struct vp_error *vp_guest_events_snapshot(struct vp_guest_events *events, const char *path,
					  uint64_t from) VP_MUST_CHECK;
/* Gives the room back of one that is over, if all its events are from before that time. */
void vp_guest_events_forget(struct vp_guest_events *events, uint64_t reach);
/* Events that were recorded; that were lost. */
uint64_t vp_guest_events_count(const struct vp_guest_events *events);
uint64_t vp_guest_events_lost(const struct vp_guest_events *events);
/* The outcome, to be deinitialized. */
struct vp_agent_outcome vp_guest_events_outcome(const struct vp_guest_events *events) VP_MUST_CHECK;

#endif
