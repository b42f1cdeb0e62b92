/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account_joined.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/account/account.h"
#include "analyze/account/account_window.h"
#include "analyze/account/vm_join.h"
#include "analyze/common/health.h"
#include "base/alloc.h"
#include "base/macros.h"
#include "base/text.h"
#include "schema/account_grade.h"
#include "schema/vm.h"
#include "store/cgroups.h"
#include "store/packet.h"
#include "store/recording.h"

void vp_account_parts_deinit(vp_account_parts *parts)
{
	vp_vec_each (parts, part)
		free(part->path);
	vp_vec_deinit(parts);
}

static bool has_note(const vp_sentences *notes, const char *note)
{
	vp_vec_each (notes, other)
		if (!strcmp(*other, note))
			return true;
	return false;
}

/* Adds each sentence once, except those that the joined account has itself. */
static void join_notes(struct vp_account_recording *to, const struct vp_account_recording *from)
{
	VP_AUTO_FREE char *grade = vp_account_note_grade(&from->account);
	VP_AUTO_FREE char *window = vp_account_note_window(&from->account.window);

	vp_vec_each (&from->notes, note)
		if ((!grade || strcmp(*note, grade) != 0) &&
		    (!window || strcmp(*note, window) != 0) && !has_note(&to->notes, *note))
			vp_vec_push(&to->notes, vp_strdup(*note));
}

static void raise_to(uint64_t *most, uint64_t other)
{
	*most = other > *most ? other : *most;
}

static void join_window(struct vp_account_window *to, const struct vp_account_window *from)
{
	raise_to(&to->state_error, from->state_error);
	raise_to(&to->theft_error, from->theft_error);
	raise_to(&to->exit_error, from->exit_error);
}

static void join_cgroups(struct vp_account_recording *to, const struct vp_account_recording *from)
{
	vp_vec_each (&from->cgroups, cgroup)
		if (cgroup->path && !vp_cgroups_path(&to->cgroups, cgroup->id)) {
			struct vp_cgroup copy = {cgroup->id, vp_strdup(cgroup->path)};
			vp_vec_push(&to->cgroups, copy);
		}
}

static void join_losses(struct vp_losses *to, const struct vp_losses *from)
{
	for (size_t i = 0; i < VP_STREAM_CLASSES; i++) {
		to->records[i] += from->records[i];
		to->lost[i] += from->lost[i];
	}
	to->period_ns = from->period_ns;
}

/* Properties of the recording are those of the first part. */
static void take_facts(struct vp_account_recording *to, struct vp_account_recording *first)
{
	to->recording = first->recording;
	to->recording.start = first->window.from;
	first->recording = (struct vp_recording){0};
	to->account.grade = to->recording.account_grade;
	to->account.overcommit.pcpus = to->recording.pcpus;
	to->exact = true;
}

/* A part without accounting becomes a note, for example if no VM was running. */
static struct vp_error *join_part(struct vp_account_recording *to, struct vp_vm_join *join,
				  const struct vp_account_part *part)
{
	struct vp_account_recording one;
	VP_AUTO_ERROR struct vp_error *error =
	    vp_account_recording_open(part->path, &part->window, &one);

	if (error) {
		vp_vec_push(&to->notes, vp_strdup(vp_error_message(error)));
		return NULL;
	}
	if (to->recording.tool && to->account.grade != one.recording.account_grade) {
		vp_account_recording_close(&one);
		return vp_error_new("the recordings of that time have accounts of different "
				    "grades: choose a part of it by --time (from '%s' on it is "
				    "another one)",
				    part->path);
	}
	vp_vm_join_next(join);
	vp_vm_join_add(join, &one.vms);
	if (!to->recording.tool)
		take_facts(to, &one);
	vp_account_add(&to->account, &one.account, &join->ids);
	to->exact &= one.exact;
	to->duration += one.duration;
	join_notes(to, &one);
	join_window(&to->account.window, &one.account.window);
	join_cgroups(to, &one);
	join_losses(&to->losses, &one.losses);
	vp_account_recording_close(&one);
	return NULL;
}

static uint64_t realtime_of(const struct vp_recording *recording, uint64_t time)
{
	return time + (uint64_t)recording->realtime_offset;
}

/* Total gaps between the parts by time of day; setting the clock counts as a gap. */
static struct vp_error *parts_gap(const vp_account_parts *parts, uint64_t *ret)
{
	uint64_t end = 0;

	*ret = 0;
	vp_vec_each (parts, part) {
		struct vp_recording about;
		VP_TRY(vp_recording_read(part->path, &about));
		uint64_t begin = realtime_of(&about, part->window.from);
		*ret += end && begin > end ? begin - end : 0;
		end = realtime_of(&about, part->window.to);
		vp_recording_deinit(&about);
	}
	return NULL;
}

static void note_parts(struct vp_account_recording *rec, const vp_account_parts *parts,
		       uint64_t gap)
{
	char text[VP_DURATION_SIZE];

	char *own[] = {vp_account_note_grade(&rec->account),
		       vp_account_note_window(&rec->account.window)};

	for (size_t i = 0; i < VP_ARRAY_SIZE(own); i++)
		if (own[i])
			vp_vec_push(&rec->notes, own[i]);
	vp_vec_push(&rec->notes,
		    gap >= 1000000
			? vp_format("%zu recordings; nothing was recorded in %s between them",
				    parts->count, vp_text_duration(gap, text))
			: vp_format("%zu recordings, without a gap", parts->count));
}

struct vp_error *vp_account_joined_open(const char *name, const vp_account_parts *parts,
					struct vp_account_recording *ret)
{
	struct vp_vm_join join = {.vms = &ret->vms};
	struct vp_error *error = NULL;
	uint64_t gap = 0;

	*ret = (struct vp_account_recording){.path = name};
	vp_account_init(&ret->account, &ret->vms);
	for (size_t i = 0; i < parts->count && !error; i++)
		error = join_part(ret, &join, &parts->at[i]);
	vp_vm_join_deinit(&join);
	if (!error && !ret->recording.tool)
		error = vp_error_new("%s", ret->notes.count ? ret->notes.at[0] : "no recordings");
	if (!error)
		error = parts_gap(parts, &gap);
	if (error) {
		vp_account_recording_close(ret);
		return error;
	}
	note_parts(ret, parts, gap);
	vp_vms_settle_parts(&ret->vms);
	vp_account_check(&ret->account, 0, 0, &ret->checks);
	return NULL;
}
