/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies of a reader of guest memory (guestmem/worker.h): untrusted. */
#ifndef VP_COLLECT_GUESTS_GUEST_ANSWER_H
#define VP_COLLECT_GUESTS_GUEST_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "maps/format.h"
#include "schema/interval.h"
#include "schema/paging.h"

/* A vCPU's CPU in the guest, and where the pointer to its current task is. */
struct vp_guest_current_address {
	uint32_t vcpu, cpu;
	uint64_t current_gpa;
	uint64_t chosen_gpa; /* of the one that its run queue has (rq.curr); 0: not known */
};

/* Where the guest's kernel counts what happens on a vCPU's CPU. */
struct vp_guest_count_address {
	uint32_t vcpu;
	enum vp_guest_count count;
	uint64_t gpa;
	bool narrow; /* 4 bytes, not 8 */
};

/* Facts about a guest's kernel from its reader. */
struct vp_guest_finding {
	uint64_t text, gpa, size; /* the kernel's image */
	uint64_t direct_map;
	struct vp_paging paging;
	uint64_t kernel_root; /* of page tables that are the kernel's alone; 0: none are */
	bool cached, scanned; /* by a kernel pack that was there; without registers */
	bool derived;         /* without BTF: there are tasks, but not their mappings */
	struct vp_build_id build_id;
	char *banner;
	uint32_t off_tid, off_tgid, off_comm; /* in task_struct */
	uint32_t off_stack;                   /* the same; 0: not known */
	uint32_t off_mm, off_pgd;             /* the same, and in its mm_struct */
	VP_VEC(struct vp_guest_current_address) cpus;
	VP_VEC(struct vp_guest_count_address) counts;
	uint64_t banner_gpa; /* where a scan is to look first the next time; 0: not known */
	char *lacks;         /* the reason for missing tasks, or NULL */
	char *dropped;       /* why a cached kernel pack was not used, or NULL */
	char *pack;          /* its kernel pack as text, or NULL */
	/* A scan goes on, and nothing is known yet: bytes it has gone through, of all there are. */
	bool searching;
	uint64_t searched, to_search;
};

struct vp_guest_process {
	uint32_t tgid;
	uint64_t root;
	char *comm;
};
typedef VP_VEC(struct vp_guest_process) vp_guest_processes;

/* A process with code that it makes itself, and with an interpreter: where both are. */
struct vp_guest_runtime {
	uint32_t tgid;
	uint64_t low, high;
	uint64_t interpreter_low, interpreter_high; /* equal: none */
};
typedef VP_VEC(struct vp_guest_runtime) vp_guest_runtime_list;

/* Waits for the next pieces of a reply, with a timeout for each; `heard` has those so far. *done is
 * false if it is not complete yet. The reply, without its last line, is in `heard`, too. An error
 * from the reader is an error. */
struct vp_error *vp_guest_answer_take(int channel, int timeout_ms, struct vp_buffer *inbuf,
				      bool *done, struct vp_slice *answer) VP_MUST_CHECK;

/* Answers to `find` and `tasks`. */
struct vp_error *vp_guest_finding_parse(struct vp_slice answer,
					struct vp_guest_finding *ret) VP_MUST_CHECK;
void vp_guest_finding_deinit(struct vp_guest_finding *finding);
struct vp_error *vp_guest_processes_parse(struct vp_slice answer, vp_guest_processes *processes,
					  bool *damaged) VP_MUST_CHECK;
/* The answer to `check`: replaces the list. *starting: there are more, which have no code yet. */
struct vp_error *vp_guest_runtimes_parse(struct vp_slice answer, vp_guest_runtime_list *list,
					 bool *starting) VP_MUST_CHECK;
void vp_guest_processes_deinit(vp_guest_processes *processes);

#endif
