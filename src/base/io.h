/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System calls that a signal may interrupt, as if there had been none: vperf handles signals
 * without SA_RESTART, and poll() and its like are never restarted. tools/check-interrupts rejects
 * the plain calls elsewhere, except where the descriptor does not block.
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
/* Also where an interrupted connection goes on being made (all but local sockets). */
int vp_connect(int fd, const struct sockaddr *address, socklen_t size) VP_MUST_CHECK;
pid_t vp_waitpid(pid_t pid, int *status, int options);
/* At most `timeout_ms` in all, however many signals come; -1: without an end. */
int vp_poll(struct pollfd *fds, nfds_t count, int timeout_ms) VP_MUST_CHECK;
/* The same for a loop that has to see what a signal handler did: 0 after a signal, too. */
int vp_poll_or_signal(struct pollfd *fds, nfds_t count, int timeout_ms) VP_MUST_CHECK;
int vp_epoll_wait(int fd, struct epoll_event *events, int count) VP_MUST_CHECK;
void vp_sleep_us(uint64_t us);
void vp_sleep_ns(uint64_t ns);
/*
 * Raises this process's limit of open descriptors as far as it may: a few are needed for each pCPU.
 * *before is the limit as it was, for programs that are started: select() in them knows 1024.
 */
void vp_raise_file_limit(struct rlimit *before);
/*
 * Opens /dev/null as each of the descriptors 0 to 2 that is closed, so that none of them becomes
 * something of this program's own, into which its messages would go. False: it cannot.
 */
bool vp_open_standard_files(void) VP_MUST_CHECK;

#endif
