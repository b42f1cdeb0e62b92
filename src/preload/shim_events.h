/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Emulates perf_event_open(2), and calls with its descriptors, for events that the host lends and
 * this kernel lacks. Functions return what the calls do, and -errno.
 */
#ifndef VP_PRELOAD_SHIM_EVENTS_H
#define VP_PRELOAD_SHIM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct perf_event_attr;

/* Whether the descriptor is one of these events, or of the kernel's in a group with such. */
bool vp_shim_has(int fd);
/* The same, or an event of the kernel's that such may join. */
bool vp_shim_is_joinable(int fd);
/* The group of the kernel's that goes with a group of these events; of others, the same. */
int vp_shim_kernels_group(int group_fd);
/* False: the event's samples would have wrong counts of that group. */
bool vp_shim_may_join(const struct perf_event_attr *attr, int group_fd);
/* The kernel has opened an event. */
void vp_shim_note(int fd, const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd);
/* The descriptor; `refusal` is the kernel's error, which is returned if no host-provided event
 * matches. */
int vp_shim_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		 unsigned long flags, int refusal);
ssize_t vp_shim_read(int fd, void *buffer, size_t size);
int vp_shim_ioctl(int fd, unsigned long request, unsigned long argument);
/* 0, or the page as the kernel would map it; -ENOSYS: that is the kernel's to answer. */
int vp_shim_mmap(int fd, void *address, size_t size, int protection, int flags, off_t offset,
		 void **ret);
/* -ENOSYS: that is the kernel's to answer. */
int vp_shim_fcntl(int fd, int command, unsigned long argument);
/* Before the descriptor is closed. In a child of vfork() nothing happens: the event is its
 * parent's. */
void vp_shim_close(int fd);

/* Around a fork(), which signals must not interrupt: the child has the events, too. */
void vp_shim_lock(void);
void vp_shim_unlock(void);

#endif
