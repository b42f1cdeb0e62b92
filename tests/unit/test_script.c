/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of a made recording as text, JSON lines and CSV; what is asked for of them. */
#include "unit.h"

#include <stdio.h>

#include "base/file.h"
#include "make_recording.h"
#include "render/render_script.h"
#include "schema/trace_event.h"

#define NAME "test_script.rec"
#define AT(ns) (MADE_START + (ns))

static void append(struct made *made, uint32_t pcpu, void *record)
{
	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_TRACE, pcpu}, record);
}

static void put_name(struct made *made, uint32_t pcpu, uint64_t ns, uint32_t tid, const char *comm)
{
	struct vp_task task = {.time = AT(ns), .id = VP_ID_task, .pid = tid, .tid = tid};

	memcpy(task.comm, comm, strlen(comm));
	append(made, pcpu, &task);
}

#define PUT(made, pcpu, ns, event, ...)                                                            \
	append(made, pcpu,                                                                         \
	       &(struct vp_trace_##event){.time = AT(ns),                                          \
					  .id = VP_TRACE_ID_##event,                               \
					  .size = VP_TRACE_SIZE_##event,                           \
					  __VA_ARGS__})

/* A recording of two VMs with the trace's events. */
static void begin(struct made *made, unsigned pcpus)
{
	vp_event_classes classes = {0};

	made_begin(made, NAME, 2);
	expect_no_error(vp_trace_event_classes(&classes));
	expect_no_error(vp_trace_writer_define(made->writer, &classes));
	vp_event_classes_deinit(&classes);
	made->pcpus = pcpus;
}

enum { MADE_IOIO = 0x7b };

/* vm0's vCPU 1 (thread 1002) wakes a thread, is entered and left, and loses pCPU 0. */
static void make(void)
{
	struct made made;

	begin(&made, 2);
	put_name(&made, 0, 100, 1002, "CPU 1/KVM");
	PUT(&made, 0, 100, kvm_entry, .tid = 1002, .vm = 1000, .vcpu = 1);
	PUT(&made, 0, 300, kvm_exit, .tid = 1002, .guest_rip = 0xffffffff81000010, .vm = 1000,
	    .reason = MADE_IOIO, .detail = 0x70, .vcpu = 1, .vendor = VP_VENDOR_AMD,
	    .detail_kind = VP_DETAIL_PORT_OUT);
	PUT(&made, 0, 350, kvm_inj_virq, .tid = 1002, .vm = 1000, .vcpu = 1, .vector = 236);
	put_name(&made, 0, 400, 77, "a\033,\"b");
	PUT(&made, 0, 400, sched_wakeup, .tid = 1002, .woken_tid = 77, .target_cpu = 1);
	PUT(&made, 0, 500, sched_switch, .prev_tid = 1002, .next_tid = 0, .prev_state = 1);
	PUT(&made, 1, 200, softirq_entry, .tid = 0, .vec = 1);
	PUT(&made, 1, 250, softirq_exit, .tid = 0, .vec = 1);
	PUT(&made, 1, 450, sched_switch, .prev_tid = 0, .next_tid = 77);
	PUT(&made, 1, 600, sched_switch, .prev_tid = 77, .next_tid = 2001, .preempted = 1);
	PUT(&made, 1, 700, kvm_exit, .tid = 2001, .vm = 2000, .reason = MADE_IOIO,
	    .vcpu = VP_VCPU_UNKNOWN);
	vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_TRACE, 0}, 0);
	vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_TRACE, 1}, 5);
	made_end(&made, 10);
}

static const struct vp_script_options everything = {.to = UINT64_MAX};

static unsigned shown = VP_SHOW_ALL;

/* What is printed, to be freed; `notes` gets the notes, one behind the other. */
static char *print(const char *format, const struct vp_script_options *options, char **notes)
{
	const struct vp_script_format *chosen = vp_script_format_named(format);
	const struct vp_script_event *event;
	struct vp_buffer out = {0}, said = {0};
	struct vp_script *script;

	expect_no_error(vp_script_open(NAME, options, &script));
	struct vp_script_layout layout = {vp_script_columns(script), shown};
	if (chosen->begin)
		chosen->begin(&layout, &out);
	while ((event = vp_script_next(script)))
		chosen->event(event, &layout, &out);
	assert_null(vp_script_next(script));
	vp_vec_each (vp_script_notes(script), note) {
		vp_buffer_string(&said, *note);
		vp_buffer_string(&said, "\n");
	}
	vp_script_close(script);
	char *text = vp_strdup(vp_buffer_text(&out));
	if (notes)
		*notes = vp_strdup(vp_buffer_text(&said));
	vp_buffer_deinit(&out);
	vp_buffer_deinit(&said);
	return text;
}

/* The same as text, by prepared lines, at most `size` bytes at a time. */
static char *print_lines(const struct vp_script_options *options, size_t size)
{
	struct vp_buffer out = {0}, piece = {0};
	struct vp_script *script;

	expect_no_error(vp_script_open(NAME, options, &script));
	struct vp_script_lines *lines = vp_script_lines_new(script);
	while (vp_script_lines_put(lines, UINT64_MAX, size, &piece)) {
		vp_buffer_append(&out, piece.bytes, piece.size);
		piece.size = 0;
	}
	vp_script_lines_free(lines);
	vp_script_close(script);
	char *text = vp_strdup(vp_buffer_text(&out));
	vp_buffer_deinit(&out);
	vp_buffer_deinit(&piece);
	return text;
}

static void expect_same_lines(const struct vp_script_options *options)
{
	char *text = print("text", options, NULL), *lines = print_lines(options, 1000);

	assert_string_equal(lines, text);
	free(text);
	free(lines);
}

static void expect_printed(const char *format, const struct vp_script_options *options,
			   const char *expected)
{
	char *text = print(format, options, NULL);

	assert_string_equal(text, expected);
	free(text);
}

static void test_text(void **state)
{
	make();
	expect_printed(
	    "text", &everything,
	    "       CPU 1/KVM    1002 [000]     1.000000100: kvm:kvm_entry: vm=vm0 vcpu=1\n"
	    "       swapper/1       0 [001]     1.000000200: irq:softirq_entry: vec=1\n"
	    "       swapper/1       0 [001]     1.000000250: irq:softirq_exit: vec=1\n"
	    "       CPU 1/KVM    1002 [000]     1.000000300: kvm:kvm_exit: vm=vm0 vcpu=1 "
	    "guest_rip=0xffffffff81000010 reason=IOIO detail=port 0x70 out\n"
	    "       CPU 1/KVM    1002 [000]     1.000000350: kvm:kvm_inj_virq: vm=vm0 vcpu=1 "
	    "vector=236\n"
	    "       CPU 1/KVM    1002 [000]     1.000000400: sched:sched_wakeup: vm=vm0 vcpu=1 "
	    "woken_tid=77 woken_comm=a?,\"b target_cpu=1\n"
	    "       swapper/1       0 [001]     1.000000450: sched:sched_switch: prev_tid=0 "
	    "next_tid=77 next_comm=a?,\"b prev_state=R\n"
	    "       CPU 1/KVM    1002 [000]     1.000000500: sched:sched_switch: vm=vm0 vcpu=1 "
	    "prev_tid=1002 next_tid=0 next_comm=swapper/0 prev_state=S\n"
	    "           a?,\"b      77 [001]     1.000000600: sched:sched_switch: prev_tid=77 "
	    "next_tid=2001 next_comm=<...> prev_state=R+\n"
	    "           <...>    2001 [001]     1.000000700: kvm:kvm_exit: vm=vm1 "
	    "guest_rip=0x0 reason=unknown\n");
	expect_same_lines(&everything);
}

/* Prepared lines: threads that are renamed, that become known, that have vCPUs; the same event
 * again and again, on another pCPU, in another class; times before and after a full second. */
static void test_lines(void **state)
{
	static const char *const names[] = {"a", "qemu-system-x86", "CPU 1/KVM", "\xc3\xa9", ""};
	struct vp_script_options options = everything;
	struct made made;
	uint32_t random = 1;

	begin(&made, 8);
	for (uint64_t i = 1; i <= 20000; i++) {
		uint32_t pcpu = (random = random * 1664525 + 1013904223) >> 29;
		uint32_t tids[] = {0, 77, 77 + 256, 1001, 1002, 4000000000};
		uint32_t tid = tids[(random >> 20) % 6], other = tids[(random >> 12) % 6];
		uint64_t ns = i * 100001;
		if (i % 50 == 0 && tid)
			put_name(&made, pcpu, ns, tid, names[(random >> 9) % 5]);
		if (random >> 16 & 1)
			PUT(&made, pcpu, ns, sched_switch, .prev_tid = tid, .next_tid = other,
			    .prev_state = 1 << (random >> 22 & 7) & 0xfe ? random >> 18 & 3 : 0x402,
			    .preempted = random >> 28 & 1);
		else if (random >> 17 & 1)
			PUT(&made, pcpu, ns, sched_wakeup, .tid = tid, .woken_tid = other,
			    .target_cpu = (uint16_t)(random >> 24));
		else if (random >> 18 & 1)
			PUT(&made, pcpu, ns, sched_wakeup_new, .tid = tid, .woken_tid = other);
		else
			PUT(&made, pcpu, ns, kvm_entry, .tid = tid, .vm = 1000, .vcpu = 1);
	}
	for (uint32_t pcpu = 0; pcpu < 8; pcpu++)
		vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_TRACE, pcpu}, 0);
	made_end(&made, 3000000000);
	expect_same_lines(&everything);
	options.from = AT(5000000);
	options.to = AT(1500000000);
	expect_same_lines(&options);
}

/* Prepared lines of the first second after the host's start. */
static void test_first_second(void **state)
{
	struct vp_trace_kvm_entry entry = {.time = 1,
					   .id = VP_TRACE_ID_kvm_entry,
					   .size = VP_TRACE_SIZE_kvm_entry,
					   .tid = 1001,
					   .vm = 1000};
	struct vp_trace_softirq_entry softirq = {.time = 1,
						 .id = VP_TRACE_ID_softirq_entry,
						 .size = VP_TRACE_SIZE_softirq_entry,
						 .tid = 77,
						 .vec = 1};
	struct made made;

	begin(&made, 1);
	append(&made, 0, &softirq);
	softirq.time = 999999999;
	append(&made, 0, &softirq);
	entry.time = softirq.time = 1000000000;
	append(&made, 0, &softirq);
	append(&made, 0, &entry);
	vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_TRACE, 0}, 0);
	made.about.start = 0;
	made_end(&made, 2000000000);
	char *lines = print_lines(&everything, 1000);
	assert_non_null(strstr(lines, "[000]     0.000000001: irq:softirq_entry"));
	assert_non_null(strstr(lines, "[000]     0.999999999: irq:softirq_entry"));
	assert_non_null(strstr(lines, "[000]     1.000000000: irq:softirq_entry"));
	free(lines);
	expect_same_lines(&everything);
}

/* Events of several pCPUs are in the order of time and, at equal times, of pCPUs. */
static void test_order(void **state)
{
	const struct vp_script_event *event;
	uint64_t now[3] = {1, 1, 1}, last = 0, count = 0;
	uint32_t random = 1, last_pcpu = 0;
	struct vp_script *script;
	struct made made;

	begin(&made, 3);
	for (size_t i = 0; i < 3000; i++) {
		random = random * 1664525 + 1013904223;
		uint32_t pcpu = (random >> 20) % 3;
		now[pcpu] += random >> 12 & 3;
		PUT(&made, pcpu, now[pcpu], sched_wakeup, .tid = 77, .woken_tid = 78);
	}
	for (uint32_t pcpu = 0; pcpu < 3; pcpu++)
		vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_TRACE, pcpu}, 0);
	made_end(&made, 10000);
	expect_no_error(vp_script_open(NAME, &everything, &script));
	for (; (event = vp_script_next(script)); count++) {
		assert_true(event->time > last ||
			    (event->time == last && event->pcpu >= last_pcpu));
		last = event->time;
		last_pcpu = event->pcpu;
	}
	assert_int_equal(count, 3000);
	vp_script_close(script);
}

/* Prepared lines are for all members, and for events that are selected without being read. */
static void test_lines_fit(void **state)
{
	struct vp_script_layout layout = {.shown = VP_SHOW_ALL};
	struct vp_script_options options = {.to = UINT64_MAX};

	assert_true(vp_script_lines_fit(&layout, &options));
	options.has_tid = true;
	assert_false(vp_script_lines_fit(&layout, &options));
	options = (struct vp_script_options){.vm = "vm0"};
	assert_false(vp_script_lines_fit(&layout, &options));
	options.vm = NULL;
	layout.shown &= ~(unsigned)VP_SHOW_TID;
	assert_false(vp_script_lines_fit(&layout, &options));
	layout.shown = VP_SHOW_ALL;
	layout.clock.form = VP_CLOCK_FORM_OFFSET;
	assert_false(vp_script_lines_fit(&layout, &options));
}

static void test_jsonl(void **state)
{
	static const char *const names[] = {"kvm_exit", "sched:sched_wakeup"};
	struct vp_script_options options = everything;

	options.events = names;
	options.n_events = 2;
	make();
	expect_printed(
	    "jsonl", &options,
	    "{\"time_ns\": 1000000300, \"pcpu\": 0, \"comm\": \"CPU 1/KVM\", \"tid\": 1002, "
	    "\"vm\": \"vm0\", \"vcpu\": 1, \"machine\": \"host\", \"event\": \"kvm:kvm_exit\", "
	    "\"fields\": "
	    "{\"guest_rip\": \"0xffffffff81000010\", \"reason\": \"IOIO\", "
	    "\"detail\": \"port 0x70 out\"}}\n"
	    "{\"time_ns\": 1000000400, \"pcpu\": 0, \"comm\": \"CPU 1/KVM\", \"tid\": 1002, "
	    "\"vm\": \"vm0\", \"vcpu\": 1, \"machine\": \"host\", \"event\": "
	    "\"sched:sched_wakeup\", \"fields\": "
	    "{\"woken_tid\": 77, \"woken_comm\": \"a?,\\\"b\", \"target_cpu\": 1}}\n"
	    "{\"time_ns\": 1000000700, \"pcpu\": 1, \"comm\": null, \"tid\": 2001, "
	    "\"vm\": \"vm1\", \"vcpu\": null, \"machine\": \"host\", \"event\": \"kvm:kvm_exit\", "
	    "\"fields\": "
	    "{\"guest_rip\": \"0x0\", \"reason\": \"unknown\"}}\n");
}

static void test_csv(void **state)
{
	static const char *const names[] = {"kvm_exit", "sched_wakeup"};
	struct vp_script_options options = everything;

	options.events = names;
	options.n_events = 2;
	make();
	expect_printed(
	    "csv", &options,
	    "time_ns,pcpu,comm,tid,vm,vcpu,machine,event,woken_tid,woken_comm,target_cpu,"
	    "guest_rip,reason,detail\n"
	    "1000000300,0,CPU 1/KVM,1002,vm0,1,host,kvm:kvm_exit,,,,0xffffffff81000010,IOIO,"
	    "port 0x70 out\n"
	    "1000000400,0,CPU 1/KVM,1002,vm0,1,host,sched:sched_wakeup,77,\"a?,\"\"b\",1,,,\n"
	    "1000000700,1,,2001,vm1,,host,kvm:kvm_exit,,,,0x0,unknown,\n");
}

static void test_parts(void **state)
{
	static const char *const names[] = {"kvm_exit"};
	struct vp_script_options options = everything;

	options.events = names;
	options.n_events = 1;
	make();
	expect_no_error(vp_script_shown_parse("time,event,vm", &shown));
	expect_printed(
	    "text", &options,
	    "    1.000000300: kvm:kvm_exit: vm=vm0\n    1.000000700: kvm:kvm_exit: vm=vm1\n");
	expect_printed("csv", &options,
		       "time_ns,vm,machine,event\n1000000300,vm0,host,kvm:kvm_exit\n1000000700,vm1,"
		       "host,kvm:kvm_exit\n");
	expect_no_error(vp_script_shown_parse("fields,cpu", &shown));
	expect_printed("jsonl", &options,
		       "{\"pcpu\": 0, \"fields\": {\"guest_rip\": \"0xffffffff81000010\", "
		       "\"reason\": \"IOIO\", "
		       "\"detail\": \"port 0x70 out\"}}\n"
		       "{\"pcpu\": 1, \"fields\": {\"guest_rip\": \"0x0\", "
		       "\"reason\": \"unknown\"}}\n");
	shown = VP_SHOW_VCPU;
	expect_printed("text", &options, "vcpu=1\n\n");
	shown = VP_SHOW_ALL;
	expect_error(vp_script_shown_parse("time,", &shown), "not ''");
	expect_error(vp_script_shown_parse("pid", &shown), "not 'pid'");
	shown = VP_SHOW_ALL;
}

/* How many events are printed. */
static size_t count(const struct vp_script_options *options)
{
	const struct vp_script_event *event;
	struct vp_script *script;
	size_t n = 0;

	expect_no_error(vp_script_open(NAME, options, &script));
	while ((event = vp_script_next(script)))
		n++;
	vp_script_close(script);
	return n;
}

static void test_filters(void **state)
{
	static const int first[] = {0}, both[] = {1, 0};
	struct vp_script_options options = everything;

	make();
	assert_int_equal(count(&options), 10);
	options.from = AT(250);
	options.to = AT(400);
	assert_int_equal(count(&options), 4);
	options = everything;
	options.pcpus = first;
	options.n_pcpus = 1;
	assert_int_equal(count(&options), 5);
	options.pcpus = both;
	options.n_pcpus = 2;
	assert_int_equal(count(&options), 10);
	options = everything;
	options.vm = "vm0";
	assert_int_equal(count(&options), 5);
	/* The thread of its vCPU gets a pCPU, and its exit. */
	options.vm = "vm1";
	assert_int_equal(count(&options), 2);
	options.vm = "2000"; /* the same by its process */
	assert_int_equal(count(&options), 2);
	options = everything;
	options.has_tid = true;
	options.tid = 77; /* woken, gets the pCPU, loses it */
	assert_int_equal(count(&options), 3);
	options.tid = 0;
	assert_int_equal(count(&options), 4);
}

static void put_guest_name(struct made *made, uint64_t ns, uint32_t tid, const char *comm)
{
	struct vp_guest_task task = {
	    .time = AT(ns), .id = VP_ID_guest_task, .vm = 1000, .guest_pid = tid, .guest_tid = tid};

	memcpy(task.comm, comm, strlen(comm));
	append(made, 0, &task);
}

/* Threads of guests have names of their own, whatever host threads have their numbers. */
static void test_guest_switch(void **state)
{
	struct made made;

	begin(&made, 1);
	put_name(&made, 0, 100, 1002, "CPU 1/KVM");
	put_name(&made, 0, 100, 55, "host thread");
	put_guest_name(&made, 200, 55, "guest\033thread");
	PUT(&made, 0, 200, guest_switch, .tid = 1002, .vm = 1000, .guest_tid = 55, .guest_pid = 54,
	    .switches = 3, .vcpu = 1, .switch_flags = VP_SWITCH_MIDDLE);
	PUT(&made, 0, 300, guest_switch, .tid = 1002, .vm = 1000, .guest_tid = 0, .switches = 1,
	    .vcpu = 1);
	PUT(&made, 0, 400, guest_switch, .tid = 2001, .vm = 2000, .guest_tid = 55, .guest_pid = 55,
	    .vcpu = 0, .switch_flags = VP_SWITCH_FIRST | VP_SWITCH_LOST);
	vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_TRACE, 0}, 0);
	made_end(&made, 10);
	expect_printed("text", &everything,
		       "       CPU 1/KVM    1002 [000]     1.000000200: vperf:guest_switch: vm=vm0 "
		       "vcpu=1 guest_tid=55 guest_comm=guest?thread guest_pid=54 switches=3 "
		       "switch_flags=middle\n"
		       "       CPU 1/KVM    1002 [000]     1.000000300: vperf:guest_switch: vm=vm0 "
		       "vcpu=1 guest_tid=0 guest_comm=swapper guest_pid=0 switches=1 "
		       "switch_flags=-\n"
		       "           <...>    2001 [000]     1.000000400: vperf:guest_switch: vm=vm1 "
		       "vcpu=0 guest_tid=55 guest_comm=<...> guest_pid=55 switches=0 "
		       "switch_flags=first,lost\n");
}

static void test_unknown_names(void **state)
{
	static const char *const names[] = {"kvm_exti"};
	struct vp_script_options options = everything;
	struct vp_script *script;

	make();
	options.events = names;
	options.n_events = 1;
	expect_error(vp_script_open(NAME, &options, &script),
		     "the recording has no event 'kvm_exti' (did you mean kvm_exit");
	options = everything;
	options.vm = "nobody";
	expect_error(vp_script_open(NAME, &options, &script),
		     "there is no VM 'nobody'; the VMs are vm0 (1000), vm1 (2000)");
	expect_error(vp_script_open("nowhere", &everything, &script),
		     "there is no recording 'nowhere'");
	assert_null(vp_script_format_named("xml"));
}

/* Samples are events, too; names, sums and clocks only if they are asked for. */
static void test_records_of_the_schema(void **state)
{
	static const char *const task[] = {"task"};
	struct vp_script_options options = everything;
	const struct vp_stream_id states = {VP_STREAM_STATES, VP_NO_PCPU};
	struct vp_vcpu_span span = {.time = AT(1000000000),
				    .id = VP_ID_vcpu_span,
				    .vm = 1000,
				    .tid = 1001,
				    .vendor = VP_VENDOR_AMD,
				    .flags = VP_STATE_GOT_PCPU | VP_STATE_WAS_IDLE,
				    .ns = 1500};
	struct made made;

	made_begin(&made, NAME, 1);
	made_task(&made, 0, 1, 5, 5, "make");
	made_host(&made, 0, 1, 5, VP_MODE_KERNEL);
	made_out(&made, 0, 2, 0, 0, MADE_HLT, true);
	made_out(&made, 0, 3, 0, 1, MADE_UNKNOWN, false);
	vp_trace_append(made.writer, states, (void *)&span);
	vp_trace_flush(made.writer, states, 0);
	made_end(&made, 10);
	char *text = print("text", &everything, NULL);
	assert_non_null(strstr(text, "            make       5 [000]     1.001000000: host_sample: "
				     "flags=- pid=5 mode=1 ip="));
	assert_non_null(strstr(text, "vcpu_out: vm=vm0 vcpu=0 flags=reason,blocked exit_reason=HLT "
				     "other_tid=0 other_comm=swapper/0\n"));
	assert_non_null(strstr(text, "vcpu_out: vm=vm0 vcpu=1 flags=- exit_reason=unknown "));
	assert_non_null(
	    strstr(text, "vcpu_span: vm=vm0 vcpu=0 flags=waited,idle state=0 reason=unknown "));
	assert_null(strstr(text, "task:"));
	free(text);
	options.events = task;
	options.n_events = 1;
	text = print("text", &options, NULL);
	assert_non_null(strstr(text, " task: pid=5 its_comm=make\n"));
	free(text);
}

/* Records from before the start say what holds then, such as names: they are no events. */
static void test_before_the_start(void **state)
{
	struct made made;

	begin(&made, 1);
	put_name(&made, 0, -500, 1002, "CPU 1/KVM");
	PUT(&made, 0, -400, kvm_entry, .tid = 1002, .vm = 1000, .vcpu = 1);
	PUT(&made, 0, 0, kvm_entry, .tid = 1002, .vm = 1000, .vcpu = 1);
	vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_TRACE, 0}, 0);
	made_end(&made, 10);
	expect_printed(
	    "text", &everything,
	    "       CPU 1/KVM    1002 [000]     1.000000000: kvm:kvm_entry: vm=vm0 vcpu=1\n");
}

/* Of records that are not what their class says, and of losses, the notes tell. */
static void test_notes(void **state)
{
	static const char classes[] = "vperf-events 1\nevent a\nfield t string unsigned 0 0\n";
	char *notes, *text;

	make();
	temporary_file(NAME "/host.events", classes, sizeof(classes) - 1);
	text = print("text", &everything, &notes);
	assert_non_null(strstr(text, ": a: t=\n"));
	/* Switches have the first id, and a zero byte: they begin with a text. Others have no
	 * class. */
	assert_non_null(strstr(notes, "7 records do not match the recording's event classes"));
	assert_non_null(strstr(notes, "5 records were lost while recording"));
	free(text);
	free(notes);
	temporary_file(NAME "/host.events", "nonsense", 8);
	struct vp_script *script;
	expect_error(vp_script_open(NAME, &everything, &script), "line 1: expected");
}

static void test_sets(void **state)
{
	unsigned sets;

	expect_no_error(vp_trace_sets_parse("", &sets));
	assert_int_equal(sets, VP_TRACE_SETS_ALL);
	expect_no_error(vp_trace_sets_parse("kvm,irq", &sets));
	assert_int_equal(sets, VP_TRACE_SET_kvm | VP_TRACE_SET_irq);
	expect_no_error(vp_trace_sets_parse("guest", &sets));
	assert_int_equal(sets, VP_TRACE_SET_kvm | VP_TRACE_SET_guest);
	expect_error(vp_trace_sets_parse("kvm,shced", &sets), "not 'shced' (did you mean sched?)");
	expect_error(vp_trace_sets_parse("kvm,", &sets), "not ''");
	assert_int_equal(vp_trace_set_of("kvm_exit"), VP_TRACE_SET_kvm);
	assert_int_equal(vp_trace_set_of("local_timer_exit"), VP_TRACE_SET_irq);
	assert_int_equal(vp_trace_set_of("nonsense"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_text),
	    cmocka_unit_test(test_first_second),
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_lines_fit),
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_jsonl),
	    cmocka_unit_test(test_csv),
	    cmocka_unit_test(test_parts),
	    cmocka_unit_test(test_filters),
	    cmocka_unit_test(test_guest_switch),
	    cmocka_unit_test(test_unknown_names),
	    cmocka_unit_test(test_records_of_the_schema),
	    cmocka_unit_test(test_before_the_start),
	    cmocka_unit_test(test_notes),
	    cmocka_unit_test(test_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
