/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export/perfetto.h"

#include <inttypes.h>

#include "analyze/profile/frame.h"
#include "analyze/report/export_queue.h"
#include "base/macros.h"
#include "export/export_text.h"

/* All packets are in one sequence, whose first packet resets interned data. */
enum { SEQUENCE = 1, FLAG_CLEARED = 1, FLAG_NEEDED = 2 };

enum {
	INTERNED_FUNCTION = 5,
	INTERNED_FRAME = 6,
	INTERNED_STACK = 7,
	INTERNED_PATH = 17,
	INTERNED_MAPPING = 19,
	STRING_NUMBER = 1,
	STRING_TEXT = 2,
	FRAME_NUMBER = 1,
	FRAME_FUNCTION = 2,
	FRAME_MAPPING = 3,
	STACK_NUMBER = 1,
	STACK_FRAME = 2,
	MAPPING_NUMBER = 1,
	MAPPING_PATH = 7,
	SAMPLE_PCPU = 1,
	SAMPLE_PID = 2,
	SAMPLE_TID = 3,
	SAMPLE_STACK = 4,
	SAMPLE_MODE = 5,
	SAMPLE_COUNT = 6
};

/* Profiling.CpuMode; StackSample numbers its modes differently. */
enum mode { KERNEL = 1, USER = 2, HYPERVISOR = 3, GUEST_KERNEL = 4, GUEST_USER = 5 };

/* Kind of an interned text. */
enum what { FUNCTION, MACHINE, PROCESS };

void vp_perfetto_packets_deinit(struct vp_perfetto_packets *packets)
{
	vp_buffer_deinit(&packets->packet);
}

void vp_perfetto_put(struct vp_perfetto_packets *packets, uint32_t field, const uint64_t *time,
		     const struct vp_buffer *message, struct vp_buffer *out)
{
	struct vp_buffer *packet = &packets->packet;

	packet->size = 0;
	if (time)
		vp_pb_count(packet, PACKET_TIMESTAMP, *time);
	vp_pb_count(packet, PACKET_SEQUENCE, SEQUENCE);
	vp_pb_count(packet, PACKET_SEQUENCE_FLAGS,
		    packets->begun ? FLAG_NEEDED : FLAG_CLEARED | FLAG_NEEDED);
	packets->begun = true;
	vp_pb_message(packet, field, message);
	vp_pb_message(out, TRACE_PACKET, packet);
}

void vp_perfetto_samples_init(struct vp_perfetto_samples *samples,
			      struct vp_perfetto_packets *packets)
{
	samples->packets = packets;
	samples->names.key_size = samples->frames.key_size = 2 * sizeof(uint32_t);
}

void vp_perfetto_samples_deinit(struct vp_perfetto_samples *samples)
{
	vp_key_set_deinit(&samples->names);
	vp_key_set_deinit(&samples->frames);
	vp_map_deinit(&samples->mappings);
	vp_intern_deinit(&samples->stacks);
	vp_buffer_deinit(&samples->interned);
	vp_buffer_deinit(&samples->message);
	vp_buffer_deinit(&samples->line);
	vp_buffer_deinit(&samples->key);
}

static void intern_text(struct vp_perfetto_samples *samples, uint32_t field, uint64_t number,
			const char *text)
{
	samples->message.size = 0;
	vp_pb_count(&samples->message, STRING_NUMBER, number);
	vp_pb_text(&samples->message, STRING_TEXT, text);
	vp_pb_message(&samples->interned, field, &samples->message);
}

static const char *perfetto_name_of(const struct vp_export *export, enum what what, uint32_t text)
{
	const char *name =
	    what == MACHINE ? vp_export_vm(export, text) : vp_export_text(export, text);

	return name ? name : what == MACHINE ? "host" : "[unknown]";
}

static uint32_t perfetto_mapping_of(struct vp_perfetto_samples *samples,
				    const struct vp_export *export, uint32_t module)
{
	bool inserted;

	if (module == VP_NONE)
		return 0;
	uint32_t number =
	    *vp_map_insert(&samples->mappings, module, samples->mappings.count + 1, &inserted);
	if (!inserted)
		return number;
	intern_text(samples, INTERNED_PATH, number, vp_export_text(export, module));
	samples->message.size = 0;
	vp_pb_count(&samples->message, MAPPING_NUMBER, number);
	vp_pb_count(&samples->message, MAPPING_PATH, number);
	vp_pb_message(&samples->interned, INTERNED_MAPPING, &samples->message);
	return number;
}

static uint64_t perfetto_frame_of(struct vp_perfetto_samples *samples,
				  const struct vp_export *export, enum what what, uint32_t text,
				  uint32_t module)
{
	const uint32_t name_key[2] = {what, text};
	bool inserted;
	uint32_t name = 1 + vp_key_set_add(&samples->names, name_key, &inserted);

	if (inserted)
		intern_text(samples, INTERNED_FUNCTION, name, perfetto_name_of(export, what, text));
	uint32_t mapping = perfetto_mapping_of(samples, export, module);
	const uint32_t key[2] = {name, mapping};
	uint32_t frame = 1 + vp_key_set_add(&samples->frames, key, &inserted);
	if (!inserted)
		return frame;
	samples->message.size = 0;
	vp_pb_count(&samples->message, FRAME_NUMBER, frame);
	vp_pb_count(&samples->message, FRAME_FUNCTION, name);
	if (mapping)
		vp_pb_count(&samples->message, FRAME_MAPPING, mapping);
	vp_pb_message(&samples->interned, INTERNED_FRAME, &samples->message);
	return frame;
}

static void add_to_stack(struct vp_perfetto_samples *samples, uint64_t frame)
{
	vp_pb_count(&samples->line, STACK_FRAME, frame);
	vp_buffer_count(&samples->key, frame);
	vp_buffer_string(&samples->key, " ");
}

static uint64_t stack_of(struct vp_perfetto_samples *samples, const struct vp_export *export,
			 const struct vp_sample *sample)
{
	const struct vp_frame *outer = &sample->frames[0];
	uint32_t vm = outer->kind == VP_KIND_VM ? VP_NONE : outer->vm;
	size_t before = samples->stacks.strings.count;

	samples->key.size = samples->line.size = 0;
	add_to_stack(samples, perfetto_frame_of(samples, export, MACHINE, vm, VP_NONE));
	if (vp_export_is_code(outer))
		add_to_stack(samples,
			     perfetto_frame_of(samples, export, PROCESS, outer->process, VP_NONE));
	for (uint32_t i = 0; i < sample->count; i++) {
		const struct vp_frame *frame = &sample->frames[i];
		add_to_stack(samples, perfetto_frame_of(samples, export, FUNCTION, frame->function,
							frame->module));
	}
	uint64_t number =
	    1 + (uint64_t)vp_intern_string(&samples->stacks, vp_buffer_text(&samples->key));
	if (samples->stacks.strings.count > before) {
		vp_pb_count(&samples->line, STACK_NUMBER, number);
		vp_pb_message(&samples->interned, INTERNED_STACK, &samples->line);
	}
	return number;
}

static enum mode perfetto_mode_of(const struct vp_frame *frame)
{
	if (frame->kind == VP_KIND_VM)
		return HYPERVISOR;
	if (frame->kind == VP_KIND_USER)
		return frame->vm == VP_NONE ? USER : GUEST_USER;
	return frame->vm == VP_NONE ? KERNEL : GUEST_KERNEL;
}

/* Only host threads are named by tid: guest tids may collide with them. */
void vp_perfetto_sample(struct vp_perfetto_samples *samples, const struct vp_export *export,
			const struct vp_sample *sample)
{
	uint64_t stack;

	samples->interned.size = 0;
	stack = stack_of(samples, export, sample);
	if (samples->interned.size)
		vp_perfetto_put(samples->packets, PACKET_INTERNED, NULL, &samples->interned,
				export->out);
	samples->message.size = 0;
	if (sample->pcpu != VP_NONE)
		vp_pb_count(&samples->message, SAMPLE_PCPU, sample->pcpu);
	vp_pb_count(&samples->message, SAMPLE_PID, sample->pid);
	vp_pb_count(&samples->message, SAMPLE_TID, sample->tid);
	vp_pb_count(&samples->message, SAMPLE_STACK, stack);
	vp_pb_count(&samples->message, SAMPLE_MODE,
		    perfetto_mode_of(&sample->frames[sample->count - 1]));
	vp_pb_count(&samples->message, SAMPLE_COUNT, sample->weight);
	vp_perfetto_put(samples->packets, PACKET_PERF_SAMPLE, &sample->time, &samples->message,
			export->out);
}
