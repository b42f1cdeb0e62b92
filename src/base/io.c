/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* MAX_FILES: below the kernel's fs.nr_open; 4096 pCPUs need a 60th of it. */
enum { STANDARD_FILES = 3, MAX_FILES = 1 << 20 };

#define AGAIN(call)                                                                                \
	({                                                                                         \
		__typeof__(call) vp_result;                                                        \
		do                                                                                 \
			vp_result = (call);                                                        \
		while (vp_result < 0 && errno == EINTR);                                           \
		vp_result;                                                                         \
	})

ssize_t vp_read(int fd, void *bytes, size_t size)
{
	return AGAIN(read(fd, bytes, size));
}

ssize_t vp_pread(int fd, void *bytes, size_t size, off_t at)
{
	return AGAIN(pread(fd, bytes, size, at));
}

ssize_t vp_pwrite(int fd, const void *bytes, size_t size, off_t at)
{
	return AGAIN(pwrite(fd, bytes, size, at));
}

ssize_t vp_write(int fd, const void *bytes, size_t size)
{
	return AGAIN(write(fd, bytes, size));
}

ssize_t vp_recv(int fd, void *bytes, size_t size, int flags)
{
	return AGAIN(recv(fd, bytes, size, flags));
}

ssize_t vp_recvmsg(int fd, struct msghdr *message, int flags)
{
	return AGAIN(recvmsg(fd, message, flags));
}

ssize_t vp_send(int fd, const void *bytes, size_t size, int flags)
{
	return AGAIN(send(fd, bytes, size, flags));
}

ssize_t vp_sendmsg(int fd, const struct msghdr *message, int flags)
{
	return AGAIN(sendmsg(fd, message, flags));
}

int vp_accept(int listener, int flags)
{
	return AGAIN(accept4(listener, NULL, NULL, flags));
}

int vp_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	struct pollfd connecting = {.fd = fd, .events = POLLOUT};
	int errnum = 0;
	socklen_t length = sizeof(errnum);

	int result = address->sa_family == AF_UNIX ? AGAIN(connect(fd, address, size))
						   : connect(fd, address, size);
	if (!result || errno != EINTR)
		return result;
	if (vp_poll(&connecting, 1, -1) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &length))
		return -1;
	errno = errnum;
	return errnum ? -1 : 0;
}

pid_t vp_waitpid(pid_t pid, int *status, int options)
{
	return AGAIN(waitpid(pid, status, options));
}

static uint64_t io_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int vp_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	uint64_t end = io_now_ms() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0);
	int left = timeout_ms, result;

	while ((result = poll(fds, count, left)) < 0 && errno == EINTR) {
		uint64_t now = io_now_ms();
		if (timeout_ms >= 0)
			left = now < end ? (int)(end - now) : 0;
	}
	return result;
}

int vp_poll_or_signal(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	int result = poll(fds, count, timeout_ms);

	return result < 0 && errno == EINTR ? 0 : result;
}

int vp_epoll_wait(int fd, struct epoll_event *events, int count)
{
	return AGAIN(epoll_wait(fd, events, count, -1));
}

void vp_sleep_us(uint64_t us)
{
	vp_sleep_ns(us * 1000);
}

void vp_sleep_ns(uint64_t ns)
{
	struct timespec left = {.tv_sec = (time_t)(ns / 1000000000),
				.tv_nsec = (long)(ns % 1000000000)};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

void vp_raise_file_limit(struct rlimit *before)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, before))
		*before = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
	limit = *before;
	if (limit.rlim_max < MAX_FILES) { /* with CAP_SYS_RESOURCE */
		limit.rlim_cur = limit.rlim_max = MAX_FILES;
		if (!setrlimit(RLIMIT_NOFILE, &limit))
			return;
	}
	limit = (struct rlimit){before->rlim_max, before->rlim_max};
	if (limit.rlim_cur > MAX_FILES)
		limit.rlim_cur = MAX_FILES;
	if (limit.rlim_cur > before->rlim_cur)
		(void)!setrlimit(RLIMIT_NOFILE, &limit);
}

static bool standard_files_are_open(void)
{
	for (int fd = 0; fd < STANDARD_FILES; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			return false;
	return true;
}

bool vp_open_standard_files(void)
{
	int fd;

	if (standard_files_are_open()) /* /dev may be missing, as in a small guest */
		return true;
	/* Each open returns the lowest free number. Not O_CLOEXEC: child programs need them,
	 * too. */
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < STANDARD_FILES);
	return fd >= 0 && !close(fd);
}
