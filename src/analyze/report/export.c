/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/export.h"

#include "analyze/account/account_tables.h"
#include "analyze/common/filter.h"
#include "analyze/common/naming.h"
#include "analyze/profile/call_tree.h"
#include "analyze/profile/flow.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/pass.h"
#include "analyze/profile/profile.h"
#include "analyze/profile/view.h"
#include "analyze/report/report_make.h"
#include "analyze/trace/trace_feed.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/vec.h"
#include "schema/account_terms.h"
#include "schema/exit_reason.h"
#include "schema/records.h"
#include "store/packet.h"
#include "store/trace_reader.h"

enum { EVENTS_AT_ONCE = 1 << 12 };

const char *vp_export_text(const struct vp_export *export, uint32_t text)
{
	return text == VP_NONE ? NULL : export->texts.at[text];
}

const char *vp_export_vm(const struct vp_export *export, uint32_t vm)
{
	return vm == VP_NONE ? NULL : export->vms.at[vm].name;
}

static void add_vms(const vp_vms *vms, size_t from, vp_vms *ret)
{
	for (size_t i = from; i < vms->count; i++)
		vp_vec_push(ret, vms->at[i]);
}

/* Appends texts and VMs that were added since the given counts. */
static void add_names(const struct vp_intern *texts, size_t from_text, const vp_vms *vms,
		      size_t from_vm, vp_export_names *ret_texts, vp_vms *ret_vms)
{
	for (size_t i = from_text; i < texts->strings.count; i++)
		vp_vec_push(ret_texts, texts->strings.at[i]);
	add_vms(vms, from_vm, ret_vms);
}

static void forget_names(struct vp_export *export)
{
	vp_vec_deinit(&export->texts);
	vp_vec_deinit(&export->vms);
}

static struct vp_frame export_frame_of(const struct vp_profile_row *row)
{
	return (struct vp_frame){.part = row->part,
				 .kind = row->kind,
				 .function = row->function,
				 .module = row->module,
				 .process = row->process,
				 .pid = row->pid,
				 .vm = row->vm,
				 .vcpu = row->vcpu};
}

static void export_emit_total(const struct vp_exporter *exporter, struct vp_export *export,
			      const uint32_t *rows, uint32_t count, uint64_t samples)
{
	struct vp_frame frames[VP_CALL_PATH_MAX];
	struct vp_sample sample = {
	    .weight = samples, .pcpu = VP_NONE, .frames = frames, .count = count};

	for (uint32_t i = 0; i < count; i++)
		frames[i] = export_frame_of(&export->report->profile.rows.at[rows[i]]);
	exporter->sample(export, &sample);
}

static void export_emit_stacks(const struct vp_exporter *exporter, struct vp_export *export)
{
	const struct vp_profile *profile = &export->report->profile;
	uint32_t rows[VP_CALL_PATH_MAX];

	for (uint32_t node = 0; node < profile->nodes.count; node++) {
		uint64_t samples = profile->nodes.at[node].samples;
		uint32_t count = samples ? vp_call_path(profile, node, rows, VP_CALL_PATH_MAX) : 0;
		if (count)
			export_emit_total(exporter, export, rows, count, samples);
	}
}

static void export_emit_rows(const struct vp_exporter *exporter, struct vp_export *export)
{
	const struct vp_profile *profile = &export->report->profile;

	vp_vec_each (&profile->parts, part) {
		uint32_t row = (uint32_t)part->first_row;
		for (size_t left = vp_report_rows(export->report, part); left; left--, row++)
			if (profile->rows.at[row].samples)
				export_emit_total(exporter, export, &row, 1,
						  profile->rows.at[row].samples);
	}
}

void vp_export_totals(const struct vp_report *report, const struct vp_exporter *exporter,
		      struct vp_buffer *out)
{
	VP_AUTO_FREE void *state = vp_alloc(exporter->state_size);
	struct vp_export export = {.report = report, .out = out, .state = state};

	add_names(&report->profile.texts, 0, &report->vms, 0, &export.texts, &export.vms);
	if (exporter->begin)
		exporter->begin(&export);
	if (report->options.chains)
		export_emit_stacks(exporter, &export);
	else
		export_emit_rows(exporter, &export);
	if (exporter->end)
		exporter->end(&export);
	if (exporter->deinit)
		exporter->deinit(state);
	forget_names(&export);
}

/* After begin_once(), the exporter's thread owns everything except the members of the pass, until
 * it ends. */
struct streaming {
	const struct vp_exporter *exporter;
	const struct vp_export_writer *writer;
	struct vp_export export;
	struct vp_buffer out;
	struct vp_error *error;          /* the first one */
	struct vp_stream_reader *spans;  /* of vCPU states, or NULL */
	const struct vp_vcpu_span *span; /* the next one, or NULL */
	struct vp_filter filter;         /* for slices */
	/* Used by the pass: */
	struct vp_export_queue queue;
	size_t texts, vms; /* number of texts and VMs passed on so far */
	bool begun;
};

static void write_if(struct streaming *streaming, size_t size)
{
	if (!streaming->error)
		streaming->error = streaming->export.error;
	if (streaming->out.size < size || streaming->exporter->directory)
		return;
	if (!streaming->error)
		streaming->error =
		    streaming->writer->write(streaming->writer->context, &streaming->out);
	streaming->out.size = 0;
}

static void next_span(struct streaming *streaming)
{
	const struct vp_record_header *record = NULL;

	while (streaming->spans && (record = vp_stream_next(streaming->spans)))
		if (record->id == VP_ID_vcpu_span &&
		    ((const struct vp_vcpu_span *)(const void *)record)->state < VP_STATES)
			break;
	streaming->span = (const void *)record;
}

/* Slices belong to vCPUs, not to processes: a filter by process excludes them. */
static struct vp_error *open_spans(struct streaming *streaming)
{
	const struct vp_report *report = streaming->export.report;
	const struct vp_profile_options *options = &report->options;
	VP_AUTO_FREE char *host = vp_format("%s/host", report->path);
	VP_AUTO_FREE char *path =
	    vp_stream_find(host, (struct vp_stream_id){VP_STREAM_STATES, VP_NO_PCPU});

	VP_TRY(vp_filter_init(&streaming->filter, &report->vms, options->vm));
	streaming->filter.has_vcpu = options->has_vcpu;
	streaming->filter.vcpu = options->vcpu;
	if (!streaming->exporter->slice || options->comm || options->pid || !path)
		return NULL;
	VP_TRY(vp_stream_open(path, &streaming->spans));
	next_span(streaming);
	return NULL;
}

static bool export_has_trace(const char *path)
{
	struct vp_feed feed;
	VP_AUTO_ERROR struct vp_error *error = vp_feed_open(path, &feed);

	if (!error)
		vp_feed_close(&feed);
	return !error;
}

static void begin_once(struct streaming *streaming)
{
	const struct vp_report *report = streaming->export.report;

	if (streaming->begun)
		return;
	streaming->begun = true;
	add_vms(&report->vms, 0, &streaming->export.vms);
	streaming->vms = report->vms.count;
	streaming->export.has_track_slices =
	    streaming->exporter->track_slice && export_has_trace(report->path);
	streaming->error = open_spans(streaming);
	if (streaming->exporter->begin)
		streaming->exporter->begin(&streaming->export);
	vp_export_queue_begin(&streaming->queue, report->options.jobs > 1);
}

static bool is_on_pcpus(const struct vp_profile_options *options, uint32_t pcpu)
{
	for (size_t i = 0; i < options->n_pcpus; i++)
		if ((uint32_t)options->pcpus[i] == pcpu)
			return true;
	return !options->n_pcpus;
}

static void export_emit_slice(struct streaming *streaming, const struct vp_vcpu_span *span)
{
	const struct vp_report *report = streaming->export.report;
	const vp_vms *vms = &streaming->export.vms;
	const struct vp_vm *vm = vp_vms_find(vms, span->vm);
	uint32_t number = vm ? (uint32_t)(vm - vms->at) : VP_NONE;
	bool exited = span->flags & VP_HAS_EXIT_REASON;
	char name[VP_EXIT_NAME_SIZE];

	if (!vm || span->time < report->options.from ||
	    (report->options.to && span->time > report->options.to) ||
	    !vp_filter_has_vm(&streaming->filter, number) ||
	    !vp_filter_has_vcpu(&streaming->filter, span->vcpu) ||
	    !is_on_pcpus(&report->options, span->cpu))
		return;
	struct vp_state_slice slice = {
	    .begin = span->ns < span->time ? span->time - span->ns : 0,
	    .end = span->time,
	    .vm = number,
	    .vcpu = span->vcpu,
	    .pcpu = span->cpu,
	    .state = vp_state_name(span->state),
	    .reason = exited ? vp_exit_reason_name(span->vendor, span->reason, name) : NULL};
	streaming->exporter->slice(&streaming->export, &slice);
	write_if(streaming, VP_EXPORT_PIECE);
}

static void export_emit_slices(struct streaming *streaming, uint64_t until)
{
	while (streaming->span && streaming->span->time <= until && !streaming->error) {
		export_emit_slice(streaming, streaming->span);
		next_span(streaming);
	}
}

/* Runs in the exporter's thread. */
static void export_take_sample(struct streaming *streaming, const struct vp_sample *sample)
{
	if (!streaming->error)
		export_emit_slices(streaming, sample->time);
	if (streaming->error)
		return;
	if (streaming->exporter->sample)
		streaming->exporter->sample(&streaming->export, sample);
	write_if(streaming, VP_EXPORT_PIECE);
}

static void take_batch(void *context, const struct vp_export_batch *batch)
{
	struct streaming *streaming = context;
	const struct vp_frame *frames = batch->frames.at;
	const struct vp_frame_address *addresses = batch->addresses.at;

	vp_vec_each (&batch->texts, text)
		vp_vec_push(&streaming->export.texts, *text);
	vp_vec_each (&batch->vms, vm)
		vp_vec_push(&streaming->export.vms, *vm);
	vp_vec_each (&batch->samples, queued) {
		struct vp_sample sample = *queued;
		sample.frames = frames;
		sample.addresses = addresses;
		frames += sample.count;
		addresses += sample.count;
		export_take_sample(streaming, &sample);
	}
}

static void submit_batch(struct streaming *streaming, const struct vp_intern *texts,
			 const vp_vms *vms)
{
	struct vp_export_batch *batch = vp_export_queue_batch(&streaming->queue);

	add_names(texts, streaming->texts, vms, streaming->vms, &batch->texts, &batch->vms);
	streaming->texts = texts->strings.count;
	streaming->vms = vms->count;
	vp_export_queue_submit(&streaming->queue);
}

/* Adds the vCPU of the vCPU thread to the frame; idle and steal frames have their own. */
static struct vp_frame with_vcpu(struct vp_frame frame, uint32_t vcpu)
{
	if (frame.kind != VP_KIND_IDLE && frame.kind != VP_KIND_STEAL)
		frame.vcpu = vcpu;
	return frame;
}

/* Runs in the pass. */
static void export_emit_sample(void *context, const struct vp_flow *flow,
			       const struct vp_sink_tick *tick, const uint32_t *stack,
			       const struct vp_frame_address *addresses, uint32_t count)
{
	struct streaming *streaming = context;
	const vp_stream_readers *streams = flow->timeline->merge.streams;

	begin_once(streaming);
	struct vp_export_batch *batch = vp_export_queue_batch(&streaming->queue);
	vp_vec_push(&batch->samples,
		    ((struct vp_sample){.time = tick->time,
					.weight = tick->weight,
					.pcpu = tick->pcpu == VP_NONE
						    ? VP_NONE
						    : vp_stream_cpu(streams->at[tick->pcpu]),
					.pid = tick->pid,
					.tid = tick->tid,
					.count = count}));
	for (uint32_t i = 0; i < count; i++) {
		vp_vec_push(&batch->frames, with_vcpu(flow->frames.at.at[stack[i]], tick->vcpu));
		vp_vec_push(&batch->addresses, addresses[i]);
	}
	if (batch->samples.count == VP_EXPORT_BATCH)
		submit_batch(streaming, &flow->frames.texts, flow->vms);
}

/* Submits the last batch and ends the exporter's thread. */
static void end_samples(struct streaming *streaming, const struct vp_report *report)
{
	begin_once(streaming);
	submit_batch(streaming, &report->profile.texts, &report->vms);
	vp_export_queue_end(&streaming->queue);
}

static void export_emit_track_slice(void *context, const struct vp_track_slice *track_slice)
{
	struct streaming *streaming = context;

	if (streaming->error)
		return;
	streaming->exporter->track_slice(&streaming->export, track_slice);
	write_if(streaming, VP_EXPORT_PIECE);
}

static void export_emit_track_slices(struct streaming *streaming)
{
	const struct vp_profile_options *options = &streaming->export.report->options;
	const struct vp_tracks_options tracks = {.from = options->from,
						 .to = options->to ? options->to : UINT64_MAX,
						 .vm = options->vm,
						 .pcpus = options->pcpus,
						 .n_pcpus = options->n_pcpus,
						 .take = export_emit_track_slice,
						 .context = streaming};

	if (!streaming->export.has_track_slices || streaming->error)
		return;
	streaming->error =
	    vp_tracks_open(streaming->export.report->path, &tracks, &streaming->export.tracks);
	if (streaming->error)
		return;
	while (!streaming->error && vp_tracks_read(streaming->export.tracks, EVENTS_AT_ONCE))
		;
	vp_tracks_close(streaming->export.tracks);
	streaming->export.tracks = NULL;
}

/* A recording without a trace has samples but no events. */
static void export_emit_events(struct streaming *streaming)
{
	const struct vp_report *report = streaming->export.report;
	const struct vp_script_options options = {.from = report->options.from,
						  .to = report->options.to ? report->options.to
									   : UINT64_MAX,
						  .vm = report->options.vm,
						  .pcpus = report->options.pcpus,
						  .n_pcpus = report->options.n_pcpus};
	const struct vp_script_event *event;
	struct vp_script *script;

	write_if(streaming, VP_EXPORT_PIECE); /* stops if begin() has failed */
	if (!streaming->exporter->event || streaming->error)
		return;
	streaming->error = vp_script_open(report->path, &options, &script);
	if (streaming->error)
		return;
	while (!streaming->error && (event = vp_script_next(script))) {
		streaming->exporter->event(&streaming->export, event);
		write_if(streaming, VP_EXPORT_PIECE);
	}
	vp_script_close(script);
}

static void finish(struct streaming *streaming, struct vp_report *report)
{
	end_samples(streaming, report);
	export_emit_slices(streaming, UINT64_MAX);
	export_emit_track_slices(streaming);
	export_emit_events(streaming);
	if (!streaming->error && streaming->exporter->end)
		streaming->exporter->end(&streaming->export);
	write_if(streaming, 1);
	vp_vec_each (&streaming->export.notes, note)
		vp_vec_push(&report->notes, *note);
	vp_vec_deinit(&streaming->export.notes);
}

struct vp_error *vp_export_stream(const struct vp_naming_options *naming,
				  const struct vp_profile_options *options,
				  const struct vp_exporter *exporter,
				  const struct vp_export_writer *writer, struct vp_report *ret)
{
	VP_AUTO_FREE void *state = vp_alloc(exporter->state_size);
	VP_AUTO_FREE struct streaming *streaming = vp_alloc(sizeof(*streaming));
	const struct vp_sample_sink sink = {.context = streaming, .sample = export_emit_sample};
	struct vp_profile_options wanted = *options;

	*streaming = (struct streaming){.exporter = exporter, .writer = writer};
	streaming->queue.take = take_batch;
	streaming->queue.context = streaming;
	streaming->export = (struct vp_export){
	    .report = ret, .out = &streaming->out, .state = state, .directory = writer->directory};
	wanted.columns = VP_COLUMNS_ALL;
	/* The ticks have the vCPU, too: without it in the key, there are much fewer frames. */
	if (!vp_view_of(options->view)->of_one_vm)
		wanted.columns &= ~(unsigned)VP_COLUMN_VCPU;
	wanted.chains = false; /* samples are exported one by one, with their own stacks */
	wanted.sink = &sink;
	wanted.events_only = exporter->event && !exporter->sample && !exporter->slice;
	struct vp_error *error = vp_report_make(naming, &wanted, ret);
	ret->options.sink = NULL;
	if (!error)
		finish(streaming, ret);
	if (exporter->deinit)
		exporter->deinit(state);
	vp_stream_free(streaming->spans);
	vp_filter_deinit(&streaming->filter);
	vp_buffer_deinit(&streaming->out);
	forget_names(&streaming->export);
	if (!error && streaming->error)
		vp_report_deinit(ret);
	return error ? error : streaming->error;
}
