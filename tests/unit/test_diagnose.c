/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each rule of 'vperf diagnose': what triggers it, and that it does so alone. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyze/account/account_recording.h"
#include "analyze/model/intervals.h"
#include "render/render_diagnose.h"
#include "schema/exit_reason.h"

enum { VM = 1000, OTHER = 2000, SECOND = 1000000000 };

/* A second of two vCPUs of a VM, in which 1 of 5 was lost. */
struct trigger {
	const char *id;
	uint32_t thief; /* enum vp_thief_record, or 0 */
	uint32_t owner;
	const char *comm;
	uint32_t vendor, reason;
	bool by_vmm, kernel_thread;
	const char *function, *detail, *address, *what;
	uint64_t throttled, wasted, preempted;
	uint32_t pcpus, count; /* of the host, 0: not known; how often, 0: 3 times */
	bool of_guest;         /* its guest's events were lost, 1 of 5 */
	unsigned lost;         /* bit of a class of streams that lost 1 of 5 records */
};

static const struct trigger triggers[] = {
    {"steal-vm", .thief = VP_BY_VCPU, .owner = OTHER},
    {"steal-vm", .thief = VP_BY_VCPU, .owner = OTHER, .pcpus = 2},
    {"overcommit", .thief = VP_BY_VCPU, .owner = OTHER, .pcpus = 1},
    {"steal-self", .thief = VP_BY_VCPU, .owner = VM},
    {"steal-self", .thief = VP_BY_VCPU, .owner = VM, .pcpus = 1},
    {"irq-storm", .thief = VP_BY_VECTOR, .comm = "local_timer", .count = 100000},
    {"irq-storm", .thief = VP_BY_SOFTIRQ, .comm = "NET_RX", .count = 100000},
    {"lost-samples", .lost = VP_STREAMS(VP_STREAM_PCPU)},
    {"lost-account", .lost = VP_STREAMS(VP_STREAM_STATES)},
    {"lost-events", .lost = VP_STREAMS(VP_STREAM_TRACE)},
    {"lost-events", .lost = VP_STREAMS(VP_STREAM_TRACEPOINTS)},
    {"lost-intervals", .lost = VP_STREAMS(VP_STREAM_INTERVALS)},
    {"lost-guest-events", .of_guest = true},
    {"steal-task", .thief = VP_BY_TASK, .comm = "burner"},
    {"steal-vmm", .thief = VP_BY_TASK, .owner = VM, .comm = "qemu"},
    {"steal-vmm", .thief = VP_BY_TASK, .comm = "vhost-1000"},
    {"steal-irq", .thief = VP_BY_DEVICE, .comm = "eth0"},
    {"steal-irq", .thief = VP_BY_SOFTIRQ, .comm = "NET_RX"},
    {"steal-tick", .thief = VP_BY_VECTOR, .comm = "local_timer"},
    {"quota", .throttled = SECOND / 5},
    {"wakeup", .thief = VP_BY_NOBODY},
    {"halt-polling", .wasted = SECOND / 5},
    {"exits-lock", .vendor = VP_VENDOR_AMD, .reason = 0x77, .preempted = SECOND / 10},
    {"exits-pause", .vendor = VP_VENDOR_AMD, .reason = 0x77},
    {"steal-irq", .thief = VP_BY_TASK, .kernel_thread = true, .comm = "ksoftirqd/3"},
    {"steal-task", .thief = VP_BY_TASK, .comm = "ksoftirqd/3"},
    /* A kernel that can run under Xen has one function for all registers. */
    {"exits-timer", .vendor = VP_VENDOR_AMD, .reason = 0x7c, .function = "native_write_msr",
     .detail = "MSR 0x6e0 write"},
    {"exits-timer", .vendor = VP_VENDOR_INTEL, .reason = 52},
    {"exits-timer", .vendor = VP_VENDOR_AMD, .reason = 0x7c, .function = "lapic_next_deadline"},
    {"exits-ipi", .vendor = VP_VENDOR_INTEL, .reason = 32, .function = "native_write_msr",
     .detail = "MSR 0x830 write"},
    {"exits-ipi", .vendor = VP_VENDOR_AMD, .reason = 0x401, .function = "native_write_msr"},
    {"exits-ipi", .vendor = VP_VENDOR_AMD, .reason = 0x81, .function = "__send_ipi_mask"},
    {"exits-ipi", .vendor = VP_VENDOR_AMD, .reason = 0x7c, .function = "__x2apic_send_IPI_dest"},
    {"exits-msr", .vendor = VP_VENDOR_AMD, .reason = 0x7c, .function = "lapic_next_deadline",
     .detail = "MSR 0x10 read"},
    {"exits-msr", .vendor = VP_VENDOR_AMD, .reason = 0x7c, .function = "native_write_msr"},
    {"exits-port", .vendor = VP_VENDOR_AMD, .reason = 0x7b,
     .function = "serial8250_console_putchar"},
    {"exits-port", .vendor = VP_VENDOR_INTEL, .reason = 30, .function = "io_serial_out"},
    /* By the address, if it is known: the kernel has some part in what the VMM serves. */
    {"exits-mmio", .vendor = VP_VENDOR_AMD, .reason = 0x400, .detail = "MMIO read 0xfed40000",
     .address = "0xfed40000", .what = "device"},
    {"exits-mmio", .vendor = VP_VENDOR_INTEL, .reason = 48, .detail = "MMIO write 0xfed40000"},
    {"exits-mmio", .vendor = VP_VENDOR_AMD, .reason = 0x400, .by_vmm = true},
    {"faults", .vendor = VP_VENDOR_AMD, .reason = 0x400, .by_vmm = true, .detail = "memory write",
     .address = "0x0-0x1fffff", .what = "memory"},
    {"faults", .vendor = VP_VENDOR_AMD, .reason = 0x400},
    {"exits-cpuid", .vendor = VP_VENDOR_AMD, .reason = 0x72, .function = "get_cpuid"},
    {"tool-cost", .thief = VP_BY_TASK, .comm = "vperf"},
};

static void take(struct vp_account *account, uint32_t id, void *record)
{
	((struct vp_record_header *)record)->id = id;
	vp_account_take(account, record);
}

static void take_times(struct vp_account *account, const struct trigger *trigger)
{
	for (uint32_t vcpu = 0; vcpu < 2; vcpu++) {
		struct vp_vcpu_account times = {.vm = VM,
						.vcpu = vcpu,
						.tid = 1001 + vcpu,
						.end = SECOND,
						.throttled = trigger->throttled,
						.poll_wasted = trigger->wasted,
						.preempted = trigger->preempted};
		times.guest = SECOND - times.throttled - times.preempted;
		take(account, VP_ID_vcpu_account, &times);
	}
}

static void take_thief(struct vp_account *account, const struct trigger *trigger)
{
	bool waking = trigger->thief == VP_BY_NOBODY;
	struct vp_thief thief = {.vm = VM,
				 .state = waking           ? VP_STATE_WAKING
					  : trigger->count ? VP_STATE_IRQ
							   : VP_STATE_PREEMPTED,
				 .kind = (uint8_t)trigger->thief,
				 .number = 7,
				 .thief_pid = trigger->owner,
				 .flags = trigger->kernel_thread,
				 .ns = 2 * SECOND / 5,
				 .count = trigger->count ? trigger->count : 3};

	if (trigger->comm)
		memcpy(thief.comm, trigger->comm, strlen(trigger->comm));
	take(account, VP_ID_thief, &thief);
}

static void take_exits(struct vp_account *account, const struct trigger *trigger,
		       struct vp_table *places)
{
	struct vp_exit_account cost = {.vm = VM,
				       .reason = trigger->reason,
				       .vendor = (uint8_t)trigger->vendor,
				       .count = 100,
				       .total = 2 * SECOND / 5};
	char name[VP_EXIT_NAME_SIZE];

	if (trigger->by_vmm)
		cost.vmm = cost.total;
	else
		cost.kernel = cost.total;
	take(account, VP_ID_exit_account, &cost);
	vp_table_column_add(places, "vm", "", "", VP_CELL_TEXT);
	vp_table_column_add(places, "function", "", "", VP_CELL_TEXT);
	vp_table_column_add(places, "reason", "", "", VP_CELL_TEXT);
	vp_table_column_add(places, "detail", "", "", VP_CELL_TEXT);
	vp_table_column_add(places, "count", "", "", VP_CELL_COUNT);
	vp_table_column_add(places, "work_ns", "", "", VP_CELL_DURATION);
	vp_table_text(places, "pid-1000");
	vp_table_text(places, trigger->function);
	vp_exit_reason_name(trigger->vendor, trigger->reason, name);
	vp_table_text(places, *vp_vec_push_slot(&places->cleaned) = vp_strdup(name));
	vp_table_text(places, trigger->detail);
	vp_table_count(places, 100);
	vp_table_count(places, cost.total);
}

/* Two accesses to one address, and one that cost more than either to another. */
static void add_address(const struct trigger *trigger, const char *address, uint64_t ns,
			struct vp_table *addresses)
{
	vp_table_text(addresses, "pid-1000");
	vp_table_text(addresses, address);
	vp_table_text(addresses, trigger->what);
	vp_table_count(addresses, 50);
	vp_table_count(addresses, ns);
}

static void take_addresses(const struct trigger *trigger, struct vp_table *addresses)
{
	vp_table_column_add(addresses, "vm", "", "", VP_CELL_TEXT);
	vp_table_column_add(addresses, "address", "", "", VP_CELL_TEXT);
	vp_table_column_add(addresses, "what", "", "", VP_CELL_TEXT);
	vp_table_column_add(addresses, "count", "", "", VP_CELL_COUNT);
	vp_table_column_add(addresses, "work_ns", "", "", VP_CELL_DURATION);
	add_address(trigger, "0x1000", 3, addresses);
	add_address(trigger, trigger->address, 2, addresses);
	add_address(trigger, trigger->address, 2, addresses);
	add_address(trigger, NULL, 100, addresses);
}

static void expect_address(const struct trigger *trigger, const struct vp_finding *finding)
{
	if (!trigger->address) {
		assert_null(finding->address);
		return;
	}
	assert_string_equal(finding->address, trigger->address);
	assert_int_equal(finding->address_count, 100);
}

static void expect_loss(const struct trigger *trigger, const struct vp_finding *finding)
{
	bool of_samples = trigger->lost == VP_STREAMS(VP_STREAM_PCPU);

	if (finding->rule->loss == VP_LOSS_GUEST_EVENTS) {
		assert_int_equal(finding->vm, 0);
		assert_int_equal(finding->count, 100);
		assert_int_equal(finding->ns, 0);
	} else if (finding->rule->loss != VP_LOSS_RECORDS) {
		assert_int_equal(finding->vm, 0);
		assert_int_equal(finding->ns, 2 * SECOND / 5);
	} else {
		assert_int_equal(finding->vm, VP_FINDING_OF_NO_VM);
		assert_int_equal(finding->count, 400);
		assert_int_equal(finding->ns, of_samples ? 2 * SECOND / 5 : 0);
	}
	if (finding->rule->least > 0)
		assert_true(finding->percent > 19.99 && finding->percent < 20.01);
}

static void test_rules(void **state)
{
	size_t count, seen = 0;
	const struct vp_rule *rules = vp_rules(&count);

	for (size_t i = 0; i < VP_ARRAY_SIZE(triggers); i++) {
		const struct trigger *trigger = &triggers[i];
		vp_vms vms = {0};
		struct vp_account account;
		struct vp_account_view view;
		struct vp_table places = {0}, addresses = {0};
		struct vp_diagnosis diagnosis;
		struct vp_losses losses = {.period_ns = SECOND / 1000};
		if (trigger->lost) {
			losses.lost[__builtin_ctz(trigger->lost)] = 400;
			losses.records[__builtin_ctz(trigger->lost)] = 1600;
		}
		vp_account_init(&account, &vms);
		account.overcommit.pcpus = trigger->pcpus;
		take_times(&account, trigger);
		if (trigger->address)
			take_addresses(trigger, &addresses);
		if (trigger->thief)
			take_thief(&account, trigger);
		else if (trigger->reason)
			take_exits(&account, trigger, &places);
		vp_account_settle(&account);
		vms.at[0].guest_events = trigger->of_guest ? 400 : 0;
		vms.at[0].guest_events_lost = trigger->of_guest ? 100 : 0;
		expect_no_error(vp_account_view_init(&view, &account, NULL));
		vp_diagnose(&view, &places, &addresses, &losses, NULL, &diagnosis);
		if (diagnosis.findings.count != 1)
			fail_msg("%s: %zu findings", trigger->id, diagnosis.findings.count);
		const struct vp_finding *finding = &diagnosis.findings.at[0];
		assert_string_equal(finding->rule->id, trigger->id);
		expect_loss(trigger, finding);
		if (trigger->function)
			assert_string_equal(finding->who, trigger->function);
		expect_address(trigger, finding);
		vp_diagnosis_deinit(&diagnosis);
		vp_table_deinit(&places);
		vp_table_deinit(&addresses);
		vp_account_view_deinit(&view);
		vp_account_deinit(&account);
		vp_vms_deinit(&vms);
	}
	for (size_t rule = 0; rule < count; rule++) {
		bool found = rules[rule].loss == VP_LOSS_TLB; /* test_diagnose_tlb() */
		for (size_t i = 0; i < VP_ARRAY_SIZE(triggers); i++)
			found |= !strcmp(triggers[i].id, rules[rule].id);
		assert_true(found && rules[rule].source && rules[rule].advice);
		seen += found;
	}
	assert_int_equal(seen, count);
}

/* Half of a second of two vCPUs is guest time, and 40% of the cycles are TLB misses, or so. */
static bool finds_tlb(double each_miss, uint32_t vm_of_intervals, struct vp_finding *ret)
{
	struct vp_interval_recording rec = {.recipe.per = VP_PER_VCPU};
	static const char *const names[] = {"instructions", "cycles", "dTLB-load-misses"};
	struct vp_table nothing = {0};
	struct vp_losses losses = {0};
	vp_vms vms = {0};
	struct vp_account account;
	struct vp_account_view view;
	struct vp_diagnosis diagnosis;

	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++)
		vp_vec_push(&rec.recipe.events,
			    ((struct vp_recipe_event){.name = strdup(names[i])}));
	vp_vec_push(&rec.vms, ((struct vp_vm){.pid = vm_of_intervals, .name = strdup("db")}));
	for (unsigned i = 0; i < 60; i++) {
		double misses = 1000 + 37 * (i * 7 % 60);
		vp_vec_push(&rec.rows,
			    ((struct vp_interval_row){
				.head = {.owner = vm_of_intervals, .time = i + 1, .begin = i},
				.cells = rec.cells.count}));
		vp_vec_push(&rec.cells, ((struct vp_interval_cell){100000, 1}));
		vp_vec_push(&rec.cells,
			    ((struct vp_interval_cell){100000 + each_miss * misses + i % 3, 1}));
		vp_vec_push(&rec.cells, ((struct vp_interval_cell){misses, 1}));
	}
	vp_account_init(&account, &vms);
	take_times(&account, &(struct trigger){.preempted = 0});
	vp_account_settle(&account);
	expect_no_error(vp_account_view_init(&view, &account, NULL));
	vp_diagnose(&view, &nothing, &nothing, &losses, &rec, &diagnosis);
	bool found = diagnosis.findings.count == 1;
	if (found) {
		*ret = diagnosis.findings.at[0];
		assert_string_equal(ret->rule->id, "tlb-misses");
		assert_non_null(strstr(ret->detail, "cycles for each of"));
		assert_non_null(strstr(ret->detail, "regression over 60 intervals"));
	}
	vp_diagnosis_deinit(&diagnosis);
	vp_account_view_deinit(&view);
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
	vp_interval_recording_close(&rec);
	return found;
}

static void test_diagnose_tlb(void **state)
{
	struct vp_finding finding;

	/* 2091.5 misses on average: 31.4 of 131.4 thousand cycles; all of the time is guest time.
	 */
	assert_true(finds_tlb(15, VM, &finding));
	assert_true(fabs(finding.percent - 100 * 15 * 2.0915 / (100 + 15 * 2.0915)) < 0.5);
	assert_true(fabs((double)finding.ns - finding.percent / 100 * 2 * SECOND) < 1e6);
	/* Below 5%, and of another VM. */
	assert_false(finds_tlb(2, VM, &finding));
	assert_false(finds_tlb(15, OTHER, &finding));
}

/* Who took most took it from both vCPUs; another took more from one of them. */
static void test_most(void **state)
{
	static const struct trigger nothing;
	static const struct {
		uint32_t vcpu, tid;
		uint64_t ns;
	} taken[] = {{0, 7, SECOND / 10}, {1, 7, SECOND / 10}, {0, 8, SECOND / 8}};
	vp_vms vms = {0};
	struct vp_account account;
	struct vp_account_view view;
	struct vp_table places = {0}, addresses = {0};
	struct vp_diagnosis diagnosis;

	vp_account_init(&account, &vms);
	take_times(&account, &nothing);
	for (size_t i = 0; i < VP_ARRAY_SIZE(taken); i++) {
		struct vp_thief thief = {.vm = VM,
					 .vcpu = taken[i].vcpu,
					 .state = VP_STATE_PREEMPTED,
					 .kind = VP_BY_TASK,
					 .number = taken[i].tid,
					 .ns = taken[i].ns,
					 .count = 1,
					 .comm = "burner"};
		take(&account, VP_ID_thief, &thief);
	}
	expect_no_error(vp_account_view_init(&view, &account, NULL));
	vp_diagnose(&view, &places, &addresses, &(struct vp_losses){0}, NULL, &diagnosis);
	assert_int_equal(diagnosis.findings.count, 1);
	assert_int_equal(diagnosis.findings.at[0].ns, SECOND / 5 + SECOND / 8);
	assert_string_equal(diagnosis.findings.at[0].who, "burner/7");
	assert_int_equal(diagnosis.findings.at[0].most, SECOND / 5);
	vp_diagnosis_deinit(&diagnosis);
	vp_account_view_deinit(&view);
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
}

/* Two VMs of a vCPU each, busy for a second, each of which takes half of the other's: whether a
 * pCPU more would have been of use depends on which ones they may use. */
static void divide(uint32_t pcpus, const char *one, const char *two, const char *three,
		   uint64_t *overcommitted)
{
	const char *const lists[] = {one, two, three};
	vp_vms vms = {0};
	struct vp_account account;

	for (uint32_t i = 0; i < VP_ARRAY_SIZE(lists); i++) {
		struct vp_vm vm = vp_vm_of_id(VM + i);
		struct vp_vcpu vcpu = {.tid = VM + i};
		vcpu.pcpus = lists[i] ? vp_strdup(lists[i]) : NULL;
		vp_vec_push(&vm.vcpus, vcpu);
		vp_vec_push(&vms, vm);
	}
	vp_account_init(&account, &vms);
	account.overcommit.pcpus = pcpus;
	for (uint64_t second = 1; second < 3; second++)
		for (uint32_t i = 0; i < (three ? 3 : 2); i++) {
			struct vp_vcpu_account times = {.time = second * SECOND,
							.vm = VM + i,
							.begin = (second - 1) * SECOND,
							.end = second * SECOND,
							.guest = SECOND / 2,
							.preempted = SECOND / 2};
			struct vp_thief thief = {.time = times.time,
						 .vm = VM + i,
						 .state = VP_STATE_PREEMPTED,
						 .kind = VP_BY_VCPU,
						 .thief_pid = VM + !i,
						 .ns = SECOND / 2};
			take(&account, VP_ID_vcpu_account, &times);
			take(&account, VP_ID_thief, &thief);
		}
	vp_account_settle(&account);
	for (size_t i = 0; i < account.thefts.count; i++)
		overcommitted[i] = account.thefts.at[i].overcommitted;
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
}

static void test_overcommit(void **state)
{
	uint64_t overcommitted[3];

	divide(1, NULL, NULL, NULL, overcommitted);
	assert_int_equal(overcommitted[0], SECOND);
	assert_int_equal(overcommitted[1], SECOND);
	divide(2, NULL, "0-1", NULL, overcommitted);
	assert_int_equal(overcommitted[0], 0);
	/* Of four pCPUs they may use one; a list that is none stands for all. */
	divide(4, "3", "3", NULL, overcommitted);
	assert_int_equal(overcommitted[0], SECOND);
	assert_int_equal(overcommitted[1], SECOND);
	divide(4, "3", "3-2", NULL, overcommitted);
	assert_int_equal(overcommitted[0], 0);
	/* Three on two, one of which could be elsewhere: a half of what two of them lost. */
	divide(2, "0", "0", "0-1", overcommitted);
	assert_int_equal(overcommitted[0], SECOND);
	assert_int_equal(overcommitted[1], SECOND);
	assert_int_equal(overcommitted[2], 0);
	divide(2, "0-1", "0-1", "0-1", overcommitted);
	assert_in_range(overcommitted[2], 2 * SECOND / 3 - 5, 2 * SECOND / 3 + 5);
}

/* Names that a shell or a terminal would obey; and nothing found. */
static void test_text(void **state)
{
	struct vp_account_recording rec = {.path = "my dir"};
	size_t count;
	struct vp_diagnosis diagnosis = {0};
	struct vp_buffer out = {0};

	vp_render_diagnosis_text(&diagnosis, &rec, &out);
	assert_string_equal(vp_buffer_text(&out), "Nothing stands out.\n");
	vp_vec_push(&rec.vms, ((struct vp_vm){.name = vp_strdup("a'; rm\033[31m $x")}));
	vp_vec_push(
	    &diagnosis.findings,
	    ((struct vp_finding){
		.rule = &vp_rules(&count)[0], .ns = 5, .who = "b\033", .address_count = 7}));
	out.size = 0;
	vp_render_diagnosis_text(&diagnosis, &rec, &out);
	assert_non_null(
	    strstr(vp_buffer_text(&out), "vperf steal --vm 'a'\\''; rm?[31m $x' 'my dir'\n"));
	assert_null(strchr(vp_buffer_text(&out), '\033'));
	assert_null(strstr(vp_buffer_text(&out), "--by address"));
	diagnosis.findings.at[0].address = "0xfed40000";
	out.size = 0;
	vp_render_diagnosis_text(&diagnosis, &rec, &out);
	assert_non_null(strstr(vp_buffer_text(&out), "most at 0xfed40000, 7 times\n"));
	assert_non_null(
	    strstr(vp_buffer_text(&out), " vperf exits --by address --vm 'a'\\''; rm?[31m $x'"));
	/* Other VMs that lose by the same, and what supports the advice. */
	assert_null(strstr(vp_buffer_text(&out), "same cause"));
	vp_vec_push(&rec.vms, ((struct vp_vm){.name = vp_strdup("victim\033")}));
	struct vp_finding *first = &diagnosis.findings.at[0];
	first->words = (struct vp_rule_words){.advice = "do that", .source = "this document"};
	vp_vec_push(&diagnosis.findings, ((struct vp_finding){.rule = first->rule,
							      .words = first->words,
							      .vm = 1,
							      .ns = 3000000,
							      .percent = 2.5,
							      .cause = 1}));
	out.size = 0;
	vp_render_diagnosis_text(&diagnosis, &rec, &out);
	assert_non_null(
	    strstr(vp_buffer_text(&out), "   same cause: VM victim? loses 3.00 ms, 2.5%\n"));
	assert_non_null(strstr(vp_buffer_text(&out), "   try:    do that\n"));
	assert_non_null(strstr(vp_buffer_text(&out), "   source: this document\n"));
	free(rec.vms.at[1].name);
	vp_buffer_deinit(&out);
	vp_vec_deinit(&diagnosis.findings);
	free(rec.vms.at[0].name);
	vp_vec_deinit(&rec.vms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rules), cmocka_unit_test(test_diagnose_tlb),
	    cmocka_unit_test(test_most), cmocka_unit_test(test_overcommit),
	    cmocka_unit_test(test_text)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
