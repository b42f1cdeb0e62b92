/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/perf/import_perf.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "import/common/import_channel.h"
#include "import/perf/perf_spaces.h"
#include "import/perf/perfdata.h"
#include "import/perf/perfdata_record.h"
#include "import/tracedat/tracedat.h"
#include "maps/writer.h"
#include "schema/event_class.h"
#include "schema/tracepoint_format.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/common/import_file.h"
#include "import/perf/perf_choice.h"
#include "import/perf/perf_kernel.h"
#include "import/tracedat/import_entries.h"
#include "schema/records.h"

enum {
	USUAL_EVENTS = 1 << 16,
	MAX_MACHINES = 4096,
	MAX_FILES = 8192, /* with perf record --threads */
	NO_CLASS = VP_TRACEDAT_NO_CLASS
};

struct vcpu {
	uint32_t pid, tid;
};

struct perf {
	char *path, *directory; /* directory: perf's data directory, or NULL */
	const char *event;      /* requested event, or NULL */
	VP_VEC(struct vp_slice) files;
	const struct vp_import_channel *channel;
	struct vp_perfdata file;
	bool has_formats;
	struct vp_tracedat formats; /* of tracepoints, in trace-cmd's format */
	struct vp_import_entries entries;
	VP_VEC(struct vp_buffer) records; /* per CPU */
	struct vp_buffer names;
	struct vp_map named;
	uint64_t span[2], strange;
	/* Samples. */
	struct vp_perf_choice choice;
	uint64_t samples, shortest,
	    longest; /* number of samples of the event, and range of their periods */
	bool has_chains;
	VP_VEC(struct vp_buffer) taken;         /* per CPU */
	VP_VEC(struct vp_perf_spaces) machines; /* processes of the host, and of VMs with a name */
	VP_VEC(struct vcpu) vcpus;              /* threads that entered a guest */
	struct vp_map seen;                     /* set of them */
	struct vp_perf_kernel kernel;           /* the running kernel */
};

static bool import_perf_is_tracepoint(const struct vp_perfdata_record *record)
{
	return record->type == PERF_RECORD_SAMPLE && record->attr->type == PERF_TYPE_TRACEPOINT;
}

static uint32_t import_perf_class_of(struct perf *perf, const struct vp_perfdata_record *record)
{
	struct vp_cursor common = vp_perfdata_cursor(record, record->raw);
	uint16_t id = vp_cursor_u16(&common);

	return perf->has_formats && vp_cursor_ok(&common) ? vp_tracedat_class(&perf->formats, id)
							  : NO_CLASS;
}

/* Sends the CPU's collected data. */
static void emit_gathered(struct perf *perf, enum vp_import_kind kind, uint32_t cpu,
			  struct vp_buffer *gathered)
{
	if (gathered->size)
		vp_import_send(perf->channel,
			       (struct vp_import_msg){.kind = (uint32_t)kind, .cpu = cpu},
			       gathered->bytes, gathered->size);
	gathered->size = 0;
}

static void import_perf_send_records(struct perf *perf, uint32_t cpu)
{
	emit_gathered(perf, VP_IMPORT_EVENTS, cpu, &perf->records.at[cpu]);
}

static uint32_t import_perf_cpu_of(struct perf *perf, const struct vp_perfdata_record *record)
{
	uint32_t cpu = record->cpu == VP_PERFDATA_NO_CPU ? 0 : record->cpu;

	while (perf->records.count <= cpu) {
		vp_vec_push(&perf->records, (struct vp_buffer){0});
		vp_vec_push(&perf->taken, (struct vp_buffer){0});
	}
	return cpu;
}

/* Sends the first name of each thread. */
static void import_perf_send_name(struct perf *perf, const struct vp_perfdata_record *record)
{
	uint32_t tid = 0;
	struct vp_slice name = vp_perfdata_comm(record, &tid);
	bool inserted = false;

	if (tid && name.size && !memchr(name.bytes, '\n', name.size))
		vp_map_insert(&perf->named, tid, 0, &inserted);
	if (!inserted)
		return;
	vp_buffer_printf(&perf->names, "%" PRIu32 " %.*s\n", tid, (int)name.size, name.bytes);
}

/* Resets all processes to the start. */
static void begin_spaces(struct perf *perf)
{
	vp_vec_each (&perf->machines, spaces)
		vp_perf_spaces_deinit(spaces);
	perf->machines.count = 0;
	vp_vec_push(&perf->machines, (struct vp_perf_spaces){0});
	vp_perf_spaces_init(&perf->machines.at[0], &perf->file, 0);
	vp_vec_each (&perf->file.events.vcpus, vcpu) {
		bool known = false;
		vp_vec_each (&perf->machines, spaces)
			known |= spaces->machine == vcpu->machine;
		if (known || perf->machines.count == MAX_MACHINES)
			continue;
		struct vp_perf_spaces *spaces = vp_vec_push_slot(&perf->machines);
		vp_perf_spaces_init(spaces, &perf->file, vcpu->machine);
	}
}

static void import_perf_update_spaces(struct perf *perf, const struct vp_perfdata_record *record)
{
	vp_vec_each (&perf->machines, spaces)
		vp_perf_spaces_take(spaces, record);
}

/* Mode of a sample as in perf's convert.c: KVM may report a wrong mode, so the address decides.
 * A known vCPU has precedence. */
static unsigned import_perf_mode_of(const struct vp_perfdata_record *record)
{
	unsigned mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	if (mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER)
		return record->vcpu       ? mode /* enum vp_mode has the same values */
		       : record->ip >> 63 ? VP_MODE_GUEST_KERNEL
					  : VP_MODE_GUEST_USER;
	if (mode == PERF_RECORD_MISC_USER)
		return VP_MODE_USER;
	/* Kernel or user space: by the half of the address space. */
	return mode || record->ip >> 63 ? VP_MODE_KERNEL : VP_MODE_USER;
}

static void import_perf_survey_sample(struct perf *perf, const struct vp_perfdata_record *record)
{
	bool inserted = false;
	uint64_t period;

	for (size_t from = 0; vp_perf_choice_next(&perf->choice, record, &from, &period);) {
		perf->samples++;
		perf->shortest = period < perf->shortest ? period : perf->shortest;
		perf->longest = period > perf->longest ? period : perf->longest;
	}
	perf->has_chains |= record->chain.size != 0;
	if (record->vcpu)
		return; /* it has a name already */
	if (import_perf_mode_of(record) == VP_MODE_GUEST_KERNEL ||
	    import_perf_mode_of(record) == VP_MODE_GUEST_USER)
		vp_map_insert(&perf->seen, record->tid, 0, &inserted);
	if (inserted)
		vp_vec_push(&perf->vcpus, ((struct vcpu){record->pid, record->tid}));
}

static void import_perf_survey_tracepoint(struct perf *perf,
					  const struct vp_perfdata_record *record)
{
	uint32_t class = import_perf_class_of(perf, record);

	if (class != NO_CLASS)
		vp_import_entries_update(&perf->entries, &perf->formats, class, record->raw,
					 record->pid, perf->channel);
}

/* First pass: start time, event classes in use, vCPU threads. */
static void import_perf_survey(struct perf *perf)
{
	struct vp_perfdata_record record;

	perf->shortest = UINT64_MAX;
	for (vp_perfdata_rewind(&perf->file); vp_perfdata_next(&perf->file, &record);) {
		import_perf_send_name(perf, &record);
		import_perf_update_spaces(perf, &record);
		if (record.type != PERF_RECORD_SAMPLE)
			continue;
		import_perf_cpu_of(perf, &record);
		perf->span[0] = record.time < perf->span[0] ? record.time : perf->span[0];
		perf->span[1] = record.time > perf->span[1] ? record.time : perf->span[1];
		if (import_perf_is_tracepoint(&record))
			import_perf_survey_tracepoint(perf, &record);
		if (vp_perf_choice_has(&perf->choice, &record))
			import_perf_survey_sample(perf, &record);
	}
	vp_import_send(
	    perf->channel,
	    (struct vp_import_msg){.kind = VP_IMPORT_CPUS, .number = perf->records.count}, NULL, 0);
	vp_import_send(perf->channel, (struct vp_import_msg){.kind = VP_IMPORT_SPAN}, perf->span,
		       sizeof(perf->span));
}

static void emit_vcpu(const struct perf *perf, uint32_t process, uint32_t tid, uint32_t number)
{
	vp_import_send(perf->channel,
		       (struct vp_import_msg){.kind = VP_IMPORT_VCPU,
					      .cpu = number,
					      .number = tid | (uint64_t)process << 32},
		       NULL, 0);
}

static int by_thread(const void *a, const void *b)
{
	const struct vcpu *left = a, *right = b;

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return (left->tid > right->tid) - (left->tid < right->tid);
}

/* Samples have no vCPU numbers: a VMM creates its vCPU threads in order of their numbers. */
static void import_perf_send_vcpus(struct perf *perf)
{
	uint32_t number = 0, pid = 0;

	if (perf->vcpus.count)
		qsort(perf->vcpus.at, perf->vcpus.count, sizeof(*perf->vcpus.at), by_thread);
	vp_vec_each (&perf->vcpus, vcpu) {
		number = vcpu->pid == pid ? number + 1 : 0;
		pid = vcpu->pid;
		if (!vp_map_find(&perf->entries.vcpu_of_tid, vcpu->tid) && vcpu->tid)
			emit_vcpu(perf, vcpu->pid, vcpu->tid, number);
	}
	vp_vec_each (&perf->file.events.vcpus, vcpu)
		if (vcpu->tid != UINT32_MAX && vcpu->tid)
			emit_vcpu(perf, vcpu->machine, vcpu->tid, vcpu->number);
}

/* A clock event with a fixed period counts ticks, like vperf's own; other events are counted
 * themselves. */
static void send_sampling(struct perf *perf)
{
	bool is_tick = perf->choice.is_clock && perf->shortest == perf->longest && perf->shortest;
	const struct vp_import_sampling sampling = {.tick_ns = is_tick ? perf->shortest : 0,
						    .has_chains = perf->has_chains};
	struct vp_buffer bytes = {0};

	if (!perf->samples)
		return;
	import_perf_send_vcpus(perf);
	vp_buffer_append(&bytes, &sampling, sizeof(sampling));
	vp_buffer_string(&bytes, perf->choice.name);
	vp_import_send(perf->channel, (struct vp_import_msg){.kind = VP_IMPORT_SAMPLING},
		       bytes.bytes, bytes.size);
	vp_buffer_deinit(&bytes);
}

static void send_note(const struct perf *perf, const char *text)
{
	vp_import_send(perf->channel, (struct vp_import_msg){.kind = VP_IMPORT_NOTE}, text,
		       strlen(text));
}

/* Reports what is not imported, and what samples lack. */
static void import_perf_send_notes(const struct perf *perf)
{
	const struct vp_perfdata *file = &perf->file;
	VP_AUTO_FREE char *others = vp_perf_choice_others(&perf->choice);

	if (others)
		send_note(perf, others);
	if (file->is_cut)
		send_note(perf, "the file ends before its data do: the rest is missing");
	if (file->aux)
		send_note(perf, "hardware trace data (Processor Trace, SPE, CoreSight) are left "
				"out: 'perf inject --itrace' converts them to samples");
	if (file->events.swaps && file->tracing.size)
		send_note(perf, "tracepoints of a machine of the other byte order are left out");
	if (perf->samples && !file->has_times)
		send_note(perf, "samples have no times: they are placed 1 ns apart, in file order");
	if (perf->samples && !file->has_cpus)
		send_note(perf, "samples have no CPU: all are shown on pCPU 0");
}

static void import_perf_send_info(const struct perf *perf)
{
	const struct vp_slice texts[] = {
	    [VP_IMPORT_HOSTNAME] = perf->file.hostname, [VP_IMPORT_KERNEL] = perf->file.release};

	for (uint32_t i = 0; i < VP_ARRAY_SIZE(texts); i++)
		if (texts[i].size)
			vp_import_send(perf->channel,
				       (struct vp_import_msg){.kind = VP_IMPORT_MACHINE, .cpu = i},
				       texts[i].bytes, texts[i].size);
}

static void import_perf_send_begin(const struct perf *perf)
{
	struct vp_buffer text = {0};

	vp_event_classes_write(&perf->formats.classes, &text);
	vp_import_send(perf->channel, (struct vp_import_msg){.kind = VP_IMPORT_BEGIN}, text.bytes,
		       text.size);
	vp_buffer_deinit(&text);
	vp_import_send(perf->channel, (struct vp_import_msg){.kind = VP_IMPORT_TASKS},
		       perf->names.bytes, perf->names.size);
}

static void send_map(const struct perf *perf, struct vp_perf_spaces *spaces)
{
	enum { PIECE = 1 << 20 };
	struct vp_maps_writer maps;

	vp_maps_writer_init(&maps, -1);
	vp_maps_write_machine(&maps, spaces->machine != 0, "imported");
	vp_perf_kernel_write(&perf->kernel, perf->directory, &perf->file, spaces, &maps);
	vp_perf_spaces_write(spaces, &maps);
	if (!vp_maps_writer_finish(&maps))
		for (size_t at = 0, size; at < maps.buffer.size; at += size) {
			size = maps.buffer.size - at < PIECE ? maps.buffer.size - at : PIECE;
			vp_import_send(perf->channel,
				       (struct vp_import_msg){.kind = VP_IMPORT_MAPS,
							      .number = spaces->machine},
				       maps.buffer.bytes + at, size);
		}
	vp_maps_writer_deinit(&maps);
}

/* Writes the frames of the host's kernel and user space, separated by a mark. */
static void import_perf_put_frames(const struct vp_perfdata_record *record,
				   struct vp_import_sample *sample, struct vp_buffer *out)
{
	const uint64_t sides[] = {PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER};
	uint16_t *const counts[] = {&sample->kernel, &sample->user};

	for (size_t side = 0; side < VP_ARRAY_SIZE(sides); side++) {
		struct vp_cursor cursor = vp_perfdata_cursor(record, record->chain);
		bool is_its = false;
		while (vp_cursor_left(&cursor)) {
			uint64_t ip = vp_cursor_u64(&cursor);
			bool is_mark = ip >= PERF_CONTEXT_MAX;
			is_its = is_mark ? ip == sides[side] : is_its;
			if (!is_its || is_mark || *counts[side] == UINT16_MAX)
				continue;
			vp_buffer_append(out, &ip, sizeof(ip));
			++*counts[side];
		}
	}
}

static void send_samples(struct perf *perf, uint32_t cpu)
{
	emit_gathered(perf, VP_IMPORT_SAMPLES, cpu, &perf->taken.at[cpu]);
}

static void send_sample(struct perf *perf, const struct vp_perfdata_record *record, uint64_t period)
{
	uint32_t cpu = import_perf_cpu_of(perf, record);
	struct vp_buffer *taken = &perf->taken.at[cpu];
	/* An exiting thread has no id: perf shows it as the idle task. */
	struct vp_import_sample sample = {.time = record->time,
					  .ip = record->ip,
					  .period = period,
					  .pid = record->tid ? record->pid : 0,
					  .tid = record->tid,
					  .machine = record->vcpu ? record->vcpu->machine : 0,
					  .vcpu = record->vcpu ? record->vcpu->number : 0,
					  .mode = (uint16_t)import_perf_mode_of(record)};
	const char *comm = vp_perf_spaces_comm(&perf->machines.at[0], record->tid);
	size_t start = taken->size;

	/* perf's names for a thread without a name, or an exiting one (-1). */
	if (!sample.machine && !comm[0] && record->tid)
		snprintf(sample.comm, sizeof(sample.comm), ":%" PRId32, (int32_t)record->tid);
	else if (!sample.machine)
		memcpy(sample.comm, comm, strnlen(comm, sizeof(sample.comm)));
	vp_buffer_append(taken, &sample, sizeof(sample));
	import_perf_put_frames(record, &sample, taken);
	memcpy(taken->bytes + start, &sample, sizeof(sample));
	if (taken->size >= USUAL_EVENTS)
		send_samples(perf, cpu);
}

static void import_perf_send_event(struct perf *perf, const struct vp_perfdata_record *record)
{
	uint32_t class = import_perf_class_of(perf, record), cpu = import_perf_cpu_of(perf, record);

	if (class == NO_CLASS ||
	    !vp_tracepoint_convert(&perf->formats.classes.at[class],
				   &perf->formats.layouts.at[class], record->time, record->raw,
				   &perf->records.at[cpu])) {
		perf->strange++;
		return;
	}
	if (perf->records.at[cpu].size >= USUAL_EVENTS)
		import_perf_send_records(perf, cpu);
}

static void send_samples_of(struct perf *perf, const struct vp_perfdata_record *record)
{
	uint64_t period;

	for (size_t from = 0; vp_perf_choice_next(&perf->choice, record, &from, &period);)
		send_sample(perf, record, period);
}

static void import_perf_send_events(struct perf *perf)
{
	struct vp_perfdata_record record;

	/* Names valid at each time: starts again. */
	begin_spaces(perf);
	vp_perf_choice_rewind(&perf->choice);
	for (vp_perfdata_rewind(&perf->file); vp_perfdata_next(&perf->file, &record);) {
		import_perf_update_spaces(perf, &record);
		if (record.type != PERF_RECORD_SAMPLE)
			continue;
		if (import_perf_is_tracepoint(&record))
			import_perf_send_event(perf, &record);
		if (vp_perf_choice_has(&perf->choice, &record))
			send_samples_of(perf, &record);
	}
	for (uint32_t cpu = 0; cpu < perf->records.count; cpu++) {
		import_perf_send_records(perf, cpu);
		send_samples(perf, cpu);
	}
}

/* Tracepoints of the other byte order cannot be read. */
static struct vp_error *open_formats(struct perf *perf)
{
	if (!perf->file.tracing.size || perf->file.events.swaps)
		return NULL;
	VP_TRY(vp_tracedat_open_formats(perf->path, perf->file.tracing, &perf->formats));
	perf->has_formats = true;
	return NULL;
}

static struct vp_error *import_perf_send_all(void *state, const struct vp_import_channel *channel)
{
	struct perf *perf = state;

	perf->channel = channel;
	VP_TRY(vp_perfdata_open(perf->path, perf->files.at, perf->files.count, &perf->file));
	VP_TRY(open_formats(perf));
	VP_TRY(vp_perf_choice_make(&perf->file, perf->event, &perf->choice));
	begin_spaces(perf);
	import_perf_send_info(perf);
	import_perf_survey(perf);
	send_sampling(perf);
	import_perf_send_notes(perf);
	import_perf_send_begin(perf);
	if (perf->samples)
		vp_vec_each (&perf->machines, spaces)
			send_map(perf, spaces);
	import_perf_send_events(perf);
	const struct vp_import_msg counts[] = {
	    {.kind = VP_IMPORT_LOST, .number = perf->file.lost},
	    {.kind = VP_IMPORT_MALFORMED,
	     .number = perf->strange + vp_perfdata_malformed(&perf->file)},
	};
	for (size_t i = 0; i < VP_ARRAY_SIZE(counts); i++)
		vp_import_send(channel, counts[i], NULL, 0);
	return NULL;
}

static bool is_data(const char *path)
{
	static const char *const magics[] = {VP_PERFDATA_MAGIC, VP_PERFDATA_MAGIC_1,
					     VP_PERFDATA_MAGIC_SWAPPED};
	bool is_one = false;

	for (size_t i = 0; i < VP_ARRAY_SIZE(magics); i++)
		is_one |= vp_import_file_begins(path, magics[i], strlen(magics[i]));
	return is_one;
}

/* The file, or the data file in perf's directory. */
static char *find_data(const char *path)
{
	VP_AUTO_FREE char *inside = vp_format("%s/data", path);

	if (is_data(path))
		return vp_strdup(path);
	return is_data(inside) ? VP_TAKE(inside) : NULL;
}

static bool has_data(const char *path)
{
	VP_AUTO_FREE char *found = find_data(path);

	return found != NULL;
}

/* data.0, data.1 … in the same directory: records without a header, one file per thread of perf. */
static struct vp_error *map_files(struct perf *perf)
{
	struct vp_slice bytes;

	VP_TRY(vp_import_file_map(perf->path, &bytes));
	vp_vec_push(&perf->files, bytes);
	for (int i = 0; perf->directory && i < MAX_FILES; i++) {
		VP_AUTO_FREE char *path = vp_format("%s.%d", perf->path, i);
		if (access(path, F_OK))
			break;
		struct stat status;
		if (stat(path, &status) || !status.st_size)
			continue;
		VP_TRY(vp_import_file_map(path, &bytes));
		vp_vec_push(&perf->files, bytes);
	}
	return NULL;
}

static struct vp_error *import_perf_open_file(const char *path,
					      const struct vp_import_options *options, void **state)
{
	struct perf *perf = vp_alloc(sizeof(*perf));

	*perf = (struct perf){
	    .path = find_data(path), .event = options->event, .span = {UINT64_MAX, 0}};
	*state = perf;
	if (!perf->path)
		return vp_error_new("'%s' is not a perf.data file", path);
	perf->directory = strcmp(perf->path, path) ? vp_strdup(path) : NULL;
	vp_perf_kernel_read(&perf->kernel);
	return map_files(perf);
}

const struct vp_importer *vp_importer_perf(void)
{
	static const struct vp_importer importer = {
	    .name = "perf.data",
	    .summary = "a file of perf record, or its directory with a file data",
	    .has_samples = true,
	    .detects = has_data,
	    .open = import_perf_open_file,
	    .send = import_perf_send_all};

	return &importer;
}
