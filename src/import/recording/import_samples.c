/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/recording/import_samples.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/vec.h"
#include "import/common/import_channel.h"
#include "schema/chain_end.h"
#include "schema/chain_frames.h"
#include "schema/records.h"
#include "store/packet.h"
#include "store/recording.h"

enum { VCPU_BITS = 16, MAX_VMS = 1 << 15 };

static void import_samples_add_vcpus(struct vp_import_samples *samples)
{
	bool inserted;

	for (uint32_t i = 0; i < samples->vms->count && i < MAX_VMS; i++)
		vp_vec_each (&samples->vms->at[i].vcpus, vcpu)
			vp_map_insert(&samples->vcpu_of_tid, vcpu->tid,
				      i << VCPU_BITS | (uint16_t)vcpu->number, &inserted);
}

void vp_import_samples_begin(struct vp_import_samples *samples, const char *directory,
			     const vp_vms *vms)
{
	samples->vms = vms;
	samples->directory = vp_strdup(directory);
	import_samples_add_vcpus(samples);
}

void vp_import_samples_deinit(struct vp_import_samples *samples)
{
	free(samples->directory);
	vp_map_deinit(&samples->vcpu_of_tid);
	vp_map_deinit(&samples->task_of_cpu);
}

static const struct vp_vm *import_samples_vm_of(const struct vp_import_samples *samples,
						uint64_t process)
{
	vp_vec_each (samples->vms, vm)
		if (vm->pid == process)
			return vm;
	return NULL;
}

struct vp_error *vp_import_samples_map(struct vp_import_samples *samples, uint64_t process,
				       struct vp_slice text)
{
	const struct vp_vm *vm = process ? import_samples_vm_of(samples, process) : NULL;

	if (process && !vm)
		return NULL; /* none of its vCPUs was declared */
	VP_AUTO_FREE char *path = vp_recording_maps_path(samples->directory, samples->vms, vm);
	VP_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		return vp_error_errno(errno, "cannot write '%s'", path);
	int status = vp_fd_write_all(fd, text.bytes, text.size);
	return status ? vp_error_errno(-status, "cannot write '%s'", path) : NULL;
}

/* Writes a sample's frames after it; they are unaligned. */
static void import_samples_put_frames(struct vp_trace_writer *writer, struct vp_stream_id id,
				      const struct vp_import_sample *sample, unsigned mode,
				      const char *frames, unsigned count)
{
	unsigned most = count < VP_CHAIN_FRAMES ? count : VP_CHAIN_FRAMES;

	for (unsigned at = 0; at < most; at += VP_CHAIN_FRAMES_PER_RECORD) {
		struct vp_chain_frames record = {.time = sample->time,
						 .id = VP_ID_chain_frames,
						 .mode = (uint16_t)mode,
						 .tid = sample->tid};
		record.count =
		    (uint16_t)(most - at < VP_CHAIN_FRAMES_PER_RECORD ? most - at
								      : VP_CHAIN_FRAMES_PER_RECORD);
		record.end = at + record.count < most ? VP_CHAIN_GOES_ON
			     : most < count           ? VP_CHAIN_TOO_DEEP
						      : VP_CHAIN_WHOLE;
		memcpy(record.ips, frames + at * sizeof(uint64_t), record.count * sizeof(uint64_t));
		vp_trace_append(writer, id, &record);
	}
}

static void import_samples_put_task(struct vp_import_samples *samples,
				    struct vp_trace_writer *writer, struct vp_stream_id id,
				    const struct vp_import_sample *sample)
{
	struct vp_task task = {
	    .time = sample->time, .id = VP_ID_task, .pid = sample->pid, .tid = sample->tid};
	uint32_t hash = (uint32_t)XXH64(sample->comm, sizeof(sample->comm), sample->tid);
	bool inserted;
	uint32_t *known = vp_map_insert(&samples->task_of_cpu,
					(uint64_t)id.pcpu << 32 | sample->tid, hash, &inserted);

	if (!sample->comm[0] || (!inserted && *known == hash))
		return;
	*known = hash;
	memcpy(task.comm, sample->comm, sizeof(task.comm));
	vp_trace_append(writer, id, &task);
}

static void import_samples_put_sample(struct vp_trace_writer *writer, struct vp_stream_id id,
				      const struct vp_import_sample *sample)
{
	struct vp_host_sample record = {.time = sample->time,
					.id = VP_ID_host_sample,
					.pid = sample->pid,
					.tid = sample->tid,
					.mode = (uint8_t)sample->mode,
					.ip = sample->ip};

	vp_trace_append(writer, id, &record);
}

static void import_samples_put_vcpu_sample(struct vp_trace_writer *writer, struct vp_stream_id id,
					   const struct vp_import_sample *sample, uint32_t vm,
					   uint16_t vcpu)
{
	struct vp_vcpu_sample record = {.time = sample->time,
					.id = VP_ID_vcpu_sample,
					.vm = vm,
					.tid = sample->tid,
					.mode = (uint8_t)sample->mode,
					.vcpu = vcpu,
					.ip = sample->ip};
	struct vp_guest_sample guest = {.time = sample->time,
					.id = VP_ID_guest_sample,
					.vm = vm,
					.tid = sample->tid,
					.mode = (uint8_t)sample->mode,
					.vcpu = vcpu,
					.ip = sample->ip};

	if (sample->mode == VP_MODE_GUEST_KERNEL || sample->mode == VP_MODE_GUEST_USER)
		vp_trace_append(writer, id, &guest);
	else
		vp_trace_append(writer, id, &record);
}

/* Writes the weight of the next sample. */
static void import_samples_put_period(const struct vp_import_samples *samples,
				      struct vp_trace_writer *writer, struct vp_stream_id id,
				      const struct vp_import_sample *sample)
{
	struct vp_sample_period record = {
	    .time = sample->time, .id = VP_ID_sample_period, .events = sample->period};

	if (samples->by_period)
		vp_trace_append(writer, id, &record);
}

/* Writes a sample with a known vCPU and guest thread. */
static bool put_reported(const struct vp_import_samples *samples, struct vp_trace_writer *writer,
			 struct vp_stream_id id, const struct vp_import_sample *sample)
{
	const struct vp_vm *vm = import_samples_vm_of(samples, sample->machine);
	struct vp_guest_sample record = {.time = sample->time,
					 .id = VP_ID_guest_sample,
					 .flags = VP_BY_MEMORY,
					 .mode = (uint8_t)sample->mode,
					 .vcpu = (uint16_t)sample->vcpu,
					 .ip = sample->ip,
					 .guest_pid = sample->pid,
					 .guest_tid = sample->tid};

	if (!vm || sample->mode <= VP_MODE_USER)
		return false;
	record.vm = vp_vm_id(vm);
	vp_vec_each (&vm->vcpus, vcpu)
		if (vcpu->number == sample->vcpu)
			record.tid = vcpu->tid;
	import_samples_put_period(samples, writer, id, sample);
	vp_trace_append(writer, id, &record);
	return true;
}

static void import_samples_put_own(struct vp_import_samples *samples,
				   struct vp_trace_writer *writer, struct vp_stream_id id,
				   const struct vp_import_sample *sample, struct vp_slice frames)
{
	const uint32_t *vcpu = vp_map_find(&samples->vcpu_of_tid, sample->tid);

	import_samples_put_task(samples, writer, id, sample);
	import_samples_put_frames(writer, id, sample, VP_MODE_KERNEL, frames.bytes, sample->kernel);
	import_samples_put_frames(writer, id, sample, VP_MODE_USER,
				  frames.bytes + sample->kernel * sizeof(uint64_t), sample->user);
	import_samples_put_period(samples, writer, id, sample);
	if (vcpu)
		import_samples_put_vcpu_sample(writer, id, sample,
					       vp_vm_id(&samples->vms->at[*vcpu >> VCPU_BITS]),
					       (uint16_t)*vcpu);
	else
		import_samples_put_sample(writer, id, sample);
}

bool vp_import_samples_take(struct vp_import_samples *samples, struct vp_trace_writer *writer,
			    uint32_t cpu, struct vp_slice bytes)
{
	struct vp_cursor cursor = vp_cursor_of(bytes.bytes, bytes.size);
	const struct vp_stream_id id = {VP_STREAM_PCPU, cpu};

	while (vp_cursor_left(&cursor)) {
		struct vp_import_sample sample;
		struct vp_slice head = vp_cursor_bytes(&cursor, sizeof(sample));
		if (!vp_cursor_ok(&cursor))
			return false;
		memcpy(&sample, head.bytes, sizeof(sample));
		struct vp_slice frames = vp_cursor_bytes(
		    &cursor, ((size_t)sample.kernel + sample.user) * sizeof(uint64_t));
		bool is_known = sample.mode == VP_MODE_KERNEL || sample.mode == VP_MODE_USER ||
				sample.mode == VP_MODE_GUEST_KERNEL ||
				sample.mode == VP_MODE_GUEST_USER;
		bool in_guest = sample.mode > VP_MODE_USER;
		if (!vp_cursor_ok(&cursor) || !is_known)
			return false;
		if (sample.machine)
			samples->strange += !put_reported(samples, writer, id, &sample);
		else if (in_guest && !vp_map_find(&samples->vcpu_of_tid, sample.tid))
			samples->strange++;
		else
			import_samples_put_own(samples, writer, id, &sample, frames);
	}
	return true;
}
