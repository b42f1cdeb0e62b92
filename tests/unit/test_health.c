/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What recordings of two VMs lack, how they are summed up, and what their rows are ordered by. */
#include "unit.h"

#include "analyze/report/report_make.h"
#include "analyze/report/summary.h"
#include "analyze/trace/track_store.h"
#include "make_recording.h"
#include "render/render_table.h"

#define NAME "test_health.rec"

static void expect_sentences(vp_sentences *sentences, const char *const *expected)
{
	size_t count = 0;

	vp_vec_each (sentences, sentence) {
		assert_non_null(expected[count]);
		assert_string_equal(*sentence, expected[count]);
		free(*sentence);
		count++;
	}
	assert_null(expected[count]);
	vp_vec_deinit(sentences);
	*sentences = (vp_sentences){0};
}

#define EXPECT(health, recording, ...)                                                             \
	do {                                                                                       \
		vp_sentences sentences = {0};                                                      \
		vp_health_sentences(health, recording, &sentences);                                \
		expect_sentences(&sentences, (const char *const[]){__VA_ARGS__, NULL});            \
	} while (0)
#define EXPECT_NOTHING(health, recording)                                                          \
	do {                                                                                       \
		vp_sentences sentences = {0};                                                      \
		vp_health_sentences(health, recording, &sentences);                                \
		assert_int_equal(sentences.count, 0);                                              \
	} while (0)

static void test_sentences(void **state)
{
	struct vp_health health = {.classes = VP_STREAMS_SAMPLES, .records = 100};
	struct vp_recording recording = {
	    .start = 1,
	    .end = 5,
	    .note = (char *)"",
	    .records = {
		[VP_STREAM_PCPU] = 60, [VP_STREAM_ACCOUNT] = 1000, [VP_STREAM_GUESTS] = 40}};

	EXPECT_NOTHING(&health, &recording);
	recording.records[VP_STREAM_GUESTS] = 41;
	EXPECT(&health, &recording, "1 of 101 records are missing from the streams");
	recording.records[VP_STREAM_GUESTS] = 40;
	recording.lost[VP_STREAM_TRACE] = 9; /* not of these streams */
	EXPECT_NOTHING(&health, &recording);
	recording.lost[VP_STREAM_PCPU] = 3;
	recording.lost[VP_STREAM_GUESTS] = 4;
	health.lost = 6; /* the recorder knows of more */
	EXPECT(&health, &recording, "7 records were lost while recording");
	health.lost = 8;
	EXPECT(&health, &recording, "8 records were lost while recording");
	assert_int_equal(vp_health_lost(&health, &recording), 8);
	health.classes = VP_STREAMS(VP_STREAM_INTERVALS);
	health.lost = 1;
	recording.records[VP_STREAM_INTERVALS] = 100;
	recording.note = (char *)"a note";
	EXPECT(&health, &recording, "1 intervals were lost while recording", "a note");
	/* Of an interrupted one it is not known how many there should be. */
	health.lost = 0;
	health.records = 0;
	recording.end = 0;
	recording.note = (char *)"";
	EXPECT(&health, &recording,
	       "the recording was interrupted: it has no end marker, and data after the last "
	       "record is missing");
}

static void test_damage(void **state)
{
	struct vp_health health = {.classes = VP_STREAMS_SAMPLES};
	struct vp_recording recording = {.end = 5, .note = (char *)""};
	const struct vp_health_stream streams[] = {
	    {.path = (char *)"a", .health = {.damaged = 7, .damaged_at = 70}},
	    {.path = (char *)"b"},
	    {.path = (char *)"c", .health = {.damaged = 8, .damaged_at = 80, .cut_off = true}},
	    {.path = (char *)"d", .health = {.cut_off = true}}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(streams); i++)
		vp_vec_push(&health.streams, streams[i]);
	EXPECT(&health, &recording,
	       "'a' is damaged: 7 bytes from offset 70 on are not a valid packet and were skipped",
	       "'c' is truncated or damaged at its end: 8 bytes, the first at offset 80, were "
	       "skipped");
	vp_vec_deinit(&health.streams);
}

/* Records and losses by class: as the streams say, or the recorder, which may know of more. */
static void test_losses(void **state)
{
	struct vp_health health = {0};
	const struct vp_recording recording = {
	    .period_ns = 77,
	    .records = {[VP_STREAM_PCPU] = 1, [VP_STREAM_TRACE] = 50},
	    .lost = {[VP_STREAM_PCPU] = 9, [VP_STREAM_ACCOUNT] = 3, [VP_STREAM_TRACE] = 5}};
	const struct vp_health_stream streams[] = {
	    {.class = VP_STREAM_PCPU, .health = {.records = 10, .lost = 4}},
	    {.class = VP_STREAM_PCPU, .health = {.records = 20, .lost = 4}},
	    {.class = VP_STREAM_ACCOUNT, .health = {.records = 2, .lost = 30}}};
	struct vp_losses losses;

	for (size_t i = 0; i < VP_ARRAY_SIZE(streams); i++)
		vp_vec_push(&health.streams, streams[i]);
	memset(&losses, 0, sizeof(losses));
	vp_health_losses(&health, &recording, &losses);
	assert_int_equal(losses.period_ns, 77);
	assert_int_equal(losses.records[VP_STREAM_PCPU], 30);
	assert_int_equal(losses.lost[VP_STREAM_PCPU], 9);
	assert_int_equal(losses.records[VP_STREAM_ACCOUNT], 2);
	assert_int_equal(losses.lost[VP_STREAM_ACCOUNT], 30);
	assert_int_equal(losses.records[VP_STREAM_TRACE], 50);
	assert_int_equal(losses.lost[VP_STREAM_TRACE], 5);
	assert_int_equal(losses.records[VP_STREAM_HYPERVISOR], 0);
	vp_vec_deinit(&health.streams);
}

/* pCPU 0: 2 guest samples, a switch in and out; pCPU 1: host, KVM, another VM's guest. */
static void make(uint64_t lost)
{
	struct made made;

	made_begin(&made, NAME, 2);
	made.lost = lost;
	made.vms.at[1].at_start = false;
	made.vms.at[1].start = MADE_START + 1;
	made_in(&made, 0, 0, 0, 1, MADE_INTR);
	made_guest(&made, 0, 1, 0, 1, VP_MODE_GUEST_USER, MADE_INTR);
	made_guest(&made, 0, 2, 0, 1, VP_MODE_GUEST_USER, MADE_INTR);
	made_out(&made, 0, 3, 0, 1, MADE_INTR, false);
	made_out(&made, 0, 4, 0, 1, MADE_INTR, false);
	made_host(&made, 1, 1, 77, VP_MODE_USER);
	made_in_kvm(&made, 1, 2, 1, 0, MADE_NPF);
	made_in_kvm(&made, 1, 3, 1, 0, MADE_NPF);
	made_in_kvm(&made, 1, 4, 1, 0, MADE_NPF);
	made_guest(&made, 1, 5, 1, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_end(&made, 10);
}

static void test_summary(void **state)
{
	struct vp_summary summary;
	struct vp_table table = {0};
	struct vp_buffer out = {0};

	make(0);
	expect_no_error(vp_summary_make(NAME, &summary));
	vp_summary_table(&summary, &table);
	vp_render_table_csv(&table, true, &out);
	assert_string_equal(
	    vp_buffer_text(&out),
	    "pcpu,samples,host_samples,vcpu_samples,guest_samples,vcpu_in,vcpu_out\n"
	    "0,2,0,0,2,1,2\n"
	    "1,5,1,3,1,0,0\n");
	assert_true(summary.has_more);
	assert_false(summary.has_intervals || summary.has_trace);
	assert_int_equal(summary.events + summary.events_lost + summary.vcpu_spans, 0);
	assert_ptr_equal(vp_summary_notes(&summary), &summary.report.notes);
	/* Which came while it was recorded. */
	assert_false(vp_summary_vm_started(&summary, &summary.report.vms.at[0]));
	assert_true(vp_summary_vm_started(&summary, &summary.report.vms.at[1]));
	struct vp_vm at_once = {.start = summary.report.recording.start};
	assert_false(vp_summary_vm_started(&summary, &at_once));
	assert_true(summary.report.duration > 0.0099999 && summary.report.duration < 0.0100001);
	vp_buffer_deinit(&out);
	vp_table_deinit(&table);
	vp_summary_deinit(&summary);
}

static bool has_note(const vp_sentences *notes, const char *words)
{
	vp_vec_each (notes, note)
		if (strstr(*note, words))
			return true;
	return false;
}

static void test_notes(void **state)
{
	const struct vp_naming_options naming = {.directory = NAME};
	const struct vp_profile_options options = {.view = VP_VIEW_UNIFIED};
	struct vp_report report;

	make(21);
	expect_no_error(vp_report_make(&naming, &options, &report));
	assert_int_equal(report.lost, 42);
	assert_true(has_note(&report.notes, "42 records were lost while recording"));
	assert_true(has_note(&report.notes, "unresolved: 7 samples of 7 samples in code have no "
					    "symbol (100.00%)"));
	assert_true(has_note(&report.notes, "guest samples attributed by: none 100.00%"));
	assert_true(has_note(&report.notes, "VM 'vm0': no symbol map (none)"));
	assert_true(has_note(&report.notes, "VM 'vm1': no symbol map (none)"));
	assert_true(has_note(&report.notes, "the host: no symbol map (none)"));
	assert_false(has_note(&report.notes, "call chains of"));
	assert_false(has_note(&report.notes, "taken late"));
	assert_false(has_note(&report.notes, "no CR3"));
	vp_report_deinit(&report);
	/* Nothing is said of samples where only events are asked for. */
	const struct vp_profile_options events = {.view = VP_VIEW_UNIFIED, .events_only = true};
	expect_no_error(vp_report_make(&naming, &events, &report));
	assert_int_equal(report.notes.count, 1);
	vp_report_deinit(&report);
	const struct vp_profile_options chains = {.view = VP_VIEW_UNIFIED, .needs_chains = true};
	expect_error(vp_report_make(&naming, &chains, &report), "has no call chains");
}

/* A guest that does not run Linux: one sentence that says so. */
static void test_other_guest(void **state)
{
	const struct vp_naming_options naming = {.directory = NAME};
	const struct vp_profile_options options = {.view = VP_VIEW_UNIFIED};
	struct vp_report report;

	make(0);
	FILE *vms = fopen(NAME "/vms", "a");
	fputs("memory no Linux kernel was found in the guest's memory\n", vms);
	fclose(vms);
	expect_no_error(vp_report_make(&naming, &options, &report));
	assert_true(has_note(&report.notes,
			     "VM 'vm1': no symbol map (no Linux kernel was found in the guest's "
			     "memory): code is shown as addresses; write a symbol map"));
	assert_true(has_note(&report.notes, "VM 'vm0': no symbol map (none): code is shown as "
					    "addresses; 'vperf record' without --no-guest-memory"));
	vp_report_deinit(&report);
}

static void test_open(void **state)
{
	struct vp_recording recording = {0};
	vp_sentences notes = {0};
	vp_vms vms = {0};

	expect_error(vp_recording_open("does-not-exist", &recording, &vms, &notes),
		     "no recording 'does-not-exist'");
	temporary_file("test_health.file", "x", 1);
	expect_error(vp_recording_open("test_health.file", &recording, &vms, &notes),
		     "is not a recording");
	make(0);
	temporary_file(NAME "/vms", "nonsense\n", 9);
	expect_no_error(vp_recording_open(NAME, &recording, &vms, &notes));
	assert_int_equal(vms.count, 0);
	assert_int_equal(notes.count, 1);
	assert_non_null(strstr(notes.at[0], "; VMs are named by pid"));
	free(notes.at[0]);
	vp_vec_deinit(&notes);
	vp_recording_deinit(&recording);
	vp_vms_deinit(&vms);
}

/* What a recording's files say is printed: it does nothing to a terminal. */
static void test_harmless_texts(void **state)
{
	struct vp_recording recording = {0};
	vp_sentences notes = {0};
	struct made made;
	vp_vms vms = {0};

	made_begin(&made, NAME, 2);
	char **texts[] = {&made.about.tool,    &made.about.hostname, &made.about.kernel,
			  &made.about.trigger, &made.about.command,  &made.about.note,
			  &made.about.cause,   &made.about.mode,     &made.about.guest_sampling,
			  &made.about.imported};
	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++) {
		free(*texts[i]);
		*texts[i] = vp_format("%zu \033[2J", i);
	}
	made_end(&made, 1);
	expect_no_error(vp_recording_open(NAME, &recording, &vms, &notes));
	const char *read[] = {recording.tool,    recording.hostname, recording.kernel,
			      recording.trigger, recording.command,  recording.note,
			      recording.cause,   recording.mode,     recording.guest_sampling,
			      recording.imported};
	for (size_t i = 0; i < VP_ARRAY_SIZE(read); i++) {
		VP_AUTO_FREE char *expected = vp_format("%zu ?[2J", i);
		assert_string_equal(read[i], expected);
	}
	assert_int_equal(notes.count, 0);
	vp_recording_deinit(&recording);
	vp_vms_deinit(&vms);
}

/* Rows by samples, then by the names of function, module and process, then by their numbers. */
static void test_order_of_rows(void **state)
{
	static const struct {
		uint32_t pid;
		const char *comm;
		uint32_t count;
	} tasks[] = {{85, "b", 2}, {84, "a", 2}, {83, "a", 2}, {82, "c", 3}, {81, "a", 1}};
	const struct vp_naming_options naming = {.directory = NAME};
	const struct vp_profile_options options = {.view = VP_VIEW_HOST, .per_process = true};
	struct vp_report report;
	struct made made;

	made_begin(&made, NAME, 2);
	for (uint32_t i = 0; i < VP_ARRAY_SIZE(tasks); i++) {
		made_task(&made, 0, i, tasks[i].pid, tasks[i].pid, tasks[i].comm);
		for (uint32_t j = 0; j < tasks[i].count; j++)
			made_host(&made, 0, i, tasks[i].pid, VP_MODE_USER);
	}
	made_guest(&made, 0, 20, 1, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_guest(&made, 0, 20, 1, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_guest(&made, 0, 21, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_guest(&made, 0, 21, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_end(&made, 30);
	expect_no_error(vp_report_make(&naming, &options, &report));
	static const uint32_t pids[] = {82, 83, 84, 85, 1000, 2000, 81};
	assert_int_equal(report.profile.rows.count, VP_ARRAY_SIZE(pids));
	for (size_t i = 0; i < VP_ARRAY_SIZE(pids); i++)
		assert_int_equal(report.profile.rows.at[i].pid, pids[i]);
	/* How many of them are shown. */
	const struct vp_profile_part *part = &report.profile.parts.at[0];
	assert_int_equal(part->samples, 14);
	assert_int_equal(vp_report_rows(&report, part), 7);
	report.limit = 2;
	assert_int_equal(vp_report_rows(&report, part), 2);
	assert_int_equal(vp_report_hidden(&report, part), 5);
	report.limit = 0;
	report.percent_limit = 100.0 * 2 / 14;
	assert_int_equal(vp_report_rows(&report, part), 6);
	report.percent_limit = 100.0 * 2 / 14 + 0.001;
	assert_int_equal(vp_report_rows(&report, part), 1);
	assert_true(vp_report_percent(part, 7) == 50);
	assert_true(vp_report_percent(&(struct vp_profile_part){0}, 7) == 0);
	assert_null(vp_report_vm(&report, part));
	vp_report_deinit(&report);
}

/* vCPUs' parts are in their order, each with its own rows. */
static void test_order_of_parts(void **state)
{
	const struct vp_naming_options naming = {.directory = NAME};
	const struct vp_profile_options options = {
	    .view = VP_VIEW_GUEST, .vm = "vm1", .per_vcpu = true};
	struct vp_report report;
	struct made made;

	made_begin(&made, NAME, 2);
	for (uint64_t vcpu = 4; vcpu > 0; vcpu--)
		for (uint64_t i = 0; i < vcpu; i++)
			made_guest(&made, (uint32_t)vcpu, 10 - vcpu, 1, (unsigned)vcpu,
				   VP_MODE_GUEST_USER, MADE_INTR);
	made_end(&made, 30);
	expect_no_error(vp_report_make(&naming, &options, &report));
	assert_int_equal(report.profile.parts.count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct vp_profile_part *part = &report.profile.parts.at[i];
		assert_int_equal(part->vcpu, i + 1);
		assert_int_equal(part->samples, i + 1);
		assert_int_equal(part->rows, 1);
		assert_int_equal(vp_profile_rows(&report.profile, part)->samples, i + 1);
		assert_string_equal(vp_report_vm(&report, part), "vm1");
	}
	vp_report_deinit(&report);
}

static void take(struct vp_track_store *store, enum vp_track track, uint32_t number,
		 enum vp_track_state state, uint64_t begin, uint64_t end)
{
	const struct vp_track_slice period = {.track = track,
					      .state = state,
					      .begin = begin,
					      .end = end,
					      .pcpu = track == VP_TRACK_PCPU ? number : 3,
					      .vm = 2000,
					      .vcpu = number,
					      .tid = 50 + number,
					      .comm = "task",
					      .has_guest = track == VP_TRACK_VCPU,
					      .guest_tid = 7,
					      .guest_comm = "inside"};

	vp_track_store_take(store, &period);
}

/* Lanes of pCPUs, vCPUs and guests' threads, each with its own slices. */
static void test_tracks(void **state)
{
	struct vp_track_store store;

	vp_track_store_init(&store, 100);
	take(&store, VP_TRACK_PCPU, 1, VP_TRACK_RUNNING, 10, 20);
	take(&store, VP_TRACK_VCPU, 1, VP_TRACK_GUEST, 10, 30);
	take(&store, VP_TRACK_PCPU, 1, VP_TRACK_IDLE, 20, 25);
	take(&store, VP_TRACK_VCPU, 0, VP_TRACK_GUEST, 40, 50);
	take(&store, VP_TRACK_PCPU, 1, VP_TRACK_RUNNING, 22, 28); /* came late */
	take(&store, VP_TRACK_PCPU, 1, VP_TRACK_RUNNING, 24, 28); /* nothing is left of it */
	assert_int_equal(store.tracks.count, 4);
	assert_int_equal(store.slices, 7);
	const struct vp_stored_track *track = store.tracks.at;
	assert_int_equal(track[0].kind, VP_STORED_PCPU);
	assert_int_equal(track[0].number, 1);
	assert_int_equal(track[0].slices.count, 3);
	assert_int_equal(track[0].slices.at[2].begin, 25);
	assert_int_equal(track[0].slices.at[2].main, 3);
	assert_int_equal(track[0].slices.at[0].label, 0);
	assert_int_equal(track[0].slices.at[1].label, VP_NONE);
	assert_string_equal(vp_intern_text(&store.texts, store.labels.at[0].text), "task/51");
	assert_int_equal(track[1].kind, VP_STORED_VCPU);
	assert_int_equal(track[1].vm, 2000);
	assert_int_equal(track[1].slices.at[0].pcpu, 3);
	assert_int_equal(store.labels.at[1].vm, 2000);
	assert_int_equal(track[2].kind, VP_STORED_THREAD);
	assert_int_equal(track[2].number, 7);
	assert_int_equal(track[2].slices.count, 2);
	assert_string_equal(vp_intern_text(&store.texts, track[2].name), "inside/7");
	assert_int_equal(track[3].number, 0);
	vp_track_store_close(&store);
	assert_int_equal(store.shortest, 0);
	vp_track_store_deinit(&store);
}

/* More than there is room for: short neighbours become one, of the state that has most of it. */
static void test_merged_tracks(void **state)
{
	struct vp_track_store store;

	vp_track_store_init(&store, 2);
	take(&store, VP_TRACK_PCPU, 0, VP_TRACK_RUNNING, 0, 400);
	take(&store, VP_TRACK_PCPU, 0, VP_TRACK_IDLE, 400, 1000);
	take(&store, VP_TRACK_PCPU, 0, VP_TRACK_RUNNING, 1000, 1500);
	take(&store, VP_TRACK_PCPU, 0, VP_TRACK_RUNNING, 5000, 9000);
	vp_track_store_close(&store);
	assert_int_equal(store.shortest, 2000);
	assert_int_equal(store.slices, 2);
	const struct vp_stored_slice *slice = store.tracks.at[0].slices.at;
	assert_int_equal(slice[0].begin, 0);
	assert_int_equal(slice[0].end, 1500);
	assert_int_equal(slice[0].merged, 3);
	assert_int_equal(slice[0].state, VP_TRACK_RUNNING); /* 400 and 500 of it */
	assert_int_equal(slice[0].main, 900);
	assert_int_equal(slice[0].parts[VP_TRACK_IDLE], 600);
	assert_int_equal(slice[0].label, VP_NONE);
	assert_int_equal(slice[1].begin, 5000);
	assert_int_equal(slice[1].merged, 1);
	vp_track_store_deinit(&store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sentences),     cmocka_unit_test(test_damage),
	    cmocka_unit_test(test_losses),        cmocka_unit_test(test_summary),
	    cmocka_unit_test(test_notes),         cmocka_unit_test(test_other_guest),
	    cmocka_unit_test(test_open),          cmocka_unit_test(test_harmless_texts),
	    cmocka_unit_test(test_order_of_rows), cmocka_unit_test(test_order_of_parts),
	    cmocka_unit_test(test_tracks),        cmocka_unit_test(test_merged_tracks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
