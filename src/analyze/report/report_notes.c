/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/report_notes.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/account/account_recording.h"
#include "analyze/common/naming.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/profile.h"
#include "analyze/profile/resolve.h"
#include "analyze/profile/stack.h"
#include "analyze/profile/view.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "maps/maps.h"
#include "schema/vm.h"
#include "schema/weighting.h"
#include "store/recording.h"
#include "symbol/names.h"
#include "timeline/clock_map.h"

#define NOTE(report, ...) vp_vec_push(&(report)->notes, vp_format(__VA_ARGS__))

/* Adds a note about the unit that percentages refer to. */
static void note_weights(struct vp_report *report)
{
	const struct vp_recording *recording = &report->recording;
	uint64_t samples = report->profile.counts.samples;

	if (recording->weighting == VP_WEIGHTING_TIME)
		NOTE(report,
		     "%" PRIu64
		     " samples of event '%s', weighted by time: each counts for the time "
		     "since the previous sample of its pCPU",
		     samples, recording->trigger);
	if (recording->weighting == VP_WEIGHTING_EVENTS)
		NOTE(report,
		     "%" PRIu64
		     " samples of event '%s', weighted by its count: each counts for the "
		     "events since the previous sample, not for time",
		     samples, recording->trigger);
}

static void note_profile(struct vp_report *report)
{
	const struct vp_profile *profile = &report->profile;
	uint64_t with_code = 0;
	char text[VP_AMOUNT_SIZE], whole[VP_AMOUNT_SIZE];

	note_weights(report);
	vp_vec_each (&profile->parts, part) {
		with_code += part->kinds[VP_KIND_KERNEL] + part->kinds[VP_KIND_USER];
	}
	if (!profile->frames)
		NOTE(report, "%s",
		     profile->counts.ticks ? "no samples in the recording match the options"
					   : "the recording has no samples");
	if (profile->view == VP_VIEW_UNIFIED)
		with_code += profile->counts.guest_samples;
	NOTE(report, "unresolved: %s of %s in code have no symbol (%.2f%%)",
	     vp_report_amount(report, profile->unattributed, text),
	     vp_report_amount(report, with_code, whole),
	     with_code ? 100.0 * (double)profile->unattributed / (double)with_code : 0.0);
	if (profile->counts.filled)
		NOTE(report,
		     "event '%s' does not count on idle pCPUs: %s without samples count as idle",
		     report->recording.trigger,
		     vp_report_amount(report, profile->counts.filled, text));
	if (profile->counts.late)
		NOTE(report,
		     "%" PRIu64
		     " sample%s taken late and charged to the code that ran at that time "
		     "(%.2f%% of all samples)",
		     profile->counts.late, profile->counts.late == 1 ? " was" : "s were",
		     100.0 * (double)profile->counts.late / (double)profile->counts.ticks);
	if (profile->counts.no_root &&
	    profile->counts.no_root >= profile->counts.guest_samples / 100)
		NOTE(report,
		     "%s of %s in guests have no CR3 (with Intel EPT, it is known from guest "
		     "memory only): their user-space samples have no process",
		     vp_report_amount(report, profile->counts.no_root, text),
		     vp_report_amount(report, profile->counts.guest_samples, whole));
}

static void note_incomplete(struct vp_report *report, const char *name, const struct vp_maps *maps)
{
	vp_vec_each (&maps->notes, note) {
		VP_AUTO_FREE char *text = vp_maps_string(maps, *note);
		VP_AUTO_FREE char *clean = vp_text_cleaned(text);
		NOTE(report, "%s: the symbol map is incomplete: %s", name, clean);
	}
}

/* `why`: the reason for a missing symbol map, or NULL; `remedy`: a clause, or "". */
static void note_machine(struct vp_report *report, const char *name,
			 const struct vp_naming_machine *machine, const char *why,
			 const char *remedy)
{
	if (!strcmp(machine->state, "complete"))
		return;
	if (!strcmp(machine->state, "incomplete"))
		note_incomplete(report, name, vp_names_maps(machine->names));
	else if (!strcmp(machine->state, "cut off"))
		NOTE(report, "%s: the symbol map is truncated: some names may be missing", name);
	else if (!machine->kernel)
		NOTE(report, "%s: no symbol map (%s): code is shown as addresses%s", name,
		     why ? why : machine->state, remedy);
}

/* Adds a note on how guest samples were attributed to processes. */
static void note_routes(struct vp_report *report)
{
	const struct vp_profile *profile = &report->profile;
	struct vp_buffer text = {0};
	uint64_t all = 0;

	for (uint32_t route = 0; route < VP_ROUTES; route++)
		all += profile->routes[route];
	for (uint32_t route = 0; route < VP_ROUTES; route++)
		if (profile->routes[route])
			vp_buffer_printf(&text, "%s%s %.2f%%", text.size ? ", " : "",
					 vp_route_name(route),
					 100.0 * (double)profile->routes[route] / (double)all);
	if (all)
		NOTE(report, "guest samples attributed by: %s", vp_buffer_text(&text));
	vp_buffer_deinit(&text);
}

/* Adds notes on how complete the call chains are. */
static void note_walks(struct vp_report *report)
{
	for (uint32_t walk = 0; walk < VP_WALKS; walk++) {
		const uint64_t *ends = report->profile.walks[walk];
		struct vp_buffer text = {0};
		uint64_t all = 0;
		for (uint32_t end = 0; end < VP_WALK_ENDS; end++)
			all += ends[end];
		for (uint32_t end = 0; end < VP_WALK_ENDS; end++)
			if (ends[end])
				vp_buffer_printf(&text, "%s%s %.2f%%", text.size ? ", " : "",
						 vp_walk_end_name(end),
						 100.0 * (double)ends[end] / (double)all);
		if (all)
			NOTE(report, "call chains of %s: %" PRIu64 ", %s", vp_walk_name(walk), all,
			     vp_buffer_text(&text));
		vp_buffer_deinit(&text);
	}
}

/* Adds a note on the source of a VM's symbols. */
static void note_source(struct vp_report *report, const struct vp_vm *vm,
			const struct vp_naming_machine *machine)
{
	if (!machine->names)
		return;
	bool from_memory = vp_names_maps(machine->names)->from_memory;
	const char *answer = !strncmp(vm->agent, "ok: ", 4) ? vm->agent + 4 : vm->agent;
	bool by_agent = !from_memory || vp_names_fallback(machine->names);
	NOTE(report, "VM '%s': names from %s%s%s%s", vm->name,
	     from_memory ? "guest memory" : "the guest agent",
	     from_memory && by_agent ? ", the rest from the guest agent" : "",
	     by_agent && answer[0] ? ": " : "", by_agent ? answer : "");
	if (vm->memory[0] && strncmp(vm->memory, "ok", 2) != 0)
		NOTE(report, "VM '%s': %s from guest memory: %s", vm->name,
		     from_memory ? "only some names" : "no names", vm->memory);
}

/* Adds a note on problems of a VM's symbol map. If it is missing, the reason is that of the agent,
 * or of reading guest memory, for example that the guest does not run Linux. */
static void note_vm(struct vp_report *report, const char *name, const struct vp_vm *vm,
		    const struct vp_naming_machine *machine)
{
	bool none = !strcmp(machine->state, "none");
	bool refused = none && vm->agent && vm->agent[0] && strncmp(vm->agent, "ok", 2) != 0;
	bool unread = none && vm->memory[0] && strncmp(vm->memory, "ok", 2) != 0;
	const char *advice = vp_recording_advice(
	    &report->recording,
	    "; 'vperf record' without --no-guest-memory reads names from guest memory");

	if (unread)
		advice = "; write a symbol map for 'vperf report --guest'";
	note_machine(report, name, machine,
		     refused  ? vm->agent
		     : unread ? vm->memory
			      : NULL,
		     advice);
}

static void note_machines(struct vp_report *report)
{
	const struct vp_naming *naming = &report->naming;

	note_machine(report, "the host", &naming->host, NULL, "");
	for (size_t i = 0; i < naming->vms.count; i++) {
		const struct vp_naming_machine *machine = &naming->vms.at[i];
		if (vp_vm_is_host(&report->vms.at[i])) /* the host's names apply */
			continue;
		VP_AUTO_FREE char *name = vp_format("VM '%s'", report->vms.at[i].name);
		note_vm(report, name, &report->vms.at[i], machine);
		note_source(report, &report->vms.at[i], machine);
		if (machine->names && machine->clock.basis == VP_CLOCK_UNKNOWN)
			NOTE(report,
			     "%s: the guest's clock cannot be converted to the host's: process "
			     "lifetimes are ignored",
			     name);
		if (machine->names && machine->clock.basis == VP_CLOCK_BY_DUMP)
			NOTE(report,
			     "%s: the guest's clock is accurate to 1 s only: processes with "
			     "shorter lifetimes may be confused",
			     name);
	}
	vp_vec_each (&naming->notes, note)
		NOTE(report, "%s", *note);
	char *used = vp_naming_files_used(naming);
	if (used)
		vp_vec_push(&report->notes, used);
}

static void note_storms(struct vp_report *report)
{
	if (vp_recording_has_instrument(&report->recording, "account"))
		vp_account_recording_note_storms(report->path, &report->notes);
}

void vp_report_note(struct vp_report *report)
{
	note_profile(report);
	note_storms(report);
	note_routes(report);
	note_walks(report);
	note_machines(report);
}

void vp_report_note_counts(struct vp_report *report)
{
	note_profile(report);
	note_routes(report);
	note_walks(report);
}

void vp_report_note_sources(struct vp_report *report)
{
	note_storms(report);
	note_machines(report);
}
