/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The account of threads that this machine's scheduler really switches. They say that they enter
 * and leave a guest; what follows is the scheduler's.
 */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include <bpf/bpf.h>

#include "account_rig.h"
#include "base/macros.h"
#include "base/vec.h"
#include "collect/programs/account_slots.h"

enum { HALT = 0x01, ABORT = 0x24, MS = 1000000, SLOTS = 256, PATIENCE_S = 30 };

static cpu_set_t allowed;

/* All but KVM's tracepoints: real vCPUs are none of ours. */
struct scene {
	struct rig *rig;
	VP_VEC(struct bpf_link *) links;
};

static void attach(struct scene *scene)
{
	static const char *const ours[] = {"note_exit", "note_entry",      "note_vmm",
					   "note_poll", "note_unthrottle", "note_left"};
	struct bpf_program *program;

	bpf_object__for_each_program (program, scene->rig->programs->obj) {
		const char *name = bpf_program__name(program);
		bool run_by_test = false;
		for (size_t i = 0; i < VP_ARRAY_SIZE(ours); i++)
			run_by_test |= !strcmp(name, ours[i]);
		struct bpf_link *link = run_by_test ? NULL : bpf_program__attach(program);
		if (link)
			vp_vec_push(&scene->links, link);
		else if (!run_by_test && !strncmp(name, "note_", 5))
			fail_msg("cannot attach program '%s'", name);
	}
}

static struct scene begin(void)
{
	struct scene scene = {.rig = rig_open(VP_VENDOR_ARM, SLOTS)};

	attach(&scene);
	return scene;
}

/* Those in the run queues are those whose state says so. */
static void expect_waiting(const struct rig *rig)
{
	uint64_t in_queues = 0, by_state = 0;

	for (uint32_t i = 0; i < rig->pcpus; i++)
		in_queues += rig->cpus[i].waiting;
	for (uint32_t i = 0; i < rig->slots; i++)
		by_state += rig->vcpus[i].begin && (rig->vcpus[i].state == VP_STATE_WAKING ||
						    rig->vcpus[i].state == VP_STATE_PREEMPTED ||
						    rig->vcpus[i].state == VP_STATE_THROTTLED);
	assert_int_equal(in_queues, by_state);
}

static void expect_interrupts(const struct rig *rig, const struct vp_account_vcpu *vcpu)
{
	uint64_t sum = rig_thieves(rig, vcpu, 1 << VP_STATE_IRQ, 0, 0).ns;

	for (size_t i = 0; i < VP_IRQ_SOURCES; i++)
		sum += vcpu->irq_device[i] ? 0 : vcpu->irq_ns[i];
	assert_int_equal(sum, vcpu->states[VP_STATE_IRQ]);
}

/* What it waited for has a name, if only that of nobody; nothing is taken twice. */
static void expect_thieves(const struct rig *rig, const struct vp_account_vcpu *vcpu)
{
	const uint32_t states = 1 << VP_STATE_WAKING | 1 << VP_STATE_PREEMPTED;
	uint64_t waited = vcpu->states[VP_STATE_WAKING] + vcpu->states[VP_STATE_PREEMPTED];
	uint64_t named = rig_thieves(rig, vcpu, states, 0, 0).ns;

	assert_int_equal(rig->programs->bss->lost.thieves, 0);
	assert_int_equal(named, waited);
}

static void expect_account(const struct rig *rig, const struct vp_account_vcpu *vcpu)
{
	rig_expect_whole(vcpu);
	expect_thieves(rig, vcpu);
	expect_interrupts(rig, vcpu);
}

/* Every wake-up has its latency: together the time in state WAKING. Each is in its bucket. */
static void expect_wakes(const struct vp_account_vcpu *vcpu)
{
	uint64_t count = 0, ns = 0;

	for (uint32_t i = 0; i < VP_WAKE_BUCKETS; i++) {
		count += vcpu->wakes[i];
		ns += vcpu->wake_ns[i];
		if (i)
			assert_true(vcpu->wake_ns[i] >= vcpu->wakes[i] * vp_wake_bound(i - 1));
		if (i + 1 < VP_WAKE_BUCKETS)
			assert_true(vcpu->wake_ns[i] <= vcpu->wakes[i] * vp_wake_bound(i));
	}
	assert_int_equal(count, vcpu->wakeups);
	assert_int_equal(ns, vcpu->states[VP_STATE_WAKING]);
}

static void end(struct scene *scene)
{
	scene->rig->programs->bss->enabled = 0;
	vp_vec_each (&scene->links, link)
		bpf_link__destroy(*link);
	vp_vec_deinit(&scene->links);
	assert_int_equal(scene->rig->programs->bss->lost.vcpus, 0);
	rig_close(scene->rig);
}

static void sleep_for(const struct rig *rig, uint32_t reason, uint64_t ns)
{
	rig_exit(rig, reason, 0x1000);
	vp_sleep(ns);
	rig_entry(rig);
}

/* A sleep is a halt if the exit before it was one. Half of a sleep, for the way there. */
static void test_sleeps(void **state)
{
	struct scene scene = begin();
	struct vp_told wakeups;

	rig_entry(scene.rig);
	vp_told_open(&wakeups, "sched_wakeup", 0);
	uint64_t told = vp_told_read(&wakeups);
	for (int i = 0; i < 10; i++)
		sleep_for(scene.rig, HALT, 4 * MS);
	for (int i = 0; i < 10; i++)
		sleep_for(scene.rig, ABORT, 2 * MS);
	told = vp_told_read(&wakeups) - told;
	scene.rig->programs->bss->enabled = 0;
	vp_told_close(&wakeups);
	const struct vp_account_vcpu *vcpu = rig_vcpu(scene.rig, vp_own_tid());
	expect_account(scene.rig, vcpu);
	expect_waiting(scene.rig);
	assert_true(vcpu->states[VP_STATE_HALTED] >= 20 * MS);
	assert_true(vcpu->states[VP_STATE_WAITING] >= 10 * MS);
	/* A thread that loses its pCPU on the way to sleep is preempted: what wakes it then ends no
	 * sleep. */
	assert_in_range(vcpu->wakeups, told > vcpu->preemptions ? told - vcpu->preemptions : 0,
			told);
	expect_wakes(vcpu);
	assert_int_equal(rig_exits(scene.rig, vcpu, HALT)->count, 10);
	assert_int_equal(rig_exits(scene.rig, vcpu, ABORT)->count, 10);
	assert_int_equal(rig_exits(scene.rig, vcpu, HALT)->blocked, vcpu->states[VP_STATE_HALTED]);
	assert_true(rig_exits(scene.rig, vcpu, ABORT)->blocked <= vcpu->states[VP_STATE_WAITING]);
	assert_true(rig_all_exits(scene.rig, vcpu).waking <= vcpu->states[VP_STATE_WAKING]);
	end(&scene);
}

/* Only the scheduler's programs: a vCPU that runs is in the guest, whatever it does, and what it
 * waits for is as exact as ever. */
static void test_states_alone(void **state)
{
	static const char *const wanted[] = {"note_switch", "note_wakeup", "note_migration"};
	struct scene scene = {.rig = rig_open_states(VP_VENDOR_ARM, SLOTS)};
	struct bpf_program *program;

	bpf_object__for_each_program (program, scene.rig->programs->obj)
		for (size_t i = 0; i < VP_ARRAY_SIZE(wanted); i++)
			if (!strcmp(wanted[i], bpf_program__name(program)))
				vp_vec_push(&scene.links, bpf_program__attach(program));
	rig_entry(scene.rig); /* it has a place */
	struct vp_account_vcpu *vcpu = rig_vcpu(scene.rig, vp_own_tid());
	assert_int_equal(vcpu->base, VP_STATE_GUEST);
	for (int i = 0; i < 10; i++) {
		vp_sleep(4 * MS);
		vp_burn(2 * MS);
	}
	vp_sleep(MS);
	scene.rig->programs->bss->enabled = 0;
	rig_expect_whole(vcpu);
	expect_thieves(scene.rig, vcpu);
	assert_int_equal(vcpu->state, VP_STATE_GUEST);
	assert_true(vcpu->states[VP_STATE_WAITING] >= 20 * MS);
	assert_true(vcpu->states[VP_STATE_GUEST] >= 10 * MS);
	uint64_t waits = vcpu->states[VP_STATE_WAITING] + vcpu->states[VP_STATE_WAKING] +
			 vcpu->states[VP_STATE_PREEMPTED] + vcpu->states[VP_STATE_THROTTLED];
	assert_int_equal(waits + vcpu->states[VP_STATE_GUEST], vcpu->since - vcpu->begin);
	expect_wakes(vcpu);
	end(&scene);
}

/* It sleeps, and others have its pCPU, within exits that are not timed: that is exact. */
static void test_sleeps_untimed(void **state)
{
	struct scene scene = {.rig = rig_open_sampled(VP_VENDOR_ARM, SLOTS)};

	attach(&scene);
	rig_entry(scene.rig);
	const struct vp_account_vcpu *vcpu = rig_vcpu(scene.rig, vp_own_tid());
	sleep_for(scene.rig, ABORT, MS);
	struct vp_account_exit *exit = (struct vp_account_exit *)rig_exits(scene.rig, vcpu, ABORT);
	uint64_t timed = exit->timed;
	for (int i = 0; i < 10; i++) {
		exit->all = 0;
		exit->skip = 1;
		exit->timed_at = vp_now() + 1000000000ULL;
		sleep_for(scene.rig, ABORT, 4 * MS);
	}
	scene.rig->programs->bss->enabled = 0;
	expect_account(scene.rig, vcpu);
	assert_int_equal(exit->timed, timed);
	assert_int_equal(exit->count, 11);
	assert_true(vcpu->states[VP_STATE_WAITING] >= 20 * MS);
	assert_true(exit->blocked >= 20 * MS && exit->blocked <= vcpu->states[VP_STATE_WAITING]);
	assert_true(exit->waking <= vcpu->states[VP_STATE_WAKING]);
	end(&scene);
}

struct runner {
	struct rig *rig;
	uint32_t pcpu;
	bool is_vcpu, dies; /* dies: its end is counted too */
	atomic_bool stop;
	atomic_uint tid;
	pthread_t thread;
};

static void *run(void *context)
{
	struct runner *runner = context;

	vp_stay_on(runner->pcpu);
	if (runner->is_vcpu)
		rig_entry(runner->rig);
	runner->tid = vp_own_tid();
	while (!runner->stop) {
		vp_burn(MS / 10);
		if (!runner->is_vcpu)
			continue;
		rig_exit(runner->rig, ABORT, 0x1000);
		rig_entry(runner->rig);
	}
	if (runner->is_vcpu && !runner->dies)
		runner->rig->programs->bss->enabled = 0;
	return NULL;
}

static void start(struct runner *runner, struct rig *rig, uint32_t pcpu, bool is_vcpu,
		  const char *name)
{
	runner->rig = rig;
	runner->pcpu = pcpu;
	runner->is_vcpu = is_vcpu;
	assert_int_equal(pthread_create(&runner->thread, NULL, run, runner), 0);
	pthread_setname_np(runner->thread, name);
	while (!runner->tid)
		vp_sleep(MS);
}

static void stop(struct runner *runner)
{
	runner->stop = true;
	assert_int_equal(pthread_join(runner->thread, NULL), 0);
}

/* Its thread ended a moment ago. */
static void await_end(const struct vp_account_vcpu *vcpu)
{
	uint64_t until = vp_now() + PATIENCE_S * 1000ULL * MS;

	while (*(const volatile __u32 *)&vcpu->state != VP_STATE_GONE && vp_now() < until)
		vp_sleep(MS);
	assert_int_equal(vcpu->state, VP_STATE_GONE);
	assert_int_equal(vcpu->end, vcpu->since);
	assert_int_equal(vcpu->tid, 0);
}

static void test_end_of_thread(void **state)
{
	struct scene scene = begin();
	struct runner vcpu = {.dies = true};

	start(&vcpu, scene.rig, vp_stay_here(), true, "vcpu");
	struct vp_account_vcpu *account = rig_vcpu(scene.rig, vcpu.tid);
	stop(&vcpu);
	await_end(account);
	rig_expect_whole(account);
	end(&scene);
}

/* Many more vCPUs come and go than there are places: each has an account of its own. */
static void test_places_are_given_back(void **state)
{
	enum { ROUNDS = 3 };
	struct scene scene = begin();
	const struct rig *rig = scene.rig;
	uint32_t pcpu = vp_stay_here(), tid, entries = 0;
	int thieves = bpf_map__fd(rig->programs->maps.thieves);

	for (uint32_t i = 0; i < ROUNDS * rig->slots; i++) {
		struct runner vcpu = {.dies = true};
		start(&vcpu, scene.rig, pcpu, true, "vcpu");
		struct vp_account_vcpu *account = rig_vcpu(rig, vcpu.tid);
		assert_non_null(account);
		uint32_t slot = (uint32_t)(account - rig->vcpus);
		stop(&vcpu);
		await_end(account);
		rig_expect_whole(account);
		struct vp_account_exit exits = rig_all_exits(rig, account);
		assert_int_equal(exits.count, account->exits);
		const struct vp_thief_key stolen = {.vcpu = (__u16)slot, .kind = VP_BY_NOBODY};
		const struct vp_thief_cost cost = {1, 1};
		assert_int_equal(bpf_map_update_elem(thieves, &stolen, &cost, BPF_ANY), 0);
		vp_account_slots_release(rig->programs, &slot, 1);
		assert_int_equal(account->begin, 0);
		assert_int_equal(rig_all_exits(rig, account).count, 0);
		assert_int_not_equal(bpf_map_delete_elem(thieves, &stolen), 0);
	}
	int tids = bpf_map__fd(rig->programs->maps.slot_of_tid);
	for (uint32_t *before = NULL; !bpf_map_get_next_key(tids, before, &tid); before = &tid)
		entries++;
	assert_int_equal(entries, 0);
	end(&scene); /* no vCPU was lost */
}

static void await_preemptions(const struct vp_account_vcpu *vcpu, uint64_t count)
{
	uint64_t until = vp_now() + PATIENCE_S * 1000ULL * MS;

	assert_non_null(vcpu);
	while (*(const volatile __u64 *)&vcpu->preemptions < count && vp_now() < until)
		vp_sleep(5 * MS);
	assert_true(vcpu->preemptions >= count);
	assert_true(vcpu->states[VP_STATE_PREEMPTED] > 0);
}

/* Others of this machine may preempt it before. */
static void await_thief(const struct rig *rig, const struct vp_account_vcpu *vcpu, uint32_t kind,
			uint32_t id)
{
	uint64_t until = vp_now() + PATIENCE_S * 1000ULL * MS;
	const uint32_t preempted = 1 << VP_STATE_PREEMPTED;

	while (!rig_thieves(rig, vcpu, preempted, kind, id).ns && vp_now() < until)
		vp_sleep(5 * MS);
	assert_true(rig_thieves(rig, vcpu, preempted, kind, id).ns > 0);
}

static void test_thief(void **state)
{
	struct scene scene = begin();
	struct runner vcpu = {0}, thief = {0};
	struct vp_account_task task;

	start(&vcpu, scene.rig, vp_stay_here(), true, "vcpu");
	start(&thief, scene.rig, vcpu.pcpu, false, "thief");
	const struct vp_account_vcpu *account = rig_vcpu(scene.rig, vcpu.tid);
	await_preemptions(account, 5);
	uint32_t tid = thief.tid;
	await_thief(scene.rig, account, VP_BY_TASK, tid);
	stop(&vcpu);
	stop(&thief);
	expect_account(scene.rig, account);
	expect_waiting(scene.rig);
	int tasks = bpf_map__fd(scene.rig->programs->maps.tasks);
	assert_int_equal(bpf_map_lookup_elem(tasks, &tid, &task), 0);
	assert_string_equal(task.comm, "thief");
	assert_int_equal(task.pid, getpid());
	struct vp_account_exit all = rig_all_exits(scene.rig, account);
	assert_int_equal(all.count, account->exits);
	assert_true(all.stolen <= account->states[VP_STATE_PREEMPTED] +
				      account->states[VP_STATE_THROTTLED] +
				      account->states[VP_STATE_IRQ]);
	end(&scene);
}

/* Two vCPUs on one pCPU have each other for a thief. */
static void test_vcpus_compete(void **state)
{
	struct scene scene = begin();
	struct runner both[2] = {0};
	const struct vp_account_vcpu *accounts[2];
	uint32_t slots[2];

	for (int i = 0; i < 2; i++)
		start(&both[i], scene.rig, vp_stay_here(), true, "vcpu");
	for (int i = 0; i < 2; i++)
		accounts[i] = rig_vcpu(scene.rig, both[i].tid);
	for (int i = 0; i < 2; i++) {
		await_preemptions(accounts[i], 3);
		slots[i] = (uint32_t)(accounts[i] - scene.rig->vcpus);
	}
	for (int i = 0; i < 2; i++)
		await_thief(scene.rig, accounts[i], VP_BY_VCPU, slots[!i]);
	for (int i = 0; i < 2; i++)
		stop(&both[i]);
	for (int i = 0; i < 2; i++)
		expect_account(scene.rig, accounts[i]);
	expect_waiting(scene.rig);
	end(&scene);
}

/* A table without room loses who it was, not how long. */
static void test_too_many_thieves(void **state)
{
	struct scene scene = begin();
	struct runner both[2] = {0};
	int thieves = bpf_map__fd(scene.rig->programs->maps.thieves);
	const struct vp_thief_cost cost = {1, 1};
	struct vp_thief_key other = {.vcpu = UINT16_MAX, .kind = VP_BY_TASK};

	while (!bpf_map_update_elem(thieves, &other, &cost, BPF_NOEXIST))
		other.id++;
	for (int i = 0; i < 2; i++)
		start(&both[i], scene.rig, vp_stay_here(), true, "vcpu");
	for (int i = 0; i < 2; i++)
		await_preemptions(rig_vcpu(scene.rig, both[i].tid), 3);
	for (int i = 0; i < 2; i++) {
		const struct vp_account_vcpu *account = rig_vcpu(scene.rig, both[i].tid);
		stop(&both[i]);
		rig_expect_whole(account);
		expect_interrupts(scene.rig, account);
		assert_true(account->states[VP_STATE_PREEMPTED] > 0);
		assert_int_equal(rig_thieves(scene.rig, account, 1 << VP_STATE_PREEMPTED, 0, 0).ns,
				 account->states[VP_STATE_PREEMPTED]);
	}
	assert_true(scene.rig->programs->bss->lost.thieves > 0);
	end(&scene);
}

static void move(const struct runner *runner, uint32_t pcpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(pcpu, &one);
	assert_int_equal(sched_setaffinity((pid_t)runner->tid, sizeof(one), &one), 0);
}

/* A vCPU that waits is taken to another run queue, and waits there for others. */
static void test_migrations(void **state)
{
	struct scene scene = {0};
	struct runner vcpu = {0}, thieves[2] = {0};
	uint32_t pcpus[2];

	if (!vp_two_pcpus(&allowed, pcpus)) {
		print_message("skipped: there is but one pCPU\n");
		skip();
	}
	scene = begin();
	start(&vcpu, scene.rig, pcpus[0], true, "vcpu");
	for (int i = 0; i < 2; i++)
		start(&thieves[i], scene.rig, pcpus[i], false, "thief");
	const struct vp_account_vcpu *account = rig_vcpu(scene.rig, vcpu.tid);
	for (uint32_t i = 0; i < 60; i++) {
		vp_sleep(i % 7 * MS);
		move(&vcpu, pcpus[i % 2]);
	}
	await_preemptions(account, 3);
	stop(&vcpu);
	for (int i = 0; i < 2; i++)
		stop(&thieves[i]);
	expect_account(scene.rig, account);
	expect_waiting(scene.rig);
	end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sleeps),
	    cmocka_unit_test(test_states_alone),
	    cmocka_unit_test(test_sleeps_untimed),
	    cmocka_unit_test(test_end_of_thread),
	    cmocka_unit_test(test_places_are_given_back),
	    cmocka_unit_test(test_thief),
	    cmocka_unit_test(test_too_many_thieves),
	    cmocka_unit_test(test_vcpus_compete),
	    cmocka_unit_test(test_migrations),
	};

	if (!vp_kernel_takes_programs("the account with this machine's scheduler"))
		return VP_SKIPPED;
	sched_getaffinity(0, sizeof(allowed), &allowed);
	vp_stay_here();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
