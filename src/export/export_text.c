/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export/export_text.h"

#include <inttypes.h>

#include "analyze/profile/frame.h"
#include "analyze/trace/tracks.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "schema/records.h"
#include "schema/vm.h"

void vp_export_texts_deinit(struct vp_export_texts *texts)
{
	vp_buffer_deinit(&texts->bytes);
	vp_vec_deinit(&texts->slots);
}

void vp_export_texts_make(struct vp_export_texts *texts, const struct vp_export *export,
			  uint32_t number)
{
	struct vp_export_text_slot slot = {.at = texts->bytes.size};

	if (number == VP_NONE)
		vp_buffer_string(&texts->bytes, texts->unknown);
	else
		texts->put(texts->text(export, number), &texts->bytes);
	slot.size = texts->bytes.size - slot.at;
	vp_buffer_fill(&texts->bytes, 0, VP_PUT_BLOCK);
	texts->bytes.size -= VP_PUT_BLOCK;
	while (texts->slots.count <= (uint32_t)(number + 1))
		vp_vec_push(&texts->slots, ((struct vp_export_text_slot){.size = SIZE_MAX}));
	texts->slots.at[number + 1] = slot;
}

void vp_export_texts_append(struct vp_export_texts *texts, const struct vp_export *export,
			    uint32_t number, struct vp_buffer *out)
{
	char *at = vp_buffer_room(out, vp_export_texts_room(texts, export, number));

	vp_buffer_end(out, vp_export_texts_put(texts, number, at));
}

const char *vp_export_kind(const struct vp_export *export, uint32_t kind)
{
	(void)export;
	return vp_kind_name(kind);
}

void vp_export_put_json(const char *text, struct vp_buffer *out)
{
	struct vp_buffer quoted = {0};
	struct vp_json json = vp_json_to(&quoted);

	vp_json_text(&json, NULL, text);
	vp_buffer_append(out, quoted.bytes + 1, quoted.size - 2);
	vp_buffer_deinit(&quoted);
}

void vp_export_put_clean(const char *text, struct vp_buffer *out)
{
	vp_text_clean(text, strlen(text), out);
}

bool vp_export_is_code(const struct vp_frame *frame)
{
	return frame->kind == VP_KIND_KERNEL || frame->kind == VP_KIND_USER ||
	       frame->kind == VP_NONE;
}

uint32_t vp_export_vm_id(const struct vp_export *export, uint32_t vm)
{
	return vp_vm_id(&export->vms.at[vm]);
}

void vp_export_put_thread(const struct vp_export *export, const struct vp_track_slice *period,
			  struct vp_buffer *out)
{
	const char *name = period->has_vcpu ? vp_tracks_vm(export->tracks, period->vm)
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
