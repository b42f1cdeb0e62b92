/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a guest's memory in a process of its own. That process has an open descriptor of the VMM's
 * memory, read-only, and no rights whatsoever beside it: another user, no other file, no system
 * call but reading, writing and making room. What it answers is taken for what it is, the word of a
 * stranger.
 */
#ifndef VP_COLLECT_GUEST_READER_H
#define VP_COLLECT_GUEST_READER_H

#include "collect/guest_state.h"
#include "maps/format.h"
#include "schema/interval.h"

struct vp_guest_reader;

/* A vCPU's CPU in the guest, and where the pointer to its current task is. */
struct vp_guest_place {
	uint32_t vcpu, cpu;
	uint64_t current_gpa;
};

/* Where the guest's kernel counts what happens on a vCPU's CPU. */
struct vp_guest_count_place {
	uint32_t vcpu;
	enum vp_guest_count count;
	uint64_t gpa;
	bool narrow; /* 4 bytes, not 8 */
};

/* What a reader found out about a guest's kernel. */
struct vp_guest_finding {
	uint64_t text, gpa, size; /* the kernel's image */
	uint64_t direct_map;
	uint32_t levels;
	bool cached, scanned; /* by a kernel pack that was there; without registers */
	bool derived;         /* without BTF: tasks are told, but not their mappings */
	struct vp_build_id build_id;
	char *banner;
	uint32_t at_tid, at_tgid, at_comm; /* in task_struct */
	uint32_t at_stack;                 /* the same; 0: not known */
	VP_VEC(struct vp_guest_place) cpus;
	VP_VEC(struct vp_guest_count_place) counts;
	char *lacks;   /* why its tasks cannot be told, or NULL */
	char *dropped; /* why a cached kernel pack was not used, or NULL */
	char *pack;    /* its kernel pack as text, or NULL */
};

struct vp_guest_process {
	uint32_t tgid;
	uint64_t root;
	char *comm;
};
typedef VP_VEC(struct vp_guest_process) vp_guest_processes;

/*
 * Starts a reader of the VM's memory; `packs` are the texts of kernel packs, `dump` is the file for
 * map text or -1.
 */
struct vp_error *vp_guest_reader_start(const struct vp_guest_state *state,
				       const struct vp_buffer *packs, size_t n_packs, int dump,
				       struct vp_guest_reader **ret) VP_MUST_CHECK;
void vp_guest_reader_free(struct vp_guest_reader *reader);

/* Whether there is room for a request within that time; none is while it has many to answer. */
bool vp_guest_reader_listens(const struct vp_guest_reader *reader, int timeout_ms);
/* Sends a request of guestmem/worker.h, without its newline. */
struct vp_error *vp_guest_reader_ask(struct vp_guest_reader *reader, const char *format, ...)
    VP_PRINTF(2, 3) VP_MUST_CHECK;
/* Has the mappings of a process read; there is no answer. An error: it is too busy to listen. */
struct vp_error *vp_guest_reader_see(struct vp_guest_reader *reader, uint64_t task, uint32_t tgid,
				     uint64_t time) VP_MUST_CHECK;
/* The VM's memory slots are these now; there is no answer. */
struct vp_error *vp_guest_reader_memory(struct vp_guest_reader *reader,
					const struct vp_guest_memory *memory) VP_MUST_CHECK;
/*
 * Waits for the answer at most so long; *done is false if it is not whole yet. The answer, without
 * its last line, is in `answer` until the next request. An error that the reader says is an error.
 */
struct vp_error *vp_guest_reader_wait(struct vp_guest_reader *reader, int timeout_ms, bool *done,
				      struct vp_slice *answer) VP_MUST_CHECK;

/* Answers to `find` and `tasks`. */
struct vp_error *vp_guest_finding_parse(struct vp_slice answer,
					struct vp_guest_finding *ret) VP_MUST_CHECK;
void vp_guest_finding_deinit(struct vp_guest_finding *finding);
struct vp_error *vp_guest_processes_parse(struct vp_slice answer, vp_guest_processes *processes,
					  bool *damaged) VP_MUST_CHECK;
void vp_guest_processes_deinit(vp_guest_processes *processes);

#endif
