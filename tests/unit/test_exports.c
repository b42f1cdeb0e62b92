/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an exporter is given of a recording of two VMs: samples, slices of vCPUs' states, totals. */
#include "unit.h"

#include "analyze/report/export.h"
#include "analyze/report/report_make.h"
#include "base/file.h"
#include "bpf/account_abi.h"
#include "export/exporters.h"
#include "import/tracedat/tracedat.h"
#include "make_recording.h"

#define NAME "test_exports.rec"
#define AT(ns) (MADE_START + (ns))

static struct vp_report report;
static struct vp_buffer written;
static size_t writes;

static struct vp_error *keep(void *context, struct vp_buffer *out)
{
	vp_buffer_append(&written, out->bytes, out->size);
	writes++;
	return NULL;
}

static void put_text(const struct vp_export *export, uint32_t text)
{
	const char *name = vp_export_text(export, text);

	vp_buffer_printf(export->out, " %s", name ? name : "-");
}

/* "TIME pCPU pid/tid weight: VM/vCPU kind function@ip+start …" */
static void sample(struct vp_export *export, const struct vp_sample *sample)
{
	vp_buffer_printf(export->out, "%llu", (unsigned long long)(sample->time - MADE_START));
	if (sample->pcpu == VP_NONE)
		vp_buffer_string(export->out, " -");
	else
		vp_buffer_printf(export->out, " %u", sample->pcpu);
	vp_buffer_printf(export->out, " %u/%u %llu:", sample->pid, sample->tid,
			 (unsigned long long)sample->weight);
	for (uint32_t i = 0; i < sample->count; i++) {
		const struct vp_frame *frame = &sample->frames[i];
		const char *vm = vp_export_vm(export, frame->vm);
		vp_buffer_printf(export->out, " %s/%d %s", vm ? vm : "host", (int)frame->vcpu,
				 vp_kind_name(frame->kind));
		put_text(export, frame->process);
		put_text(export, frame->function);
		if (sample->addresses)
			vp_buffer_printf(export->out, "@%llx+%llx",
					 (unsigned long long)sample->addresses[i].ip,
					 (unsigned long long)(sample->addresses[i].ip -
							      sample->addresses[i].start));
	}
	vp_buffer_string(export->out, "\n");
}

static void slice(struct vp_export *export, const struct vp_state_slice *slice)
{
	vp_buffer_printf(
	    export->out, "slice %lld-%llu %s/%u %u %s %s\n", (long long)(slice->begin - MADE_START),
	    (unsigned long long)(slice->end - MADE_START), vp_export_vm(export, slice->vm),
	    slice->vcpu, slice->pcpu, slice->state, slice->reason ? slice->reason : "-");
}

static void begin(struct vp_export *export)
{
	vp_buffer_string(export->out, "begin\n");
}

static void end(struct vp_export *export)
{
	vp_buffer_string(export->out, "end\n");
	vp_vec_push(&export->notes, vp_strdup("a format's note"));
}

static const struct vp_exporter exporter = {
    .begin = begin, .sample = sample, .slice = slice, .end = end};

static void period(struct vp_export *export, const struct vp_track_slice *period)
{
	vp_buffer_printf(export->out, "%s %llu-%llu %u",
			 period->track == VP_TRACK_PCPU ? "pcpu" : "vcpu",
			 (unsigned long long)(period->begin - MADE_START),
			 (unsigned long long)(period->end - MADE_START), period->pcpu);
	if (period->has_vcpu)
		vp_buffer_printf(export->out, " %s/%u", vp_tracks_vm(export->tracks, period->vm),
				 period->vcpu);
	vp_buffer_printf(export->out, " %u\n", period->tid);
}

static void event(struct vp_export *export, const struct vp_script_event *event)
{
	vp_buffer_printf(export->out, "%s %llu %u %s\n", event->name,
			 (unsigned long long)(event->time - MADE_START), event->pcpu,
			 event->vm ? event->vm : "-");
}

static void expect_export_by(const struct vp_exporter *way, struct vp_profile_options options,
			     const char *expected)
{
	static const struct vp_export_writer writer = {.write = keep};
	const struct vp_naming_options naming = {.directory = NAME};

	for (uint32_t jobs = 1; jobs < 3; jobs++) {
		written.size = 0;
		options.jobs = jobs;
		expect_no_error(vp_export_stream(&naming, &options, way, &writer, &report));
		assert_string_equal(vp_buffer_text(&written), expected);
		assert_string_equal(report.notes.at[report.notes.count - 1], "a format's note");
		vp_report_deinit(&report);
	}
	vp_buffer_deinit(&written);
	written = (struct vp_buffer){0};
}

static void expect_export(struct vp_profile_options options, const char *expected)
{
	expect_export_by(&exporter, options, expected);
}

static void span(struct made *made, uint32_t vm, uint32_t vcpu, uint64_t ns, uint64_t length,
		 enum vp_state state, uint16_t flags)
{
	struct vp_vcpu_span record = {.time = AT(ns),
				      .id = VP_ID_vcpu_span,
				      .flags = flags,
				      .vm = vm,
				      .tid = vm + vcpu + 1,
				      .vcpu = (uint16_t)vcpu,
				      .state = (uint8_t)state,
				      .vendor = VP_VENDOR_AMD,
				      .reason = MADE_HLT,
				      .cpu = vcpu,
				      .ns = length};

	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_STATES, VP_NO_PCPU}, &record);
}

static void make(void)
{
	static const char maps[] = "vperf-maps 1\nmachine guest -\nsource memory\n"
				   "a 0 71 2000 0 0 worker\nm 0 400000 401000 0 0 - /bin/worker\n"
				   "i - /bin/worker\ns 0 100 work\nend 7\n";
	struct made made;

	made_begin(&made, NAME, 2);
	made_task(&made, 1, 0, 77, 77, "task");
	made_guest(&made, 0, 1, 1, 1, VP_MODE_GUEST_USER, MADE_INTR);
	made.offset = 10;
	made_host(&made, 1, 1, 77, VP_MODE_USER);
	made.offset = 20;
	made_in_kvm(&made, 0, 1, 1, 0, MADE_NPF);
	made_idle(&made, 1, 2);
	made_guest(&made, 0, 3, 0, 0, VP_MODE_GUEST_KERNEL, MADE_INTR);
	span(&made, 2000, 1, 1000000, 400000, VP_STATE_GUEST, 0);
	span(&made, 1000, 0, 1000005, 2000000, VP_STATE_HALTED, VP_HAS_EXIT_REASON);
	span(&made, 3000, 0, 1000006, 5, VP_STATE_GUEST, 0); /* a VM that there is not */
	span(&made, 2000, 0, 1000007, 5, VP_STATES, 0);
	span(&made, 2000, 0, 4000000, 500000, VP_STATE_PREEMPTED, 0);
	vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_STATES, VP_NO_PCPU}, 0);
	made_end(&made, 10);
	temporary_file(NAME "/guest-vm1.maps", maps, sizeof(maps) - 1);
}

/* Each sample at its time, with its thread, and slices by the time of their end before them. */
static void test_stream(void **state)
{
	make();
	expect_export(
	    (struct vp_profile_options){.view = VP_VIEW_UNIFIED},
	    "begin\n"
	    "slice 600000-1000000 vm1/1 1 guest -\n"
	    "1000000 0 2000/2002 1: vm1/1 user worker work@400010+10\n"
	    "slice -999995-1000005 vm0/0 0 halted HLT\n"
	    "1000010 1 77/77 1: host/-1 user task 0xffffffff82000000@ffffffff82000000+0\n"
	    "1000020 0 2000/2001 1: host/0 kernel - 0xffffffff81000000@ffffffff81000000+0\n"
	    "2000020 1 0/0 1: host/-1 idle - [idle]@0+0\n"
	    "3000020 0 1000/1001 1: vm0/0 kernel cr3:0x1000 0x400000@400000+0\n"
	    "slice 3500000-4000000 vm1/0 0 preempted -\n"
	    "end\n");
	expect_export(
	    (struct vp_profile_options){.view = VP_VIEW_HOST, .vm = "vm1"},
	    "begin\n"
	    "slice 600000-1000000 vm1/1 1 guest -\n"
	    "1000000 0 2000/2002 1: vm1/1 vm - [vm1]@0+0\n"
	    "1000020 0 2000/2001 1: host/0 kernel - 0xffffffff81000000@ffffffff81000000+0\n"
	    "slice 3500000-4000000 vm1/0 0 preempted -\n"
	    "end\n");
}

/* A blank is the vCPU's that waits. */
static void test_blanks(void **state)
{
	make();
	expect_export((struct vp_profile_options){.view = VP_VIEW_GUEST, .vm = "vm1"},
		      "begin\n"
		      "slice 600000-1000000 vm1/1 1 guest -\n"
		      "1000000 0 2000/2002 1: vm1/1 user worker work@400010+10\n"
		      "1000020 0 2000/2001 1: vm1/1 steal - [steal] (on vcpu0)@0+0\n"
		      "1000020 0 2000/2001 1: vm1/0 steal - [steal] (host)@0+0\n"
		      "3000020 0 1000/1001 1: vm1/1 steal - [steal] (vm0)@0+0\n"
		      "3000020 0 1000/1001 1: vm1/0 steal - [steal] (vm0)@0+0\n"
		      "slice 3500000-4000000 vm1/0 0 preempted -\n"
		      "end\n");
}

static void test_filters(void **state)
{
	static const int second[] = {1};

	make();
	/* Slices of that time, that vCPU, these pCPUs. */
	expect_export(
	    (struct vp_profile_options){
		.view = VP_VIEW_UNIFIED, .from = AT(1000005), .to = AT(2000020)},
	    "begin\n"
	    "slice -999995-1000005 vm0/0 0 halted HLT\n"
	    "1000010 1 77/77 1: host/-1 user task 0xffffffff82000000@ffffffff82000000+0\n"
	    "1000020 0 2000/2001 1: host/0 kernel - 0xffffffff81000000@ffffffff81000000+0\n"
	    "2000020 1 0/0 1: host/-1 idle - [idle]@0+0\n"
	    "end\n");
	expect_export(
	    (struct vp_profile_options){.view = VP_VIEW_UNIFIED, .has_vcpu = true, .vcpu = 1},
	    "begin\n"
	    "slice 600000-1000000 vm1/1 1 guest -\n"
	    "1000000 0 2000/2002 1: vm1/1 user worker work@400010+10\n"
	    "end\n");
	expect_export(
	    (struct vp_profile_options){.view = VP_VIEW_UNIFIED, .pcpus = second, .n_pcpus = 1},
	    "begin\n"
	    "slice 600000-1000000 vm1/1 1 guest -\n"
	    "1000010 1 77/77 1: host/-1 user task 0xffffffff82000000@ffffffff82000000+0\n"
	    "2000020 1 0/0 1: host/-1 idle - [idle]@0+0\n"
	    "end\n");
	/* Of a process there are no slices. */
	expect_export((struct vp_profile_options){.view = VP_VIEW_UNIFIED, .pid = 71},
		      "begin\n"
		      "1000000 0 2000/2002 1: vm1/1 user worker work@400010+10\n"
		      "end\n");
	expect_export((struct vp_profile_options){.view = VP_VIEW_UNIFIED, .comm = "task"},
		      "begin\n"
		      "1000010 1 77/77 1: host/-1 user task 0xffffffff82000000@ffffffff82000000+0\n"
		      "end\n");
}

/* A vCPU of vm0 on pCPU 0, one of vm1 on pCPU 1. */
static void make_trace(void)
{
	struct made made;

	made_begin(&made, NAME, 2);
	made_trace_begin(&made, 2);
	MADE_EVENT(&made, 0, AT(100), sched_switch, .prev_tid = 0, .next_tid = 1001);
	MADE_EVENT(&made, 1, AT(150), sched_switch, .prev_tid = 0, .next_tid = 2002);
	MADE_EVENT(&made, 0, AT(200), kvm_entry, .tid = 1001, .vm = 1000, .vcpu = 0);
	MADE_EVENT(&made, 1, AT(250), kvm_entry, .tid = 2002, .vm = 2000, .vcpu = 1);
	MADE_EVENT(&made, 0, AT(300), kvm_exit, .tid = 1001, .vm = 1000, .vcpu = 0);
	MADE_EVENT(&made, 1, AT(350), kvm_exit, .tid = 2002, .vm = 2000, .vcpu = 1);
	made_trace_end(&made, 2, 10);
}

/* Events and what lies between them: of the VM, the pCPUs and the time that are asked for. */
static void test_traces(void **state)
{
	static const struct vp_exporter events = {.begin = begin, .event = event, .end = end};
	static const struct vp_exporter periods = {
	    .begin = begin, .track_slice = period, .end = end};
	static const char of_second[] = "begin\nvcpu 150-250 1 vm1/1 2002\n"
					"vcpu 250-350 1 vm1/1 2002\n"
					"pcpu 150-350 1 vm1/1 2002\nend\n";
	static const int second[] = {1};
	struct vp_profile_options options = {.view = VP_VIEW_UNIFIED};

	make_trace();
	expect_export_by(&events, options,
			 "begin\nsched:sched_switch 100 0 -\nsched:sched_switch 150 1 -\n"
			 "kvm:kvm_entry 200 0 vm0\nkvm:kvm_entry 250 1 vm1\n"
			 "kvm:kvm_exit 300 0 vm0\nkvm:kvm_exit 350 1 vm1\nend\n");
	options.from = AT(200);
	options.to = AT(300);
	expect_export_by(&events, options,
			 "begin\nkvm:kvm_entry 200 0 vm0\nkvm:kvm_entry 250 1 vm1\n"
			 "kvm:kvm_exit 300 0 vm0\nend\n");
	options = (struct vp_profile_options){.view = VP_VIEW_UNIFIED, .vm = "vm1"};
	expect_export_by(&events, options,
			 "begin\nsched:sched_switch 150 1 -\nkvm:kvm_entry 250 1 vm1\n"
			 "kvm:kvm_exit 350 1 vm1\nend\n");
	expect_export_by(&periods, options, of_second);
	options =
	    (struct vp_profile_options){.view = VP_VIEW_UNIFIED, .pcpus = second, .n_pcpus = 1};
	expect_export_by(&events, options,
			 "begin\nsched:sched_switch 150 1 -\nkvm:kvm_entry 250 1 vm1\n"
			 "kvm:kvm_exit 350 1 vm1\nend\n");
	expect_export_by(&periods, options, of_second);
	options =
	    (struct vp_profile_options){.view = VP_VIEW_UNIFIED, .from = AT(210), .to = AT(260)};
	/* Cut off at the window's ends. */
	expect_export_by(&periods, options,
			 "begin\nvcpu 210-250 1 vm1/1 2002\nvcpu 210-260 0 vm0/0 1001\n"
			 "vcpu 250-260 1 vm1/1 2002\npcpu 210-260 0 vm0/0 1001\n"
			 "pcpu 210-260 1 vm1/1 2002\nend\n");
}

/* Why a thread left its pCPU is told as the kernel does: preempted ones are runnable. */
static void test_states_of_tracedat(void **state)
{
	enum { STATE = 8 + 16 + 4 + 4 }; /* behind the common fields, name, number and priority */
	static const uint64_t expected[] = {0x100, 0, 1, 2, 0x80};
	static const struct vp_export_writer writer = {.write = keep,
						       .directory = "test_exports.dats"};
	const struct vp_naming_options naming = {.directory = NAME};
	const struct vp_profile_options options = {.view = VP_VIEW_UNIFIED};
	struct vp_tracedat_walk walk = {.cpu = 0};
	struct vp_buffer bytes = {0};
	struct vp_tracedat file;
	struct made made;
	struct vp_slice raw;
	uint32_t class;
	uint64_t time;

	made_begin(&made, NAME, 2);
	made_trace_begin(&made, 1);
	MADE_EVENT(&made, 0, AT(100), sched_switch, .prev_tid = 5, .prev_state = 1, .preempted = 1);
	MADE_EVENT(&made, 0, AT(200), sched_switch, .prev_tid = 5);
	MADE_EVENT(&made, 0, AT(300), sched_switch, .prev_tid = 5, .prev_state = 1);
	MADE_EVENT(&made, 0, AT(400), sched_switch, .prev_tid = 5, .prev_state = 2);
	MADE_EVENT(&made, 0, AT(500), sched_switch, .prev_tid = 5, .prev_state = 0x80);
	made_trace_end(&made, 1, 10);
	assert_int_equal(system("rm -rf test_exports.dats && mkdir test_exports.dats"), 0);
	expect_no_error(
	    vp_export_stream(&naming, &options, vp_exporter_tracedat(), &writer, &report));
	vp_report_deinit(&report);
	expect_no_error(vp_file_read("test_exports.dats/host.dat", 1 << 24, &bytes));
	expect_no_error(vp_tracedat_open("it", (struct vp_slice){bytes.bytes, bytes.size}, &file));
	for (size_t i = 0; i < VP_ARRAY_SIZE(expected); i++) {
		uint64_t is;
		assert_true(vp_tracedat_next(&file, &walk, &class, &time, &raw));
		assert_string_equal(file.classes.at[class].name, "sched:sched_switch");
		assert_true(raw.size >= STATE + sizeof(is));
		memcpy(&is, raw.bytes + STATE, sizeof(is));
		assert_int_equal(is, expected[i]);
	}
	assert_false(vp_tracedat_next(&file, &walk, &class, &time, &raw));
	vp_tracedat_close(&file);
	vp_buffer_deinit(&bytes);
}

/* Rows instead of samples: as many as are shown. */
static void test_totals(void **state)
{
	const struct vp_naming_options naming = {.directory = NAME};
	const struct vp_profile_options options = {.view = VP_VIEW_UNIFIED};
	const struct vp_exporter totals = {.totals = true, .begin = begin, .sample = sample};
	struct vp_buffer out = {0};

	make();
	expect_no_error(vp_report_make(&naming, &options, &report));
	report.limit = 2;
	vp_export_totals(&report, &totals, &out);
	assert_int_equal(strncmp(vp_buffer_text(&out), "begin\n", 6), 0);
	size_t lines = 0;
	for (const char *at = vp_buffer_text(&out); *at; at++)
		lines += *at == '\n';
	assert_int_equal(lines, 3);
	report.limit = 0;
	out.size = 0;
	vp_export_totals(&report, &totals, &out);
	assert_non_null(strstr(vp_buffer_text(&out), " - 0/0 1: vm1/-1 user worker work\n"));
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

static struct vp_error *refuse(void *context, struct vp_buffer *out)
{
	return vp_error_new("the disk is full");
}

/* Output goes on its way when there is much of it; what cannot be written ends the export. */
static void test_writing(void **state)
{
	const struct vp_naming_options naming = {.directory = NAME};
	const struct vp_profile_options options = {.view = VP_VIEW_HOST};
	const struct vp_export_writer good = {.write = keep}, bad = {.write = refuse};
	struct made made;

	made_begin(&made, NAME, 2);
	for (uint64_t tick = 0; tick < 5000; tick++)
		made_host(&made, 0, tick, 77, VP_MODE_USER);
	made_end(&made, 5000);
	writes = 0;
	expect_no_error(vp_export_stream(&naming, &options, &exporter, &good, &report));
	assert_in_range(writes, written.size / VP_EXPORT_PIECE, written.size / VP_EXPORT_PIECE + 1);
	assert_true(writes > 3);
	vp_report_deinit(&report);
	vp_buffer_deinit(&written);
	written = (struct vp_buffer){0};
	expect_error(vp_export_stream(&naming, &options, &exporter, &bad, &report),
		     "the disk is full");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_stream),
	    cmocka_unit_test(test_blanks),
	    cmocka_unit_test(test_filters),
	    cmocka_unit_test(test_traces),
	    cmocka_unit_test(test_states_of_tracedat),
	    cmocka_unit_test(test_totals),
	    cmocka_unit_test(test_writing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
