/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf-perf-shim.so, for LD_PRELOAD: makes perf_event_open(2) work in a guest without a PMU,
 * for events that the host provides. Each call goes to the kernel first; what the kernel
 * supports is unchanged. */
/* Defines functions of these names, without the headers' inline versions. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/shim_events.h"

#define PUBLIC __attribute__((visibility("default")))

typedef long syscall_function(long number, ...);
typedef ssize_t read_function(int fd, void *buffer, size_t size);
typedef int ioctl_function(int fd, unsigned long request, ...);
typedef int fcntl_function(int fd, int command, ...);
typedef int close_function(int fd);
typedef void *mmap_function(void *, size_t, int, int, int, off_t);

/* libc's functions. */
static struct {
	syscall_function *syscall;
	read_function *read;
	ioctl_function *ioctl;
	fcntl_function *fcntl;
	close_function *close;
	mmap_function *mmap;
} next;

/* Called early, too: libraries that are initialized before use these functions. */
static __attribute__((constructor)) void find_next(void)
{
	if (next.mmap)
		return;
	next.syscall = (syscall_function *)dlsym(RTLD_NEXT, "syscall");
	next.read = (read_function *)dlsym(RTLD_NEXT, "read");
	next.ioctl = (ioctl_function *)dlsym(RTLD_NEXT, "ioctl");
	next.fcntl = (fcntl_function *)dlsym(RTLD_NEXT, "fcntl");
	next.close = (close_function *)dlsym(RTLD_NEXT, "close");
	next.mmap = (mmap_function *)dlsym(RTLD_NEXT, "mmap");
	pthread_atfork(vp_shim_lock, vp_shim_unlock, vp_shim_unlock);
}

static long shim_answer(long result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

static bool is_without_counter(int errnum)
{
	return errnum == ENOENT || errnum == EOPNOTSUPP || errnum == ENODEV || errnum == ENXIO;
}

static long shim_open_event(const long *arguments)
{
	const struct perf_event_attr *attr = (const void *)arguments[0]; // NOLINT: an address
	pid_t pid = (pid_t)arguments[1];
	int cpu = (int)arguments[2], group = (int)arguments[3];

	if (!vp_shim_may_join(attr, group))
		return shim_answer(-EINVAL);
	long fd = next.syscall(SYS_perf_event_open, attr, pid, cpu, vp_shim_kernels_group(group),
			       arguments[4]);
	if (fd >= 0)
		vp_shim_note((int)fd, attr, pid, cpu, group);
	if (fd >= 0 || !is_without_counter(errno))
		return fd;
	return shim_answer(vp_shim_open(attr, pid, cpu, group, (unsigned long)arguments[4], errno));
}

PUBLIC ssize_t read(int fd, void *buffer, size_t size)
{
	find_next();
	return vp_shim_has(fd) ? shim_answer(vp_shim_read(fd, buffer, size))
			       : next.read(fd, buffer, size);
}

/* read() in programs with buffer checks (_FORTIFY_SOURCE). */
PUBLIC ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
PUBLIC ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room)
{
	if (size > room)
		__builtin_trap();
	return read(fd, buffer, size);
}

PUBLIC int ioctl(int fd, unsigned long request, ...)
{
	va_list args;

	va_start(args, request);
	unsigned long argument = va_arg(args, unsigned long);
	va_end(args);
	find_next();
	return vp_shim_is_joinable(fd) ? (int)shim_answer(vp_shim_ioctl(fd, request, argument))
				       : next.ioctl(fd, request, argument);
}

PUBLIC int fcntl(int fd, int command, ...)
{
	va_list args;

	va_start(args, command);
	unsigned long argument = va_arg(args, unsigned long);
	va_end(args);
	find_next();
	int result = vp_shim_has(fd) ? vp_shim_fcntl(fd, command, argument) : -ENOSYS;
	return result == -ENOSYS ? next.fcntl(fd, command, argument) : (int)shim_answer(result);
}

/* fcntl() in programs with large files. */
PUBLIC int fcntl64(int fd, int command, ...);
PUBLIC int fcntl64(int fd, int command, ...)
{
	va_list args;

	va_start(args, command);
	unsigned long argument = va_arg(args, unsigned long);
	va_end(args);
	return fcntl(fd, command, argument);
}

PUBLIC int close(int fd)
{
	find_next();
	vp_shim_close(fd);
	return next.close(fd);
}

PUBLIC void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	void *mapped = MAP_FAILED;

	find_next();
	if (flags & MAP_ANONYMOUS || !vp_shim_has(fd))
		return next.mmap(address, size, protection, flags, fd, offset);
	int result = vp_shim_mmap(fd, address, size, protection, flags, offset, &mapped);
	if (result == -ENOSYS)
		return next.mmap(address, size, protection, flags, fd, offset);
	shim_answer(result);
	return mapped;
}

PUBLIC void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	return mmap(address, size, protection, flags, fd, offset);
}

/* perf_event_open(2) has no libc wrapper: programs call it by number. */
PUBLIC long syscall(long number, ...)
{
	long arguments[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(args, long);
	va_end(args);
	find_next();
	switch (number) {
	case SYS_perf_event_open:
		return shim_open_event(arguments);
	case SYS_read:
		return read((int)arguments[0], (void *)arguments[1], (size_t)arguments[2]);
	case SYS_ioctl:
		return ioctl((int)arguments[0], (unsigned long)arguments[1], arguments[2]);
	case SYS_close:
		return close((int)arguments[0]);
	case SYS_mmap:
		return (long)mmap((void *)arguments[0], (size_t)arguments[1], (int)arguments[2],
				  (int)arguments[3], (int)arguments[4], arguments[5]);
	default:
		return next.syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
				    arguments[4], arguments[5]);
	}
}
