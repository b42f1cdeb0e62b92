/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * On Intel, where the guest was is in the VMCS, which only the CPU reads: an event at each VM exit
 * that makes KVM read it there (bpf/exit_event.bpf.c), for all who ask KVM later. One is enough,
 * and each costs the vCPUs something.
 */
#ifndef VP_COLLECT_PROGRAMS_EXIT_EVENT_H
#define VP_COLLECT_PROGRAMS_EXIT_EVENT_H

#include <stdbool.h>

struct bpf_map;
struct vp_exit_event;

/* From now on, and to be opened before programs at kvm_exit that want to know. NULL: this host's
 * KVM is not Intel's, or its kernel lacks the event. */
struct vp_exit_event *vp_exit_event_open(void);
/* NULL does nothing. */
void vp_exit_event_close(struct vp_exit_event *event);

/* Whether programs know where a guest left, with that event: on other vendors' hosts without. */
bool vp_exit_event_suffices(const struct vp_exit_event *event);

/* Gives programs that are not loaded yet, with their map `last_exit`, the event's fields of each
 * exit (bpf/last_exit.bpf.h). Not 0: it failed. With NULL they have to ask KVM. */
int vp_exit_event_share(const struct vp_exit_event *event, struct bpf_map *map);

#endif
