/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watches guests through their memory while they are recorded: finds each one's kernel, passes the
 * addresses of its current task and counters to the clients, requests the mappings of its processes
 * when they are first seen, and writes its symbol map. Confined processes do all parsing
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
#include "schema/memory_outcome.h"
#include "schema/records.h"
#include "schema/vm.h"

struct vp_guest_watch;

/* Receivers of the results. */
struct vp_guest_watch_client {
	void *context;
	const char *name; /* in sentences: "samples" */
	unsigned check_s; /* seconds from one look whether what was found still holds to the next */
	/* A guest's kernel was found: no other VM that runs has the VM's number, and the lowest are
	 * used first. */
	struct vp_error *(*identify)(void *context, uint32_t number,
				     const struct vp_guest_state *state,
				     const struct vp_guest_finding *finding);
	/* The results for the VM of VMM process `pid` are no longer valid. */
	void (*forget)(void *context, uint32_t pid);
	/* Both or none: the number of tasks outside of all memory slots since the start; and a
	 * notification that the slots have changed. */
	uint64_t (*count_nowhere)(void *context, uint32_t pid,
				  const struct vp_guest_finding *finding);
	struct vp_error *(*change_memory)(void *context, uint32_t number,
					  const struct vp_guest_state *state,
					  const struct vp_guest_finding *finding);
	/* Processes of the VM of VMM process `pid` with an interpreter, instead of those of before.
	 * May be NULL. */
	void (*follow)(void *context, uint32_t pid, const vp_guest_runtime_list *now);
	/* Adds the client's numbers to the outcome. */
	void (*outcome)(void *context, uint32_t pid, const struct vp_guest_finding *finding,
			struct vp_memory_outcome *ret);
};

/*
 * `notices` gets a sentence when a kernel is not found at once, when what was found is lost, and
 * when it is found after that. `directory` is the recording's: its name is read when something is
 * written there, and must stay where it is. `symbols`: whether symbol maps have those of the kernel
 * and of files.
 */
struct vp_guest_watch *vp_guest_watch_new(const struct vp_guest_access *access, vp_notices *notices,
					  const char *directory, bool symbols);
/* One more user of all guests: before the first of them is added. */
void vp_guest_watch_join(struct vp_guest_watch *watch, const struct vp_guest_watch_client *user);
void vp_guest_watch_free(struct vp_guest_watch *watch);
/* Begins to search the VM's memory for its guest's kernel. */
void vp_guest_watch_add(struct vp_guest_watch *watch, const struct vp_vm *vm);
/* Whether the VM's kernel was found: what was not identified then will not be. */
bool vp_guest_watch_has_found(const struct vp_guest_watch *watch, const struct vp_vm *vm);
/* Waits until every guest's kernel was found or not, at most `timeout_ms`. */
void vp_guest_watch_settle(struct vp_guest_watch *watch, unsigned timeout_ms);
/* Takes answers that have come, tries again what failed, checks what worked. */
void vp_guest_watch_step(struct vp_guest_watch *watch);
/* A sample hit user space of that thread of a guest, which was not hit lately. */
void vp_guest_watch_see(struct vp_guest_watch *watch, const struct vp_guest_task *task);
/* A sample hit user space of a guest. If it hit code that the process made itself, or a method that
 * it interprets, the name is read soon. */
void vp_guest_watch_hit(struct vp_guest_watch *watch, const struct vp_guest_sample *sample);
/* Whether there is such code: samples are to be handed on within milliseconds. */
bool vp_guest_watch_has_runtimes(const struct vp_guest_watch *watch);
/* Makes all guest readers write symbol maps, and unwind tables if wanted, in parallel, within
 * `timeout_ms` in total. Readers that are late are lost as at any other time. */
void vp_guest_watch_write(struct vp_guest_watch *watch, bool tables, unsigned timeout_ms,
			  const struct vp_meanwhile *meanwhile);
/*
 * After that, writes the VM's symbol map to `path`: as it is now or, if the VM has ended or its
 * memory is not what it was, as it was known before. *written is false without such a map.
 */
struct vp_error *vp_guest_watch_dump(struct vp_guest_watch *watch, const struct vp_vm *vm,
				     const char *path, bool *written) VP_MUST_CHECK;
/* The same of the unwind tables of the guest's kernel; *problem has the reason for missing tables,
 * and is the caller's. */
struct vp_error *vp_guest_watch_unwind_tables(struct vp_guest_watch *watch, const struct vp_vm *vm,
					      const char *path,
					      struct vp_error **problem) VP_MUST_CHECK;
/* The VM has ended: its process may be another VM's from now on. vp_guest_watch_step() has its
 * reader write what it knows, and ends it. */
void vp_guest_watch_end(struct vp_guest_watch *watch, const struct vp_vm *vm);
/* After that, without waiting: once its symbol map is complete or has failed, *done is true and the
 * map is at `path` and no more in memory. After an error, vp_guest_watch_dump() has it. */
struct vp_error *vp_guest_watch_put_away(struct vp_guest_watch *watch, const struct vp_vm *vm,
					 const char *path, bool *done) VP_MUST_CHECK;
/* Nothing that is recorded refers to the VM any more. */
void vp_guest_watch_drop(struct vp_guest_watch *watch, const struct vp_vm *vm);
/* The outcome; false: the watch does not know the VM. The caller frees `problem`. */
bool vp_guest_watch_outcome(const struct vp_guest_watch *watch, const struct vp_vm *vm,
			    struct vp_memory_outcome *ret) VP_MUST_CHECK;

#endif
