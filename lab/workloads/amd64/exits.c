/*
 * exits [--cpuid N] [--out N] [--mmio N] [--hlt N] [--syscalls N] [--timers N] [--pages N]
 *       [--rate R] [--seconds S]
 *
 * Does known numbers of things that leave the guest (and of system calls, which do not): CPUID, an
 * access to an I/O port, a read of a page that belongs to no device, through /dev/mem, a sleep (so
 * that an otherwise idle vCPU executes HLT), setting a timer that is the vCPU's next one, memory
 * that was never used. The numbers make one round; rounds repeat R times a second for S seconds
 * (default: one round). What was done is printed.
 *
 * The port accesses are reads of a PCI configuration word, each a write to port 0xcf8 and a read of
 * 0xcfc by the kernel: an odd N is rounded up. (ioperm() does not work in a guest under TCG, whose
 * check of the I/O bitmap rejects the busy TSS that KVM restores.)
 */
#include "common.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define PCI_CONFIG "/sys/bus/pci/devices/0000:00:00.0/config"
#define MMIO_PAGE                                                                                  \
	0xfed40000 /* of a TPM, which lab guests do not have: the VMM answers all ones             \
		    */
#define HLT_SLEEP_S 0.001
#define PAGE 4096UL

enum kind {
	KIND_CPUID,
	KIND_OUT,
	KIND_MMIO,
	KIND_HLT,
	KIND_SYSCALL,
	KIND_TIMER,
	KIND_PAGE,
	KIND_COUNT
};

static const char *const kind_names[KIND_COUNT] = {"cpuid",    "out",    "mmio", "hlt",
						   "syscalls", "timers", "pages"};

struct exits {
	uint64_t per_round[KIND_COUNT];
	uint64_t done[KIND_COUNT];
	double rate, seconds;
	volatile uint32_t *mmio;
	int config_fd, timer_fd;
};

__attribute__((noinline)) static void exits_cpuid(uint64_t n)
{
	unsigned int a, b, c, d;

	while (n--)
		__cpuid(0, a, b, c, d);
}

__attribute__((noinline)) static void exits_out(int config_fd, uint64_t n)
{
	uint32_t word;

	for (; n; n -= 2)
		if (pread(config_fd, &word, sizeof(word), 0) != sizeof(word))
			work_usage("--out: '%s': %s", PCI_CONFIG, strerror(errno));
}

__attribute__((noinline)) static void exits_mmio(volatile uint32_t *page, uint64_t n)
{
	while (n--)
		(void)*page;
}

__attribute__((noinline)) static void exits_hlt(uint64_t n)
{
	while (n--)
		work_sleep(HLT_SLEEP_S);
}

__attribute__((noinline)) static void exits_syscalls(uint64_t n)
{
	while (n--)
		syscall(SYS_getppid);
}

/* Earlier than the kernel's next tick, but for one in two hundred; and never due. */
__attribute__((noinline)) static void exits_timers(int timer_fd, uint64_t n)
{
	const struct itimerspec soon = {.it_value.tv_nsec = 20000};

	while (n--)
		timerfd_settime(timer_fd, 0, &soon, NULL);
}

__attribute__((noinline)) static void exits_pages(uint64_t n)
{
	const size_t size = n * PAGE;
	char *pages;

	if (!n)
		return;
	pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || madvise(pages, size, MADV_NOHUGEPAGE))
		work_usage("--pages: %s", strerror(errno));
	for (size_t at = 0; at < size; at += PAGE)
		pages[at] = 1;
	munmap(pages, size);
}

static void one_round(struct exits *exits)
{
	const uint64_t *n = exits->per_round;

	exits_cpuid(n[KIND_CPUID]);
	exits_out(exits->config_fd, n[KIND_OUT]);
	exits_mmio(exits->mmio, n[KIND_MMIO]);
	exits_hlt(n[KIND_HLT]);
	exits_syscalls(n[KIND_SYSCALL]);
	exits_timers(exits->timer_fd, n[KIND_TIMER]);
	exits_pages(n[KIND_PAGE]);
	for (int i = 0; i < KIND_COUNT; i++)
		exits->done[i] += n[i];
}

static void set_option(struct exits *exits, const char *option, double value)
{
	for (int i = 0; i < KIND_COUNT; i++) {
		if (!strcmp(option + 2, kind_names[i])) {
			exits->per_round[i] = (uint64_t)value;
			return;
		}
	}
	if (!strcmp(option, "--rate"))
		exits->rate = value;
	else if (!strcmp(option, "--seconds"))
		exits->seconds = value;
	else
		work_usage("unknown option '%s': expected --cpuid, --out, --mmio, --hlt, "
			   "--syscalls, --timers, --pages, --rate or --seconds",
			   option);
}

static void get_access(struct exits *exits)
{
	if (exits->per_round[KIND_OUT]) {
		exits->per_round[KIND_OUT] += exits->per_round[KIND_OUT] % 2;
		exits->config_fd = open(PCI_CONFIG, O_RDONLY | O_CLOEXEC);
		if (exits->config_fd < 0)
			work_usage("--out: '%s': %s", PCI_CONFIG, strerror(errno));
	}
	if (exits->per_round[KIND_MMIO]) {
		int fd = open("/dev/mem", O_RDONLY | O_SYNC | O_CLOEXEC);
		void *page =
		    fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, MMIO_PAGE);

		if (page == MAP_FAILED)
			work_usage("--mmio: /dev/mem: %s", strerror(errno));
		exits->mmio = page;
	}
	if (exits->per_round[KIND_TIMER])
		exits->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
}

int main(int argc, char **argv)
{
	struct exits exits = {0};
	uint64_t rounds = 0, begin;

	work_init("exits");
	for (int i = 1; i < argc; i += 2) {
		if (strncmp(argv[i], "--", 2))
			work_usage("'%s' is not an option", argv[i]);
		set_option(&exits, argv[i], work_number(argv[i], argv[i + 1]));
	}
	get_access(&exits);
	work_limit(exits.seconds);
	begin = work_now();
	do {
		one_round(&exits);
		rounds++;
		if (exits.rate > 0) {
			double due = (double)begin / 1e9 + (double)rounds / exits.rate;
			double now = (double)work_now() / 1e9;

			if (due > now)
				work_sleep(due - now);
		}
	} while ((exits.seconds > 0 || exits.rate > 0) && !work_over());
	printf("exits: rounds=%llu", (unsigned long long)rounds);
	for (int i = 0; i < KIND_COUNT; i++)
		printf(" %s=%llu", kind_names[i], (unsigned long long)exits.done[i]);
	printf("\n");
	work_summary();
	return 0;
}
