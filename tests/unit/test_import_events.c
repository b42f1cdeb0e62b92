/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A host's tracepoints as vperf's own events, and which of its threads are which VM's vCPUs. */
#include "unit.h"

#include <stdio.h>

#include "base/alloc.h"
#include "import/recording/import_events.h"
#include "import/recording/import_vms.h"

/* Fields of four bytes; one whose name ends in "comm" is a text of 16. */
static void add_class(vp_event_classes *classes, const char *name, const char *const *fields)
{
	struct vp_event_class *class;

	expect_no_error(vp_event_classes_add(classes, name, &class));
	for (; *fields; fields++) {
		size_t size = strlen(*fields);
		bool is_text = size >= 4 && !strcmp(*fields + size - 4, "comm");
		const struct vp_event_field field = {.name = (char *)*fields,
						     .shape = is_text ? VP_EVENT_ARRAY
								      : VP_EVENT_INTEGER,
						     .size = is_text ? 1 : 4,
						     .is_text = is_text,
						     .count = is_text ? 16 : 0};
		expect_no_error(vp_event_class_add_field(class, &field));
	}
}

enum class { SWITCH, WAKEUP, ENTRY, EXIT, VIRQ, IRQ, BLOCK, SOFTIRQ };

static void make_classes(vp_event_classes *classes)
{
	static const char *const of_switch[] = {"common_pid", "prev_comm", "prev_pid", "prev_prio",
						"prev_state", "next_comm", "next_pid", NULL};
	static const char *const of_wakeup[] = {"common_pid", "comm",       "pid",
						"prio",       "target_cpu", NULL};
	static const char *const of_entry[] = {"common_pid", "vcpu_id", NULL};
	static const char *const of_exit[] = {"common_pid", "exit_reason", "guest_rip", "isa",
					      NULL};
	static const char *const of_virq[] = {"common_pid", "irq", NULL};
	static const char *const of_irq[] = {"common_pid", "irq", "name", NULL};
	static const char *const of_block[] = {"common_pid", "dev", "sector", NULL};
	static const char *const without_vec[] = {"common_pid", "number", "action", NULL};

	add_class(classes, "sched:sched_switch", of_switch);
	add_class(classes, "sched:sched_wakeup", of_wakeup);
	add_class(classes, "kvm:kvm_entry", of_entry);
	add_class(classes, "kvm:kvm_exit", of_exit);
	add_class(classes, "kvm:kvm_inj_virq", of_virq);
	add_class(classes, "irq:irq_handler_entry", of_irq);
	add_class(classes, "block:block_rq_issue", of_block);
	add_class(classes, "irq:softirq_entry",
		  without_vec); /* without the field that it is made of */
}

/* Two VMs of two vCPUs each: threads 101 and 102, 201 and 202. */
static void make_vms(struct vp_import_vms *vms)
{
	for (uint32_t i = 1; i < 3; i++) {
		size_t place = vp_import_vms_add(vms, (struct vp_slice){"x", 1}, 0);
		vms->vms.at[place].pid = 100 * i;
		for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
			vp_vm_vcpu(&vms->vms.at[place], vcpu)->tid = 100 * i + vcpu + 1;
	}
}

struct fixture {
	vp_event_classes classes;
	struct vp_import_vms vms;
	struct vp_import_events events;
	struct vp_buffer records;
	struct vp_cursor cursor;
};

static void begin(struct fixture *fixture, bool is_host)
{
	struct vp_buffer text = {0};

	*fixture = (struct fixture){0};
	make_classes(&fixture->classes);
	make_vms(&fixture->vms);
	vp_event_classes_write(&fixture->classes, &text);
	const struct vp_slice slice = {vp_buffer_text(&text), text.size};
	expect_no_error(
	    vp_import_events_init(&fixture->events, "test", slice, is_host, &fixture->vms.vms));
	vp_buffer_deinit(&text);
}

static void end(struct fixture *fixture)
{
	vp_import_events_deinit(&fixture->events);
	vp_import_vms_deinit(&fixture->vms);
	vp_event_classes_deinit(&fixture->classes);
	vp_buffer_deinit(&fixture->records);
}

/* A record: numbers, and names where there is a text. */
static void put(struct fixture *fixture, enum class which, uint64_t time, const uint32_t *numbers,
		const char *const *names)
{
	const struct vp_event_class *class = &fixture->classes.at[which];
	size_t before = fixture->records.size;

	vp_event_begin(&fixture->records, class, time);
	vp_vec_each (&class->fields, field) {
		if (field->is_text) {
			vp_event_put_bytes(&fixture->records, field, *names, strlen(*names));
			names++;
		} else {
			vp_event_put_integer(&fixture->records, field, *numbers++);
		}
	}
	expect_no_error(vp_event_end(&fixture->records, before));
}

#define NUMBERS(...) ((const uint32_t[]){__VA_ARGS__})
#define NAMES(...) ((const char *const[]){__VA_ARGS__})

static void start(struct fixture *fixture)
{
	fixture->cursor = vp_cursor_of(fixture->records.bytes, fixture->records.size);
}

/* The next one, which is vperf's own of that kind. */
static const void *next_own(struct fixture *fixture, uint16_t id, uint16_t size, uint64_t time,
			    struct vp_import_event *event)
{
	assert_true(vp_import_events_next(&fixture->events, &fixture->cursor, event));
	assert_true(event->is_own);
	assert_false(event->is_strange);
	const struct vp_defined_record *record = event->record;
	assert_int_equal(record->id, id);
	assert_int_equal(record->size, size);
	assert_int_equal(record->time, time);
	return record;
}

#define NEXT_OWN(fixture, name, time, event)                                                       \
	((const struct vp_trace_##name *)next_own(fixture, VP_TRACE_ID_##name,                     \
						  VP_TRACE_SIZE_##name, time, event))

static void expect_name(const struct vp_import_event *event, size_t number, uint32_t tid,
			const char *name)
{
	assert_true(number < event->n_names);
	assert_int_equal(event->names[number].tid, tid);
	assert_int_equal(event->names[number].comm.size, strlen(name));
	assert_memory_equal(event->names[number].comm.bytes, name, strlen(name));
}

static void test_scheduler(void **state)
{
	struct vp_import_event event;
	struct fixture fixture;

	begin(&fixture, true);
	put(&fixture, SWITCH, 10, NUMBERS(5, 5, 120, 0x101, 6), NAMES("five", "six"));
	put(&fixture, SWITCH, 20, NUMBERS(6, 6, 120, 0x100, 5), NAMES("six", "five"));
	put(&fixture, SWITCH, 30, NUMBERS(5, 5, 120, 2, 0), NAMES("new", "swapper/0"));
	put(&fixture, WAKEUP, 40, NUMBERS(7, 8, 120, 3), NAMES("eight"));
	start(&fixture);
	const struct vp_trace_sched_switch *change = NEXT_OWN(&fixture, sched_switch, 10, &event);
	assert_int_equal(change->prev_tid, 5);
	assert_int_equal(change->next_tid, 6);
	assert_int_equal(change->prev_state, 1);
	assert_int_equal(change->preempted, 1);
	assert_int_equal(event.n_names, 2);
	expect_name(&event, 0, 5, "five");
	expect_name(&event, 1, 6, "six");
	/* Names that are known already are not told again. */
	change = NEXT_OWN(&fixture, sched_switch, 20, &event);
	assert_int_equal(change->prev_tid, 6);
	assert_int_equal(change->next_tid, 5);
	assert_int_equal(change->prev_state, 0);
	assert_int_equal(change->preempted, 1);
	assert_int_equal(event.n_names, 0);
	change = NEXT_OWN(&fixture, sched_switch, 30, &event);
	assert_int_equal(change->prev_state, 2);
	assert_int_equal(change->preempted, 0);
	assert_int_equal(event.n_names, 1);
	expect_name(&event, 0, 5, "new");
	const struct vp_trace_sched_wakeup *wakeup = NEXT_OWN(&fixture, sched_wakeup, 40, &event);
	assert_int_equal(wakeup->tid, 7);
	assert_int_equal(wakeup->woken_tid, 8);
	assert_int_equal(wakeup->target_cpu, 3);
	expect_name(&event, 0, 8, "eight");
	assert_false(vp_import_events_next(&fixture.events, &fixture.cursor, &event));
	/* Each CPU's stream has names of its own. */
	fixture.events.cpu = 1;
	start(&fixture);
	NEXT_OWN(&fixture, sched_switch, 10, &event);
	assert_int_equal(event.n_names, 2);
	end(&fixture);
}

/* KVM's events are of the VM whose vCPU the thread is. */
static void test_vcpus(void **state)
{
	struct vp_import_event event;
	struct fixture fixture;

	begin(&fixture, true);
	put(&fixture, ENTRY, 10, NUMBERS(202, 9), NULL);
	put(&fixture, EXIT, 20, NUMBERS(101, 0x78, 0xabc, 2), NULL);
	put(&fixture, VIRQ, 30, NUMBERS(102, 236), NULL);
	put(&fixture, ENTRY, 40, NUMBERS(103, 0), NULL);
	put(&fixture, IRQ, 50, NUMBERS(201, 19, 0), NULL);
	start(&fixture);
	const struct vp_trace_kvm_entry *entry = NEXT_OWN(&fixture, kvm_entry, 10, &event);
	assert_int_equal(entry->tid, 202);
	assert_int_equal(entry->vm, 200);
	assert_int_equal(entry->vcpu, 1);
	const struct vp_trace_kvm_exit *left = NEXT_OWN(&fixture, kvm_exit, 20, &event);
	assert_int_equal(left->tid, 101);
	assert_int_equal(left->vm, 100);
	assert_int_equal(left->vcpu, 0);
	assert_int_equal(left->reason, 0x78);
	assert_int_equal(left->guest_rip, 0xabc);
	assert_int_equal(left->vendor, 2);
	const struct vp_trace_kvm_inj_virq *virq = NEXT_OWN(&fixture, kvm_inj_virq, 30, &event);
	assert_int_equal(virq->vm, 100);
	assert_int_equal(virq->vcpu, 1);
	assert_int_equal(virq->vector, 236);
	/* One whose thread is no vCPU's. */
	assert_true(vp_import_events_next(&fixture.events, &fixture.cursor, &event));
	assert_true(event.is_own && event.is_strange);
	const struct vp_trace_irq_handler_entry *irq =
	    NEXT_OWN(&fixture, irq_handler_entry, 50, &event);
	assert_int_equal(irq->tid, 201);
	assert_int_equal(irq->irq, 19);
	end(&fixture);
}

/* Others, and a guest's, stay as they are, with a number of the recording's. */
static void test_kept(void **state)
{
	struct vp_import_event event;
	struct fixture fixture;

	begin(&fixture, true);
	put(&fixture, BLOCK, 10, NUMBERS(5, 8, 4096), NULL);
	put(&fixture, SOFTIRQ, 20, NUMBERS(5, 1, 2), NULL);
	start(&fixture);
	assert_int_equal(fixture.events.classes.count, VP_TRACE_EVENTS_COUNT + 2);
	assert_true(vp_import_events_next(&fixture.events, &fixture.cursor, &event));
	assert_false(event.is_own || event.is_strange);
	const struct vp_defined_record *record = event.record;
	assert_int_equal(record->id, VP_ID_DEFINED + VP_TRACE_EVENTS_COUNT);
	assert_int_equal(record->time, 10);
	assert_int_equal(record->size, sizeof(*record) + 12);
	assert_true(vp_import_events_next(&fixture.events, &fixture.cursor, &event));
	assert_false(event.is_own);
	end(&fixture);
	begin(&fixture, false);
	put(&fixture, SWITCH, 10, NUMBERS(5, 5, 120, 1, 6), NAMES("five", "six"));
	start(&fixture);
	assert_int_equal(fixture.events.classes.count, fixture.classes.count);
	assert_true(vp_import_events_next(&fixture.events, &fixture.cursor, &event));
	assert_false(event.is_own);
	record = event.record;
	assert_int_equal(record->id, VP_ID_DEFINED);
	assert_int_equal(event.n_names, 0);
	end(&fixture);
}

/* Another process says what there is: what is not as its class says ends it. */
static void test_damaged(void **state)
{
	struct vp_import_event event;
	struct vp_defined_record *record;
	struct fixture fixture;

	begin(&fixture, true);
	for (int kind = 0; kind < 6; kind++) {
		fixture.records.size = 0;
		put(&fixture, ENTRY, 10, NUMBERS(101, 0), NULL);
		memset(vp_buffer_extend(&fixture.records, 8), 0, 8);
		record = (void *)fixture.records.bytes;
		if (kind == 0)
			record->size--;
		else if (kind == 1)
			record->size += 4;
		else if (kind == 2)
			record->size = sizeof(*record) - 1;
		else if (kind == 3)
			record->id = VP_ID_DEFINED - 1;
		else if (kind == 4)
			record->id = (uint16_t)(VP_ID_DEFINED + fixture.classes.count);
		start(&fixture);
		assert_int_equal(vp_import_events_next(&fixture.events, &fixture.cursor, &event),
				 kind == 5);
	}
	fixture.records.size -= 9;
	start(&fixture);
	assert_false(vp_import_events_next(&fixture.events, &fixture.cursor, &event));
	end(&fixture);
}

static void entered(struct vp_import_vms *vms, uint32_t tid, uint32_t process, uint32_t vcpu)
{
	vp_vec_push(&vms->entered, ((struct vp_import_thread){tid, process, vcpu}));
}

/* "NAME PID: VCPU=TID …" of each. */
static void expect_vms(const struct vp_import_vms *vms, const char *expected)
{
	struct vp_buffer text = {0};

	vp_vec_each (&vms->vms, vm) {
		vp_buffer_printf(&text, "%s %u:", vm->name, vm->pid);
		vp_vec_each (&vm->vcpus, vcpu)
			vp_buffer_printf(&text, " %u=%u", vcpu->number, vcpu->tid);
		vp_buffer_string(&text, "\n");
	}
	assert_string_equal(vp_buffer_text(&text), expected);
	vp_buffer_deinit(&text);
}

/* Without processes: a number of a vCPU that is not higher than the last one's begins a VM. */
static void test_assumed(void **state)
{
	struct vp_import_vms vms = {0};
	vp_notices notes = {0};

	entered(&vms, 23, 0, 1);
	entered(&vms, 11, 0, 0);
	entered(&vms, 12, 0, 1);
	entered(&vms, 22, 0, 0);
	entered(&vms, 14, 0, 3);
	entered(&vms, 31, 0, 1);
	vp_import_vms_add_unknown(&vms, &notes);
	vp_import_vms_finish(&vms, 77);
	expect_vms(&vms, "vm-11 11: 0=11 1=12 3=14\nvm-22 22: 0=22 1=23\nvm-31 31: 1=31\n");
	assert_int_equal(notes.count, 1);
	assert_non_null(strstr(notes.at[0], "3 VMs are guessed from the order"));
	assert_int_equal(vms.vms.at[2].start, 77);
	vp_notices_deinit(&notes);
	vp_import_vms_deinit(&vms);
}

/* With them nothing is assumed; those that are claimed have their names. */
static void test_processes(void **state)
{
	struct vp_import_vms vms = {0};
	vp_notices notes = {0};

	entered(&vms, 12, 10, 0);
	entered(&vms, 22, 20, 0);
	entered(&vms, 13, 10, 1);
	entered(&vms, 24, 20, 1);
	assert_int_equal(vp_import_vms_claim(&vms, 20, 0, (struct vp_slice){"db\033", 3}), 0);
	assert_int_equal(vp_import_vms_claim(&vms, 30, 0, (struct vp_slice){"no", 2}), SIZE_MAX);
	vp_import_vms_add_unknown(&vms, &notes);
	vp_import_vms_finish(&vms, 5);
	expect_vms(&vms, "db? 20: 0=22 1=24\nvm-10 10: 0=12 1=13\n");
	assert_int_equal(notes.count, 0);
	/* The one that no guest's trace was found for. */
	assert_int_equal(vp_import_vms_only(&vms), SIZE_MAX);
	vms.taken.at[0] = true;
	assert_int_equal(vp_import_vms_only(&vms), 1);
	vms.taken.at[1] = true;
	assert_int_equal(vp_import_vms_only(&vms), SIZE_MAX);
	vp_import_vms_rename(&vms, 1, (struct vp_slice){"web", 3});
	expect_vms(&vms, "db? 20: 0=22 1=24\nweb 10: 0=12 1=13\n");
	/* Again is the same one, also by a thread of it. */
	assert_int_equal(vp_import_vms_claim(&vms, 20, 0, (struct vp_slice){"db", 2}), 0);
	assert_int_equal(vp_import_vms_claim(&vms, 0, 13, (struct vp_slice){"x", 1}), 1);
	assert_int_equal(vms.vms.count, 2);
	vp_notices_deinit(&notes);
	vp_import_vms_deinit(&vms);
}

/* By a thread, where processes are not known: only that one. */
static void test_claimed_threads(void **state)
{
	struct vp_import_vms vms = {0};
	vp_notices notes = {0};

	entered(&vms, 12, 0, 0);
	entered(&vms, 13, 0, 1);
	entered(&vms, 22, 0, 0);
	assert_int_equal(vp_import_vms_claim(&vms, 10, 13, (struct vp_slice){"web", 3}), 0);
	assert_int_equal(vp_import_vms_claim(&vms, 10, 99, (struct vp_slice){"no", 2}), SIZE_MAX);
	vp_import_vms_add_unknown(&vms, &notes);
	vp_import_vms_finish(&vms, 5);
	expect_vms(&vms, "web 13: 1=13\nvm-12 12: 0=12\nvm-22 22: 0=22\n");
	vp_notices_deinit(&notes);
	vp_import_vms_deinit(&vms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_scheduler),
	    cmocka_unit_test(test_vcpus),
	    cmocka_unit_test(test_kept),
	    cmocka_unit_test(test_damaged),
	    cmocka_unit_test(test_assumed),
	    cmocka_unit_test(test_processes),
	    cmocka_unit_test(test_claimed_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
