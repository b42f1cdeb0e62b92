/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of a recording as structs, with the names of threads, of two VMs with two vCPUs each. */
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "analyze/trace/trace_feed.h"
#include "base/alloc.h"
#include "made_events.h"
#include "schema/account_terms.h"
#include "schema/records.h"

#define NAME "test_trace_feed.rec"

/* The guests have no events here. */
static const char *name_of(uint32_t tid)
{
	return tid ? "thread" : "idle";
}

static void put_task(struct made *made, uint32_t pcpu, uint64_t ns, uint32_t pid, uint32_t tid,
		     const char *comm)
{
	struct vp_task task = {.time = AT(ns), .id = VP_ID_task, .pid = pid, .tid = tid};

	memcpy(task.comm, comm, strlen(comm));
	made_event(made, pcpu, &task);
}

static void put_guest_task(struct made *made, uint64_t ns, uint32_t vm, uint32_t tid,
			   const char *comm)
{
	struct vp_guest_task task = {
	    .time = AT(ns), .id = VP_ID_guest_task, .vm = vm, .guest_pid = 9, .guest_tid = tid};

	memcpy(task.comm, comm, strlen(comm));
	made_event(made, 0, &task);
}

static bool is_noted(const struct vp_feed *feed, const char *part)
{
	vp_vec_each (&feed->notes, note)
		if (strstr(*note, part))
			return true;
	return false;
}

/* Reads on to the end; yields how many there were. */
static size_t read_on(struct vp_feed *feed)
{
	struct vp_feed_event event;
	size_t count = 0;

	while (vp_feed_next(feed, &event))
		count++;
	assert_false(vp_feed_next(feed, &event));
	return count;
}

/* In order of time, of the pCPU whose stream it is, each with its own struct. */
static void test_events(void **state)
{
	struct vp_feed_event event;
	struct made made;
	struct vp_feed feed;

	begin(&made, NAME, 2, 2);
	change(&made, 0, 100, 0, 2002, 0);
	PUT(&made, 1, 200, kvm_exit, .tid = 1001, .vm = 1000, .vcpu = 1, .reason = 5);
	wake(&made, 0, 300, 2002, 1001, 1);
	PUT(&made, 1, 400, guest_switch, .tid = 1001, .vm = 1000, .guest_tid = 77, .vcpu = 1);
	PUT(&made, 0, 500, kvm_entry, .tid = 2002, .vm = 2000, .vcpu = 1);
	end(&made);
	expect_no_error(vp_feed_open(NAME, &feed));
	assert_int_equal(feed.vms.count, 2);
	assert_int_equal(feed.first, 0);
	assert_true(vp_feed_next(&feed, &event));
	assert_int_equal(event.kind, VP_TRACE_KIND_sched_switch);
	assert_int_equal(event.time, AT(100));
	assert_int_equal(event.pcpu, 0);
	assert_int_equal(event.sched_switch->next_tid, 2002);
	assert_int_equal(feed.first, AT(100));
	assert_int_equal(feed.last, AT(100));
	assert_true(vp_feed_next(&feed, &event));
	assert_int_equal(event.kind, VP_TRACE_KIND_kvm_exit);
	assert_int_equal(event.pcpu, 1);
	assert_int_equal(event.kvm_exit->vm, 1000);
	assert_int_equal(event.kvm_exit->reason, 5);
	assert_true(vp_feed_next(&feed, &event));
	assert_int_equal(event.kind, VP_TRACE_KIND_sched_wakeup);
	assert_int_equal(event.sched_wakeup->woken_tid, 1001);
	assert_int_equal(event.pcpu, 0);
	assert_true(vp_feed_next(&feed, &event));
	assert_int_equal(event.kind, VP_TRACE_KIND_guest_switch);
	assert_int_equal(event.guest_switch->guest_tid, 77);
	assert_true(vp_feed_next(&feed, &event));
	assert_int_equal(event.kind, VP_TRACE_KIND_kvm_entry);
	assert_int_equal(event.time, AT(500));
	assert_int_equal(event.kvm_entry->tid, 2002);
	assert_int_equal(feed.first, AT(100));
	assert_int_equal(feed.last, AT(500));
	assert_int_equal(feed.counts[VP_TRACE_KIND_sched_switch], 1);
	assert_int_equal(feed.counts[VP_TRACE_KIND_kvm_exit], 1);
	assert_int_equal(feed.counts[VP_TRACE_KIND_irq_handler_entry], 0);
	assert_false(vp_feed_next(&feed, &event));
	assert_false(vp_feed_next(&feed, &event));
	assert_int_equal(feed.notes.count, 0);
	assert_int_equal(feed.unreadable, 0);
	vp_feed_close(&feed);
	assert_int_equal(feed.vms.count, 0);
}

/* As of the last event that was read; a guest's threads are its own. */
static void test_names(void **state)
{
	struct vp_feed_event event;
	struct made made;
	struct vp_feed feed;

	begin(&made, NAME, 2, 1);
	put_task(&made, 0, 100, 40, 55, "first\033");
	put_guest_task(&made, 100, 1000, 55, "of vm0");
	put_guest_task(&made, 100, 2000, 55, "of vm1, long on");
	put_guest_task(&made, 100, 2000, 0, "no idle task");
	put_task(&made, 0, 100, 0, 0, "no swapper");
	change(&made, 0, 200, 55, 0, 0);
	put_task(&made, 0, 300, 41, 55, "sixteen letters!");
	put_guest_task(&made, 300, 1000, 56, "other");
	change(&made, 0, 400, 0, 55, 0);
	end(&made);
	expect_no_error(vp_feed_open(NAME, &feed));
	assert_null(vp_feed_comm(&feed, 55));
	assert_true(vp_feed_next(&feed, &event));
	assert_int_equal(feed.comm_of_guest_tid.count, 3);
	assert_int_equal(feed.comm_of_tid.count, 2);
	assert_string_equal(vp_feed_comm(&feed, 55), "first?");
	assert_int_equal(vp_feed_pid(&feed, 55), 40);
	assert_int_equal(vp_feed_pid(&feed, 56), 0);
	assert_null(vp_feed_comm(&feed, 56));
	assert_string_equal(vp_feed_comm(&feed, 0), "swapper");
	assert_string_equal(vp_feed_guest_comm(&feed, 1000, 55), "of vm0");
	assert_string_equal(vp_feed_guest_comm(&feed, 2000, 55), "of vm1, long on");
	assert_string_equal(vp_feed_guest_comm(&feed, 2000, 0), "swapper");
	assert_null(vp_feed_guest_comm(&feed, 1000, 56));
	assert_null(vp_feed_guest_comm(&feed, 3000, 55));
	const char *kept = vp_feed_comm(&feed, 55);
	assert_true(vp_feed_next(&feed, &event));
	assert_string_equal(vp_feed_comm(&feed, 55), "sixteen letters!");
	assert_int_equal(vp_feed_pid(&feed, 55), 41);
	assert_string_equal(vp_feed_guest_comm(&feed, 1000, 56), "other");
	assert_null(vp_feed_guest_comm(&feed, 2000, 56));
	assert_string_equal(kept, "first?");
	vp_feed_close(&feed);
}

/* vperf's own classes, but for those that an older version had otherwise, in another order. */
static void begin_with_other_classes(struct made *made)
{
	vp_event_classes classes = {0}, own = {0};
	struct vp_event_class *event;

	made_begin(made, NAME, 1);
	expect_no_error(vp_trace_event_classes(&own));
	for (size_t i = own.count; i-- > 0;) {
		bool is_exit = i == VP_TRACE_KIND_kvm_exit;
		expect_no_error(vp_event_classes_add(&classes, own.at[i].name, &event));
		vp_vec_each (&own.at[i].fields, field) {
			struct vp_event_field copy = *field;
			if (is_exit && !strcmp(field->name, "detail"))
				copy.name = (char *)"other_detail";
			expect_no_error(vp_event_class_add_field(event, &copy));
		}
	}
	vp_event_classes_deinit(&own);
	expect_no_error(vp_trace_writer_define(made->writer, &classes));
	vp_event_classes_deinit(&classes);
	made->pcpus = 1;
}

static uint16_t id_of(enum vp_trace_kind kind)
{
	return (uint16_t)(VP_ID_DEFINED + VP_TRACE_EVENTS_COUNT - 1 - kind);
}

/* By name and fields, whatever number they have; what differs is left out without a word. */
static void test_other_classes(void **state)
{
	struct vp_trace_sched_switch switched = {.time = AT(100),
						 .id = id_of(VP_TRACE_KIND_sched_switch),
						 .size = VP_TRACE_SIZE_sched_switch,
						 .next_tid = 7};
	struct vp_trace_kvm_exit left = {
	    .time = AT(200), .id = id_of(VP_TRACE_KIND_kvm_exit), .size = VP_TRACE_SIZE_kvm_exit};
	struct vp_trace_kvm_entry entered = {.time = AT(300),
					     .id = id_of(VP_TRACE_KIND_kvm_entry),
					     .size = VP_TRACE_SIZE_kvm_entry,
					     .vm = 1000};
	struct vp_feed_event event;
	struct made made;
	struct vp_feed feed;

	begin_with_other_classes(&made);
	made_event(&made, 0, &switched);
	made_event(&made, 0, &left);
	made_event(&made, 0, &entered);
	end(&made);
	expect_no_error(vp_feed_open(NAME, &feed));
	assert_true(vp_feed_next(&feed, &event));
	assert_int_equal(event.kind, VP_TRACE_KIND_sched_switch);
	assert_int_equal(event.sched_switch->next_tid, 7);
	assert_true(vp_feed_next(&feed, &event));
	assert_int_equal(event.kind, VP_TRACE_KIND_kvm_entry);
	assert_int_equal(event.kvm_entry->vm, 1000);
	assert_false(vp_feed_next(&feed, &event));
	assert_int_equal(feed.counts[VP_TRACE_KIND_kvm_exit], 0);
	assert_int_equal(feed.unreadable, 0);
	assert_int_equal(feed.notes.count, 0);
	vp_feed_close(&feed);
}

/* One field of a class is of another size or shape, or there is one more or less. */
static void test_other_fields(void **state)
{
	static const struct {
		uint8_t size;
		enum vp_event_shape shape;
		bool more, less, same;
	} cases[] = {{4, VP_EVENT_INTEGER, false, false, true},
		     {8, VP_EVENT_INTEGER, false, false, false},
		     {4, VP_EVENT_SEQUENCE, false, false, false},
		     {4, VP_EVENT_INTEGER, true, false, false},
		     {4, VP_EVENT_INTEGER, false, true, false}};
	static const struct vp_event_field extra = {.name = (char *)"more", .size = 1};

	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		vp_event_classes classes = {0}, own = {0};
		struct vp_event_class *event;
		struct made made;
		struct vp_feed feed;

		made_begin(&made, NAME, 1);
		expect_no_error(vp_trace_event_classes(&own));
		expect_no_error(vp_event_classes_add(&classes, own.at[0].name, &event));
		vp_vec_each (&own.at[0].fields, field) {
			struct vp_event_field copy = *field;
			bool is_first = field == own.at[0].fields.at;
			copy.size = is_first ? cases[i].size : copy.size;
			copy.shape = is_first ? cases[i].shape : copy.shape;
			if (!cases[i].less || field - own.at[0].fields.at + 1 < 4)
				expect_no_error(vp_event_class_add_field(event, &copy));
		}
		if (cases[i].more)
			expect_no_error(vp_event_class_add_field(event, &extra));
		expect_no_error(vp_trace_writer_define(made.writer, &classes));
		vp_event_classes_deinit(&own);
		vp_event_classes_deinit(&classes);
		made_end(&made, 10);
		expect_no_error(vp_feed_open(NAME, &feed));
		assert_int_equal(feed.kind_of_id[0], cases[i].same ? 1 : 0);
		vp_feed_close(&feed);
	}
}

/* A record that is shorter or longer than its class says is skipped and counted. */
static void test_unreadable(void **state)
{
	static const int off[] = {-1, 1, 0};
	struct made made;
	struct vp_feed feed;

	begin(&made, NAME, 1, 1);
	for (size_t i = 0; i < VP_ARRAY_SIZE(off); i++) {
		char bytes[64] = {0};
		struct vp_trace_sched_switch record = {
		    .time = AT(100 + i),
		    .id = VP_TRACE_ID_sched_switch,
		    .size = (uint16_t)(VP_TRACE_SIZE_sched_switch + off[i])};
		memcpy(bytes, &record, VP_TRACE_SIZE_sched_switch);
		made_event(&made, 0, bytes);
	}
	/* Of no class. */
	struct vp_defined_record unknown = {
	    .time = AT(200), .id = VP_ID_DEFINED + VP_TRACE_EVENTS_COUNT, .size = 12};
	made_event(&made, 0, &unknown);
	unknown.id = VP_ID_DEFINED + 64;
	made_event(&made, 0, &unknown);
	unknown.id = UINT16_MAX;
	made_event(&made, 0, &unknown);
	end(&made);
	expect_no_error(vp_feed_open(NAME, &feed));
	assert_int_equal(read_on(&feed), 1);
	assert_int_equal(feed.unreadable, 2);
	assert_int_equal(feed.first, AT(102));
	assert_int_equal(feed.last, AT(102));
	assert_int_equal(feed.counts[VP_TRACE_KIND_sched_switch], 1);
	assert_true(is_noted(&feed, "2 events do not match the recording's event classes and "
				    "were skipped"));
	assert_int_equal(feed.notes.count, 1);
	vp_feed_close(&feed);
}

/* What is missing, and whether that can be changed. */
static void test_notes(void **state)
{
	struct vp_feed_event event;
	struct made made;
	struct vp_feed feed;

	begin(&made, NAME, 1, 1);
	PUT(&made, 0, 100, kvm_entry, .tid = 1001, .vm = 1000);
	end(&made);
	expect_no_error(vp_feed_open(NAME, &feed));
	assert_true(vp_feed_next(&feed, &event));
	assert_int_equal(feed.notes.count, 0);
	assert_false(vp_feed_next(&feed, &event));
	assert_int_equal(feed.notes.count, 1);
	assert_true(
	    is_noted(&feed, "no scheduler events (set 'sched'): times without a pCPU are unknown"));
	vp_feed_close(&feed);
	begin(&made, NAME, 1, 1);
	made.about.imported = vp_strdup("perf");
	PUT(&made, 0, 100, kvm_entry, .tid = 1001, .vm = 1000);
	vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_TRACE, 0}, 3);
	made_end(&made, 10);
	expect_no_error(vp_feed_open(NAME, &feed));
	assert_int_equal(read_on(&feed), 1);
	assert_true(is_noted(&feed, "no scheduler events: times"));
	assert_true(is_noted(&feed, "3 records were lost while recording"));
	assert_int_equal(feed.notes.count, 2);
	vp_feed_close(&feed);
	/* Samples that were lost are none of its own. */
	begin(&made, NAME, 1, 1);
	change(&made, 0, 100, 0, 5, 0);
	vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_TRACE, 0}, 0);
	made_host(&made, 0, 1, 5, VP_MODE_USER);
	made.lost = 9;
	made_end(&made, 10);
	expect_no_error(vp_feed_open(NAME, &feed));
	assert_int_equal(read_on(&feed), 1);
	assert_int_equal(feed.notes.count, 0);
	vp_feed_close(&feed);
}

static void test_none(void **state)
{
	struct made made;
	struct vp_feed feed;

	made_begin(&made, NAME, 1);
	made_end(&made, 10);
	expect_error(vp_feed_open(NAME, &feed), "the recording has no events: 'vperf record "
						"--trace' records them");
	assert_int_equal(feed.vms.count, 0);
	made_begin(&made, NAME, 1);
	made.about.imported = vp_strdup("perf");
	made_end(&made, 10);
	struct vp_error *error = vp_feed_open(NAME, &feed);
	assert_non_null(error);
	assert_string_equal(vp_error_message(error), "the recording has no events");
	vp_error_free(error);
	expect_error(vp_feed_open("nowhere", &feed), "there is no recording 'nowhere'");
	made_begin(&made, NAME, 1);
	made_end(&made, 10);
	temporary_file(NAME "/host.events", "nonsense", 8);
	expect_error(vp_feed_open(NAME, &feed), "host.events");
}

/* Domains have no processes: their vCPUs' states take the place of the scheduler's events. */
static void make_domains(struct made *made, bool with_states)
{
	const struct vp_stream_id states = {VP_STREAM_STATES, VP_NO_PCPU};
	struct vp_vcpu_span span = {.id = VP_ID_vcpu_span,
				    .vm = 2000,
				    .tid = 2002,
				    .vcpu = 1,
				    .state = VP_STATE_HALTED,
				    .ns = 50};

	begin(made, NAME, 2, 1);
	made->vms.at[1].has_domain = true;
	made->vms.at[1].domain = 3;
	change(made, 0, 200, 0, 5, 0);
	if (with_states) {
		span.time = AT(100);
		vp_trace_append(made->writer, states, &span);
		span.time = AT(300);
		span.state = VP_STATE_GUEST;
		vp_trace_append(made->writer, states, &span);
		vp_trace_flush(made->writer, states, 0);
	}
	end(made);
}

static void test_states(void **state)
{
	struct vp_feed_event event;
	struct made made;
	struct vp_feed feed;

	make_domains(&made, true);
	expect_no_error(vp_feed_open(NAME, &feed));
	assert_true(feed.by_states);
	assert_true(vp_feed_next(&feed, &event));
	assert_int_equal(event.kind, VP_FEED_SPAN);
	assert_int_equal(event.time, AT(100));
	assert_int_equal(event.pcpu, VP_NO_PCPU);
	assert_int_equal(event.span->vm, 2000);
	assert_int_equal(event.span->state, VP_STATE_HALTED);
	assert_int_equal(feed.first, AT(100));
	assert_true(vp_feed_next(&feed, &event));
	assert_int_equal(event.kind, VP_TRACE_KIND_sched_switch);
	assert_true(vp_feed_next(&feed, &event));
	assert_int_equal(event.kind, VP_FEED_SPAN);
	assert_int_equal(event.span->state, VP_STATE_GUEST);
	assert_int_equal(feed.last, AT(300));
	assert_false(vp_feed_next(&feed, &event));
	assert_int_equal(feed.notes.count, 1);
	assert_true(is_noted(&feed, "the threads of these guests are unknown"));
	vp_feed_close(&feed);
	make_domains(&made, false);
	expect_error(vp_feed_open(NAME, &feed), "the recording has no vCPU states in time order");
	/* Processes have states, too, if they are recorded: no events. */
	make_domains(&made, true);
	expect_no_error(vp_vms_write(NAME, &(vp_vms){0}));
	expect_no_error(vp_feed_open(NAME, &feed));
	assert_false(feed.by_states);
	assert_int_equal(read_on(&feed), 1);
	vp_feed_close(&feed);
	/* States are enough. */
	make_domains(&made, true);
	unlink(NAME "/host.events");
	expect_no_error(vp_feed_open(NAME, &feed));
	assert_int_equal(read_on(&feed), 2);
	vp_feed_close(&feed);
}

/* Whether there is something to ask for, without reading it. */
static void test_is_recorded(void **state)
{
	struct vp_recording trace = {.instruments = (char *)"profile trace"};
	struct vp_recording none = {.instruments = (char *)"profile tracer"};
	struct vp_vm vms[2] = {{.pid = 1}, {.pid = 2}};
	const vp_vms processes = {.at = vms, .count = 2};
	struct made made;

	make_domains(&made, true);
	assert_true(vp_feed_is_recorded(NAME, &trace, &processes));
	assert_false(vp_feed_is_recorded(NAME, &none, &processes));
	vms[1].has_domain = true;
	assert_true(vp_feed_is_recorded(NAME, &none, &processes));
	make_domains(&made, false);
	assert_false(vp_feed_is_recorded(NAME, &trace, &processes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_events),        cmocka_unit_test(test_names),
	    cmocka_unit_test(test_other_classes), cmocka_unit_test(test_other_fields),
	    cmocka_unit_test(test_unreadable),    cmocka_unit_test(test_notes),
	    cmocka_unit_test(test_none),          cmocka_unit_test(test_states),
	    cmocka_unit_test(test_is_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
