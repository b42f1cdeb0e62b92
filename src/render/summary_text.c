/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "render/intervals.h"
#include "render/summary.h"
#include "render/table.h"

static void put_trigger(const struct vp_recording *recording, struct vp_buffer *out)
{
	vp_buffer_printf(out,
			 "Trigger:     %s, every %" PRIu64 " ns (%.1f samples per second and "
			 "pCPU)%s\n",
			 recording->trigger, recording->period_ns,
			 1e9 / (double)recording->period_ns,
			 recording->by_time ? "" : "; not on idle pCPUs");
}

static void put_plan(const struct vp_interval_book *book, struct vp_buffer *out)
{
	VP_AUTO_FREE char *plan = vp_render_intervals_plan(book);

	vp_buffer_printf(out, "Intervals:   %s\nEvents:      ", plan);
	vp_vec_each (&book->recipe.events, event)
		vp_buffer_printf(out, "%s%s", event == book->recipe.events.at ? "" : ", ",
				 event->name);
	vp_buffer_string(out, "\n");
}

static void put_head(const struct vp_summary *summary, struct vp_buffer *out)
{
	const struct vp_report *report = &summary->report;
	const struct vp_recording *recording = &report->recording;

	vp_buffer_printf(out, "Recording:   %s (vperf %s)\n", report->path, recording->tool);
	vp_buffer_printf(out, "Host:        %s, kernel %s, %u pCPUs\n", recording->hostname,
			 recording->kernel, recording->pcpus);
	if (vp_recording_has_instrument(recording, "profile"))
		put_trigger(recording, out);
	if (vp_recording_has_instrument(recording, "account"))
		vp_buffer_string(out, "Account:     of the vCPUs' time\n");
	if (summary->has_intervals)
		put_plan(&summary->intervals, out);
	vp_buffer_printf(out, "Duration:    %.3f s%s\n", report->duration,
			 recording->end ? "" : " (interrupted)");
	if (recording->command[0])
		vp_buffer_printf(out, "Command:     %s\n", recording->command);
	vp_buffer_printf(out, "Lost:        %" PRIu64 " records\n\n", report->lost);
}

static void put_clock(const struct vp_clock_map *clock, struct vp_buffer *out)
{
	static const char *const how[] = {
	    [VP_CLOCK_UNKNOWN] = "unknown",
	    [VP_CLOCK_BY_DUMP] = "by the time of the dump",
	    [VP_CLOCK_SAME] = "the host's",
	    [VP_CLOCK_BY_TSC] = "by the time-stamp counters",
	};

	vp_buffer_printf(out, "    clock: %s", how[clock->basis]);
	if (clock->basis != VP_CLOCK_UNKNOWN)
		vp_buffer_printf(out, ", error at most %" PRIu64 " ns", clock->error_ns);
	vp_buffer_string(out, "\n");
}

/* `whose`: who wrote it, if that is to be said; `names` may be NULL. */
static void put_maps(const char *whose, const char *state, const struct vp_names *names,
		     struct vp_buffer *out)
{
	vp_buffer_printf(out, "    map text%s: %s\n", whose, state);
	if (!names)
		return;
	const struct vp_maps *maps = vp_names_maps(names);
	vp_buffer_printf(out, "    %zu processes, %zu kernel symbols, %zu images\n",
			 maps->spaces.count, maps->kernel.count, maps->images.count);
	vp_vec_each (&maps->notes, note) {
		VP_AUTO_FREE char *text = vp_maps_string(maps, *note);
		vp_buffer_string(out, "    note: ");
		vp_text_clean(text, strlen(text), out);
		vp_buffer_string(out, "\n");
	}
}

static void put_vm(const struct vp_summary *summary, const struct vp_vm *vm, size_t number,
		   struct vp_buffer *out)
{
	vp_buffer_printf(out, "\nVM '%s': process %u%s%s, %zu vCPU%s%s%s\n", vm->name, vm->pid,
			 vm->uuid[0] ? ", uuid " : "", vm->uuid, vm->vcpus.count,
			 vm->vcpus.count == 1 ? "" : "s",
			 vp_summary_vm_started(summary, vm) ? ", started during the recording" : "",
			 vm->end ? ", ended during the recording" : "");
	vp_buffer_printf(out, "    agent: %s\n", vm->agent[0] ? vm->agent : "not asked");
	vp_buffer_printf(out, "    guest memory: %s\n", vm->memory[0] ? vm->memory : "not read");
	if (!summary->has_more || number >= summary->report.naming.vms.count)
		return;
	const struct vp_naming_machine *machine = &summary->report.naming.vms.at[number];
	const struct vp_names *names = machine->names;
	const char *whose = !names                              ? ""
			    : vp_names_maps(names)->from_memory ? " from its memory"
								: " of its agent";
	put_maps(whose, machine->state, names, out);
	if (names)
		put_clock(&machine->clock, out);
	if (!machine->agent_state)
		return;
	put_maps(" of its agent", machine->agent_state, vp_names_second(names), out);
	if (vp_names_second(names))
		put_clock(&machine->agent_clock, out);
}

static void put_routes(const struct vp_profile *profile, struct vp_buffer *out)
{
	if (!profile->counts.guest_samples)
		return;
	vp_buffer_string(out, "\nGuest samples named by:");
	for (uint32_t route = 0; route < VP_ROUTES; route++)
		if (profile->routes[route])
			vp_buffer_printf(out, " %s %.2f%%", vp_route_name(route),
					 100.0 * (double)profile->routes[route] /
					     (double)profile->counts.guest_samples);
	vp_buffer_string(out, "\n");
}

void vp_render_summary_text(const struct vp_summary *summary, struct vp_buffer *out)
{
	const struct vp_report *report = &summary->report;
	struct vp_table table = {0};

	put_head(summary, out);
	vp_summary_table(summary, &table);
	vp_render_table_text(&table, false, out);
	vp_table_deinit(&table);
	if (summary->vcpu_spans)
		vp_buffer_printf(out, "\n%" PRIu64 " states of vCPUs as events\n",
				 summary->vcpu_spans);
	if (summary->has_more) {
		vp_buffer_string(out, "\nHost:\n");
		put_maps("", report->naming.host.state, report->naming.host.names, out);
	}
	for (size_t i = 0; i < report->vms.count; i++)
		put_vm(summary, &report->vms.at[i], i, out);
	put_routes(&report->profile, out);
	vp_buffer_string(out, "\n");
	vp_vec_each (vp_summary_notes(summary), note)
		vp_buffer_printf(out, "# %s\n", *note);
}
