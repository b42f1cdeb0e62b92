/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <json-c/json.h>
#include <string.h>

#include "base/text.h"
#include "render/summary.h"

static void add(struct json_object *object, const char *key, struct json_object *value)
{
	json_object_object_add(object, key, value);
}

static struct json_object *text(const char *value)
{
	return json_object_new_string(value);
}

static struct json_object *number(uint64_t value)
{
	return json_object_new_uint64(value);
}

static struct json_object *pcpus_json(const struct vp_summary *summary)
{
	struct json_object *pcpus = json_object_new_array();
	struct vp_table table = {0};

	vp_summary_table(summary, &table);
	for (size_t row = 0; row < vp_table_rows(&table); row++) {
		struct json_object *pcpu = json_object_new_object();
		for (size_t i = 0; i < table.columns.count; i++)
			add(pcpu, table.columns.at[i].key,
			    number(table.cells.at[row * table.columns.count + i].count));
		json_object_array_add(pcpus, pcpu);
	}
	vp_table_deinit(&table);
	return pcpus;
}

static struct json_object *notes_json(const struct vp_maps *maps)
{
	struct json_object *notes = json_object_new_array();

	vp_vec_each (&maps->notes, note) {
		VP_AUTO_FREE char *raw = vp_maps_string(maps, *note);
		VP_AUTO_FREE char *clean = vp_text_cleaned(raw);
		json_object_array_add(notes, text(clean));
	}
	return notes;
}

static struct json_object *maps_json(const char *state, const struct vp_names *names)
{
	struct json_object *object = json_object_new_object();

	add(object, "state", text(state));
	if (!names)
		return object;
	const struct vp_maps *maps = vp_names_maps(names);
	add(object, "source", text(maps->from_memory ? "memory" : maps->guest ? "agent" : "host"));
	add(object, "processes", number(maps->spaces.count));
	add(object, "kernel_symbols", number(maps->kernel.count));
	add(object, "images", number(maps->images.count));
	add(object, "notes", notes_json(maps));
	return object;
}

static struct json_object *clock_json(const struct vp_clock_map *clock)
{
	static const char *const how[] = {[VP_CLOCK_UNKNOWN] = "unknown",
					  [VP_CLOCK_BY_DUMP] = "dump",
					  [VP_CLOCK_SAME] = "host",
					  [VP_CLOCK_BY_TSC] = "tsc"};
	struct json_object *object = json_object_new_object();

	add(object, "basis", text(how[clock->basis]));
	if (clock->basis != VP_CLOCK_UNKNOWN)
		add(object, "error_ns", number(clock->error_ns));
	return object;
}

static struct json_object *vcpus_json(const struct vp_vm *vm)
{
	struct json_object *vcpus = json_object_new_array();

	vp_vec_each (&vm->vcpus, vcpu) {
		struct json_object *object = json_object_new_object();
		add(object, "vcpu", number(vcpu->number));
		add(object, "tid", number(vcpu->tid));
		json_object_array_add(vcpus, object);
	}
	return vcpus;
}

static struct json_object *vm_json(const struct vp_summary *summary, size_t index)
{
	const struct vp_vm *vm = &summary->report.vms.at[index];
	struct json_object *object = json_object_new_object();

	add(object, "name", text(vm->name));
	add(object, "pid", number(vm->pid));
	add(object, "uuid", vm->uuid[0] ? text(vm->uuid) : NULL);
	add(object, "vcpus", vcpus_json(vm));
	add(object, "started_during_recording",
	    json_object_new_boolean(vp_summary_vm_started(summary, vm)));
	add(object, "ended_during_recording", json_object_new_boolean(vm->end != 0));
	add(object, "agent", text(vm->agent));
	add(object, "memory", text(vm->memory));
	if (index < summary->report.naming.vms.count) {
		const struct vp_naming_machine *machine = &summary->report.naming.vms.at[index];
		add(object, "maps", maps_json(machine->state, machine->names));
		add(object, "clock", clock_json(&machine->clock));
		if (!machine->agent_state)
			return object;
		add(object, "agent_maps",
		    maps_json(machine->agent_state, vp_names_second(machine->names)));
		add(object, "agent_clock", clock_json(&machine->agent_clock));
	}
	return object;
}

static struct json_object *intervals_json(const struct vp_interval_book *book)
{
	struct json_object *object = json_object_new_object();
	struct json_object *events = json_object_new_array();

	add(object, "unit", text(book->recipe.unit_name));
	add(object, "lost", number(book->lost));
	add(object, "width", number(book->recipe.width));
	add(object, "count", number(book->rows.count));
	add(object, "partial", number(vp_interval_partial(book)));
	vp_vec_each (&book->recipe.events, event)
		json_object_array_add(events, text(event->name));
	add(object, "events", events);
	return object;
}

static void add_about(struct json_object *object, const struct vp_report *report)
{
	const struct vp_recording *recording = &report->recording;

	add(object, "path", text(report->path));
	add(object, "tool", text(recording->tool));
	add(object, "hostname", text(recording->hostname));
	add(object, "kernel", text(recording->kernel));
	add(object, "instruments", text(recording->instruments));
	add(object, "trigger", text(recording->trigger));
	add(object, "by_time", json_object_new_boolean(recording->by_time));
	add(object, "command", text(recording->command));
	add(object, "period_ns", number(recording->period_ns));
	add(object, "rate_hz", json_object_new_double(1e9 / (double)recording->period_ns));
	add(object, "duration_s", json_object_new_double(report->duration));
	add(object, "pcpus", number(recording->pcpus));
	add(object, "lost", number(report->lost));
	add(object, "interrupted", json_object_new_boolean(!recording->end));
}

void vp_render_summary_json(const struct vp_summary *summary, struct vp_buffer *out)
{
	const struct vp_report *report = &summary->report;
	struct json_object *object = json_object_new_object();
	struct json_object *vms = json_object_new_array();
	struct json_object *routes = json_object_new_object();
	struct json_object *notes = json_object_new_array();

	add_about(object, report);
	add(object, "streams", pcpus_json(summary));
	add(object, "vcpu_spans", number(summary->vcpu_spans));
	if (summary->has_intervals)
		add(object, "intervals", intervals_json(&summary->intervals));
	add(object, "host_maps", maps_json(report->naming.host.state, report->naming.host.names));
	for (size_t i = 0; i < report->vms.count; i++)
		json_object_array_add(vms, vm_json(summary, i));
	add(object, "vms", vms);
	add(object, "guest_samples", number(report->profile.guest_samples));
	for (uint32_t route = 0; route < VP_ROUTES; route++)
		add(routes, vp_route_name(route), number(report->profile.routes[route]));
	add(object, "routes", routes);
	vp_vec_each (vp_summary_notes(summary), note)
		json_object_array_add(notes, text(*note));
	add(object, "notes", notes);
	vp_buffer_string(out,
			 json_object_to_json_string_ext(
			     object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	vp_buffer_string(out, "\n");
	json_object_put(object);
}
