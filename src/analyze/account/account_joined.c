/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account_joined.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/account/account.h"
#include "analyze/account/account_steps.h"
#include "analyze/account/account_window.h"
#include "analyze/common/health.h"
#include "analyze/common/vm_join.h"
#include "base/alloc.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "schema/account_grade.h"
#include "schema/vm.h"
#include "store/cgroups.h"
#include "store/packet.h"
#include "store/recording.h"

/* Those that the joined account has itself are left out. */
static void join_notes(struct vp_part_notes *notes, const struct vp_account_recording *from)
{
	VP_AUTO_FREE char *grade = vp_account_note_grade(&from->account);
	VP_AUTO_FREE char *window = vp_account_note_window(&from->account.window);
	vp_sentences wanted = {0}; /* borrowed */

	vp_vec_each (&from->notes, note)
		if ((!grade || strcmp(*note, grade) != 0) &&
		    (!window || strcmp(*note, window) != 0))
			vp_vec_push(&wanted, *note);
	vp_part_notes_add(notes, from->path, &wanted);
	vp_vec_deinit(&wanted);
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
	raise_to(&to->count_error, from->count_error);
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
	to->account.overcommit.pcpus = vp_recording_shared_pcpus(&to->recording);
	to->exact = true;
}

/* A part without accounting becomes a note, for example if no VM was running. */
static struct vp_error *join_part(struct vp_account_recording *to, struct vp_vm_join *join,
				  struct vp_part_notes *notes, const struct vp_recording_part *part,
				  const struct vp_account_events *events)
{
	struct vp_account_recording one;
	VP_AUTO_ERROR struct vp_error *error =
	    vp_account_recording_open_with(part->path, &part->window, events, &one);

	if (error) {
		vp_part_notes_take(notes, vp_strdup(vp_error_message(error)));
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
	join_notes(notes, &one);
	join_window(&to->account.window, &one.account.window);
	join_cgroups(to, &one);
	join_losses(&to->losses, &one.losses);
	vp_account_recording_close(&one);
	return NULL;
}

/* Steps of the parts, and their windows, which `joined` borrows. */
struct joined_part {
	vp_account_steps steps;
	bool is_traced; /* its events divide it anywhere */
};

static struct vp_error *joined_part_read(const struct vp_recording_part *part,
					 struct joined_part *ret)
{
	struct vp_recording about;

	VP_TRY(vp_recording_read(part->path, &about));
	ret->is_traced = vp_recording_has_instrument(&about, "trace");
	VP_AUTO_ERROR struct vp_error *error =
	    vp_account_steps_read(part->path, about.start, &ret->steps);
	vp_recording_deinit(&about);
	return NULL; /* an unreadable part has no steps, and becomes a note later */
}

/* If the second part begins where the first one ends, and its recording before that: moves both
 * borders to a seam within the two windows, and raises *off to the time between them. */
static void joined_move_borders(struct vp_recording_part *first, struct vp_recording_part *second,
				const struct joined_part parts[2], uint64_t *off)
{
	uint64_t end, begin;

	if (first->window.to != second->window.from || (parts[0].is_traced && parts[1].is_traced) ||
	    !parts[0].steps.count || !parts[1].steps.count ||
	    !vp_account_steps_seam(&parts[0].steps, &parts[1].steps, &end, &begin) ||
	    end <= first->window.from || begin >= second->window.to)
		return;
	first->window.to = end;
	second->window.from = begin;
	raise_to(off, end > begin ? end - begin : begin - end);
}

/* Moves the borders between parts; *off: the largest time counted twice or left out at one. */
static struct vp_error *joined_move_all(vp_recording_parts *parts, uint64_t *off)
{
	struct joined_part about[2] = {0};
	struct vp_error *error = NULL;

	*off = 0;
	for (size_t i = 0; i < parts->count && !error; i++) {
		error = joined_part_read(&parts->at[i], &about[1]);
		if (i && !error)
			joined_move_borders(&parts->at[i - 1], &parts->at[i], about, off);
		vp_vec_deinit(&about[0].steps);
		about[0] = about[1];
		about[1] = (struct joined_part){0};
	}
	vp_vec_deinit(&about[0].steps);
	return error;
}

static void note_parts(struct vp_account_recording *rec, const vp_recording_parts *parts,
		       uint64_t off)
{
	char text[VP_DURATION_SIZE];
	char *own[] = {vp_account_note_grade(&rec->account),
		       vp_account_note_window(&rec->account.window)};

	for (size_t i = 0; i < VP_ARRAY_SIZE(own); i++)
		if (own[i])
			vp_vec_push(&rec->notes, own[i]);
	vp_recording_parts_note(parts, &rec->notes);
	if (off)
		vp_vec_push(&rec->notes, vp_format("recordings without a trace are cut at steps of "
						   "the accounting: where two of them meet, "
						   "at most %s are counted twice, or not at all",
						   vp_text_duration(off, text)));
}

/* `parts` are as recorded, which the notes are about, `moved` are what is added. */
static struct vp_error *joined_open_moved(const char *name, const vp_recording_parts *parts,
					  const vp_recording_parts *moved,
					  const struct vp_account_events *events, uint64_t off,
					  struct vp_account_recording *ret)
{
	struct vp_vm_join join = {.vms = &ret->vms};
	struct vp_part_notes notes = {0};
	struct vp_error *error = NULL;

	*ret = (struct vp_account_recording){.path = name};
	vp_account_init(&ret->account, &ret->vms);
	for (size_t i = 0; i < moved->count && !error; i++)
		error = join_part(ret, &join, &notes, &moved->at[i], events);
	vp_vm_join_deinit(&join);
	vp_part_notes_finish(&notes, &ret->notes);
	if (!error && !ret->recording.tool)
		error = vp_error_new("%s", ret->notes.count ? ret->notes.at[0] : "no recordings");
	if (error) {
		vp_account_recording_close(ret);
		return error;
	}
	ret->exact &= !off;
	note_parts(ret, parts, off);
	vp_vms_settle_parts(&ret->vms);
	vp_account_check(&ret->account, 0, 0, &ret->checks);
	return NULL;
}

struct vp_error *vp_account_joined_open(const char *name, const vp_recording_parts *parts,
					const struct vp_account_events *events,
					struct vp_account_recording *ret)
{
	vp_recording_parts moved = {0};
	uint64_t off;

	vp_vec_each (parts, part)
		vp_vec_push(&moved, *part); /* borrows the path */
	struct vp_error *error = joined_move_all(&moved, &off);
	if (!error)
		error = joined_open_moved(name, parts, &moved, events, off, ret);
	vp_vec_deinit(&moved);
	return error;
}
