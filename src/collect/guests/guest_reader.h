/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a guest's memory in a confined process. That process has open, read-only descriptors of
 * that memory (struct vp_guest_access), and no other rights: another user, no other file, no system
 * calls except reading, receiving, writing, memory management and the one request that maps the
 * memory. It may be passed files that every user of the host can read (host_copy.h). Its replies
 * are untrusted. */
#ifndef VP_COLLECT_GUESTS_GUEST_READER_H
#define VP_COLLECT_GUESTS_GUEST_READER_H

#include "base/macros.h"
#include "collect/guests/guest_access.h"
#include "collect/guests/guest_answer.h"
#include "guestreader/stack_job.h"

struct vp_guest_reader;

/* Starts a reader of the VM's memory. `packs`: texts of kernel packs; `dump`: file for the symbol
 * map or -1, limited to `max_dump` bytes. */
struct vp_error *vp_guest_reader_start(const struct vp_guest_access *access,
				       const struct vp_guest_state *state,
				       const struct vp_buffer *packs, size_t n_packs, int dump,
				       uint64_t max_dump,
				       struct vp_guest_reader **ret) VP_MUST_CHECK;
void vp_guest_reader_free(struct vp_guest_reader *reader);

/* Whether a request can be sent within the timeout; not while many are pending. */
bool vp_guest_reader_listens(const struct vp_guest_reader *reader, int timeout_ms);
/* Becomes readable when a reply arrives. */
int vp_guest_reader_fd(const struct vp_guest_reader *reader);
/* Sends a request of guestreader/worker.h, without its newline. */
struct vp_error *vp_guest_reader_request(struct vp_guest_reader *reader, const char *format, ...)
    VP_PRINTF(2, 3) VP_MUST_CHECK;
/* Requests reading the mappings of a process; there is no reply. Errors: the reader is too busy. */
struct vp_error *vp_guest_reader_request_process(struct vp_guest_reader *reader, uint64_t task,
						 uint32_t tgid, uint64_t time) VP_MUST_CHECK;
/* Sends requests without a reply (vp_guest_hits): all or none. */
struct vp_error *vp_guest_reader_hits(struct vp_guest_reader *reader, const char *requests,
				      size_t size) VP_MUST_CHECK;
/* Passes the host's copy of a file with missing unwind tables; it stays open here. False: the
 * reader is too busy, and goes without the file. */
bool vp_guest_reader_pass_file(struct vp_guest_reader *reader, const struct vp_build_id *build_id,
			       int fd);
/* A place for a stack to be unwound with the next request; NULL: VP_STACK_JOBS have one, or the
 * request before is not complete. */
struct vp_stack_job *vp_guest_reader_job(struct vp_guest_reader *reader);
/* Requests the chains of those stacks, which are in the jobs when vp_guest_reader_unwound(); they
 * are untrusted, and good until the next vp_guest_reader_job(). False: no stacks, or the reader is
 * too busy. */
bool vp_guest_reader_unwind(struct vp_guest_reader *reader);
bool vp_guest_reader_unwound(const struct vp_guest_reader *reader);
/* Updates the VM's memory slots; there is no reply. */
struct vp_error *vp_guest_reader_memory(struct vp_guest_reader *reader,
					const struct vp_guest_memory *memory) VP_MUST_CHECK;
/* Waits for the reply, with a timeout; *done: it is complete. `answer` has the reply without its
 * last line, until the next request. Errors: also those of the reader. */
struct vp_error *vp_guest_reader_wait(struct vp_guest_reader *reader, int timeout_ms, bool *done,
				      struct vp_slice *answer) VP_MUST_CHECK;

#endif
