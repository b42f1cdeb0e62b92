/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The account of a recording that is being written, as it comes: the records that its recorder has
 * written since the last look. It goes on from one recording to the next without counting any time
 * twice: of the next one, it takes what is after the end of the one before.
 */
#ifndef VP_DAEMON_ACCOUNT_TAIL_H
#define VP_DAEMON_ACCOUNT_TAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "analyze/account/account_window.h"
#include "analyze/account/vm_join.h"
#include "schema/account_grade.h"
#include "schema/vm.h"
#include "store/trace_reader.h"

struct vp_account_tail {
	/* The caller's: what receives the records, with numbers of `vms`. */
	void (*take)(void *context, const struct vp_record_header *record);
	void *context;
	/* All VMs that were seen and not forgotten. */
	vp_vms vms;
	struct vp_vm_join join;
	/* The recording at hand, and the one to go on with when that has ended. */
	char *path, *next;
	uint64_t next_since; /* when it became known */
	struct vp_stream_reader *stream;
	struct vp_account_window window;
	uint64_t reached; /* all up to then was taken; CLOCK_MONOTONIC, ns */
	struct timespec vms_changed;
	ino_t vms_inode;
	uint32_t pcpus;
	enum vp_account_grade grade;
};

/* Seconds for which a recorder that does not end holds up the next recording. */
enum { VP_TAIL_PATIENCE_S = 30 };

/* The recording at `path` is the one to be read; when the one before has ended, if there is one. */
void vp_account_tail_follow(struct vp_account_tail *tail, const char *path, uint64_t now);
/* Reads what there is. */
void vp_account_tail_read(struct vp_account_tail *tail, uint64_t now);
/* Forgets VMs that have ended and that `keeps` does not want. */
void vp_account_tail_forget(struct vp_account_tail *tail, bool (*keeps)(void *context, uint32_t id),
			    void *context);
void vp_account_tail_deinit(struct vp_account_tail *tail);

#endif
