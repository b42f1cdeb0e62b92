/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The condition programs in the kernel: a thread of the test's own stands for a vCPU's. */
#include "unit.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "collect/programs/condition_thief.h"
#include "collect/programs/conditions.h"
#include "conditions.skel.h"
#include "kernel.h"
#include "schema/records.h"

enum { MS = 1000000, VCPU = 3 };

struct rig {
	struct conditions_bpf *programs;
	struct ring_buffer *ring;
	struct vp_fired last;
	unsigned count;
	uint32_t pcpu;
};

static int take(void *context, void *bytes, size_t size)
{
	struct rig *rig = context;

	const struct vp_condition_notice *notice = bytes;

	assert_true(size >= sizeof(*notice));
	rig->last = notice->fired;
	vp_condition_find_thief(&notice->cpu, &rig->last);
	rig->count++;
	return 0;
}

/* The thread is a vCPU's from now on. */
static void name_vcpu(const struct rig *rig, uint32_t tid)
{
	const struct vp_condition_thread thread = {.vcpu = VCPU};

	assert_int_equal(
	    bpf_map_update_elem(bpf_map__fd(rig->programs->maps.threads), &tid, &thread, BPF_ANY),
	    0);
}

/* On a busy machine, too, nobody but the thief takes the pCPU away from this thread. */
static void run_in_real_time(bool wanted)
{
	const struct sched_param priority = {.sched_priority = wanted ? 5 : 0};
	int policy = wanted ? SCHED_FIFO | SCHED_RESET_ON_FORK : SCHED_OTHER;

	assert_int_equal(sched_setscheduler(0, policy, &priority), 0);
}

static void rig_open(struct rig *rig, enum vp_fired_kind kind, uint64_t ns)
{
	*rig = (struct rig){.programs = conditions_bpf__open(), .pcpu = vp_stay_here()};
	for (int i = 0; i < VP_FIRED_KINDS; i++)
		rig->programs->rodata->limits[i] = i == (int)kind ? ns : UINT64_MAX;
	rig->programs->rodata->vendor = VP_VENDOR_AMD;
	bpf_map__set_max_entries(rig->programs->maps.cpus, (uint32_t)libbpf_num_possible_cpus());
	bpf_program__set_autoattach(rig->programs->progs.start_exit, false);
	bpf_program__set_autoattach(rig->programs->progs.end_exit, false);
	assert_int_equal(conditions_bpf__load(rig->programs), 0);
	assert_int_equal(conditions_bpf__attach(rig->programs), 0);
	rig->ring = ring_buffer__new(bpf_map__fd(rig->programs->maps.fired), take, rig, NULL);
	assert_non_null(rig->ring);
	name_vcpu(rig, vp_own_tid());
	rig->programs->bss->armed = 1;
	rig->programs->bss->enabled = 1;
	run_in_real_time(true);
}

static void rig_read(struct rig *rig)
{
	assert_true(ring_buffer__consume(rig->ring) >= 0);
}

static void rig_close(struct rig *rig)
{
	run_in_real_time(false);
	ring_buffer__free(rig->ring);
	conditions_bpf__destroy(rig->programs);
}

/* Takes this thread's pCPU away: after `sleep` ns, for `burn` ns. */
struct thief {
	uint64_t sleep, burn;
	uint32_t pcpu, tid;
	pthread_t thread;
};

static void *steal(void *context)
{
	struct thief *thief = context;
	const struct sched_param priority = {.sched_priority = 10};

	pthread_setname_np(pthread_self(), "thief");
	vp_stay_on(thief->pcpu);
	assert_int_equal(sched_setscheduler(0, SCHED_FIFO, &priority), 0);
	__atomic_store_n(&thief->tid, vp_own_tid(), __ATOMIC_RELEASE);
	vp_sleep(thief->sleep);
	vp_burn(thief->burn);
	return NULL;
}

static void thief_begin(struct thief *thief)
{
	assert_int_equal(pthread_create(&thief->thread, NULL, steal, thief), 0);
	/* Until it is in real time it would wait for this thread. */
	while (!__atomic_load_n(&thief->tid, __ATOMIC_ACQUIRE))
		vp_sleep(MS / 10);
}

static void expect_thief(const struct rig *rig, const struct thief *thief)
{
	assert_int_equal(rig->last.pid, getpid());
	assert_int_equal(rig->last.tid, vp_own_tid());
	assert_int_equal(rig->last.vcpu, VCPU);
	assert_int_equal(rig->last.cpu, rig->pcpu);
	assert_int_equal(rig->last.thief_tid, thief->tid);
	assert_int_equal(rig->last.thief_pid, getpid());
	assert_string_equal(rig->last.thief_comm, "thief");
	assert_true(rig->last.thief_ns <= rig->last.ns && rig->last.thief_ns > 10 * MS);
}

/* A real-time thread has the pCPU for 60 ms while this one could run. */
static void test_steal(void **state)
{
	struct rig rig;

	rig_open(&rig, VP_FIRED_STEAL, 50 * MS);
	for (unsigned round = 0; round < 3; round++) {
		struct thief thief = {.sleep = 5 * MS, .burn = 60 * MS, .pcpu = rig.pcpu};
		thief_begin(&thief);
		uint64_t end = vp_now() + 100 * MS;
		while (vp_now() < end)
			;
		pthread_join(thief.thread, NULL);
		rig_read(&rig);
		/* Of the second, nobody wants to know. */
		assert_int_equal(rig.count, round == 2 ? 2 : 1);
		if (round != 1) {
			assert_int_equal(rig.last.kind, VP_FIRED_STEAL);
			assert_true(rig.last.ns > 50 * MS);
			expect_thief(&rig, &thief);
		} else {
			assert_true(rig.programs->bss->dropped[VP_FIRED_STEAL] >= 1);
			rig.programs->bss->armed = 1;
		}
	}
	rig_close(&rig);
}

/* Woken after 20 ms, it gets the pCPU when the thief's 60 ms are over. */
static void test_wakeup(void **state)
{
	struct rig rig;

	rig_open(&rig, VP_FIRED_WAKEUP, 30 * MS);
	struct thief thief = {.sleep = 5 * MS, .burn = 60 * MS, .pcpu = rig.pcpu};
	thief_begin(&thief);
	vp_sleep(20 * MS);
	pthread_join(thief.thread, NULL);
	rig_read(&rig);
	assert_int_equal(rig.count, 1);
	assert_int_equal(rig.last.kind, VP_FIRED_WAKEUP);
	assert_true(rig.last.ns > 30 * MS);
	expect_thief(&rig, &thief);
	rig_close(&rig);
}

/* Others' threads may wait as long as they like, and what takes less time is not told. */
static void test_nothing(void **state)
{
	struct rig rig;
	uint32_t tid = vp_own_tid();

	rig_open(&rig, VP_FIRED_STEAL, 10 * (uint64_t)1000000000);
	struct thief thief = {.sleep = MS, .burn = 20 * MS, .pcpu = rig.pcpu};
	thief_begin(&thief);
	vp_burn(40 * MS);
	pthread_join(thief.thread, NULL);
	rig_close(&rig);
	rig_open(&rig, VP_FIRED_STEAL, MS);
	rig.programs->bss->enabled = 0;
	assert_int_equal(bpf_map_delete_elem(bpf_map__fd(rig.programs->maps.threads), &tid), 0);
	rig_read(&rig); /* of before */
	rig.count = 0;
	rig.programs->bss->armed = 1;
	rig.programs->bss->enabled = 1;
	thief_begin(&thief);
	vp_burn(40 * MS);
	pthread_join(thief.thread, NULL);
	rig_read(&rig);
	assert_int_equal(rig.count, 0);
	rig_close(&rig);
}

/* As older kernels tell of exits: the reason first. */
static void test_exit(void **state)
{
	struct rig rig;

	rig_open(&rig, VP_FIRED_EXIT, 5 * MS);
	const struct conditions_bpf *programs = rig.programs;
	vp_run(programs->progs.start_exit, 0x7b, 0, 0);
	vp_run(programs->progs.end_exit, 0, 0, 0);
	vp_run(programs->progs.start_exit, 0x78, 0, 0); /* a halt */
	vp_burn(10 * MS);
	vp_run(programs->progs.end_exit, 0, 0, 0);
	/* This may have taken long if somebody else had the pCPU. */
	rig_read(&rig);
	unsigned before = rig.count;
	rig.programs->bss->armed = 1;
	vp_run(programs->progs.start_exit, 0x7b, 0, 0);
	vp_burn(10 * MS);
	vp_run(programs->progs.end_exit, 0, 0, 0);
	vp_run(programs->progs.end_exit, 0, 0, 0);
	rig_read(&rig);
	assert_int_equal(rig.count, before + 1);
	assert_int_equal(rig.last.kind, VP_FIRED_EXIT);
	assert_int_equal(rig.last.reason, 0x7b);
	assert_int_equal(rig.last.vcpu, VCPU);
	assert_int_equal(rig.last.tid, vp_own_tid());
	assert_true(rig.last.ns >= 10 * MS);
	rig_close(&rig);
}

/* Where a cgroup gets a quota of 10 of every 100 ms: version 2's hierarchy, and version 1's. */
static const struct {
	const char *is_there, *group, *quota, *text, *procs;
} hierarchies[] = {
#define GROUP_2 "/sys/fs/cgroup/vperf-test-conditions"
    {"/sys/fs/cgroup/cgroup.controllers", GROUP_2, GROUP_2 "/cpu.max", "10000 100000",
     GROUP_2 "/cgroup.procs"},
#define GROUP_1 "/sys/fs/cgroup/cpu/vperf-test-conditions"
    {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", GROUP_1, GROUP_1 "/cpu.cfs_quota_us", "10000",
     GROUP_1 "/cgroup.procs"},
};

static bool write_to(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return false;
	bool written = fputs(text, file) >= 0;
	return !fclose(file) && written;
}

/* Which of them this machine has and lets us use; NULL, and it is said why: none. */
static const char *make_group(const char **procs)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(hierarchies); i++) {
		if (access(hierarchies[i].is_there, F_OK))
			continue;
		rmdir(hierarchies[i].group); /* of a run that was killed */
		*procs = hierarchies[i].procs;
		if (!mkdir(hierarchies[i].group, 0755) &&
		    write_to(hierarchies[i].quota, hierarchies[i].text))
			return hierarchies[i].group;
		print_message("skipped: '%s' cannot be given a quota\n", hierarchies[i].group);
		rmdir(hierarchies[i].group);
		return NULL;
	}
	print_message("skipped: there are no CPU quotas here\n");
	return NULL;
}

/* A child that may use 10 of every 100 ms, and wants all. */
static void test_throttled(void **state)
{
	char pid[32];
	struct rig rig;

	const char *procs = NULL, *group = make_group(&procs);
	if (!group)
		skip();
	pid_t child = fork();
	if (!child && !prctl(PR_SET_PDEATHSIG, SIGKILL))
		for (;;)
			;
	rig_open(&rig, VP_FIRED_THROTTLED, 0);
	name_vcpu(&rig, (uint32_t)child);
	snprintf(pid, sizeof(pid), "%d", (int)child);
	bool moved = write_to(procs, pid);
	for (int i = 0; i < 1000 && moved && !rig.count; i++) {
		vp_sleep(20 * MS);
		rig_read(&rig);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 100 && rmdir(group); i++)
		vp_sleep(10 * MS);
	assert_true(moved);
	assert_int_equal(rig.count, 1);
	assert_int_equal(rig.last.kind, VP_FIRED_THROTTLED);
	assert_int_equal(rig.last.tid, child);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_steal),     cmocka_unit_test(test_wakeup),
	    cmocka_unit_test(test_nothing),   cmocka_unit_test(test_exit),
	    cmocka_unit_test(test_throttled),
	};

	if (!vp_kernel_takes_programs("the conditions"))
		return VP_SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
