/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbol maps and unwind tables of guests: written by their readers in parallel, then copied. */
#include "base/alloc.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/meanwhile.h"
#include "base/vec.h"
#include "collect/guests/guest_reader.h"
#include "collect/guests/guest_watch.h"
#include "collect/guests/guest_watch_private.h"
#include "schema/vm.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/io.h"

enum { PIECE = 1 << 20, POLL_MS = 50 };

/* Copies the bytes from `at` to `end` of the file `from`. */
static struct vp_error *copy_text(int from, off_t at, off_t end, const char *path)
{
	VP_AUTO_NEW_FILE struct vp_new_file out;
	VP_AUTO_FREE char *bytes = vp_alloc(PIECE);
	int result = vp_new_file_create(&out, path, 0644);
	ssize_t got;

	for (; !result && at < end; at += got) {
		off_t left = end - at;
		got = vp_pread(from, bytes, left < PIECE ? (size_t)left : PIECE, at);
		if (got <= 0)
			break;
		result = vp_fd_write_all(out.fd, bytes, (size_t)got);
	}
	/* On a full disk the written part is kept: it is recognizable as truncated. */
	if (out.fd >= 0 && (!result || result == -ENOSPC || result == -EDQUOT)) {
		int published = vp_new_file_publish(&out);
		result = published ? published : result;
	}
	return result ? vp_error_errno(-result, "cannot write '%s'", path) : NULL;
}

static struct vp_error *copy_all(int from, const char *path)
{
	return copy_text(from, 0, (off_t)vp_guest_text_size(from), path);
}

static void send_truncated(struct vp_guest_watch *watch, const struct guest *guest)
{
	vp_vec_push(watch->notices,
		    vp_format("VM '%s': the symbol map from guest memory was truncated at %" PRIu64
			      " MiB: some names are missing",
			      guest->name, vp_guest_max_text(guest) >> 20));
}

/* Resets the progress of the last time. */
static void guest_dump_begin(struct guest *guest)
{
	guest->has_map = guest->has_tables = false;
	vp_error_free(guest->lacks_tables);
	guest->lacks_tables = NULL;
	guest->writing = guest->state == GUEST_FINDING || guest->state == GUEST_LOST
			     ? WRITING_NOTHING
			     : WRITING_SOON;
}

static void guest_dump_fail(struct vp_guest_watch *watch, struct guest *guest,
			    struct vp_error *error)
{
	guest->writing = WRITING_NOTHING;
	vp_guest_drop_results(watch, guest, error);
}

static struct vp_error *request_map(struct vp_guest_watch *watch, struct guest *guest)
{
	if (!guest->ended)
		VP_TRY(vp_guest_refresh_memory(watch, guest));
	/* remove an earlier one */
	if (ftruncate(guest->text, 0) || lseek(guest->text, 0, SEEK_SET))
		return vp_error_errno(errno, "cannot write the guest's symbol map");
	guest->writing = WRITING_MAP;
	return vp_guest_reader_request(guest->reader, "dump %d", watch->symbols);
}

/* Sends a request when the previous one was answered; the reply to a pending check may be that
 * the guest must be dropped. */
static void request_when_idle(struct vp_guest_watch *watch, struct guest *guest)
{
	if (guest->state == GUEST_CHECKING || guest->state == GUEST_LEAVING)
		vp_guest_poll(watch, guest, 0);
	if (guest->state == GUEST_LOST)
		guest->writing = WRITING_NOTHING;
	if (guest->state != GUEST_READY || !vp_guest_reader_listens(guest->reader, 0))
		return;
	struct vp_error *error = request_map(watch, guest);
	if (error)
		guest_dump_fail(watch, guest, error);
}

static void take_map(struct vp_guest_watch *watch, struct guest *guest, bool tables)
{
	uint64_t size = vp_guest_text_size(guest->text);

	guest->has_map = true;
	guest->map_size = (off_t)size;
	if (size == vp_guest_max_text(guest))
		send_truncated(watch, guest);
	guest->writing = tables && !guest->ended ? WRITING_TABLES : WRITING_NOTHING;
	if (guest->writing == WRITING_TABLES)
		guest->lacks_tables = vp_guest_reader_request(guest->reader, "orc");
	if (guest->lacks_tables)
		guest->writing = WRITING_NOTHING;
}

static void guest_dump_take_answer(struct vp_guest_watch *watch, struct guest *guest, bool tables)
{
	struct vp_slice answer;
	bool done;
	struct vp_error *error = vp_guest_reader_wait(guest->reader, 0, &done, &answer);

	if (guest->writing == WRITING_MAP && error) {
		guest_dump_fail(watch, guest, error);
	} else if (guest->writing == WRITING_MAP && done) {
		take_map(watch, guest, tables);
	} else if (guest->writing == WRITING_TABLES && (error || done)) {
		guest->lacks_tables = error;
		guest->has_tables = !error;
		guest->writing = WRITING_NOTHING;
	}
}

static bool is_any_writing(const struct vp_guest_watch *watch)
{
	vp_vec_each (&watch->guests, guest)
		if (guest->writing != WRITING_NOTHING)
			return true;
	return false;
}

/* Waits for a message of a reader, with a short timeout. */
static void wait_for_any(const struct vp_guest_watch *watch)
{
	VP_VEC(struct pollfd) fds = {0};

	vp_vec_each (&watch->guests, guest)
		if (guest->writing != WRITING_NOTHING && guest->reader)
			vp_vec_push(&fds,
				    ((struct pollfd){.fd = vp_guest_reader_fd(guest->reader),
						     .events = guest->writing == WRITING_SOON &&
								       guest->state == GUEST_READY
								   ? POLLOUT
								   : POLLIN}));
	(void)!vp_poll(fds.at, fds.count, POLL_MS);
	vp_vec_deinit(&fds);
}

/* Stops waiting for late readers. An existing map is kept. */
static void give_up(struct vp_guest_watch *watch, struct guest *guest, unsigned timeout_ms)
{
	bool at_tables = guest->writing == WRITING_TABLES;
	struct vp_error *error =
	    vp_error_new("writing the guest's symbol map took longer than %u s", timeout_ms / 1000);

	if (at_tables) {
		guest->lacks_tables =
		    vp_error_new("reading them took longer than %u s", timeout_ms / 1000);
		guest->has_map = !ftruncate(guest->text, guest->map_size);
		vp_guest_keep_text(guest);
	}
	guest_dump_fail(watch, guest, error);
}

void vp_guest_watch_write(struct vp_guest_watch *watch, bool tables, unsigned timeout_ms,
			  const struct vp_meanwhile *meanwhile)
{
	uint64_t end = vp_clock_monotonic() + timeout_ms * 1000000ULL;

	vp_vec_each (&watch->guests, guest)
		guest_dump_begin(guest);
	while (is_any_writing(watch) && vp_clock_monotonic() < end) {
		vp_vec_each (&watch->guests, guest)
			if (guest->writing == WRITING_SOON)
				request_when_idle(watch, guest);
			else if (guest->writing != WRITING_NOTHING)
				guest_dump_take_answer(watch, guest, tables);
		if (is_any_writing(watch))
			wait_for_any(watch);
		vp_meanwhile(meanwhile);
	}
	vp_vec_each (&watch->guests, guest)
		if (guest->writing != WRITING_NOTHING)
			give_up(watch, guest, timeout_ms);
}

struct vp_error *vp_guest_watch_dump(struct vp_guest_watch *watch, const struct vp_vm *vm,
				     const char *path, bool *written)
{
	const struct guest *guest = vp_guest_of(watch, vp_vm_id(vm));

	*written = guest && (guest->has_map || guest->last_text >= 0 || guest->put_away);
	if (!*written || guest->put_away)
		return NULL;
	return guest->has_map && guest->text >= 0 ? copy_text(guest->text, 0, guest->map_size, path)
						  : copy_all(guest->last_text, path);
}

struct vp_error *vp_guest_watch_unwind_tables(struct vp_guest_watch *watch, const struct vp_vm *vm,
					      const char *path, struct vp_error **problem)
{
	struct guest *guest = vp_guest_of(watch, vp_vm_id(vm));

	*problem = guest ? guest->lacks_tables : NULL;
	if (!guest)
		return NULL;
	guest->lacks_tables = NULL;
	return guest->has_tables && guest->text >= 0
		   ? copy_text(guest->text, guest->map_size, (off_t)vp_guest_text_size(guest->text),
			       path)
		   : NULL;
}

struct vp_error *vp_guest_watch_put_away(struct vp_guest_watch *watch, const struct vp_vm *vm,
					 const char *path, bool *done)
{
	struct guest *guest = vp_guest_of(watch, vp_vm_id(vm));

	*done = !guest || (guest->ended && guest->state == GUEST_LOST);
	if (!guest || !*done || guest->last_text < 0)
		return NULL;
	VP_TRY(copy_all(guest->last_text, path));
	close(guest->last_text);
	guest->last_text = -1;
	guest->put_away = true;
	return NULL;
}
