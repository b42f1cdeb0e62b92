/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/io.h"

enum { NOBODY = 65534, FIRST_KEPT = 3, MAX_KEPT = 8 };
/* Mappings of files and of guest memory need address space, but no memory of their own. */
#define MAX_ADDRESSES (4ULL << 30)

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

/* System calls of malloc() and the C library for reading, writing, sorting and exiting: glibc's
 * qsort() queries the memory size once. */
static const unsigned allowed[] = {
    SYS_read,         SYS_write, SYS_pread64, SYS_mmap,          SYS_munmap,
    SYS_mremap,       SYS_brk,   SYS_madvise, SYS_exit,          SYS_exit_group,
    SYS_rt_sigreturn, SYS_futex, SYS_close,   SYS_clock_gettime, SYS_clock_nanosleep,
    SYS_sysinfo,
};
/* In addition, for finding and opening files for reading. */
static const unsigned allowed_to_reader[] = {
    SYS_fstat,     SYS_newfstatat,  SYS_lseek,      SYS_mprotect,
    SYS_getrandom, SYS_sigaltstack, SYS_getdents64,
};
/* In addition, for serving clients of a socket. */
static const unsigned allowed_to_server[] = {
    SYS_accept4, SYS_recvfrom,   SYS_sendto,      SYS_sendmsg,    SYS_writev,
    SYS_ppoll,   SYS_pselect6,   SYS_shutdown,    SYS_setsockopt, SYS_getsockname,
    SYS_fcntl,   SYS_getsockopt, SYS_getpeername, SYS_getrandom,  SYS_rt_sigprocmask,
#ifdef SYS_poll
    SYS_poll,    SYS_select,
#endif
};
/* In addition, for passing bytes between nonblocking descriptors. */
static const unsigned allowed_to_passer[] = {
    SYS_ppoll,
    SYS_rt_sigprocmask,
#ifdef SYS_poll
    SYS_poll,
#endif
};
/* In addition, for receiving descriptors. */
static const unsigned allowed_to_receiver[] = {SYS_recvmsg};
/* In addition, for connecting to servers; the resolver uses a thread. */
static const unsigned allowed_to_client[] = {
    SYS_socket,       SYS_connect,     SYS_bind,
    SYS_recvmsg,      SYS_sendmmsg,    SYS_socketpair,
    SYS_pipe2,        SYS_eventfd2,    SYS_getpid,
    SYS_gettid,       SYS_getuid,      SYS_geteuid,
    SYS_getgid,       SYS_getegid,     SYS_set_robust_list,
    SYS_rt_sigaction, SYS_uname,       SYS_sched_getaffinity,
    SYS_faccessat,    SYS_sched_yield, SYS_dup,
    SYS_prlimit64,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_access
    SYS_access,
#endif
};
enum { WRITING = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND };
enum {
	NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
		     CLONE_NEWUTS | CLONE_NEWCGROUP
};

/* For debugging vperf; otherwise its output is not trusted. */
static bool drop_standard_files(void)
{
	int last = getenv("VPERF_DEBUG") ? STDOUT_FILENO : STDERR_FILENO;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; null >= 0 && fd <= last; fd++)
		if (dup2(null, fd) < 0)
			return false;
	return null >= 0;
}

/* Closes all descriptors except the standard ones and `fds`: the process may be at its limit, and
 * the next steps need some. */
static void close_others(const int *fds, size_t count)
{
	unsigned from = FIRST_KEPT, next;

	do {
		next = ~0U;
		for (size_t i = 0; i < count; i++)
			if (fds[i] >= 0 && (unsigned)fds[i] >= from && (unsigned)fds[i] < next)
				next = (unsigned)fds[i];
		if (from < next)
			syscall(SYS_close_range, from, next == ~0U ? next : next - 1, 0);
		from = next + 1;
	} while (next != ~0U);
}

/* Moves the descriptors to FIRST_KEPT … and closes all others. */
static bool keep_descriptors(int *fds, size_t count)
{
	int next = FIRST_KEPT;

	if (count > MAX_KEPT) {
		errno = EINVAL;
		return false;
	}
	close_others(fds, count);
	/* Two steps, because source and target numbers may overlap. */
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0 &&
		    (fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_KEPT + MAX_KEPT)) < 0)
			return false;
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0 && (fds[i] = dup3(fds[i], next++, O_CLOEXEC)) < 0)
			return false;
	return drop_standard_files() &&
	       (!syscall(SYS_close_range, next, ~0U, 0) || errno == ENOSYS);
}

/* A seccomp filter under construction. */
struct filter {
	struct sock_filter at[192];
	unsigned short count;
};

static void confine_add(struct filter *filter, struct sock_filter statement)
{
	filter->at[filter->count++] = statement;
}

static void begin_filter(struct filter *filter)
{
	confine_add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							 offsetof(struct seccomp_data, arch)));
	confine_add(filter,
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0));
	confine_add(filter,
		    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
	confine_add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							 offsetof(struct seccomp_data, nr)));
}

static void allow(struct filter *filter, const unsigned *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		confine_add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
								 calls[i], 0, 1));
		confine_add(filter,
			    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	}
}

/* vp_file_read() makes its descriptors blocking. Other uses of fcntl() are rejected. */
static void allow_waiting(struct filter *filter)
{
	const unsigned low = offsetof(struct seccomp_data, args[1]); /* little endian */

	confine_add(filter,
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 4));
	confine_add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low));
	confine_add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETFL, 0, 1));
	confine_add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	confine_add(filter,
		    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
}

/* Must be the last rule: afterwards the accumulator no longer has the call's number. */
static void allow_opening_to_read(struct filter *filter)
{
	const unsigned low = offsetof(struct seccomp_data, args[2]); /* little endian */

	confine_add(filter,
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3));
	confine_add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low));
	confine_add(filter,
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, WRITING, 1, 0));
	confine_add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

/* Must be the last rule, too. */
static void allow_request(struct filter *filter, unsigned long request)
{
	const unsigned low = offsetof(struct seccomp_data, args[1]); /* little endian */

	confine_add(filter,
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3));
	confine_add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low));
	confine_add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (uint32_t)request, 0, 1));
	confine_add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

static bool end_filter(struct filter *filter, unsigned otherwise)
{
	confine_add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise));
	struct sock_fprog program = {.len = filter->count, .filter = filter->at};
	return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static bool limit_system_calls(const unsigned *more, size_t n_more, unsigned long request)
{
	struct filter filter = {.count = 0};

	begin_filter(&filter);
	allow(&filter, allowed, VP_ARRAY_SIZE(allowed));
	allow(&filter, more, n_more);
	if (request)
		allow_request(&filter, request);
	return end_filter(&filter, SECCOMP_RET_KILL_PROCESS);
}

static bool limit_to_reading(void)
{
	struct filter filter = {.count = 0};

	begin_filter(&filter);
	allow(&filter, allowed, VP_ARRAY_SIZE(allowed));
	allow(&filter, allowed_to_reader, VP_ARRAY_SIZE(allowed_to_reader));
	allow_waiting(&filter);
	allow_opening_to_read(&filter);
	return end_filter(&filter, SECCOMP_RET_ERRNO | EPERM);
}

static bool limit_to_serving(void)
{
	struct filter filter = {.count = 0};

	begin_filter(&filter);
	allow(&filter, allowed, VP_ARRAY_SIZE(allowed));
	allow(&filter, allowed_to_server, VP_ARRAY_SIZE(allowed_to_server));
	return end_filter(&filter, SECCOMP_RET_ERRNO | EPERM);
}

/* Allows threads, but no namespaces. clone3() is rejected, because its flags are not visible to the
 * filter; the C library then uses clone(). */
static void allow_threads(struct filter *filter)
{
	const unsigned low = offsetof(struct seccomp_data, args[0]); /* little endian */

	confine_add(filter,
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
	confine_add(filter,
		    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
	confine_add(filter,
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
	confine_add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low));
	confine_add(filter,
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 1, 0));
	confine_add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	confine_add(filter,
		    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
}

static bool limit_to_asking(void)
{
	struct filter filter = {.count = 0};

	begin_filter(&filter);
	allow(&filter, allowed, VP_ARRAY_SIZE(allowed));
	allow(&filter, allowed_to_reader, VP_ARRAY_SIZE(allowed_to_reader));
	allow(&filter, allowed_to_server, VP_ARRAY_SIZE(allowed_to_server));
	allow(&filter, allowed_to_client, VP_ARRAY_SIZE(allowed_to_client));
	allow_threads(&filter);
	allow_opening_to_read(&filter);
	return end_filter(&filter, SECCOMP_RET_ERRNO | EPERM);
}

/* Drops all capabilities except those for reading files of any process. */
static bool keep_reader_capabilities(void)
{
	static const unsigned kept[] = {CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYS_ADMIN};
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct have[2], keep[2] = {0};

	if (syscall(SYS_capget, &header, have))
		return false;
	for (size_t i = 0; i < VP_ARRAY_SIZE(kept); i++)
		keep[kept[i] / 32].permitted |= have[kept[i] / 32].permitted & 1U << kept[i] % 32;
	for (size_t i = 0; i < VP_ARRAY_SIZE(keep); i++)
		keep[i].effective = keep[i].permitted;
	return !syscall(SYS_capset, &header, keep);
}

/* Present address space, and private writable memory, of this process in bytes. */
static bool measure_memory(uint64_t *addresses, uint64_t *data)
{
	VP_AUTO_CLOSE int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char text[256];
	ssize_t size = fd < 0 ? -1 : vp_read(fd, text, sizeof(text));

	if (size <= 0)
		return false;
	struct vp_cursor words = vp_cursor_of(text, (size_t)size);
	*addresses = vp_cursor_decimal(&words) * page;
	for (int i = 0; i < 4; i++) /* resident, shared, text, lib */
		vp_cursor_word(&words);
	*data = vp_cursor_decimal(&words) * page;
	return vp_cursor_ok(&words);
}

/* A lower limit set by an administrator is kept. */
static bool limit_to(int resource, uint64_t most)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return false;
	limit.rlim_max = most < limit.rlim_max ? most : limit.rlim_max;
	limit.rlim_cur = limit.rlim_max;
	return !setrlimit(resource, &limit);
}

static bool limit_resources(uint64_t memory, uint64_t max_file)
{
	uint64_t addresses, data;

	return measure_memory(&addresses, &data) && signal(SIGXFSZ, SIG_IGN) != SIG_ERR &&
	       limit_to(RLIMIT_AS, addresses + MAX_ADDRESSES) &&
	       limit_to(RLIMIT_DATA, data + memory) && limit_to(RLIMIT_FSIZE, max_file) &&
	       limit_to(RLIMIT_CORE, 0);
}

static bool give_up_privileges(void)
{
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_DUMPABLE, 0) &&
	       !prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static bool become_nobody(void)
{
	return !setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	       !setresuid(NOBODY, NOBODY, NOBODY);
}

/* `failed`: the failed step, or NULL. */
static struct vp_error *confined(const char *failed)
{
	return failed ? vp_error_errno(errno, "cannot confine a process: %s", failed) : NULL;
}

static const char no_descriptors[] = "its descriptors", no_limits[] = "its resource limits",
		  no_rights[] = "its privileges", no_filter[] = "its system calls";

/* With `n_more` system calls `more`. */
static struct vp_error *confine_to_calls(int *fds, size_t count, const unsigned *more,
					 size_t n_more, unsigned long request, uint64_t max_file)
{
	return confined(!keep_descriptors(fds, count)                    ? no_descriptors
			: !limit_resources(VP_CONFINED_MEMORY, max_file) ? no_limits
			: !become_nobody() || !give_up_privileges()      ? no_rights
			: !limit_system_calls(more, n_more, request)     ? no_filter
									 : NULL);
}

struct vp_error *vp_confine(int *fds, size_t count, unsigned long request, uint64_t max_file)
{
	return confine_to_calls(fds, count, NULL, 0, request, max_file);
}

struct vp_error *vp_confine_to_receiving(int *fds, size_t count, unsigned long request,
					 uint64_t max_file)
{
	return confine_to_calls(fds, count, allowed_to_receiver, VP_ARRAY_SIZE(allowed_to_receiver),
				request, max_file);
}

struct vp_error *vp_confine_to_passing(int *fds, size_t count, unsigned long request)
{
	return confine_to_calls(fds, count, allowed_to_passer, VP_ARRAY_SIZE(allowed_to_passer),
				request, 0);
}

struct vp_error *vp_confine_to_reading(int *fds, size_t count, uint64_t max_file)
{
	return confined(!keep_descriptors(fds, count)                           ? no_descriptors
			: !limit_resources(VP_CONFINED_READER_MEMORY, max_file) ? no_limits
			: !keep_reader_capabilities() || !give_up_privileges()  ? no_rights
			: !limit_to_reading()                                   ? no_filter
										: NULL);
}

struct vp_error *vp_confine_to_serving(int *fds, size_t count)
{
	if (!keep_descriptors(fds, count))
		return confined(no_descriptors);
	if (!limit_resources(VP_CONFINED_MEMORY, 0))
		return confined(no_limits);
	if (!become_nobody() || !give_up_privileges())
		return confined(no_rights);
	return confined(limit_to_serving() ? NULL : no_filter);
}

struct vp_error *vp_confine_to_asking(int *fd)
{
	if (!keep_descriptors(fd, 1))
		return confined(no_descriptors);
	if (!limit_resources(VP_CONFINED_MEMORY, 0))
		return confined(no_limits);
	/* A process that is not root has no rights of its own to give up. */
	if ((!geteuid() && !become_nobody()) || !give_up_privileges())
		return confined(no_rights);
	return confined(limit_to_asking() ? NULL : no_filter);
}
