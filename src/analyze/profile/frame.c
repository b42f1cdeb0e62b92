/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/frame.h"

#include "base/alloc.h"

const char *vp_kind_name(uint32_t kind)
{
	static const char *const names[] = {[VP_KIND_KERNEL] = "kernel",
					    [VP_KIND_USER] = "user",
					    [VP_KIND_IDLE] = "idle",
					    [VP_KIND_STEAL] = "steal",
					    [VP_KIND_VM] = "vm"};

	return kind < VP_KINDS ? names[kind] : NULL;
}

void vp_frames_init(struct vp_frames *frames, unsigned columns)
{
	*frames =
	    (struct vp_frames){.columns = columns, .keys = {.key_size = sizeof(struct vp_frame)}};
}

void vp_frames_deinit(struct vp_frames *frames)
{
	vp_intern_deinit(&frames->texts);
	vp_key_set_deinit(&frames->keys);
	vp_vec_deinit(&frames->at);
}

/* The frame without the unused columns. */
static struct vp_frame masked(unsigned columns, const struct vp_frame *frame)
{
	struct vp_frame result = *frame;
	bool labelled = frame->kind != VP_KIND_KERNEL && frame->kind != VP_KIND_USER;

	if (!(columns & VP_COLUMN_FUNCTION) && !labelled)
		result.function = VP_NONE;
	if (!(columns & (VP_COLUMN_FUNCTION | VP_COLUMN_MODULE)) && !labelled)
		result.kind = VP_NONE;
	if (!(columns & VP_COLUMN_MODULE))
		result.module = VP_NONE;
	if (!(columns & VP_COLUMN_PROCESS))
		result.process = VP_NONE;
	if (!(columns & VP_COLUMN_PID))
		result.pid = VP_NONE;
	if (!(columns & VP_COLUMN_VM))
		result.vm = VP_NONE;
	if (!(columns & VP_COLUMN_VCPU))
		result.vcpu = VP_NONE;
	return result;
}

/* Columns that differ between samples of a frame become unknown. */
static void frame_merge_columns(struct vp_frame *known, const struct vp_frame *frame)
{
	uint32_t *mine[] = {&known->kind, &known->function, &known->module, &known->process,
			    &known->pid,  &known->vm,       &known->vcpu};
	const uint32_t other[] = {frame->kind, frame->function, frame->module, frame->process,
				  frame->pid,  frame->vm,       frame->vcpu};

	for (size_t i = 0; i < VP_ARRAY_SIZE(mine); i++)
		if (*mine[i] != other[i])
			*mine[i] = VP_NONE;
}

static uint32_t add_by_key(struct vp_frames *frames, const struct vp_frame *key,
			   const struct vp_frame *frame)
{
	bool inserted;
	uint32_t number = vp_key_set_add(&frames->keys, key, &inserted);

	if (inserted)
		vp_vec_push(&frames->at, *frame);
	else
		frame_merge_columns(&frames->at.at[number], frame);
	return number;
}

uint32_t vp_frames_add(struct vp_frames *frames, const struct vp_frame *frame)
{
	struct vp_frame key = masked(frames->columns, frame);

	return add_by_key(frames, &key, frame);
}

static struct vp_frame translated(struct vp_frame frame, const struct vp_frame_numbers *numbers)
{
	uint32_t *texts[] = {&frame.function, &frame.module, &frame.process};

	frame.part = numbers->parts[frame.part];
	if (numbers->vms && frame.vm != VP_NONE)
		frame.vm = numbers->vms[frame.vm];
	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++)
		if (*texts[i] != VP_NONE)
			*texts[i] = numbers->texts[*texts[i]];
	return frame;
}

uint32_t *vp_frames_merge(struct vp_frames *frames, const struct vp_frames *from,
			  const struct vp_frame_numbers *numbers)
{
	uint32_t *frame_of = vp_realloc_array(NULL, from->at.count, sizeof(*frame_of));

	for (uint32_t i = 0; i < from->at.count; i++) {
		/* Columns of the key: those that differ between its samples are left out. */
		const struct vp_frame *known = vp_key_set_key(&from->keys, i);
		struct vp_frame key = translated(*known, numbers),
				frame = translated(from->at.at[i], numbers);
		frame_of[i] = add_by_key(frames, &key, &frame);
	}
	return frame_of;
}

uint32_t vp_frames_text(struct vp_frames *frames, const char *text)
{
	return vp_intern_string(&frames->texts, text);
}
