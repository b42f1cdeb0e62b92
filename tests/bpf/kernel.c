/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "base/clock.h"
#include "base/macros.h"

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

static int32_t offset_of_pid(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT);

	assert_true(id > 0);
	const struct btf_type *type = btf__type_by_id(btf, (uint32_t)id);
	const struct btf_member *members = btf_members(type);
	for (uint32_t i = 0; i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(btf, members[i].name_off), "pid")) {
			int32_t ret = (int32_t)btf_member_bit_offset(type, i) / 8;
			btf__free(btf);
			return ret;
		}
	fail_msg("struct task_struct has no pid");
	return 0;
}

void vp_told_open(struct vp_told *told, const char *tracepoint, uint32_t argument)
{
	told->map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "told", 4, 8, 1, NULL);
	assert_true(told->map >= 0);
	const struct bpf_insn program[] = {
	    /* r1 = the thread of that task */
	    {BPF_LDX | BPF_MEM | BPF_DW, 3, 1, (int16_t)(8 * argument), 0},
	    {BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, offset_of_pid()},
	    {BPF_ALU64 | BPF_MOV | BPF_X, 1, 10, 0, 0},
	    {BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, -8},
	    {BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 4},
	    {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_probe_read_kernel},
	    {BPF_LDX | BPF_MEM | BPF_W, 1, 10, -8, 0},
	    /* ours: one more in the map */
	    {BPF_JMP | BPF_JNE | BPF_K, 1, 0, 4, (int32_t)vp_own_tid()},
	    {BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_VALUE, 0, told->map},
	    {0, 0, 0, 0, 0},
	    {BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 1},
	    {BPF_STX | BPF_ATOMIC | BPF_DW, 1, 2, 0, BPF_ADD},
	    {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
	    {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "told", "GPL", program,
			       VP_ARRAY_SIZE(program), NULL);
	assert_true(fd >= 0);
	told->link = bpf_raw_tracepoint_open(tracepoint, fd);
	assert_true(told->link >= 0);
	close(fd);
}

uint64_t vp_told_read(const struct vp_told *told)
{
	uint32_t zero = 0;
	uint64_t ret;

	assert_int_equal(bpf_map_lookup_elem(told->map, &zero, &ret), 0);
	return ret;
}

void vp_told_close(struct vp_told *told)
{
	close(told->link);
	close(told->map);
}
