/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/filter.h>

#include "base/macros.h"
#include "collect/clock.h"
#include "collect/perf_event.h"

static bool refused(const char *what, const char *why)
{
	printf("skipped: %s: %s\n", what, why);
	return false;
}

bool vp_kernel_takes_programs(const char *what)
{
	const struct bpf_insn nothing[] = {
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	    {.code = BPF_JMP | BPF_EXIT},
	};
	uint64_t arguments[1] = {0};
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = arguments,
		    .ctx_size_in = sizeof(arguments));

	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return refused(what, "this kernel has no BTF");
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "nothing", "GPL", nothing, 2, NULL);
	if (fd < 0)
		return refused(what, errno == EPERM ? "no right to load programs into the kernel"
						    : "this kernel takes no programs");
	int result = bpf_prog_test_run_opts(fd, &options);
	close(fd);
	return result ? refused(what, "this kernel does not run programs for a test") : true;
}

static uint32_t run(const struct bpf_program *program, const uint64_t arguments[3])
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = arguments,
		    .ctx_size_in = 3 * sizeof(*arguments));

	if (bpf_prog_test_run_opts(bpf_program__fd(program), &options))
		fail_msg("cannot run program '%s': %s", bpf_program__name(program),
			 strerror(errno));
	return options.retval;
}

void vp_run(const struct bpf_program *program, uint64_t first, uint64_t second, uint64_t third)
{
	assert_int_equal(run(program, (uint64_t[]){first, second, third}), 0);
}

uint32_t vp_run_for_result(const struct bpf_program *program, uint64_t first, uint64_t second)
{
	return run(program, (uint64_t[]){first, second, 0});
}

void vp_stay_on(uint32_t pcpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(pcpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

uint32_t vp_stay_here(void)
{
	uint32_t pcpu = (uint32_t)sched_getcpu();

	vp_stay_on(pcpu);
	return pcpu;
}

bool vp_two_pcpus(const cpu_set_t *allowed, uint32_t ret[2])
{
	uint32_t found = 0;

	for (uint32_t pcpu = 0; pcpu < CPU_SETSIZE && found < 2; pcpu++)
		if (CPU_ISSET(pcpu, allowed))
			ret[found++] = pcpu;
	return found == 2;
}

uint32_t vp_own_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

uint64_t vp_now(void)
{
	return vp_clock_monotonic();
}

void vp_burn(uint64_t ns)
{
	uint64_t end = vp_now() + ns;

	while (vp_now() < end)
		;
}

void vp_sleep(uint64_t ns)
{
	struct timespec left = {.tv_sec = (time_t)(ns / 1000000000),
				.tv_nsec = (long)(ns % 1000000000)};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static uint64_t wakeup_id(void)
{
	const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	unsigned long id = 0;
	char path[128];

	for (size_t i = 0; i < VP_ARRAY_SIZE(places) && !id; i++) {
		snprintf(path, sizeof(path), "%s/events/sched/sched_wakeup/id", places[i]);
		FILE *file = fopen(path, "re");
		if (!file)
			continue;
		if (fscanf(file, "%lu", &id) != 1)
			id = 0;
		fclose(file);
	}
	assert_int_not_equal(id, 0);
	return id;
}

void vp_wakeups_open(struct vp_wakeups *wakeups)
{
	struct perf_event_attr attr = {
	    .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = wakeup_id()};
	char filter[32];

	snprintf(filter, sizeof(filter), "pid == %u", vp_own_tid());
	wakeups->count = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	assert_true(wakeups->count <= VP_ARRAY_SIZE(wakeups->fds));
	for (uint32_t i = 0; i < wakeups->count; i++) {
		wakeups->fds[i] = vp_perf_event_open(&attr, -1, (int)i, -1);
		if (wakeups->fds[i] < 0 && errno == ENODEV)
			continue; /* this pCPU is offline */
		assert_true(wakeups->fds[i] >= 0);
		assert_int_equal(ioctl(wakeups->fds[i], PERF_EVENT_IOC_SET_FILTER, filter), 0);
	}
}

uint64_t vp_wakeups_read(const struct vp_wakeups *wakeups)
{
	uint64_t sum = 0, value;

	for (uint32_t i = 0; i < wakeups->count; i++) {
		if (wakeups->fds[i] < 0)
			continue;
		assert_int_equal(read(wakeups->fds[i], &value, sizeof(value)), sizeof(value));
		sum += value;
	}
	return sum;
}

void vp_wakeups_close(struct vp_wakeups *wakeups)
{
	for (uint32_t i = 0; i < wakeups->count; i++)
		if (wakeups->fds[i] >= 0)
			close(wakeups->fds[i]);
}
