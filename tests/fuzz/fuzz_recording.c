/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording from anywhere: one of its files is the fuzzer's, the others are sound. The first byte
 * chooses: 0 a stream as it is, 1 a stream's records in a packet with a good checksum, 2 `vms`,
 * 3 `recording`, 4 `cgroups`, 5 `host.events`, 6 a compressed stream, 7 as 1, of VMs that are
 * domains. All views are made of it and rendered in all formats, the tables of the account, and all
 * events one after another, and the periods made of them.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/account/account_tables.h"
#include "analyze/report/report_make.h"
#include "analyze/trace/sched.h"
#include "base/alloc.h"
#include "base/file.h"
#include "export/exporters.h"
#include "render/render_account.h"
#include "render/render_report.h"
#include "render/render_script.h"
#include "render/render_summary.h"
#include "render/render_table.h"
#include "render/render_tracks.h"
#include "schema/trace_event.h"
#include "store/packet_split.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char good_recording[] =
    "vperf-recording 6\ntrigger cycles\nperiod_ns 1000000\nby_time 0\n"
    "pcpus 2\nstart 1\nrecords 3\nlost 0\nend 100000000\n";
static const char good_vms[] =
    "vperf-vms 6\nvm 1000 1000 7 1 0 1 3 - one\nvcpu 0 1001\nvcpu 1 1002\n"
    "vm 4196304 2000 8 1 90000000 0 4 - two\nvcpu 0 2001\ntsc 10 0 0\n";

static const char vms_as_domains[] =
    "vperf-vms 6\nvm 1 1 0 1 0 1 0 - one\ndomain 0\nvcpu 0 4096\nvcpu 1 4097\n"
    "vm 2 2 0 1 0 1 0 - two\ndomain 1\nvcpu 0 8192\n";

/* What a stream of one class has is the others' in vain: all are to stand it. */
static const char *const streams[] = {"host/cpu0", "host/account", "host/vcpus", "host/trace-cpu0"};

#define COMPRESSED "host/trace-cpu1.zst"

static void put_file(const char *directory, const char *name, const void *bytes, size_t size)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	FILE *file = fopen(path, "w");
	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
		abort();
}

/* Puts a sound header before the records. */
static void put_packet(const char *directory, const uint8_t *records, size_t size)
{
	struct vp_packet_header header = {.magic = VP_PACKET_MAGIC};
	struct vp_buffer packet = {0};

	header.packet_size = header.content_size = 8 * (sizeof(header) + size);
	vp_buffer_append(&packet, &header, sizeof(header));
	vp_buffer_append(&packet, records, size);
	header.checksum = vp_packet_checksum(&header, records, size);
	memcpy(packet.bytes, &header, sizeof(header));
	for (size_t i = 0; i < VP_ARRAY_SIZE(streams); i++)
		put_file(directory, streams[i], packet.bytes, packet.size);
	vp_buffer_deinit(&packet);
}

static void report_into(struct vp_buffer *out, const char *directory,
			const struct vp_profile_options *options)
{
	struct vp_naming_options naming = {.directory = directory};
	struct vp_report made;
	struct vp_error *error = vp_report_make(&naming, options, &made);

	if (error) {
		vp_error_free(error);
		return;
	}
	made.graph.shown = true;
	made.graph.order = options->by_callees ? VP_CALL_CALLER : VP_CALL_CALLEE;
	vp_render_report_text(&made, true, out);
	vp_render_report_csv(&made, false, out);
	vp_render_report_json(&made, false, out);
	vp_export_totals(&made, vp_exporter_folded(), out);
	vp_report_deinit(&made);
}

static void report(const char *directory, const struct vp_profile_options *options)
{
	struct vp_buffer out = {0};

	report_into(&out, directory, options);
	/* Whoever wrote the recording, its names do no harm to a terminal. */
	for (size_t i = 0; i < out.size; i++)
		if ((unsigned char)out.bytes[i] < ' ' && !strchr("\n\033", out.bytes[i]))
			abort();
	vp_buffer_deinit(&out);
}

/* Three threads say what one does, tick by tick and by classes of them. */
static void report_by_three(const char *directory, enum vp_view view, bool chains)
{
	struct vp_profile_options options = {.view = view, .chains = chains};
	struct vp_buffer one = {0}, three = {0};

	report_into(&one, directory, &options);
	options.jobs = 3;
	report_into(&three, directory, &options);
	if (one.size != three.size || (one.size && memcmp(one.bytes, three.bytes, one.size) != 0))
		abort();
	vp_buffer_deinit(&one);
	vp_buffer_deinit(&three);
}

static struct vp_error *look_at_piece(void *context, struct vp_buffer *out)
{
	for (size_t i = 0; i < out->size; i++)
		if ((unsigned char)out->bytes[i] < ' ' && !strchr("\n\t", out->bytes[i]))
			abort();
	out->size = 0;
	return NULL;
}

/* Each sample by itself, and as slices whatever states of vCPUs are among the records. */
static void export_samples(const char *directory, const struct vp_exporter *exporter,
			   enum vp_view view)
{
	struct vp_naming_options naming = {.directory = directory};
	struct vp_profile_options options = {.view = view, .vm = "one", .chains = true};
	struct vp_report made;
	struct vp_error *error = vp_export_stream(
	    &naming, &options, exporter, &(struct vp_export_writer){.write = look_at_piece}, &made);

	if (!error)
		vp_report_deinit(&made);
	vp_error_free(error);
}

static void inform(const char *directory)
{
	struct vp_summary summary;
	struct vp_buffer out = {0};
	struct vp_error *error = vp_summary_make(directory, &summary);

	if (!error) {
		vp_render_summary_text(&summary, 60, false, &out);
		vp_render_summary_json(&summary, &out);
		vp_summary_deinit(&summary);
	}
	vp_error_free(error);
	vp_buffer_deinit(&out);
}

static void put_account_tables(struct vp_account_recording *rec, struct vp_account_view *view,
			       struct vp_buffer *out)
{
	static const char *const keys[] = {"states", "vcpus",     "thieves",
					   "exits",  "functions", "processes"};
	struct vp_table tables[6] = {0};
	struct vp_naming naming = {0};
	struct vp_json json = vp_json_to(out);

	vp_account_states_table(view, &tables[0]);
	vp_account_vcpus_table(view, &tables[1]);
	vp_account_steal_table(view, &tables[2]);
	vp_account_exits_table(view, &tables[3]);
	vp_account_sites_table(view, &naming, VP_EXITS_BY_FUNCTION, &tables[4]);
	vp_account_sites_table(view, &naming, VP_EXITS_BY_PROCESS, &tables[5]);
	vp_render_account_head(rec, "account", out);
	vp_json_object(&json, NULL);
	for (size_t i = 0; i < VP_ARRAY_SIZE(tables); i++) {
		vp_render_table_text(&tables[i], true, out);
		vp_render_table_csv(&tables[i], true, out);
		vp_render_table_json(&tables[i], keys[i], &json);
		vp_table_deinit(&tables[i]);
	}
	vp_render_checks(&rec->checks, out);
	vp_render_account_json(rec, &json);
	vp_json_object_end(&json);
}

static void account(const char *directory)
{
	struct vp_account_recording rec;
	struct vp_account_view view;
	struct vp_buffer out = {0};
	struct vp_error *error = vp_account_recording_open(directory, NULL, &rec);

	if (error) {
		vp_error_free(error);
		return;
	}
	if (vp_account_view_init(&view, &rec.account, NULL))
		abort();
	view.cgroups = &rec.cgroups;
	view.seconds = rec.duration;
	put_account_tables(&rec, &view, &out);
	for (size_t i = 0; i < out.size; i++)
		if ((unsigned char)out.bytes[i] < ' ' && !strchr("\n\033", out.bytes[i]))
			abort();
	vp_buffer_deinit(&out);
	vp_account_view_deinit(&view);
	vp_account_recording_close(&rec);
}

static void look_at_line(const struct vp_buffer *out)
{
	for (size_t i = 0; i < out->size; i++)
		if ((unsigned char)out->bytes[i] < ' ' &&
		    (out->bytes[i] != '\n' || i + 1 < out->size))
			abort();
}

/* Appends all events as lines of text, as usual or prepared. */
static bool put_lines(const char *directory, const struct vp_script_options *options, bool prepared,
		      struct vp_buffer *out)
{
	const struct vp_script_format *format = vp_script_format_named("text");
	const struct vp_script_event *event;
	struct vp_script *script;
	struct vp_error *error = vp_script_open(directory, options, &script);

	if (error) {
		vp_error_free(error);
		return false;
	}
	struct vp_script_layout layout = {vp_script_columns(script), VP_SHOW_ALL};
	struct vp_script_lines *lines = prepared ? vp_script_lines_new(script) : NULL;
	while (lines && vp_script_lines_put(lines, UINT64_MAX, SIZE_MAX, out))
		;
	while (!lines && (event = vp_script_next(script)))
		format->event(event, &layout, out);
	if (lines)
		vp_script_lines_free(lines);
	vp_script_close(script);
	return true;
}

/* Prepared lines are the same as the others. */
static void compare_lines(const char *directory, const struct vp_script_options *options)
{
	const struct vp_script_layout layout = {.shown = VP_SHOW_ALL};
	struct vp_buffer usual = {0}, prepared = {0};

	if (vp_script_lines_fit(&layout, options) && put_lines(directory, options, false, &usual) &&
	    put_lines(directory, options, true, &prepared) &&
	    (usual.size != prepared.size ||
	     (usual.size && memcmp(usual.bytes, prepared.bytes, usual.size) != 0)))
		abort();
	vp_buffer_deinit(&usual);
	vp_buffer_deinit(&prepared);
}

/* Every event in every format is one line. */
static void print_events(const char *directory, const struct vp_script_options *options)
{
	static const char *const names[] = {"text", "jsonl", "csv"};
	const struct vp_script_event *event;
	struct vp_buffer out = {0};
	struct vp_script *script;
	struct vp_error *error = vp_script_open(directory, options, &script);

	if (error) {
		vp_error_free(error);
		return;
	}
	struct vp_script_layout layout = {vp_script_columns(script), VP_SHOW_ALL};
	while ((event = vp_script_next(script)))
		for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++) {
			const struct vp_script_format *format = vp_script_format_named(names[i]);
			out.size = 0;
			format->event(event, &layout, &out);
			look_at_line(&out);
		}
	out.size = 0;
	vp_script_format_named("csv")->begin(&layout, &out);
	look_at_line(&out);
	vp_script_close(script);
	vp_buffer_deinit(&out);
}

struct periods {
	struct vp_tracks_layout layout;
	struct vp_sched sums;
};

/* Every period ends after it began, and is one line. */
static void take_period(void *context, const struct vp_track_slice *period)
{
	static const char *const names[] = {"text", "jsonl", "csv"};
	struct periods *periods = context;
	struct vp_buffer out = {0};

	if (period->begin > period->end || period->wait_begin > period->end)
		abort();
	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++) {
		out.size = 0;
		vp_tracks_format_named(names[i])->slice(period, &periods->layout, &out);
		look_at_line(&out);
	}
	vp_buffer_deinit(&out);
	vp_sched_take(&periods->sums, period);
}

static void put_sched_tables(struct periods *periods)
{
	struct vp_table tables[4] = {0};
	struct vp_buffer out = {0};

	vp_sched_vcpu_table(&periods->sums, periods->layout.tracks, &tables[0]);
	vp_sched_thread_table(&periods->sums, periods->layout.tracks, &tables[1]);
	vp_sched_wait_table(&periods->sums, &tables[2]);
	vp_sched_worst_table(&periods->sums, periods->layout.tracks, &tables[3]);
	for (size_t i = 0; i < VP_ARRAY_SIZE(tables); i++) {
		vp_render_table_text(&tables[i], true, &out);
		vp_table_deinit(&tables[i]);
	}
	vp_buffer_deinit(&out);
}

static void print_periods(const char *directory, uint64_t from, uint64_t to, const char *vm)
{
	struct periods periods = {.sums.max_waits = 3};
	const struct vp_tracks_options options = {
	    .from = from, .to = to, .vm = vm, .take = take_period, .context = &periods};
	struct vp_error *error = vp_tracks_open(directory, &options, &periods.layout.tracks);

	if (error) {
		vp_error_free(error);
		return;
	}
	while (vp_tracks_read(periods.layout.tracks, 100))
		;
	put_sched_tables(&periods);
	vp_tracks_close(periods.layout.tracks);
	vp_sched_deinit(&periods.sums);
}

/* One sample of each kind, and an account, of a VM that `vms` may or may not know, from thread ids
 * of all sizes. */
static void put_good_stream(const char *directory)
{
	const struct vp_guest_sample guest = {
	    .time = 20, .id = VP_ID_guest_sample, .vm = 1000, .tid = 1001, .mode = 5};
	const struct vp_vcpu_sample vcpu = {
	    .time = 10, .id = VP_ID_vcpu_sample, .vm = UINT32_MAX, .tid = UINT32_MAX, .mode = 1};
	const struct vp_host_sample host = {.time = 30, .id = VP_ID_host_sample, .mode = 1};
	struct vp_buffer records = {0};

	vp_buffer_append(&records, &vcpu, sizeof(vcpu));
	vp_buffer_append(&records, &guest, sizeof(guest));
	vp_buffer_append(&records, &host, sizeof(host));
	const struct vp_vcpu_account times = {.time = 40,
					      .id = VP_ID_vcpu_account,
					      .vm = 1000,
					      .begin = 1,
					      .end = 11,
					      .guest = 5,
					      .preempted = 5};
	const struct vp_thief thief = {.time = 40,
				       .id = VP_ID_thief,
				       .vm = 1000,
				       .state = 7,
				       .kind = VP_BY_TASK,
				       .cgroup = 7,
				       .ns = 5,
				       .comm = "thief"};
	vp_buffer_append(&records, &times, sizeof(times));
	vp_buffer_append(&records, &thief, sizeof(thief));
	const struct vp_trace_kvm_exit left = {.time = 50,
					       .id = VP_TRACE_ID_kvm_exit,
					       .size = VP_TRACE_SIZE_kvm_exit,
					       .tid = 1002,
					       .vm = 1000,
					       .reason = 0x78,
					       .vendor = VP_VENDOR_AMD};
	vp_buffer_append(&records, &left, sizeof(left));
	put_packet(directory, (const uint8_t *)records.bytes, records.size);
	vp_buffer_deinit(&records);
}

static void put_classes(const char *directory)
{
	vp_event_classes classes = {0};
	struct vp_buffer text = {0};

	if (vp_trace_event_classes(&classes))
		abort();
	vp_event_classes_write(&classes, &text);
	put_file(directory, "host.events", text.bytes, text.size);
	vp_event_classes_deinit(&classes);
	vp_buffer_deinit(&text);
}

static void put_all(const char *directory, const uint8_t *bytes, size_t size)
{
	uint8_t which = bytes[0] % 8;

	put_file(directory, "recording", good_recording, sizeof(good_recording) - 1);
	put_file(directory, "vms", good_vms, sizeof(good_vms) - 1);
	put_file(directory, "cgroups", "7 /a\n", 5);
	put_classes(directory);
	put_good_stream(directory);
	put_file(directory, COMPRESSED, "", 0);
	for (size_t i = 0; which == 0 && i < VP_ARRAY_SIZE(streams); i++)
		put_file(directory, streams[i], bytes + 1, size - 1);
	if (which == 7)
		put_file(directory, "vms", vms_as_domains, sizeof(vms_as_domains) - 1);
	if (which == 1 || which == 7)
		put_packet(directory, bytes + 1, size - 1);
	else if (which > 1)
		put_file(directory,
			 which == 2   ? "vms"
			 : which == 3 ? "recording"
			 : which == 4 ? "cgroups"
			 : which == 5 ? "host.events"
				      : COMPRESSED,
			 bytes + 1, size - 1);
}

/* Whatever is joined is records, and is joined again after it was split. */
static void join(const uint8_t *bytes, size_t size)
{
	static struct vp_splitter splitter;
	struct vp_split split;
	uint32_t whole;

	if (size < sizeof(split) + sizeof(whole))
		return;
	memcpy(&split, bytes, sizeof(split));
	memcpy(&whole, bytes + sizeof(split), sizeof(whole));
	size_t left = size - sizeof(split) - sizeof(whole);
	split.bytes %= sizeof(uint64_t) + 1;
	split.reserved = 0;
	split.templates %= 2 * VP_TEMPLATES_MAX;
	split.count %= left / (sizeof(struct vp_record_header) - sizeof(uint64_t)) + 1;
	if (!split.templates)
		whole = (uint32_t)(left + split.count * (sizeof(uint64_t) - split.bytes));
	if (whole > VP_PACKET_MAX)
		return;
	VP_AUTO_FREE char *from = vp_alloc(left + 1), *records = vp_alloc(whole + 1),
			  *again = vp_alloc(whole + 1);
	memcpy(from, bytes + sizeof(split) + sizeof(whole), left);
	if (!vp_records_join(split, from, left, 7, records, whole))
		return;
	/* Events may have come as templates; they are split without. */
	bool smaller = !split.templates;
	split = vp_records_split(&splitter, records, whole, 7);
	if ((smaller && splitter.size > left) ||
	    !vp_records_join(split, splitter.bytes, splitter.size, 7, again, whole) ||
	    memcmp(records, again, whole) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static char directory[] = "fuzz-recording.XXXXXX";
	static bool made;
	char host[64];

	if (!size || size > VP_PACKET_MAX - sizeof(struct vp_packet_header))
		return 0;
	if (!made && !mkdtemp(directory))
		abort();
	snprintf(host, sizeof(host), "%s/host", directory);
	if (!made && mkdir(host, 0700))
		abort();
	made = true;
	join(bytes, size);
	put_all(directory, bytes, size);
	for (unsigned view = VP_VIEW_HOST; view <= VP_VIEW_UNIFIED; view++) {
		report(directory, &(struct vp_profile_options){.view = view, .vm = "one"});
		for (int by_callees = 0; by_callees < 2; by_callees++)
			report(directory, &(struct vp_profile_options){
					      .view = view,
					      .chains = true,
					      .by_callees = by_callees,
					  });
		report(directory, &(struct vp_profile_options){
				      .view = view, .per_vcpu = true, .per_process = true});
		export_samples(directory, vp_exporter_script(), view);
		export_samples(directory, vp_exporter_jsonl(), view);
	}
	report_by_three(directory, bytes[size - 1] % (VP_VIEW_UNIFIED + 1), false);
	report_by_three(directory, bytes[size - 1] % (VP_VIEW_UNIFIED + 1), true);
	inform(directory);
	account(directory);
	compare_lines(directory, &(struct vp_script_options){.to = UINT64_MAX});
	print_events(directory, &(struct vp_script_options){.to = UINT64_MAX});
	print_events(directory, &(struct vp_script_options){.from = 10, .to = 50, .vm = "one"});
	print_periods(directory, 0, UINT64_MAX, NULL);
	print_periods(directory, 10, 50, "one");
	return 0;
}
