/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies of a reader of guest memory (guestreader/worker.h): untrusted. */
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

/* The guest CPU of a vCPU, and the address of the pointer to its current task. */
struct vp_guest_current_address {
	uint32_t vcpu, cpu;
	uint64_t current_gpa;
	uint64_t chosen_gpa; /* address of rq.curr of its run queue; 0: unknown */
};

/* Location of a counter of the guest kernel for a vCPU's CPU. */
struct vp_guest_count_address {
	uint32_t vcpu;
	enum vp_guest_count count;
	uint64_t gpa;
	bool narrow; /* 4 bytes instead of 8 */
};

/* Facts about a guest's kernel from its reader. */
struct vp_guest_finding {
	uint64_t text, gpa, size; /* the kernel's image */
	uint64_t direct_map;
	struct vp_paging paging;
	uint64_t kernel_root; /* page tables that only the kernel uses; 0: none */
	bool cached, scanned; /* a cached pack fitted; the kernel was found without registers */
	bool derived;         /* no BTF: tasks are known, their mappings are not */
	struct vp_build_id build_id;
	char *banner;
	uint32_t off_tid, off_tgid, off_comm; /* offsets in task_struct */
	uint32_t off_stack;                   /* in task_struct; 0: unknown */
	uint32_t off_mm, off_pgd;             /* in task_struct, and in its mm_struct */
	VP_VEC(struct vp_guest_current_address) cpus;
	VP_VEC(struct vp_guest_count_address) counts;
	uint64_t banner_gpa; /* hint for the next scan; 0: none */
	char *lacks;         /* reason for missing tasks, or NULL */
	char *dropped;       /* reason for not using a cached kernel pack, or NULL */
	char *pack;          /* kernel pack as text, or NULL */
	/* A scan is in progress and nothing is known yet; bytes scanned, and in total. */
	bool searching;
	uint64_t searched, to_search;
};

struct vp_guest_process {
	uint32_t tgid;
	uint64_t root;
	char *comm;
};
typedef VP_VEC(struct vp_guest_process) vp_guest_processes;

enum vp_guest_runtime_kind { VP_RUNTIME_JAVA, VP_RUNTIME_PYTHON, VP_RUNTIME_V8, VP_RUNTIME_THREAD };

/* How frames of Python code are found from a thread state: offsets of members. */
struct vp_guest_python {
	uint32_t native_id, frame, frame_in, code, previous, owner, entry_value, entry_is_empty;
};

/* How functions are found from V8's frames. */
struct vp_guest_v8 {
	uint32_t context_below, function_below, shared;
};

/* A process with generated code and an interpreter, and the ranges of both; or a thread of a Python
 * process that was listed before. */
struct vp_guest_runtime {
	enum vp_guest_runtime_kind kind;
	uint32_t tgid;
	uint64_t low, high;                         /* Python: of the interpreter's file */
	uint64_t interpreter_low, interpreter_high; /* equal: no interpreter */
	struct vp_guest_python python;              /* VP_RUNTIME_PYTHON */
	struct vp_guest_v8 v8;                      /* VP_RUNTIME_V8 */
	uint32_t tid, native_id;                    /* VP_RUNTIME_THREAD … */
	uint64_t state;                             /* … address of its thread state */
};
typedef VP_VEC(struct vp_guest_runtime) vp_guest_runtime_list;

/* A file of the guest that the host may have, too. */
struct vp_guest_wanted_file {
	struct vp_build_id build_id;
	char *path;
};
typedef VP_VEC(struct vp_guest_wanted_file) vp_guest_wanted_files;
enum { VP_GUEST_FILES = 64 };

/*
 * Waits for the next parts of a reply, with a timeout for each; `heard` has the parts so far.
 * *done: the reply is complete; `heard` then has it without its last line. Errors: also those of
 * the reader.
 */
struct vp_error *vp_guest_answer_take(int channel, int timeout_ms, struct vp_buffer *inbuf,
				      bool *done, struct vp_slice *answer) VP_MUST_CHECK;

/* Parse the replies to `find` and `tasks`. */
struct vp_error *vp_guest_finding_parse(struct vp_slice answer,
					struct vp_guest_finding *ret) VP_MUST_CHECK;
void vp_guest_finding_deinit(struct vp_guest_finding *finding);
struct vp_error *vp_guest_processes_parse(struct vp_slice answer, vp_guest_processes *processes,
					  bool *damaged) VP_MUST_CHECK;
/* Parses the reply to `check`, replacing the list. *starting: there are processes without code so
 * far. */
struct vp_error *vp_guest_runtimes_parse(struct vp_slice answer, vp_guest_runtime_list *list,
					 bool *starting) VP_MUST_CHECK;
/* Parses the files among that reply, at most VP_GUEST_FILES. */
void vp_guest_wanted_files_parse(struct vp_slice answer, vp_guest_wanted_files *files);
void vp_guest_wanted_files_deinit(vp_guest_wanted_files *files);
void vp_guest_processes_deinit(vp_guest_processes *processes);

#endif
