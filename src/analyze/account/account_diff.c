/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account_diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/account/account_recording.h"
#include "analyze/common/filter.h"
#include "base/alloc.h"
#include "schema/account_terms.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "stats/mean.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_reader.h"

/* Sums over a VM's vCPUs between two writes of the accounting. */
struct second {
	uint64_t time;
	double wall;
	double amounts[VP_DIFF_MEASURES];
};

typedef VP_VEC(struct second) seconds;

static const struct {
	const char *name, *unit;
	int good; /* 1: larger is better, -1: worse, 0: neither */
} measures[VP_DIFF_MEASURES] = {
    [VP_DIFF_STEAL] = {"steal", "%", -1},  [VP_DIFF_HYPERVISOR] = {"hypervisor", "%", -1},
    [VP_DIFF_GUEST] = {"guest", "%", 0},   [VP_DIFF_IDLE] = {"idle", "%", 0},
    [VP_DIFF_EXITS] = {"exits", "/s", -1}, [VP_DIFF_WAKEUPS] = {"wakeups", "/s", 0}};

const char *vp_diff_measure_name(enum vp_diff_measure measure)
{
	return measures[measure].name;
}

const char *vp_diff_measure_unit(enum vp_diff_measure measure)
{
	return measures[measure].unit;
}

const char *vp_diff_verdict_name(enum vp_diff_verdict verdict)
{
	static const char *const names[] = {
	    [VP_DIFF_UNKNOWN] = "too short", [VP_DIFF_SAME] = "no difference",
	    [VP_DIFF_BETTER] = "better",     [VP_DIFF_WORSE] = "worse",
	    [VP_DIFF_MORE] = "more",         [VP_DIFF_LESS] = "less"};
	return names[verdict];
}

static void diff_take(seconds *all, const struct vp_vcpu_account *record)
{
	size_t index = all->count;

	/* Records of the same write are adjacent. */
	while (index > 0 && all->at[index - 1].time > record->time)
		index--;
	if (!index || all->at[index - 1].time != record->time) {
		vp_vec_push(all, (struct second){.time = record->time});
		index = all->count;
	}
	struct second *second = &all->at[index - 1];
	second->wall += (double)(record->end - record->begin);
	second->amounts[VP_DIFF_STEAL] +=
	    (double)(record->waking + record->preempted + record->throttled + record->irq);
	second->amounts[VP_DIFF_HYPERVISOR] +=
	    (double)(record->kernel + record->poll + record->vmm);
	second->amounts[VP_DIFF_GUEST] += (double)record->guest;
	second->amounts[VP_DIFF_IDLE] += (double)(record->halted + record->waiting);
	second->amounts[VP_DIFF_EXITS] += (double)record->exits;
	second->amounts[VP_DIFF_WAKEUPS] += (double)record->wakeups;
}

static const struct vp_vm *diff_vm_named(const vp_vms *vms, const char *name)
{
	vp_vec_each (vms, vm)
		if (!strcmp(vm->name, name))
			return vm;
	return NULL;
}

/* `window`: NULL, or only steps of the accounting within it. */
static struct vp_error *read_seconds(const char *directory, uint32_t vm_id,
				     const struct vp_window *window, seconds *ret)
{
	seconds own = {0};

	VP_AUTO_FREE char *host = vp_format("%s/host", directory);
	const struct vp_record_header *record;
	vp_stream_readers streams = {0};

	VP_TRY(vp_trace_open(host, VP_STREAMS(VP_STREAM_ACCOUNT), &streams));
	vp_vec_each (&streams, stream)
		while ((record = vp_stream_next(*stream))) {
			const struct vp_vcpu_account *account = (const void *)record;
			if (record->id == VP_ID_vcpu_account && account->vm == vm_id &&
			    account->end > account->begin &&
			    (!window ||
			     (account->begin >= window->from && account->end <= window->to)))
				diff_take(&own, account);
		}
	vp_trace_close(&streams);
	vp_vec_each (&own, second)
		vp_vec_push(ret, *second);
	vp_vec_deinit(&own);
	return NULL;
}

/* The seconds of the VM with that name. A part that cannot be read is a gap. */
static struct vp_error *read_side(const struct vp_diff_side *side, const struct vp_vm *vm,
				  seconds *ret)
{
	struct vp_error *error = NULL;

	if (!side->parts)
		return read_seconds(side->rec->path, vp_vm_id(vm), NULL, ret);
	for (size_t i = 0; i < side->parts->count && !error; i++) {
		const struct vp_recording_part *part = &side->parts->at[i];
		vp_vms vms = {0};
		VP_AUTO_ERROR struct vp_error *unread = vp_vms_read(part->path, &vms);
		const struct vp_vm *own = unread ? NULL : diff_vm_named(&vms, vm->name);
		if (own)
			error = read_seconds(part->path, vp_vm_id(own), &part->window, ret);
		vp_vms_deinit(&vms);
	}
	return error;
}

/* Scale to percent of vCPU time, or to N per second. */
static double scale_of(enum vp_diff_measure measure)
{
	return measure < VP_DIFF_EXITS ? 100 : 1e9;
}

static struct vp_mean diff_mean_of(const seconds *all, enum vp_diff_measure measure)
{
	vp_observations shares = {0};

	vp_vec_each (all, second)
		vp_vec_push(&shares,
			    ((struct vp_observation){second->amounts[measure], second->wall}));
	struct vp_mean ret = vp_mean_of(&shares, scale_of(measure));
	vp_vec_deinit(&shares);
	return ret;
}

static enum vp_diff_verdict verdict_of(const struct vp_diff_row *row)
{
	int good = measures[row->measure].good;

	if (row->low <= 0 && row->high >= 0)
		return VP_DIFF_SAME;
	bool more = row->low > 0;
	if (!good)
		return more ? VP_DIFF_MORE : VP_DIFF_LESS;
	return more == (good > 0) ? VP_DIFF_BETTER : VP_DIFF_WORSE;
}

/* Welch's confidence interval: the variances may differ. */
static void compare(const char *vm, enum vp_diff_measure measure, const seconds *before,
		    const seconds *after, struct vp_diff *ret)
{
	struct vp_mean a = diff_mean_of(before, measure), b = diff_mean_of(after, measure);
	struct vp_diff_row row = {.vm = vp_strdup(vm),
				  .measure = measure,
				  .before = a.value,
				  .after = b.value,
				  .verdict = VP_DIFF_UNKNOWN};

	if (a.count >= VP_MEAN_MIN && b.count >= VP_MEAN_MIN) {
		double sum = a.error_squared + b.error_squared;
		double parts = a.error_squared * a.error_squared / (double)(a.count - 1) +
			       b.error_squared * b.error_squared / (double)(b.count - 1);
		double wide = parts > 0 ? vp_student(sum * sum / parts) * sqrt(sum) : 0;
		row.low = b.value - a.value - wide;
		row.high = b.value - a.value + wide;
		row.verdict = verdict_of(&row);
	}
	vp_vec_push(&ret->rows, row);
}

static struct vp_error *compare_vm(const struct vp_diff_side *before,
				   const struct vp_diff_side *after, const struct vp_vm *vm,
				   const struct vp_vm *other, struct vp_diff *ret)
{
	seconds first = {0}, second = {0};
	struct vp_error *error = read_side(before, vm, &first);

	if (!error)
		error = read_side(after, other, &second);
	for (int i = 0; !error && i < VP_DIFF_MEASURES; i++)
		compare(vm->name, (enum vp_diff_measure)i, &first, &second, ret);
	vp_vec_deinit(&first);
	vp_vec_deinit(&second);
	return error;
}

/* Adds notes about VMs that are in only one of the recordings. */
static void note_missing(const struct vp_account_recording *rec,
			 const struct vp_account_recording *other, struct vp_diff *ret)
{
	vp_vec_each (&rec->vms, vm)
		if (!diff_vm_named(&other->vms, vm->name))
			vp_vec_push(&ret->notes,
				    vp_format("VM '%s' is only in '%s'", vm->name, rec->path));
}

static struct vp_error *compare_all(const struct vp_diff_side *before,
				    const struct vp_diff_side *after, const char *vm,
				    struct vp_diff *ret)
{
	VP_AUTO_FREE bool *chosen = NULL;
	VP_AUTO_FREE bool *chosen_after = NULL;

	VP_TRY(vp_filter_choose_vms(&before->rec->vms, vm, &chosen));
	VP_TRY(vp_filter_choose_vms(&after->rec->vms, vm, &chosen_after));
	for (size_t i = 0; i < before->rec->vms.count; i++) {
		const struct vp_vm *one = &before->rec->vms.at[i];
		const struct vp_vm *other = diff_vm_named(&after->rec->vms, one->name);
		if (other && (!chosen || chosen[i]))
			VP_TRY(compare_vm(before, after, one, other, ret));
	}
	note_missing(before->rec, after->rec, ret);
	note_missing(after->rec, before->rec, ret);
	if (!ret->rows.count)
		return vp_error_new("'%s' and '%s' have no VM of the same name", before->rec->path,
				    after->rec->path);
	vp_vec_each (&ret->rows, row)
		if (row->verdict == VP_DIFF_UNKNOWN) {
			vp_vec_push(&ret->notes,
				    vp_format("a confidence interval needs at least %d seconds of "
					      "each recording",
					      VP_MEAN_MIN));
			break;
		}
	return NULL;
}

struct vp_error *vp_diff_compare(const struct vp_diff_side *before,
				 const struct vp_diff_side *after, const char *vm,
				 struct vp_diff *ret)
{
	*ret = (struct vp_diff){0};
	struct vp_error *error = compare_all(before, after, vm, ret);
	if (error)
		vp_diff_deinit(ret);
	return error;
}

struct vp_error *vp_diff_make(const char *before, const char *after, const char *vm,
			      struct vp_diff *ret)
{
	struct vp_account_recording one, other;

	*ret = (struct vp_diff){0};
	VP_TRY(vp_account_recording_open(before, NULL, &one));
	struct vp_error *error = vp_account_recording_open(after, NULL, &other);
	if (!error) {
		error = vp_diff_compare(&(struct vp_diff_side){&one, NULL},
					&(struct vp_diff_side){&other, NULL}, vm, ret);
		vp_account_recording_close(&other);
	}
	vp_account_recording_close(&one);
	return error;
}

void vp_diff_deinit(struct vp_diff *diff)
{
	vp_vec_each (&diff->rows, row)
		free(row->vm);
	vp_vec_deinit(&diff->rows);
	vp_vec_each (&diff->notes, note)
		free(*note);
	vp_vec_deinit(&diff->notes);
}
