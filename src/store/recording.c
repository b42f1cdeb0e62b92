/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/recording.h"

#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/text.h"
#include "base/vec.h"
#include "maps/format.h"
#include "schema/agent_outcome.h"
#include "schema/memory_outcome.h"
#include "store/recorded.h"

#define VMS_MAGIC "vperf-vms "

enum { TEXT_LIMIT = 16 * 1024 * 1024, VMS_MAX = 65536, VCPUS_MAX = 4096, AGENT_OUTCOMES_MAX = 16 };

void vp_recording_deinit(struct vp_recording *recording)
{
	free(recording->tool);
	free(recording->hostname);
	free(recording->kernel);
	free(recording->boot);
	free(recording->instruments);
	free(recording->trigger);
	free(recording->command);
	free(recording->note);
	free(recording->imported);
	free(recording->guest_sampling);
	free(recording->mode);
	free(recording->cause);
	*recording = (struct vp_recording){0};
}

const char *vp_recording_unit(const struct vp_recording *recording)
{
	if (recording->weighting == VP_WEIGHTING_TICKS)
		return "samples";
	return recording->weighting == VP_WEIGHTING_TIME ? "ns" : recording->trigger;
}

uint64_t vp_recording_unit_ns(const struct vp_recording *recording)
{
	if (recording->weighting == VP_WEIGHTING_TICKS)
		return recording->period_ns;
	return recording->weighting == VP_WEIGHTING_TIME ? 1 : 0;
}

void vp_recording_describe(struct vp_recording *recording, const char *command)
{
	struct utsname names;

	uname(&names);
	recording->tool = vp_strdup(VPERF_VERSION);
	recording->hostname = vp_strdup(names.nodename);
	recording->kernel = vp_strdup(names.release);
	recording->boot = vp_strdup("");
	recording->instruments = vp_strdup("");
	recording->trigger = vp_strdup("");
	recording->command = vp_strdup(command ? command : "");
	recording->note = vp_strdup("");
	recording->guest_sampling = vp_strdup("");
	recording->mode = vp_strdup("");
	recording->cause = vp_strdup("");
}

bool vp_recording_has_instrument(const struct vp_recording *recording, const char *name)
{
	struct vp_cursor words =
	    vp_cursor_of(recording->instruments, strlen(recording->instruments));

	for (struct vp_slice word; (word = vp_cursor_word(&words)).size;)
		if (vp_slice_is(word, name))
			return true;
	return false;
}

void vp_recording_add_instrument(struct vp_recording *recording, const char *name)
{
	char *before = recording->instruments;

	recording->instruments = vp_format("%s%s%s", before, before[0] ? " " : "", name);
	free(before);
}

char *vp_recording_maps_path(const char *path, const vp_vms *vms, const struct vp_vm *vm)
{
	VP_AUTO_FREE char *part = vm ? vp_vm_part(vms, vm) : vp_strdup("host");

	return vp_format("%s/%s.maps", path, part);
}

char *vp_recording_agent_path(const char *path, const vp_vms *vms, const struct vp_vm *vm)
{
	VP_AUTO_FREE char *part = vp_vm_part(vms, vm);

	/* No VM's own symbol map can have this name. */
	return vp_format("%s/agent%s.maps", path, part + strlen("guest"));
}

char *vp_recording_orc_path(const char *path, const vp_vms *vms, const struct vp_vm *vm)
{
	VP_AUTO_FREE char *part = vp_vm_part(vms, vm);

	return vp_format("%s/%s.orc", path, part);
}

char *vp_recording_recipe_path(const char *path)
{
	return vp_format("%s/recipe", path);
}

bool vp_recording_has_intervals(const char *path)
{
	VP_AUTO_FREE char *recipe = vp_recording_recipe_path(path);

	return !access(recipe, F_OK);
}

bool vp_recording_is_of_intervals(const char *path)
{
	struct vp_recording about;
	struct vp_error *error = vp_recording_read(path, &about);

	vp_error_free(error);
	if (error)
		return false;
	bool alone = !strcmp(about.instruments, "intervals");
	vp_recording_deinit(&about);
	return alone;
}

const char *vp_recording_advice(const struct vp_recording *recording, const char *advice)
{
	return recording->imported ? "" : advice;
}

const char *vp_recording_advice_at(const char *path, const char *advice)
{
	struct vp_recording about;
	VP_AUTO_ERROR struct vp_error *error = vp_recording_read(path, &about);

	if (error) /* valid advice in most cases */
		return advice;
	const char *text = vp_recording_advice(&about, advice);
	vp_recording_deinit(&about);
	return text;
}

/* One line `KEY VALUE`; newlines inside the value become blanks. */
static void write_text(struct vp_buffer *out, const char *key, const char *value)
{
	vp_buffer_printf(out, "%s ", key);
	for (; value && *value; value++)
		vp_buffer_append(out, *value == '\n' ? " " : value, 1);
	vp_buffer_string(out, "\n");
}

static void write_number(struct vp_buffer *out, const char *key, uint64_t value)
{
	vp_buffer_printf(out, "%s %" PRIu64 "\n", key, value);
}

static uint64_t recording_sum_of(const uint64_t counts[VP_STREAM_CLASSES])
{
	uint64_t sum = 0;

	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++)
		sum += counts[kind];
	return sum;
}

static const char *const weighting_names[] = {
    [VP_WEIGHTING_TICKS] = "ticks", [VP_WEIGHTING_TIME] = "time", [VP_WEIGHTING_EVENTS] = "events"};

/* Writes numbers, from which vp_recording_open() makes sentences; sentences of earlier recordings
 * are kept. */
static void write_facts(const struct vp_recording *recording, struct vp_buffer *out)
{
	if (recording->guests.method) {
		vp_buffer_string(out, "guest_samples");
		vp_recorded_put_sampling(&recording->guests, out);
		vp_buffer_string(out, "\n");
	} else if (recording->guest_sampling && recording->guest_sampling[0]) {
		write_text(out, "guest_sampling", recording->guest_sampling);
	}
	if (recording->selected)
		write_number(out, "selected", 1);
	if (recording->events_counted)
		vp_buffer_printf(out, "throttled %" PRIu64 " %" PRIu64 "\n",
				 recording->events_sampled, recording->events_counted);
	if (recording->snapshot_cause.kind) {
		vp_buffer_string(out, "snapshot_cause");
		vp_recorded_put_cause(&recording->snapshot_cause, out);
		vp_buffer_string(out, "\n");
	}
}

struct vp_error *vp_recording_write(const char *path, const struct vp_recording *recording)
{
	struct vp_buffer out = {0};
	VP_AUTO_FREE char *file = vp_format("%s/recording", path);

	vp_buffer_string(&out, VP_RECORDING_MAGIC VP_RECORDING_FORMAT "\n");
	write_text(&out, "tool", recording->tool);
	write_text(&out, "hostname", recording->hostname);
	write_text(&out, "kernel", recording->kernel);
	if (recording->boot && recording->boot[0])
		write_text(&out, "boot", recording->boot);
	write_text(&out, "instruments", recording->instruments);
	if (recording->instruments && vp_recording_has_instrument(recording, "account"))
		write_text(&out, "account", vp_account_grade_name(recording->account_grade));
	write_text(&out, "trigger", recording->trigger);
	write_text(&out, "command", recording->command);
	write_text(&out, "note", recording->note);
	if (recording->imported)
		write_text(&out, "imported", recording->imported);
	write_facts(recording, &out);
	if (recording->mode && recording->mode[0]) {
		write_text(&out, "mode", recording->mode);
		if (!recording->snapshot_cause.kind)
			write_text(&out, "cause", recording->cause);
		write_number(&out, "begun", recording->begun);
	}
	write_number(&out, "period_ns", recording->period_ns);
	write_number(&out, "by_time", recording->by_time);
	write_text(&out, "weigh", weighting_names[recording->weighting]);
	if (recording->weighting == VP_WEIGHTING_EVENTS)
		write_number(&out, "events", recording->events);
	write_number(&out, "chains", recording->chains);
	if (recording->compression)
		write_number(&out, "compression", recording->compression);
	write_number(&out, "pcpus", recording->pcpus);
	if (recording->hypervisor_pcpus)
		write_number(&out, "hypervisor_pcpus", recording->hypervisor_pcpus);
	write_number(&out, "start", recording->start);
	if (recording->end) {
		write_number(&out, "records", recording_sum_of(recording->records));
		write_number(&out, "lost", recording_sum_of(recording->lost));
		for (int kind = 0; kind < VP_STREAM_CLASSES; kind++)
			if (recording->records[kind] || recording->lost[kind])
				vp_buffer_printf(&out, "streams %s %" PRIu64 " %" PRIu64 "\n",
						 vp_stream_class_name(kind),
						 recording->records[kind], recording->lost[kind]);
		write_number(&out, "end", recording->end);
	}
	struct vp_error *error = vp_file_publish(file, out.bytes, out.size);
	vp_buffer_deinit(&out);
	return error;
}

static void recording_read_text(struct vp_cursor *line, char **ret)
{
	struct vp_slice rest = vp_cursor_rest(line);

	free(*ret);
	*ret = vp_strndup(rest.bytes, rest.size);
}

static void read_streams(struct vp_cursor *line, struct vp_recording *recording)
{
	struct vp_slice name = vp_cursor_word(line);
	uint64_t records = vp_cursor_decimal(line), lost = vp_cursor_decimal(line);

	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++)
		if (vp_slice_is(name, vp_stream_class_name(kind))) {
			recording->records[kind] = records;
			recording->lost[kind] = lost;
		}
}

static void read_grade(struct vp_cursor *line, struct vp_recording *recording)
{
	struct vp_slice word = vp_cursor_word(line);

	for (size_t i = 0; i < VP_ACCOUNT_GRADES; i++)
		if (vp_slice_is(word, vp_account_grade_name((enum vp_account_grade)i)))
			recording->account_grade = (enum vp_account_grade)i;
}

static void read_weigh(struct vp_cursor *line, struct vp_recording *recording)
{
	struct vp_slice name = vp_cursor_word(line);

	for (size_t i = 0; i < VP_ARRAY_SIZE(weighting_names); i++)
		if (vp_slice_is(name, weighting_names[i]))
			recording->weighting = (enum vp_weighting)i;
}

/* Reads numbers, from which vp_recording_open() makes sentences. */
static void read_facts(struct vp_slice key, struct vp_cursor *line, struct vp_recording *recording)
{
	if (vp_slice_is(key, "snapshot_cause"))
		vp_recorded_read_cause(line, &recording->snapshot_cause);
	if (vp_slice_is(key, "guest_samples"))
		vp_recorded_read_sampling(line, &recording->guests);
	if (vp_slice_is(key, "selected"))
		recording->selected = vp_cursor_decimal(line) != 0;
	if (vp_slice_is(key, "throttled")) {
		recording->events_sampled = vp_cursor_decimal(line);
		recording->events_counted = vp_cursor_decimal(line);
	}
}

/* Parses a line of `recording`; unknown keys are from a newer version and ignored. */
static void recording_line(struct vp_cursor *line, void *into)
{
	struct vp_recording *recording = into;
	struct vp_slice key = vp_cursor_word(line);
	const struct {
		const char *key;
		char **value;
	} texts[] = {
	    {"tool", &recording->tool},         {"hostname", &recording->hostname},
	    {"kernel", &recording->kernel},     {"boot", &recording->boot},
	    {"trigger", &recording->trigger},   {"instruments", &recording->instruments},
	    {"command", &recording->command},   {"note", &recording->note},
	    {"imported", &recording->imported}, {"guest_sampling", &recording->guest_sampling},
	    {"mode", &recording->mode},         {"cause", &recording->cause}};
	const struct {
		const char *key;
		uint64_t *value;
	} numbers[] = {{"period_ns", &recording->period_ns},
		       {"events", &recording->events},
		       {"begun", &recording->begun},
		       {"start", &recording->start},
		       {"end", &recording->end}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++)
		if (vp_slice_is(key, texts[i].key)) {
			recording_read_text(line, texts[i].value);
			return;
		}
	for (size_t i = 0; i < VP_ARRAY_SIZE(numbers); i++)
		if (vp_slice_is(key, numbers[i].key))
			*numbers[i].value = vp_cursor_decimal(line);
	if (vp_slice_is(key, "streams"))
		read_streams(line, recording);
	if (vp_slice_is(key, "account"))
		read_grade(line, recording);
	read_facts(key, line, recording);
	if (vp_slice_is(key, "by_time")) {
		recording->by_time = vp_cursor_decimal(line) != 0;
		/* 0.2 has no weighting. */
		recording->weighting = recording->by_time ? VP_WEIGHTING_TICKS : VP_WEIGHTING_TIME;
	}
	if (vp_slice_is(key, "weigh"))
		read_weigh(line, recording);
	if (vp_slice_is(key, "chains"))
		recording->chains = vp_cursor_decimal(line) != 0;
	if (vp_slice_is(key, "compression"))
		recording->compression = (uint32_t)vp_cursor_decimal(line);
	if (vp_slice_is(key, "pcpus"))
		recording->pcpus = (uint32_t)vp_cursor_decimal(line);
	if (vp_slice_is(key, "hypervisor_pcpus"))
		recording->hypervisor_pcpus = (uint32_t)vp_cursor_decimal(line);
}

typedef void (*line_fn)(struct vp_cursor *line, void *into);

/* The first line of a file is `magic` and the version of its format. */
static struct vp_error *check_version(const char *file, const char *magic, struct vp_slice line)
{
	static const char *const formats[] = {VP_RECORDING_FORMATS_READ};
	size_t size = strlen(magic);
	VP_AUTO_FREE char *version = NULL;

	if (line.size <= size || line.size > size + 20 || memcmp(line.bytes, magic, size) != 0)
		return vp_error_new("'%s' is not part of a recording: line 1 is not '%s%s'", file,
				    magic, VP_RECORDING_FORMAT);
	VP_AUTO_FREE char *raw = vp_strndup(line.bytes + size, line.size - size);
	version = vp_text_cleaned(raw);
	for (size_t i = 0; i < VP_ARRAY_SIZE(formats); i++)
		if (!strcmp(version, formats[i]))
			return NULL;
	return vp_error_new("'%s' is in recording format %s, this vperf reads formats %s to %s: "
			    "use the vperf that recorded it",
			    file, version, formats[0], VP_RECORDING_FORMAT);
}

/* Reads a text file of this directory line by line; the first line must start with `magic`. */
static struct vp_error *recording_read_lines(const char *file, const char *magic, line_fn take,
					     void *into)
{
	struct vp_buffer bytes = {0};
	struct vp_error *error = vp_file_read(file, TEXT_LIMIT, &bytes);
	struct vp_cursor text = vp_cursor_of(bytes.bytes, bytes.size);
	struct vp_slice line = {"", 0};
	size_t number = 1;

	if (!error) {
		vp_cursor_line(&text, &line);
		error = check_version(file, magic, line);
	}
	while (!error && vp_cursor_line(&text, &line)) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		number++;
		take(&words, into);
		if (!vp_cursor_ok(&words))
			error = vp_error_new("'%s' line %zu: expected a key and its value(s)", file,
					     number);
	}
	vp_buffer_deinit(&bytes);
	return error;
}

static void default_text(char **text)
{
	if (!*text)
		*text = vp_strdup("");
}

/* A number of the clock in the metadata of the host's trace (schema/ctf.c), such as "offset_s". */
static int64_t clock_number(struct vp_buffer *metadata, const char *key)
{
	VP_AUTO_FREE char *wanted = vp_format("\t%s = ", key);
	const char *found = strstr(vp_buffer_text(metadata), wanted);

	return found ? strtoll(found + strlen(wanted), NULL, 10) : 0;
}

/* The date of the recording, from the clock of a trace. */
static int64_t read_realtime_offset(const char *path)
{
	VP_AUTO_FREE char *file = vp_format("%s/host/metadata", path);
	struct vp_buffer metadata = {0};
	struct vp_error *error = vp_file_read(file, TEXT_LIMIT, &metadata);
	int64_t seconds = error ? 0 : clock_number(&metadata, "offset_s");
	int64_t rest = error ? 0 : clock_number(&metadata, "offset");

	vp_error_free(error);
	vp_buffer_deinit(&metadata);
	if (seconds > INT64_MAX / 1000000000 || seconds < 0 || rest < 0 || rest >= 1000000000)
		return 0;
	return seconds * 1000000000 + rest;
}

struct vp_error *vp_recording_read(const char *path, struct vp_recording *ret)
{
	VP_AUTO_FREE char *file = vp_format("%s/recording", path);

	*ret = (struct vp_recording){0};
	struct vp_error *error =
	    recording_read_lines(file, VP_RECORDING_MAGIC, recording_line, ret);
	default_text(&ret->tool);
	default_text(&ret->hostname);
	default_text(&ret->kernel);
	default_text(&ret->boot);
	default_text(&ret->trigger);
	default_text(&ret->instruments);
	default_text(&ret->command);
	default_text(&ret->note);
	default_text(&ret->guest_sampling);
	default_text(&ret->mode);
	default_text(&ret->cause);
	if (!error)
		ret->realtime_offset = read_realtime_offset(path);
	if (!error && !ret->period_ns)
		error = vp_error_new("'%s' does not give period_ns", file);
	if (error)
		vp_recording_deinit(ret);
	return error;
}

static void write_vm(struct vp_buffer *out, const struct vp_vm *vm)
{
	vp_buffer_printf(out, "vm %u %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %u ", vp_vm_id(vm),
			 vm->pid, vm->started, vm->start, vm->end, vm->at_start, vm->cid);
	vp_maps_escape(vm->uuid, out);
	vp_buffer_string(out, " ");
	vp_maps_escape(vm->name, out);
	vp_buffer_string(out, "\n");
	if (vm->has_domain)
		write_number(out, "domain", vm->domain);
	if (vm->scheduler)
		write_text(out, "scheduler", vm->scheduler);
	vp_vec_each (&vm->agent_outcomes, outcome) {
		vp_buffer_string(out, "agent-outcome");
		vp_recorded_put_agent(outcome, out);
		vp_buffer_string(out, "\n");
	}
	if (!vm->agent_outcomes.count && vm->agent && vm->agent[0])
		write_text(out, "agent", vm->agent);
	if (vm->has_memory_outcome) {
		vp_buffer_string(out, "memory-outcome");
		vp_recorded_put_memory(&vm->memory_outcome, out);
		vp_buffer_string(out, "\n");
	} else if (vm->memory && vm->memory[0]) {
		write_text(out, "memory", vm->memory);
	}
	if (vm->guest_events || vm->guest_events_lost)
		vp_buffer_printf(out, "guest-events %" PRIu64 " %" PRIu64 "\n", vm->guest_events,
				 vm->guest_events_lost);
	if (vm->cgroup && vm->cgroup[0])
		write_text(out, "cgroup", vm->cgroup);
	if (vm->title)
		write_text(out, "title", vm->title);
	if (vm->project)
		write_text(out, "project", vm->project);
	if (vm->tenant)
		write_text(out, "tenant", vm->tenant);
	vp_vec_each (&vm->vcpus, vcpu) {
		vp_buffer_printf(out, "vcpu %u %u\n", vcpu->number, vcpu->tid);
		if (vcpu->has_tsc)
			vp_buffer_printf(out, "tsc %" PRIx64 " %" PRIx64 " %u\n",
					 (uint64_t)vcpu->tsc_offset, vcpu->tsc_ratio,
					 vcpu->tsc_frac_bits);
		if (vcpu->pcpus)
			vp_buffer_printf(out, "pcpus %s\n", vcpu->pcpus);
	}
}

struct vp_error *vp_vms_write(const char *path, const vp_vms *vms)
{
	struct vp_buffer out = {0};
	VP_AUTO_FREE char *file = vp_format("%s/vms", path);

	vp_buffer_string(&out, VMS_MAGIC VP_RECORDING_FORMAT "\n");
	vp_vec_each (vms, vm)
		write_vm(&out, vm);
	struct vp_error *error = vp_file_publish(file, out.bytes, out.size);
	vp_buffer_deinit(&out);
	return error;
}

static char *unescaped(struct vp_slice word)
{
	struct vp_buffer text = {0};

	vp_maps_unescape(word, &text);
	char *copy = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	return copy;
}

static void read_vm(struct vp_cursor *line, vp_vms *vms)
{
	struct vp_vm vm = vp_vm_of_id((uint32_t)vp_cursor_decimal(line));

	if (vp_cursor_decimal(line) != vm.pid)
		line->failed = true;
	vm.started = vp_cursor_decimal(line);
	vm.start = vp_cursor_decimal(line);
	vm.end = vp_cursor_decimal(line);
	vm.at_start = vp_cursor_decimal(line) != 0;
	vm.cid = (uint32_t)vp_cursor_decimal(line);
	vm.uuid = unescaped(vp_cursor_word(line));
	vm.name = unescaped(vp_cursor_rest(line));
	vm.agent = vp_strdup("");
	vm.memory = vp_strdup("");
	vp_vec_push(vms, vm);
}

static void parse_tsc(struct vp_cursor *line, struct vp_vcpu *vcpu)
{
	vcpu->tsc_offset = (int64_t)vp_cursor_hex(line);
	vcpu->tsc_ratio = vp_cursor_hex(line);
	vcpu->tsc_frac_bits = (uint32_t)vp_cursor_decimal(line);
	vcpu->has_tsc = vp_cursor_ok(line) && vcpu->tsc_frac_bits < 64;
}

/* Parses a line of `vms`; vcpu, tsc, pcpus, cgroup, title, project, tenant, agent, memory and
 * guest-events lines belong to the preceding vm line. */
static void vms_line(struct vp_cursor *line, void *into)
{
	vp_vms *vms = into;
	struct vp_slice key = vp_cursor_word(line);
	struct vp_vm *vm = vms->count ? &vms->at[vms->count - 1] : NULL;
	struct vp_agent_outcome outcome;
	struct vp_memory_outcome memory;

	if (vp_slice_is(key, "vm") && vms->count < VMS_MAX) {
		read_vm(line, vms);
	} else if (vm && vp_slice_is(key, "vcpu") && vm->vcpus.count < VCPUS_MAX) {
		struct vp_vcpu vcpu = {.number = (uint32_t)vp_cursor_decimal(line)};
		vcpu.tid = (uint32_t)vp_cursor_decimal(line);
		vp_vec_push(&vm->vcpus, vcpu);
	} else if (vm && vm->vcpus.count && vp_slice_is(key, "tsc")) {
		parse_tsc(line, &vm->vcpus.at[vm->vcpus.count - 1]);
	} else if (vm && vm->vcpus.count && vp_slice_is(key, "pcpus")) {
		recording_read_text(line, &vm->vcpus.at[vm->vcpus.count - 1].pcpus);
	} else if (vm && vp_slice_is(key, "domain")) {
		vm->domain = (uint32_t)vp_cursor_decimal(line);
		vm->has_domain = true;
	} else if (vm && vp_slice_is(key, "scheduler")) {
		recording_read_text(line, &vm->scheduler);
	} else if (vm && vp_slice_is(key, "agent")) { /* before 0.3 */
		recording_read_text(line, &vm->agent);
	} else if (vm && vp_slice_is(key, "agent-outcome")) {
		if (vm->agent_outcomes.count < AGENT_OUTCOMES_MAX &&
		    vp_recorded_read_agent(line, &outcome))
			vp_vm_add_agent_outcome(vm, &outcome);
	} else if (vm && vp_slice_is(key, "cgroup")) {
		recording_read_text(line, &vm->cgroup);
	} else if (vm && vp_slice_is(key, "title")) {
		recording_read_text(line, &vm->title);
	} else if (vm && vp_slice_is(key, "project")) {
		recording_read_text(line, &vm->project);
	} else if (vm && vp_slice_is(key, "tenant")) {
		recording_read_text(line, &vm->tenant);
	} else if (vm && vp_slice_is(key, "memory-outcome")) {
		if (vp_recorded_read_memory(line, &memory))
			vp_vm_set_memory_outcome(vm, &memory);
	} else if (vm && vp_slice_is(key, "memory")) { /* before 0.3 */
		recording_read_text(line, &vm->memory);
	} else if (vm && vp_slice_is(key, "guest-events")) {
		vm->guest_events = vp_cursor_decimal(line);
		vm->guest_events_lost = vp_cursor_decimal(line);
	}
}

struct vp_error *vp_vms_read(const char *path, vp_vms *ret)
{
	VP_AUTO_FREE char *file = vp_format("%s/vms", path);
	struct vp_error *error = recording_read_lines(file, VMS_MAGIC, vms_line, ret);

	if (error)
		vp_vms_deinit(ret);
	else
		vp_vms_settle_parts(ret);
	return error;
}
