/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page's timeline: the slices of each track, in time order. */
#include "analyze/report/report.h"
#include "analyze/trace/track_store.h"
#include "analyze/trace/tracks.h"
#include "base/buffer.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/vec.h"
#include "render/page_parts.h"
#include "render/render_tracks.h"
#include "schema/vm.h"
#include "store/packet.h"

/* Index of the VM in the page's list, from 1; 0: no VM, or not listed. */
static uint32_t vm_index(const struct vp_report *report, uint32_t vm)
{
	const struct vp_vm *found = vm == VP_NONE ? NULL : vp_vms_find(&report->vms, vm);

	return found ? (uint32_t)(found - report->vms.at) + 1 : 0;
}

/* The parts of a merged slice: ns in its own state, number of other states, then state and ns of
 * each. */
static void put_parts(const struct vp_stored_slice *slice, struct vp_buffer *packed)
{
	uint64_t others = 0;

	for (int state = 0; state < VP_TRACK_STATES; state++)
		others += state != (int)slice->state && slice->parts[state] >= 1;
	vp_page_pack(packed, slice->main);
	vp_page_pack(packed, others);
	for (int state = 0; state < VP_TRACK_STATES; state++) {
		if (state == (int)slice->state || slice->parts[state] < 1)
			continue;
		vp_page_pack(packed, (uint64_t)state);
		vp_page_pack(packed, (uint64_t)slice->parts[state]);
	}
}

/* Per slice: ns since the previous slice's end (for the first: since `begin`), length in ns, state,
 * label + 1, pCPU + 1 (0: none), number of merged slices - 1 and, if there are any, its parts. */
static void put_slices(const struct vp_stored_track *track, uint64_t begin, struct vp_json *json)
{
	struct vp_buffer packed = {0};

	vp_vec_each (&track->slices, slice) {
		vp_page_pack(&packed, slice->begin - begin);
		vp_page_pack(&packed, slice->end - slice->begin);
		vp_page_pack(&packed, slice->state);
		vp_page_pack(&packed, (uint64_t)(uint32_t)(slice->label + 1));
		vp_page_pack(&packed, slice->pcpu == VP_NO_PCPU ? 0 : (uint64_t)slice->pcpu + 1);
		vp_page_pack(&packed, slice->merged - 1);
		if (slice->merged > 1)
			put_parts(slice, &packed);
		begin = slice->end;
	}
	vp_json_count(json, "slices", track->slices.count);
	vp_page_put_packed(json, "data", &packed);
}

static void put_track(const struct vp_track_store *tracks, const struct vp_stored_track *track,
		      const struct vp_report *report, uint64_t begin, struct vp_json *json)
{
	static const char *const kinds[] = {
	    [VP_STORED_PCPU] = "pcpu", [VP_STORED_VCPU] = "vcpu", [VP_STORED_THREAD] = "thread"};

	vp_json_line(json);
	vp_json_object(json, NULL);
	vp_json_text(json, "kind", kinds[track->kind]);
	vp_json_count(json, "number", track->number);
	vp_json_count(json, "vm", track->kind == VP_STORED_PCPU ? 0 : vm_index(report, track->vm));
	vp_json_text(json, "name",
		     track->name == VP_NONE ? NULL : vp_intern_text(&tracks->texts, track->name));
	put_slices(track, begin, json);
	vp_json_object_end(json);
}

static void put_labels(const struct vp_track_store *tracks, const struct vp_report *report,
		       struct vp_json *json)
{
	vp_json_array(json, "labels");
	vp_vec_each (&tracks->labels, label) {
		vp_json_text(json, NULL, vp_intern_text(&tracks->texts, label->text));
		vp_json_count(json, NULL, vm_index(report, label->vm));
	}
	vp_json_array_end(json);
	vp_json_array(json, "states");
	for (int state = 0; state < VP_TRACK_STATES; state++)
		vp_json_text(json, NULL, vp_track_state_name((enum vp_track_state)state));
	vp_json_array_end(json);
}

void vp_page_put_tracks(const struct vp_track_store *tracks, const struct vp_report *report,
			struct vp_json *json)
{
	uint64_t begin = UINT64_MAX, end = 0;

	vp_vec_each (&tracks->tracks, track) {
		if (!track->slices.count)
			continue;
		const struct vp_stored_slice *first = &track->slices.at[0];
		const struct vp_stored_slice *last = &track->slices.at[track->slices.count - 1];
		begin = first->begin < begin ? first->begin : begin;
		end = last->end > end ? last->end : end;
	}
	vp_json_object(json, "timeline");
	vp_json_count(json, "beginNs", end ? begin : 0);
	vp_json_count(json, "lengthNs", end ? end - begin : 0);
	vp_json_count(json, "shortestNs", tracks->shortest);
	vp_json_bool(json, "leftOut", tracks->left_out);
	put_labels(tracks, report, json);
	vp_json_array(json, "tracks");
	vp_vec_each (&tracks->tracks, track)
		if (track->slices.count)
			put_track(tracks, track, report, begin, json);
	vp_json_array_end(json);
	vp_json_object_end(json);
}
