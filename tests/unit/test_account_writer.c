/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account's records from a source whose counters the test sets: vCPUs in some of its places,
 * and their exits. */
#include "account_source.h"

/* What the vCPU in that place has of a counter after so many seconds: each is different. */
static uint64_t counter(size_t slot, unsigned which, unsigned seconds)
{
	return (slot + 1) * 1000 * seconds * seconds + which * seconds;
}

enum { EXITS = VP_STATES, WAKEUPS, PREEMPTIONS, POLLS, POLL_WASTED };

static void count_up(size_t slot, unsigned seconds)
{
	struct vp_account_vcpu *vcpu = &source.slots[slot].vcpu;

	for (unsigned i = 0; i < VP_STATES; i++)
		vcpu->states[i] = counter(slot, i, seconds);
	vcpu->exits = counter(slot, EXITS, seconds);
	vcpu->wakeups = counter(slot, WAKEUPS, seconds);
	vcpu->preemptions = counter(slot, PREEMPTIONS, seconds);
	vcpu->polls = counter(slot, POLLS, seconds);
	vcpu->poll_wasted = counter(slot, POLL_WASTED, seconds);
}

/* The record of a second has what that second added, and no more. */
static void expect_added(const struct vp_vcpu_account *record, size_t slot, unsigned second)
{
	const uint64_t values[] = {
	    record->guest,       record->kernel,  record->poll,        record->vmm,
	    record->halted,      record->waiting, record->waking,      record->preempted,
	    record->throttled,   record->irq,     record->exits,       record->wakeups,
	    record->preemptions, record->polls,   record->poll_wasted,
	};

	for (unsigned i = 0; i < VP_ARRAY_SIZE(values); i++)
		if (values[i] != counter(slot, i, second) - counter(slot, i, second - 1))
			fail_msg("place %zu, second %u: counter %u added %llu", slot, second, i,
				 (unsigned long long)values[i]);
	assert_int_equal(record->time, (second + 1ULL) * SECOND);
	assert_int_equal(record->begin, second * (uint64_t)SECOND);
	assert_int_equal(record->end, (second + 1ULL) * SECOND);
	assert_int_equal(record->flags, 0);
}

static void test_each_second_of_each_vcpu(void **state)
{
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);

	vcpu_begin(0, PID, PID + 1)->flags = VP_NUMBER_KNOWN;
	source.slots[0].vcpu.number = 0; /* KVM's; that of the list is the VMM's */
	vcpu_begin(2, 2 * PID, 2 * PID + 1);
	vcpu_begin(3, 2 * PID, 2 * PID + 2);
	for (unsigned second = 1; second <= 3; second++) {
		static const uint32_t numbers[] = {0, 0, 5, 6}, pids[] = {PID, 0, 2 * PID, 2 * PID};
		static const uint32_t tids[] = {PID + 1, 0, 2 * PID + 1, 2 * PID + 2};
		size_t nth = 0;
		kept.count = 0;
		for (size_t slot = 0; slot < SLOTS; slot++)
			count_up(slot, second);
		vp_account_writer_write(writer, (second + 1ULL) * SECOND, second == 3);
		assert_int_equal(count_kept(VP_ID_vcpu_account), 3);
		for (size_t slot = 0; slot < SLOTS; slot++) {
			if (slot == 1)
				continue;
			const struct vp_vcpu_account *record =
			    &nth_kept(VP_ID_vcpu_account, nth++)->vcpu_account;
			expect_added(record, slot, second);
			assert_int_equal(record->vm, pids[slot]);
			assert_int_equal(record->tid, tids[slot]);
			assert_int_equal(record->vcpu, numbers[slot]);
		}
	}
	close_keeping(writer, &vms);
}

static uint64_t time_in(const struct vp_vcpu_account *record, unsigned state)
{
	const uint64_t times[] = {
	    record->guest,   record->kernel, record->poll,      record->vmm,       record->halted,
	    record->waiting, record->waking, record->preempted, record->throttled, record->irq};

	return times[state];
}

static void expect_only(const struct vp_vcpu_account *record, unsigned state, uint64_t ns)
{
	for (unsigned i = 0; i < VP_STATES; i++)
		if (time_in(record, i) != (i == state ? ns : 0))
			fail_msg("%llu ns in state %u", (unsigned long long)time_in(record, i), i);
}

/* The state that lasts has its time up to now, in each second again, whatever state it is. */
static void test_state_that_lasts(void **state)
{
	for (unsigned lasts = 0; lasts < VP_STATES; lasts++)
		for (unsigned unknown = 0; unknown < 2; unknown++) {
			vp_vms vms = vms_make();
			struct vp_account_writer *writer = open_keeping(&vms);
			struct vp_account_vcpu *vcpu = vcpu_begin(1, PID, PID + 2);
			vcpu->state = unknown ? VP_STATE_UNKNOWN : lasts;
			vcpu->asleep = unknown ? lasts : VP_STATE_WAITING;
			vcpu->begin = SECOND + 100;
			vcpu->since = SECOND + 500;
			vcpu->states[lasts] = 400; /* it was in that state before, too */
			vp_account_writer_write(writer, 2ULL * SECOND, false);
			vp_account_writer_write(writer, 5ULL * SECOND, false);
			const struct vp_vcpu_account *first =
			    &nth_kept(VP_ID_vcpu_account, 0)->vcpu_account;
			const struct vp_vcpu_account *second =
			    &nth_kept(VP_ID_vcpu_account, 1)->vcpu_account;
			expect_only(first, lasts, SECOND - 100);
			expect_only(second, lasts, 3ULL * SECOND);
			assert_int_equal(first->begin, SECOND + 100);
			assert_int_equal(second->begin, first->end);
			assert_int_equal(second->end, 5ULL * SECOND);
			close_keeping(writer, &vms);
		}
}

/* Between the look at the clock and that at the vCPU it went on: its time is in the copy. */
static void test_state_that_began_later(void **state)
{
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);
	struct vp_account_vcpu *vcpu = vcpu_begin(0, PID, PID + 1);

	vcpu->state = VP_STATE_VMM;
	vcpu->since = 2ULL * SECOND + 30;
	vcpu->states[VP_STATE_GUEST] = SECOND + 30;
	vp_account_writer_write(writer, 2ULL * SECOND, false);
	const struct vp_vcpu_account first = nth_kept(VP_ID_vcpu_account, 0)->vcpu_account;
	expect_only(&first, VP_STATE_GUEST, SECOND + 30);
	assert_int_equal(first.end, 2ULL * SECOND + 30);
	vp_account_writer_write(writer, 3ULL * SECOND, false);
	const struct vp_vcpu_account second = nth_kept(VP_ID_vcpu_account, 1)->vcpu_account;
	expect_only(&second, VP_STATE_VMM, SECOND - 30);
	assert_int_equal(second.begin, first.end);
	close_keeping(writer, &vms);
}

/* KVM says late that it polled: that was the kernel's time in the second before. The sum stays that
 * of the interval. */
static void test_time_that_changes_its_state(void **state)
{
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);
	struct vp_account_vcpu *vcpu = vcpu_begin(0, PID, PID + 1);

	vcpu->states[VP_STATE_KERNEL] = 500;
	vcpu->states[VP_STATE_GUEST] = 100;
	vp_account_writer_write(writer, 2ULL * SECOND, false);
	kept.count = 0;
	vcpu->states[VP_STATE_KERNEL] = 450;
	vcpu->states[VP_STATE_GUEST] = 200;
	vcpu->states[VP_STATE_POLL] = 650;
	vp_account_writer_write(writer, 3ULL * SECOND, false);
	const struct vp_vcpu_account *record = &nth_kept(VP_ID_vcpu_account, 0)->vcpu_account;
	assert_int_equal(record->kernel, 0);
	assert_int_equal(record->guest, 100);
	assert_int_equal(record->poll, 600); /* less what was handed over as the kernel's */
	kept.count = 0;
	vcpu->states[VP_STATE_KERNEL] += 70;
	vp_account_writer_write(writer, 4ULL * SECOND, false);
	record = &nth_kept(VP_ID_vcpu_account, 0)->vcpu_account;
	/* Over all three seconds each state has what the vCPU has. */
	assert_int_equal(record->kernel, 20);
	assert_int_equal(record->guest, 0);
	assert_int_equal(record->poll, 50);
	close_keeping(writer, &vms);
}

/* A thread that ended: its last account, once; ten seconds later its place is another's, whose
 * counts begin at 0, as do those of who took its time. */
static void test_vcpu_ends(void **state)
{
	const struct vp_thief_key key = {
	    .vcpu = 1, .kind = VP_BY_TASK, .state = VP_STATE_WAKING, .id = 9};
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);
	struct vp_account_vcpu *vcpu = vcpu_begin(1, PID, PID + 1);

	vcpu_begin(2, 2 * PID, 2 * PID + 1);
	vcpu->state = VP_STATE_GONE;
	vcpu->end = SECOND + 400;
	vcpu->states[VP_STATE_GUEST] = 400;
	vcpu->reasons = 1;
	vcpu->irq_count[VP_IRQ_WORK] = 3;
	source.slots[1].exits[0] = (struct vp_account_exit){.count = 5, .total = 50};
	source.slots[1].sites[7] = (struct vp_account_site){.ip = 0x77, .count = 2};
	source.slots[1].sites[8] =
	    (struct vp_account_site){.ip = 0x88, .count = 1, .ns = 20, .idle = 5, .stolen = 6};
	vp_vec_push(&source.table, ((struct entry){key, {1000, 2}}));
	add_thief(2, VP_BY_NOBODY, VP_STATE_WAKING, 0, 50, 1);
	vp_account_writer_write(writer, 2ULL * SECOND, false);
	vp_account_writer_write(writer, 3ULL * SECOND, false);
	assert_int_equal(count_kept(VP_ID_vcpu_account), 3);
	const struct vp_vcpu_account *last = &nth_kept(VP_ID_vcpu_account, 0)->vcpu_account;
	assert_int_equal(last->flags, VP_ENDED);
	assert_int_equal(last->end, SECOND + 400);
	assert_int_equal(last->guest, 400);
	assert_int_equal(nth_kept(VP_ID_vcpu_account, 1)->vcpu_account.flags, 0);
	vp_account_writer_write(writer, 11ULL * SECOND + 399, false);
	assert_int_equal(source.released.count, 0);
	assert_int_equal(count_kept(VP_ID_exit_site), 0);
	vp_account_writer_write(writer, 11ULL * SECOND + 400, false);
	assert_int_equal(source.released.count, 1);
	assert_int_equal(source.released.at[0], 1);
	assert_int_equal(count_kept(VP_ID_exit_site_address), 1);
	assert_int_equal(nth_kept(VP_ID_exit_site_address, 0)->exit_site_address.vm, PID);
	assert_int_equal(nth_kept(VP_ID_exit_site_address, 0)->exit_site_address.ip, 0x77);
	/* It waited: the record says how long. */
	assert_int_equal(count_kept(VP_ID_exit_site_waits), 1);
	assert_int_equal(nth_kept(VP_ID_exit_site_waits, 0)->exit_site_waits.ip, 0x88);
	assert_int_equal(nth_kept(VP_ID_exit_site_waits, 0)->exit_site_waits.idle, 5);
	assert_int_equal(nth_kept(VP_ID_exit_site_waits, 0)->exit_site_waits.stolen, 6);

	kept.count = 0;
	vcpu = vcpu_begin(1, 2 * PID, 2 * PID + 2);
	vcpu->begin = vcpu->since = 12ULL * SECOND;
	vcpu->states[VP_STATE_GUEST] = 30;
	vcpu->reasons = 1;
	vcpu->irq_count[VP_IRQ_WORK] = 1;
	source.slots[1].exits[0] = (struct vp_account_exit){.count = 5, .total = 20};
	assert_int_equal(source.table.count, 2);
	assert_int_equal(source.table.at[1].key.vcpu, 2); /* nothing new of that one */
	vp_account_writer_write(writer, 13ULL * SECOND, true);
	const struct vp_vcpu_account *next = &nth_kept(VP_ID_vcpu_account, 0)->vcpu_account;
	assert_int_equal(next->vm, 2 * PID);
	assert_int_equal(next->vcpu, 6);
	assert_int_equal(next->begin, 12ULL * SECOND);
	assert_int_equal(next->guest, 30);
	assert_int_equal(count_kept(VP_ID_exit_account), 1);
	assert_int_equal(nth_kept(VP_ID_exit_account, 0)->exit_account.count, 5);
	assert_int_equal(nth_kept(VP_ID_exit_account, 0)->exit_account.total, 20);
	assert_int_equal(count_kept(VP_ID_thief), 2);
	assert_int_equal(nth_kept(VP_ID_thief, 0)->thief.count, 1);
	assert_int_equal(nth_kept(VP_ID_thief, 1)->thief.ns, 1000);
	assert_int_equal(nth_kept(VP_ID_thief, 1)->thief.vm, 2 * PID);
	close_keeping(writer, &vms);
}

/* Exits of the reason in that slot of a place's row after so many seconds. */
static struct vp_account_exit exits_after(size_t slot, uint32_t row, unsigned seconds)
{
	uint64_t n = (slot + 1) * (row + 3) * seconds * seconds;
	struct vp_account_exit exit = {.count = n,
				       .poll = 2 * n,
				       .vmm = 3 * n,
				       .stolen = 5 * n,
				       .blocked = 7 * n,
				       .waking = 11 * n,
				       .max = 100 + n,
				       .reason = 0x40 + row};

	exit.total = exit.poll + exit.vmm + exit.stolen + exit.blocked + exit.waking + 13 * n;
	exit.buckets[row] = (uint32_t)n;
	exit.buckets[VP_BUCKETS - 1] = 2 * seconds;
	return exit;
}

static void expect_exits(const struct vp_exit_account *record, size_t slot, uint32_t row,
			 unsigned second)
{
	const struct vp_account_exit now = exits_after(slot, row, second);
	uint64_t n = now.count - exits_after(slot, row, second - 1).count;

	assert_int_equal(record->reason, 0x40 + row);
	assert_int_equal(record->vendor, VP_VENDOR_AMD);
	assert_int_equal(record->count, n);
	assert_int_equal(record->total, 41 * n);
	assert_int_equal(record->kernel, 13 * n);
	assert_int_equal(record->poll, 2 * n);
	assert_int_equal(record->vmm, 3 * n);
	assert_int_equal(record->stolen, 5 * n);
	assert_int_equal(record->blocked, 7 * n);
	assert_int_equal(record->waking, 11 * n);
	assert_int_equal(record->max, now.max);
}

static void expect_bucket(const struct vp_exit_bucket *record, uint32_t reason, uint32_t bucket,
			  uint64_t count)
{
	assert_int_equal(record->reason, reason);
	assert_int_equal(record->vendor, VP_VENDOR_AMD);
	assert_int_equal(record->bucket, bucket);
	assert_int_equal(record->count, count);
}

/* Each vCPU's exits for each reason, in each second those of that second; none where there were
 * none. */
static void test_exits(void **state)
{
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);

	vcpu_begin(1, PID, PID + 2)->reasons = 2;
	vcpu_begin(3, 2 * PID, 2 * PID + 1)->reasons = 2;
	for (unsigned second = 1; second <= 3; second++) {
		kept.count = 0;
		for (size_t slot = 1; slot < SLOTS; slot += 2)
			for (uint32_t row = 0; row < 3; row++) /* the last: not yet in use */
				source.slots[slot].exits[row] = exits_after(slot, row, second);
		vp_account_writer_write(writer, (second + 1ULL) * SECOND, false);
		assert_int_equal(count_kept(VP_ID_exit_account), 4);
		assert_int_equal(count_kept(VP_ID_exit_bucket), 8);
		for (size_t nth = 0; nth < 4; nth++) {
			const struct vp_exit_account *record =
			    &nth_kept(VP_ID_exit_account, nth)->exit_account;
			uint32_t row = nth % 2;
			size_t slot = nth < 2 ? 1 : 3;
			assert_int_equal(record->vm, nth < 2 ? PID : 2 * PID);
			assert_int_equal(record->vcpu, nth < 2 ? 6 : 5);
			expect_exits(record, slot, row, second);
			const struct vp_exit_bucket *low =
			    &nth_kept(VP_ID_exit_bucket, 2 * nth)->exit_bucket;
			expect_bucket(low, 0x40 + row, row, record->count);
			expect_bucket(&nth_kept(VP_ID_exit_bucket, 2 * nth + 1)->exit_bucket,
				      0x40 + row, VP_BUCKETS - 1, 2);
			assert_int_equal(low->vm, record->vm);
			assert_int_equal(low->vcpu, record->vcpu);
		}
	}
	kept.count = 0;
	vp_account_writer_write(writer, 5ULL * SECOND, false);
	assert_int_equal(count_kept(VP_ID_exit_account), 0);
	assert_int_equal(count_kept(VP_ID_exit_bucket), 0);
	close_keeping(writer, &vms);
}

/* The row is full: not more than that many reasons are looked at. */
static void test_most_reasons(void **state)
{
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);

	vcpu_begin(0, PID, PID + 1)->reasons = VP_EXIT_REASONS + 1;
	for (uint32_t row = 0; row < VP_EXIT_REASONS; row++)
		source.slots[0].exits[row] = exits_after(0, row, 1);
	vp_account_writer_write(writer, 2ULL * SECOND, false);
	assert_int_equal(count_kept(VP_ID_exit_account), VP_EXIT_REASONS);
	close_keeping(writer, &vms);
}

/* Interrupts have the names that the kernel has for them; a second has its own. */
static void test_interrupts(void **state)
{
	static const struct {
		unsigned kind;
		const char *name;
	} sources[VP_IRQ_SOURCES] = {
	    {VP_BY_SOFTIRQ, "HI"},           {VP_BY_SOFTIRQ, "TIMER"},
	    {VP_BY_SOFTIRQ, "NET_TX"},       {VP_BY_SOFTIRQ, "NET_RX"},
	    {VP_BY_SOFTIRQ, "BLOCK"},        {VP_BY_SOFTIRQ, "IRQ_POLL"},
	    {VP_BY_SOFTIRQ, "TASKLET"},      {VP_BY_SOFTIRQ, "SCHED"},
	    {VP_BY_SOFTIRQ, "HRTIMER"},      {VP_BY_SOFTIRQ, "RCU"},
	    {VP_BY_VECTOR, "local_timer"},   {VP_BY_VECTOR, "reschedule"},
	    {VP_BY_VECTOR, "call_function"}, {VP_BY_VECTOR, "call_function_1"},
	    {VP_BY_VECTOR, "irq_work"},      {VP_BY_VECTOR, ""},
	};
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);

	vcpu_begin(0, PID, PID + 1);
	vcpu_begin(2, 2 * PID, 2 * PID + 1);
	for (unsigned second = 1; second <= 2; second++) {
		kept.count = 0;
		for (unsigned i = 0; i < VP_IRQ_SOURCES; i++) {
			source.slots[2].vcpu.irq_ns[i] = counter(2, i, second);
			source.slots[2].vcpu.irq_count[i] = 10ULL * second * second + i;
		}
		vp_account_writer_write(writer, (second + 1ULL) * SECOND, false);
		assert_int_equal(count_kept(VP_ID_thief), VP_IRQ_SOURCES);
		for (unsigned i = 0; i < VP_IRQ_SOURCES; i++) {
			const struct vp_thief *thief = &nth_kept(VP_ID_thief, i)->thief;
			assert_int_equal(thief->vm, 2 * PID);
			assert_int_equal(thief->vcpu, 5);
			assert_int_equal(thief->state, VP_STATE_IRQ);
			assert_int_equal(thief->kind, sources[i].kind);
			assert_int_equal(thief->number, i);
			assert_string_equal(thief->comm, sources[i].name);
			assert_int_equal(thief->ns,
					 counter(2, i, second) - counter(2, i, second - 1));
			assert_int_equal(thief->count, second == 1 ? 10 + i : 30);
		}
	}
	/* One that took no time that the clock shows has a count all the same. */
	kept.count = 0;
	source.slots[2].vcpu.irq_count[VP_IRQ_WORK]++;
	vp_account_writer_write(writer, 4ULL * SECOND, false);
	assert_int_equal(count_kept(VP_ID_thief), 1);
	assert_int_equal(nth_kept(VP_ID_thief, 0)->thief.number, VP_IRQ_WORK);
	/* A device has a row of those. */
	kept.count = 0;
	source.slots[2].vcpu.irq_device[VP_IRQ_WORK] = VP_IRQ_DEVICE + 7;
	source.slots[2].vcpu.irq_count[VP_IRQ_WORK]++;
	vp_account_writer_write(writer, 5ULL * SECOND, false);
	assert_int_equal(count_kept(VP_ID_thief), 1);
	assert_int_equal(nth_kept(VP_ID_thief, 0)->thief.kind, VP_BY_DEVICE);
	assert_int_equal(nth_kept(VP_ID_thief, 0)->thief.number, 7);
	close_keeping(writer, &vms);
}

static const struct vp_account_site *add_site(size_t slot, size_t at, uint64_t ip)
{
	struct vp_account_site *site = &source.slots[slot].sites[at];

	*site = (struct vp_account_site){.ip = ip,
					 .cr3 = ip + 1,
					 .count = ip + 2,
					 .ns = ip + 3,
					 .last = ip + 4,
					 .reason = (uint32_t)ip + 5,
					 .address = VP_NO_ADDRESS};
	return site;
}

static void expect_site(uint32_t id, size_t nth, uint32_t vm, uint64_t ip)
{
	const struct vp_exit_site *record = &nth_kept(id, nth)->exit_site;

	assert_int_equal(record->vm, vm);
	assert_int_equal(record->vendor, VP_VENDOR_AMD);
	assert_int_equal(record->flags, VP_SITE_KNOWN);
	assert_int_equal(record->ip, ip);
	assert_int_equal(record->as_root, ip + 1);
	assert_int_equal(record->count, ip + 2);
	assert_int_equal(record->ns, ip + 3);
	assert_int_equal(record->last, ip + 4);
	assert_int_equal(record->reason, ip + 5);
}

/* Where guests exited is told at the end: of each vCPU, with as much as is known, and of places
 * that were evicted from a vCPU's row. */
static void test_sites(void **state)
{
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);

	vcpu_begin(0, PID, PID + 1);
	vcpu_begin(2, 2 * PID, 2 * PID + 1);
	add_site(0, 0, 0x100);
	add_site(2, VP_EXIT_SITES - 1, 0x200);
	add_site(2, 3, 0x300);
	source.slots[2].sites[3].detail_kind = VP_DETAIL_PORT_OUT;
	source.slots[2].sites[3].detail = 0x3f8;
	add_site(0, 9, 0x400);
	source.slots[0].sites[9].detail_kind = VP_DETAIL_MMIO_READ;
	source.slots[0].sites[9].detail = 8;
	source.slots[0].sites[9].address = 0xfee00000;
	source.old_site = (struct vp_site_key){
	    .ip = 0x500, .cr3 = 0x501, .address = VP_NO_ADDRESS, .pid = 2 * PID, .reason = 0x505};
	source.old_site_cost = (struct vp_site_cost){0x502, 0x503, 0x504};
	vp_account_writer_write(writer, 2ULL * SECOND, false);
	assert_int_equal(count_kept(VP_ID_exit_site), 0);
	vp_account_writer_write(writer, 3ULL * SECOND, true);
	assert_int_equal(count_kept(VP_ID_exit_site), 3);
	assert_int_equal(count_kept(VP_ID_exit_site_detail), 1);
	assert_int_equal(count_kept(VP_ID_exit_site_address), 1);
	expect_site(VP_ID_exit_site, 0, PID, 0x100);
	expect_site(VP_ID_exit_site, 1, 2 * PID, 0x200);
	expect_site(VP_ID_exit_site, 2, 2 * PID, 0x500);
	expect_site(VP_ID_exit_site_detail, 0, 2 * PID, 0x300);
	expect_site(VP_ID_exit_site_address, 0, PID, 0x400);
	const struct vp_exit_site_detail *detail =
	    &nth_kept(VP_ID_exit_site_detail, 0)->exit_site_detail;
	assert_int_equal(detail->detail_kind, VP_DETAIL_PORT_OUT);
	assert_int_equal(detail->detail, 0x3f8);
	const struct vp_exit_site_address *address =
	    &nth_kept(VP_ID_exit_site_address, 0)->exit_site_address;
	assert_int_equal(address->detail_kind, VP_DETAIL_MMIO_READ);
	assert_int_equal(address->detail, 8);
	assert_int_equal(address->address, 0xfee00000);
	close_keeping(writer, &vms);
}

/* Exits of which some were timed: sums of what was, and places with the mean time of the reason for
 * those that were not. */
static void test_sampled_exits(void **state)
{
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);

	for (size_t slot = 0; slot < 2; slot++) {
		vcpu_begin(slot, PID, PID + 1 + (uint32_t)slot)->reasons = 1;
		struct vp_account_exit *exit = &source.slots[slot].exits[0];
		*exit = exits_after(slot, 0, 1);
		exit->timed = 3;
		exit->sum = 60;
		exit->squares = 70;
		exit->weights = 80;
	}
	vp_account_writer_write(writer, 2ULL * SECOND, false);
	assert_int_equal(count_kept(VP_ID_exit_sampling), 2);
	const struct vp_exit_sampling *record = &nth_kept(VP_ID_exit_sampling, 0)->exit_sampling;
	assert_int_equal(record->reason, 0x40);
	assert_int_equal(record->vendor, VP_VENDOR_AMD);
	assert_int_equal(record->timed, 3);
	assert_int_equal(record->sum, 60);
	assert_int_equal(record->squares, 70);
	assert_int_equal(record->weights, 80);
	source.slots[0].exits[0].count++;
	source.slots[0].exits[0].timed++;
	source.slots[0].exits[0].sum += 80;
	source.slots[1].exits[0].count++; /* not timed */
	struct vp_account_site *site = &source.slots[1].sites[7];
	*site = (struct vp_account_site){.ip = 1,
					 .address = VP_NO_ADDRESS,
					 .count = 12,
					 .ns = 1000,
					 .reason = 0x40,
					 .untimed = 4};
	source.old_site =
	    (struct vp_site_key){.ip = 2, .address = VP_NO_ADDRESS, .pid = PID, .reason = 0x40};
	source.old_site_cost = (struct vp_site_cost){.count = 9, .ns = 500, .untimed = 5};
	kept.count = 0;
	vp_account_writer_write(writer, 3ULL * SECOND, true);
	assert_int_equal(count_kept(VP_ID_exit_sampling), 1);
	assert_int_equal(nth_kept(VP_ID_exit_sampling, 0)->exit_sampling.timed, 1);
	assert_int_equal(nth_kept(VP_ID_exit_sampling, 0)->exit_sampling.sum, 80);
	/* 200 * 16 ns of 7. */
	assert_int_equal(nth_kept(VP_ID_exit_site, 0)->exit_site.ns, 1000 + 4 * (3200 / 7));
	assert_int_equal(nth_kept(VP_ID_exit_site, 1)->exit_site.ns, 500 + 5 * (3200 / 7));
	close_keeping(writer, &vms);
}

/* Two reasons with exits, and one interrupt source, that nothing timed stands for yet. */
static struct slot *begin_unsettled(void)
{
	struct vp_account_vcpu *vcpu = vcpu_begin(1, PID, PID + 2);

	vcpu->reasons = 2;
	vcpu->state = VP_STATE_HALTED;
	vcpu->since = 9ULL * SECOND;
	vcpu->states[VP_STATE_GUEST] = 1000000;
	vcpu->states[VP_STATE_KERNEL] = 4300;
	vcpu->states[VP_STATE_IRQ] = 200;
	vcpu->irq_count[3] = 5;
	vcpu->irq_untimed[3] = 1;
	vcpu->irq_ns[3] = 200;
	struct slot *slot = &source.slots[1];
	slot->exits[0] = (struct vp_account_exit){
	    .count = 10, .total = 4000, .untimed = 6, .timed = 3, .weights = 12, .reason = 0x7b};
	slot->exits[1] = (struct vp_account_exit){
	    .count = 5, .total = 500, .stolen = 200, .untimed = 2, .timed = 3, .reason = 0x60};
	return slot;
}

static void expect_times(uint64_t guest, uint64_t kernel, uint64_t irq)
{
	const struct vp_vcpu_account *states = &nth_kept(VP_ID_vcpu_account, 0)->vcpu_account;

	assert_int_equal(states->guest, guest);
	assert_int_equal(states->kernel, kernel);
	assert_int_equal(states->irq, irq);
}

static void expect_exit(size_t nth, uint64_t count, uint64_t total, uint64_t kernel)
{
	const struct vp_exit_account *exit = &nth_kept(VP_ID_exit_account, nth)->exit_account;

	assert_int_equal(exit->count, count);
	assert_int_equal(exit->total, total);
	assert_int_equal(exit->kernel, kernel);
	assert_int_equal(exit->total, exit->kernel + exit->stolen);
}

/* Exits since the last timed one have the mean time of those before, and what is recorded never
 * goes back. */
static void test_exits_after_the_last_timed(void **state)
{
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);
	struct slot *slot = begin_unsettled();

	vp_account_writer_write(writer, 2ULL * SECOND, false);
	/* 6 exits of 1000 ns, 2 of 100 ns, an interrupt of 50 ns. */
	expect_times(1000000 - 6000 - 200 - 50, 4300 + 6000 + 200, 250);
	expect_exit(0, 10, 10000, 10000);
	expect_exit(1, 5, 750, 500);
	assert_int_equal(nth_kept(VP_ID_thief, 0)->thief.ns, 250);
	/* 6 + 36 * (12 + 4) / (4 * 4) more. */
	assert_int_equal(nth_kept(VP_ID_exit_sampling, 0)->exit_sampling.weights, 12 + 42);
	kept.count = 0;
	vp_account_writer_write(writer, 3ULL * SECOND, false);
	expect_times(0, 0, 0);
	assert_int_equal(count_kept(VP_ID_exit_account), 0);
	/* A timed one, of 800 ns, stands for them. */
	slot->exits[0].count = 11;
	slot->exits[0].untimed = 0;
	slot->exits[0].total += 7ULL * 800;
	slot->exits[0].weights += 7 * 6;
	slot->vcpu.states[VP_STATE_KERNEL] += 7ULL * 800;
	slot->vcpu.states[VP_STATE_GUEST] -= 6ULL * 800;
	kept.count = 0;
	vp_account_writer_write(writer, 4ULL * SECOND, false);
	expect_times(800, 0, 0);
	expect_exit(0, 1, 0, 0);
	assert_int_equal(count_kept(VP_ID_exit_sampling), 0);
	slot->exits[0].count++;
	slot->exits[0].total += 1000;
	slot->vcpu.states[VP_STATE_KERNEL] += 1000;
	kept.count = 0;
	vp_account_writer_write(writer, 5ULL * SECOND, true);
	expect_times(400, 600, 0);
	expect_exit(0, 1, 600, 600);
	close_keeping(writer, &vms);
}

/* Wake-ups by latency: what each interval added, of buckets with any. */
static void test_wakes(void **state)
{
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);
	struct vp_account_vcpu *vcpu = vcpu_begin(2, 2 * PID, 2 * PID + 1);

	vcpu->wakes[0] = 5;
	vcpu->wake_ns[0] = 7000;
	vcpu->wakes[9] = 1;
	vcpu->wake_ns[9] = SECOND;
	vp_account_writer_write(writer, 2ULL * SECOND, false);
	assert_int_equal(count_kept(VP_ID_wake_bucket), 2);
	const struct vp_wake_bucket *record = &nth_kept(VP_ID_wake_bucket, 0)->wake_bucket;
	assert_int_equal(record->vm, 2 * PID);
	assert_int_equal(record->vcpu, 5);
	assert_int_equal(record->bucket, 0);
	assert_int_equal(record->count, 5);
	assert_int_equal(record->ns, 7000);
	record = &nth_kept(VP_ID_wake_bucket, 1)->wake_bucket;
	assert_int_equal(record->bucket, 9);
	assert_int_equal(record->count, 1);
	assert_int_equal(record->ns, SECOND);
	vcpu->wakes[0]++;
	vcpu->wake_ns[0] += 300;
	kept.count = 0;
	vp_account_writer_write(writer, 3ULL * SECOND, false);
	assert_int_equal(count_kept(VP_ID_wake_bucket), 1);
	assert_int_equal(nth_kept(VP_ID_wake_bucket, 0)->wake_bucket.count, 1);
	assert_int_equal(nth_kept(VP_ID_wake_bucket, 0)->wake_bucket.ns, 300);
	close_keeping(writer, &vms);
}

/* What was lost is told when it is more than before. */
static void test_losses(void **state)
{
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);

	vp_account_writer_write(writer, 2ULL * SECOND, false);
	assert_int_equal(kept.count, 0);
	source.lost = (struct vp_account_lost){.vcpus = 3, .thieves = 4, .sites = 5};
	vp_account_writer_write(writer, 3ULL * SECOND, false);
	vp_account_writer_write(writer, 4ULL * SECOND, false);
	assert_int_equal(kept.count, 1);
	const struct vp_account_loss *loss = &nth_kept(VP_ID_account_loss, 0)->account_loss;
	assert_int_equal(loss->time, 3ULL * SECOND);
	assert_int_equal(loss->vcpus, 3);
	assert_int_equal(loss->thieves, 4);
	assert_int_equal(loss->sites, 5);
	source.lost.sites++;
	vp_account_writer_write(writer, 5ULL * SECOND, true);
	assert_int_equal(nth_kept(VP_ID_account_loss, 1)->account_loss.sites, 6);
	close_keeping(writer, &vms);
}

static uint32_t number_vm(void *context, uint32_t pid, uint32_t tid)
{
	return tid == PID + 2 ? pid | 1 << VP_PID_BITS : pid;
}

/* Two VMs of one process: the second one's number is in all records, also where its vCPU is the
 * thief. */
static void test_vms_of_one_process(void **state)
{
	const uint32_t second = PID | 1 << VP_PID_BITS;
	vp_vms vms = {0};
	struct vp_account_writer *writer = open_keeping(&vms);
	struct vp_vm vm = {.pid = PID, .nth = 1};

	vp_vm_vcpu(&vm, 8)->tid = PID + 2;
	vp_vec_push(&vms, vm);
	vp_account_writer_number_vms(writer, number_vm);
	vcpu_begin(0, PID, PID + 1);
	vcpu_begin(1, PID, PID + 2)->reasons = 1;
	source.slots[1].vcpu.irq_ns[0] = 7;
	source.slots[1].exits[0] = exits_after(1, 0, 1);
	add_site(1, 0, 0x100);
	add_thief(0, VP_BY_VCPU, VP_STATE_PREEMPTED, 1, 10, 1);
	vp_account_writer_write(writer, 2ULL * SECOND, true);
	assert_int_equal(nth_kept(VP_ID_vcpu_account, 0)->vcpu_account.vm, PID);
	assert_int_equal(nth_kept(VP_ID_vcpu_account, 1)->vcpu_account.vm, second);
	assert_int_equal(nth_kept(VP_ID_vcpu_account, 1)->vcpu_account.vcpu, 8);
	assert_int_equal(nth_kept(VP_ID_exit_account, 0)->exit_account.vm, second);
	assert_int_equal(nth_kept(VP_ID_exit_bucket, 0)->exit_bucket.vm, second);
	assert_int_equal(nth_kept(VP_ID_exit_site, 0)->exit_site.vm, second);
	assert_int_equal(nth_kept(VP_ID_thief, 0)->thief.vm, second);
	assert_int_equal(nth_kept(VP_ID_thief, 1)->thief.vm, PID);
	assert_int_equal(nth_kept(VP_ID_thief, 1)->thief.thief_pid, second);
	assert_int_equal(nth_kept(VP_ID_thief, 1)->thief.number, 8);
	close_keeping(writer, &vms);
}

/* Each pCPU's spans are in order; together they are when they are handed over. */
static void test_spans(void **state)
{
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);
	const struct vp_vcpu_span of = {.id = VP_ID_vcpu_span, .vm = 2 * PID, .ns = 5};
	struct vp_vcpu_span spans[] = {of, of, of};

	spans[0].time = 300;
	spans[0].tid = 2 * PID + 2;
	spans[0].vcpu = VP_VCPU_UNKNOWN;
	spans[1].time = 100;
	spans[1].tid = 2 * PID + 1;
	spans[1].vcpu = 3; /* the kernel's */
	spans[2].time = 200;
	spans[2].tid = 9; /* of no vCPU that is known */
	spans[2].vcpu = VP_VCPU_UNKNOWN;
	for (size_t i = 0; i < VP_ARRAY_SIZE(spans); i++)
		vp_vec_push(&source.spans, spans[i]);
	vcpu_begin(0, PID, PID + 1)->state = VP_STATE_GUEST;
	vp_account_writer_write(writer, 2ULL * SECOND, false);
	kept.count = 0;
	vp_account_writer_write_states(writer, false);
	assert_int_equal(kept.count, 3);
	for (size_t i = 0; i < 3; i++) {
		static const uint32_t tids[] = {2 * PID + 1, 9, 2 * PID + 2};
		static const uint32_t numbers[] = {3, VP_VCPU_UNKNOWN, 6};
		const struct vp_vcpu_span *span = &nth_kept(VP_ID_vcpu_span, i)->vcpu_span;
		assert_int_equal(span->time, 100 * (i + 1));
		assert_int_equal(span->tid, tids[i]);
		assert_int_equal(span->vcpu, numbers[i]);
		assert_int_equal(span->ns, 5);
	}
	vp_account_writer_write_states(writer, false);
	assert_int_equal(kept.count, 3); /* each once */
	close_keeping(writer, &vms);
}

/* The last time, what each vCPU is doing is a span that ends then. */
static void test_open_spans(void **state)
{
	vp_vms vms = vms_make();
	struct vp_account_writer *writer = open_keeping(&vms);
	struct vp_account_vcpu *vcpu = vcpu_begin(0, PID, PID + 2);

	vcpu->state = VP_STATE_HALTED;
	vcpu->since = SECOND + 200;
	vcpu->flags = VP_REASON_KNOWN;
	vcpu->reason = 0x78;
	vcpu->cpu = 9;
	vcpu = vcpu_begin(1, 2 * PID, 2 * PID + 1);
	vcpu->asleep = VP_STATE_WAITING;
	vcpu->reason = 0x60;
	vcpu->cpu = 4;
	vcpu_begin(2, 2 * PID, 2 * PID + 2); /* nothing is known of it */
	vcpu = vcpu_begin(3, PID, PID + 1);
	vcpu->state = VP_STATE_GUEST;
	vcpu->since = 2ULL * SECOND; /* no time has passed */
	vp_account_writer_write(writer, 2ULL * SECOND, true);
	kept.count = 0;
	vp_account_writer_write_states(writer, true);
	assert_int_equal(kept.count, 2);
	struct vp_vcpu_span span = nth_kept(VP_ID_vcpu_span, 0)->vcpu_span;
	const struct vp_vcpu_span halted = {.time = 2ULL * SECOND,
					    .id = VP_ID_vcpu_span,
					    .flags = VP_HAS_EXIT_REASON,
					    .vm = PID,
					    .tid = PID + 2,
					    .vcpu = 6,
					    .state = VP_STATE_HALTED,
					    .vendor = VP_VENDOR_AMD,
					    .reason = 0x78,
					    .cpu = 9,
					    .ns = SECOND - 200};
	const struct vp_vcpu_span asleep = {.time = 2ULL * SECOND,
					    .id = VP_ID_vcpu_span,
					    .vm = 2 * PID,
					    .tid = 2 * PID + 1,
					    .vcpu = 5,
					    .state = VP_STATE_WAITING,
					    .vendor = VP_VENDOR_AMD,
					    .cpu = 4,
					    .ns = SECOND};
	struct vp_vcpu_span other = nth_kept(VP_ID_vcpu_span, 1)->vcpu_span;
	bool swapped = span.vm != PID;
	assert_memory_equal(swapped ? &other : &span, &halted, sizeof(span));
	assert_memory_equal(swapped ? &span : &other, &asleep, sizeof(span));
	close_keeping(writer, &vms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_each_second_of_each_vcpu),
	    cmocka_unit_test(test_state_that_lasts),
	    cmocka_unit_test(test_state_that_began_later),
	    cmocka_unit_test(test_time_that_changes_its_state),
	    cmocka_unit_test(test_vcpu_ends),
	    cmocka_unit_test(test_exits),
	    cmocka_unit_test(test_most_reasons),
	    cmocka_unit_test(test_interrupts),
	    cmocka_unit_test(test_sites),
	    cmocka_unit_test(test_sampled_exits),
	    cmocka_unit_test(test_exits_after_the_last_timed),
	    cmocka_unit_test(test_losses),
	    cmocka_unit_test(test_wakes),
	    cmocka_unit_test(test_vms_of_one_process),
	    cmocka_unit_test(test_spans),
	    cmocka_unit_test(test_open_spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
