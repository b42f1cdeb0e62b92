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
