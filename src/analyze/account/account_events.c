/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account_tables.h"
#include "analyze/common/table.h"
#include "analyze/common/window.h"
#include "base/alloc.h"
#include "base/clock_text.h"
#include "base/error.h"
#include "base/macros.h"
#include "schema/account_terms.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_reader.h"

static void account_events_add_columns(struct vp_table *table)
{
	vp_table_column_add(table, "begin_ns",
			    table->clock.form == VP_CLOCK_FORM_HOST ? "Begin [s]" : "Begin", "ns",
			    VP_CELL_TIME);
	vp_table_column_add(table, "ns", "Time", "ns", VP_CELL_DURATION);
	vp_account_add_vcpu_columns(table);
	vp_table_column_add(table, "pcpu", "pCPU", "", VP_CELL_COUNT);
	vp_table_column_add(table, "state", "State", "", VP_CELL_TEXT);
	vp_table_column_add(table, "reason", "Reason", "", VP_CELL_TEXT);
}

static void add_span_row(struct vp_account_view *view, const struct vp_vcpu_span *event,
			 uint32_t vm, uint64_t start, struct vp_table *table)
{
	uint64_t begin = event->time - event->ns;

	if (begin < view->window.from)
		begin = view->window.from;
	vp_table_count(table, begin > start ? begin - start : 0);
	vp_table_count(table,
		       vp_window_overlap(&view->window, event->time - event->ns, event->time));
	vp_account_put_vcpu(view, vm, event->vcpu, table);
	vp_table_count(table, event->cpu);
	vp_table_text(table, vp_state_name(event->state));
	vp_table_text(table, event->flags & VP_HAS_EXIT_REASON
				 ? vp_account_view_reason(view, event->vendor, event->reason)
				 : "-");
}

struct vp_error *vp_account_events_table(struct vp_account_view *view, const char *directory,
					 uint64_t start, struct vp_table *table)
{
	const struct vp_stream_id id = {VP_STREAM_STATES, VP_NO_PCPU};
	VP_AUTO_FREE char *host = vp_format("%s/host", directory);
	VP_AUTO_FREE char *path = vp_stream_find(host, id);
	struct vp_stream_reader *stream = NULL;
	const struct vp_record_header *record;

	if (!path)
		return vp_error_new(
		    "the recording '%s' has no account events%s", directory,
		    vp_recording_advice_at(directory, ": record with --account-events"));
	VP_TRY(vp_stream_open(path, &stream));
	account_events_add_columns(table);
	for (uint64_t rows = 0; (record = vp_stream_next(stream));) {
		const struct vp_vcpu_span *event = (const void *)record;
		if (record->id != VP_ID_vcpu_span || event->state >= VP_STATES)
			continue;
		const struct vp_vm *vm = vp_vms_find(view->account->vms, event->vm);
		uint32_t number = vm ? (uint32_t)(vm - view->account->vms->at) : VP_NONE;
		if (!vm || !vp_account_view_shows(view, number, event->vcpu))
			continue;
		if (!vp_window_is_all(&view->window) &&
		    !vp_window_overlap(&view->window, event->time - event->ns, event->time))
			continue;
		if (view->limit && rows++ == view->limit)
			break;
		add_span_row(view, event, number, start, table);
	}
	vp_stream_free(stream);
	return NULL;
}
