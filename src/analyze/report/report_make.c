/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/report_make.h"

#include "analyze/common/health.h"
#include "analyze/common/naming.h"
#include "analyze/profile/pass.h"
#include "analyze/profile/profile.h"
#include "analyze/profile/profile_sum.h"
#include "analyze/profile/view.h"
#include "analyze/report/report_notes.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/macros.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_reader.h"
#include "timeline/guests.h"

static void report_set_duration(struct vp_report *report)
{
	const struct vp_recording *recording = &report->recording;
	uint64_t start = recording->start ? recording->start : report->profile.first;
	uint64_t end = recording->end ? recording->end : report->profile.last;

	start = report->options.from > start ? report->options.from : start;
	end = report->options.to && report->options.to < end ? report->options.to : end;

	report->begin = start;
	report->duration = end > start ? (double)(end - start) / 1e9 : 0.0;
}

static bool report_is_wanted(const struct vp_profile_options *options, uint32_t pcpu)
{
	for (size_t i = 0; i < options->n_pcpus; i++)
		if ((uint32_t)options->pcpus[i] == pcpu)
			return true;
	return options->n_pcpus == 0;
}

/* Closes the streams of excluded pCPUs. Recordings without samples have no such streams; their
 * events are filtered elsewhere. */
static struct vp_error *choose_pcpus(struct vp_report *report, vp_stream_readers *streams)
{
	size_t kept = 0, count = streams->count;

	for (size_t i = 0; i < count; i++) {
		if (report_is_wanted(&report->options, vp_stream_cpu(streams->at[i])))
			streams->at[kept++] = streams->at[i];
		else
			vp_stream_free(streams->at[i]);
	}
	streams->count = kept;
	if (report->options.n_pcpus) {
		report->recording.pcpus = (uint32_t)kept;
		report->recording.records[VP_STREAM_PCPU] = 0; /* unknown for these pCPUs */
	}
	return kept || !count || !report->options.n_pcpus
		   ? NULL
		   : vp_error_new("the recording '%s' has none of the requested pCPUs",
				  report->path);
}

/* Whether VMs must be searched for in the records: one is selected, and the list of VMs may be
 * incomplete because the recording was interrupted or the list was lost. */
static bool must_discover(const struct vp_naming_options *naming, const struct vp_report *report)
{
	const struct vp_profile_options *options = &report->options;
	bool asked = options->view == VP_VIEW_GUEST || options->vm || naming->maps.count ||
		     naming->kernels.count;

	return asked && (!report->recording.end || !report->vms.count);
}

static struct vp_error *report_read_profile(struct vp_report *report, vp_stream_readers *streams,
					    struct vp_profile_sum *sum)
{
	const struct vp_profile_options *options = &report->options;

	if (!sum)
		return vp_profile_make(options, &report->recording, &report->vms, streams,
				       &report->naming, &report->profile);
	VP_TRY(vp_profile_sum_add(sum, options->from, options->to, &report->recording, &report->vms,
				  streams, &report->naming));
	report->profile.first = sum->first;
	report->profile.last = sum->last;
	return NULL;
}

static struct vp_error *report_read(const struct vp_naming_options *naming,
				    struct vp_report *report, struct vp_profile_sum *sum)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", naming->directory);
	vp_stream_readers streams = {0};
	struct vp_health health = {.classes = VP_STREAMS_SAMPLES};

	if (must_discover(naming, report))
		VP_TRY(vp_guests_discover(host, &report->vms));
	VP_TRY(vp_trace_open(host, health.classes, &streams));
	struct vp_error *error =
	    vp_naming_load(naming, &report->recording, &report->vms, &streams, &report->naming);

	if (!error)
		error = choose_pcpus(report, &streams);
	if (!error)
		error = report_read_profile(report, &streams, sum);
	if (!error) {
		vp_health_add(&streams, &health);
		report->lost = vp_health_lost(&health, &report->recording);
		vp_health_sentences(&health, &report->recording, &report->notes);
		report_set_duration(report);
	}
	vp_health_deinit(&health);
	vp_trace_close(&streams);
	return error;
}

struct vp_error *vp_report_read(const struct vp_naming_options *naming,
				const struct vp_profile_options *options,
				struct vp_profile_sum *sum, struct vp_report *ret)
{
	*ret = (struct vp_report){.path = naming->directory, .options = *options};
	struct vp_error *error =
	    vp_recording_open(naming->directory, &ret->recording, &ret->vms, &ret->notes);
	if (!error && options->needs_chains && !ret->recording.chains)
		error = vp_error_new(
		    "the recording '%s' has no call chains%s", naming->directory,
		    vp_recording_advice(&ret->recording, ": record with 'vperf record -g'"));
	ret->options.chains &= ret->recording.chains;
	ret->options.by_callees &= ret->options.chains;
	if (!error)
		error = report_read(naming, ret, sum);
	if (error)
		vp_report_deinit(ret);
	return error;
}

struct vp_error *vp_report_make(const struct vp_naming_options *naming,
				const struct vp_profile_options *options, struct vp_report *ret)
{
	VP_TRY(vp_report_read(naming, options, NULL, ret));
	if (!options->events_only)
		vp_report_note(ret);
	return NULL;
}
