/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * On Intel, the guest RIP is in the VMCS, which only the CPU reads. This event at each VM exit
 * makes KVM read it there (bpf/exit_event.bpf.c), for all programs that run later. One is enough;
 * each has a cost for the vCPUs. On 64-bit Arm there is only the map: accounting writes when a
 * guest was entered and left, for samples.
 */
#ifndef VP_COLLECT_PROGRAMS_EXIT_EVENT_H
#define VP_COLLECT_PROGRAMS_EXIT_EVENT_H

#include <stdbool.h>

struct bpf_map;
struct vp_exit_event;

/* Open it before programs at kvm_exit that need it. NULL: AMD, or the kernel lacks Intel's event.
 */
struct vp_exit_event *vp_exit_event_open(void);
/* NULL is allowed. */
void vp_exit_event_close(struct vp_exit_event *event);

/* Whether programs know the guest RIP with that event; on other vendors' hosts, without. */
bool vp_exit_event_suffices(const struct vp_exit_event *event);

/* Gives programs that are not loaded yet, with a map `last_exit`, the event's fields of each exit
 * (bpf/last_exit.bpf.h). Nonzero: failure. With `event` NULL they call KVM themselves. */
int vp_exit_event_share(const struct vp_exit_event *event, struct bpf_map *map);

#endif
