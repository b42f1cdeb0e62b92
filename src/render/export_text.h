/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What exporters call a frame and those that it belongs to. */
#ifndef VP_RENDER_EXPORT_TEXT_H
#define VP_RENDER_EXPORT_TEXT_H

#include "analyze/export.h"

/* Texts as a format has them, by their number: made once each. */
struct vp_export_texts {
	/* Appends the text as the format has it. */
	void (*put)(const char *text, struct vp_buffer *out);
	VP_VEC(struct vp_buffer) at;
};

void vp_export_texts_deinit(struct vp_export_texts *texts);
/* Appends the text of that number; of VP_NONE, `unknown`, which is nobody's. */
void vp_export_texts_put(struct vp_export_texts *texts, const struct vp_export *export,
			 uint32_t text, const char *unknown, struct vp_buffer *out);

/* Whether it is code: it is a process's, or a kernel's. */
bool vp_export_is_code(const struct vp_frame *frame);
/* The VM that runs the frame's code, or NULL: the host does. */
const char *vp_export_machine(const struct vp_export *export, const struct vp_frame *frame);
/* The number of a VM in records, of its place in the report's list. */
uint32_t vp_export_vm_id(const struct vp_export *export, uint32_t vm);
/* "VM/vCPU", or of other threads "comm/tid"; cleaned. */
void vp_export_put_thread(const struct vp_export *export, const struct vp_period *period,
			  struct vp_buffer *out);

#endif
