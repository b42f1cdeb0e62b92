/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * As many vCPUs as a large host has, each a thread, at the accounting programs: every one has its
 * account, and an exit costs what it costs with one vCPU. The number of threads may be given.
 */
#include "unit.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/membarrier.h>

#include "account_rig.h"
#include "base/alloc.h"

enum { ABORT = 0x24, FEW = 300, ROUNDS = 20, STACK = 256 << 10, PROGRAMS = 3 };

static uint32_t threads = FEW;

/* All wait here for each other, so that all are there at the same time. */
struct crowd {
	struct rig *rig;
	pthread_barrier_t all;
	uint32_t count;
};

struct member {
	struct crowd *crowd;
	pthread_t thread;
	uint32_t tid;
	uint64_t ns; /* that its rounds took on a pCPU */
};

static uint64_t cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *take_part(void *context)
{
	struct member *member = context;
	struct rig *rig = member->crowd->rig;

	member->tid = vp_own_tid();
	rig_entry(rig);
	pthread_barrier_wait(&member->crowd->all);
	uint64_t before = cpu_time();
	for (uint32_t i = 0; i < ROUNDS; i++) {
		rig_exit(rig, ABORT, 0x1000 + 64ULL * i);
		rig_entry(rig);
	}
	member->ns = cpu_time() - before;
	pthread_barrier_wait(&member->crowd->all); /* its account is looked at now */
	pthread_barrier_wait(&member->crowd->all);
	return NULL;
}

static void start_all(struct crowd *crowd, struct member *members)
{
	pthread_attr_t attributes;

	assert_int_equal(pthread_attr_init(&attributes), 0);
	assert_int_equal(pthread_attr_setstacksize(&attributes, STACK), 0);
	assert_int_equal(pthread_barrier_init(&crowd->all, NULL, crowd->count + 1), 0);
	for (uint32_t i = 0; i < crowd->count; i++) {
		members[i].crowd = crowd;
		assert_int_equal(
		    pthread_create(&members[i].thread, &attributes, take_part, &members[i]), 0);
	}
	pthread_attr_destroy(&attributes);
}

/* What each waited for was taken by somebody. Walking the table is slow: of the first few. */
static void expect_thieves(const struct rig *rig, const struct vp_account_vcpu *vcpu,
			   uint32_t count)
{
	const uint32_t states = 1 << VP_STATE_WAKING | 1 << VP_STATE_PREEMPTED;

	if (count > FEW && vcpu - rig->vcpus > FEW / 10)
		return;
	assert_int_equal(rig_thieves(rig, vcpu, states, 0, 0).ns,
			 vcpu->states[VP_STATE_WAKING] + vcpu->states[VP_STATE_PREEMPTED]);
}

/* The account of each thread has all of its exits, and only those. */
static void expect_accounts(const struct rig *rig, const struct member *members, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct vp_account_vcpu *vcpu = rig_vcpu(rig, members[i].tid);
		rig_expect_whole(vcpu);
		assert_int_equal(vcpu->exits, ROUNDS);
		assert_int_equal(rig_exits(rig, vcpu, ABORT)->count, ROUNDS);
		expect_thieves(rig, vcpu, count);
	}
	assert_int_equal(rig->programs->bss->lost.vcpus, 0);
	assert_int_equal(rig->programs->bss->lost.sites, 0);
}

/* Until none is at work that was when this began: that is when RCU's readers of now have ended,
 * which the kernel waits for here, unless some of its pCPUs are without ticks (nohz_full). */
static void wait_for_programs(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		vp_sleep(50000000);
}

/* ns of a thread's own time for an exit and an entry, calls of the test included. */
static double measure(struct rig *rig, uint32_t count)
{
	struct member *members = vp_alloc(count * sizeof(*members));
	struct crowd crowd = {.rig = rig, .count = count};
	uint64_t sum = 0;

	rig_forget_pcpus(rig);
	rig->programs->bss->enabled = 1;
	start_all(&crowd, members);
	pthread_barrier_wait(&crowd.all);
	pthread_barrier_wait(&crowd.all);
	rig->programs->bss->enabled = 0;
	wait_for_programs();
	expect_accounts(rig, members, count);
	pthread_barrier_wait(&crowd.all);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(pthread_join(members[i].thread, NULL), 0);
		sum += members[i].ns;
	}
	pthread_barrier_destroy(&crowd.all);
	free(members);
	return (double)sum / count / ROUNDS;
}

/* The scheduler tells which vCPU a pCPU has: Arm's KVM does not. */
static void attach(const struct rig *rig, struct bpf_link *links[PROGRAMS])
{
	const struct bpf_program *programs[PROGRAMS] = {rig->programs->progs.note_switch,
							rig->programs->progs.note_wakeup,
							rig->programs->progs.note_migration};

	for (unsigned i = 0; i < PROGRAMS; i++) {
		links[i] = bpf_program__attach(programs[i]);
		assert_non_null(links[i]);
	}
}

static void test_vcpus_of_a_large_host(void **state)
{
	struct rig *rig = rig_open(VP_VENDOR_ARM, threads + 1);
	struct bpf_link *links[PROGRAMS];

	attach(rig, links);
	double alone = measure(rig, 1), all = measure(rig, threads);
	for (unsigned i = 0; i < PROGRAMS; i++)
		bpf_link__destroy(links[i]);
	print_message("an exit and an entry: %.0f ns with one vCPU, %.0f ns with %u\n", alone, all,
		      threads);
	/* Each may take every other's time here, which no table has room for: the sums are right.
	 */
	print_message("%llu of their waits by thieves beyond the table\n",
		      (unsigned long long)rig->programs->bss->lost.thieves);
	rig_close(rig);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_vcpus_of_a_large_host)};

	if (argc > 1)
		threads = (uint32_t)strtoul(argv[1], NULL, 10);
	if (!vp_kernel_takes_programs("the account of many vCPUs"))
		return VP_SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
