/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/account/account_recording.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/resolve.h"
#include "analyze/profile/stack.h"
#include "analyze/profile/totals.h"
#include "analyze/profile/view.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "base/vec.h"
#include "maps/maps.h"
#include "schema/weighting.h"
#include "store/packet.h"
#include "store/trace_reader.h"
#include "symbol/names.h"
#include "timeline/clock_map.h"
#include "timeline/guests.h"

double vp_report_percent(const struct vp_profile_part *part, uint64_t samples)
{
	return part->samples ? 100.0 * (double)samples / (double)part->samples : 0.0;
}

const char *vp_report_amount(const struct vp_report *report, uint64_t weight,
			     char text[VP_AMOUNT_SIZE])
{
	_Static_assert(VP_AMOUNT_SIZE >= VP_DURATION_SIZE, "a duration fits");
	if (report->recording.weighting == VP_WEIGHTING_TIME)
		return vp_text_duration(weight, text);
	snprintf(text, VP_AMOUNT_SIZE, "%" PRIu64 " %s", weight,
		 vp_recording_unit(&report->recording));
	return text;
}

const char *vp_report_weight_key(const struct vp_report *report)
{
	static const char *const keys[] = {[VP_WEIGHTING_TICKS] = "samples",
					   [VP_WEIGHTING_TIME] = "ns",
					   [VP_WEIGHTING_EVENTS] = "events"};

	return keys[report->recording.weighting];
}

const char *vp_report_vm(const struct vp_report *report, const struct vp_profile_part *part)
{
	return part->vm == VP_NONE ? report->options.vm : report->vms.at[part->vm].name;
}

/* Sort order of rows: by own samples, or including callees. */
static uint64_t report_weight(const struct vp_report *report, const struct vp_profile_row *row)
{
	return report->options.by_callees ? row->total : row->samples;
}

size_t vp_report_rows(const struct vp_report *report, const struct vp_profile_part *part)
{
	const struct vp_profile_row *rows = vp_profile_rows(&report->profile, part);
	size_t count = 0;

	/* With call chains there are rows that only have samples of their callees. */
	while (count < part->rows && (!report->limit || count < report->limit) &&
	       (!report->options.chains || report_weight(report, &rows[count])) &&
	       vp_report_percent(part, report_weight(report, &rows[count])) >=
		   report->percent_limit)
		count++;
	return count;
}

size_t vp_report_hidden(const struct vp_report *report, const struct vp_profile_part *part)
{
	const struct vp_profile_row *rows = vp_profile_rows(&report->profile, part);
	size_t count = part->rows, shown = vp_report_rows(report, part);

	while (report->options.chains && count > shown && !report_weight(report, &rows[count - 1]))
		count--;
	return count - shown;
}

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

static void report_set_duration(struct vp_report *report)
{
	const struct vp_recording *recording = &report->recording;
	uint64_t start = recording->start ? recording->start : report->profile.first;
	uint64_t end = recording->end ? recording->end : report->profile.last;

	start = report->options.from > start ? report->options.from : start;
	end = report->options.to && report->options.to < end ? report->options.to : end;

	report->begin = start;
	report->duration = end > start ? (double)(end - start) / 1e9 : 0.0;
}

static bool report_is_wanted(const struct vp_profile_options *options, uint32_t pcpu)
{
	for (size_t i = 0; i < options->n_pcpus; i++)
		if ((uint32_t)options->pcpus[i] == pcpu)
			return true;
	return options->n_pcpus == 0;
}

/* Closes the streams of excluded pCPUs. Recordings without samples have no such streams; their
 * events are filtered elsewhere. */
static struct vp_error *choose_pcpus(struct vp_report *report, vp_stream_readers *streams)
{
	size_t kept = 0, count = streams->count;

	for (size_t i = 0; i < count; i++) {
		if (report_is_wanted(&report->options, vp_stream_cpu(streams->at[i])))
			streams->at[kept++] = streams->at[i];
		else
			vp_stream_free(streams->at[i]);
	}
	streams->count = kept;
	if (report->options.n_pcpus) {
		report->recording.pcpus = (uint32_t)kept;
		report->recording.records[VP_STREAM_PCPU] = 0; /* unknown for these pCPUs */
	}
	return kept || !count || !report->options.n_pcpus
		   ? NULL
		   : vp_error_new("the recording '%s' has none of the requested pCPUs",
				  report->path);
}

static void note_all(struct vp_report *report)
{
	note_profile(report);
	if (vp_recording_has_instrument(&report->recording, "account"))
		vp_account_recording_note_storms(report->path, &report->notes);
	note_routes(report);
	note_walks(report);
	note_machines(report);
}

/* Whether VMs must be searched for in the records: one is selected, and the list of VMs may be
 * incomplete because the recording was interrupted or the list was lost. */
static bool must_discover(const struct vp_naming_options *naming, const struct vp_report *report)
{
	const struct vp_profile_options *options = &report->options;
	bool asked = options->view == VP_VIEW_GUEST || options->vm || naming->maps.count ||
		     naming->kernels.count;

	return asked && (!report->recording.end || !report->vms.count);
}

static struct vp_error *report_make(const struct vp_naming_options *naming, const char *host,
				    struct vp_report *report)
{
	vp_stream_readers streams = {0};
	struct vp_health health = {.classes = VP_STREAMS_SAMPLES};

	if (must_discover(naming, report))
		VP_TRY(vp_guests_discover(host, &report->vms));
	VP_TRY(vp_trace_open(host, health.classes, &streams));
	struct vp_error *error =
	    vp_naming_load(naming, &report->recording, &report->vms, &streams, &report->naming);

	if (!error)
		error = choose_pcpus(report, &streams);
	if (!error)
		error = vp_profile_make(&report->options, &report->recording, &report->vms,
					&streams, &report->naming, &report->profile);
	if (!error) {
		vp_health_add(&streams, &health);
		report->lost = vp_health_lost(&health, &report->recording);
		vp_health_sentences(&health, &report->recording, &report->notes);
		if (!report->options.events_only)
			note_all(report);
		report_set_duration(report);
	}
	vp_health_deinit(&health);
	vp_trace_close(&streams);
	return error;
}

struct vp_error *vp_report_make(const struct vp_naming_options *naming,
				const struct vp_profile_options *options, struct vp_report *ret)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", naming->directory);

	*ret = (struct vp_report){.path = naming->directory, .options = *options};
	struct vp_error *error =
	    vp_recording_open(naming->directory, &ret->recording, &ret->vms, &ret->notes);
	if (!error && options->needs_chains && !ret->recording.chains)
		error = vp_error_new(
		    "the recording '%s' has no call chains%s", naming->directory,
		    vp_recording_advice(&ret->recording, ": record with 'vperf record -g'"));
	ret->options.chains &= ret->recording.chains;
	ret->options.by_callees &= ret->options.chains;
	if (!error)
		error = report_make(naming, host, ret);
	if (error)
		vp_report_deinit(ret);
	return error;
}

void vp_report_deinit(struct vp_report *report)
{
	vp_recording_deinit(&report->recording);
	vp_vms_deinit(&report->vms);
	vp_naming_deinit(&report->naming);
	vp_profile_deinit(&report->profile);
	vp_vec_each (&report->notes, note)
		free(*note);
	vp_vec_deinit(&report->notes);
}

static void add_weight_column(const struct vp_report *report, struct vp_table *table)
{
	const struct vp_recording *recording = &report->recording;
	const char *key = vp_report_weight_key(report);

	if (recording->weighting == VP_WEIGHTING_TIME)
		vp_table_column_add(table, key, "Time", "", VP_CELL_DURATION);
	else
		vp_table_column_add(table, key,
				    recording->weighting == VP_WEIGHTING_TICKS ? "Samples"
									       : recording->trigger,
				    "", VP_CELL_COUNT);
}

static void report_add_columns(const struct vp_report *report, struct vp_table *table)
{
	const struct vp_profile *profile = &report->profile;
	bool by_callees = report->options.by_callees;
	static const struct {
		enum vp_frame_column column;
		const char *key, *header;
		enum vp_cell_type type;
	} columns[] = {{VP_COLUMN_VM, "vm", "VM", VP_CELL_TEXT},
		       {VP_COLUMN_VCPU, "vcpu", "vCPU", VP_CELL_COUNT},
		       {VP_COLUMN_PROCESS, "process", "Process", VP_CELL_TEXT},
		       {VP_COLUMN_PID, "pid", "PID", VP_CELL_COUNT},
		       {VP_COLUMN_MODULE, "module", "Module", VP_CELL_TEXT},
		       {VP_COLUMN_FUNCTION, "function", "Function", VP_CELL_TEXT}};

	if (by_callees)
		vp_table_column_add(table, "children", "Children", "%", VP_CELL_PERCENT);
	vp_table_column_add(table, "percent", by_callees ? "Self" : "Percent", "%",
			    VP_CELL_PERCENT);
	add_weight_column(report, table);
	vp_table_column_add(table, "kind", "Kind", "", VP_CELL_TEXT);
	for (size_t i = 0; i < VP_ARRAY_SIZE(columns); i++)
		if (profile->columns & columns[i].column)
			vp_table_column_add(table, columns[i].key, columns[i].header, "",
					    columns[i].type);
}

static void add_count(struct vp_table *table, uint32_t number)
{
	vp_table_count(table, number == VP_NONE ? VP_CELL_NO_COUNT : number);
}

static const char *cell_text(const struct vp_profile *profile, const struct vp_profile_row *row,
			     unsigned column, unsigned label)
{
	bool labelled =
	    row->kind == VP_KIND_IDLE || row->kind == VP_KIND_STEAL || row->kind == VP_KIND_VM;

	if (column == label && labelled)
		return vp_profile_text(profile, row->function);
	return vp_profile_text(profile, column == VP_COLUMN_PROCESS ? row->process : row->module);
}

void vp_report_table(const struct vp_report *report, const struct vp_profile_part *part,
		     struct vp_table *table)
{
	const struct vp_profile *profile = &report->profile;
	const struct vp_profile_row *row = vp_profile_rows(profile, part);
	static const char *const least[] = {"module", "samples", "kind", "pid", "process", NULL};
	/* Idle and steal frames have no process: their label replaces the function, or another
	 * visible column if functions are hidden. */
	unsigned label = profile->columns & VP_COLUMN_FUNCTION  ? VP_COLUMN_FUNCTION
			 : profile->columns & VP_COLUMN_MODULE  ? VP_COLUMN_MODULE
			 : profile->columns & VP_COLUMN_PROCESS ? VP_COLUMN_PROCESS
								: 0;

	table->least = least;
	report_add_columns(report, table);
	for (size_t left = vp_report_rows(report, part); left; left--, row++) {
		if (report->options.by_callees)
			vp_table_percent(table, vp_report_percent(part, row->total));
		vp_table_percent(table, vp_report_percent(part, row->samples));
		vp_table_count(table, row->samples);
		vp_table_text(table, vp_kind_name(row->kind));
		if (profile->columns & VP_COLUMN_VM)
			vp_table_text(table,
				      row->vm == VP_NONE ? "host" : report->vms.at[row->vm].name);
		if (profile->columns & VP_COLUMN_VCPU)
			add_count(table, row->vcpu);
		if (profile->columns & VP_COLUMN_PROCESS)
			vp_table_text(table, cell_text(profile, row, VP_COLUMN_PROCESS, label));
		if (profile->columns & VP_COLUMN_PID)
			add_count(table, row->pid);
		if (profile->columns & VP_COLUMN_MODULE)
			vp_table_text(table, cell_text(profile, row, VP_COLUMN_MODULE, label));
		if (profile->columns & VP_COLUMN_FUNCTION)
			vp_table_text(table, vp_profile_text(profile, row->function));
	}
}
