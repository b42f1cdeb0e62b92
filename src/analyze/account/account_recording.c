/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account_recording.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/account/account_steps.h"
#include "analyze/account/account_window.h"
#include "analyze/account/irq_storm.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "base/vec.h"
#include "schema/account_grade.h"
#include "schema/records.h"
#include "store/packet.h"
#include "store/trace_reader.h"

#define NOTE(rec, ...) vp_vec_push(&(rec)->notes, vp_format(__VA_ARGS__))

/* Number of ticks in the trace, and of late ones, whose thread is a guess. */
struct ticks {
	uint64_t all, late;
};

static void count_tick(const struct vp_window *window, const struct vp_record_header *record,
		       struct ticks *ticks)
{
	uint32_t flags;

	if (!vp_window_is_all(window) &&
	    (record->time <= window->from || record->time > window->to))
		return;
	if (record->id == VP_ID_host_sample)
		flags = ((const struct vp_host_sample *)record)->flags;
	else if (record->id == VP_ID_vcpu_sample)
		flags = ((const struct vp_vcpu_sample *)record)->flags;
	else if (record->id == VP_ID_guest_sample)
		flags = ((const struct vp_guest_sample *)record)->flags;
	else
		return;
	ticks->all++;
	ticks->late += (flags & VP_LATE) != 0;
}

static struct ticks read_records(struct vp_account_recording *rec, vp_stream_readers *streams)
{
	const struct vp_record_header *record;
	struct ticks ticks = {0};

	vp_vec_each (streams, stream)
		while ((record = vp_stream_next(*stream))) {
			count_tick(&rec->window, record, &ticks);
			if (record->id == VP_ID_vcpu_account && record->time > rec->last)
				rec->last = record->time;
			vp_account_take(&rec->account, record);
		}
	return ticks;
}

static void account_recording_note_losses(struct vp_account_recording *rec)
{
	const struct vp_account_loss *lost = &rec->account.lost;

	if (lost->vcpus)
		NOTE(rec,
		     "%" PRIu64
		     " vCPU events were not accounted for: the accounting table was full",
		     (uint64_t)lost->vcpus);
	if (lost->thieves)
		NOTE(rec,
		     "%" PRIu64 " waits have thieves that did not fit into the table: only their "
		     "sum per vCPU is known",
		     (uint64_t)lost->thieves);
	if (lost->sites)
		NOTE(rec,
		     "%" PRIu64 " exits are missing in 'vperf exits --by function': the table of "
		     "exit sites was full",
		     (uint64_t)lost->sites);
}

/* Error of the worst vCPU, in percent of its time. */
static double worst_error(const struct vp_account *account)
{
	double worst = 0;

	vp_vec_each (&account->times, times)
		if (times->wall)
			worst = fmax(worst, 100 * vp_account_guest_error(account, times) /
						(double)times->wall);
	return worst;
}

char *vp_account_note_grade(const struct vp_account *account)
{
	double worst = worst_error(account);

	if (account->grade == VP_ACCOUNT_SAMPLED)
		return vp_format(
		    "exits and interrupts are counted, frequent ones timed 1 in N: guest, kernel "
		    "and interrupted time are within %.2g%% of wall time, all other times are "
		    "exact (record --account=exact times each)",
		    worst);
	if (account->grade == VP_ACCOUNT_STATES)
		return vp_format(
		    "running time is split into guest, kernel and VMM in proportion to samples, "
		    "within %.2g%% of wall time; all other times are exact; exits and interrupts "
		    "are not recorded (record --account=states)",
		    worst);
	return NULL;
}

char *vp_account_note_window(const struct vp_account_window *window)
{
	char state[VP_DURATION_SIZE], theft[VP_DURATION_SIZE], exits[VP_DURATION_SIZE];

	if (!window->state_error && !window->theft_error && !window->exit_error)
		return window->count_error
			   ? vp_format("at the borders of --time, numbers of exits without a time "
				       "are estimates, off by at most %" PRIu64
				       "; all times are exact",
				       window->count_error)
			   : NULL;
	vp_text_duration(window->state_error, state);
	vp_text_duration(window->theft_error, theft);
	vp_text_duration(window->exit_error, exits);
	return vp_format("at the borders of --time, accounting is divided by the recorded events: "
			 "errors are at most %s for a state, %s for a thief, %s for a part of exit "
			 "time, %" PRIu64 " for a count",
			 state, theft, exits, window->count_error);
}

static void note(struct vp_account_recording *rec, char *sentence)
{
	if (sentence)
		vp_vec_push(&rec->notes, sentence);
}

/* Limits the window to the recorded time. */
static void clip_window(struct vp_account_recording *rec, const struct vp_window *window)
{
	const struct vp_recording *recording = &rec->recording;
	uint64_t end = recording->end;

	rec->window = *window;
	if (vp_window_is_all(window))
		return;
	if (rec->window.from < recording->start)
		rec->window.from = recording->start;
	if (end && rec->window.to > end)
		rec->window.to = end;
	rec->account.window.window = *window;
}

/* Widens the window to whole steps. */
static void widen_window(struct vp_account_recording *rec, const vp_account_steps *steps)
{
	const struct vp_window whole = vp_account_steps_around(steps, &rec->window);
	struct vp_account_window *window = &rec->account.window;
	uint64_t start = rec->recording.start;

	if (whole.from < rec->window.from || whole.to > rec->window.to)
		NOTE(
		    rec,
		    "accounting has one sum per step of about a second: --time is widened to whole "
		    "steps, +%.9f,+%.9f, and no sum is divided (record --trace to cut at any time)",
		    (double)(whole.from - start) / 1e9, (double)(whole.to - start) / 1e9);
	rec->window = window->window = whole;
	if (whole.from == start)
		window->window.from = 0; /* with what has the time of the start itself */
	window->by_steps = true;
	rec->account.by_spans = false;
}

/* If no events divide the sums, the window is widened to whole steps of the accounting. States
 * would divide their own times, but not those of thieves. */
static struct vp_error *account_recording_take_steps(struct vp_account_recording *rec)
{
	vp_account_steps steps;

	if (vp_window_is_all(&rec->window))
		return NULL;
	VP_TRY(vp_account_steps_read(rec->path, rec->recording.start, &steps));
	uint64_t last = steps.at[steps.count - 1];
	if (steps.count > 1 && !vp_account_window_has_events(&rec->account.window))
		widen_window(rec, &steps);
	else if (!rec->recording.end && last < rec->window.to)
		rec->window.to = last; /* an interrupted recording has no other end */
	vp_vec_deinit(&steps);
	return NULL;
}

static void clean_names(struct vp_account_recording *rec)
{
	vp_vec_each (&rec->account.thefts, theft) {
		VP_AUTO_FREE char *comm = vp_text_cleaned(theft->comm);
		snprintf(theft->comm, sizeof(theft->comm), "%s", comm);
	}
	vp_vec_each (&rec->cgroups, cgroup) {
		char *path = cgroup->path;
		cgroup->path = vp_text_cleaned(path);
		free(path);
	}
}

static bool account_recording_has_times(const struct vp_account_recording *rec)
{
	vp_vec_each (&rec->account.times, times)
		if (times->wall)
			return true;
	return false;
}

/* Duration of the window. An interrupted recording ends with its accounting. */
static double account_recording_seconds(const struct vp_account_recording *rec)
{
	const struct vp_recording *recording = &rec->recording;
	uint64_t start = recording->start, end = recording->end ? recording->end : rec->last;

	if (!vp_window_is_all(&rec->window)) {
		start = rec->window.from;
		end = rec->window.to;
	}
	return end > start ? (double)(end - start) / 1e9 : 0;
}

static struct vp_error *account_recording_read_all(struct vp_account_recording *rec,
						   const struct vp_account_events *events)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", rec->path);
	vp_stream_readers streams = {0};
	struct vp_health health = {.classes = VP_STREAMS_SAMPLES | VP_STREAMS(VP_STREAM_ACCOUNT) |
					      VP_STREAMS(VP_STREAM_STATES)};
	const struct vp_recording *recording = &rec->recording;

	VP_TRY(vp_cgroups_read(rec->path, &rec->cgroups));
	VP_TRY(vp_trace_open(host, health.classes, &streams));
	rec->account.overcommit.pcpus = vp_recording_shared_pcpus(recording);
	rec->account.grade = recording->account_grade;
	vp_vec_each (&streams, stream)
		rec->account.by_spans |=
		    !vp_window_is_all(&rec->window) && vp_stream_class(*stream) == VP_STREAM_STATES;
	struct ticks ticks = {0};
	struct vp_error *error = account_recording_take_steps(rec);
	if (!error)
		ticks = read_records(rec, &streams);
	if (!error && events && events->fill && !account_recording_has_times(rec))
		error = events->fill(rec);
	if (error) {
		vp_health_deinit(&health);
		vp_trace_close(&streams);
		return error;
	}
	vp_account_settle(&rec->account);
	vp_account_settle_window(&rec->account);
	vp_account_divide_running(&rec->account);
	/* VMs may have been added by records. */
	vp_vms_settle_parts(&rec->vms);
	vp_health_add(&streams, &health);
	vp_health_sentences(&health, recording, &rec->notes);
	vp_health_losses(&health, recording, &rec->losses);
	vp_health_deinit(&health);
	vp_trace_close(&streams);
	clean_names(rec);
	account_recording_note_losses(rec);
	rec->duration = account_recording_seconds(rec);
	note(rec, vp_account_note_grade(&rec->account));
	char *of_window = vp_account_note_window(&rec->account.window);
	rec->exact = !of_window;
	note(rec, of_window);
	/* An interrupted recording has samples of more or of less time than its accounting. */
	bool is_complete = recording->end || !vp_window_is_all(&rec->window);
	bool comparable = ticks.all && recording->by_time && is_complete && rec->duration > 0 &&
			  (!rec->account.window.state_error ||
			   vp_account_window_has_events(&rec->account.window));
	double due = rec->duration * 1e9 / (double)recording->period_ns * recording->pcpus;
	double sure = (double)(ticks.all - ticks.late);
	double missing = comparable && sure < due ? 1 - sure / due : 0;
	uint64_t period_ns = comparable ? recording->period_ns : 0;
	vp_account_check(&rec->account, period_ns, missing, &rec->checks);
	vp_irq_storm_notes(&rec->account, period_ns, &rec->storms);
	vp_vec_each (&rec->storms, storm)
		vp_vec_push(&rec->notes, vp_strdup(*storm));
	if (account_recording_has_times(rec))
		return NULL;
	if (!vp_window_is_all(&rec->window) && rec->account.window.now)
		return vp_error_new("the recording '%s' has no time of a vCPU in that window",
				    rec->path);
	return vp_error_new("the recording '%s' has no vCPU accounting: %s", rec->path,
			    recording->imported ? "it was imported"
			    : vp_recording_has_instrument(recording, "account")
				? "no VM ran ('vperf report' and 'vperf html' show the host)"
				: "it was recorded with --no-account");
}

struct vp_error *vp_account_recording_open_with(const char *path, const struct vp_window *window,
						const struct vp_account_events *events,
						struct vp_account_recording *ret)
{
	*ret = (struct vp_account_recording){.path = path};
	vp_account_init(&ret->account, &ret->vms);
	struct vp_error *error = vp_recording_open(path, &ret->recording, &ret->vms, &ret->notes);
	if (!error && window)
		clip_window(ret, window);
	if (!error && events && !vp_window_is_all(&ret->window)) {
		vp_account_cuts_init(&ret->cuts, &ret->account.window.window);
		ret->account.window.cuts = &ret->cuts;
		error = events->cut(ret);
	}
	if (!error)
		error = account_recording_read_all(ret, events);
	if (error)
		vp_account_recording_close(ret);
	return error;
}

struct vp_error *vp_account_recording_open(const char *path, const struct vp_window *window,
					   struct vp_account_recording *ret)
{
	return vp_account_recording_open_with(path, window, NULL, ret);
}

static bool has_storm(const struct vp_account *account)
{
	struct vp_irq_storm storm;

	vp_vec_each (&account->times, times)
		if (times->wall && vp_irq_storm_find(account, times, &storm))
			return true;
	return false;
}

/* Reads only the accounting's stream, which is small. */
static bool had_storm(const char *path)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", path);
	struct vp_account_recording rec = {.path = path};
	vp_stream_readers streams = {0};

	vp_account_init(&rec.account, &rec.vms);
	struct vp_error *error = vp_trace_open(host, VP_STREAMS(VP_STREAM_ACCOUNT), &streams);
	if (!error)
		read_records(&rec, &streams);
	bool ret = has_storm(&rec.account);
	vp_error_free(error);
	vp_trace_close(&streams);
	vp_account_recording_close(&rec);
	return ret;
}

void vp_account_recording_note_storms(const char *path, vp_sentences *sentences)
{
	struct vp_account_recording rec;

	if (!had_storm(path))
		return;
	struct vp_error *error = vp_account_recording_open(path, NULL, &rec);
	if (error) {
		vp_vec_push(sentences, vp_format("interrupt storms are not reported: %s",
						 vp_error_message(error)));
		vp_error_free(error);
		return;
	}
	vp_vec_each (&rec.storms, storm)
		vp_vec_push(sentences, vp_strdup(*storm));
	vp_account_recording_close(&rec);
}

void vp_account_recording_close(struct vp_account_recording *rec)
{
	vp_recording_deinit(&rec->recording);
	vp_vms_deinit(&rec->vms);
	vp_cgroups_deinit(&rec->cgroups);
	vp_account_deinit(&rec->account);
	vp_account_cuts_deinit(&rec->cuts);
	vp_vec_each (&rec->notes, note)
		free(*note);
	vp_vec_deinit(&rec->notes);
	vp_vec_each (&rec->storms, storm)
		free(*storm);
	vp_vec_deinit(&rec->storms);
}
