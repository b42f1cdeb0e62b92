/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts of a frame and its owner in exports. */
#ifndef VP_EXPORT_EXPORT_TEXT_H
#define VP_EXPORT_EXPORT_TEXT_H

#include "analyze/report/export.h"
#include "base/buffer.h"
#include "base/vec.h"

/* Position of a formatted text in `bytes`. */
struct vp_export_text_slot {
	size_t at;
	size_t size; /* SIZE_MAX: not formatted yet */
};

/* Texts formatted for an export, cached by number. */
struct vp_export_texts {
	/* Source of the texts: vp_export_text(), vp_export_vm() or vp_export_kind(). */
	const char *(*text)(const struct vp_export *export, uint32_t number);
	/* Appends the text in the format's syntax. */
	void (*put)(const char *text, struct vp_buffer *out);
	const char *unknown;                      /* text for VP_NONE */
	struct vp_buffer bytes;                   /* all formatted texts, plus a block of padding */
	VP_VEC(struct vp_export_text_slot) slots; /* by number + 1; the first is for VP_NONE */
};
void vp_export_texts_deinit(struct vp_export_texts *texts);
/* Formats the text with that number, or VP_NONE. */
void vp_export_texts_make(struct vp_export_texts *texts, const struct vp_export *export,
			  uint32_t number);
/* Space that it needs; formats it if necessary. */
static inline size_t vp_export_texts_room(struct vp_export_texts *texts,
					  const struct vp_export *export, uint32_t number)
{
	uint32_t index = number + 1;

	if (index >= texts->slots.count || texts->slots.at[index].size == SIZE_MAX)
		vp_export_texts_make(texts, export, number);
	return texts->slots.at[index].size + VP_PUT_BLOCK;
}
/* Copies the formatted text. */
static inline char *vp_export_texts_put(const struct vp_export_texts *texts, uint32_t number,
					char *at)
{
	const struct vp_export_text_slot *slot = &texts->slots.at[(uint32_t)(number + 1)];

	return vp_put_blocks(at, texts->bytes.bytes + slot->at, slot->size);
}
/* Formats and appends the text. */
void vp_export_texts_append(struct vp_export_texts *texts, const struct vp_export *export,
			    uint32_t number, struct vp_buffer *out);

/* Name of an enum vp_kind; independent of the export. */
const char *vp_export_kind(const struct vp_export *export, uint32_t kind);

/* For `put`: a JSON string without its quotes, cleaned. */
void vp_export_put_json(const char *text, struct vp_buffer *out);
void vp_export_put_clean(const char *text, struct vp_buffer *out);

/* Whether the frame is code of a process or kernel. */
bool vp_export_is_code(const struct vp_frame *frame);
/* The recording number of a VM, by its index in the report. */
uint32_t vp_export_vm_id(const struct vp_export *export, uint32_t vm);
/* "VM/vCPU", or for other threads "comm/tid"; cleaned. */
void vp_export_put_thread(const struct vp_export *export, const struct vp_track_slice *period,
			  struct vp_buffer *out);

#endif
