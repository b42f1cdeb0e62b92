/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/export_text.h"

#include <inttypes.h>

#include "base/text.h"

void vp_export_texts_deinit(struct vp_export_texts *texts)
{
	vp_vec_each (&texts->at, text)
		vp_buffer_deinit(text);
	vp_vec_deinit(&texts->at);
}

void vp_export_texts_put(struct vp_export_texts *texts, const struct vp_export *export,
			 uint32_t text, const char *unknown, struct vp_buffer *out)
{
	if (text == VP_NONE) {
		vp_buffer_string(out, unknown);
		return;
	}
	while (texts->at.count <= text)
		vp_vec_push(&texts->at, (struct vp_buffer){0});
	struct vp_buffer *made = &texts->at.at[text];
	if (!made->room) {
		texts->put(vp_intern_text(export->texts, text), made);
		(void)vp_buffer_text(made); /* there is room, even of an empty one */
	}
	vp_buffer_append(out, made->bytes, made->size);
}

bool vp_export_is_code(const struct vp_frame *frame)
{
	return frame->kind == VP_KIND_OS || frame->kind == VP_KIND_USER || frame->kind == VP_NONE;
}

const char *vp_export_machine(const struct vp_export *export, const struct vp_frame *frame)
{
	return frame->kind == VP_KIND_VM ? NULL : vp_export_vm(export, frame->vm);
}

uint32_t vp_export_vm_id(const struct vp_export *export, uint32_t vm)
{
	return vp_vm_id(&export->report->vms.at[vm]);
}

void vp_export_put_thread(const struct vp_export *export, const struct vp_period *period,
			  struct vp_buffer *out)
{
	const char *name = period->has_vcpu ? vp_lanes_vm(export->lanes, period->vm)
			   : period->comm   ? period->comm
					    : "-";

	vp_text_clean(name, strlen(name), out);
	if (!period->has_vcpu)
		vp_buffer_printf(out, "/%" PRIu32, period->tid);
	else if (period->vcpu == VP_VCPU_UNKNOWN)
		vp_buffer_string(out, "/-");
	else
		vp_buffer_printf(out, "/%" PRIu32, period->vcpu);
}
