/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/render_tracks.h"

#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "render/render_table.h"
#include "schema/records.h"
#include "store/packet.h"

/* Column widths of text; a longer name shifts the rest of its line. */
enum { TIME_WIDTH = 15, THREAD_WIDTH = 16, VCPU_WIDTH = 9, STATE_WIDTH = 10 };

const char *vp_track_state_name(enum vp_track_state state)
{
	static const char *const names[] = {"running",   "idle",   "guest",  "work",
					    "preempted", "waking", "halted", "waiting"};

	_Static_assert(VP_ARRAY_SIZE(names) == VP_TRACK_STATES, "a name for each state");
	return names[state];
}

const char *vp_track_certainty_name(enum vp_track_certainty certainty)
{
	return certainty == VP_TRACK_EXACT       ? "exact"
	       : certainty == VP_TRACK_UNCERTAIN ? "uncertain"
						 : NULL;
}

static const char *track_name(const struct vp_track_slice *slice,
			      const struct vp_tracks_layout *layout)
{
	return layout->of_threads ? "thread" : slice->track == VP_TRACK_PCPU ? "pcpu" : "vcpu";
}

static void render_tracks_put_name(const char *name, struct vp_buffer *out)
{
	vp_text_clean(name ? name : "-", name ? strlen(name) : 1, out);
}

static void render_tracks_put_guest(const struct vp_track_slice *slice, struct vp_buffer *out)
{
	if (!slice->has_guest)
		return;
	render_tracks_put_name(slice->guest_comm, out);
	vp_buffer_printf(out, "/%" PRIu32, slice->guest_tid);
}

static void put_certainty(const struct vp_track_slice *slice, struct vp_buffer *out)
{
	const char *certainty = vp_track_certainty_name(slice->certainty);

	if (certainty)
		vp_buffer_printf(out, "%s ", certainty);
	if (slice->switches)
		vp_buffer_printf(out, "switches=%" PRIu32 " ", slice->switches);
}

static void render_tracks_put_vcpu(const struct vp_track_slice *slice,
				   const struct vp_tracks_layout *layout, struct vp_buffer *out)
{
	if (!slice->has_vcpu)
		return;
	render_tracks_put_name(vp_tracks_vm(layout->tracks, slice->vm), out);
	if (slice->vcpu == VP_VCPU_UNKNOWN)
		vp_buffer_string(out, "/-");
	else
		vp_buffer_printf(out, "/%" PRIu32, slice->vcpu);
}

/* Pads with spaces to `width` bytes from `start`, at least one. */
static void render_tracks_pad(size_t start, size_t width, struct vp_buffer *out)
{
	do
		vp_buffer_string(out, " ");
	while (out->size < start + width);
}

/* Column names, and a legend of the terms. */
static void render_tracks_put_head(const struct vp_track_slice *slice,
				   const struct vp_tracks_layout *layout, int time,
				   struct vp_buffer *out)
{
	bool of_pcpu = slice->track == VP_TRACK_PCPU;

	vp_buffer_printf(out, "#%*s   length pCPU  ", time - 1, "start");
	if (layout->of_threads)
		vp_buffer_printf(out, "%-*s", THREAD_WIDTH, "guest thread");
	vp_buffer_printf(out, "%-*s%-*s%s\n", VCPU_WIDTH, "VM/vCPU", STATE_WIDTH, "state",
			 of_pcpu              ? "host thread"
			 : layout->of_threads ? "by=thief"
					      : "guest thread, by=thief");
	if (!of_pcpu)
		vp_buffer_string(out, "# exact: the guest thread ran throughout\n"
				      "# uncertain: at the start, then switches=N\n");
}

static void render_tracks_put_text(const struct vp_track_slice *slice,
				   const struct vp_tracks_layout *layout, struct vp_buffer *out)
{
	char length[VP_DURATION_SIZE], at[VP_CLOCK_TEXT_SIZE];

	vp_clock_text(&layout->clock, slice->begin, at);
	if (layout->is_first)
		render_tracks_put_head(slice, layout,
				       strlen(at) > TIME_WIDTH ? (int)strlen(at) : TIME_WIDTH, out);
	vp_buffer_printf(out, "%*s %8s ", TIME_WIDTH, at,
			 vp_text_duration(slice->end - slice->begin, length));
	if (slice->pcpu == VP_NO_PCPU)
		vp_buffer_string(out, "[-]   ");
	else
		vp_buffer_printf(out, "[%03" PRIu32 "] ", slice->pcpu);
	size_t start = out->size;
	if (layout->of_threads) {
		render_tracks_put_guest(slice, out);
		render_tracks_pad(start, THREAD_WIDTH, out);
		start = out->size;
	}
	render_tracks_put_vcpu(slice, layout, out);
	render_tracks_pad(start, VCPU_WIDTH, out);
	vp_buffer_printf(out, "%-*s", STATE_WIDTH, vp_track_state_name(slice->state));
	if (slice->track == VP_TRACK_PCPU && slice->tid) {
		render_tracks_put_name(slice->comm, out);
		vp_buffer_printf(out, "/%" PRIu32 " ", slice->tid);
	}
	if (!layout->of_threads && slice->has_guest) {
		render_tracks_put_guest(slice, out);
		vp_buffer_string(out, " ");
	}
	put_certainty(slice, out);
	if (slice->has_thief) {
		vp_buffer_string(out, "by=");
		render_tracks_put_name(
		    vp_tracks_host_thread(layout->tracks, slice->thief_tid, slice->thief_comm),
		    out);
		vp_buffer_string(out, " ");
	}
	while (out->bytes[out->size - 1] == ' ')
		out->size--;
	vp_buffer_string(out, "\n");
}

static void render_tracks_put_json_known(struct vp_json *json, const char *key, bool known,
					 uint64_t number)
{
	if (known)
		vp_json_count(json, key, number);
	else
		vp_json_null(json, key);
}

static void render_tracks_put_json(const struct vp_track_slice *slice,
				   const struct vp_tracks_layout *layout, struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	if (layout->is_first)
		vp_json_answer(&json);
	else
		vp_json_object(&json, NULL);
	vp_json_text(&json, "type", layout->in_export ? "track_slice" : "slice");
	vp_json_text(&json, "track", track_name(slice, layout));
	vp_json_text(&json, "lane", track_name(slice, layout));
	vp_json_count(&json, "begin_ns", slice->begin);
	vp_json_count(&json, "end_ns", slice->end);
	render_tracks_put_json_known(&json, "pcpu", slice->pcpu != VP_NO_PCPU, slice->pcpu);
	vp_json_text(&json, "state", vp_track_state_name(slice->state));
	vp_json_count(&json, "tid", slice->tid);
	vp_json_text(&json, "comm", slice->comm);
	vp_json_text(&json, "vm", slice->has_vcpu ? vp_tracks_vm(layout->tracks, slice->vm) : NULL);
	render_tracks_put_json_known(
	    &json, "vcpu", slice->has_vcpu && slice->vcpu != VP_VCPU_UNKNOWN, slice->vcpu);
	render_tracks_put_json_known(&json, "guest_tid", slice->has_guest, slice->guest_tid);
	render_tracks_put_json_known(&json, "guest_pid", slice->has_guest, slice->guest_pid);
	vp_json_text(&json, "guest_comm", slice->guest_comm);
	vp_json_text(&json, "certainty", vp_track_certainty_name(slice->certainty));
	vp_json_count(&json, "switches", slice->switches);
	render_tracks_put_json_known(&json, "thief_tid", slice->has_thief, slice->thief_tid);
	vp_json_text(&json, "thief_comm", slice->thief_comm);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

static void render_tracks_begin_csv(struct vp_buffer *out)
{
	vp_buffer_string(out,
			 "track,begin_ns,end_ns,pcpu,state,tid,comm,vm,vcpu,guest_tid,guest_pid,"
			 "guest_comm,certainty,switches,thief_tid,thief_comm,lane\n");
}

static void render_tracks_put_cell(const char *text, struct vp_buffer *out)
{
	struct vp_buffer clean = {0};

	if (text)
		vp_text_clean(text, strlen(text), &clean);
	vp_render_csv_field(vp_buffer_text(&clean), out);
	vp_buffer_string(out, ",");
	vp_buffer_deinit(&clean);
}

static void render_tracks_put_number(bool known, uint64_t number, struct vp_buffer *out)
{
	if (known)
		vp_buffer_count(out, number);
	vp_buffer_string(out, ",");
}

static void render_tracks_put_csv(const struct vp_track_slice *slice,
				  const struct vp_tracks_layout *layout, struct vp_buffer *out)
{
	render_tracks_put_cell(track_name(slice, layout), out);
	render_tracks_put_number(true, slice->begin, out);
	render_tracks_put_number(true, slice->end, out);
	render_tracks_put_number(slice->pcpu != VP_NO_PCPU, slice->pcpu, out);
	render_tracks_put_cell(vp_track_state_name(slice->state), out);
	render_tracks_put_number(true, slice->tid, out);
	render_tracks_put_cell(slice->comm, out);
	render_tracks_put_cell(slice->has_vcpu ? vp_tracks_vm(layout->tracks, slice->vm) : NULL,
			       out);
	render_tracks_put_number(slice->has_vcpu && slice->vcpu != VP_VCPU_UNKNOWN, slice->vcpu,
				 out);
	render_tracks_put_number(slice->has_guest, slice->guest_tid, out);
	render_tracks_put_number(slice->has_guest, slice->guest_pid, out);
	render_tracks_put_cell(slice->guest_comm, out);
	render_tracks_put_cell(vp_track_certainty_name(slice->certainty), out);
	render_tracks_put_number(true, slice->switches, out);
	render_tracks_put_number(slice->has_thief, slice->thief_tid, out);
	render_tracks_put_cell(slice->thief_comm, out);
	render_tracks_put_cell(track_name(slice, layout), out);
	out->bytes[out->size - 1] = '\n';
}

const struct vp_tracks_format *vp_tracks_format_named(const char *name)
{
	static const struct vp_tracks_format formats[] = {
	    {"text", NULL, render_tracks_put_text},
	    {"jsonl", NULL, render_tracks_put_json},
	    {"csv", render_tracks_begin_csv, render_tracks_put_csv}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}
