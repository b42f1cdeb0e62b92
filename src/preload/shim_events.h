/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Emulates perf_event_open(2) and calls on its descriptors, for events that the host provides and
 * this kernel lacks. Functions return the result of the call, or -errno. */
#ifndef VP_PRELOAD_SHIM_EVENTS_H
#define VP_PRELOAD_SHIM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct perf_event_attr;

/* Whether the descriptor is an emulated event, or a kernel event in a group with one. */
bool vp_shim_has(int fd);
/* The same, or a kernel event whose group emulated events may join. */
bool vp_shim_is_joinable(int fd);
/* The kernel's group descriptor for a group of emulated events; other descriptors are unchanged. */
int vp_shim_kernels_group(int group_fd);
/* False: the event's samples would contain wrong counts of that group. */
bool vp_shim_may_join(const struct perf_event_attr *attr, int group_fd);
/* Notes an event opened by the kernel. */
void vp_shim_note(int fd, const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd);
/* The descriptor; `refusal`: the kernel's error, returned if no host-provided event matches. */
int vp_shim_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		 unsigned long flags, int refusal);
ssize_t vp_shim_read(int fd, void *buffer, size_t size);
int vp_shim_ioctl(int fd, unsigned long request, unsigned long argument);
/* 0, or the page as the kernel would map it; -ENOSYS: pass the call to the kernel. */
int vp_shim_mmap(int fd, void *address, size_t size, int protection, int flags, off_t offset,
		 void **ret);
/* -ENOSYS: pass the call to the kernel. */
int vp_shim_fcntl(int fd, int command, unsigned long argument);
/* Call before the descriptor is closed. In a child of vfork() it does nothing: the event is its
 * parent's. */
void vp_shim_close(int fd);

/* Around fork(), which signals must not interrupt: the child inherits the events. */
void vp_shim_lock(void);
void vp_shim_unlock(void);

#endif
