/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pCPUs that come online and go offline, from the kernel's uevents (NETLINK_KOBJECT_UEVENT). */
#ifndef VP_HOST_CPU_HOTPLUG_H
#define VP_HOST_CPU_HOTPLUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A descriptor that is readable when an event has arrived, to be closed; -1 and errno: not
 * available. */
int vp_cpu_hotplug_open(void);
/* Calls on_event() for each pCPU event received since the last call; false: some were dropped. */
bool vp_cpu_hotplug_read(int fd, void (*on_event)(void *context, uint32_t pcpu, bool online),
			 void *context);
/* Whether these bytes are a uevent of a pCPU that came online or went offline. */
bool vp_cpu_hotplug_parse(const char *bytes, size_t size, uint32_t *pcpu, bool *online);

#endif
