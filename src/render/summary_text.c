/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <string.h>

#include "analyze/common/naming.h"
#include "analyze/common/table.h"
#include "analyze/model/intervals.h"
#include "analyze/profile/profile.h"
#include "analyze/profile/resolve.h"
#include "analyze/report/report.h"
#include "analyze/report/summary.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "maps/maps.h"
#include "render/render_intervals.h"
#include "render/render_report.h"
#include "render/render_summary.h"
#include "render/render_table.h"
#include "schema/account_grade.h"
#include "schema/vm.h"
#include "schema/weighting.h"
#include "store/recording.h"
#include "symbol/names.h"
#include "timeline/clock_map.h"

/* Number of notes of a symbol map printed without -v. */
enum { SHOWN_NOTES = 5 };

static void put_trigger(const struct vp_recording *recording, struct vp_buffer *out)
{
	char period[VP_DURATION_SIZE];

	if (recording->weighting == VP_WEIGHTING_EVENTS && recording->events)
		vp_buffer_printf(out, "Sampling:    %s, every %" PRIu64 " events\n",
				 recording->trigger, recording->events);
	else if (!vp_recording_has_period(recording))
		vp_buffer_printf(out, "Sampling:    %s\n", recording->trigger);
	else
		vp_buffer_printf(out,
				 "Sampling:    %s, every %s (%.1f samples per second and pCPU)%s\n",
				 recording->trigger, vp_text_duration(recording->period_ns, period),
				 1e9 / (double)recording->period_ns,
				 recording->by_time ? "" : "; idle pCPUs are not sampled");
	if (recording->weighting == VP_WEIGHTING_TIME)
		vp_buffer_string(out,
				 "Weights:     by time: ns since the pCPU's previous sample\n");
	if (recording->weighting == VP_WEIGHTING_EVENTS)
		vp_buffer_printf(out, "Weights:     by %s, not by time\n", recording->trigger);
}

static void put_plan(const struct vp_interval_recording *rec, struct vp_buffer *out)
{
	VP_AUTO_FREE char *plan = vp_render_intervals_plan(rec);

	vp_buffer_printf(out, "Intervals:   %s\nEvents:      ", plan);
	vp_vec_each (&rec->recipe.events, event)
		vp_buffer_printf(out, "%s%s", event == rec->recipe.events.at ? "" : ", ",
				 event->name);
	vp_buffer_string(out, "\n");
}

/* Times are CLOCK_MONOTONIC, as in vperf script. */
static void put_flight(const struct vp_recording *recording, struct vp_buffer *out)
{
	if (!recording->mode[0])
		return;
	vp_buffer_printf(out, "Mode:        %s recorder", recording->mode);
	if (recording->end)
		vp_buffer_printf(out, "; it covers %.6f to %.6f s, the recorder started at %.6f s",
				 (double)recording->start / 1e9, (double)recording->end / 1e9,
				 (double)recording->begun / 1e9);
	vp_buffer_printf(out, "\nSnapshot:    %s\n",
			 recording->end ? recording->cause
					: "none yet: records are in the recorder's memory");
}

/* Meaning of the grade for the accuracy of the numbers. */
static const char *grade_text(enum vp_account_grade grade)
{
	static const char *const texts[VP_ACCOUNT_GRADES] = {
	    [VP_ACCOUNT_EXACT] = "exact: each exit is timed",
	    [VP_ACCOUNT_SAMPLED] = "sampled: exits are counted, frequent ones timed 1 in N",
	    [VP_ACCOUNT_STATES] = "states: scheduling is exact, guest and kernel by samples, no "
				  "exits"};

	return texts[grade];
}

static void summary_text_put_head(const struct vp_summary *summary, struct vp_buffer *out)
{
	const struct vp_report *report = &summary->report;
	const struct vp_recording *recording = &report->recording;

	vp_buffer_printf(out, "Recording:   %s (vperf %s)\n", report->path, recording->tool);
	char date[VP_TEXT_DATE_SIZE];
	if (recording->realtime_offset)
		vp_buffer_printf(
		    out, "Recorded:    %s\n",
		    vp_text_date(recording->start + (uint64_t)recording->realtime_offset, date));
	vp_buffer_printf(out, "Host:        %s, kernel %s, %u pCPU%s", recording->hostname,
			 recording->kernel, recording->pcpus, recording->pcpus == 1 ? "" : "s");
	if (recording->hypervisor_pcpus)
		vp_buffer_printf(out, "; hypervisor: %u pCPU%s", recording->hypervisor_pcpus,
				 recording->hypervisor_pcpus == 1 ? "" : "s");
	vp_buffer_string(out, "\n");
	if (vp_recording_has_instrument(recording, "profile"))
		put_trigger(recording, out);
	if (recording->guest_sampling[0])
		vp_buffer_printf(out, "Guests:      sampled separately: %s\n",
				 recording->guest_sampling);
	if (vp_recording_has_instrument(recording, "account") && !report->vms.count)
		vp_buffer_string(out, "Account:     no VM ran: a profile of the host\n");
	else if (vp_recording_has_instrument(recording, "account"))
		vp_buffer_printf(out,
				 "Account:     vCPU time by state, %s; %" PRIu64 " records lost\n",
				 grade_text(recording->account_grade), summary->account_lost);
	if (summary->has_trace)
		vp_buffer_printf(out, "Trace:       %" PRIu64 " events, %" PRIu64 " lost\n",
				 summary->events, summary->events_lost);
	if (summary->has_intervals)
		put_plan(&summary->intervals, out);
	if (recording->compression)
		vp_buffer_printf(out, "Compression: zstd, level %u\n", recording->compression);
	vp_buffer_printf(out, "Duration:    %.3f s%s\n", report->duration,
			 recording->end ? "" : " (interrupted)");
	put_flight(recording, out);
	if (recording->command[0])
		vp_buffer_printf(out, "Command:     %s\n", recording->command);
	if (vp_recording_has_instrument(recording, "profile"))
		vp_buffer_printf(out, "Samples:     %" PRIu64 " records lost\n", report->lost);
	vp_buffer_string(out, "\n");
}

static void summary_text_put_clock(const struct vp_clock_map *clock, struct vp_buffer *out)
{
	static const char *const how[] = {
	    [VP_CLOCK_UNKNOWN] = "unknown",
	    [VP_CLOCK_BY_DUMP] = "by the time of the dump",
	    [VP_CLOCK_SAME] = "the host's",
	    [VP_CLOCK_BY_TSC] = "by TSC",
	};

	char error[VP_DURATION_SIZE];

	vp_buffer_printf(out, "    clock: %s", how[clock->basis]);
	if (clock->basis != VP_CLOCK_UNKNOWN)
		vp_buffer_printf(out, ", error at most %s",
				 vp_text_duration(clock->error_ns, error));
	vp_buffer_string(out, "\n");
}

/* Most guests have no agent: its error is printed only if names are missing. */
static const char *agent_text(const struct vp_vm *vm, bool verbose)
{
	static const char none[] = "no agent reachable";

	if (!vm->agent[0])
		return "not asked";
	if (verbose || strncmp(vm->agent, none, sizeof(none) - 1) != 0 ||
	    strncmp(vm->memory, "ok", 2) != 0)
		return vm->agent;
	return "none (not needed: names come from guest memory)";
}

/* `whose`: the writer of the map, if it is to be printed; `names` may be NULL. */
static void summary_text_put_maps(const char *whose, const char *state,
				  const struct vp_names *names, bool verbose, struct vp_buffer *out)
{
	vp_buffer_printf(out, "    symbol map%s: %s\n", whose, state);
	if (!names)
		return;
	const struct vp_maps *maps = vp_names_maps(names);
	vp_buffer_printf(out, "    %zu process%s, %zu kernel symbols, %zu mapped file%s\n",
			 maps->spaces.count, maps->spaces.count == 1 ? "" : "es",
			 maps->kernel.count, maps->images.count,
			 maps->images.count == 1 ? "" : "s");
	for (size_t i = 0; i < maps->notes.count && (verbose || i < SHOWN_NOTES); i++) {
		VP_AUTO_FREE char *text = vp_maps_string(maps, maps->notes.at[i]);
		vp_buffer_string(out, "    note: ");
		vp_text_clean(text, strlen(text), out);
		vp_buffer_string(out, "\n");
	}
	if (!verbose && maps->notes.count > SHOWN_NOTES)
		vp_buffer_printf(out, "    note: %zu more (-v lists them)\n",
				 maps->notes.count - SHOWN_NOTES);
}

static void summary_text_put_vm(const struct vp_summary *summary, const struct vp_vm *vm,
				size_t number, bool verbose, struct vp_buffer *out)
{
	vp_buffer_printf(out, "\nVM '%s': %s%s%s, %zu vCPU%s%s%s\n", vm->name,
			 vp_vm_location(vm, (char[32]){""}), vm->uuid[0] ? ", uuid " : "", vm->uuid,
			 vm->vcpus.count, vm->vcpus.count == 1 ? "" : "s",
			 vp_summary_vm_started(summary, vm) ? ", started during the recording" : "",
			 vm->end ? ", ended during the recording" : "");
	vp_buffer_printf(out, "    agent: %s\n", agent_text(vm, verbose));
	vp_buffer_printf(out, "    guest memory: %s\n", vm->memory[0] ? vm->memory : "not read");
	if (!summary->has_more || number >= summary->report.naming.vms.count)
		return;
	const struct vp_naming_machine *machine = &summary->report.naming.vms.at[number];
	const struct vp_names *names = machine->names;
	const char *whose = !names                              ? ""
			    : vp_names_maps(names)->from_memory ? " from guest memory"
								: " from the agent";
	summary_text_put_maps(whose, machine->state, names, verbose, out);
	if (names)
		summary_text_put_clock(&machine->clock, out);
	if (!machine->agent_state)
		return;
	summary_text_put_maps(" from the agent", machine->agent_state, vp_names_fallback(names),
			      verbose, out);
	if (vp_names_fallback(names))
		summary_text_put_clock(&machine->agent_clock, out);
}

static void summary_text_put_routes(const struct vp_profile *profile, struct vp_buffer *out)
{
	if (!profile->counts.guest_samples)
		return;
	vp_buffer_string(out, "\nGuest samples attributed by:");
	for (uint32_t route = 0; route < VP_ROUTES; route++)
		if (profile->routes[route])
			vp_buffer_printf(out, " %s %.2f%%", vp_route_name(route),
					 100.0 * (double)profile->routes[route] /
					     (double)profile->counts.guest_samples);
	vp_buffer_string(out, "\n");
}

void vp_render_summary_text(const struct vp_summary *summary, size_t width, bool verbose,
			    struct vp_buffer *out)
{
	const struct vp_report *report = &summary->report;
	struct vp_table table = {0};

	summary_text_put_head(summary, out);
	vp_summary_table(summary, &table);
	vp_render_table_fitted(&table, verbose ? 0 : width, false, out);
	vp_table_deinit(&table);
	if (summary->vcpu_spans)
		vp_buffer_printf(out, "\n%" PRIu64 " vCPU state events\n", summary->vcpu_spans);
	if (summary->hypervisor_events)
		vp_buffer_printf(out, "\n%" PRIu64 " events of the hypervisor, %" PRIu64 " lost\n",
				 summary->hypervisor_events, summary->hypervisor_events_lost);
	if (summary->has_more) {
		vp_buffer_string(out, "\nHost:\n");
		summary_text_put_maps("", report->naming.host.state, report->naming.host.names,
				      verbose, out);
	}
	for (size_t i = 0; i < report->vms.count; i++)
		summary_text_put_vm(summary, &report->vms.at[i], i, verbose, out);
	summary_text_put_routes(&report->profile, out);
	vp_buffer_string(out, "\n");
	vp_render_notes(vp_summary_notes(summary), verbose, out);
}
