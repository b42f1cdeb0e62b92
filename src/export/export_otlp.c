/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU time for OpenTelemetry (opentelemetry.proto.profiles.v1development.ProfilesData of
 * opentelemetry-proto 1.9 to 1.11), uncompressed. Each machine is a resource with the attributes
 * host.name, vm and namespace; the process is an attribute of the sample. vCPUs and pids are
 * omitted, because they would multiply the series of a profile store. Idle samples are omitted,
 * too.
 */
#include <xxhash.h>

#include "analyze/common/key_set.h"
#include "analyze/profile/frame.h"
#include "analyze/report/diagnose_commands.h"
#include "analyze/report/export.h"
#include "analyze/report/export_queue.h"
#include "analyze/report/report.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/intern.h"
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
	DATA_RESOURCE = 1,
	DATA_DICTIONARY = 2,
	DICTIONARY_MAPPING = 1,
	DICTIONARY_LOCATION = 2,
	DICTIONARY_FUNCTION = 3,
	DICTIONARY_LINK = 4,
	DICTIONARY_STRING = 5,
	DICTIONARY_ATTRIBUTE = 6,
	DICTIONARY_STACK = 7,
	RESOURCES_RESOURCE = 1,
	RESOURCES_SCOPE = 2,
	RESOURCE_ATTRIBUTE = 1,
	SCOPES_SCOPE = 1,
	SCOPES_PROFILE = 2,
	SCOPE_NAME = 1,
	SCOPE_VERSION = 2,
	PROFILE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_TIME = 3,
	PROFILE_DURATION = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	PROFILE_ID = 7,
	TYPE_TYPE = 1,
	TYPE_UNIT = 2,
	SAMPLE_STACK = 1,
	SAMPLE_ATTRIBUTE = 2,
	SAMPLE_VALUE = 4,
	STACK_LOCATION = 1,
	MAPPING_FILE = 4,
	LOCATION_MAPPING = 1,
	LOCATION_LINE = 3,
	LINE_FUNCTION = 1,
	FUNCTION_NAME = 1,
	FUNCTION_SYSTEM_NAME = 2,
	FUNCTION_FILE = 3,
	ATTRIBUTE_KEY = 1,
	ATTRIBUTE_VALUE = 2,
	KEY_VALUE_KEY = 1,
	KEY_VALUE_VALUE = 2,
	VALUE_STRING = 1
};

/* Samples of one machine. */
struct machine {
	uint32_t vm; /* VP_NONE: the host */
	struct vp_buffer samples;
};

struct otlp {
	struct vp_buffer dictionary;
	struct vp_intern strings;
	struct vp_key_set functions; /* function, module; numbers of locations start at 1 */
	struct vp_map mappings;      /* module → number, from 1 */
	struct vp_intern processes;  /* attributes, from 1 */
	struct vp_intern stacks;     /* packed locations, from 1 */
	VP_VEC(struct machine) machines;
	struct vp_buffer message, part, locations;
	uint64_t unit; /* ns per sample, or 0 */
};

/* Writes `message` as a field of `out`, and empties it. */
static void otlp_move(struct vp_buffer *out, uint32_t field, struct vp_buffer *message)
{
	vp_pb_message(out, field, message);
	message->size = 0;
}

/* The number of the text; a new text is written. */
static uint64_t otlp_string_of(struct otlp *otlp, const char *text)
{
	size_t before = otlp->strings.strings.count;
	uint32_t number = vp_intern_string(&otlp->strings, text);

	if (otlp->strings.strings.count > before)
		vp_pb_text(&otlp->dictionary, DICTIONARY_STRING, text);
	return number;
}

/* Entry 0 of each table is the empty entry. */
static void export_otlp_begin(struct vp_export *export)
{
	static const uint32_t tables[] = {DICTIONARY_MAPPING,   DICTIONARY_LOCATION,
					  DICTIONARY_FUNCTION,  DICTIONARY_LINK,
					  DICTIONARY_ATTRIBUTE, DICTIONARY_STACK};
	struct otlp *otlp = export->state;

	otlp->functions.key_size = 2 * sizeof(uint32_t);
	otlp->unit = vp_recording_unit_ns(&export->report->recording);
	for (size_t i = 0; i < VP_ARRAY_SIZE(tables); i++)
		otlp_move(&otlp->dictionary, tables[i], &otlp->message);
	(void)otlp_string_of(otlp, "");
}

static uint32_t otlp_mapping_of(struct vp_export *export, uint32_t module)
{
	struct otlp *otlp = export->state;
	bool inserted;

	if (module == VP_NONE)
		return 0;
	uint32_t number =
	    *vp_map_insert(&otlp->mappings, module, otlp->mappings.count + 1, &inserted);
	if (inserted) {
		vp_pb_count(&otlp->message, MAPPING_FILE,
			    otlp_string_of(otlp, vp_export_text(export, module)));
		otlp_move(&otlp->dictionary, DICTIONARY_MAPPING, &otlp->message);
	}
	return number;
}

/* Each function has its own location, with the same number. */
static void otlp_put_function(struct vp_export *export, uint64_t number,
			      const struct vp_frame *frame)
{
	struct otlp *otlp = export->state;
	const char *name = vp_export_text(export, frame->function);
	const char *module = vp_export_text(export, frame->module);
	uint64_t string = otlp_string_of(otlp, name ? name : "[unknown]");
	uint64_t file = module ? otlp_string_of(otlp, module) : 0;
	uint32_t mapping = otlp_mapping_of(export, frame->module);

	vp_pb_count(&otlp->message, FUNCTION_NAME, string);
	vp_pb_count(&otlp->message, FUNCTION_SYSTEM_NAME, string);
	if (file)
		vp_pb_count(&otlp->message, FUNCTION_FILE, file);
	otlp_move(&otlp->dictionary, DICTIONARY_FUNCTION, &otlp->message);
	if (mapping)
		vp_pb_count(&otlp->message, LOCATION_MAPPING, mapping);
	vp_pb_count(&otlp->part, LINE_FUNCTION, number);
	otlp_move(&otlp->message, LOCATION_LINE, &otlp->part);
	otlp_move(&otlp->dictionary, DICTIONARY_LOCATION, &otlp->message);
}

static uint64_t otlp_location_of(struct vp_export *export, const struct vp_frame *frame)
{
	struct otlp *otlp = export->state;
	const uint32_t key[2] = {frame->function, frame->module};
	bool inserted;
	uint64_t number = 1 + (uint64_t)vp_key_set_add(&otlp->functions, key, &inserted);

	if (inserted)
		otlp_put_function(export, number, frame);
	return number;
}

/* The innermost location comes first. */
static uint64_t otlp_stack_of(struct vp_export *export, const struct vp_sample *sample)
{
	struct otlp *otlp = export->state;

	otlp->locations.size = 0;
	for (uint32_t i = sample->count; i-- > 0;)
		vp_pb_varint(&otlp->locations, otlp_location_of(export, &sample->frames[i]));
	size_t before = otlp->stacks.strings.count;
	uint64_t number =
	    1 + (uint64_t)vp_intern_add(&otlp->stacks, otlp->locations.bytes, otlp->locations.size);
	if (otlp->stacks.strings.count > before) {
		otlp_move(&otlp->message, STACK_LOCATION, &otlp->locations);
		otlp_move(&otlp->dictionary, DICTIONARY_STACK, &otlp->message);
	}
	return number;
}

static void otlp_put_value(struct otlp *otlp, const char *text)
{
	vp_pb_text(&otlp->part, VALUE_STRING, text);
}

/* The number of the attribute with the process; 0: none. */
static uint64_t otlp_process_of(struct vp_export *export, uint32_t process)
{
	struct otlp *otlp = export->state;
	const char *name = vp_export_text(export, process);
	size_t before = otlp->processes.strings.count;

	if (!name || !*name)
		return 0;
	uint64_t number = 1 + (uint64_t)vp_intern_string(&otlp->processes, name);
	if (otlp->processes.strings.count > before) {
		vp_pb_count(&otlp->message, ATTRIBUTE_KEY,
			    otlp_string_of(otlp, "process.executable.name"));
		otlp_put_value(otlp, name);
		otlp_move(&otlp->message, ATTRIBUTE_VALUE, &otlp->part);
		otlp_move(&otlp->dictionary, DICTIONARY_ATTRIBUTE, &otlp->message);
	}
	return number;
}

static struct vp_buffer *otlp_samples_of(struct otlp *otlp, uint32_t vm)
{
	vp_vec_each (&otlp->machines, machine)
		if (machine->vm == vm)
			return &machine->samples;
	vp_vec_push(&otlp->machines, ((struct machine){.vm = vm}));
	return &otlp->machines.at[otlp->machines.count - 1].samples;
}

static void export_otlp_put_stack(struct vp_export *export, const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	struct otlp *otlp = export->state;

	if (inner->kind == VP_KIND_IDLE)
		return;
	uint64_t stack = otlp_stack_of(export, sample);
	uint64_t process = otlp_process_of(export, inner->process);
	vp_pb_count(&otlp->message, SAMPLE_STACK, stack);
	if (process) {
		vp_pb_varint(&otlp->part, process);
		otlp_move(&otlp->message, SAMPLE_ATTRIBUTE, &otlp->part);
	}
	vp_pb_varint(&otlp->part, sample->weight * (otlp->unit ? otlp->unit : 1));
	otlp_move(&otlp->message, SAMPLE_VALUE, &otlp->part);
	otlp_move(otlp_samples_of(otlp, inner->vm), PROFILE_SAMPLE, &otlp->message);
}

/* Attributes of a resource have texts as keys and values, not indices. */
static void otlp_put_attribute(struct otlp *otlp, const char *key, const char *value,
			       struct vp_buffer *out)
{
	if (!value || !*value)
		return;
	vp_pb_text(&otlp->message, KEY_VALUE_KEY, key);
	otlp_put_value(otlp, value);
	otlp_move(&otlp->message, KEY_VALUE_VALUE, &otlp->part);
	otlp_move(out, RESOURCE_ATTRIBUTE, &otlp->message);
}

static void otlp_put_resource(struct vp_export *export, uint32_t vm, struct vp_buffer *out)
{
	struct otlp *otlp = export->state;
	struct vp_buffer resource = {0};

	otlp_put_attribute(otlp, "service.name", "vperf", &resource);
	otlp_put_attribute(otlp, "host.name", export->report->recording.hostname, &resource);
	if (vm != VP_NONE) {
		VP_AUTO_FREE char *namespace = vp_vm_namespace(&export->vms.at[vm]);
		otlp_put_attribute(otlp, "vm", export->vms.at[vm].name, &resource);
		otlp_put_attribute(otlp, "namespace", namespace, &resource);
	}
	vp_pb_message(out, RESOURCES_RESOURCE, &resource);
	vp_buffer_deinit(&resource);
}

static uint64_t otlp_start_of(const struct vp_report *report)
{
	const struct vp_recording *recording = &report->recording;
	uint64_t from = report->options.from;

	return (from > recording->start ? from : recording->start) +
	       (uint64_t)recording->realtime_offset;
}

static void otlp_put_type(struct vp_export *export, uint32_t field, struct vp_buffer *out)
{
	struct otlp *otlp = export->state;
	const struct vp_recording *recording = &export->report->recording;
	const char *type = otlp->unit                                    ? "cpu"
			   : recording->weighting == VP_WEIGHTING_EVENTS ? recording->trigger
									 : "samples";

	vp_pb_count(&otlp->message, TYPE_TYPE, otlp_string_of(otlp, type));
	vp_pb_count(&otlp->message, TYPE_UNIT,
		    otlp_string_of(otlp, otlp->unit ? "nanoseconds" : "count"));
	otlp_move(out, field, &otlp->message);
}

/* The id depends only on machine and time, so that a server can drop a duplicate. */
static void otlp_put_id(struct vp_export *export, const char *vm, uint64_t start,
			struct vp_buffer *out)
{
	struct otlp *otlp = export->state;
	const char *host = export->report->recording.hostname;
	VP_AUTO_FREE char *text = vp_format("%s %s %llu %g", host ? host : "", vm ? vm : "",
					    (unsigned long long)start, export->report->duration);
	XXH128_canonical_t id;

	XXH128_canonicalFromHash(&id, XXH3_128bits(text, strlen(text)));
	vp_buffer_append(&otlp->message, id.digest, sizeof(id.digest));
	otlp_move(out, PROFILE_ID, &otlp->message);
}

static void otlp_put_profile(struct vp_export *export, const struct machine *machine,
			     struct vp_buffer *out)
{
	struct otlp *otlp = export->state;
	const struct vp_report *report = export->report;
	struct vp_buffer profile = {0};
	uint64_t start = otlp_start_of(report);

	otlp_put_type(export, PROFILE_TYPE, &profile);
	vp_buffer_append(&profile, machine->samples.bytes, machine->samples.size);
	vp_pb_fixed64(&profile, PROFILE_TIME, start);
	vp_pb_count(&profile, PROFILE_DURATION, (uint64_t)(report->duration * 1e9));
	if (otlp->unit) {
		otlp_put_type(export, PROFILE_PERIOD_TYPE, &profile);
		vp_pb_count(&profile, PROFILE_PERIOD, report->recording.period_ns);
	}
	otlp_put_id(export, vp_export_vm(export, machine->vm), start, &profile);
	vp_pb_message(out, SCOPES_PROFILE, &profile);
	vp_buffer_deinit(&profile);
}

static void export_otlp_put_machine(struct vp_export *export, const struct machine *machine)
{
	struct otlp *otlp = export->state;
	struct vp_buffer resources = {0}, scopes = {0};

	otlp_put_resource(export, machine->vm, &resources);
	vp_pb_text(&otlp->message, SCOPE_NAME, "vperf");
	vp_pb_text(&otlp->message, SCOPE_VERSION, VPERF_VERSION);
	otlp_move(&scopes, SCOPES_SCOPE, &otlp->message);
	otlp_put_profile(export, machine, &scopes);
	vp_pb_message(&resources, RESOURCES_SCOPE, &scopes);
	vp_pb_message(export->out, DATA_RESOURCE, &resources);
	vp_buffer_deinit(&scopes);
	vp_buffer_deinit(&resources);
}

static void export_otlp_end(struct vp_export *export)
{
	struct otlp *otlp = export->state;

	vp_vec_each (&otlp->machines, machine)
		export_otlp_put_machine(export, machine);
	vp_pb_message(export->out, DATA_DICTIONARY, &otlp->dictionary);
}

static void export_otlp_deinit(void *state)
{
	struct otlp *otlp = state;

	vp_vec_each (&otlp->machines, machine)
		vp_buffer_deinit(&machine->samples);
	vp_vec_deinit(&otlp->machines);
	vp_buffer_deinit(&otlp->dictionary);
	vp_intern_deinit(&otlp->strings);
	vp_intern_deinit(&otlp->processes);
	vp_intern_deinit(&otlp->stacks);
	vp_key_set_deinit(&otlp->functions);
	vp_map_deinit(&otlp->mappings);
	vp_buffer_deinit(&otlp->message);
	vp_buffer_deinit(&otlp->part);
	vp_buffer_deinit(&otlp->locations);
}

const struct vp_exporter *vp_exporter_otlp(void)
{
	static const struct vp_exporter exporter = {
	    .state_size = sizeof(struct otlp),
	    .totals = true,
	    .columns = VP_COLUMNS_ALL & ~(unsigned)(VP_COLUMN_PID | VP_COLUMN_VCPU),
	    .begin = export_otlp_begin,
	    .sample = export_otlp_put_stack,
	    .end = export_otlp_end,
	    .deinit = export_otlp_deinit};

	return &exporter;
}
