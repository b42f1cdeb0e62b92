/* SPDX-License-Identifier: GPL-2.0-or-later */
/* More than five includes: two kinds of events of perf record, tracepoints, by the formats that the
 * file has, and samples of one other. */
#include "collect/importer.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "collect/import_entries.h"
#include "collect/import_file.h"
#include "collect/perf_spaces.h"
#include "maps/proc.h"
#include "schema/records.h"

enum {
	MOST_KALLSYMS = 1 << 26,
	USUAL_EVENTS = 1 << 16,
	MOST_MACHINES = 4096,
	NO_CLASS = VP_TRACEDAT_NO_CLASS
};

struct vcpu {
	uint32_t pid, tid;
};

struct perf {
	char *path, *directory; /* with what perf has beside its data; or NULL */
	struct vp_slice bytes;
	const struct vp_import_channel *channel;
	struct vp_perfdata file;
	bool has_formats;
	struct vp_tracedat formats; /* of tracepoints, which perf has as trace-cmd does */
	struct vp_import_entries entries;
	VP_VEC(struct vp_buffer) records; /* of each CPU */
	struct vp_buffer names;
	struct vp_map named;
	uint64_t span[2], strange;
	/* Samples: */
	const struct vp_perfdata_attr
	    *sampled; /* of the first event that is no tracepoint; or NULL */
	uint64_t samples, others;
	bool has_chains;
	VP_VEC(struct vp_buffer) taken;         /* of each CPU */
	VP_VEC(struct vp_perf_spaces) machines; /* the host's processes, and of VMs that are told */
	VP_VEC(struct vcpu) vcpus;              /* threads that were in a guest */
	struct vp_map seen;                     /* of them */
	struct vp_maps_writer kallsyms;         /* of the kernel that runs here */
	struct vp_build_id kernel;              /* its */
};

static bool is_tracepoint(const struct vp_perfdata_record *record)
{
	return record->type == PERF_RECORD_SAMPLE && record->attr->type == PERF_TYPE_TRACEPOINT;
}

static bool is_sample(const struct perf *perf, const struct vp_perfdata_record *record)
{
	return record->type == PERF_RECORD_SAMPLE && record->attr == perf->sampled;
}

static uint32_t class_of(struct perf *perf, const struct vp_perfdata_record *record)
{
	struct vp_cursor common = vp_cursor_of(record->raw.bytes, record->raw.size);
	uint16_t id = vp_cursor_u16(&common);

	return perf->has_formats && vp_cursor_ok(&common) ? vp_tracedat_class(&perf->formats, id)
							  : NO_CLASS;
}

/* What has gathered of the CPU. */
static void tell_gathered(struct perf *perf, enum vp_import_kind kind, uint32_t cpu,
			  struct vp_buffer *gathered)
{
	if (gathered->size)
		vp_import_tell(perf->channel,
			       (struct vp_import_news){.kind = (uint32_t)kind, .cpu = cpu},
			       gathered->bytes, gathered->size);
	gathered->size = 0;
}

static void tell_records(struct perf *perf, uint32_t cpu)
{
	tell_gathered(perf, VP_IMPORT_EVENTS, cpu, &perf->records.at[cpu]);
}

static uint32_t cpu_of(struct perf *perf, const struct vp_perfdata_record *record)
{
	uint32_t cpu = record->cpu == VP_PERFDATA_NO_CPU ? 0 : record->cpu;

	while (perf->records.count <= cpu) {
		vp_vec_push(&perf->records, (struct vp_buffer){0});
		vp_vec_push(&perf->taken, (struct vp_buffer){0});
	}
	return cpu;
}

/* The first name of each thread. */
static void see_name(struct perf *perf, const struct vp_perfdata_record *record)
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

/* From the beginning. */
static void begin_spaces(struct perf *perf)
{
	vp_vec_each (&perf->machines, spaces)
		vp_perf_spaces_deinit(spaces);
	perf->machines.count = 0;
	vp_vec_push(&perf->machines, (struct vp_perf_spaces){0});
	vp_perf_spaces_init(&perf->machines.at[0], &perf->file, 0);
	vp_vec_each (&perf->file.vcpus, vcpu) {
		bool known = false;
		vp_vec_each (&perf->machines, spaces)
			known |= spaces->machine == vcpu->machine;
		if (known || perf->machines.count == MOST_MACHINES)
			continue;
		struct vp_perf_spaces *spaces = vp_vec_push_slot(&perf->machines);
		vp_perf_spaces_init(spaces, &perf->file, vcpu->machine);
	}
}

static void see_spaces(struct perf *perf, const struct vp_perfdata_record *record)
{
	vp_vec_each (&perf->machines, spaces)
		vp_perf_spaces_take(spaces, record);
}

static unsigned mode_of(const struct vp_perfdata_record *record)
{
	unsigned mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	if (mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER)
		return mode; /* enum vp_mode has the same numbers */
	if (mode == PERF_RECORD_MISC_USER)
		return VP_MODE_USER;
	/* Of a kernel, of what is below it, or unknown: by its half of the address space. */
	return mode || record->ip >> 63 ? VP_MODE_KERNEL : VP_MODE_USER;
}

static void see_sample(struct perf *perf, const struct vp_perfdata_record *record)
{
	bool inserted = false;

	perf->samples++;
	perf->has_chains |= record->chain.size != 0;
	if (record->vcpu)
		return; /* whose it is, is told */
	if (mode_of(record) == VP_MODE_GUEST_KERNEL || mode_of(record) == VP_MODE_GUEST_USER)
		vp_map_insert(&perf->seen, record->tid, 0, &inserted);
	if (inserted)
		vp_vec_push(&perf->vcpus, ((struct vcpu){record->pid, record->tid}));
}

static void see_tracepoint(struct perf *perf, const struct vp_perfdata_record *record)
{
	uint32_t class = class_of(perf, record);

	if (class != NO_CLASS)
		vp_import_entries_see(&perf->entries, &perf->formats, class, record->raw,
				      record->pid, perf->channel);
}

/* Before all: when it was, which classes there are events of, which threads are vCPUs. */
static void survey(struct perf *perf)
{
	for (size_t i = 0; i < perf->file.records.count; i++) {
		struct vp_perfdata_record record;
		if (!vp_perfdata_at(&perf->file, i, &record))
			continue;
		see_name(perf, &record);
		see_spaces(perf, &record);
		if (record.type != PERF_RECORD_SAMPLE)
			continue;
		cpu_of(perf, &record);
		perf->span[0] = record.time < perf->span[0] ? record.time : perf->span[0];
		perf->span[1] = record.time > perf->span[1] ? record.time : perf->span[1];
		if (is_tracepoint(&record))
			see_tracepoint(perf, &record);
		else if (is_sample(perf, &record))
			see_sample(perf, &record);
		else
			perf->others++;
	}
	vp_import_tell(
	    perf->channel,
	    (struct vp_import_news){.kind = VP_IMPORT_CPUS, .number = perf->records.count}, NULL,
	    0);
	vp_import_tell(perf->channel, (struct vp_import_news){.kind = VP_IMPORT_SPAN}, perf->span,
		       sizeof(perf->span));
}

static void tell_vcpu(const struct perf *perf, uint32_t process, uint32_t tid, uint32_t number)
{
	vp_import_tell(perf->channel,
		       (struct vp_import_news){.kind = VP_IMPORT_VCPU,
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

/* Samples do not say which vCPU a thread is: a VMM makes them one after another. */
static void tell_vcpus(struct perf *perf)
{
	uint32_t number = 0, pid = 0;

	if (perf->vcpus.count)
		qsort(perf->vcpus.at, perf->vcpus.count, sizeof(*perf->vcpus.at), by_thread);
	vp_vec_each (&perf->vcpus, vcpu) {
		number = vcpu->pid == pid ? number + 1 : 0;
		pid = vcpu->pid;
		if (!vp_map_find(&perf->entries.vcpu_of_tid, vcpu->tid) && vcpu->tid)
			tell_vcpu(perf, vcpu->pid, vcpu->tid, number);
	}
	vp_vec_each (&perf->file.vcpus, vcpu)
		if (vcpu->tid != UINT32_MAX && vcpu->tid)
			tell_vcpu(perf, vcpu->machine, vcpu->tid, vcpu->number);
}

static const char *name_of(const struct vp_perfdata_attr *attr)
{
	static const char *const hardware[] = {"cycles",       "instructions", "cache-references",
					       "cache-misses", "branches",     "branch-misses"};
	static const char *const software[] = {"cpu-clock", "task-clock", "page-faults",
					       "context-switches"};

	if (attr->type == PERF_TYPE_HARDWARE && attr->config < VP_ARRAY_SIZE(hardware))
		return hardware[attr->config];
	if (attr->type == PERF_TYPE_SOFTWARE && attr->config < VP_ARRAY_SIZE(software))
		return software[attr->config];
	return "an event of perf's";
}

/* How far two samples of a CPU are apart: as it was asked for; of a counter, as they were. */
static uint64_t period_of(const struct perf *perf)
{
	const struct vp_perfdata_attr *attr = perf->sampled;
	bool is_clock = attr->type == PERF_TYPE_SOFTWARE && attr->config <= 1;
	uint64_t length = perf->span[1] - perf->span[0];

	if (attr->is_rate)
		return attr->period && attr->period <= 1000000000 ? 1000000000 / attr->period : 1;
	if (is_clock)
		return attr->period ? attr->period : 1;
	return length / (perf->samples / (perf->records.count + 1) + 1) + 1;
}

static void tell_sampling(struct perf *perf)
{
	const char *name;

	if (!perf->samples)
		return;
	tell_vcpus(perf);
	name = name_of(perf->sampled);
	vp_import_tell(perf->channel,
		       (struct vp_import_news){.kind = VP_IMPORT_SAMPLING,
					       .cpu = perf->has_chains,
					       .number = period_of(perf)},
		       name, strlen(name));
}

static void tell_about(const struct perf *perf)
{
	const struct vp_slice texts[] = {
	    [VP_IMPORT_HOSTNAME] = perf->file.hostname, [VP_IMPORT_KERNEL] = perf->file.release};

	for (uint32_t i = 0; i < VP_ARRAY_SIZE(texts); i++)
		if (texts[i].size)
			vp_import_tell(perf->channel,
				       (struct vp_import_news){.kind = VP_IMPORT_MACHINE, .cpu = i},
				       texts[i].bytes, texts[i].size);
}

static void tell_begin(const struct perf *perf)
{
	struct vp_buffer text = {0};

	vp_event_classes_write(&perf->formats.classes, &text);
	vp_import_tell(perf->channel, (struct vp_import_news){.kind = VP_IMPORT_BEGIN}, text.bytes,
		       text.size);
	vp_buffer_deinit(&text);
	vp_import_tell(perf->channel, (struct vp_import_news){.kind = VP_IMPORT_TASKS},
		       perf->names.bytes, perf->names.size);
}

/* What perf keeps of a kernel's symbols beside its data: as in /proc/kallsyms. False: nothing. */
static bool put_kept_symbols(const struct perf *perf, uint32_t machine, struct vp_maps_writer *maps)
{
	VP_AUTO_FREE char *suffix = machine ? vp_format("__%" PRIu32, machine) : vp_strdup("");
	VP_AUTO_FREE char *path =
	    vp_format("%s/kcore_dir%s/kallsyms", perf->directory ? perf->directory : "", suffix);
	struct vp_slice text =
	    perf->directory ? vp_import_file_beside(path) : (struct vp_slice){"", 0};
	struct vp_cursor lines = vp_cursor_of(text.bytes, text.size);
	struct vp_slice line;

	while (vp_cursor_line(&lines, &line)) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		uint64_t address = vp_cursor_hex(&words);
		struct vp_slice type = vp_cursor_word(&words), name = vp_cursor_word(&words);
		VP_AUTO_FREE char *word = vp_format("%.*s", (int)name.size, name.bytes);
		if (vp_cursor_ok(&words) && type.size == 1 && word[0])
			vp_maps_write_kernel_symbol(maps, address, 0, type.bytes[0], word, NULL);
	}
	return text.size != 0;
}

/* Names of the kernel's functions are this one's, if it is the one that runs here, in its place. */
static void put_kernel(const struct perf *perf, const struct vp_perf_spaces *spaces,
		       struct vp_maps_writer *maps)
{
	const struct vp_build_id id = vp_perfdata_build_id(&perf->file, "[kernel.kallsyms]");
	VP_AUTO_FREE char *release =
	    vp_format("%.*s", (int)perf->file.release.size,
		      perf->file.release.bytes ? perf->file.release.bytes : "");
	VP_AUTO_FREE char *begin = vp_format("\nk %" PRIx64 " 0 T _text\n", spaces->kernel);
	const struct vp_buffer *own = &perf->kallsyms.buffer;

	if (!spaces->machine)
		vp_maps_write_kernel(maps, release[0] ? release : "unknown", &id);
	if (put_kept_symbols(perf, spaces->machine, maps))
		return;
	if (!spaces->machine && id.size && vp_build_id_equal(&id, &perf->kernel) &&
	    memmem(own->bytes, own->size, begin, strlen(begin)))
		vp_maps_writer_adopt(maps, (struct vp_slice){own->bytes, own->size}, "k");
	else if (!spaces->machine && !id.size)
		vp_maps_write_note(maps, "the file has no build-id of the kernel (perf record "
					 "--buildid-mmap keeps them where perf does not by "
					 "itself), so kernel functions have no names");
	else
		vp_maps_write_note(maps, "the samples are of another kernel than the one that runs "
					 "here, or it has been booted since, so kernel functions "
					 "have no names");
}

static void tell_map(const struct perf *perf, struct vp_perf_spaces *spaces)
{
	enum { PIECE = 1 << 20 };
	struct vp_maps_writer maps;

	vp_maps_writer_init(&maps, -1);
	vp_maps_write_machine(&maps, spaces->machine != 0, "imported");
	put_kernel(perf, spaces, &maps);
	vp_perf_spaces_write(spaces, &maps);
	if (!vp_maps_writer_finish(&maps))
		for (size_t at = 0, size; at < maps.buffer.size; at += size) {
			size = maps.buffer.size - at < PIECE ? maps.buffer.size - at : PIECE;
			vp_import_tell(perf->channel,
				       (struct vp_import_news){.kind = VP_IMPORT_MAPS,
							       .number = spaces->machine},
				       maps.buffer.bytes + at, size);
		}
	vp_maps_writer_deinit(&maps);
}

/* The frames of the host's kernel and user space: a mark says which the next ones are of. */
static void put_frames(const struct vp_perfdata_record *record, struct vp_import_sample *sample,
		       struct vp_buffer *out)
{
	const uint64_t sides[] = {PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER};
	uint16_t *const counts[] = {&sample->kernel, &sample->user};

	for (size_t side = 0; side < VP_ARRAY_SIZE(sides); side++) {
		struct vp_cursor cursor = vp_cursor_of(record->chain.bytes, record->chain.size);
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

static void tell_samples(struct perf *perf, uint32_t cpu)
{
	tell_gathered(perf, VP_IMPORT_SAMPLES, cpu, &perf->taken.at[cpu]);
}

static void tell_sample(struct perf *perf, const struct vp_perfdata_record *record)
{
	uint32_t cpu = cpu_of(perf, record);
	struct vp_buffer *taken = &perf->taken.at[cpu];
	struct vp_import_sample sample = {.time = record->time,
					  .ip = record->ip,
					  .pid = record->pid,
					  .tid = record->tid,
					  .machine = record->vcpu ? record->vcpu->machine : 0,
					  .vcpu = record->vcpu ? record->vcpu->number : 0,
					  .mode = (uint16_t)mode_of(record)};
	const char *comm = vp_perf_spaces_comm(&perf->machines.at[0], record->tid);
	size_t place = taken->size;

	/* A thread that nobody named, or that is about to be gone (-1), is called as perf does. */
	if (!sample.machine && !comm[0] && record->tid)
		snprintf(sample.comm, sizeof(sample.comm), ":%" PRId32, (int32_t)record->tid);
	else if (!sample.machine)
		memcpy(sample.comm, comm, strnlen(comm, sizeof(sample.comm)));
	vp_buffer_append(taken, &sample, sizeof(sample));
	put_frames(record, &sample, taken);
	memcpy(taken->bytes + place, &sample, sizeof(sample));
	if (taken->size >= USUAL_EVENTS)
		tell_samples(perf, cpu);
}

static void tell_event(struct perf *perf, const struct vp_perfdata_record *record)
{
	uint32_t class = class_of(perf, record), cpu = cpu_of(perf, record);

	if (class == NO_CLASS ||
	    !vp_tracepoint_convert(&perf->formats.classes.at[class],
				   &perf->formats.places.at[class], record->time, record->raw,
				   &perf->records.at[cpu])) {
		perf->strange++;
		return;
	}
	if (perf->records.at[cpu].size >= USUAL_EVENTS)
		tell_records(perf, cpu);
}

static void tell_events(struct perf *perf)
{
	/* Names as they were at each time. */
	begin_spaces(perf);
	for (size_t i = 0; i < perf->file.records.count; i++) {
		struct vp_perfdata_record record;
		if (!vp_perfdata_at(&perf->file, i, &record))
			continue;
		see_spaces(perf, &record);
		if (is_tracepoint(&record))
			tell_event(perf, &record);
		else if (is_sample(perf, &record))
			tell_sample(perf, &record);
	}
	for (uint32_t cpu = 0; cpu < perf->records.count; cpu++) {
		tell_records(perf, cpu);
		tell_samples(perf, cpu);
	}
}

static void find_sampled(struct perf *perf)
{
	vp_vec_each (&perf->file.attrs, attr)
		if (!perf->sampled && attr->type != PERF_TYPE_TRACEPOINT)
			perf->sampled = attr;
}

static struct vp_error *tell_all(void *state, const struct vp_import_channel *channel)
{
	struct perf *perf = state;

	perf->channel = channel;
	VP_TRY(vp_perfdata_open(perf->path, perf->bytes, &perf->file));
	if (perf->file.tracing.size) {
		VP_TRY(vp_tracedat_open_formats(perf->path, perf->file.tracing, &perf->formats));
		perf->has_formats = true;
	}
	find_sampled(perf);
	begin_spaces(perf);
	tell_about(perf);
	survey(perf);
	tell_sampling(perf);
	tell_begin(perf);
	if (perf->samples)
		vp_vec_each (&perf->machines, spaces)
			tell_map(perf, spaces);
	tell_events(perf);
	const struct vp_import_news counts[] = {
	    {.kind = VP_IMPORT_LOST, .number = perf->file.lost},
	    {.kind = VP_IMPORT_STRANGE, .number = perf->strange + perf->file.malformed},
	    {.kind = VP_IMPORT_OTHERS, .number = perf->others},
	};
	for (size_t i = 0; i < VP_ARRAY_SIZE(counts); i++)
		vp_import_tell(channel, counts[i], NULL, 0);
	return NULL;
}

/* The file itself, or that of a directory of perf's. */
static char *find_data(const char *path)
{
	static const char magic[] = VP_PERFDATA_MAGIC;
	VP_AUTO_FREE char *inside = vp_format("%s/data", path);

	if (vp_import_file_begins(path, magic, sizeof(magic) - 1))
		return vp_strdup(path);
	return vp_import_file_begins(inside, magic, sizeof(magic) - 1) ? VP_TAKE(inside) : NULL;
}

static bool has_data(const char *path)
{
	VP_AUTO_FREE char *found = find_data(path);

	return found != NULL;
}

/* While it may be read. */
static void read_kernel(struct perf *perf)
{
	struct vp_buffer notes = {0};
	struct vp_error *error = vp_file_read("/sys/kernel/notes", 1 << 16, &notes);

	if (!error)
		vp_build_id_in_notes(notes.bytes, notes.size, &perf->kernel);
	vp_error_free(error);
	vp_buffer_deinit(&notes);
	vp_maps_writer_init(&perf->kallsyms, -1);
	vp_proc_write_kallsyms(&perf->kallsyms);
}

static struct vp_error *open_file(const char *path, void **state)
{
	struct perf *perf = vp_alloc(sizeof(*perf));

	*perf = (struct perf){.path = find_data(path), .span = {UINT64_MAX, 0}};
	*state = perf;
	if (!perf->path)
		return vp_error_new("'%s' is no file of perf record", path);
	perf->directory = strcmp(perf->path, path) ? vp_strdup(path) : NULL;
	read_kernel(perf);
	return vp_import_file_map(perf->path, &perf->bytes);
}

const struct vp_importer *vp_importer_perf(void)
{
	static const struct vp_importer importer = {
	    .name = "perf.data",
	    .summary = "a file of perf record, or its directory with a file data",
	    .knows = has_data,
	    .open = open_file,
	    .tell = tell_all};

	return &importer;
}
