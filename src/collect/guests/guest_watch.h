/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watches guests through their memory during a recording: finds each guest's kernel, passes the
 * addresses of current tasks and counters to clients, requests the mappings of processes when first
 * sampled, and writes symbol maps. All parsing is done by confined processes
 * (collect/guests/guest_reader.h); nothing here waits for them while samples are taken.
 */
#ifndef VP_COLLECT_GUESTS_GUEST_WATCH_H
#define VP_COLLECT_GUESTS_GUEST_WATCH_H

#include "base/error.h"
#include "base/macros.h"
#include "base/meanwhile.h"
#include "base/notices.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_reader.h"
#include "guestreader/stack_job.h"
#include "schema/memory_outcome.h"
#include "schema/records.h"
#include "schema/user_stack.h"
#include "schema/vm.h"

struct vp_guest_watch;

/* A client that receives the results. */
struct vp_guest_watch_client {
	void *context;
	const char *name; /* for sentences: "samples" */
	unsigned check_s; /* seconds between checks that the results are still valid */
	/* A guest's kernel was found. `number` is unique among running VMs; the lowest free one is
	 * used. */
	struct vp_error *(*identify)(void *context, uint32_t number,
				     const struct vp_guest_state *state,
				     const struct vp_guest_finding *finding);
	/* The results for the VM of VMM process `pid` are no longer valid. */
	void (*forget)(void *context, uint32_t pid);
	/* Both or none: number of tasks outside all memory slots since the start; notification that
	 * the slots have changed. */
	uint64_t (*count_nowhere)(void *context, uint32_t pid,
				  const struct vp_guest_finding *finding);
	struct vp_error *(*change_memory)(void *context, uint32_t number,
					  const struct vp_guest_state *state,
					  const struct vp_guest_finding *finding);
	/* Processes with an interpreter in the VM of VMM process `pid`, replacing the previous
	 * list. May be NULL. */
	void (*follow)(void *context, uint32_t pid, const vp_guest_runtime_list *now);
	/* Adds the client's counts to the outcome. */
	void (*outcome)(void *context, uint32_t pid, const struct vp_guest_finding *finding,
			struct vp_memory_outcome *ret);
};

/*
 * `notices` receives a warning when a kernel is not found at once, when a found one is lost, and
 * when it is found again. `directory` (of the recording) is read again at each use and must stay in
 * place. `symbols`: symbol maps include symbols of the kernel and of files.
 */
struct vp_guest_watch *vp_guest_watch_new(const struct vp_guest_access *access, vp_notices *notices,
					  const char *directory, bool symbols);
/* Another recorder reports which kernels are found. */
void vp_guest_watch_be_quiet(struct vp_guest_watch *watch);
/* Adds a client for all guests; before the first vp_guest_watch_add(). */
void vp_guest_watch_join(struct vp_guest_watch *watch, const struct vp_guest_watch_client *user);
void vp_guest_watch_free(struct vp_guest_watch *watch);
/* Starts searching the VM's memory for its guest's kernel. */
void vp_guest_watch_add(struct vp_guest_watch *watch, const struct vp_vm *vm);
/* Whether the VM's kernel was found; processes not identified by then will not be. */
bool vp_guest_watch_has_found(const struct vp_guest_watch *watch, const struct vp_vm *vm);
/* Waits until the search has ended for every guest, at most `timeout_ms`. */
void vp_guest_watch_settle(struct vp_guest_watch *watch, unsigned timeout_ms);
/* Processes replies, retries failures, checks results. */
void vp_guest_watch_step(struct vp_guest_watch *watch);
/* Notes a sample in user space of that guest thread, unless it was seen recently. */
void vp_guest_watch_note_task(struct vp_guest_watch *watch, const struct vp_guest_task *task);
/* Notes a sample in a guest kernel: one in Linux makes a search that is not due yet due soon. One
 * of a vCPU that was offline when the kernel was found makes another search. */
void vp_guest_watch_note_kernel(struct vp_guest_watch *watch, const struct vp_guest_sample *sample);
/* Notes a sample in user space of a guest. For generated code and interpreted methods, the name is
 * read soon. */
void vp_guest_watch_hit(struct vp_guest_watch *watch, const struct vp_guest_sample *sample);
/* A guest's stack is to be unwound with those before it: where its chain will be, or NULL. */
struct vp_stack_job *vp_guest_watch_stack(struct vp_guest_watch *watch,
					  const struct vp_user_stack *stack,
					  const struct vp_interpreted *interpreted);
/* Requests the chains of these stacks, and waits at most `timeout_ms`. Stacks that are not complete
 * then have no chain: the reader is busy, for example with tables of a program that has just
 * started. */
void vp_guest_watch_unwind(struct vp_guest_watch *watch, unsigned timeout_ms);
/* Whether there is such code: samples must then be passed on within milliseconds. */
bool vp_guest_watch_has_runtimes(const struct vp_guest_watch *watch);
/* Makes all guest readers write symbol maps, and unwind tables if requested, in parallel, within
 * `timeout_ms` in total. Readers that are late are dropped. */
void vp_guest_watch_write(struct vp_guest_watch *watch, bool tables, unsigned timeout_ms,
			  const struct vp_meanwhile *meanwhile);
/* After that, writes the VM's symbol map to `path`: the present one, or the last known one if the
 * VM has ended or its memory has changed. *written: false without such a map. */
struct vp_error *vp_guest_watch_dump(struct vp_guest_watch *watch, const struct vp_vm *vm,
				     const char *path, bool *written) VP_MUST_CHECK;
/* The same for the unwind tables of the guest kernel; *problem: reason for missing tables, owned by
 * the caller. */
struct vp_error *vp_guest_watch_unwind_tables(struct vp_guest_watch *watch, const struct vp_vm *vm,
					      const char *path,
					      struct vp_error **problem) VP_MUST_CHECK;
/* The VM has ended, and its pid may be reused. vp_guest_watch_step() makes its reader write its
 * symbol map, then ends it. */
void vp_guest_watch_end(struct vp_guest_watch *watch, const struct vp_vm *vm);
/* After that, without waiting. *done: the map is complete or has failed; it was moved to `path` and
 * removed from memory. After an error, use vp_guest_watch_dump(). */
struct vp_error *vp_guest_watch_put_away(struct vp_guest_watch *watch, const struct vp_vm *vm,
					 const char *path, bool *done) VP_MUST_CHECK;
/* No record refers to the VM any more. */
void vp_guest_watch_drop(struct vp_guest_watch *watch, const struct vp_vm *vm);
/* The outcome; false: unknown VM. The caller frees `problem`. */
bool vp_guest_watch_outcome(const struct vp_guest_watch *watch, const struct vp_vm *vm,
			    struct vp_memory_outcome *ret) VP_MUST_CHECK;

#endif
