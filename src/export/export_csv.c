/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One line of comma-separated values per sample and slice. */
#include "analyze/profile/frame.h"
#include "analyze/report/export.h"
#include "analyze/report/export_queue.h"
#include "analyze/report/report.h"
#include "analyze/trace/tracks.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "base/text.h"
#include "export/export_text.h"
#include "export/exporters.h"
#include "render/render_table.h"
#include "render/render_tracks.h"
#include "schema/records.h"
#include "store/packet.h"

/* %s: the JSON key of the weights. */
#define HEADER                                                                                     \
	"type,begin_ns,end_ns,%s,pcpu,vm,vcpu,process,pid,tid,state,reason,function,module,stack," \
	"guest_process,guest_pid,guest_tid,thief,thief_tid\n"

struct csv {
	struct vp_export_texts vms, kinds, cells, /* quoted as separate cells */
	    parts;                                /* within the cell of a stack */
};

/* Spreadsheets treat a text with such a first character as a formula: a ' is put before it. */
static bool is_formula(const char *text)
{
	return *text && strchr("=+-@\t", *text);
}

static void export_csv_put_cell(const char *text, struct vp_buffer *out)
{
	struct vp_buffer clean = {0};

	if (is_formula(text) && text[1])
		vp_buffer_string(&clean, "'");
	vp_text_clean(text, strlen(text), &clean);
	vp_render_csv_field(vp_buffer_text(&clean), out);
	vp_buffer_deinit(&clean);
}

static void export_csv_put_part(const char *text, struct vp_buffer *out)
{
	struct vp_buffer clean = {0};

	vp_text_clean(text, strlen(text), &clean);
	for (size_t i = 0; i < clean.size; i++) {
		char at = clean.bytes[i];
		vp_buffer_append(out,
				 at == '"'   ? "\"\""
				 : at == ';' ? ":"
					     : &at,
				 at == '"' ? 2 : 1);
	}
	vp_buffer_deinit(&clean);
}

static void export_csv_begin(struct vp_export *export)
{
	struct csv *csv = export->state;

	csv->vms = (struct vp_export_texts){
	    .text = vp_export_vm, .put = export_csv_put_cell, .unknown = ""};
	csv->kinds = (struct vp_export_texts){
	    .text = vp_export_kind, .put = export_csv_put_cell, .unknown = ""};
	csv->cells = (struct vp_export_texts){
	    .text = vp_export_text, .put = export_csv_put_cell, .unknown = ""};
	csv->parts = (struct vp_export_texts){
	    .text = vp_export_text, .put = export_csv_put_part, .unknown = "[unknown]"};
	vp_buffer_printf(export->out, HEADER, vp_report_weight_key(export->report));
}

static void export_csv_put_known(bool known, uint64_t number, struct vp_buffer *out)
{
	if (known)
		vp_buffer_count(out, number);
	vp_buffer_string(out, ",");
}

static void export_csv_put_text(const char *text, struct vp_buffer *out)
{
	if (text)
		export_csv_put_cell(text, out);
	vp_buffer_string(out, ",");
}

/* Maximum length of a sample's line, without its texts. */
enum { LINE = 256 };

static char *export_csv_put_number_at(char *at, bool known, uint64_t number)
{
	if (known)
		at = vp_put_count(at, number);
	*at = ',';
	return at + 1;
}

static char *put_text_at(char *at, const struct vp_export_texts *texts, uint32_t number)
{
	at = vp_export_texts_put(texts, number, at);
	*at = ',';
	return at + 1;
}

static size_t export_csv_room_for(struct csv *csv, const struct vp_export *export,
				  const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	size_t room = LINE;

	room += vp_export_texts_room(&csv->vms, export, inner->vm);
	room += vp_export_texts_room(&csv->kinds, export, inner->kind);
	room += vp_export_texts_room(&csv->cells, export, inner->process);
	room += vp_export_texts_room(&csv->cells, export, inner->function);
	room += vp_export_texts_room(&csv->cells, export, inner->module);
	for (uint32_t i = 0; i < sample->count; i++)
		room += 1 + vp_export_texts_room(&csv->parts, export, sample->frames[i].function);
	return room;
}

static char *export_csv_put_stack(char *at, const struct csv *csv, const struct vp_sample *sample)
{
	for (uint32_t i = 0; i < sample->count; i++) {
		*at++ = i ? ';' : '"';
		at = vp_export_texts_put(&csv->parts, sample->frames[i].function, at);
	}
	return vp_put_text(at, "\",,,,,\n");
}

static void export_csv_put_sample(struct vp_export *export, const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	struct csv *csv = export->state;
	char *at = vp_buffer_room(export->out, export_csv_room_for(csv, export, sample));
	char time[VP_PUT_BLOCK];
	size_t time_size = (size_t)(export_csv_put_number_at(time, true, sample->time) - time);

	at = vp_put_text(at, "sample,");
	at = vp_put_blocks(at, time, time_size);
	at = vp_put_blocks(at, time, time_size);
	at = export_csv_put_number_at(at, true, sample->weight);
	at = export_csv_put_number_at(at, sample->pcpu != VP_NONE, sample->pcpu);
	at = put_text_at(at, &csv->vms, inner->vm);
	at = export_csv_put_number_at(at, inner->vcpu != VP_NONE, inner->vcpu);
	at = put_text_at(at, &csv->cells, inner->process);
	at = export_csv_put_number_at(at, inner->pid != VP_NONE, inner->pid);
	at = export_csv_put_number_at(at, sample->tid, sample->tid);
	at = put_text_at(at, &csv->kinds, inner->kind);
	*at++ = ',';
	at = put_text_at(at, &csv->cells, inner->function);
	at = put_text_at(at, &csv->cells, inner->module);
	vp_buffer_end(export->out, export_csv_put_stack(at, csv, sample));
}

static void export_csv_put_slice(struct vp_export *export, const struct vp_state_slice *slice)
{
	struct vp_buffer *out = export->out;

	vp_buffer_string(out, "slice,");
	export_csv_put_known(true, slice->begin, out);
	export_csv_put_known(true, slice->end, out);
	vp_buffer_string(out, ",");
	export_csv_put_known(slice->pcpu != VP_NONE, slice->pcpu, out);
	export_csv_put_text(vp_export_vm(export, slice->vm), out);
	export_csv_put_known(true, slice->vcpu, out);
	vp_buffer_string(out, ",,,");
	export_csv_put_text(slice->state, out);
	export_csv_put_text(slice->reason, out);
	vp_buffer_string(out, ",,,,,,,\n");
}

static void export_csv_put_track_slice(struct vp_export *export,
				       const struct vp_track_slice *track_slice)
{
	struct vp_buffer *out = export->out;

	vp_buffer_string(out, track_slice->track == VP_TRACK_PCPU ? "pcpu," : "vcpu,");
	export_csv_put_known(true, track_slice->begin, out);
	export_csv_put_known(true, track_slice->end, out);
	vp_buffer_string(out, ",");
	export_csv_put_known(track_slice->pcpu != VP_NO_PCPU, track_slice->pcpu, out);
	export_csv_put_text(
	    track_slice->has_vcpu ? vp_tracks_vm(export->tracks, track_slice->vm) : NULL, out);
	export_csv_put_known(track_slice->has_vcpu && track_slice->vcpu != VP_VCPU_UNKNOWN,
			     track_slice->vcpu, out);
	export_csv_put_text(track_slice->comm, out);
	vp_buffer_string(out, ",");
	export_csv_put_known(true, track_slice->tid, out);
	export_csv_put_text(vp_track_state_name(track_slice->state), out);
	vp_buffer_string(out, ",,,,");
	export_csv_put_text(track_slice->has_guest ? track_slice->guest_comm : NULL, out);
	export_csv_put_known(track_slice->has_guest, track_slice->guest_pid, out);
	export_csv_put_known(track_slice->has_guest, track_slice->guest_tid, out);
	export_csv_put_text(track_slice->has_thief ? track_slice->thief_comm : NULL, out);
	if (track_slice->has_thief)
		vp_buffer_count(out, track_slice->thief_tid);
	vp_buffer_string(out, "\n");
}

static void export_csv_deinit(void *state)
{
	struct csv *csv = state;

	vp_export_texts_deinit(&csv->vms);
	vp_export_texts_deinit(&csv->kinds);
	vp_export_texts_deinit(&csv->cells);
	vp_export_texts_deinit(&csv->parts);
}

const struct vp_exporter *vp_exporter_csv(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct csv),
						    .begin = export_csv_begin,
						    .sample = export_csv_put_sample,
						    .slice = export_csv_put_slice,
						    .track_slice = export_csv_put_track_slice,
						    .deinit = export_csv_deinit};

	return &exporter;
}
