/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A directory that perf reads as perf.data: VMs are guest machines, and each vCPU has its own event
 * id (PERF_RECORD_ID_INDEX). Each function with samples gets an artificial address, and the
 * directory has the files in which perf looks up its name (export/perf_symbols.h). So all names are
 * vperf's, and perf reads nothing from this machine or its guests.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>

#include "analyze/common/key_set.h"
#include "analyze/profile/frame.h"
#include "analyze/report/export.h"
#include "analyze/report/export_queue.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "export/export_text.h"
#include "export/exporters.h"
#include "export/perf_symbols.h"
#include "schema/event.h"
#include "schema/interval.h"
#include "schema/vm.h"
#include "schema/weighting.h"
#include "store/recording.h"

enum {
	RECORD_FINISHED_ROUND = 68,
	RECORD_ID_INDEX = 69,
	FEATURE_EVENTS = 12,
	ID_HOST = 1,
	IDS_AT_ONCE = 1000, /* limited by the 16-bit size of a record */
	ROUND = 4096,       /* samples per round: perf keeps that many in memory */
	MAX_TEXT = 3000
};

/* A section in the file's header. */
struct section {
	uint64_t offset, size;
};
struct header {
	char magic[8];
	uint64_t size, attr_size;
	struct section attrs, data, event_types;
	uint64_t features[4];
};
struct attr {
	struct perf_event_attr attr;
	struct section ids;
};

struct id {
	uint64_t id;
	uint32_t machine, vcpu; /* machine: process of the VM, 0: the host */
	uint64_t tid;           /* the vCPU's thread, or 0: all threads */
};

/* Machine, process and thread of a sample. */
struct thread {
	uint32_t vm, pid, tid;
	uint64_t id;
};

struct perf {
	struct vp_perf_symbols symbols;
	int fd;
	struct header header;
	VP_VEC(struct id) ids;
	struct vp_map id_of_vcpu;
	struct vp_key_set threads; /* vm, tid, process */
	struct vp_key_set mapped;  /* vm, pid, module */
	struct vp_buffer record, chain;
	uint64_t in_round;
	uint64_t written;
};

static void export_perf_fail(struct vp_export *export, int error, const char *what)
{
	if (!export->error)
		export->error =
		    vp_error_errno(error, "cannot write '%s/%s'", export->directory, what);
}

static void put_u64(struct vp_buffer *out, uint64_t value)
{
	vp_buffer_append(out, &value, sizeof(value));
}

static void put_u32(struct vp_buffer *out, uint32_t value)
{
	vp_buffer_append(out, &value, sizeof(value));
}

/* Writes `perf->record` as a record with that header. */
static void export_perf_put_record(struct vp_export *export, uint32_t type, uint32_t misc)
{
	struct perf *perf = export->state;
	struct perf_event_header header = {.type = type,
					   .misc = (uint16_t)misc,
					   .size = (uint16_t)(sizeof(header) + perf->record.size)};

	vp_buffer_append(export->out, &header, sizeof(header));
	vp_buffer_append(export->out, perf->record.bytes, perf->record.size);
	perf->written += header.size;
	perf->record.size = 0;
}

/* NUL-terminated text, padded to a multiple of 8 bytes. */
static void export_perf_put_text(struct vp_buffer *out, const char *text)
{
	size_t size = strnlen(text, MAX_TEXT);

	vp_buffer_append(out, text, size);
	vp_buffer_fill(out, 0, 8 - size % 8);
}

/* The trailer of every record that is not a sample (sample_id_all). */
static void put_sample_id(struct vp_buffer *out, const struct thread *thread, uint64_t time)
{
	put_u32(out, thread->pid);
	put_u32(out, thread->tid);
	put_u64(out, time);
	put_u64(out, 0); /* CPU */
	put_u64(out, thread->id);
}

static uint32_t export_perf_machine_of(const struct vp_export *export, uint32_t vm)
{
	return vm == VP_NONE ? 0 : export->vms.at[vm].pid;
}

static void add_ids(struct vp_export *export)
{
	struct perf *perf = export->state;
	const vp_vms *vms = &export->vms;
	bool inserted;

	vp_vec_push(&perf->ids, ((struct id){.id = ID_HOST, .tid = UINT64_MAX}));
	for (uint32_t vm = 0; vm < vms->count; vm++)
		vp_vec_each (&vms->at[vm].vcpus, vcpu) {
			uint64_t id = perf->ids.count + ID_HOST;
			vp_vec_push(&perf->ids, ((struct id){id, vms->at[vm].pid, vcpu->number,
							     vcpu->tid ? vcpu->tid : UINT64_MAX}));
			vp_map_insert(&perf->id_of_vcpu, (uint64_t)vm << 32 | vcpu->number,
				      (uint32_t)id, &inserted);
		}
}

static void put_id_index(struct vp_export *export, size_t from, size_t to)
{
	struct perf *perf = export->state;
	struct vp_buffer *out = &perf->record;

	put_u64(out, to - from);
	for (size_t i = from; i < to; i++) {
		put_u64(out, perf->ids.at[i].id);
		put_u64(out, 0);          /* index */
		put_u64(out, UINT64_MAX); /* any pCPU */
		put_u64(out, perf->ids.at[i].tid);
	}
	for (size_t i = from; i < to; i++) {
		put_u64(out, perf->ids.at[i].machine);
		put_u64(out, perf->ids.at[i].vcpu);
	}
	export_perf_put_record(export, RECORD_ID_INDEX, 0);
}

static void put_kernels(struct vp_export *export)
{
	struct perf *perf = export->state;
	const vp_vms *vms = &export->vms;

	for (uint32_t vm = 0; vm <= vms->count; vm++) {
		uint32_t number = vm == vms->count ? VP_NONE : vm;
		uint32_t machine = export_perf_machine_of(export, number);
		VP_AUTO_FREE char *name =
		    machine ? vp_format("[guest.kernel.kallsyms.%u]_text", machine)
			    : vp_strdup("[kernel.kallsyms]_text");
		const uint32_t *id = vp_map_find(&perf->id_of_vcpu, (uint64_t)number << 32);
		const struct thread thread = {
		    .pid = UINT32_MAX, .tid = 0, .id = machine && id ? *id : ID_HOST};
		put_u32(&perf->record, machine ? machine : UINT32_MAX);
		put_u32(&perf->record, 0);
		put_u64(&perf->record, VP_PERF_KERNEL);
		put_u64(&perf->record, VP_PERF_KERNEL_SIZE);
		put_u64(&perf->record, VP_PERF_KERNEL);
		export_perf_put_text(&perf->record, name);
		put_sample_id(&perf->record, &thread, 0);
		if (!machine || id)
			export_perf_put_record(export, PERF_RECORD_MMAP,
					       machine ? PERF_RECORD_MISC_GUEST_KERNEL
						       : PERF_RECORD_MISC_KERNEL);
		perf->record.size = 0;
	}
}

/* The event of samples that are weighted by events. perf takes its name from the file
 * (put_event_name()), whatever its type. */
static void set_event(const struct vp_recording *recording, struct perf_event_attr *attr)
{
	const char *name = recording->trigger;
	struct vp_event event;

	if (recording->weighting != VP_WEIGHTING_EVENTS)
		return;
	attr->sample_period = recording->events ? recording->events : 1;
	attr->config = PERF_COUNT_SW_DUMMY;
	if (vp_event_find((struct vp_slice){name, strcspn(name, ":")}, &event) &&
	    event.source == VP_FROM_COUNTER &&
	    (event.type == PERF_TYPE_HARDWARE || event.type == PERF_TYPE_SOFTWARE)) {
		attr->type = event.type;
		attr->config = event.config;
	}
}

static void fill_attr(const struct vp_export *export, struct perf_event_attr *attr)
{
	*attr = (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
					 .size = sizeof(*attr),
					 .config = PERF_COUNT_SW_CPU_CLOCK,
					 .sample_period = export->report->recording.period_ns,
					 .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
							PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
							PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
							PERF_SAMPLE_CALLCHAIN,
					 .sample_id_all = 1,
					 .mmap = 1,
					 .mmap2 = 1,
					 .comm = 1};
	set_event(&export->report->recording, attr);
}

static void export_perf_put_header(struct vp_export *export)
{
	struct perf *perf = export->state;
	uint64_t ids = sizeof(struct header), ids_size = perf->ids.count * sizeof(uint64_t);
	struct attr attr = {.ids = {ids, ids_size}};

	fill_attr(export, &attr.attr);
	perf->header = (struct header){.magic = {'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'},
				       .size = sizeof(struct header),
				       .attr_size = sizeof(attr),
				       .attrs = {ids + ids_size, sizeof(attr)},
				       .data = {.offset = ids + ids_size + sizeof(attr)}};
	vp_buffer_append(export->out, &perf->header, sizeof(perf->header));
	vp_vec_each (&perf->ids, id)
		put_u64(export->out, id->id);
	vp_buffer_append(export->out, &attr, sizeof(attr));
}

/* After the data (HEADER_EVENT_DESC): one event, with its attr, name and ids. */
static void put_event_name(struct vp_export *export)
{
	enum { WORD = 64 };
	struct perf *perf = export->state;
	const char *name = export->report->recording.trigger;
	uint32_t size = (uint32_t)(strlen(name) / WORD + 1) * WORD;
	struct perf_event_attr attr;
	struct vp_buffer text = {0};

	fill_attr(export, &attr);
	put_u32(&text, 1);
	put_u32(&text, sizeof(attr));
	vp_buffer_append(&text, &attr, sizeof(attr));
	put_u32(&text, (uint32_t)perf->ids.count);
	put_u32(&text, size);
	vp_buffer_string(&text, name);
	vp_buffer_fill(&text, 0, size - strlen(name));
	vp_vec_each (&perf->ids, id)
		put_u64(&text, id->id);
	put_u64(export->out,
		perf->header.data.offset + perf->header.data.size + sizeof(struct section));
	put_u64(export->out, text.size);
	vp_buffer_append(export->out, text.bytes, text.size);
	vp_buffer_deinit(&text);
	perf->header.features[0] |= 1ULL << FEATURE_EVENTS;
}

static void export_perf_begin(struct vp_export *export)
{
	struct perf *perf = export->state;
	VP_AUTO_FREE char *path = vp_format("%s/data", export->directory);

	perf->threads.key_size = 3 * sizeof(uint32_t);
	perf->mapped.key_size = 3 * sizeof(uint32_t);
	vp_perf_symbols_init(&perf->symbols, export->directory);
	perf->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (perf->fd < 0)
		export_perf_fail(export, errno, "data");
	add_ids(export);
	export_perf_put_header(export);
	for (size_t from = 0; from < perf->ids.count; from += IDS_AT_ONCE)
		put_id_index(export, from,
			     from + IDS_AT_ONCE < perf->ids.count ? from + IDS_AT_ONCE
								  : perf->ids.count);
	put_kernels(export);
}

static void export_perf_write_out(struct vp_export *export)
{
	struct perf *perf = export->state;
	int status = 0;

	if (!export->error)
		status = vp_fd_write_all(perf->fd, export->out->bytes, export->out->size);
	export->out->size = 0;
	if (status)
		export_perf_fail(export, -status, "data");
}

static void export_perf_put_thread(struct vp_export *export, const struct thread *thread,
				   uint32_t process, uint64_t time)
{
	struct perf *perf = export->state;
	const uint32_t key[3] = {thread->vm, thread->tid, process};
	const char *name = vp_export_text(export, process);
	VP_AUTO_FREE char *clean = vp_perf_clean(name ? name : "[unknown]");
	bool inserted;

	vp_key_set_add(&perf->threads, key, &inserted);
	if (!inserted)
		return;
	clean[strnlen(clean, 15)] = 0; /* the kernel truncates names, too */
	put_u32(&perf->record, thread->pid);
	put_u32(&perf->record, thread->tid);
	export_perf_put_text(&perf->record, clean);
	put_sample_id(&perf->record, thread, time);
	export_perf_put_record(export, PERF_RECORD_COMM,
			       thread->vm == VP_NONE ? PERF_RECORD_MISC_USER
						     : PERF_RECORD_MISC_GUEST_USER);
}

static void export_perf_put_mapping(struct vp_export *export, const struct thread *thread,
				    uint32_t module, uint64_t time)
{
	struct perf *perf = export->state;
	const uint32_t key[3] = {thread->vm, thread->pid, module};
	bool inserted;

	vp_key_set_add(&perf->mapped, key, &inserted);
	if (!inserted)
		return;
	put_u32(&perf->record, thread->pid);
	put_u32(&perf->record, thread->pid);
	put_u64(&perf->record, vp_perf_module_begin(module));
	put_u64(&perf->record, VP_PERF_MODULE_SIZE);
	for (int i = 0; i < 4; i++) /* offset; device, inode and inode generation */
		put_u64(&perf->record, 0);
	put_u32(&perf->record, 5); /* PROT_READ | PROT_EXEC */
	put_u32(&perf->record, 2); /* MAP_PRIVATE */
	export_perf_put_text(&perf->record, vp_perf_module_path(&perf->symbols, module));
	put_sample_id(&perf->record, thread, time);
	export_perf_put_record(export, PERF_RECORD_MMAP2,
			       thread->vm == VP_NONE ? PERF_RECORD_MISC_USER
						     : PERF_RECORD_MISC_GUEST_USER);
}

/* The address of a frame in the sample's address space. Code of another machine is in a module
 * named after that machine. */
static uint64_t address_of(struct vp_export *export, const struct vp_frame *frame,
			   const struct thread *thread, uint64_t time, bool *kernel)
{
	struct perf *perf = export->state;
	const char *function = vp_export_text(export, frame->function);
	const char *vm = vp_export_vm(export, frame->vm);
	const char *module = vp_export_text(export, frame->module);
	bool own = frame->vm == thread->vm;

	*kernel = own && frame->kind != VP_KIND_USER;
	if (!function)
		function = "[unknown]";
	if (*kernel)
		return vp_perf_kernel_function(&perf->symbols, frame->vm, function);
	VP_AUTO_FREE char *other =
	    own ? NULL : vp_format("[%s %s]", vm ? "guest" : "host", vm ? vm : "");
	uint32_t number =
	    vp_perf_module(&perf->symbols, own ? module ? module : "[unknown]" : other);
	export_perf_put_mapping(export, thread, number, time);
	return vp_perf_module_function(&perf->symbols, number, function);
}

static struct thread export_perf_thread_of(struct vp_export *export, const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	struct perf *perf = export->state;
	const uint32_t *id = NULL;

	if (inner->vm != VP_NONE && inner->kind != VP_KIND_VM)
		id = vp_map_find(&perf->id_of_vcpu, (uint64_t)inner->vm << 32 | inner->vcpu);
	if (!id)
		return (struct thread){VP_NONE, sample->pid, sample->tid, ID_HOST};
	/* The recording has the process of a frame but not its thread. Processes without a pid get
	 * a number. */
	uint32_t pid = inner->pid != VP_NONE       ? inner->pid
		       : inner->process == VP_NONE ? VP_PERF_NO_PID
						   : VP_PERF_NO_PID + 1 + inner->process;
	return (struct thread){inner->vm, pid, pid, *id};
}

static void export_perf_put_chain(struct vp_export *export, const struct vp_sample *sample,
				  const struct thread *thread, uint64_t *ip, uint32_t *misc)
{
	struct perf *perf = export->state;
	bool kernel, before = false;

	perf->chain.size = 0;
	for (uint32_t i = sample->count; i-- > 0;) {
		uint64_t at = address_of(export, &sample->frames[i], thread, sample->time, &kernel);
		if (i + 1 == sample->count) {
			bool guest = thread->vm != VP_NONE;
			*ip = at;
			*misc =
			    kernel ? guest ? PERF_RECORD_MISC_GUEST_KERNEL : PERF_RECORD_MISC_KERNEL
			    : guest ? PERF_RECORD_MISC_GUEST_USER
				    : PERF_RECORD_MISC_USER;
		}
		if (i + 1 == sample->count || kernel != before)
			put_u64(&perf->chain, kernel ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER);
		put_u64(&perf->chain, at);
		before = kernel;
	}
}

static void export_perf_put_sample(struct vp_export *export, const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	struct perf *perf = export->state;
	struct thread thread = export_perf_thread_of(export, sample);
	uint64_t ip = 0, unit = vp_recording_unit_ns(&export->report->recording);
	uint32_t misc = 0;

	export_perf_put_thread(export, &thread, inner->process, sample->time);
	export_perf_put_chain(export, sample, &thread, &ip, &misc);
	put_u64(&perf->record, thread.id);
	put_u64(&perf->record, ip);
	put_u32(&perf->record, thread.pid);
	put_u32(&perf->record, thread.tid);
	put_u64(&perf->record, sample->time);
	put_u64(&perf->record, sample->pcpu == VP_NONE ? 0 : sample->pcpu);
	put_u64(&perf->record, sample->weight * (unit ? unit : 1));
	put_u64(&perf->record, perf->chain.size / sizeof(uint64_t));
	vp_buffer_append(&perf->record, perf->chain.bytes, perf->chain.size);
	export_perf_put_record(export, PERF_RECORD_SAMPLE, misc);
	if (++perf->in_round == ROUND) {
		export_perf_put_record(export, RECORD_FINISHED_ROUND, 0);
		perf->in_round = 0;
	}
	if (export->out->size >= VP_EXPORT_PIECE)
		export_perf_write_out(export);
}

/* The header has the size of the data, so it is written last. */
static void export_perf_end(struct vp_export *export)
{
	struct perf *perf = export->state;

	export_perf_write_out(export);
	perf->header.data.size = perf->written;
	if (export->report->recording.weighting == VP_WEIGHTING_EVENTS) {
		put_event_name(export);
		export_perf_write_out(export);
	}
	if (!export->error &&
	    vp_pwrite(perf->fd, &perf->header, sizeof(perf->header), 0) != sizeof(perf->header))
		export_perf_fail(export, errno, "data");
	if (!export->error)
		export->error = vp_perf_symbols_write(&perf->symbols, &export->report->vms);
}

static void export_perf_deinit(void *state)
{
	struct perf *perf = state;

	if (perf->fd > 0)
		close(perf->fd);
	vp_perf_symbols_deinit(&perf->symbols);
	vp_vec_deinit(&perf->ids);
	vp_map_deinit(&perf->id_of_vcpu);
	vp_key_set_deinit(&perf->threads);
	vp_key_set_deinit(&perf->mapped);
	vp_buffer_deinit(&perf->record);
	vp_buffer_deinit(&perf->chain);
}

const struct vp_exporter *vp_exporter_perf(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct perf),
						    .directory = true,
						    .begin = export_perf_begin,
						    .sample = export_perf_put_sample,
						    .end = export_perf_end,
						    .deinit = export_perf_deinit};

	return &exporter;
}
