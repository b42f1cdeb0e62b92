/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System calls that are restarted after a signal: vperf installs handlers without SA_RESTART, and
 * poll() and similar calls are never restarted by the kernel. tools/check-interrupts rejects direct
 * calls elsewhere, except on non-blocking descriptors.
 */
#ifndef VP_BASE_IO_H
#define VP_BASE_IO_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/macros.h"

struct epoll_event;
struct rlimit;

ssize_t vp_read(int fd, void *bytes, size_t size) VP_MUST_CHECK;
ssize_t vp_pread(int fd, void *bytes, size_t size, off_t at) VP_MUST_CHECK;
ssize_t vp_pwrite(int fd, const void *bytes, size_t size, off_t at) VP_MUST_CHECK;
ssize_t vp_write(int fd, const void *bytes, size_t size) VP_MUST_CHECK;
ssize_t vp_recv(int fd, void *bytes, size_t size, int flags) VP_MUST_CHECK;
ssize_t vp_recvmsg(int fd, struct msghdr *message, int flags) VP_MUST_CHECK;
ssize_t vp_send(int fd, const void *bytes, size_t size, int flags) VP_MUST_CHECK;
ssize_t vp_sendmsg(int fd, const struct msghdr *message, int flags) VP_MUST_CHECK;
int vp_accept(int listener, int flags) VP_MUST_CHECK;
/* Also waits for a connection that continues in the background after an interruption (all but local
 * sockets). */
int vp_connect(int fd, const struct sockaddr *address, socklen_t size) VP_MUST_CHECK;
pid_t vp_waitpid(pid_t pid, int *status, int options);
/* Waits at most `timeout_ms` in total, regardless of signals; -1: no timeout. */
int vp_poll(struct pollfd *fds, nfds_t count, int timeout_ms) VP_MUST_CHECK;
/* The same for a loop that checks flags set by signal handlers: returns 0 also after a signal. */
int vp_poll_or_signal(struct pollfd *fds, nfds_t count, int timeout_ms) VP_MUST_CHECK;
int vp_epoll_wait(int fd, struct epoll_event *events, int count) VP_MUST_CHECK;
void vp_sleep_us(uint64_t us);
void vp_sleep_ns(uint64_t ns);
/* Raises the soft limit of open descriptors to the hard limit: each pCPU needs several. *before is
 * the previous limit, to restore in child programs: select() supports only 1024. */
void vp_raise_file_limit(struct rlimit *before);
/* Opens /dev/null for each closed descriptor from 0 to 2, so that no file of this program gets one
 * of these numbers and receives its messages. False: failed. */
bool vp_open_standard_files(void) VP_MUST_CHECK;

#endif
