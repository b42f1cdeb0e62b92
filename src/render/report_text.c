/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/common/health.h"
#include "analyze/common/notes.h"
#include "analyze/common/table.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/profile.h"
#include "analyze/profile/totals.h"
#include "analyze/profile/view.h"
#include "analyze/report/report.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/text_wrap.h"
#include "base/vec.h"
#include "render/call_graph.h"
#include "render/render_report.h"
#include "render/render_table.h"
#include "schema/exit_reason.h"
#include "schema/weighting.h"
#include "store/recording.h"

static void put_total(const struct vp_report *report, const struct vp_profile_part *part,
		      struct vp_buffer *out)
{
	const struct vp_recording *recording = &report->recording;
	char amount[VP_AMOUNT_SIZE];

	if (recording->weighting == VP_WEIGHTING_TIME)
		vp_buffer_printf(out, "Total time: %s   ",
				 vp_report_amount(report, part->samples, amount));
	else
		vp_buffer_printf(out, "Total %s: %" PRIu64 "   ", vp_recording_unit(recording),
				 part->samples);
}

void vp_render_report_shares(const struct vp_report *report, const struct vp_profile_part *part,
			     struct vp_buffer *out)
{
	bool guest = report->profile.view == VP_VIEW_GUEST;
	double kernel = vp_report_percent(part, part->kinds[VP_KIND_KERNEL]);
	double user = vp_report_percent(part, part->kinds[VP_KIND_USER]);
	double idle = vp_report_percent(part, part->kinds[VP_KIND_IDLE]);
	double steal = vp_report_percent(part, part->kinds[VP_KIND_STEAL]);
	double vm = vp_report_percent(part, part->kinds[VP_KIND_VM]);

	put_total(report, part, out);
	if (!guest)
		vp_buffer_printf(out, "VM %.2f%%   ", vm);
	vp_buffer_printf(out, "kernel %.2f%%   user %.2f%%   idle %.2f%%", kernel, user, idle);
	if (guest)
		vp_buffer_printf(out, "   steal %.2f%%", steal);
	vp_buffer_string(out, "\n\n");
}

/* The sum with its unit; ticks have no unit. */
static const char *put_count(const struct vp_report *report, uint64_t weight,
			     char text[VP_AMOUNT_SIZE])
{
	if (report->recording.weighting == VP_WEIGHTING_TIME)
		return vp_report_amount(report, weight, text);
	snprintf(text, VP_AMOUNT_SIZE, "%" PRIu64, weight);
	return text;
}

static void put_reasons(const struct vp_report *report, const struct vp_profile_part *part,
			struct vp_buffer *out)
{
	const struct vp_profile *profile = &report->profile;
	const struct vp_profile_row *row = vp_profile_rows(profile, part);
	bool any = false;

	for (size_t left = vp_report_rows(report, part); left; left--, row++) {
		if (!row->reasons)
			continue;
		const char *label = vp_profile_text(profile, row->function);
		char amount[VP_AMOUNT_SIZE];
		vp_buffer_printf(out, "%s  %s:", any ? "" : "\nLast VM exit before stolen time:\n",
				 label ? label : "[steal]");
		any = true;
		for (uint32_t i = 0; i < row->reasons; i++) {
			const struct vp_profile_reason *reason =
			    &profile->reasons.at[row->first_reason + i];
			char name[VP_EXIT_NAME_SIZE];
			vp_buffer_printf(out, "%s %s %s", i ? "," : "",
					 reason->exit.known
					     ? vp_exit_reason_name(reason->exit.vendor,
								   reason->exit.reason, name)
					     : "unknown",
					 put_count(report, reason->count, amount));
		}
		vp_buffer_string(out, "\n");
	}
}

/* The table, with each row's call tree below the row. */
static void put_graphs(const struct vp_report *report, const struct vp_profile_part *part,
		       const struct vp_buffer *table, struct vp_buffer *out)
{
	size_t rows = vp_report_rows(report, part), lines = 0;
	const char *at = table->bytes, *end = table->bytes + table->size, *next;

	for (const char *byte = at; byte < end; byte++)
		lines += *byte == '\n';
	for (size_t line = 0; line < lines; line++, at = next) {
		next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
		vp_buffer_append(out, at, (size_t)(next - at));
		if (line + rows >= lines)
			vp_render_call_graph(
			    report, part, (uint32_t)(part->first_row + line + rows - lines), out);
	}
}

static void report_text_put_part(const struct vp_report *report, const struct vp_profile_part *part,
				 bool colour, struct vp_buffer *out)
{
	struct vp_table table = {0};
	struct vp_buffer text = {0}, shares = {0};

	if (part->vcpu != VP_NONE)
		vp_buffer_printf(out, "vCPU %u\n", part->vcpu);
	vp_render_report_shares(report, part, &shares);
	vp_text_wrap(&shares, report->width, true, out);
	vp_buffer_deinit(&shares);
	vp_report_table(report, part, &table);
	if (report->graph.shown && report->options.chains) {
		vp_render_table_fitted(&table, report->width, colour, &text);
		put_graphs(report, part, &text, out);
		vp_buffer_deinit(&text);
	} else {
		vp_render_table_fitted(&table, report->width, colour, out);
	}
	put_reasons(report, part, out);
	size_t hidden = vp_report_hidden(report, part);
	if (hidden)
		vp_buffer_printf(out, "(%zu more row%s: -v shows all)\n", hidden,
				 hidden == 1 ? "" : "s");
	vp_table_deinit(&table);
}

void vp_render_notes(const vp_sentences *notes, bool verbose, struct vp_buffer *out)
{
	vp_sentences folded = {0};

	if (!verbose)
		vp_notes_fold(notes, &folded);
	vp_vec_each (verbose ? notes : &folded, note)
		vp_buffer_printf(out, "# %s\n", *note);
	vp_vec_each (&folded, note)
		free(*note);
	vp_vec_deinit(&folded);
}

void vp_render_report_text(const struct vp_report *report, bool colour, struct vp_buffer *out)
{
	const struct vp_recording *recording = &report->recording;
	const char *vm = vp_report_vm(report, &report->profile.parts.at[0]);
	char period[VP_DURATION_SIZE], date[VP_TEXT_DATE_SIZE];

	vp_buffer_printf(out, "# vperf report of '%s': view %s%s%s\n", report->path,
			 vp_view_of(report->profile.view)->name, vm ? " of VM " : "", vm ? vm : "");
	vp_buffer_printf(out, "# host %s, kernel %s, %u pCPU%s", recording->hostname,
			 recording->kernel, recording->pcpus, recording->pcpus == 1 ? "" : "s");
	if (recording->weighting == VP_WEIGHTING_EVENTS && recording->events)
		vp_buffer_printf(out, ", sampled by %s every %" PRIu64 " events",
				 recording->trigger, recording->events);
	else if (recording->trigger[0]) /* the recording may have no samples */
		vp_buffer_printf(out, ", sampled by %s", recording->trigger);
	if (recording->trigger[0] && vp_recording_has_period(recording))
		vp_buffer_printf(out, " every %s", vp_text_duration(recording->period_ns, period));
	vp_buffer_printf(out, ", %.3f s%s", report->duration,
			 report->begin > recording->start ? " (--time)" : "");
	if (recording->realtime_offset)
		vp_buffer_printf(
		    out, " from %s",
		    vp_text_date(report->begin + (uint64_t)recording->realtime_offset, date));
	vp_buffer_string(out, "\n");
	if (recording->guest_sampling[0])
		vp_buffer_printf(out, "# guests sampled separately: %s\n",
				 recording->guest_sampling);
	vp_render_notes(&report->notes, report->verbose, out);
	vp_vec_each (&report->profile.parts, part) {
		vp_buffer_string(out, "\n");
		report_text_put_part(report, part, colour, out);
	}
}

void vp_render_report_csv(const struct vp_report *report, bool colour, struct vp_buffer *out)
{
	vp_vec_each (&report->profile.parts, part) {
		struct vp_table table = {0};
		vp_report_table(report, part, &table);
		vp_render_table_csv(&table, part == report->profile.parts.at, out);
		vp_table_deinit(&table);
	}
}
