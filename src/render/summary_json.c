/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/naming.h"
#include "analyze/common/table.h"
#include "analyze/model/intervals.h"
#include "analyze/profile/profile.h"
#include "analyze/profile/resolve.h"
#include "analyze/report/report.h"
#include "analyze/report/summary.h"
#include "base/buffer.h"
#include "base/clock_text.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "maps/maps.h"
#include "render/render_summary.h"
#include "schema/account_grade.h"
#include "schema/vm.h"
#include "store/recording.h"
#include "symbol/names.h"
#include "timeline/clock_map.h"

static void put_pcpus(const struct vp_summary *summary, struct vp_json *json)
{
	struct vp_table table = {0};

	vp_summary_table(summary, &table);
	vp_json_array(json, "streams");
	for (size_t row = 0; row < vp_table_rows(&table); row++) {
		vp_json_object(json, NULL);
		for (size_t i = 0; i < table.columns.count; i++)
			vp_json_count(json, table.columns.at[i].key,
				      table.cells.at[row * table.columns.count + i].count);
		vp_json_object_end(json);
	}
	vp_json_array_end(json);
	vp_table_deinit(&table);
}

static void put_map_notes(const struct vp_maps *maps, struct vp_json *json)
{
	vp_json_array(json, "notes");
	vp_vec_each (&maps->notes, note) {
		VP_AUTO_FREE char *raw = vp_maps_string(maps, *note);
		VP_AUTO_FREE char *clean = vp_text_cleaned(raw);
		vp_json_text(json, NULL, clean);
	}
	vp_json_array_end(json);
}

static void summary_json_put_maps(const char *key, const char *state, const struct vp_names *names,
				  struct vp_json *json)
{
	vp_json_object(json, key);
	vp_json_text(json, "state", state);
	if (names) {
		const struct vp_maps *maps = vp_names_maps(names);
		vp_json_text(json, "source",
			     maps->from_memory ? "memory"
			     : maps->guest     ? "agent"
					       : "host");
		vp_json_count(json, "processes", maps->spaces.count);
		vp_json_count(json, "kernel_symbols", maps->kernel.count);
		vp_json_count(json, "mapped_files", maps->images.count);
		vp_json_count(json, "images", maps->images.count);
		put_map_notes(maps, json);
	}
	vp_json_object_end(json);
}

static void summary_json_put_clock(const char *key, const struct vp_clock_map *clock,
				   struct vp_json *json)
{
	static const char *const how[] = {[VP_CLOCK_UNKNOWN] = "unknown",
					  [VP_CLOCK_BY_DUMP] = "dump",
					  [VP_CLOCK_SAME] = "host",
					  [VP_CLOCK_BY_TSC] = "tsc"};

	vp_json_object(json, key);
	vp_json_text(json, "basis", how[clock->basis]);
	if (clock->basis != VP_CLOCK_UNKNOWN)
		vp_json_count(json, "error_ns", clock->error_ns);
	vp_json_object_end(json);
}

static void summary_json_put_vcpus(const struct vp_vm *vm, struct vp_json *json)
{
	vp_json_array(json, "vcpus");
	vp_vec_each (&vm->vcpus, vcpu) {
		vp_json_object(json, NULL);
		vp_json_count(json, "vcpu", vcpu->number);
		vp_json_count(json, "tid", vcpu->tid);
		vp_json_text(json, "pcpus", vcpu->pcpus);
		vp_json_object_end(json);
	}
	vp_json_array_end(json);
}

static void summary_json_put_vm(const struct vp_summary *summary, size_t index,
				struct vp_json *json)
{
	const struct vp_vm *vm = &summary->report.vms.at[index];

	vp_json_object(json, NULL);
	vp_json_text(json, "name", vm->name);
	vp_json_count(json, vm->has_domain ? "domain" : "pid",
		      vm->has_domain ? vm->domain : vm->pid);
	if (vm->has_domain)
		vp_json_text(json, "scheduler", vm->scheduler);
	vp_json_text(json, "uuid", vm->uuid[0] ? vm->uuid : NULL);
	summary_json_put_vcpus(vm, json);
	vp_json_bool(json, "started_during_recording", vp_summary_vm_started(summary, vm));
	vp_json_bool(json, "ended_during_recording", vm->end != 0);
	vp_json_text(json, "agent", vm->agent);
	vp_json_text(json, "memory", vm->memory);
	if (index < summary->report.naming.vms.count) {
		const struct vp_naming_machine *machine = &summary->report.naming.vms.at[index];
		summary_json_put_maps("maps", machine->state, machine->names, json);
		summary_json_put_clock("clock", &machine->clock, json);
		if (machine->agent_state) {
			summary_json_put_maps("agent_maps", machine->agent_state,
					      vp_names_fallback(machine->names), json);
			summary_json_put_clock("agent_clock", &machine->agent_clock, json);
		}
	}
	vp_json_object_end(json);
}

static void put_intervals(const struct vp_interval_recording *rec, struct vp_json *json)
{
	vp_json_object(json, "intervals");
	vp_json_text(json, "unit", rec->recipe.unit_name);
	vp_json_count(json, "lost", rec->lost);
	vp_json_count(json, "width", rec->recipe.width);
	vp_json_count(json, "count", rec->rows.count);
	vp_json_count(json, "partial", vp_interval_partial(rec));
	vp_json_array(json, "events");
	vp_vec_each (&rec->recipe.events, event)
		vp_json_text(json, NULL, event->name);
	vp_json_array_end(json);
	vp_json_object_end(json);
}

static void summary_json_put_about(const struct vp_report *report, struct vp_json *json)
{
	const struct vp_recording *recording = &report->recording;

	vp_json_text(json, "path", report->path);
	vp_json_text(json, "tool", recording->tool);
	vp_json_text(json, "hostname", recording->hostname);
	vp_json_text(json, "kernel", recording->kernel);
	vp_json_text(json, "data_sources", recording->instruments);
	vp_json_text(json, "instruments", recording->instruments);
	vp_json_text(json, "sampling_event", recording->trigger);
	vp_json_text(json, "trigger", recording->trigger);
	vp_json_text(json, "guest_sampling", recording->guest_sampling);
	vp_json_count(json, "compression_level", recording->compression);
	vp_json_bool(json, "by_time", recording->by_time);
	vp_json_text(json, "unit", vp_recording_unit(recording));
	vp_json_text(json, "command", recording->command);
	bool has_period = vp_recording_has_period(recording);
	vp_json_count(json, "period_ns", has_period ? recording->period_ns : 0);
	vp_json_double(json, "rate_hz", has_period ? 1e9 / (double)recording->period_ns : 0);
	vp_json_double(json, "duration_s", report->duration);
	vp_json_count(json, "pcpus", recording->pcpus);
	if (recording->hypervisor_pcpus)
		vp_json_count(json, "hypervisor_pcpus", recording->hypervisor_pcpus);
	vp_json_count(json, "lost", report->lost);
	vp_json_bool(json, "interrupted", !recording->end);
	vp_json_count(json, "start_ns", recording->start);
	const struct vp_clock_text clock = {VP_CLOCK_FORM_RFC3339, recording->start,
					    recording->realtime_offset};
	char start[VP_CLOCK_TEXT_SIZE];
	if (recording->realtime_offset)
		vp_json_text(json, "start", vp_clock_text(&clock, recording->start, start));
	vp_json_count(json, "end_ns", recording->end);
	if (!recording->mode[0])
		return;
	vp_json_text(json, "mode", recording->mode);
	vp_json_text(json, "cause", recording->cause);
	vp_json_count(json, "begun_ns", recording->begun);
}

static void summary_json_put_routes(const struct vp_profile *profile, const char *key,
				    struct vp_json *json)
{
	vp_json_object(json, key);
	for (uint32_t route = 0; route < VP_ROUTES; route++)
		vp_json_count(json, vp_route_name(route), profile->routes[route]);
	vp_json_object_end(json);
}

/* Old keys are also written, for one more release. */
static void summary_json_put_samples(const struct vp_profile *profile, struct vp_json *json)
{
	vp_json_count(json, "guest_samples", profile->counts.guest_samples);
	summary_json_put_routes(profile, "attribution", json);
	summary_json_put_routes(profile, "routes", json);
}

void vp_render_summary_json(const struct vp_summary *summary, struct vp_buffer *out)
{
	const struct vp_report *report = &summary->report;
	struct vp_json json = vp_json_to(out);

	vp_json_pretty(&json, true);
	vp_json_answer(&json);
	summary_json_put_about(report, &json);
	put_pcpus(summary, &json);
	vp_json_count(&json, "vcpu_spans", summary->vcpu_spans);
	vp_json_count(&json, "hypervisor_events", summary->hypervisor_events);
	vp_json_count(&json, "hypervisor_events_lost", summary->hypervisor_events_lost);
	vp_json_count(&json, "account_lost", summary->account_lost);
	if (vp_recording_has_instrument(&summary->report.recording, "account"))
		vp_json_text(&json, "account_grade",
			     vp_account_grade_name(summary->report.recording.account_grade));
	if (summary->has_intervals)
		put_intervals(&summary->intervals, &json);
	summary_json_put_maps("host_maps", report->naming.host.state, report->naming.host.names,
			      &json);
	vp_json_array(&json, "vms");
	for (size_t i = 0; i < report->vms.count; i++)
		summary_json_put_vm(summary, i, &json);
	vp_json_array_end(&json);
	summary_json_put_samples(&report->profile, &json);
	vp_json_array(&json, "notes");
	vp_vec_each (vp_summary_notes(summary), note)
		vp_json_text(&json, NULL, *note);
	vp_json_array_end(&json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}
