/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/summary.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/common/naming.h"
#include "analyze/common/table.h"
#include "analyze/profile/pass.h"
#include "analyze/profile/view.h"
#include "analyze/report/report_make.h"
#include "base/alloc.h"
#include "base/error.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_reader.h"

static struct vp_summary_pcpu *summary_pcpu_of(struct vp_summary *summary, uint32_t cpu)
{
	vp_vec_each (&summary->pcpus, pcpu)
		if (pcpu->cpu == cpu)
			return pcpu;
	vp_vec_push(&summary->pcpus, (struct vp_summary_pcpu){.cpu = cpu});
	return &summary->pcpus.at[summary->pcpus.count - 1];
}

static void count_stream(struct vp_stream_reader *stream, struct vp_summary *summary)
{
	struct vp_summary_pcpu none = {0};
	bool per_pcpu = vp_stream_class_is_per_pcpu(vp_stream_class(stream));
	const struct vp_record_header *record = vp_stream_next(stream);
	struct vp_summary_pcpu *pcpu =
	    per_pcpu ? summary_pcpu_of(summary, vp_stream_cpu(stream)) : &none;

	for (; record; record = vp_stream_next(stream))
		if (record->id <= VP_ID_MAX)
			pcpu->records[record->id]++;
		else
			pcpu->events++;
	summary->hypervisor_events += none.events;
	if (vp_stream_class(stream) == VP_STREAM_HYPERVISOR)
		summary->hypervisor_events_lost += vp_stream_health(stream).lost;
	else if (vp_stream_class_has_defined(vp_stream_class(stream)))
		pcpu->events_lost += vp_stream_health(stream).lost;
	if (VP_STREAMS(vp_stream_class(stream)) &
	    (VP_STREAMS(VP_STREAM_ACCOUNT) | VP_STREAMS(VP_STREAM_STATES)))
		summary->account_lost += vp_stream_health(stream).lost;
	summary->vcpu_spans += none.records[VP_ID_vcpu_span];
}

static struct vp_error *count_records(const char *host, struct vp_summary *summary)
{
	vp_stream_readers streams = {0};

	VP_TRY(vp_trace_open(host, VP_STREAMS_ALL, &streams));
	vp_vec_each (&streams, stream)
		count_stream(*stream, summary);
	vp_trace_close(&streams);
	vp_vec_each (&summary->pcpus, pcpu) {
		summary->events += pcpu->events;
		summary->events_lost += pcpu->events_lost;
	}
	return NULL;
}

/* Appends problems of the intervals after those of the samples, without duplicates. */
static void summary_add_notes(struct vp_summary *summary)
{
	vp_sentences *notes = &summary->report.notes;

	vp_vec_each (&summary->intervals.notes, note) {
		bool known = false;
		vp_vec_each (notes, other)
			known |= !strcmp(*other, *note);
		if (!known)
			vp_vec_push(notes, vp_strdup(*note));
	}
}

struct vp_error *vp_summary_make(const char *directory, struct vp_summary *ret)
{
	struct vp_naming_options naming = {.directory = directory};
	struct vp_profile_options options = {.view = VP_VIEW_UNIFIED};
	VP_AUTO_FREE char *host = vp_format("%s/host", directory);

	*ret = (struct vp_summary){0};
	VP_TRY(vp_report_make(&naming, &options, &ret->report));
	ret->has_trace = vp_recording_has_instrument(&ret->report.recording, "trace") ||
			 vp_recording_has_instrument(&ret->report.recording, "tracepoints");
	ret->has_more = !vp_recording_is_of_intervals(directory);
	struct vp_error *error = count_records(host, ret);
	if (!error && vp_recording_has_intervals(directory)) {
		error = vp_interval_recording_open(directory, &ret->intervals);
		ret->has_intervals = !error;
	}
	if (ret->has_intervals && ret->has_more)
		summary_add_notes(ret);
	if (ret->hypervisor_events_lost)
		vp_vec_push(&ret->report.notes,
			    vp_format("%" PRIu64
				      " events of the hypervisor were lost while recording",
				      ret->hypervisor_events_lost));
	if (ret->events_lost)
		vp_vec_push(
		    &ret->report.notes,
		    vp_format("%" PRIu64 " events were lost while recording", ret->events_lost));
	if (error)
		vp_summary_deinit(ret);
	return error;
}

void vp_summary_deinit(struct vp_summary *summary)
{
	vp_report_deinit(&summary->report);
	if (summary->has_intervals)
		vp_interval_recording_close(&summary->intervals);
	vp_vec_deinit(&summary->pcpus);
}

void vp_summary_table(const struct vp_summary *summary, struct vp_table *table)
{
	static const struct {
		uint32_t id;
		const char *key, *header;
	} columns[] = {{VP_ID_host_sample, "host_samples", "Host"},
		       {VP_ID_vcpu_sample, "vcpu_samples", "In KVM"},
		       {VP_ID_guest_sample, "guest_samples", "Guest"},
		       {VP_ID_vcpu_in, "vcpu_in", "vCPU in"},
		       {VP_ID_vcpu_out, "vcpu_out", "vCPU out"}};
	static const char *const least[] = {"vcpu_in",      "vcpu_out",      "host_samples",
					    "vcpu_samples", "guest_samples", NULL};
	size_t n_columns = summary->has_more ? VP_ARRAY_SIZE(columns) : 0;

	table->least = least;
	vp_table_column_add(table, "pcpu", "pCPU", "", VP_CELL_COUNT);
	if (summary->has_more)
		vp_table_column_add(table, "samples", "Samples", "", VP_CELL_COUNT);
	for (size_t i = 0; i < n_columns; i++)
		vp_table_column_add(table, columns[i].key, columns[i].header, "", VP_CELL_COUNT);
	if (summary->has_intervals)
		vp_table_column_add(table, "intervals", "Intervals", "", VP_CELL_COUNT);
	if (summary->has_trace) {
		vp_table_column_add(table, "events", "Events", "", VP_CELL_COUNT);
		vp_table_column_add(table, "events_lost", "Lost events", "", VP_CELL_COUNT);
	}
	vp_vec_each (&summary->pcpus, pcpu) {
		vp_table_count(table, pcpu->cpu);
		if (summary->has_more)
			vp_table_count(table, pcpu->records[VP_ID_host_sample] +
						  pcpu->records[VP_ID_vcpu_sample] +
						  pcpu->records[VP_ID_guest_sample]);
		for (size_t i = 0; i < n_columns; i++)
			vp_table_count(table, pcpu->records[columns[i].id]);
		if (summary->has_intervals)
			vp_table_count(table, pcpu->records[VP_ID_interval]);
		if (summary->has_trace) {
			vp_table_count(table, pcpu->events);
			vp_table_count(table, pcpu->events_lost);
		}
	}
}

const vp_sentences *vp_summary_notes(const struct vp_summary *summary)
{
	return summary->has_more ? &summary->report.notes : &summary->intervals.notes;
}

bool vp_summary_vm_started(const struct vp_summary *summary, const struct vp_vm *vm)
{
	return !vm->at_start && vm->start > summary->report.recording.start;
}
