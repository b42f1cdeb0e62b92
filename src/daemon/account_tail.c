/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/account_tail.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "store/history.h"
#include "store/packet.h"
#include "store/recording.h"

#define SECOND 1000000000ULL

static void tail_close(struct vp_account_tail *tail)
{
	vp_stream_free(tail->stream);
	tail->stream = NULL;
	free(tail->path);
	tail->path = NULL;
	vp_vm_join_next(&tail->join);
	vp_account_window_deinit(&tail->window);
	tail->window = (struct vp_account_window){0};
	tail->vms_changed = (struct timespec){0};
	tail->vms_inode = 0;
}

/* The file is created with the recording's first records. */
static void tail_open_stream(struct vp_account_tail *tail)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", tail->path);
	VP_AUTO_FREE char *file =
	    vp_stream_find(host, (struct vp_stream_id){VP_STREAM_ACCOUNT, VP_NO_PCPU});

	if (!file)
		return;
	VP_AUTO_ERROR struct vp_error *error = vp_stream_open(file, &tail->stream);
	if (!error)
		vp_stream_follow(tail->stream);
}

static void tail_begin(struct vp_account_tail *tail, char *path)
{
	struct vp_recording about;

	tail_close(tail);
	tail->join.vms = &tail->vms;
	tail->path = path;
	if (tail->reached)
		tail->window.window = (struct vp_window){tail->reached, UINT64_MAX};
	VP_AUTO_ERROR struct vp_error *error = vp_recording_read(path, &about);
	if (error)
		return;
	tail->pcpus = vp_recording_shared_pcpus(&about);
	tail->grade = about.account_grade;
	vp_recording_deinit(&about);
}

void vp_account_tail_follow(struct vp_account_tail *tail, const char *path, uint64_t now)
{
	if ((tail->path && !strcmp(tail->path, path)) || (tail->next && !strcmp(tail->next, path)))
		return;
	if (!tail->path) {
		tail_begin(tail, vp_strdup(path));
		return;
	}
	free(tail->next);
	tail->next = vp_strdup(path);
	tail->next_since = now;
}

static void read_vms(struct vp_account_tail *tail)
{
	VP_AUTO_FREE char *file = vp_format("%s/vms", tail->path);
	vp_vms vms = {0};
	struct stat status;

	/* The file is replaced as a whole, so its inode or time changes. */
	if (stat(file, &status) ||
	    (status.st_ino == tail->vms_inode &&
	     !memcmp(&status.st_mtim, &tail->vms_changed, sizeof(status.st_mtim))))
		return;
	VP_AUTO_ERROR struct vp_error *error = vp_vms_read(tail->path, &vms);
	if (!error) {
		vp_vm_join_add(&tail->join, &vms);
		tail->vms_inode = status.st_ino;
		tail->vms_changed = status.st_mtim;
	}
	vp_vms_deinit(&vms);
}

static void tail_read_records(struct vp_account_tail *tail)
{
	const struct vp_record_header *record;
	union vp_account_record part;
	union vp_any_record joined;

	if (!tail->stream)
		tail_open_stream(tail);
	while (tail->stream && (record = vp_stream_next(tail->stream))) {
		if (record->id == VP_ID_vcpu_account && record->time > tail->reached)
			tail->reached = record->time;
		record = vp_vm_join_record(&tail->join, record, &joined);
		record = vp_account_window_cut(&tail->window, record, &part);
		if (record)
			tail->take(tail->context, record);
	}
}

static void tail_read_one(struct vp_account_tail *tail)
{
	read_vms(tail);
	tail_read_records(tail);
}

void vp_account_tail_read(struct vp_account_tail *tail, uint64_t now)
{
	if (!tail->path)
		return;
	/* Check before reading: records written after the check are not lost. */
	bool ended = tail->next && (!vp_kept_is_locked(tail->path) ||
				    now - tail->next_since > VP_TAIL_PATIENCE_S * SECOND);
	tail_read_one(tail);
	if (!ended)
		return;
	tail_begin(tail, VP_TAKE(tail->next));
	tail_read_one(tail);
}

bool vp_account_tail_has(const struct vp_account_tail *tail, const struct vp_vm *vm)
{
	return !vm->end && vp_map_find(&tail->join.taken, vp_vm_id(vm));
}

void vp_account_tail_forget(struct vp_account_tail *tail, bool (*keeps)(void *context, uint32_t id),
			    void *context)
{
	size_t kept = 0;

	vp_vec_each (&tail->vms, vm)
		if (vp_account_tail_has(tail, vm) || keeps(context, vp_vm_id(vm)))
			tail->vms.at[kept++] = *vm;
		else
			vp_vm_deinit(vm);
	tail->vms.count = kept;
}

void vp_account_tail_deinit(struct vp_account_tail *tail)
{
	tail_close(tail);
	free(tail->next);
	vp_vms_deinit(&tail->vms);
	vp_vm_join_deinit(&tail->join);
}
