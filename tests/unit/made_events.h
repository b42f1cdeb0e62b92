/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings with events of the host and of guests, made by tests; times are in ns. */
#ifndef VP_TESTS_MADE_EVENTS_H
#define VP_TESTS_MADE_EVENTS_H

#include "make_recording.h"
#include "unit.h"

#define AT(ns) (MADE_START + (ns))

enum { SLEEPS = 1 };

#define PUT(made, pcpu, ns, event, ...) MADE_EVENT(made, pcpu, AT(ns), event, __VA_ARGS__)

static inline void change(struct made *made, uint32_t pcpu, uint64_t ns, uint32_t prev,
			  uint32_t next, uint16_t state)
{
	PUT(made, pcpu, ns, sched_switch, .prev_tid = prev, .next_tid = next, .prev_state = state);
}

static inline void wake(struct made *made, uint32_t pcpu, uint64_t ns, uint32_t by, uint32_t tid,
			uint32_t target)
{
	PUT(made, pcpu, ns, sched_wakeup, .tid = by, .woken_tid = tid, .target_cpu = target);
}

static inline void put_name(struct made *made, uint32_t tid, const char *comm)
{
	struct vp_task task = {.time = AT(1), .id = VP_ID_task, .pid = tid, .tid = tid};

	memcpy(task.comm, comm, strlen(comm));
	made_event(made, 0, &task);
}

/* The guest's tracepoints, with the fields that matter and one that does not. */
static inline struct vp_event_class *add_class(vp_event_classes *classes, const char *name,
					       const char *const *fields)
{
	struct vp_event_class *class;

	expect_no_error(vp_event_classes_add(classes, name, &class));
	for (; *fields; fields++) {
		bool is_text = strstr(*fields, "comm") && strcmp(*fields, "common_pid") != 0;
		const struct vp_event_field field = {.name = (char *)*fields,
						     .shape = is_text ? VP_EVENT_ARRAY
								      : VP_EVENT_INTEGER,
						     .size = is_text ? 1 : 4,
						     .is_text = is_text,
						     .count = is_text ? 16 : 0};
		expect_no_error(vp_event_class_add_field(class, &field));
	}
	return class;
}

/* Their numbers, in the order in which make_classes() adds them. */
enum class {
	SWITCH,
	WAKING,
	IRQ_ENTRY,
	IRQ_EXIT,
	WAKEUP,
	WAKEUP_NEW,
	SOFTIRQ_ENTRY,
	SOFTIRQ_EXIT,
	TIMER_ENTRY,
	TIMER_EXIT,
	CALL_ENTRY,
	CALL_EXIT
};

static inline void make_classes(vp_event_classes *classes)
{
	static const char *const of_switch[] = {"common_pid", "prev_comm", "prev_pid", "prev_state",
						"next_comm",  "next_pid",  NULL};
	static const char *const of_waking[] = {"common_pid", "comm",       "pid",
						"prio",       "target_cpu", NULL};
	static const char *const of_irq[] = {"common_pid", "irq", NULL};
	static const char *const of_softirq[] = {"common_pid", "vec", NULL};
	static const char *const of_vector[] = {"common_pid", "vector", NULL};

	add_class(classes, "sched:sched_switch", of_switch);
	add_class(classes, "sched:sched_waking", of_waking);
	add_class(classes, "irq:irq_handler_entry", of_irq);
	add_class(classes, "irq:irq_handler_exit", of_irq);
	add_class(classes, "sched:sched_wakeup", of_waking);
	add_class(classes, "sched:sched_wakeup_new", of_waking);
	add_class(classes, "irq:softirq_entry", of_softirq);
	add_class(classes, "irq:softirq_exit", of_softirq);
	add_class(classes, "irq_vectors:local_timer_entry", of_vector);
	add_class(classes, "irq_vectors:local_timer_exit", of_vector);
	add_class(classes, "irq_vectors:call_function_entry", of_vector);
	add_class(classes, "irq_vectors:call_function_exit", of_vector);
}

/* Names of the guests' threads: the test's. */
static const char *name_of(uint32_t tid);

struct guest {
	vp_event_classes classes;
	struct vp_trace_writer *writer;
};

static inline void put_event_on(struct guest *guest, uint32_t cpu, uint64_t ns, enum class which,
				const uint32_t *values)
{
	const struct vp_event_class *class = &guest->classes.at[which];
	struct vp_buffer out = {0};

	vp_event_begin(&out, class, AT(ns));
	for (size_t i = 0, value = 0; i < class->fields.count; i++) {
		const struct vp_event_field *field = &class->fields.at[i];
		const char *name = name_of(values[value]); /* a name is before its thread */
		if (field->is_text)
			vp_event_put_bytes(&out, field, name, strlen(name));
		else
			vp_event_put_integer(&out, field, values[value++]);
	}
	expect_no_error(vp_event_end(&out, 0));
	vp_trace_append(guest->writer, (struct vp_stream_id){VP_STREAM_TRACEPOINTS, cpu},
			out.bytes);
	vp_buffer_deinit(&out);
}

static inline void put_event(struct guest *guest, uint64_t ns, enum class which,
			     const uint32_t *values)
{
	put_event_on(guest, 0, ns, which, values);
}

static inline void guest_switch(struct guest *guest, uint64_t ns, uint32_t prev, uint32_t next)
{
	put_event(guest, ns, SWITCH, (const uint32_t[]){prev, prev, prev ? SLEEPS : 0, next});
}

static inline void guest_waking(struct guest *guest, uint64_t ns, uint32_t by, uint32_t tid)
{
	put_event(guest, ns, WAKING, (const uint32_t[]){by, tid, 120, 0});
}

static inline void guest_begin(struct guest *guest, const char *recording, const char *part,
			       const char *name)
{
	*guest = (struct guest){0};
	make_classes(&guest->classes);
	expect_no_error(vp_trace_writer_create_guest(recording, part, name, &guest->writer));
	expect_no_error(vp_trace_writer_define(guest->writer, &guest->classes));
}

static inline void guest_end(struct guest *guest)
{
	for (uint32_t cpu = 0; cpu < 2; cpu++)
		vp_trace_flush(guest->writer, (struct vp_stream_id){VP_STREAM_TRACEPOINTS, cpu}, 0);
	vp_trace_writer_free(guest->writer);
	vp_event_classes_deinit(&guest->classes);
}

static inline void begin(struct made *made, const char *recording, unsigned n_vms, uint32_t pcpus)
{
	vp_event_classes classes = {0};

	made_begin(made, recording, n_vms);
	expect_no_error(vp_trace_event_classes(&classes));
	expect_no_error(vp_trace_writer_define(made->writer, &classes));
	vp_event_classes_deinit(&classes);
	made->pcpus = pcpus;
}

static inline void end(struct made *made)
{
	for (uint32_t pcpu = 0; pcpu < made->pcpus; pcpu++)
		vp_trace_flush(made->writer, (struct vp_stream_id){VP_STREAM_TRACE, pcpu}, 0);
	made_end(made, 10);
}

#endif
