/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recordings of everything that a timeline keeps from tick to tick, at random: whoever goes through
 * them, one thread or several, makes the same report, byte by byte, in each view and format; so
 * does who exports each sample, with a thread of its own or without. Their parts, read as several
 * recordings, have the same rows.
 */
#include "unit.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/common/recording_parts.h"
#include "analyze/report/report_joined.h"
#include "analyze/report/report_make.h"
#include "base/alloc.h"
#include "cmd/common/formats.h"
#include "export/exporters.h"
#include "make_recording.h"

#define NAME "passes.data"
enum { TICKS = 400, MANY_TICKS = 6000, PCPUS = 3, RECORDINGS = 16, VMS = 3 };
enum { PACKETS = 120, PACKET = 12, THREADS = 6 };

static uint64_t random_state;

static uint32_t any(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % below;
}

static uint64_t any_address(void)
{
	return (any(2) ? 0xffffffff81000000ULL : 0x400000) + 64ULL * any(6);
}

static void make_chain(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu)
{
	uint64_t ips[] = {any_address(), any_address(), any_address()};
	uint32_t tid = 1000 * (vm + 1) + vcpu + 1;
	struct vp_guest_regs regs = {.vm = 1000 * (vm + 1),
				     .tid = tid,
				     .mode = VP_MODE_GUEST_USER,
				     .flags = VP_HAS_AS_ROOT,
				     .ip = ips[0],
				     .as_root = 0x1000};

	made_regs(made, pcpu, tick, &regs);
	made_frames(made, pcpu, tick, tid, VP_MODE_GUEST_USER, ips, 1 + any(3), 0);
	made_frames(made, pcpu, tick, tid, VP_MODE_KERNEL, ips, 1 + any(3), 0);
}

static void make_record(struct made *made, uint32_t pcpu, uint64_t tick, bool chains)
{
	static const char *const names[] = {"alpha", "beta", "gamma"};
	unsigned vm = any(VMS + 1), vcpu = any(2); /* one VM is in no list */
	int exit = any(3) ? MADE_INTR : any(2) ? MADE_HLT : MADE_UNKNOWN;
	uint32_t pid = 50 + any(2) + 256 * any(2); /* two share the place of recent ones */

	/* A chain's sample may come later, or never. */
	if (chains && !any(3))
		make_chain(made, pcpu, tick, vm, vcpu);
	switch (any(12)) {
	case 0:
		made_task(made, pcpu, tick, pid, pid, names[any(3)]);
		break;
	case 1:
		made_in(made, pcpu, tick, vm, vcpu, exit);
		break;
	case 2:
		made_out(made, pcpu, tick, vm, vcpu, exit, any(2));
		break;
	case 3:
		made_in_vmm(made, pcpu, tick, vm, vcpu);
		break;
	case 4:
		made_in_kvm(made, pcpu, tick, vm, vcpu, exit);
		break;
	case 5:
		made_host(made, pcpu, tick, pid, any(2) ? VP_MODE_USER : VP_MODE_KERNEL);
		break;
	case 6:
		made_idle(made, pcpu, tick);
		break;
	case 7:
		made_guest_thread(made, pcpu, tick, vm, 7 + any(2), 7 + any(2), names[any(3)],
				  0x1000, any_address());
		break;
	case 8:
		made_guest_at(made, pcpu, tick, VP_MODE_GUEST_USER, any_address());
		break;
	default:
		made_guest(made, pcpu, tick, vm, vcpu,
			   any(2) ? VP_MODE_GUEST_USER : VP_MODE_GUEST_KERNEL, exit);
	}
}

/* By number: with call chains, with ticks that have to be filled in, with a clock that goes back,
 * weighted by events. */
static void make_recording(uint32_t number, uint64_t ticks)
{
	bool chains = number % 2, gaps = number / 2 % 2, backwards = number / 4 % 2;
	bool events = number / 8 % 2;
	struct made made;

	random_state = 0x9e3779b97f4a7c15ULL * (number + 1);
	made_begin(&made, NAME, VMS);
	made.pcpus = made.about.pcpus = PCPUS;
	made.about.by_time = !gaps;
	made.about.weighting = events ? VP_WEIGHTING_EVENTS
			       : gaps ? VP_WEIGHTING_TIME
				      : VP_WEIGHTING_TICKS;
	made.about.events = 3;
	made.about.chains = chains;
	for (uint64_t tick = 1; tick < ticks; tick++)
		for (uint32_t pcpu = 0; pcpu < PCPUS; pcpu++) {
			made.offset = any(MADE_PERIOD / 2);
			if (events && any(3))
				made_period(&made, pcpu, tick, 1 + any(1000));
			if (!gaps || tick / 16 % 3 != pcpu || !any(10))
				make_record(&made, pcpu, tick - (backwards && !any(20)), chains);
		}
	made_end(&made, ticks);
}

/* Records of a pCPU's packet: of these threads (a bit each, at least one), each of them at least
 * once. */
static void make_packet(struct made *made, uint32_t pcpu, uint64_t first, uint32_t threads,
			unsigned vcpu)
{
	for (uint64_t tick = first; tick < first + PACKET; tick++) {
		uint32_t thread = tick - first < THREADS ? (uint32_t)(tick - first) : any(THREADS);
		int exit = any(4) ? MADE_INTR : any(2) ? MADE_HLT : MADE_UNKNOWN;
		while (!(threads & 1u << thread))
			thread = (thread + 1) % THREADS;
		made->offset = any(MADE_PERIOD / 2);
		if (made->about.weighting == VP_WEIGHTING_EVENTS && any(2))
			made_period(made, pcpu, tick, 1 + any(1000));
		if (thread == 0)
			made_guest(made, pcpu, tick, 0, vcpu, VP_MODE_GUEST_USER, exit);
		else if (thread == 1)
			made_in_kvm(made, pcpu, tick, 1, vcpu, exit);
		else if (thread == 2)
			made_out(made, pcpu, tick, 1, vcpu, exit, any(2));
		else if (thread == 3)
			made_in_vmm(made, pcpu, tick, 0, vcpu);
		else
			made_host(made, pcpu, tick, 50 + thread, VP_MODE_USER);
	}
	vp_trace_flush(made->writer, vp_stream_of_pcpu(pcpu), 0);
}

/* Many packets, most of which only continue the previous one: of the same threads, or of fewer. By
 * number: weighted by events, with changes of names. */
static void make_packets(uint32_t number)
{
	uint32_t threads[PCPUS] = {1, 1, 1}, vcpus[PCPUS] = {0, 1, 0};
	struct made made;

	random_state = 0x9e3779b97f4a7c15ULL * (number + 1);
	made_begin(&made, NAME, VMS);
	made.pcpus = made.about.pcpus = PCPUS;
	made.about.weighting = number % 2 ? VP_WEIGHTING_EVENTS : VP_WEIGHTING_TICKS;
	made.about.events = 3;
	for (uint64_t tick = 1; tick < PACKETS * PACKET; tick += PACKET)
		for (uint32_t pcpu = 0; pcpu < PCPUS; pcpu++) {
			if (!any(8))
				threads[pcpu] = 1 + any((1 << THREADS) - 1);
			else if (!any(8) && threads[pcpu] & (threads[pcpu] - 1))
				threads[pcpu] &= threads[pcpu] - 1;
			if (!any(16))
				vcpus[pcpu] = any(2);
			if (number / 2 % 2 && !any(16))
				made_task(&made, pcpu, tick, 54, 54, any(2) ? "alpha" : "beta");
			make_packet(&made, pcpu, tick, threads[pcpu], vcpus[pcpu]);
		}
	made_end(&made, PACKETS * PACKET);
}

/* All formats one after another, with what is said beside them. */
static void make_report(struct vp_profile_options options, uint32_t jobs, struct vp_buffer *out)
{
	struct vp_naming_options naming = {.directory = NAME};
	struct vp_report report;
	size_t count;
	const struct vp_report_format *formats = vp_report_formats(&count);

	options.jobs = jobs;
	out->size = 0;
	expect_no_error(vp_report_make(&naming, &options, &report));
	assert_int_equal(report.profile.jobs, jobs);
	report.graph.shown = true;
	for (size_t i = 0; i < count; i++) {
		const struct vp_exporter *exporter =
		    formats[i].exporter ? formats[i].exporter() : NULL;
		if (formats[i].render)
			formats[i].render(&report, false, out);
		else if (exporter->totals)
			vp_export_totals(&report, exporter, out);
	}
	vp_vec_each (&report.notes, note)
		vp_buffer_printf(out, "%s\n", *note);
	vp_report_deinit(&report);
}

/* The formats that are rows and nothing else. */
static void put_rows(const struct vp_report *report, struct vp_buffer *out)
{
	out->size = 0;
	vp_report_format_named("csv")->render(report, false, out);
	vp_export_totals(report, vp_report_format_named("folded")->exporter(), out);
	for (uint32_t walk = 0; walk < VP_WALKS; walk++)
		for (uint32_t end = 0; end < VP_WALK_ENDS; end++)
			vp_buffer_printf(out, "%" PRIu64 " ", report->profile.walks[walk][end]);
	for (uint32_t route = 0; route < VP_ROUTES; route++)
		vp_buffer_printf(out, "%" PRIu64 " ", report->profile.routes[route]);
	vp_buffer_printf(out, "%" PRIu64 "\n", report->profile.unattributed);
}

/* In one piece or, by `cuts` ticks, in several. */
static void make_rows(const struct vp_profile_options *options, const uint64_t *cuts, size_t n_cuts,
		      struct vp_buffer *out)
{
	struct vp_naming_options naming = {.directory = NAME};
	vp_recording_parts parts = {0};
	struct vp_report report;
	uint64_t from = 0;

	for (size_t i = 0; i <= n_cuts; i++) {
		uint64_t to = MADE_START + MADE_PERIOD * (i < n_cuts ? cuts[i] : 2 * TICKS);
		vp_vec_push(&parts, ((struct vp_recording_part){vp_strdup(NAME), {from, to}}));
		from = to;
	}
	if (n_cuts)
		expect_no_error(vp_report_joined_make("store", &parts, &naming, options, &report));
	else
		expect_no_error(vp_report_make(&naming, options, &report));
	put_rows(&report, out);
	vp_report_deinit(&report);
	vp_recording_parts_deinit(&parts);
}

static void expect_same_in_parts(const struct vp_profile_options *options)
{
	static const uint64_t cuts[] = {TICKS / 3, TICKS / 2};
	struct vp_buffer whole = {0}, joined = {0};

	make_rows(options, NULL, 0, &whole);
	for (size_t count = 1; count <= VP_ARRAY_SIZE(cuts); count++) {
		make_rows(options, cuts, count, &joined);
		assert_string_equal(vp_buffer_text(&whole), vp_buffer_text(&joined));
	}
	vp_buffer_deinit(&whole);
	vp_buffer_deinit(&joined);
}

static void expect_same(const struct vp_profile_options *options)
{
	struct vp_buffer by_one = {0}, by_more = {0};

	make_report(*options, 1, &by_one);
	for (uint32_t jobs = 2; jobs < 5; jobs++) {
		make_report(*options, jobs, &by_more);
		assert_string_equal(vp_buffer_text(&by_one), vp_buffer_text(&by_more));
	}
	vp_buffer_deinit(&by_one);
	vp_buffer_deinit(&by_more);
}

static void for_each(void (*expect)(const struct vp_profile_options *options))
{
	for (uint32_t number = 0; number < RECORDINGS; number++) {
		bool chains = number % 2;
		make_recording(number, TICKS);
		for (enum vp_view view = 0; view < VP_VIEWS; view++) {
			const char *vm = view == VP_VIEW_GUEST ? "vm1" : NULL;
			struct vp_profile_options options[] = {
			    {.view = view, .vm = vm, .chains = chains},
			    {.view = view, .vm = vm, .chains = chains, .by_callees = true},
			    {.view = view, .vm = vm, .per_vcpu = true, .per_process = true},
			    {.view = view, .vm = "vm0", .has_vcpu = true, .vcpu = 1},
			    {.view = view, .vm = vm, .comm = "alpha"},
			    {.view = view, .vm = vm, .columns = VP_COLUMN_PROCESS},
			    {.view = view, .vm = vm, .columns = VP_COLUMN_MODULE}};
			for (size_t i = 0; i < VP_ARRAY_SIZE(options); i++)
				expect(&options[i]);
		}
	}
}

static void test_jobs(void **state)
{
	for_each(expect_same);
}

static void test_parts(void **state)
{
	for_each(expect_same_in_parts);
}

/* Packets are skipped by the threads that process the records after them. */
static void test_packets(void **state)
{
	for (uint32_t number = 0; number < 12; number++) {
		make_packets(number);
		for (enum vp_view view = 0; view < VP_VIEWS; view++)
			expect_same(&(struct vp_profile_options){
			    .view = view, .vm = view == VP_VIEW_GUEST ? "vm1" : NULL});
	}
}

/* What was damaged is read by one thread: another would take its packets for good. */
static void test_damage(void **state)
{
	struct vp_naming_options naming = {.directory = NAME};
	struct vp_profile_options options = {.view = VP_VIEW_UNIFIED, .jobs = 2};
	struct vp_report report;
	FILE *file;

	make_recording(0, TICKS);
	file = fopen(NAME "/host/cpu0", "r+");
	assert_non_null(file);
	assert_int_equal(fseek(file, 200, SEEK_SET), 0);
	assert_int_not_equal(fputc(0x55, file), EOF);
	assert_int_equal(fclose(file), 0);
	expect_no_error(vp_report_make(&naming, &options, &report));
	assert_int_equal(report.profile.jobs, 1);
	vp_report_deinit(&report);
}

static struct vp_buffer pieces;

static struct vp_error *keep_piece(void *context, struct vp_buffer *out)
{
	vp_buffer_append(&pieces, out->bytes, out->size);
	return NULL;
}

static void export_by(uint32_t jobs, enum vp_view view, const struct vp_exporter *exporter)
{
	static const struct vp_export_writer writer = {.write = keep_piece};
	const struct vp_naming_options naming = {.directory = NAME};
	const struct vp_profile_options options = {
	    .view = view, .vm = view == VP_VIEW_GUEST ? "vm1" : NULL, .jobs = jobs};
	struct vp_report report;

	pieces.size = 0;
	expect_no_error(vp_export_stream(&naming, &options, exporter, &writer, &report));
	vp_report_deinit(&report);
}

static void expect_same_export(enum vp_view view, const struct vp_exporter *exporter)
{
	export_by(1, view, exporter);
	VP_AUTO_FREE char *by_one = strdup(vp_buffer_text(&pieces));
	assert_true(pieces.size > 50 * MANY_TICKS);
	export_by(2, view, exporter);
	assert_string_equal(vp_buffer_text(&pieces), by_one);
}

/* More samples than wait for an exporter at once, and a VM that only they know. */
static void test_export(void **state)
{
	for (uint32_t number = 0; number < 2; number++) {
		make_recording(number, MANY_TICKS);
		for (enum vp_view view = 0; view < VP_VIEWS; view++) {
			expect_same_export(view, vp_exporter_csv());
			expect_same_export(view, vp_exporter_jsonl());
			expect_same_export(view, vp_exporter_script());
		}
	}
	vp_buffer_deinit(&pieces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_jobs), cmocka_unit_test(test_parts),
	    cmocka_unit_test(test_packets), cmocka_unit_test(test_export),
	    cmocka_unit_test(test_damage)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
