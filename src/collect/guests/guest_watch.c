/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/guests/guest_watch.h"
#include "base/alloc.h"
#include "base/cursor.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/guests/guest_access.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_hits.h"
#include "collect/guests/guest_retry.h"
#include "collect/guests/guest_state.h"
#include "collect/guests/guest_watch_private.h"
#include "collect/guests/host_copy.h"
#include "collect/guests/host_fetch.h"
#include "collect/guests/pack_cache.h"
#include "guestmem/memory/memory.h"
#include "guestreader/stack_job.h"
#include "maps/format.h"
#include "schema/user_stack.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"
#include "collect/guests/kernel_addresses.h"

enum {
	ANSWER_S = 30, /* timeout of a reply while samples are taken */
	/* Number of attempts after which a missing kernel of a new VM is reported: 20 to 30 s. */
	TRIES_OF_NEW = 7,
	/* A scan for the kernel may take minutes: maximum delay of the start. */
	SEARCH_MS = 1000,
	/* Processes whose mappings are requested per second, and that are remembered. */
	SEEN_PER_SECOND = 1000,
	MAX_SEEN = 1 << 20,
	MAX_LATELY = 1024,
	LOOK_US = 50, /* interval of checks for unwound stacks */
};
#define SECOND 1000000000ULL
/* A guest with a new process is checked after that time: it may have a runtime. */
#define SOON_NS 100000000ULL

struct vp_guest_watch *vp_guest_watch_new(const struct vp_guest_access *access, vp_notices *notices,
					  const char *directory, bool symbols)
{
	struct vp_guest_watch *watch = vp_alloc(sizeof(*watch));
	struct vp_error *error = access->open(&watch->lister);

	watch->access = access;
	watch->notices = notices;
	watch->symbols = symbols;
	watch->cache = vp_pack_cache_folder();
	watch->fetch = vp_host_fetch_new();
	watch->directory = directory;
	vp_pack_cache_load(watch->cache, &watch->packs);
	if (error)
		watch->lister_problem = vp_strdup(vp_error_message(error));
	vp_error_free(error);
	return watch;
}

void vp_guest_watch_be_quiet(struct vp_guest_watch *watch)
{
	watch->is_quiet = true;
}

void vp_guest_watch_join(struct vp_guest_watch *watch, const struct vp_guest_watch_client *user)
{
	vp_vec_push(&watch->users, *user);
}

static void guest_stop(struct guest *guest)
{
	vp_guest_reader_free(guest->reader);
	guest->reader = NULL;
	vp_guest_finding_deinit(&guest->finding);
	vp_guest_state_deinit(&guest->memory);
	vp_guest_hits_deinit(&guest->hits);
	if (guest->text >= 0)
		close(guest->text);
	guest->text = -1;
}

static void guest_watch_guest_deinit(struct guest *guest)
{
	guest_stop(guest);
	if (guest->last_text >= 0)
		close(guest->last_text);
	vp_error_free(guest->lacks_tables);
	free(guest->lost_why);
	free(guest->name);
	free(guest->problem);
}

void vp_guest_watch_free(struct vp_guest_watch *watch)
{
	if (!watch)
		return;
	vp_vec_each (&watch->guests, guest)
		guest_watch_guest_deinit(guest);
	vp_vec_deinit(&watch->guests);
	vp_vec_deinit(&watch->users);
	if (watch->lister)
		watch->access->close(watch->lister);
	vp_pack_texts_deinit(&watch->packs);
	vp_host_fetch_free(watch->fetch);
	vp_map_deinit(&watch->seen);
	vp_vec_deinit(&watch->lately);
	free(watch->lister_problem);
	free(watch->cache);
	free(watch);
}

struct guest *vp_guest_of(const struct vp_guest_watch *watch, uint32_t vm)
{
	vp_vec_each (&watch->guests, guest)
		if (guest->vm == vm)
			return guest;
	return NULL;
}

static bool vmm_runs(const struct vp_guest_watch *watch, const struct guest *guest)
{
	return !guest->ended && watch->access->runs(guest->pid);
}

/* Reports where the guest's kernel is. */
static void guest_watch_note(struct vp_guest_watch *watch, char *sentence)
{
	if (watch->is_quiet)
		free(sentence);
	else
		vp_vec_push(watch->notices, sentence);
}

static void send_lost(struct vp_guest_watch *watch, struct guest *guest, const char *why)
{
	guest->lost_at = vp_clock_monotonic();
	free(guest->lost_why);
	guest->lost_why = vp_strdup(why);
	if (vmm_runs(watch, guest))
		guest_watch_note(
		    watch, vp_format("VM '%s': guest memory is not read for now: %s; searching "
				     "for the kernel again every %d to %u s",
				     guest->name, why, VP_RETRY_S,
				     vp_guest_retry_longest_s(watch->sampled)));
}

static void report_found_again(struct vp_guest_watch *watch, struct guest *guest)
{
	uint64_t passed = vp_clock_monotonic() - guest->lost_at;

	guest->lost_ns += passed;
	guest->lost_at = 0;
	guest_watch_note(watch, vp_format("VM '%s': the kernel was found again after %.1f s",
					  guest->name, (double)passed / SECOND));
}

/* Its kernel was not found so far: warn now, not only at the end. */
static void guest_watch_report_missing(struct vp_guest_watch *watch, struct guest *guest,
				       const char *why)
{
	if (guest->is_protected && !guest->reported_missing) {
		guest->reported_missing = true;
		guest_watch_note(watch, vp_format("VM '%s': %s", guest->name, why));
	}
	if (guest->reported_missing || guest->retry.tries < guest->quiet_tries ||
	    !vmm_runs(watch, guest))
		return;
	guest->reported_missing = true;
	guest_watch_note(watch, vp_format("VM '%s': the kernel has not been found, guest "
					  "memory is not read: %s; searching every %d to %u s",
					  guest->name, why, VP_RETRY_S,
					  vp_guest_retry_longest_s(watch->sampled)));
}

static void report_searching(struct vp_guest_watch *watch, struct guest *guest)
{
	guest->reported_missing = true;
	guest_watch_note(
	    watch, vp_format("VM '%s': still scanning guest memory for the kernel; guest symbols "
			     "are available once it is found",
			     guest->name));
}

static void report_found(struct vp_guest_watch *watch, struct guest *guest)
{
	uint64_t passed = vp_clock_monotonic() - guest->added;

	guest->reported_missing = false;
	guest_watch_note(watch, vp_format("VM '%s': the kernel was found after %.1f s", guest->name,
					  (double)passed / SECOND));
}

static void guest_watch_follow(struct vp_guest_watch *watch, const struct guest *guest,
			       const vp_guest_runtime_list *now)
{
	watch->n_runtimes += now->count - guest->hits.runtimes.count;
	vp_vec_each (&watch->users, user)
		if (user->follow)
			user->follow(user->context, guest->pid, now);
}

/* Clients identify guests by pid: a reused pid belongs to the new VM. */
static void guest_watch_forget(struct vp_guest_watch *watch, struct guest *guest)
{
	static const vp_guest_runtime_list none;

	guest_watch_follow(watch, guest, &none);
	guest->hits.runtimes.count = 0;
	vp_vec_each (&watch->guests, other)
		if (other != guest && other->pid == guest->pid && !other->ended)
			return;
	vp_vec_each (&watch->users, user)
		user->forget(user->context, guest->pid);
}

/* Drops all results from the guest's memory. */
void vp_guest_drop_results(struct vp_guest_watch *watch, struct guest *guest,
			   struct vp_error *error)
{
	bool was_found = guest->state == GUEST_READY || guest->state == GUEST_CHECKING ||
			 guest->state == GUEST_LEAVING;
	uint64_t now = vp_clock_monotonic();

	if (was_found)
		guest->retry = (struct vp_guest_retry){.failed = guest->has_new_vcpu ? 0 : now};
	else
		vp_guest_retry_fail(&guest->retry, now);
	if (was_found && !guest->lost_at)
		send_lost(watch, guest, vp_error_message(error));
	else if (!was_found && !guest->lost_at)
		guest_watch_report_missing(watch, guest, vp_error_message(error));
	guest_watch_forget(watch, guest);
	guest_stop(guest);
	free(guest->problem);
	guest->problem = vp_strdup(vp_error_message(error));
	vp_error_free(error);
	guest->has_new_vcpu = false;
	guest->state = GUEST_LOST;
	watch->any_lost = true;
}

/* A scan starts at the kernel's last known address. */
static struct vp_error *request_find(struct guest *guest)
{
	guest->asked = vp_clock_monotonic();
	return guest->banner_gpa ? vp_guest_reader_request(guest->reader, "find banner %" PRIx64,
							   guest->banner_gpa)
				 : vp_guest_reader_request(guest->reader, "find");
}

uint64_t vp_guest_text_size(int text)
{
	struct stat status;

	return text >= 0 && !fstat(text, &status) ? (uint64_t)status.st_size : 0;
}

uint64_t vp_guest_max_text(const struct guest *guest)
{
	return VP_GUEST_MAX_TEXT - vp_guest_text_size(guest->last_text);
}

static struct vp_error *start_reader(struct vp_guest_watch *watch, struct guest *guest)
{
	if (!watch->lister)
		return vp_error_new("%s", watch->lister_problem);
	VP_TRY(watch->access->list(watch->lister, guest->pid, &guest->memory));
	guest->is_protected = guest->memory.protected_by != NULL;
	VP_TRY(vp_guest_state_expect_open(&guest->memory));
	guest->text = memfd_create("vperf-guest-maps", MFD_CLOEXEC);
	if (guest->text < 0)
		return vp_error_errno(errno, "cannot allocate memory for the symbol map");
	VP_TRY(vp_guest_reader_start(watch->access, &guest->memory, watch->packs.at,
				     watch->packs.count, guest->text, vp_guest_max_text(guest),
				     &guest->reader));
	VP_TRY(watch->access->expect_same(&guest->memory));
	guest->nowhere = 0;
	guest->searching = false;
	guest->state = GUEST_FINDING;
	return request_find(guest);
}

static void try_start(struct vp_guest_watch *watch, struct guest *guest)
{
	struct vp_error *error = start_reader(watch, guest);

	if (error)
		vp_guest_drop_results(watch, guest, error);
}

/* The VM has ended. Its reader's data must still be written. */
static void end_guest(struct vp_guest_watch *watch, struct guest *guest)
{
	guest_watch_forget(watch, guest);
	guest->ended = true;
}

/* The lowest number without a guest that may still have results. */
static uint32_t free_number(const struct vp_guest_watch *watch)
{
	struct vp_map used = {0};
	uint32_t number = 0;
	bool inserted;

	vp_vec_each (&watch->guests, guest)
		if (guest->state != GUEST_LOST || vmm_runs(watch, guest))
			vp_map_insert(&used, guest->number, 0, &inserted);
	while (vp_map_find(&used, number))
		number++;
	vp_map_deinit(&used);
	return number;
}

void vp_guest_watch_add(struct vp_guest_watch *watch, const struct vp_vm *vm)
{
	if (vp_guest_of(watch, vp_vm_id(vm)))
		return;
	vp_vec_each (&watch->guests, guest)
		if (guest->pid == vm->pid && !guest->ended)
			end_guest(watch, guest);
	uint32_t number = free_number(watch); /* before the guest is added */
	vp_vec_push(&watch->guests,
		    ((struct guest){.vm = vp_vm_id(vm),
				    .pid = vm->pid,
				    .number = number,
				    .text = -1,
				    .last_text = -1,
				    .added = vp_clock_monotonic(),
				    .quiet_tries = vm->at_start ? 1 : TRIES_OF_NEW,
				    .banner_gpa = vp_kernel_address_recall(watch->cache, vm->name),
				    .name = vp_strdup(vm->name)}));
	try_start(watch, &watch->guests.at[watch->guests.count - 1]);
}

/* Packs speed up later runs: a failure to store one is ignored. */
static void keep_pack(struct vp_guest_watch *watch, const struct vp_guest_finding *finding)
{
	VP_AUTO_FREE char *own = vp_format("%s/packs", watch->directory);
	const char *folders[] = {own, watch->cache};
	size_t count = finding->cached ? 1 : 2;

	for (size_t i = 0; i < count && finding->pack; i++)
		vp_error_free(vp_pack_cache_store(folders[i], &finding->build_id, finding->pack));
}

/* The same for the address. */
static void remember_address(struct vp_guest_watch *watch, struct guest *guest)
{
	const struct vp_guest_finding *finding = &guest->finding;

	if (!finding->scanned || !finding->banner_gpa || finding->banner_gpa == guest->banner_gpa)
		return;
	guest->banner_gpa = finding->banner_gpa;
	vp_error_free(vp_kernel_address_store(watch->cache, guest->name, guest->banner_gpa));
}

/* One client may lack space for the guest while others have it. */
static struct vp_error *guest_watch_identify(struct vp_guest_watch *watch,
					     const struct guest *guest)
{
	size_t failed = 0;

	vp_vec_each (&watch->users, user) {
		struct vp_error *error =
		    user->identify(user->context, guest->number, &guest->memory, &guest->finding);
		if (error && ++failed == watch->users.count)
			return error;
		if (error)
			vp_vec_push(watch->notices,
				    vp_format("VM '%s': guest memory is not read for %s: %s",
					      guest->name, user->name, vp_error_message(error)));
		vp_error_free(error);
	}
	return NULL;
}

static struct vp_error *guest_watch_take_finding(struct vp_guest_watch *watch, struct guest *guest,
						 struct vp_slice answer)
{
	VP_TRY(vp_guest_finding_parse(answer, &guest->finding));
	guest->searching = guest->finding.searching;
	if (guest->searching) {
		guest->searched = guest->finding.searched;
		guest->to_search = guest->finding.to_search;
		vp_guest_finding_deinit(&guest->finding);
		return request_find(guest);
	}
	const char *lacks = guest->finding.lacks;
	if (!lacks)
		VP_TRY(guest_watch_identify(watch, guest));
	keep_pack(watch, &guest->finding);
	remember_address(watch, guest);
	guest->retry = (struct vp_guest_retry){0};
	if (guest->lost_at)
		report_found_again(watch, guest);
	else if (guest->reported_missing)
		report_found(watch, guest);
	vp_map_deinit(&watch->seen); /* results of the previous reader are gone */
	free(guest->problem);
	guest->problem =
	    lacks ? vp_format("only kernel symbols: the kernel does not provide %s", lacks) : NULL;
	return NULL;
}

/* The guest's memory has changed: makes the reader write its results before they are dropped. */
static void guest_watch_leave(struct vp_guest_watch *watch, struct guest *guest,
			      struct vp_error *reason)
{
	guest_watch_forget(watch, guest);
	struct vp_error *error = vp_guest_reader_request(guest->reader, "dump %d", watch->symbols);
	if (error) {
		vp_error_free(error);
		vp_guest_drop_results(watch, guest, reason);
		return;
	}
	free(guest->problem);
	guest->problem = vp_strdup(vp_error_message(reason));
	vp_error_free(reason);
	guest->asked = vp_clock_monotonic();
	guest->state = GUEST_LEAVING;
}

void vp_guest_keep_text(struct guest *guest)
{
	if (guest->last_text >= 0)
		close(guest->last_text);
	guest->last_text = guest->text;
	guest->text = -1;
}

static unsigned check_s(const struct vp_guest_watch *watch)
{
	unsigned least = UINT_MAX;

	vp_vec_each (&watch->users, user)
		least = user->check_s < least ? user->check_s : least;
	return least;
}

/* Processes a reply about runtimes. *starting: repeat the check soon. */
static struct vp_error *guest_watch_take_runtimes(struct vp_guest_watch *watch, struct guest *guest,
						  struct vp_slice answer, bool *starting)
{
	vp_guest_runtime_list now = {0};
	struct vp_error *error = vp_guest_runtimes_parse(answer, &now, starting);

	if (error) {
		vp_vec_deinit(&now);
		return error;
	}
	guest_watch_follow(watch, guest, &now);
	vp_vec_deinit(&guest->hits.runtimes);
	guest->hits.runtimes = now;
	return NULL;
}

/* Passes the host's copies of files to the reader that lacks pages of them. */
static void pass_files(struct vp_guest_watch *watch, struct guest *guest, struct vp_slice answer)
{
	vp_guest_wanted_files files = {0};

	vp_guest_wanted_files_parse(answer, &files);
	vp_vec_each (&files, file) {
		VP_AUTO_CLOSE int fd = vp_host_copy_find(file->path, &file->build_id);
		if (fd >= 0)
			vp_guest_reader_pass_file(guest->reader, &file->build_id, fd);
		else
			vp_host_fetch_request(watch->fetch, guest->vm, &file->build_id);
	}
	vp_guest_wanted_files_deinit(&files);
}

/* A guest whose reader has ended needs no file. */
static bool pass_download(void *context, uint32_t vm, const struct vp_build_id *build_id, int fd)
{
	struct guest *guest = vp_guest_of(context, vm);

	return !guest || !guest->reader || vp_guest_reader_pass_file(guest->reader, build_id, fd);
}

/* Processes a reply, or an error instead. */
static struct vp_error *guest_watch_take_answer(struct vp_guest_watch *watch, struct guest *guest,
						struct vp_slice answer)
{
	bool starting = false;

	if (guest->state == GUEST_FINDING) {
		VP_TRY(guest_watch_take_finding(watch, guest, answer));
		if (guest->searching)
			return NULL;
	}
	if (guest->state == GUEST_LEAVING) {
		vp_guest_keep_text(guest);
		return vp_error_new("%s", guest->problem);
	}
	if (guest->state == GUEST_CHECKING)
		VP_TRY(guest_watch_take_runtimes(watch, guest, answer, &starting));
	if (guest->state == GUEST_CHECKING)
		pass_files(watch, guest, answer);
	guest->state = GUEST_READY;
	guest->next = vp_clock_monotonic() + (starting ? SOON_NS : check_s(watch) * SECOND);
	return NULL;
}

/* Checks for the pending reply of the guest. */
void vp_guest_poll(struct vp_guest_watch *watch, struct guest *guest, int timeout_ms)
{
	struct vp_slice answer;
	bool done;

	struct vp_error *error = vp_guest_reader_wait(guest->reader, timeout_ms, &done, &answer);
	bool refused = error && done;
	if (!error && done)
		error = guest_watch_take_answer(watch, guest, answer);
	else if (!error && vp_clock_monotonic() - guest->asked > ANSWER_S * SECOND)
		error = vp_error_new("reading guest memory timed out");
	if (refused && guest->state == GUEST_CHECKING)
		guest_watch_leave(watch, guest, error);
	else if (error)
		vp_guest_drop_results(watch, guest, error);
}

static bool searches_long(const struct guest *guest)
{
	return guest->searching &&
	       vp_clock_monotonic() - guest->added > SEARCH_MS * (SECOND / 1000);
}

void vp_guest_watch_settle(struct vp_guest_watch *watch, unsigned timeout_ms)
{
	uint64_t end = vp_clock_monotonic() + timeout_ms * 1000000ULL;

	vp_vec_each (&watch->guests, guest)
		while (guest->state == GUEST_FINDING && vp_clock_monotonic() < end &&
		       !searches_long(guest))
			vp_guest_poll(watch, guest, 20);
	vp_vec_each (&watch->guests, guest)
		if (guest->state == GUEST_FINDING && guest->searching)
			report_searching(watch, guest);
		else if (guest->state == GUEST_FINDING)
			guest_watch_report_missing(watch, guest, "reading guest memory is slow");
}

bool vp_guest_watch_has_found(const struct vp_guest_watch *watch, const struct vp_vm *vm)
{
	const struct guest *guest = vp_guest_of(watch, vp_vm_id(vm));

	return guest && (guest->state == GUEST_READY || guest->state == GUEST_CHECKING);
}

/* Memory may have been plugged or unplugged: lists the slots again. */
struct vp_error *vp_guest_refresh_memory(struct vp_guest_watch *watch, struct guest *guest)
{
	struct vp_guest_state now;
	struct vp_error *error = watch->access->list(watch->lister, guest->pid, &now);

	if (error) { /* the next read will fail */
		vp_error_free(error);
		return NULL;
	}
	guest->is_protected = now.protected_by != NULL;
	struct vp_error *closed = vp_guest_state_expect_open(&now);
	if (closed) {
		vp_guest_state_deinit(&now);
		return closed;
	}
	bool changed = vp_guest_memory_change(&guest->memory.memory, &now.memory);
	vp_guest_state_deinit(&now);
	if (!changed)
		return NULL;
	VP_TRY(vp_guest_reader_memory(guest->reader, &guest->memory.memory));
	vp_vec_each (&watch->users, user)
		if (user->change_memory && !guest->finding.lacks)
			VP_TRY(user->change_memory(user->context, guest->number, &guest->memory,
						   &guest->finding));
	return NULL;
}

/* Only if tasks were outside all known slots: listing slots is expensive. */
static struct vp_error *refresh_if_needed(struct vp_guest_watch *watch, struct guest *guest)
{
	uint64_t nowhere = 0;

	vp_vec_each (&watch->users, user)
		if (user->count_nowhere)
			nowhere += user->count_nowhere(user->context, guest->pid, &guest->finding);
	if (nowhere == guest->nowhere)
		return NULL;
	guest->nowhere = nowhere;
	return vp_guest_refresh_memory(watch, guest);
}

/* A busy reader is asked later: that is no reason to drop the guest. */
static struct vp_error *wait_for_reader(struct guest *guest, uint64_t now)
{
	if (!guest->busy_since)
		guest->busy_since = now;
	guest->next = now + SECOND / 10;
	return now - guest->busy_since > ANSWER_S * SECOND
		   ? vp_error_new("the guest memory reader did not respond for %d s", ANSWER_S)
		   : NULL;
}

static struct vp_error *request_check(struct vp_guest_watch *watch, struct guest *guest)
{
	uint64_t now = vp_clock_monotonic();

	if (!vp_guest_reader_listens(guest->reader, 0))
		return wait_for_reader(guest, now);
	guest->busy_since = 0;
	VP_TRY(refresh_if_needed(watch, guest));
	VP_TRY(vp_guest_reader_request(guest->reader, "check"));
	guest->asked = now;
	guest->state = GUEST_CHECKING;
	return NULL;
}

static void guest_watch_check(struct vp_guest_watch *watch, struct guest *guest)
{
	struct vp_error *error = request_check(watch, guest);

	if (error)
		vp_guest_drop_results(watch, guest, error);
}

/* Makes the reader write a map of its results; then it is not needed any more. */
static void step_ended(struct vp_guest_watch *watch, struct guest *guest)
{
	struct vp_error *error = NULL;

	if (guest->state == GUEST_FINDING)
		error = vp_error_new("the VM ended before its kernel was found");
	else if (guest->state == GUEST_READY && vp_guest_reader_listens(guest->reader, 0))
		guest_watch_leave(watch, guest, vp_error_new("the VM ended"));
	else if (guest->state == GUEST_READY)
		error = wait_for_reader(guest, vp_clock_monotonic());
	else if (guest->state != GUEST_LOST)
		vp_guest_poll(watch, guest, 0);
	if (error)
		vp_guest_drop_results(watch, guest, error);
}

static bool guest_watch_is_waiting(const struct guest *guest)
{
	return guest->state == GUEST_FINDING || guest->state == GUEST_CHECKING ||
	       guest->state == GUEST_LEAVING;
}

/* Whether another request is within the limits. */
static bool guest_watch_may_request(struct vp_guest_watch *watch, uint64_t time)
{
	if (time / SECOND != watch->second) {
		watch->second = time / SECOND;
		watch->seen_in_fallback = 0;
	}
	return watch->seen_in_fallback++ < SEEN_PER_SECOND;
}

static bool guest_watch_listens(const struct guest *guest)
{
	return guest && (guest->state == GUEST_READY || guest->state == GUEST_CHECKING);
}

/* Delays of reading mappings again, ns since the first time. */
static const uint64_t again_ns[] = {20000000,  100000000,  250000000,  400000000,
				    600000000, 1000000000, 2000000000, 8000000000};

/* Mappings of a process were requested. */
static void guest_watch_check_soon(struct guest *guest, uint64_t now)
{
	if (guest->state == GUEST_READY && guest->next > now + SOON_NS)
		guest->next = now + SOON_NS;
}

/* Reads mappings again for processes first seen some time ago. With a busy reader, next time. */
static void guest_watch_reread_processes(struct vp_guest_watch *watch, uint64_t now)
{
	for (size_t i = watch->lately.count; i-- > 0;) {
		struct vp_seen_lately *process = &watch->lately.at[i];
		struct guest *guest = vp_guest_of(watch, process->vm);
		if (process->due > now)
			continue;
		if (guest_watch_listens(guest) && guest_watch_may_request(watch, now)) {
			vp_error_free(vp_guest_reader_request_process(guest->reader, process->task,
								      process->pid, now));
			guest_watch_check_soon(guest, now);
		}
		if (++process->times < VP_ARRAY_SIZE(again_ns))
			process->due = process->first + again_ns[process->times];
		else
			*process = watch->lately.at[--watch->lately.count];
	}
}

static void plan_again(struct vp_guest_watch *watch, const struct vp_guest_task *task)
{
	uint64_t now = vp_clock_monotonic();

	if (watch->lately.count < MAX_LATELY)
		vp_vec_push(&watch->lately, ((struct vp_seen_lately){.task = task->task,
								     .first = now,
								     .due = now + again_ns[0],
								     .vm = task->vm,
								     .pid = task->guest_pid}));
}

/* A busy reader gets none of them: other samples will hit the same code. */
static void send_hits(struct guest *guest)
{
	struct vp_guest_hits *hits = &guest->hits;
	struct vp_error *error = NULL;

	if (guest_watch_listens(guest) && hits->requests.size)
		error =
		    vp_guest_reader_hits(guest->reader, hits->requests.bytes, hits->requests.size);
	hits->dropped += error != NULL;
	vp_error_free(error);
	hits->requests.size = 0;
}

void vp_guest_watch_hit(struct vp_guest_watch *watch, const struct vp_guest_sample *sample)
{
	bool method = sample->flags & VP_AT_METHOD;

	if (!method && !watch->n_runtimes) /* as for most samples */
		return;
	struct guest *guest = vp_guest_of(watch, sample->vm);

	if (guest &&
	    (method || vp_guest_hits_has_code(&guest->hits, sample->guest_pid, sample->ip)) &&
	    vp_guest_hits_add(&guest->hits, sample->guest_pid, sample->ip, method, sample->time))
		send_hits(guest);
}

static struct guest *guest_of_process(const struct vp_guest_watch *watch, uint32_t pid)
{
	vp_vec_each (&watch->guests, guest)
		if (guest->pid == pid && !guest->ended)
			return guest;
	return NULL;
}

struct vp_stack_job *vp_guest_watch_stack(struct vp_guest_watch *watch,
					  const struct vp_user_stack *stack,
					  const struct vp_interpreted *interpreted)
{
	struct guest *guest = guest_of_process(watch, stack->vm);
	struct vp_stack_job *job = NULL;

	if (guest_watch_listens(guest))
		job = vp_guest_reader_job(guest->reader);
	if (!job)
		return NULL;
	memcpy(&job->stack, stack, offsetof(struct vp_user_stack, stack) + stack->bytes);
	job->interpreted.count = interpreted ? interpreted->count : 0;
	if (job->interpreted.count > VP_INTERPRETED_FRAMES)
		job->interpreted.count = VP_INTERPRETED_FRAMES;
	if (interpreted) /* those beyond are of other samples */
		memcpy(job->interpreted.frames, interpreted->frames,
		       job->interpreted.count * sizeof(*interpreted->frames));
	job->count = 0;
	return job;
}

static bool all_unwound(const struct vp_guest_watch *watch)
{
	vp_vec_each (&watch->guests, guest)
		if (guest->unwinding && !vp_guest_reader_unwound(guest->reader))
			return false;
	return true;
}

void vp_guest_watch_unwind(struct vp_guest_watch *watch, unsigned timeout_ms)
{
	uint64_t end = vp_clock_monotonic() + timeout_ms * 1000000ULL;

	/* A reader that is late with an earlier request has no job, and is not waited for again. */
	vp_vec_each (&watch->guests, guest)
		guest->unwinding =
		    guest_watch_listens(guest) && vp_guest_reader_unwind(guest->reader);
	while (!all_unwound(watch) && vp_clock_monotonic() < end)
		vp_sleep_us(LOOK_US);
}

bool vp_guest_watch_has_runtimes(const struct vp_guest_watch *watch)
{
	vp_vec_each (&watch->guests, guest)
		if (guest->hits.runtimes.count)
			return true;
	return false;
}

static bool is_to_search(const struct vp_guest_watch *watch, const struct guest *guest,
			 uint64_t now)
{
	return guest->state == GUEST_LOST && !guest->is_protected &&
	       vp_guest_retry_is_due(&guest->retry, watch->sampled, now) && vmm_runs(watch, guest);
}

/* A sample of a vCPU whose current task is not known. The registers with which it is found are
 * those of the time when the vCPU thread last lost its pCPU: one search may not be enough. */
static void note_vcpu(struct guest *guest, const struct vp_guest_sample *sample)
{
	enum { LONGEST_PAUSE = 6 }; /* 2^n s */

	if (!guest->finding.cpus.count || sample->time < guest->vcpu_due)
		return;
	vp_vec_each (&guest->finding.cpus, cpu)
		if (cpu->vcpu == sample->vcpu)
			return;
	guest->has_new_vcpu = true;
	guest->vcpu_due = sample->time + (SECOND << guest->vcpu_tries);
	guest->vcpu_tries += guest->vcpu_tries < LONGEST_PAUSE;
}

void vp_guest_watch_note_kernel(struct vp_guest_watch *watch, const struct vp_guest_sample *sample)
{
	bool is_known = sample->flags & VP_BY_MEMORY;

	watch->sampled = true;
	if (is_known && !watch->any_lost) /* as for most samples */
		return;
	struct guest *guest = vp_guest_of(watch, sample->vm);

	if (guest && guest->state == GUEST_LOST)
		vp_guest_retry_note(&guest->retry, sample->ip);
	else if (guest && guest->state == GUEST_READY && !is_known)
		note_vcpu(guest, sample);
}

void vp_guest_watch_step(struct vp_guest_watch *watch)
{
	uint64_t now = vp_clock_monotonic();

	watch->any_lost = false;
	vp_vec_each (&watch->guests, guest) {
		bool due = now >= guest->next;
		send_hits(guest);
		if (guest->ended)
			step_ended(watch, guest);
		else if (guest_watch_is_waiting(guest))
			vp_guest_poll(watch, guest, 0);
		else if (guest->state == GUEST_READY && guest->has_new_vcpu &&
			 vp_guest_reader_listens(guest->reader, 0))
			guest_watch_leave(watch, guest, vp_error_new("a vCPU came online"));
		else if (guest->state == GUEST_READY && due && !guest->finding.lacks)
			guest_watch_check(watch, guest);
		else if (is_to_search(watch, guest, now))
			try_start(watch, guest);
		watch->any_lost |= guest->state == GUEST_LOST;
	}
	guest_watch_reread_processes(watch, now);
	vp_host_fetch_step(watch->fetch, pass_download, watch);
}

void vp_guest_watch_note_task(struct vp_guest_watch *watch, const struct vp_guest_task *task)
{
	uint64_t key = (uint64_t)task->vm << 32 | task->guest_pid, words[2];
	bool is_new;

	memcpy(words, task->comm, sizeof(words));
	uint32_t hash = (uint32_t)vp_hash64(words[0] ^ vp_hash64(words[1]));
	const uint32_t *known = vp_map_find(&watch->seen, key);
	/* A changed name of the main thread means another program: exec, or a reused pid. */
	if (known && (*known == hash || task->guest_tid != task->guest_pid))
		return;
	struct guest *guest = vp_guest_of(watch, task->vm);
	if (!guest_watch_listens(guest) || !guest_watch_may_request(watch, task->time))
		return;
	if (watch->seen.count >= MAX_SEEN)
		vp_map_deinit(&watch->seen);
	*vp_map_insert(&watch->seen, key, hash, &is_new) = hash;
	/* With a busy reader, the request is repeated when the process is seen next. */
	struct vp_error *error =
	    vp_guest_reader_request_process(guest->reader, task->task, task->guest_pid, task->time);
	if (error)
		*vp_map_find(&watch->seen, key) = ~hash;
	else
		plan_again(watch, task);
	vp_error_free(error);
}

void vp_guest_watch_end(struct vp_guest_watch *watch, const struct vp_vm *vm)
{
	struct guest *guest = vp_guest_of(watch, vp_vm_id(vm));

	if (guest && !guest->ended)
		end_guest(watch, guest);
}

void vp_guest_watch_drop(struct vp_guest_watch *watch, const struct vp_vm *vm)
{
	struct guest *guest = vp_guest_of(watch, vp_vm_id(vm));

	if (!guest)
		return;
	if (!guest->ended)
		end_guest(watch, guest);
	guest_watch_guest_deinit(guest);
	*guest = watch->guests.at[--watch->guests.count];
}

/* Counts of a guest whose kernel was found. */
static void guest_watch_count(const struct vp_guest_watch *watch, const struct guest *guest,
			      struct vp_memory_outcome *ret)
{
	ret->status = guest->finding.derived ? VP_MEMORY_DERIVED : VP_MEMORY_READ;
	ret->scanned = guest->finding.scanned;
	ret->cached = guest->finding.cached;
	if (guest->lost_why) {
		ret->lost_ns = guest->lost_ns;
		ret->problem = vp_strdup(guest->lost_why);
	}
	vp_vec_each (&watch->users, user)
		user->outcome(user->context, guest->pid, &guest->finding, ret);
}

bool vp_guest_watch_outcome(const struct vp_guest_watch *watch, const struct vp_vm *vm,
			    struct vp_memory_outcome *ret)
{
	const struct guest *guest = vp_guest_of(watch, vp_vm_id(vm));

	*ret = (struct vp_memory_outcome){0};
	if (!guest)
		return false;
	if (vm->end && (guest->last_text >= 0 || guest->put_away || guest->state == GUEST_READY)) {
		ret->status = VP_MEMORY_VM_ENDED;
	} else if (guest->problem) {
		ret->status = VP_MEMORY_FAILED;
		ret->problem = vp_strdup(guest->problem);
	} else if (guest->state == GUEST_FINDING) {
		ret->status = VP_MEMORY_SEARCHING;
		ret->searched = guest->searching ? guest->searched : 0;
		ret->to_search = guest->searching ? guest->to_search : 0;
	} else {
		guest_watch_count(watch, guest, ret);
	}
	return true;
}
