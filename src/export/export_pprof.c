/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile for pprof (perftools.profiles.Profile, github.com/google/pprof/proto/profile.proto),
 * uncompressed, which pprof accepts. Machines, vCPUs, processes and states are labels.
 *
 * The same for stores of profiles, in the JSON of their requests: CPU time with the labels vm,
 * namespace and process. vCPUs, pids and states are omitted, because they would multiply the series
 * of a store. Idle samples are omitted, too.
 */
#include <stdlib.h>

#include "analyze/common/key_set.h"
#include "analyze/profile/frame.h"
#include "analyze/report/diagnose_commands.h"
#include "analyze/report/export.h"
#include "analyze/report/export_queue.h"
#include "analyze/report/report.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/buffer.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "export/exporters.h"
#include "export/protobuf.h"
#include "schema/vm.h"
#include "schema/weighting.h"
#include "store/recording.h"

/* Field numbers, by message. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	TYPE_TYPE = 1,
	TYPE_UNIT = 2,
	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_STRING = 2,
	LABEL_NUMBER = 3,
	LABEL_UNIT = 4,
	MAPPING_ID = 1,
	MAPPING_FILE = 5,
	MAPPING_HAS_FUNCTIONS = 7,
	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILE = 4
};

struct pprof {
	struct vp_intern strings;
	struct vp_key_set functions; /* function, module */
	struct vp_map mappings;      /* module → number, from 1 */
	struct vp_buffer sample, locations, values, message, line;
	uint64_t unit; /* ns per sample, or 0 */
	bool for_store;
	size_t first; /* size of the output before the profile */
};

/* The number of the text; a new text is written. */
static uint64_t string_of(struct vp_export *export, const char *text)
{
	struct pprof *pprof = export->state;
	size_t before = pprof->strings.strings.count;
	uint32_t number = vp_intern_string(&pprof->strings, text);

	if (pprof->strings.strings.count > before)
		vp_pb_text(export->out, PROFILE_STRING, text);
	return number;
}

static void export_pprof_put_message(struct vp_export *export, uint32_t field)
{
	struct pprof *pprof = export->state;

	vp_pb_message(export->out, field, &pprof->message);
	pprof->message.size = 0;
}

static void put_type(struct vp_export *export, uint32_t field, const char *type, const char *unit)
{
	struct pprof *pprof = export->state;

	vp_pb_count(&pprof->message, TYPE_TYPE, string_of(export, type));
	vp_pb_count(&pprof->message, TYPE_UNIT, string_of(export, unit));
	export_pprof_put_message(export, field);
}

/* Start of the window, host CLOCK_MONOTONIC. */
static uint64_t pprof_start_of(const struct vp_report *report)
{
	uint64_t from = report->options.from, start = report->recording.start;

	return from > start ? from : start;
}

static void export_pprof_begin(struct vp_export *export)
{
	struct pprof *pprof = export->state;
	const struct vp_recording *recording = &export->report->recording;

	pprof->functions.key_size = 2 * sizeof(uint32_t);
	pprof->unit = vp_recording_unit_ns(recording);
	(void)string_of(export, ""); /* entry 0 must be empty */
	if (recording->weighting == VP_WEIGHTING_TICKS)
		put_type(export, PROFILE_SAMPLE_TYPE, "samples", "count");
	else if (recording->weighting == VP_WEIGHTING_EVENTS)
		put_type(export, PROFILE_SAMPLE_TYPE, recording->trigger, "count");
	if (pprof->unit) {
		const char *type = pprof->for_store ? "cpu" : "time";
		put_type(export, PROFILE_SAMPLE_TYPE, type, "nanoseconds");
		put_type(export, PROFILE_PERIOD_TYPE, type, "nanoseconds");
		vp_pb_count(export->out, PROFILE_PERIOD, recording->period_ns);
	}
	if (recording->realtime_offset)
		vp_pb_count(export->out, PROFILE_TIME,
			    pprof_start_of(export->report) + (uint64_t)recording->realtime_offset);
	vp_pb_count(export->out, PROFILE_DURATION, (uint64_t)(export->report->duration * 1e9));
}

static uint32_t export_pprof_mapping_of(struct vp_export *export, uint32_t module)
{
	struct pprof *pprof = export->state;
	bool inserted;

	if (module == VP_NONE)
		return 0;
	uint32_t number =
	    *vp_map_insert(&pprof->mappings, module, pprof->mappings.count + 1, &inserted);
	if (inserted) {
		uint64_t file = string_of(export, vp_export_text(export, module));
		vp_pb_count(&pprof->message, MAPPING_ID, number);
		vp_pb_count(&pprof->message, MAPPING_FILE, file);
		vp_pb_count(&pprof->message, MAPPING_HAS_FUNCTIONS, 1);
		export_pprof_put_message(export, PROFILE_MAPPING);
	}
	return number;
}

/* Each function has its own location, with the same number. */
static void export_pprof_put_function(struct vp_export *export, uint64_t number,
				      const struct vp_frame *frame)
{
	struct pprof *pprof = export->state;
	const char *name = vp_export_text(export, frame->function);
	const char *module = vp_export_text(export, frame->module);
	uint64_t string = string_of(export, name ? name : "[unknown]");
	uint64_t file = string_of(export, module ? module : "");
	uint32_t mapping = export_pprof_mapping_of(export, frame->module);

	vp_pb_count(&pprof->message, FUNCTION_ID, number);
	vp_pb_count(&pprof->message, FUNCTION_NAME, string);
	vp_pb_count(&pprof->message, FUNCTION_SYSTEM_NAME, string);
	vp_pb_count(&pprof->message, FUNCTION_FILE, file);
	export_pprof_put_message(export, PROFILE_FUNCTION);
	pprof->line.size = 0;
	vp_pb_count(&pprof->line, LINE_FUNCTION, number);
	vp_pb_count(&pprof->message, LOCATION_ID, number);
	if (mapping)
		vp_pb_count(&pprof->message, LOCATION_MAPPING, mapping);
	vp_pb_message(&pprof->message, LOCATION_LINE, &pprof->line);
	export_pprof_put_message(export, PROFILE_LOCATION);
}

static uint64_t location_of(struct vp_export *export, const struct vp_frame *frame)
{
	struct pprof *pprof = export->state;
	const uint32_t key[2] = {frame->function, frame->module};
	bool inserted;
	uint64_t number = 1 + (uint64_t)vp_key_set_add(&pprof->functions, key, &inserted);

	if (inserted)
		export_pprof_put_function(export, number, frame);
	return number;
}

static void put_label(struct vp_export *export, const char *key, const char *text)
{
	struct pprof *pprof = export->state;

	if (!text || !*text)
		return;
	vp_pb_count(&pprof->message, LABEL_KEY, string_of(export, key));
	vp_pb_count(&pprof->message, LABEL_STRING, string_of(export, text));
	vp_pb_message(&pprof->sample, SAMPLE_LABEL, &pprof->message);
	pprof->message.size = 0;
}

/* pprof ignores a number of 0 without a unit, so there is one. */
static void export_pprof_put_number(struct vp_export *export, const char *key, uint32_t number)
{
	struct pprof *pprof = export->state;

	if (number == VP_NONE)
		return;
	vp_pb_count(&pprof->message, LABEL_KEY, string_of(export, key));
	vp_pb_count(&pprof->message, LABEL_NUMBER, number);
	vp_pb_count(&pprof->message, LABEL_UNIT, string_of(export, "number"));
	vp_pb_message(&pprof->sample, SAMPLE_LABEL, &pprof->message);
	pprof->message.size = 0;
}

static void put_namespace(struct vp_export *export, uint32_t vm)
{
	if (vm == VP_NONE)
		return;
	VP_AUTO_FREE char *namespace = vp_vm_namespace(&export->vms.at[vm]);
	put_label(export, "namespace", namespace);
}

static void export_pprof_put_stack(struct vp_export *export, const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	struct pprof *pprof = export->state;
	const char *vm = vp_export_vm(export, inner->vm);

	if (pprof->for_store && inner->kind == VP_KIND_IDLE)
		return;
	pprof->sample.size = pprof->locations.size = pprof->values.size = 0;
	for (uint32_t i = sample->count; i-- > 0;)
		vp_pb_varint(&pprof->locations, location_of(export, &sample->frames[i]));
	if (export->report->recording.weighting != VP_WEIGHTING_TIME)
		vp_pb_varint(&pprof->values, sample->weight);
	if (pprof->unit)
		vp_pb_varint(&pprof->values, sample->weight * pprof->unit);
	vp_pb_message(&pprof->sample, SAMPLE_LOCATION, &pprof->locations);
	vp_pb_message(&pprof->sample, SAMPLE_VALUE, &pprof->values);
	put_label(export, "vm", vm ? vm : "host");
	if (pprof->for_store) {
		put_namespace(export, inner->vm);
	} else {
		export_pprof_put_number(export, "vcpu", inner->vcpu);
		put_label(export, "state", vp_kind_name(inner->kind));
	}
	put_label(export, "process", vp_export_text(export, inner->process));
	if (!pprof->for_store)
		export_pprof_put_number(export, "pid", inner->pid);
	vp_pb_message(export->out, PROFILE_SAMPLE, &pprof->sample);
}

static void export_pprof_end(struct vp_export *export)
{
	vp_vec_each (&export->report->notes, note)
		vp_pb_count(export->out, PROFILE_COMMENT, string_of(export, *note));
}

static void export_pprof_deinit(void *state)
{
	struct pprof *pprof = state;

	vp_intern_deinit(&pprof->strings);
	vp_key_set_deinit(&pprof->functions);
	vp_map_deinit(&pprof->mappings);
	vp_buffer_deinit(&pprof->sample);
	vp_buffer_deinit(&pprof->locations);
	vp_buffer_deinit(&pprof->values);
	vp_buffer_deinit(&pprof->message);
	vp_buffer_deinit(&pprof->line);
}

static void begin_for_store(struct vp_export *export)
{
	struct pprof *pprof = export->state;

	pprof->for_store = true;
	pprof->first = export->out->size;
	export_pprof_begin(export);
}

/* Takes the profile from the output, in base64. */
static char *take_profile(struct vp_export *export)
{
	struct pprof *pprof = export->state;
	struct vp_buffer text = {0};

	export_pprof_end(export);
	vp_base64_append(&text, (const char *)export->out->bytes + pprof->first,
			 export->out->size - pprof->first);
	export->out->size = pprof->first;
	char *profile = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	return profile;
}

static void put_series_label(struct vp_json *json, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	vp_json_object(json, NULL);
	vp_json_text(json, "name", name);
	vp_json_text(json, "value", value);
	vp_json_object_end(json);
}

static void put_series_labels(struct vp_export *export, struct vp_json *json)
{
	vp_json_array(json, "labels");
	put_series_label(json, "__name__", "process_cpu");
	put_series_label(json, "service_name", "vperf");
	put_series_label(json, "host", export->report->recording.hostname);
	vp_json_array_end(json);
}

static void put_profile(struct vp_json *json, const char *key, const char *profile)
{
	vp_json_array(json, "samples");
	vp_json_object(json, NULL);
	vp_json_text(json, key, profile);
	vp_json_object_end(json);
	vp_json_array_end(json);
}

/* The body of push.v1.PusherService/Push. */
static void end_for_pyroscope(struct vp_export *export)
{
	VP_AUTO_FREE char *profile = take_profile(export);
	struct vp_json json = vp_json_to(export->out);

	vp_json_object(&json, NULL);
	vp_json_array(&json, "series");
	vp_json_object(&json, NULL);
	put_series_labels(export, &json);
	put_profile(&json, "rawProfile", profile);
	vp_json_object_end(&json);
	vp_json_array_end(&json);
	vp_json_object_end(&json);
}

/* The body of ProfileStoreService/WriteRaw. */
static void end_for_parca(struct vp_export *export)
{
	VP_AUTO_FREE char *profile = take_profile(export);
	struct vp_json json = vp_json_to(export->out);

	vp_json_object(&json, NULL);
	vp_json_array(&json, "series");
	vp_json_object(&json, NULL);
	vp_json_object(&json, "labels");
	put_series_labels(export, &json);
	vp_json_object_end(&json);
	put_profile(&json, "raw_profile", profile);
	vp_json_object_end(&json);
	vp_json_array_end(&json);
	vp_json_bool(&json, "normalized", true);
	vp_json_object_end(&json);
}

const struct vp_exporter *vp_exporter_pprof(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct pprof),
						    .totals = true,
						    .begin = export_pprof_begin,
						    .sample = export_pprof_put_stack,
						    .end = export_pprof_end,
						    .deinit = export_pprof_deinit};

	return &exporter;
}

enum { STORE_COLUMNS = VP_COLUMNS_ALL & ~(unsigned)(VP_COLUMN_PID | VP_COLUMN_VCPU) };

const struct vp_exporter *vp_exporter_pyroscope(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct pprof),
						    .totals = true,
						    .columns = STORE_COLUMNS,
						    .begin = begin_for_store,
						    .sample = export_pprof_put_stack,
						    .end = end_for_pyroscope,
						    .deinit = export_pprof_deinit};

	return &exporter;
}

const struct vp_exporter *vp_exporter_parca(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct pprof),
						    .totals = true,
						    .columns = STORE_COLUMNS,
						    .begin = begin_for_store,
						    .sample = export_pprof_put_stack,
						    .end = end_for_parca,
						    .deinit = export_pprof_deinit};

	return &exporter;
}
