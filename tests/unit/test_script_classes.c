/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Roles and columns of the fields of all classes, and which classes are chosen. */
#include "unit.h"

#include <stdio.h>

#include "analyze/trace/script_classes.h"
#include "schema/records.h"
#include "schema/trace_event.h"

struct fixture {
	struct vp_intern columns;
	struct vp_script_classes host, guest;
	struct vp_script_classes *both[2];
};

static struct vp_event_class *add(vp_event_classes *classes, const char *name)
{
	struct vp_event_class *event;

	expect_no_error(vp_event_classes_add(classes, name, &event));
	return event;
}

static void add_field(struct vp_event_class *event, const char *name, enum vp_event_shape shape)
{
	const struct vp_event_field field = {.name = (char *)name,
					     .shape = shape,
					     .size = shape == VP_EVENT_INTEGER ? 4 : 1,
					     .is_text = shape != VP_EVENT_INTEGER,
					     .count = shape == VP_EVENT_ARRAY ? 16 : 0};

	expect_no_error(vp_event_class_add_field(event, &field));
}

static void add_event(vp_event_classes *classes, const char *name, const char *const *fields)
{
	struct vp_event_class *event = add(classes, name);

	for (; *fields; fields++)
		add_field(event, *fields, VP_EVENT_INTEGER);
}

/* Behind vperf's own events. */
enum {
	TRACEPOINT = VP_ID_DEFINED + VP_TRACE_EVENTS_COUNT,
	OF_XEN,
	NEARLY_OF_XEN,
	SHORT_OF_XEN,
	TEXTS,
	LATER_PID
};

static void begin(struct fixture *fixture)
{
	static const char *const tracepoint[] = {"common_pid", "vm",      "vcpu", "prev_tid",
						 "reason",     "flags",   "tid",  "guest_tid",
						 "reserved",   "time_ns", NULL};
	static const char *const xen[] = {"pcpu",   "vm",         "vcpu", "tid",
					  "reason", "reserved_2", NULL};
	static const char *const nearly[] = {"pcpu", "vcpu", "vm", "tid", NULL};
	static const char *const too_short[] = {"pcpu", "vm", NULL};
	static const char *const later[] = {"x", "common_pid", "tid", NULL};
	static const char *const guests[] = {"common_pid", "next_pid", NULL};
	vp_event_classes host = {0}, guest = {0};

	*fixture = (struct fixture){0};
	expect_no_error(vp_trace_event_classes(&host));
	add_event(&host, "block:block_rq_issue", tracepoint);
	add_event(&host, "xen:sched_switch", xen);
	add_event(&host, "xen:other", nearly);
	add_event(&host, "xen:third", too_short);
	struct vp_event_class *texts = add(&host, "texts");
	add_field(texts, "tid", VP_EVENT_STRING);
	add_field(texts, "comm", VP_EVENT_ARRAY);
	add_field(texts, "guest_tid", VP_EVENT_INTEGER);
	add_event(&host, "later:pid", later);
	add_event(&guest, "sched:sched_switch", guests);
	add_event(&guest, "net:netif_rx", guests);
	expect_no_error(vp_script_classes_init(&fixture->host, &host, &fixture->columns));
	expect_no_error(vp_script_classes_init(&fixture->guest, &guest, &fixture->columns));
	/* They are taken over. */
	assert_int_equal(host.count, 0);
	assert_null(host.at);
	assert_int_equal(guest.count, 0);
	fixture->both[0] = &fixture->host;
	fixture->both[1] = &fixture->guest;
}

static void end(struct fixture *fixture)
{
	vp_script_classes_deinit(&fixture->host);
	vp_script_classes_deinit(&fixture->guest);
	vp_intern_deinit(&fixture->columns);
}

static void choose(struct fixture *fixture, const char *const *names, size_t count)
{
	expect_no_error(vp_script_classes_choose(fixture->both, 2, names, count));
}

static const struct vp_script_class *class_of(const struct vp_script_classes *classes, uint32_t id)
{
	const struct vp_script_class *class = vp_script_classes_find(classes, id);

	assert_non_null(class);
	return class;
}

/* The roles in order of the fields; each field is as the class has it. */
static void expect_roles(const struct vp_script_class *class, const enum vp_script_role *roles,
			 size_t count)
{
	assert_int_equal(class->parts.count, count);
	for (size_t i = 0; i < count; i++) {
		const struct vp_script_part *part = &class->parts.at[i];
		assert_ptr_equal(part->field, &class->event->fields.at[i]);
		if (part->role != roles[i])
			fail_msg("%s of %s is %u, not %u", part->field->name, class->name,
				 part->role, roles[i]);
	}
}

#define EXPECT_ROLES(classes, id, ...)                                                             \
	expect_roles(class_of(classes, id), (const enum vp_script_role[]){__VA_ARGS__},            \
		     VP_ARRAY_SIZE(((const enum vp_script_role[]){__VA_ARGS__})))

/* Of each record of the schema and of each event that has a role at all. */
static void test_roles(void **state)
{
	struct fixture fixture;
	const struct vp_script_classes *host = &fixture.host;

	begin(&fixture);
	choose(&fixture, NULL, 0);
	EXPECT_ROLES(host, VP_ID_host_sample, VP_SCRIPT_FLAGS, VP_SCRIPT_PLAIN, VP_SCRIPT_TID,
		     VP_SCRIPT_PLAIN, VP_SCRIPT_HIDDEN, VP_SCRIPT_HIDDEN, VP_SCRIPT_PLAIN);
	EXPECT_ROLES(host, VP_ID_vcpu_sample, VP_SCRIPT_FLAGS, VP_SCRIPT_VM, VP_SCRIPT_TID,
		     VP_SCRIPT_PLAIN, VP_SCRIPT_VENDOR, VP_SCRIPT_VCPU, VP_SCRIPT_PLAIN,
		     VP_SCRIPT_REASON, VP_SCRIPT_HIDDEN);
	EXPECT_ROLES(host, VP_TRACE_ID_sched_switch, VP_SCRIPT_PREV_TID, VP_SCRIPT_OTHER_TID,
		     VP_SCRIPT_STATE, VP_SCRIPT_PREEMPTED);
	EXPECT_ROLES(host, VP_TRACE_ID_sched_wakeup, VP_SCRIPT_TID, VP_SCRIPT_OTHER_TID,
		     VP_SCRIPT_PLAIN);
	EXPECT_ROLES(host, VP_TRACE_ID_kvm_exit, VP_SCRIPT_TID, VP_SCRIPT_PLAIN, VP_SCRIPT_VM,
		     VP_SCRIPT_REASON, VP_SCRIPT_DETAIL, VP_SCRIPT_VCPU, VP_SCRIPT_VENDOR,
		     VP_SCRIPT_DETAIL_KIND);
	EXPECT_ROLES(host, VP_TRACE_ID_guest_switch, VP_SCRIPT_TID, VP_SCRIPT_VM,
		     VP_SCRIPT_GUEST_TID, VP_SCRIPT_PLAIN, VP_SCRIPT_PLAIN, VP_SCRIPT_VCPU,
		     VP_SCRIPT_SWITCH);
	/* The kernel's tracepoints: only who had the CPU. */
	EXPECT_ROLES(host, TRACEPOINT, VP_SCRIPT_TID, VP_SCRIPT_PLAIN, VP_SCRIPT_PLAIN,
		     VP_SCRIPT_PLAIN, VP_SCRIPT_PLAIN, VP_SCRIPT_PLAIN, VP_SCRIPT_PLAIN,
		     VP_SCRIPT_PLAIN, VP_SCRIPT_PLAIN, VP_SCRIPT_PLAIN);
	/* The hypervisor's: the first three, in that order. */
	EXPECT_ROLES(host, OF_XEN, VP_SCRIPT_PCPU, VP_SCRIPT_VM, VP_SCRIPT_VCPU, VP_SCRIPT_PLAIN,
		     VP_SCRIPT_PLAIN, VP_SCRIPT_PLAIN);
	assert_true(class_of(host, OF_XEN)->of_hypervisor);
	EXPECT_ROLES(host, NEARLY_OF_XEN, VP_SCRIPT_PLAIN, VP_SCRIPT_VCPU, VP_SCRIPT_VM,
		     VP_SCRIPT_TID);
	assert_false(class_of(host, NEARLY_OF_XEN)->of_hypervisor);
	EXPECT_ROLES(host, SHORT_OF_XEN, VP_SCRIPT_PLAIN, VP_SCRIPT_VM);
	assert_false(class_of(host, SHORT_OF_XEN)->of_hypervisor);
	/* A text is no number of a thread. */
	EXPECT_ROLES(host, TEXTS, VP_SCRIPT_PLAIN, VP_SCRIPT_PLAIN, VP_SCRIPT_GUEST_TID);
	EXPECT_ROLES(host, LATER_PID, VP_SCRIPT_PLAIN, VP_SCRIPT_PLAIN, VP_SCRIPT_TID);
	EXPECT_ROLES(&fixture.guest, VP_ID_DEFINED, VP_SCRIPT_TID, VP_SCRIPT_PLAIN);
	/* Only what the recording defines has threads of guests, and a hypervisor. */
	vp_vec_each (&host->all, class)
		if (class->event && class - host->all.at < VP_ID_DEFINED) {
			assert_false(class->of_hypervisor);
			vp_vec_each (&class->parts, part)
				assert_int_not_equal(part->role, VP_SCRIPT_GUEST_TID);
		}
	end(&fixture);
}

static void expect_column(const struct fixture *fixture, const struct vp_script_column *column,
			  const char *name)
{
	if (!name) {
		assert_null(column->name);
		return;
	}
	assert_string_equal(column->name, name);
	assert_int_equal(column->name_size, strlen(name));
	assert_string_equal(vp_intern_text(&fixture->columns, column->number), name);
}

static void test_columns(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	choose(&fixture, NULL, 0);
	const struct vp_script_part *parts =
	    class_of(&fixture.host, VP_TRACE_ID_sched_switch)->parts.at;
	expect_column(&fixture, &parts[0].column, "prev_tid");
	expect_column(&fixture, &parts[0].comm_column, NULL);
	expect_column(&fixture, &parts[1].column, "next_tid");
	expect_column(&fixture, &parts[1].comm_column, "next_comm");
	expect_column(&fixture, &parts[2].column, "prev_state");
	expect_column(&fixture, &parts[3].column, NULL);
	parts = class_of(&fixture.host, VP_TRACE_ID_guest_switch)->parts.at;
	expect_column(&fixture, &parts[0].column, NULL);
	expect_column(&fixture, &parts[1].column, NULL);
	expect_column(&fixture, &parts[2].column, "guest_tid");
	expect_column(&fixture, &parts[2].comm_column, "guest_comm");
	expect_column(&fixture, &parts[5].column, NULL);
	expect_column(&fixture, &parts[6].column, "switch_flags");
	parts = class_of(&fixture.host, VP_TRACE_ID_kvm_exit)->parts.at;
	expect_column(&fixture, &parts[1].column, "guest_rip");
	expect_column(&fixture, &parts[3].column, "reason");
	expect_column(&fixture, &parts[4].column, "detail");
	expect_column(&fixture, &parts[6].column, NULL);
	expect_column(&fixture, &parts[7].column, NULL);
	/* Names of columns that all events have. */
	parts = class_of(&fixture.host, TRACEPOINT)->parts.at;
	expect_column(&fixture, &parts[0].column, NULL);
	expect_column(&fixture, &parts[1].column, "its_vm");
	expect_column(&fixture, &parts[2].column, "its_vcpu");
	expect_column(&fixture, &parts[3].column, "prev_tid");
	expect_column(&fixture, &parts[6].column, "its_tid");
	expect_column(&fixture, &parts[8].column, "reserved");
	expect_column(&fixture, &parts[9].column, "its_time_ns");
	parts = class_of(&fixture.host, OF_XEN)->parts.at;
	expect_column(&fixture, &parts[0].column, NULL);
	expect_column(&fixture, &parts[2].column, NULL);
	expect_column(&fixture, &parts[3].column, "its_tid");
	parts = class_of(&fixture.host, TEXTS)->parts.at;
	expect_column(&fixture, &parts[0].column, "its_tid");
	expect_column(&fixture, &parts[1].column, "its_comm");
	/* Both machines have the same columns. */
	const struct vp_script_part *guest = class_of(&fixture.guest, VP_ID_DEFINED)->parts.at;
	expect_column(&fixture, &guest[1].column, "next_pid");
	/* Of classes that are not chosen there are none. */
	parts = class_of(&fixture.host, VP_ID_task)->parts.at;
	assert_int_equal(class_of(&fixture.host, VP_ID_task)->parts.count, 5);
	for (size_t i = 0; i < 5; i++)
		expect_column(&fixture, &parts[i].column, NULL);
	end(&fixture);
}

/* Without names: all but what is part of other records or says what threads are called. */
static void test_all(void **state)
{
	static const uint32_t hidden[] = {VP_ID_task,
					  VP_ID_clock_sync,
					  VP_ID_guest_task,
					  VP_ID_guest_regs,
					  VP_ID_chain_frames,
					  VP_ID_chain_stack,
					  VP_ID_vcpu_account,
					  VP_ID_exit_account,
					  VP_ID_exit_bucket,
					  VP_ID_thief,
					  VP_ID_exit_site,
					  VP_ID_account_loss,
					  VP_ID_interval_value,
					  VP_ID_exit_site_detail,
					  VP_ID_exit_site_address,
					  VP_ID_exit_site_waits,
					  VP_ID_exit_sampling,
					  VP_ID_wake_bucket,
					  VP_ID_vm_samples};
	struct fixture fixture;

	begin(&fixture);
	choose(&fixture, NULL, 0);
	for (uint32_t id = 0; id < fixture.host.all.count; id++) {
		const struct vp_script_class *class = vp_script_classes_find(&fixture.host, id);
		bool is_hidden = false;
		for (size_t i = 0; i < VP_ARRAY_SIZE(hidden); i++)
			is_hidden |= hidden[i] == id;
		if (id < VP_ID_DEFINED) {
			assert_int_equal(class != NULL, vp_record_type(id) != NULL);
			if (class)
				assert_string_equal(class->name, vp_record_type(id)->name);
		} else {
			assert_non_null(class);
			assert_string_equal(class->name, class->event->name);
			assert_int_equal(class->event->id, id);
		}
		if (class && class->chosen == is_hidden)
			fail_msg("%s is %schosen", class->name, class->chosen ? "" : "not ");
	}
	assert_int_equal(fixture.host.all.count, LATER_PID + 1);
	assert_null(vp_script_classes_find(&fixture.host, LATER_PID + 1));
	assert_null(vp_script_classes_find(&fixture.host, VP_ID_MAX + 1));
	assert_null(vp_script_classes_find(&fixture.guest, VP_ID_DEFINED + 2));
	end(&fixture);
}

/* As many as there is room for: behind the last one is none. */
static void test_last(void **state)
{
	struct vp_script_classes classes;
	struct vp_intern columns = {0};
	vp_event_classes defined = {0};

	for (unsigned i = 0; i < VP_ID_DEFINED; i++) {
		char name[16];
		snprintf(name, sizeof(name), "event%u", i);
		add(&defined, name);
	}
	expect_no_error(vp_script_classes_init(&classes, &defined, &columns));
	assert_int_equal(classes.all.count, 2 * VP_ID_DEFINED);
	assert_non_null(vp_script_classes_find(&classes, 2 * VP_ID_DEFINED - 1));
	assert_null(vp_script_classes_find(&classes, 2 * VP_ID_DEFINED));
	vp_script_classes_deinit(&classes);
	vp_intern_deinit(&columns);
}

static void expect_chosen(const char *const *names, size_t count, const uint32_t *host,
			  size_t n_host, size_t n_guest)
{
	struct fixture fixture;
	size_t chosen = 0, of_guest = 0;

	begin(&fixture);
	choose(&fixture, names, count);
	vp_vec_each (&fixture.host.all, class)
		chosen += class->chosen;
	vp_vec_each (&fixture.guest.all, class)
		of_guest += class->chosen;
	assert_int_equal(chosen, n_host);
	assert_int_equal(of_guest, n_guest);
	for (size_t i = 0; i < n_host; i++)
		assert_true(class_of(&fixture.host, host[i])->chosen);
	end(&fixture);
}

#define EXPECT_CHOSEN(n_guest, n_host, host, ...)                                                  \
	expect_chosen((const char *const[]){__VA_ARGS__},                                          \
		      VP_ARRAY_SIZE(((const char *const[]){__VA_ARGS__})), host, n_host, n_guest)

/* By names, with their system or without, of all machines; or by patterns. */
static void test_names(void **state)
{
	static const uint32_t exits[] = {VP_TRACE_ID_kvm_exit};
	static const uint32_t switches[] = {VP_TRACE_ID_sched_switch, OF_XEN};
	static const uint32_t kvm[] = {VP_TRACE_ID_kvm_entry, VP_TRACE_ID_kvm_exit,
				       VP_TRACE_ID_kvm_inj_virq};
	static const uint32_t two[] = {VP_TRACE_ID_kvm_exit, VP_ID_task};
	static const uint32_t entries[] = {VP_TRACE_ID_kvm_entry, VP_TRACE_ID_irq_handler_entry,
					   VP_TRACE_ID_softirq_entry,
					   VP_TRACE_ID_local_timer_entry};

	EXPECT_CHOSEN(0, 1, exits, "kvm_exit");
	EXPECT_CHOSEN(0, 1, exits, "kvm:kvm_exit");
	EXPECT_CHOSEN(1, 2, switches, "sched_switch");
	EXPECT_CHOSEN(1, 1, switches, "sched:sched_switch");
	EXPECT_CHOSEN(0, 1, switches + 1, "xen:sched_switch");
	EXPECT_CHOSEN(0, 3, kvm, "kvm:*");
	EXPECT_CHOSEN(0, 4, entries, "*_entry");
	EXPECT_CHOSEN(1, 0, NULL, "netif_rx");
	/* A sum or a name, too, if it is asked for; of every machine. */
	EXPECT_CHOSEN(1, 2, two, "kvm_exit", "task");
}

static void test_unknown(void **state)
{
	static const char *const second[] = {"kvm_exit", "netif_rxx"};
	static const char *const with_system[] = {"kvm:kvm_exti"};
	static const char *const nothing_like_it[] = {"qqqqqqqqqqqqqqqqqqqqqqq"};
	struct fixture fixture;

	begin(&fixture);
	/* What is near is looked for in all machines. */
	expect_error(vp_script_classes_choose(fixture.both, 2, second, 2),
		     "the recording has no event 'netif_rxx' (did you mean netif_rx?)");
	end(&fixture);
	begin(&fixture);
	expect_error(vp_script_classes_choose(fixture.both, 2, with_system, 1),
		     "no event 'kvm:kvm_exti' (did you mean kvm:kvm_exit");
	end(&fixture);
	begin(&fixture);
	struct vp_error *error = vp_script_classes_choose(fixture.both, 2, nothing_like_it, 1);
	assert_non_null(error);
	assert_string_equal(vp_error_message(error),
			    "the recording has no event 'qqqqqqqqqqqqqqqqqqqqqqq'");
	vp_error_free(error);
	end(&fixture);
}

/* Fields of the schema's records as those of an event: integers, texts, arrays of words. */
static void test_fixed(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	choose(&fixture, NULL, 0);
	const struct vp_event_class *task = class_of(&fixture.host, VP_ID_task)->event;
	const struct vp_event_field *comm = &task->fields.at[task->fields.count - 1];
	assert_string_equal(comm->name, "comm");
	assert_int_equal(comm->shape, VP_EVENT_ARRAY);
	assert_int_equal(comm->size, 1);
	assert_int_equal(comm->count, 16);
	assert_true(comm->is_text);
	const struct vp_event_class *frames = class_of(&fixture.host, VP_ID_chain_frames)->event;
	const struct vp_event_field *ips = &frames->fields.at[frames->fields.count - 1];
	assert_string_equal(ips->name, "ips");
	assert_int_equal(ips->shape, VP_EVENT_ARRAY);
	assert_int_equal(ips->size, 8);
	assert_int_equal(ips->count, sizeof(((struct vp_chain_frames *)NULL)->ips) / 8);
	assert_false(ips->is_text);
	assert_true(ips->is_hex);
	/* Flags u16 hex, pid u32 dec, …, ip u64 hex. */
	const struct vp_event_field *host =
	    class_of(&fixture.host, VP_ID_host_sample)->event->fields.at;
	assert_true(host[0].size == 2 && host[0].is_hex && host[0].shape == VP_EVENT_INTEGER);
	assert_true(host[1].size == 4 && !host[1].is_hex && !host[1].is_signed);
	assert_true(host[3].size == 1 && host[3].count == 0);
	assert_true(host[6].size == 8 && host[6].is_hex);
	/* As many bytes as the record has behind its header. */
	for (uint32_t id = 0; id <= VP_ID_MAX; id++) {
		const struct vp_script_class *class = vp_script_classes_find(&fixture.host, id);
		if (class)
			assert_int_equal(class->event->fixed_size,
					 vp_record_size(id) - sizeof(struct vp_record_header));
	}
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_roles),   cmocka_unit_test(test_columns),
	    cmocka_unit_test(test_all),     cmocka_unit_test(test_names),
	    cmocka_unit_test(test_unknown), cmocka_unit_test(test_last),
	    cmocka_unit_test(test_fixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
