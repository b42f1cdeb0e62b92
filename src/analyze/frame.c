/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/frame.h"

const char *vp_kind_name(uint32_t kind)
{
	static const char *const names[] = {[VP_KIND_OS] = "os",
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

/* The frame without the columns that are not told apart. */
static struct vp_frame masked(unsigned columns, const struct vp_frame *frame)
{
	struct vp_frame result = *frame;
	bool labelled = frame->kind != VP_KIND_OS && frame->kind != VP_KIND_USER;

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

/* What differs between samples of one frame is unknown of the frame. */
static void merge_columns(struct vp_frame *known, const struct vp_frame *frame)
{
	uint32_t *mine[] = {&known->kind, &known->function, &known->module, &known->process,
			    &known->pid,  &known->vm,       &known->vcpu};
	const uint32_t other[] = {frame->kind, frame->function, frame->module, frame->process,
				  frame->pid,  frame->vm,       frame->vcpu};

	for (size_t i = 0; i < VP_ARRAY_SIZE(mine); i++)
		if (*mine[i] != other[i])
			*mine[i] = VP_NONE;
}

uint32_t vp_frames_add(struct vp_frames *frames, const struct vp_frame *frame)
{
	struct vp_frame key = masked(frames->columns, frame);
	bool inserted;
	uint32_t number = vp_key_set_add(&frames->keys, &key, &inserted);

	if (inserted)
		vp_vec_push(&frames->at, *frame);
	else
		merge_columns(&frames->at.at[number], frame);
	return number;
}

uint32_t vp_frames_text(struct vp_frames *frames, const char *text)
{
	return vp_intern_string(&frames->texts, text);
}
