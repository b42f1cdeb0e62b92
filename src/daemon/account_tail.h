/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Follows the vCPU accounting of a recording in progress: reads the records that its recorder has
 * written since the last call. At the next recording it continues without counting any time twice:
 * it skips records up to the end of the previous one.
 */
#ifndef VP_DAEMON_ACCOUNT_TAIL_H
#define VP_DAEMON_ACCOUNT_TAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "analyze/account/account_window.h"
#include "analyze/common/vm_join.h"
#include "schema/account_grade.h"
#include "schema/vm.h"
#include "store/trace_reader.h"

struct vp_account_tail {
	/* Set by the caller: receives the records, with VM numbers of `vms`. */
	void (*take)(void *context, const struct vp_record_header *record);
	void *context;
	/* All VMs seen and not forgotten. */
	vp_vms vms;
	struct vp_vm_join join;
	/* The present recording, and the one that follows when it has ended. */
	char *path, *next;
	uint64_t next_since; /* time at which the next one was announced */
	struct vp_stream_reader *stream;
	struct vp_account_window window;
	uint64_t reached; /* all records up to then were processed; CLOCK_MONOTONIC, ns */
	struct timespec vms_changed;
	ino_t vms_inode;
	uint32_t pcpus;
	enum vp_account_grade grade;
};

/* Seconds for which a recorder that does not end delays reading the next recording. */
enum { VP_TAIL_PATIENCE_S = 30 };

/* Sets the recording to read; if there is a present one, after that has ended. */
void vp_account_tail_follow(struct vp_account_tail *tail, const char *path, uint64_t now);
/* Reads the available records. */
void vp_account_tail_read(struct vp_account_tail *tail, uint64_t now);
/* Whether the VM is one of the present recording that has not ended. */
bool vp_account_tail_has(const struct vp_account_tail *tail, const struct vp_vm *vm);
/* Forgets VMs that have ended, except those for which `keeps` returns true. */
void vp_account_tail_forget(struct vp_account_tail *tail, bool (*keeps)(void *context, uint32_t id),
			    void *context);
void vp_account_tail_deinit(struct vp_account_tail *tail);

#endif
