/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Periods of pCPUs, vCPUs and guests' threads, made of events of a made recording. */
#include "unit.h"

#include "analyze/trace/sched.h"
#include "base/file.h"
#include "bpf/account_abi.h"
#include "make_recording.h"
#include "render/render_table.h"
#include "render/render_tracks.h"
#include "schema/trace_event.h"

#define NAME "test_lanes.rec"
#define AT(ns) (MADE_START + (ns))

enum { VM = 1000, CPU0 = 1001, CPU1 = 1002 };

static void append(struct made *made, uint32_t pcpu, void *record)
{
	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_TRACE, pcpu}, record);
}

#define PUT(made, pcpu, ns, event, ...)                                                            \
	append(made, pcpu,                                                                         \
	       &(struct vp_trace_##event){.time = AT(ns),                                          \
					  .id = VP_TRACE_ID_##event,                               \
					  .size = VP_TRACE_SIZE_##event,                           \
					  __VA_ARGS__})

static void put_name(struct made *made, uint32_t tid, const char *comm)
{
	struct vp_task task = {.time = AT(1), .id = VP_ID_task, .pid = tid, .tid = tid};

	memcpy(task.comm, comm, strlen(comm));
	append(made, 0, &task);
}

static void put_guest_name(struct made *made, uint64_t ns, uint32_t tid, const char *comm)
{
	struct vp_guest_task task = {
	    .time = AT(ns), .id = VP_ID_guest_task, .vm = VM, .guest_pid = tid, .guest_tid = tid};

	memcpy(task.comm, comm, strlen(comm));
	append(made, 0, &task);
}

static void enter(struct made *made, uint32_t pcpu, uint64_t ns, uint32_t vcpu)
{
	PUT(made, pcpu, ns, kvm_entry, .tid = CPU0 + vcpu, .vm = VM, .vcpu = (uint16_t)vcpu);
}

static void leave(struct made *made, uint32_t pcpu, uint64_t ns, uint32_t vcpu, int reason)
{
	PUT(made, pcpu, ns, kvm_exit, .tid = CPU0 + vcpu, .vm = VM, .reason = (uint32_t)reason,
	    .vcpu = (uint16_t)vcpu, .vendor = VP_VENDOR_AMD);
}

static void see(struct made *made, uint32_t pcpu, uint64_t ns, uint32_t vcpu, uint32_t tid,
		uint32_t switches, uint16_t flags)
{
	PUT(made, pcpu, ns, guest_switch, .tid = CPU0 + vcpu, .vm = VM, .guest_tid = tid,
	    .guest_pid = tid ? tid + 100 : 0, .switches = switches, .vcpu = (uint16_t)vcpu,
	    .switch_flags = flags);
}

static void change(struct made *made, uint32_t pcpu, uint64_t ns, uint32_t prev, uint32_t next,
		   uint16_t state)
{
	PUT(made, pcpu, ns, sched_switch, .prev_tid = prev, .next_tid = next, .prev_state = state);
}

static void wake(struct made *made, uint32_t pcpu, uint64_t ns, uint32_t tid, uint32_t target)
{
	PUT(made, pcpu, ns, sched_wakeup, .tid = 0, .woken_tid = tid, .target_cpu = target);
}

static void begin(struct made *made)
{
	vp_event_classes classes = {0};

	made_begin(made, NAME, 2);
	expect_no_error(vp_trace_event_classes(&classes));
	expect_no_error(vp_trace_writer_define(made->writer, &classes));
	vp_event_classes_deinit(&classes);
	made->pcpus = 2;
	put_name(made, CPU0, "CPU 0/KVM");
	put_name(made, 50, "thief");
}

static void finish(struct made *made)
{
	for (uint32_t pcpu = 0; pcpu < 2; pcpu++)
		vp_trace_flush(made->writer, (struct vp_stream_id){VP_STREAM_TRACE, pcpu}, 0);
	made_end(made, 10);
}

struct printed {
	enum vp_track track;
	const struct vp_tracks_format *format;
	struct vp_tracks_layout layout;
	struct vp_buffer out;
	struct vp_track_switches switches;
	vp_sentences notes;
};

static void take(void *context, const struct vp_track_slice *slice)
{
	struct printed *printed = context;

	assert_true(slice->begin <= slice->end);
	if (slice->track == printed->track && (!printed->layout.of_threads || slice->has_guest))
		printed->format->slice(slice, &printed->layout, &printed->out);
}

static void print(struct printed *printed, const char *format, struct vp_tracks_options options)
{
	struct vp_tracks *tracks;

	printed->format = vp_tracks_format_named(format);
	options.take = take;
	options.context = printed;
	options.to = options.to ? options.to : UINT64_MAX;
	expect_no_error(vp_tracks_open(NAME, &options, &tracks));
	printed->layout.tracks = tracks;
	if (printed->format->begin)
		printed->format->begin(&printed->out);
	while (vp_tracks_read(tracks, 1))
		;
	assert_false(vp_tracks_read(tracks, 1));
	printed->switches = vp_tracks_switches(tracks, VM, 0, CPU0);
	vp_vec_each (&vp_tracks_feed(tracks)->notes, note)
		vp_vec_push(&printed->notes, vp_strdup(*note));
	vp_tracks_close(tracks);
}

static void printed_free(struct printed *printed)
{
	vp_buffer_deinit(&printed->out);
	vp_vec_each (&printed->notes, note)
		free(*note);
	vp_vec_deinit(&printed->notes);
}

static void expect_track(enum vp_track track, const char *expected)
{
	struct printed printed = {.track = track};

	print(&printed, "text", (struct vp_tracks_options){0});
	assert_string_equal(vp_buffer_text(&printed.out), expected);
	printed_free(&printed);
}

/* vCPU 0 runs threads of its guest, is preempted, halts, is woken. */
static void make(void)
{
	struct made made;

	begin(&made);
	change(&made, 0, 10, 0, CPU0, 0);
	enter(&made, 0, 20, 0);
	put_guest_name(&made, 30, 7, "worker");
	see(&made, 0, 30, 0, 7, 0, VP_SWITCH_FIRST);
	leave(&made, 0, 30, 0, MADE_INTR);
	enter(&made, 0, 40, 0);
	leave(&made, 0, 60, 0, MADE_INTR);
	change(&made, 0, 65, CPU0, 50, 0);
	change(&made, 0, 70, 50, 51, 0);
	change(&made, 0, 80, 51, CPU0, 1);
	enter(&made, 0, 85, 0);
	put_guest_name(&made, 100, 8, "other");
	see(&made, 0, 100, 0, 8, 5, 0);
	leave(&made, 0, 100, 0, MADE_INTR);
	enter(&made, 0, 110, 0);
	see(&made, 0, 130, 0, 8, 1, VP_SWITCH_MIDDLE);
	leave(&made, 0, 130, 0, MADE_INTR);
	enter(&made, 0, 135, 0);
	see(&made, 0, 140, 0, 0, 0, 0);
	leave(&made, 0, 140, 0, MADE_HLT);
	change(&made, 0, 150, CPU0, 0, 1);
	wake(&made, 1, 200, CPU0, 0);
	change(&made, 0, 210, 0, CPU0, 0);
	enter(&made, 0, 220, 0);
	leave(&made, 0, 230, 0, MADE_INTR);
	finish(&made);
}

static void test_vcpu(void **state)
{
	make();
	expect_track(
	    VP_TRACK_VCPU,
	    "    1.000000010    10 ns [000] vm0/0    work\n"
	    "    1.000000020    10 ns [000] vm0/0    guest\n"
	    "    1.000000030    10 ns [000] vm0/0    work      worker/7\n"
	    "    1.000000040    20 ns [000] vm0/0    guest     worker/7 exact\n"
	    "    1.000000060     5 ns [000] vm0/0    work      worker/7\n"
	    "    1.000000065     5 ns [000] vm0/0    preempted worker/7 by=thief/50\n"
	    "    1.000000070    10 ns [000] vm0/0    preempted worker/7 by=-/51\n"
	    "    1.000000080     5 ns [000] vm0/0    work      worker/7\n"
	    "    1.000000085    15 ns [000] vm0/0    guest     worker/7 uncertain switches=5\n"
	    "    1.000000100    10 ns [000] vm0/0    work      other/8\n"
	    "    1.000000110    20 ns [000] vm0/0    guest     other/8 uncertain switches=1\n"
	    "    1.000000130     5 ns [000] vm0/0    work      other/8\n"
	    "    1.000000135     5 ns [000] vm0/0    guest     other/8 uncertain\n"
	    "    1.000000140    10 ns [000] vm0/0    work      swapper/0\n"
	    "    1.000000150    50 ns [-]   vm0/0    halted    swapper/0\n"
	    "    1.000000200    10 ns [000] vm0/0    waking    swapper/0 by=swapper/0\n"
	    "    1.000000210    10 ns [000] vm0/0    work      swapper/0\n"
	    "    1.000000220    10 ns [000] vm0/0    guest     swapper/0 exact\n");
	expect_track(VP_TRACK_PCPU,
		     "    1.000000010    55 ns [000] vm0/0    running   CPU 0/KVM/1001\n"
		     "    1.000000065     5 ns [000]          running   thief/50\n"
		     "    1.000000070    10 ns [000]          running   -/51\n"
		     "    1.000000080    70 ns [000] vm0/0    running   CPU 0/KVM/1001\n"
		     "    1.000000150    60 ns [000]          idle\n"
		     "    1.000000210    20 ns [000] vm0/0    running   CPU 0/KVM/1001\n");
}

static void ignore(void *context, const struct vp_track_slice *slice)
{
}

/* A vCPU's thread is named as 'vperf steal' names it, others by comm and TID. */
static void test_host_threads(void **state)
{
	const struct vp_tracks_options options = {.to = UINT64_MAX, .take = ignore};
	struct vp_tracks *tracks;

	make();
	expect_no_error(vp_tracks_open(NAME, &options, &tracks));
	while (vp_tracks_read(tracks, 1))
		;
	assert_string_equal(vp_tracks_host_thread(tracks, CPU0, "CPU 0/KVM"), "vCPU 0 of VM vm0");
	assert_string_equal(vp_tracks_host_thread(tracks, 50, "thief"), "thief/50");
	assert_string_equal(vp_tracks_host_thread(tracks, 51, NULL), "-/51");
	vp_tracks_close(tracks);
}

/* An exit that KVM tells of only when the thread has lost its pCPU meanwhile: what came between is
 * of the thread that the exit tells, and the stretch is exact only if it tells none. */
static void test_late_exits(void **state)
{
	struct made made;

	begin(&made);
	change(&made, 0, 10, 0, CPU0, 0);
	enter(&made, 0, 20, 0);
	see(&made, 0, 30, 0, 7, 0, VP_SWITCH_FIRST);
	leave(&made, 0, 30, 0, MADE_INTR);
	enter(&made, 0, 40, 0);
	change(&made, 0, 50, CPU0, 50, 0);
	change(&made, 0, 60, 50, CPU0, 1);
	leave(&made, 0, 70, 0, MADE_INTR);
	enter(&made, 0, 80, 0);
	change(&made, 0, 90, CPU0, 50, 0);
	change(&made, 0, 100, 50, CPU0, 1);
	see(&made, 0, 110, 0, 8, 2, 0);
	leave(&made, 0, 110, 0, MADE_INTR);
	enter(&made, 0, 120, 0);
	finish(&made);
	expect_track(VP_TRACK_VCPU,
		     "    1.000000010    10 ns [000] vm0/0    work\n"
		     "    1.000000020    10 ns [000] vm0/0    guest\n"
		     "    1.000000030    10 ns [000] vm0/0    work      -/7\n"
		     "    1.000000040    10 ns [000] vm0/0    guest     -/7 exact\n"
		     "    1.000000050    10 ns [000] vm0/0    preempted -/7 by=thief/50\n"
		     "    1.000000060    20 ns [000] vm0/0    work      -/7\n"
		     "    1.000000080    10 ns [000] vm0/0    guest     -/7 uncertain switches=2\n"
		     "    1.000000090    10 ns [000] vm0/0    preempted -/8 by=thief/50\n"
		     "    1.000000100    20 ns [000] vm0/0    work      -/8\n");
}

/* Nothing is exact whose end was lost, or that goes on at the recording's end, or of which the
 * guest's memory told nothing. */
static void test_losses(void **state)
{
	struct made made;

	begin(&made);
	change(&made, 0, 10, 0, CPU0, 0);
	enter(&made, 0, 20, 0);
	see(&made, 0, 30, 0, 7, 0, VP_SWITCH_FIRST);
	leave(&made, 0, 30, 0, MADE_INTR);
	enter(&made, 0, 40, 0);
	enter(&made, 0, 60, 0); /* the exit between was lost */
	leave(&made, 0, 70, 0, MADE_INTR);
	enter(&made, 0, 80, 0);
	change(&made, 1, 90, 0, CPU0, 0); /* so was a switch */
	enter(&made, 1, 95, 0);
	see(&made, 1, 100, 0, 0, 0, VP_SWITCH_UNKNOWN);
	leave(&made, 1, 100, 0, MADE_INTR);
	enter(&made, 1, 110, 0);
	leave(&made, 1, 120, 0, MADE_INTR);
	see(&made, 1, 130, 0, 7, 3, VP_SWITCH_LOST);
	enter(&made, 1, 140, 0);
	change(&made, 0, 150, CPU0, 0, 0);
	finish(&made);
	expect_track(VP_TRACK_VCPU,
		     "    1.000000010    10 ns [000] vm0/0    work\n"
		     "    1.000000020    10 ns [000] vm0/0    guest\n"
		     "    1.000000030    10 ns [000] vm0/0    work      -/7\n"
		     "    1.000000040    20 ns [000] vm0/0    guest     -/7 uncertain\n"
		     "    1.000000060    10 ns [000] vm0/0    guest     -/7 exact\n"
		     "    1.000000070    10 ns [000] vm0/0    work      -/7\n"
		     "    1.000000080    10 ns [000] vm0/0    guest     -/7 uncertain\n"
		     "    1.000000090     5 ns [001] vm0/0    work      -/7\n"
		     "    1.000000095     5 ns [001] vm0/0    guest     -/7 uncertain\n"
		     "    1.000000100    10 ns [001] vm0/0    work\n"
		     "    1.000000110    10 ns [001] vm0/0    guest\n"
		     "    1.000000120    20 ns [001] vm0/0    work      -/7\n"
		     "    1.000000140    10 ns [001] vm0/0    guest     -/7 uncertain\n");
}

static void test_filters(void **state)
{
	static const int second[] = {1};
	struct printed printed = {.track = VP_TRACK_VCPU, .layout.of_threads = true};

	make();
	print(&printed, "csv", (struct vp_tracks_options){.from = AT(90), .to = AT(112)});
	assert_string_equal(
	    vp_buffer_text(&printed.out),
	    "track,begin_ns,end_ns,pcpu,state,tid,comm,vm,vcpu,guest_tid,guest_pid,guest_comm,"
	    "certainty,switches,thief_tid,thief_comm,lane\n"
	    "thread,1000000090,1000000100,0,guest,1001,CPU "
	    "0/KVM,vm0,0,7,107,worker,uncertain,5,,,thread\n"
	    "thread,1000000100,1000000110,0,work,1001,CPU 0/KVM,vm0,0,8,108,other,,0,,,thread\n"
	    "thread,1000000110,1000000112,0,guest,1001,CPU "
	    "0/KVM,vm0,0,8,108,other,uncertain,1,,,thread\n");
	assert_int_equal(printed.switches.total, 5);
	printed_free(&printed);
	printed = (struct printed){.track = VP_TRACK_VCPU};
	print(&printed, "jsonl", (struct vp_tracks_options){.from = AT(65), .to = AT(70)});
	assert_string_equal(vp_buffer_text(&printed.out),
			    "{\"type\": \"slice\", \"track\": \"vcpu\", \"lane\": \"vcpu\", "
			    "\"begin_ns\": 1000000065, "
			    "\"end_ns\": 1000000070, "
			    "\"pcpu\": 0, \"state\": \"preempted\", \"tid\": 1001, \"comm\": "
			    "\"CPU 0/KVM\", \"vm\": \"vm0\", \"vcpu\": 0, \"guest_tid\": 7, "
			    "\"guest_pid\": 107, \"guest_comm\": \"worker\", \"certainty\": null, "
			    "\"switches\": 0, \"thief_tid\": 50, \"thief_comm\": \"thief\"}\n");
	printed_free(&printed);
	printed = (struct printed){.track = VP_TRACK_VCPU};
	/* Its idle thread, which is number 0 and known, before it halts. */
	print(&printed, "jsonl", (struct vp_tracks_options){.from = AT(142), .to = AT(148)});
	assert_non_null(
	    strstr(vp_buffer_text(&printed.out), "\"guest_tid\": 0, \"guest_pid\": 0, "));
	printed_free(&printed);
	printed = (struct printed){.track = VP_TRACK_VCPU};
	print(&printed, "text", (struct vp_tracks_options){.vm = "vm1"});
	assert_int_equal(printed.out.size, 0);
	print(&printed, "text", (struct vp_tracks_options){.pcpus = second, .n_pcpus = 1});
	assert_int_equal(printed.out.size, 0);
	assert_int_equal(printed.notes.count, 0);
	printed_free(&printed);
}

/* Names of guests' and the host's threads may be anything; CSV has them in quotes. */
static void test_csv_names(void **state)
{
	struct printed printed = {.track = VP_TRACK_PCPU};
	struct made made;

	begin(&made);
	put_name(&made, 51, "a,\"b\"");
	change(&made, 0, 10, 0, 51, 0);
	change(&made, 0, 20, 51, 0, 0);
	finish(&made);
	print(&printed, "csv", (struct vp_tracks_options){0});
	assert_non_null(strstr(vp_buffer_text(&printed.out),
			       "pcpu,1000000010,1000000020,0,running,"
			       "51,\"a,\"\"b\"\"\",,,,,,,0,,,pcpu\n"));
	printed_free(&printed);
}

static void test_switches(void **state)
{
	struct printed printed = {.track = VP_TRACK_PCPU};

	make();
	print(&printed, "text", (struct vp_tracks_options){0});
	assert_int_equal(printed.switches.total, 6);
	assert_int_equal(printed.switches.observed, 2);
	assert_int_equal(printed.switches.restarts, 1);
	assert_int_equal(printed.switches.implausible, 0);
	printed_free(&printed);
}

static void take_sum(void *context, const struct vp_track_slice *slice)
{
	vp_sched_take(context, slice);
}

static void expect_table(struct vp_table *table, const char *expected)
{
	struct vp_buffer out = {0};

	vp_render_table_csv(table, true, &out);
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
	vp_table_deinit(table);
}

static void expect_sums(struct vp_sched *sums, struct vp_tracks *tracks)
{
	struct vp_table tables[4] = {0};

	vp_sched_vcpu_table(sums, tracks, &tables[0]);
	expect_table(&tables[0], "vm,vcpu,tid,guest_ns,work_ns,steal_ns,waking_ns,halted_ns,"
				 "waiting_ns,exact_ns,uncertain_ns,exact_percent,switches_total,"
				 "switches_observed,implausible,host_ns,stolen_ns,blocked_ns,"
				 "switches_seen,switches_made,jumps\n"
				 "vm0,0,1001,80,65,25,10,50,0,30,40,37.5,6,2,0,65,15,0,2,6,0\n");
	vp_sched_thread_table(sums, tracks, &tables[1]);
	expect_table(&tables[1], "vm,vcpu,pid,tid,comm,exact_ns,uncertain_ns,work_ns,steal_ns,"
				 "thief_ns,thief,host_ns,stolen_ns\n"
				 "vm0,0,107,7,worker,20,15,20,15,10,-/51,20,15\n"
				 "vm0,0,108,8,other,0,25,15,0,0,,15,0\n"
				 "vm0,0,0,0,swapper,10,0,20,10,10,swapper/0,20,10\n");
	vp_sched_wait_table(sums, &tables[2]);
	expect_table(&tables[2], "from_ns,wakeups,preemptions\n8,1,1\n");
	vp_sched_worst_table(sums, tracks, &tables[3]);
	expect_table(&tables[3], "vm,vcpu,ns,after,at_s,guest_thread,thief\n"
				 "vm0,0,15,preemption,1.000000065,worker/7,-/51\n"
				 "vm0,0,10,wakeup,1.000000200,swapper/0,swapper/0\n");
}

static void test_sums(void **state)
{
	struct vp_sched sums = {.max_waits = 2};
	const struct vp_tracks_options options = {
	    .to = UINT64_MAX, .take = take_sum, .context = &sums};
	struct vp_tracks *tracks;

	make();
	expect_no_error(vp_tracks_open(NAME, &options, &tracks));
	while (vp_tracks_read(tracks, 3))
		;
	expect_sums(&sums, tracks);
	vp_tracks_close(tracks);
	vp_sched_deinit(&sums);
}

/* Of waits only the longest are kept, in order; the one that is asked for is the longest of all. */
static void test_worst_waits(void **state)
{
	struct vp_sched sums = {.max_waits = 3};

	for (uint32_t i = 0; i < 100; i++) {
		uint64_t begin = 1000 * (i + 1), ns = i * 37 % 101;
		const struct vp_track_slice slice = {.track = VP_TRACK_VCPU,
						     .state = VP_TRACK_WAKING,
						     .begin = begin,
						     .end = begin + ns,
						     .wait_begin = begin,
						     .wait_ends = true,
						     .has_vcpu = true,
						     .vm = VM};
		vp_sched_take(&sums, &slice);
	}
	assert_int_equal(sums.waits.count, 3);
	assert_int_equal(sums.waits.at[0].ns, 100);
	assert_int_equal(sums.waits.at[1].ns, 99);
	assert_int_equal(sums.waits.at[2].ns, 98);
	assert_int_equal(sums.woken[0] + sums.woken[1], 4);
	assert_int_equal(sums.woken[6], 36);
	vp_sched_deinit(&sums);
}

/* Recordings without events, of other versions, without the scheduler's. */
static void test_other_recordings(void **state)
{
	static const char foreign[] = "vperf-events 1\nevent sched:sched_switch\nfield prev_tid "
				      "integer unsigned 8 0\nevent kvm:kvm_entry\n";
	const struct vp_tracks_options options = {.to = UINT64_MAX, .take = take};
	struct printed printed = {.track = VP_TRACK_VCPU};
	struct vp_tracks *tracks;
	struct made made;

	made_begin(&made, NAME, 1);
	made_end(&made, 10);
	expect_error(vp_tracks_open(NAME, &options, &tracks), "the recording has no events");
	begin(&made);
	enter(&made, 0, 20, 0);
	leave(&made, 0, 30, 0, MADE_HLT);
	finish(&made);
	print(&printed, "text", (struct vp_tracks_options){0});
	assert_string_equal(vp_buffer_text(&printed.out),
			    "    1.000000020    10 ns [000] vm0/0    guest\n");
	assert_int_equal(printed.notes.count, 1);
	assert_non_null(strstr(printed.notes.at[0], "no scheduler events"));
	printed_free(&printed);
	make();
	temporary_file(NAME "/host.events", foreign, sizeof(foreign) - 1);
	printed = (struct printed){.track = VP_TRACK_VCPU};
	print(&printed, "text", (struct vp_tracks_options){0});
	assert_int_equal(printed.out.size, 0);
	printed_free(&printed);
}

enum { HOST_VM = 1000, GUEST_VM = 2000 };

/* A vCPU's state that ended at `ns` of the recording. */
static void put_state(struct made *made, uint32_t vm, uint32_t cpu, uint64_t ns, uint64_t length,
		      enum vp_state state, int flags)
{
	struct vp_vcpu_span span = {.time = AT(ns),
				    .id = VP_ID_vcpu_span,
				    .flags = (uint16_t)flags,
				    .vm = vm,
				    .tid = vm + 1,
				    .state = (uint8_t)state,
				    .cpu = cpu,
				    .ns = length};

	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_STATES, VP_NO_PCPU},
			(void *)&span);
}

/* VMs that are no processes: the host is one of them. */
static void begin_domains(struct made *made)
{
	begin(made);
	for (uint32_t i = 0; i < 2; i++) {
		made->vms.at[i].has_domain = true;
		made->vms.at[i].domain = i;
	}
}

static void finish_domains(struct made *made)
{
	vp_trace_flush(made->writer, (struct vp_stream_id){VP_STREAM_STATES, VP_NO_PCPU}, 0);
	finish(made);
}

/* The guest is preempted by the host, whose kernel switches threads meanwhile; both sleep; the
 * guest moves to another pCPU; the host waits until the end. */
static void test_states(void **state)
{
	struct made made;

	begin_domains(&made);
	put_state(&made, GUEST_VM, 0, 50, 40, VP_STATE_GUEST, 0);
	put_state(&made, HOST_VM, 0, 52, 42, VP_STATE_PREEMPTED, VP_STATE_GOT_PCPU);
	change(&made, 0, 60, 50, 51, 0);
	change(&made, 0, 70, 51, 0, 0);
	put_state(&made, HOST_VM, 0, 80, 28, VP_STATE_GUEST, 0);
	put_state(&made, GUEST_VM, 0, 82, 32, VP_STATE_PREEMPTED, VP_STATE_GOT_PCPU);
	put_state(&made, GUEST_VM, 0, 90, 8, VP_STATE_GUEST, 0);
	put_state(&made, GUEST_VM, 0, 95, 5, VP_STATE_KERNEL, 0);
	put_state(&made, GUEST_VM, 0, 110, 15, VP_STATE_HALTED, 0);
	put_state(&made, GUEST_VM, 0, 120, 10, VP_STATE_WAKING,
		  VP_STATE_GOT_PCPU | VP_STATE_WAS_IDLE);
	put_state(&made, GUEST_VM, 0, 130, 10, VP_STATE_GUEST, 0);
	put_state(&made, GUEST_VM, 1, 140, 10, VP_STATE_PREEMPTED, VP_STATE_GOT_PCPU);
	put_state(&made, HOST_VM, 0, 150, 70, VP_STATE_THROTTLED, 0);
	put_state(&made, HOST_VM, 0, 160, 10, VP_STATE_PREEMPTED, 0);
	put_state(&made, GUEST_VM, 1, 160, 20, VP_STATE_GUEST, 0);
	finish_domains(&made);
	expect_track(VP_TRACK_VCPU,
		     "    1.000000010    40 ns [000] vm1/0    guest\n"
		     "    1.000000010    42 ns [000] vm0/0    preempted by=vCPU 0 of VM vm1/2001\n"
		     "    1.000000052     8 ns [000] vm0/0    guest\n"
		     "    1.000000060    10 ns [000] vm0/0    guest     -/51 exact\n"
		     "    1.000000070    10 ns [000] vm0/0    guest     swapper/0 exact\n"
		     "    1.000000050    32 ns [000] vm1/0    preempted by=vCPU 0 of VM vm0/1001\n"
		     "    1.000000082     8 ns [000] vm1/0    guest\n"
		     "    1.000000090     5 ns [000] vm1/0    work\n"
		     "    1.000000095    15 ns [-]   vm1/0    halted\n"
		     "    1.000000110    10 ns [000] vm1/0    waking    by=nobody/0\n"
		     "    1.000000120    10 ns [000] vm1/0    guest\n"
		     "    1.000000130    10 ns [001] vm1/0    preempted\n"
		     "    1.000000080    70 ns [-]   vm0/0    waiting   swapper/0\n"
		     "    1.000000150    10 ns [000] vm0/0    preempted swapper/0\n"
		     "    1.000000140    20 ns [001] vm1/0    guest\n");
	expect_track(VP_TRACK_PCPU,
		     "    1.000000010    40 ns [000] vm1/0    running   vCPU 0 of VM vm1/2001\n"
		     "    1.000000052    28 ns [000] vm0/0    running   vCPU 0 of VM vm0/1001\n"
		     "    1.000000082    13 ns [000] vm1/0    running   vCPU 0 of VM vm1/2001\n"
		     "    1.000000095    25 ns [000]          idle\n"
		     "    1.000000120    10 ns [000] vm1/0    running   vCPU 0 of VM vm1/2001\n"
		     "    1.000000130    30 ns [000]          idle\n"
		     "    1.000000140    20 ns [001] vm1/0    running   vCPU 0 of VM vm1/2001\n");
}

static void take_stolen(void *context, const struct vp_track_slice *slice)
{
	unsigned *counts = context;

	if (slice->track != VP_TRACK_VCPU || slice->state != VP_TRACK_PREEMPTED)
		return;
	uint32_t other = slice->vm == HOST_VM ? GUEST_VM : HOST_VM;
	counts[0]++;
	counts[1] += slice->has_thief && slice->thief_tid == other + 1;
}

/* Who had the pCPU is known however many turns there were. */
static void test_many_turns(void **state)
{
	enum { TURNS = 1500, LENGTH = 10 };
	unsigned counts[2] = {0};
	const struct vp_tracks_options options = {
	    .to = UINT64_MAX, .take = take_stolen, .context = counts};
	struct vp_tracks *tracks;
	struct made made;

	begin_domains(&made);
	for (uint64_t i = 1; i <= TURNS; i++) {
		uint32_t runs = i % 2 ? HOST_VM : GUEST_VM, waits = i % 2 ? GUEST_VM : HOST_VM;
		put_state(&made, runs, 0, i * LENGTH, LENGTH, VP_STATE_GUEST, 0);
		put_state(&made, waits, 0, i * LENGTH, LENGTH, VP_STATE_PREEMPTED,
			  VP_STATE_GOT_PCPU);
	}
	finish_domains(&made);
	expect_no_error(vp_tracks_open(NAME, &options, &tracks));
	while (vp_tracks_read(tracks, UINT64_MAX))
		;
	assert_int_equal(counts[0], TURNS);
	assert_int_equal(counts[1], TURNS);
	vp_tracks_close(tracks);
}

/* Of domains, whatever events there are: the scheduler's are of the host's own vCPUs. */
static void test_no_states(void **state)
{
	const struct vp_tracks_options options = {.to = UINT64_MAX};
	struct vp_tracks *tracks;
	struct made made;

	begin_domains(&made);
	change(&made, 0, 60, 50, 51, 0);
	finish(&made);
	struct vp_error *error = vp_tracks_open(NAME, &options, &tracks);
	assert_non_null(error);
	assert_string_equal(vp_error_message(error),
			    "the recording has no vCPU states in time order: record with --trace "
			    "or --account-events");
	vp_error_free(error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_host_threads),
	    cmocka_unit_test(test_vcpu),
	    cmocka_unit_test(test_states),
	    cmocka_unit_test(test_many_turns),
	    cmocka_unit_test(test_no_states),
	    cmocka_unit_test(test_late_exits),
	    cmocka_unit_test(test_losses),
	    cmocka_unit_test(test_filters),
	    cmocka_unit_test(test_switches),
	    cmocka_unit_test(test_csv_names),
	    cmocka_unit_test(test_sums),
	    cmocka_unit_test(test_worst_waits),
	    cmocka_unit_test(test_other_recordings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
