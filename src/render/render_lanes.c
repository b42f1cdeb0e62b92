/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/render_lanes.h"

#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "render/render_table.h"
#include "schema/records.h"
#include "store/packet.h"

/* Columns of text; longer names move the rest of their line. */
enum { TIME_WIDTH = 15, THREAD_WIDTH = 16, VCPU_WIDTH = 9, STATE_WIDTH = 10 };

const char *vp_lane_state_name(enum vp_lane_state state)
{
	static const char *const names[] = {"running",   "idle",   "guest",  "work",
					    "preempted", "waking", "halted", "waiting"};

	_Static_assert(VP_ARRAY_SIZE(names) == VP_LANE_STATES, "a name for each state");
	return names[state];
}

const char *vp_lane_certainty_name(enum vp_lane_certainty certainty)
{
	return certainty == VP_LANE_EXACT       ? "exact"
	       : certainty == VP_LANE_UNCERTAIN ? "uncertain"
						: NULL;
}

static const char *lane_name(const struct vp_period *period, const struct vp_lanes_layout *layout)
{
	return layout->of_threads ? "thread" : period->lane == VP_LANE_PCPU ? "pcpu" : "vcpu";
}

static void render_lanes_put_name(const char *name, struct vp_buffer *out)
{
	vp_text_clean(name ? name : "-", name ? strlen(name) : 1, out);
}

static void render_lanes_put_guest(const struct vp_period *period, struct vp_buffer *out)
{
	if (!period->has_guest)
		return;
	render_lanes_put_name(period->guest_comm, out);
	vp_buffer_printf(out, "/%" PRIu32, period->guest_tid);
}

static void put_certainty(const struct vp_period *period, struct vp_buffer *out)
{
	const char *certainty = vp_lane_certainty_name(period->certainty);

	if (certainty)
		vp_buffer_printf(out, "%s ", certainty);
	if (period->switches)
		vp_buffer_printf(out, "switches=%" PRIu32 " ", period->switches);
}

static void render_lanes_put_vcpu(const struct vp_period *period,
				  const struct vp_lanes_layout *layout, struct vp_buffer *out)
{
	if (!period->has_vcpu)
		return;
	render_lanes_put_name(vp_lanes_vm(layout->lanes, period->vm), out);
	if (period->vcpu == VP_VCPU_UNKNOWN)
		vp_buffer_string(out, "/-");
	else
		vp_buffer_printf(out, "/%" PRIu32, period->vcpu);
}

/* Spaces up to `width` bytes from `start` on, and at least one. */
static void render_lanes_pad(size_t start, size_t width, struct vp_buffer *out)
{
	do
		vp_buffer_string(out, " ");
	while (out->size < start + width);
}

/* The names of the columns, and the words that do not explain themselves. */
static void render_lanes_put_head(const struct vp_period *period,
				  const struct vp_lanes_layout *layout, int time,
				  struct vp_buffer *out)
{
	bool of_pcpu = period->lane == VP_LANE_PCPU;

	vp_buffer_printf(out, "#%*s   length pCPU  ", time - 1, "start");
	if (layout->of_threads)
		vp_buffer_printf(out, "%-*s", THREAD_WIDTH, "guest thread");
	vp_buffer_printf(out, "%-*s%-*s%s\n", VCPU_WIDTH, "VM/vCPU", STATE_WIDTH, "state",
			 of_pcpu              ? "host thread"
			 : layout->of_threads ? "by=thief"
					      : "guest thread, by=thief");
	if (!of_pcpu)
		vp_buffer_string(out, "# exact: the guest thread ran throughout; "
				      "uncertain: at the start, then switches=N\n");
}

static void render_lanes_put_text(const struct vp_period *period,
				  const struct vp_lanes_layout *layout, struct vp_buffer *out)
{
	char length[VP_DURATION_SIZE], at[VP_CLOCK_TEXT_SIZE];

	vp_clock_text(&layout->clock, period->begin, at);
	if (layout->is_first)
		render_lanes_put_head(period, layout,
				      strlen(at) > TIME_WIDTH ? (int)strlen(at) : TIME_WIDTH, out);
	vp_buffer_printf(out, "%*s %8s ", TIME_WIDTH, at,
			 vp_text_duration(period->end - period->begin, length));
	if (period->pcpu == VP_NO_PCPU)
		vp_buffer_string(out, "[-]   ");
	else
		vp_buffer_printf(out, "[%03" PRIu32 "] ", period->pcpu);
	size_t start = out->size;
	if (layout->of_threads) {
		render_lanes_put_guest(period, out);
		render_lanes_pad(start, THREAD_WIDTH, out);
		start = out->size;
	}
	render_lanes_put_vcpu(period, layout, out);
	render_lanes_pad(start, VCPU_WIDTH, out);
	vp_buffer_printf(out, "%-*s", STATE_WIDTH, vp_lane_state_name(period->state));
	if (period->lane == VP_LANE_PCPU && period->tid) {
		render_lanes_put_name(period->comm, out);
		vp_buffer_printf(out, "/%" PRIu32 " ", period->tid);
	}
	if (!layout->of_threads && period->has_guest) {
		render_lanes_put_guest(period, out);
		vp_buffer_string(out, " ");
	}
	put_certainty(period, out);
	if (period->has_thief) {
		vp_buffer_string(out, "by=");
		render_lanes_put_name(period->thief_comm, out);
		vp_buffer_printf(out, "/%" PRIu32 " ", period->thief_tid);
	}
	while (out->bytes[out->size - 1] == ' ')
		out->size--;
	vp_buffer_string(out, "\n");
}

static void render_lanes_put_json_known(struct vp_json *json, const char *key, bool known,
					uint64_t number)
{
	if (known)
		vp_json_count(json, key, number);
	else
		vp_json_null(json, key);
}

static void render_lanes_put_json(const struct vp_period *period,
				  const struct vp_lanes_layout *layout, struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	if (layout->is_first)
		vp_json_answer(&json);
	else
		vp_json_object(&json, NULL);
	vp_json_text(&json, "type", layout->in_export ? "period" : "slice");
	vp_json_text(&json, "track", lane_name(period, layout));
	vp_json_text(&json, "lane", lane_name(period, layout));
	vp_json_count(&json, "begin_ns", period->begin);
	vp_json_count(&json, "end_ns", period->end);
	render_lanes_put_json_known(&json, "pcpu", period->pcpu != VP_NO_PCPU, period->pcpu);
	vp_json_text(&json, "state", vp_lane_state_name(period->state));
	vp_json_count(&json, "tid", period->tid);
	vp_json_text(&json, "comm", period->comm);
	vp_json_text(&json, "vm", period->has_vcpu ? vp_lanes_vm(layout->lanes, period->vm) : NULL);
	render_lanes_put_json_known(
	    &json, "vcpu", period->has_vcpu && period->vcpu != VP_VCPU_UNKNOWN, period->vcpu);
	render_lanes_put_json_known(&json, "guest_tid", period->has_guest, period->guest_tid);
	render_lanes_put_json_known(&json, "guest_pid", period->has_guest, period->guest_pid);
	vp_json_text(&json, "guest_comm", period->guest_comm);
	vp_json_text(&json, "certainty", vp_lane_certainty_name(period->certainty));
	vp_json_count(&json, "switches", period->switches);
	render_lanes_put_json_known(&json, "thief_tid", period->has_thief, period->thief_tid);
	vp_json_text(&json, "thief_comm", period->thief_comm);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

static void render_lanes_begin_csv(struct vp_buffer *out)
{
	vp_buffer_string(out,
			 "track,begin_ns,end_ns,pcpu,state,tid,comm,vm,vcpu,guest_tid,guest_pid,"
			 "guest_comm,certainty,switches,thief_tid,thief_comm,lane\n");
}

static void render_lanes_put_cell(const char *text, struct vp_buffer *out)
{
	struct vp_buffer clean = {0};

	if (text)
		vp_text_clean(text, strlen(text), &clean);
	vp_render_csv_field(vp_buffer_text(&clean), out);
	vp_buffer_string(out, ",");
	vp_buffer_deinit(&clean);
}

static void render_lanes_put_number(bool known, uint64_t number, struct vp_buffer *out)
{
	if (known)
		vp_buffer_count(out, number);
	vp_buffer_string(out, ",");
}

static void render_lanes_put_csv(const struct vp_period *period,
				 const struct vp_lanes_layout *layout, struct vp_buffer *out)
{
	render_lanes_put_cell(lane_name(period, layout), out);
	render_lanes_put_number(true, period->begin, out);
	render_lanes_put_number(true, period->end, out);
	render_lanes_put_number(period->pcpu != VP_NO_PCPU, period->pcpu, out);
	render_lanes_put_cell(vp_lane_state_name(period->state), out);
	render_lanes_put_number(true, period->tid, out);
	render_lanes_put_cell(period->comm, out);
	render_lanes_put_cell(period->has_vcpu ? vp_lanes_vm(layout->lanes, period->vm) : NULL,
			      out);
	render_lanes_put_number(period->has_vcpu && period->vcpu != VP_VCPU_UNKNOWN, period->vcpu,
				out);
	render_lanes_put_number(period->has_guest, period->guest_tid, out);
	render_lanes_put_number(period->has_guest, period->guest_pid, out);
	render_lanes_put_cell(period->guest_comm, out);
	render_lanes_put_cell(vp_lane_certainty_name(period->certainty), out);
	render_lanes_put_number(true, period->switches, out);
	render_lanes_put_number(period->has_thief, period->thief_tid, out);
	render_lanes_put_cell(period->thief_comm, out);
	render_lanes_put_cell(lane_name(period, layout), out);
	out->bytes[out->size - 1] = '\n';
}

const struct vp_lanes_format *vp_lanes_format_named(const char *name)
{
	static const struct vp_lanes_format formats[] = {
	    {"text", NULL, render_lanes_put_text},
	    {"jsonl", NULL, render_lanes_put_json},
	    {"csv", render_lanes_begin_csv, render_lanes_put_csv}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}
