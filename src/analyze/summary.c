/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/summary.h"

static struct vp_error *count_records(const char *host, struct vp_summary *summary)
{
	vp_stream_readers streams = {0};
	const struct vp_record_header *record;

	VP_TRY(vp_trace_open(host, &streams));
	vp_vec_each (&streams, stream) {
		struct vp_summary_pcpu pcpu = {0};
		while ((record = vp_stream_next(*stream)))
			pcpu.records[record->id]++;
		pcpu.cpu = vp_stream_cpu(*stream);
		if (pcpu.cpu == VP_STREAM_STATES)
			summary->vcpu_spans = pcpu.records[VP_ID_vcpu_span];
		else
			vp_vec_push(&summary->pcpus, pcpu);
	}
	vp_trace_close(&streams);
	return NULL;
}

struct vp_error *vp_summary_make(const char *directory, struct vp_summary *ret)
{
	struct vp_naming_options naming = {.directory = directory};
	struct vp_profile_options options = {.view = VP_VIEW_UNIFIED};
	VP_AUTO_FREE char *host = vp_format("%s/host", directory);

	*ret = (struct vp_summary){0};
	VP_TRY(vp_report_make(&naming, &options, &ret->report));
	struct vp_error *error = count_records(host, ret);
	if (!error && vp_recording_has_intervals(directory)) {
		error = vp_interval_book_open(directory, &ret->intervals);
		ret->has_intervals = !error;
	}
	if (error)
		vp_summary_deinit(ret);
	return error;
}

void vp_summary_deinit(struct vp_summary *summary)
{
	vp_report_deinit(&summary->report);
	if (summary->has_intervals)
		vp_interval_book_close(&summary->intervals);
	vp_vec_deinit(&summary->pcpus);
}

static void intervals_table(const struct vp_summary *summary, struct vp_table *table)
{
	vp_table_column_add(table, "pcpu", "pCPU", "", VP_CELL_COUNT);
	vp_table_column_add(table, "intervals", "Intervals", "", VP_CELL_COUNT);
	vp_vec_each (&summary->pcpus, pcpu) {
		vp_table_count(table, pcpu->cpu);
		vp_table_count(table, pcpu->records[VP_ID_interval]);
	}
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

	if (summary->has_intervals) {
		intervals_table(summary, table);
		return;
	}
	vp_table_column_add(table, "pcpu", "pCPU", "", VP_CELL_COUNT);
	vp_table_column_add(table, "samples", "Samples", "", VP_CELL_COUNT);
	for (size_t i = 0; i < VP_ARRAY_SIZE(columns); i++)
		vp_table_column_add(table, columns[i].key, columns[i].header, "", VP_CELL_COUNT);
	vp_vec_each (&summary->pcpus, pcpu) {
		vp_table_count(table, pcpu->cpu);
		vp_table_count(table, pcpu->records[VP_ID_host_sample] +
					  pcpu->records[VP_ID_vcpu_sample] +
					  pcpu->records[VP_ID_guest_sample]);
		for (size_t i = 0; i < VP_ARRAY_SIZE(columns); i++)
			vp_table_count(table, pcpu->records[columns[i].id]);
	}
}

const vp_sentences *vp_summary_notes(const struct vp_summary *summary)
{
	return summary->has_intervals ? &summary->intervals.notes : &summary->report.notes;
}

bool vp_summary_vm_started(const struct vp_summary *summary, const struct vp_vm *vm)
{
	return !vm->at_start && vm->start > summary->report.recording.start;
}
