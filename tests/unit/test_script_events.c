/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events one after another: whose each is, what its fields mean, and which are asked for. */
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "analyze/trace/script.h"
#include "base/alloc.h"
#include "made_events.h"

#define NAME "test_script_events.rec"

static const char *name_of(uint32_t tid)
{
	return tid == 7 ? "seven\033" : tid == 8 ? "eight" : "swapper/0";
}

static const struct vp_script_options everything = {.to = UINT64_MAX};

static struct vp_script *open_script(const struct vp_script_options *options)
{
	struct vp_script *script;

	expect_no_error(vp_script_open(NAME, options, &script));
	return script;
}

/* The next one has that name. */
static const struct vp_script_event *next(struct vp_script *script, const char *name)
{
	const struct vp_script_event *event = vp_script_next(script);

	if (!event)
		fail_msg("there is no event, not even %s", name);
	assert_string_equal(event->name, name);
	return event;
}

static const struct vp_script_field *field_of(const struct vp_script_event *event, const char *name)
{
	vp_vec_each (&event->fields, field)
		if (strlen(name) == field->name_size && !strcmp(field->name, name))
			return field;
	return NULL;
}

static void expect_text(const struct vp_script_event *event, const char *name, const char *text)
{
	const struct vp_script_field *field = field_of(event, name);

	assert_non_null(field);
	if (!text) {
		assert_null(field->text);
		return;
	}
	assert_non_null(field->text);
	assert_string_equal(field->text, text);
}

/* Whose it is; NULL: not known. */
static void expect_owner(const struct vp_script_event *event, uint32_t tid, const char *comm,
			 const char *vm, int vcpu)
{
	assert_true(event->has_tid);
	assert_int_equal(event->tid, tid);
	if (comm)
		assert_string_equal(event->comm, comm);
	else
		assert_null(event->comm);
	if (vm)
		assert_string_equal(event->vm, vm);
	else
		assert_null(event->vm);
	assert_int_equal(event->has_vcpu, vcpu >= 0);
	if (vcpu >= 0)
		assert_int_equal(event->vcpu, vcpu);
}

static size_t count(const struct vp_script_options *options)
{
	struct vp_script *script = open_script(options);
	size_t n = 0;

	while (vp_script_next(script))
		n++;
	vp_script_close(script);
	return n;
}

/* Numbers of threads that are looked for in the same place. */
static void test_threads(void **state)
{
	struct made made;

	begin(&made, NAME, 2, 2);
	put_name(&made, 3, "three");
	put_name(&made, 259, "more");
	put_name(&made, 2002, "CPU 1/KVM");
	change(&made, 0, 100, 3, 259, 0);
	change(&made, 0, 200, 259, 3, 0);
	change(&made, 0, 300, 515, 259, 0);
	change(&made, 1, 400, 0, 2002, 0);
	change(&made, 1, 500, 2002, 0, 0);
	change(&made, 0, 600, 0, 2001, 0);
	end(&made);
	struct vp_script *script = open_script(&everything);
	const struct vp_script_event *event = next(script, "sched:sched_switch");
	expect_owner(event, 3, "three", NULL, -1);
	assert_int_equal(event->time, AT(100));
	assert_int_equal(event->pcpu, 0);
	assert_false(event->of_guest || event->of_hypervisor);
	expect_text(event, "next_comm", "more");
	assert_int_equal(field_of(event, "next_tid")->value.number, 259);
	event = next(script, "sched:sched_switch");
	expect_owner(event, 259, "more", NULL, -1);
	expect_text(event, "next_comm", "three");
	event = next(script, "sched:sched_switch");
	expect_owner(event, 515, NULL, NULL, -1);
	expect_text(event, "next_comm", "more");
	/* Idle tasks by their pCPU; a vCPU's thread has a VM, also before it has a name. */
	event = next(script, "sched:sched_switch");
	expect_owner(event, 0, "swapper/1", NULL, -1);
	assert_int_equal(event->pcpu, 1);
	expect_text(event, "next_comm", "CPU 1/KVM");
	event = next(script, "sched:sched_switch");
	expect_owner(event, 2002, "CPU 1/KVM", "vm1", 1);
	expect_text(event, "next_comm", "swapper/1");
	event = next(script, "sched:sched_switch");
	expect_owner(event, 0, "swapper/0", NULL, -1);
	expect_text(event, "next_comm", "-");
	assert_null(vp_script_next(script));
	assert_null(vp_script_next(script));
	vp_script_close(script);
}

/* The letter of why a thread left, as ps has it. */
static void test_thread_states(void **state)
{
	static const struct {
		uint16_t bits;
		uint8_t preempted;
		const char *text;
	} cases[] = {{0, 0, "R"},     {1, 0, "S"},     {2, 0, "D"},    {4, 0, "T"},
		     {8, 0, "t"},     {0x40, 0, "P"},  {0x80, 0, "X"}, {0x402, 0, "I"},
		     {0x400, 0, "R"}, {0x102, 0, "D"}, {1, 1, "R+"},   {0, 1, "R+"},
		     {0x81, 0, "S"}};
	struct made made;

	begin(&made, NAME, 1, 1);
	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++)
		PUT(&made, 0, 100 + i, sched_switch, .prev_tid = 5, .next_tid = 6,
		    .prev_state = cases[i].bits, .preempted = cases[i].preempted);
	end(&made);
	struct vp_script *script = open_script(&everything);
	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		const struct vp_script_event *event = next(script, "sched:sched_switch");
		expect_text(event, "prev_state", cases[i].text);
		assert_int_equal(field_of(event, "prev_state")->value.number, cases[i].bits);
		assert_null(field_of(event, "preempted"));
	}
	vp_script_close(script);
}

/* VMs by name, or by their number if the list has them not; what an exit was to, if anything. */
static void test_exits(void **state)
{
	struct made made;

	begin(&made, NAME, 2, 1);
	PUT(&made, 0, 100, kvm_exit, .tid = 2002, .vm = 2000, .vcpu = 1, .vendor = VP_VENDOR_AMD,
	    .reason = MADE_HLT);
	PUT(&made, 0, 200, kvm_exit, .tid = 1001, .vm = 1000, .vcpu = 0, .vendor = VP_VENDOR_INTEL,
	    .reason = 30, .detail = 0x3f8, .detail_kind = VP_DETAIL_PORT_IN);
	PUT(&made, 0, 300, kvm_exit, .tid = 9, .vm = 77, .vcpu = 3, .reason = 30);
	PUT(&made, 0, 400, kvm_exit, .tid = 1001, .vm = UINT32_MAX, .vcpu = 5,
	    .vendor = VP_VENDOR_AMD, .reason = MADE_HLT);
	PUT(&made, 0, 500, kvm_entry, .tid = 2001, .vm = 1000, .vcpu = VP_VCPU_UNKNOWN);
	end(&made);
	struct vp_script *script = open_script(&everything);
	const struct vp_script_event *event = next(script, "kvm:kvm_exit");
	expect_owner(event, 2002, NULL, "vm1", 1);
	expect_text(event, "reason", "HLT");
	assert_null(field_of(event, "detail"));
	assert_int_equal(event->fields.count, 2);
	event = next(script, "kvm:kvm_exit");
	expect_owner(event, 1001, NULL, "vm0", 0);
	expect_text(event, "reason", "IO_INSTRUCTION");
	expect_text(event, "detail", "port 0x3f8 in");
	assert_int_equal(event->fields.count, 3);
	event = next(script, "kvm:kvm_exit");
	expect_owner(event, 9, NULL, "77", 3);
	expect_text(event, "reason", "unknown");
	/* What is of no VM is its thread's all the same. */
	event = next(script, "kvm:kvm_exit");
	assert_string_equal(event->vm, "vm0");
	event = next(script, "kvm:kvm_entry");
	expect_owner(event, 2001, NULL, "vm0", -1);
	vp_script_close(script);
}

/* A field that is left out takes none of those behind it along. */
static void test_exits_to_nothing(void **state)
{
	static const char *const names[] = {"exit_site_waits"};
	const struct vp_stream_id id = {VP_STREAM_ACCOUNT, VP_NO_PCPU};
	struct vp_script_options options = everything;
	struct vp_exit_site_waits site = {.time = AT(100),
					  .id = VP_ID_exit_site_waits,
					  .flags = VP_SITE_KNOWN,
					  .vm = 2000,
					  .reason = MADE_HLT,
					  .vendor = VP_VENDOR_AMD,
					  .ip = 0x1234,
					  .as_root = 0x5000,
					  .count = 7,
					  .ns = 99,
					  .address = 0xfee00000,
					  .idle = 11,
					  .stolen = 22};
	struct made made;

	begin(&made, NAME, 2, 1);
	vp_trace_append(made.writer, id, &site);
	site.time = AT(200);
	site.flags = 0; /* of a VM that was not selected: its exits have reasons all the same */
	site.detail_kind = VP_DETAIL_PORT_OUT;
	site.detail = 0x70;
	vp_trace_append(made.writer, id, &site);
	vp_trace_flush(made.writer, id, 0);
	end(&made);
	options.events = names;
	options.n_events = 1;
	struct vp_script *script = open_script(&options);
	for (int with = 0; with < 2; with++) {
		const struct vp_script_event *event = next(script, "exit_site_waits");
		assert_string_equal(event->vm, "vm1");
		expect_text(event, "reason", "HLT");
		assert_int_equal(field_of(event, "detail") != NULL, with);
		if (with)
			expect_text(event, "detail", "port 0x70 out");
		assert_int_equal(field_of(event, "ip")->value.number, 0x1234);
		assert_int_equal(field_of(event, "as_root")->value.number, 0x5000);
		assert_int_equal(field_of(event, "count")->value.number, 7);
		assert_int_equal(field_of(event, "ns")->value.number, 99);
		assert_int_equal(field_of(event, "address")->value.number, 0xfee00000);
		assert_int_equal(field_of(event, "idle")->value.number, 11);
		assert_int_equal(field_of(event, "stolen")->value.number, 22);
		assert_int_equal(event->fields.count, 10 + with);
	}
	assert_null(vp_script_next(script));
	vp_script_close(script);
}

static void test_switch_flags(void **state)
{
	static const struct {
		uint16_t flags;
		const char *text;
	} cases[] = {{0, "-"},        {31, "first,middle,lost,jumped,unknown"},
		     {16, "unknown"}, {9, "first,jumped"},
		     {32, NULL},      {33, NULL}};
	struct made made;

	begin(&made, NAME, 2, 1);
	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++)
		PUT(&made, 0, 100 + i, guest_switch, .tid = 1001, .vm = 1000, .guest_tid = 5,
		    .switch_flags = cases[i].flags);
	end(&made);
	struct vp_script *script = open_script(&everything);
	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++)
		expect_text(next(script, "vperf:guest_switch"), "switch_flags", cases[i].text);
	vp_script_close(script);
}

/* vm1's guest has events of its own, on its CPU 1; threads of the host have the same numbers. */
static void make_guest(bool with_host)
{
	struct guest guest;
	struct made made;

	begin(&made, NAME, 2, 1);
	put_name(&made, 7, "host's");
	if (with_host) {
		change(&made, 0, 150, 7, 2002, 0);
		PUT(&made, 0, 350, kvm_entry, .tid = 2002, .vm = 2000, .vcpu = 1);
		change(&made, 0, 360, 1001, 0, 0);
	}
	end(&made);
	guest_begin(&guest, NAME, "guest-vm1", "vm1");
	put_event_on(&guest, 1, 100, SWITCH, (const uint32_t[]){0, 0, 0, 7});
	put_event_on(&guest, 1, 200, IRQ_ENTRY, (const uint32_t[]){7, 19});
	put_event_on(&guest, 1, 300, SWITCH, (const uint32_t[]){7, 7, 1, 8});
	put_event_on(&guest, 1, 400, SWITCH, (const uint32_t[]){9, 9, 1, 0});
	guest_end(&guest);
}

static void test_guests(void **state)
{
	make_guest(true);
	struct vp_script *script = open_script(&everything);
	const struct vp_script_event *event = next(script, "sched:sched_switch");
	expect_owner(event, 0, "swapper", "vm1", 1);
	assert_true(event->of_guest);
	assert_false(event->of_hypervisor);
	assert_int_equal(event->guest, 1);
	assert_int_equal(event->pcpu, VP_NO_PCPU);
	assert_int_equal(field_of(event, "next_pid")->value.number, 7);
	assert_null(field_of(event, "next_pid")->text);
	event = next(script, "sched:sched_switch");
	expect_owner(event, 7, "host's", NULL, -1);
	assert_false(event->of_guest);
	assert_int_equal(event->pcpu, 0);
	event = next(script, "irq:irq_handler_entry");
	expect_owner(event, 7, "seven?", "vm1", 1);
	assert_int_equal(field_of(event, "irq")->value.number, 19);
	event = next(script, "sched:sched_switch");
	expect_owner(event, 7, "seven?", "vm1", 1);
	event = next(script, "kvm:kvm_entry");
	expect_owner(event, 2002, NULL, "vm1", 1);
	assert_false(event->of_guest);
	assert_int_equal(event->pcpu, 0);
	event = next(script, "sched:sched_switch");
	expect_owner(event, 1001, NULL, "vm0", 0);
	event = next(script, "sched:sched_switch");
	expect_owner(event, 9, "swapper/0", "vm1", 1);
	assert_null(vp_script_next(script));
	assert_int_equal(vp_script_notes(script)->count, 0);
	vp_script_close(script);
}

static void test_filters_of_guests(void **state)
{
	static const int first[] = {0}, second[] = {1};
	static const char *const irq[] = {"irq_handler_entry"}, *const switches[] = {
								    "sched_switch"};
	struct vp_script_options options = everything;

	make_guest(true);
	assert_int_equal(count(&options), 7);
	options.vm = "vm1";
	/* All of its guest, its entry, and the switch to its thread. */
	assert_int_equal(count(&options), 6);
	options.vm = "vm0";
	assert_int_equal(count(&options), 1);
	/* A thread of the host, not of a guest: only with `vm` it may be that, too. */
	options = everything;
	options.has_tid = true;
	options.tid = 7;
	assert_int_equal(count(&options), 1);
	options.vm = "vm1";
	assert_int_equal(count(&options), 3);
	options.tid = 9;
	assert_int_equal(count(&options), 1);
	options.vm = "vm0";
	assert_int_equal(count(&options), 0);
	/* A guest's CPUs are no pCPUs. */
	options = everything;
	options.pcpus = first;
	options.n_pcpus = 1;
	assert_int_equal(count(&options), 3);
	options.pcpus = second;
	assert_int_equal(count(&options), 0);
	/* Both ends are included. */
	options = everything;
	options.from = AT(150);
	options.to = AT(350);
	assert_int_equal(count(&options), 4 + 0);
	options.from = AT(151);
	options.to = AT(349);
	assert_int_equal(count(&options), 2);
	options = everything;
	options.events = irq;
	options.n_events = 1;
	assert_int_equal(count(&options), 1);
	options.events = switches;
	assert_int_equal(count(&options), 5);
	options.vm = "vm1";
	options.events = irq;
	options.has_tid = true;
	options.tid = 7;
	assert_int_equal(count(&options), 1);
}

/* Events of guests from before the host's first, in an import: there is no earlier state there. */
static void test_before_the_start(void **state)
{
	struct made made;

	for (int imported = 0; imported < 2; imported++) {
		begin(&made, NAME, 2, 1);
		made.about.imported = imported ? vp_strdup("tracedat") : NULL;
		PUT(&made, 0, -50, kvm_entry, .tid = 1001, .vm = 1000);
		PUT(&made, 0, 0, kvm_entry, .tid = 1001, .vm = 1000);
		end(&made);
		assert_int_equal(count(&everything), imported ? 2 : 1);
	}
}

/* The hypervisor's: of the pCPU and the vCPU that they tell. */
static void make_hypervisor(void)
{
	static const char *const fields[] = {"pcpu", "vm", "vcpu", "tid", NULL};
	const struct vp_stream_id id = {VP_STREAM_HYPERVISOR, VP_NO_PCPU};
	static const uint32_t values[][4] = {
	    {3, 2000, 1, 55}, {4, UINT32_MAX, UINT32_MAX, 56}, {5, 1000, 0, 57}, {3, 9, 2, 58}};
	vp_event_classes classes = {0};
	struct made made;

	made_begin(&made, NAME, 2);
	struct vp_event_class *class = add_class(&classes, "xen:sched_add", fields);
	expect_no_error(vp_trace_writer_define(made.writer, &classes));
	for (size_t i = 0; i < VP_ARRAY_SIZE(values); i++) {
		struct vp_buffer out = {0};
		vp_event_begin(&out, class, AT(100 + i));
		for (size_t j = 0; j < 4; j++)
			vp_event_put_integer(&out, &class->fields.at[j], values[i][j]);
		expect_no_error(vp_event_end(&out, 0));
		vp_trace_append(made.writer, id, out.bytes);
		vp_buffer_deinit(&out);
	}
	vp_trace_flush(made.writer, id, 4);
	vp_event_classes_deinit(&classes);
	made_end(&made, 10);
}

static void test_hypervisor(void **state)
{
	static const int third[] = {3}, two[] = {4, 5};
	struct vp_script_options options = everything;

	make_hypervisor();
	struct vp_script *script = open_script(&options);
	const struct vp_script_event *event = next(script, "xen:sched_add");
	assert_true(event->of_hypervisor);
	assert_false(event->has_tid || event->of_guest);
	assert_int_equal(event->pcpu, 3);
	assert_string_equal(event->vm, "vm1");
	assert_true(event->has_vcpu);
	assert_int_equal(event->vcpu, 1);
	assert_int_equal(event->fields.count, 1);
	assert_int_equal(field_of(event, "its_tid")->value.number, 55);
	event = next(script, "xen:sched_add");
	assert_int_equal(event->pcpu, 4);
	assert_null(event->vm);
	assert_false(event->has_vcpu);
	event = next(script, "xen:sched_add");
	assert_string_equal(event->vm, "vm0");
	assert_int_equal(event->vcpu, 0);
	event = next(script, "xen:sched_add");
	assert_string_equal(event->vm, "9");
	assert_int_equal(event->vcpu, 2);
	assert_null(vp_script_next(script));
	assert_int_equal(vp_script_notes(script)->count, 1);
	assert_string_equal(vp_script_notes(script)->at[0], "4 records were lost while recording");
	vp_script_close(script);
	options.pcpus = third;
	options.n_pcpus = 1;
	assert_int_equal(count(&options), 2);
	options.pcpus = two;
	options.n_pcpus = 2;
	assert_int_equal(count(&options), 2);
	options = everything;
	options.vm = "vm1";
	assert_int_equal(count(&options), 1);
	options.vm = NULL;
	options.has_tid = true;
	options.tid = 55;
	assert_int_equal(count(&options), 0);
}

/* An event that is too short for its class is not shown, in part or with the values before it. */
static void test_short(void **state)
{
	struct vp_trace_kvm_entry record = {.time = AT(100),
					    .id = VP_TRACE_ID_kvm_entry,
					    .size = VP_TRACE_SIZE_kvm_entry - 1,
					    .tid = 1001};
	struct vp_defined_record unknown = {.time = AT(200), .id = 999, .size = 12};
	struct made made;

	begin(&made, NAME, 2, 1);
	made_event(&made, 0, &record);
	made_event(&made, 0, &unknown);
	PUT(&made, 0, 300, kvm_inj_virq, .tid = 1001, .vm = 1000, .vector = 3);
	end(&made);
	struct vp_script *script = open_script(&everything);
	next(script, "kvm:kvm_inj_virq");
	assert_null(vp_script_next(script));
	assert_int_equal(vp_script_notes(script)->count, 1);
	assert_string_equal(vp_script_notes(script)->at[0],
			    "2 records do not match the recording's event classes and were "
			    "skipped");
	vp_script_close(script);
	/* Not asked for, they are not looked at. */
	static const char *const names[] = {"kvm_inj_virq"};
	struct vp_script_options options = everything;
	options.events = names;
	options.n_events = 1;
	script = open_script(&options);
	next(script, "kvm:kvm_inj_virq");
	assert_null(vp_script_next(script));
	assert_string_equal(vp_script_notes(script)->at[0],
			    "1 records do not match the recording's event classes and were "
			    "skipped");
	vp_script_close(script);
}

/* Names are clean, those of VMs, too; a guest's own are not those of another one. */
static void test_names(void **state)
{
	static const char vms[] = "sev\033en";
	struct vp_guest_task task = {
	    .time = AT(50), .id = VP_ID_guest_task, .vm = 1000, .guest_pid = 7, .guest_tid = 7};
	struct made made;

	begin(&made, NAME, 2, 1);
	free(made.vms.at[1].name);
	made.vms.at[1].name = vp_strdup(vms);
	memcpy(task.comm, "a\001b", 3);
	made_event(&made, 0, &task);
	PUT(&made, 0, 100, guest_switch, .tid = 1001, .vm = 1000, .guest_tid = 7);
	PUT(&made, 0, 200, guest_switch, .tid = 2001, .vm = 2000, .guest_tid = 7);
	PUT(&made, 0, 300, guest_switch, .tid = 2001, .vm = 2000, .guest_tid = 0);
	end(&made);
	struct vp_script *script = open_script(&everything);
	expect_text(next(script, "vperf:guest_switch"), "guest_comm", "a?b");
	const struct vp_script_event *event = next(script, "vperf:guest_switch");
	expect_text(event, "guest_comm", "-");
	assert_string_equal(event->vm, "sev?en");
	expect_text(next(script, "vperf:guest_switch"), "guest_comm", "swapper");
	vp_script_close(script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_thread_states),
	    cmocka_unit_test(test_exits),
	    cmocka_unit_test(test_exits_to_nothing),
	    cmocka_unit_test(test_switch_flags),
	    cmocka_unit_test(test_guests),
	    cmocka_unit_test(test_filters_of_guests),
	    cmocka_unit_test(test_before_the_start),
	    cmocka_unit_test(test_hypervisor),
	    cmocka_unit_test(test_short),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
