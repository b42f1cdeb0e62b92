/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { NOBODY = 65534, FIRST_KEPT = 3, MOST_KEPT = 8 };
/* Room for the images and symbols of a guest, and for nothing that would hurt the host. The shadow
 * that AddressSanitizer keeps of all addresses is more than any limit. */
#ifdef __SANITIZE_ADDRESS__
#define MOST_MEMORY RLIM_INFINITY
#else
#define MOST_MEMORY (4ULL << 30)
#endif

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

/* What malloc() and the C library need for reading, writing and ending. */
static const unsigned allowed[] = {
    SYS_read,         SYS_write, SYS_pread64, SYS_mmap,          SYS_munmap,
    SYS_mremap,       SYS_brk,   SYS_madvise, SYS_exit,          SYS_exit_group,
    SYS_rt_sigreturn, SYS_futex, SYS_close,   SYS_clock_gettime,
};

/* Who debugs vperf wants to see what is said there; nobody else has to believe it. */
static bool drop_standard_files(void)
{
	int last = getenv("VPERF_DEBUG") ? STDOUT_FILENO : STDERR_FILENO;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; null >= 0 && fd <= last; fd++)
		if (dup2(null, fd) < 0)
			return false;
	return null >= 0;
}

/* Moves the descriptors to FIRST_KEPT … and closes all others. */
static bool keep_descriptors(int *fds, size_t count)
{
	int next = FIRST_KEPT;

	if (count > MOST_KEPT)
		return false;
	/* First out of the way, then into place: their numbers may be each other's. */
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0 &&
		    (fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_KEPT + MOST_KEPT)) < 0)
			return false;
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0 && (fds[i] = dup3(fds[i], next++, O_CLOEXEC)) < 0)
			return false;
	return drop_standard_files() &&
	       (!syscall(SYS_close_range, next, ~0U, 0) || errno == ENOSYS);
}

static bool limit_system_calls(void)
{
	enum { ALLOWED = VP_ARRAY_SIZE(allowed), HEAD = 4 };
	struct sock_filter filter[HEAD + ALLOWED + 2] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = {.len = VP_ARRAY_SIZE(filter), .filter = filter};

	for (unsigned i = 0; i < ALLOWED; i++) /* to the last statement */
		filter[HEAD + i] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JEQ | BPF_K, allowed[i], (unsigned char)(ALLOWED - i), 0);
	filter[HEAD + ALLOWED] =
	    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	filter[HEAD + ALLOWED + 1] =
	    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

bool vp_confine(int *fds, size_t count)
{
	const struct rlimit memory = {MOST_MEMORY, MOST_MEMORY}, none = {0, 0};

	return keep_descriptors(fds, count) && !setrlimit(RLIMIT_AS, &memory) &&
	       !setrlimit(RLIMIT_CORE, &none) && !setgroups(0, NULL) &&
	       !setresgid(NOBODY, NOBODY, NOBODY) && !setresuid(NOBODY, NOBODY, NOBODY) &&
	       !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_DUMPABLE, 0) &&
	       !prctl(PR_SET_PDEATHSIG, SIGKILL) && limit_system_calls();
}
