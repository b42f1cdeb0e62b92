/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of a frame and of its owners in exports. */
#ifndef VP_EXPORT_EXPORT_TEXT_H
#define VP_EXPORT_EXPORT_TEXT_H

#include "analyze/report/export.h"
#include "base/buffer.h"
#include "base/vec.h"

/* Where a text is. */
struct vp_export_made {
	size_t at;
	size_t size; /* SIZE_MAX: it is not made yet */
};

/* Texts as a format has them, by their number: made once each. */
struct vp_export_texts {
	/* Owner of these numbers: vp_export_text(), vp_export_vm() or vp_export_kind(). */
	const char *(*text)(const struct vp_export *export, uint32_t number);
	/* Appends the text as the format has it. */
	void (*put)(const char *text, struct vp_buffer *out);
	const char *unknown;                /* what the format has for VP_NONE */
	struct vp_buffer bytes;             /* of all that were made, and a block more */
	VP_VEC(struct vp_export_made) made; /* by number + 1: that of VP_NONE is the first */
};
void vp_export_texts_deinit(struct vp_export_texts *texts);
/* Makes what VP_NONE or the number stands for. */
void vp_export_texts_make(struct vp_export_texts *texts, const struct vp_export *export,
			  uint32_t number);
/* How much room it needs where it is put; it is made then. */
static inline size_t vp_export_texts_room(struct vp_export_texts *texts,
					  const struct vp_export *export, uint32_t number)
{
	uint32_t index = number + 1;

	if (index >= texts->made.count || texts->made.at[index].size == SIZE_MAX)
		vp_export_texts_make(texts, export, number);
	return texts->made.at[index].size + VP_PUT_BLOCK;
}
/* Puts what is made. */
static inline char *vp_export_texts_put(const struct vp_export_texts *texts, uint32_t number,
					char *at)
{
	const struct vp_export_made *made = &texts->made.at[(uint32_t)(number + 1)];

	return vp_put_blocks(at, texts->bytes.bytes + made->at, made->size);
}
/* Makes and appends it. */
void vp_export_texts_append(struct vp_export_texts *texts, const struct vp_export *export,
			    uint32_t number, struct vp_buffer *out);

/* Name of an enum vp_kind: its texts are for all. */
const char *vp_export_kind(const struct vp_export *export, uint32_t kind);

/* For `put`: as a JSON string, without its quotes; without what a terminal obeys. */
void vp_export_put_json(const char *text, struct vp_buffer *out);
void vp_export_put_clean(const char *text, struct vp_buffer *out);

/* Whether it is code: it is a process's, or a kernel's. */
bool vp_export_is_code(const struct vp_frame *frame);
/* The number of a VM in records, of its index in the report's list. */
uint32_t vp_export_vm_id(const struct vp_export *export, uint32_t vm);
/* "VM/vCPU", or of other threads "comm/tid"; cleaned. */
void vp_export_put_thread(const struct vp_export *export, const struct vp_track_slice *period,
			  struct vp_buffer *out);

#endif
