/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/perf/perf_spaces.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"
#include "import/perf/perfdata_record.h"

enum { NOBODY = UINT32_MAX, LONGEST_PATH = 4096, MAX_SPACES = 1 << 20 };

void vp_perf_spaces_init(struct vp_perf_spaces *spaces, const struct vp_perfdata *file,
			 uint32_t machine)
{
	*spaces = (struct vp_perf_spaces){.file = file, .machine = machine};
	vp_maps_writer_init(&spaces->mappings, -1);
	spaces->mappings.buffer.size = 0; /* only mapping lines use it */
}

void vp_perf_spaces_deinit(struct vp_perf_spaces *spaces)
{
	vp_vec_deinit(&spaces->spaces);
	vp_map_deinit(&spaces->space_of_pid);
	vp_map_deinit(&spaces->comm_of_tid);
	vp_intern_deinit(&spaces->texts);
	vp_maps_writer_deinit(&spaces->mappings);
}

const char *vp_perf_spaces_comm(const struct vp_perf_spaces *spaces, uint32_t tid)
{
	const uint32_t *found = vp_map_find(&spaces->comm_of_tid, tid);

	return found ? vp_intern_text(&spaces->texts, *found) : "";
}

/* The number of the process's space; a new one existed before the recording. */
static uint32_t perf_spaces_space_of(struct vp_perf_spaces *spaces, uint32_t pid)
{
	const uint32_t *found = vp_map_find(&spaces->space_of_pid, pid);
	bool inserted;

	if (found)
		return *found;
	if (spaces->spaces.count == MAX_SPACES)
		return NOBODY;
	uint32_t comm = vp_intern_string(&spaces->texts, vp_perf_spaces_comm(spaces, pid));
	vp_vec_push(&spaces->spaces, ((struct vp_perf_space){.pid = pid, .comm = comm}));
	uint32_t number = (uint32_t)spaces->spaces.count - 1;
	vp_map_insert(&spaces->space_of_pid, pid, number, &inserted);
	return number;
}

/* Ends the process's space and starts another one. */
static void perf_spaces_begin_space(struct vp_perf_spaces *spaces, uint32_t pid, uint32_t parent,
				    uint64_t time)
{
	uint32_t *found = vp_map_find(&spaces->space_of_pid, pid);
	bool inserted;

	if (found && !spaces->spaces.at[*found].end)
		spaces->spaces.at[*found].end = time;
	if (spaces->spaces.count == MAX_SPACES)
		return;
	uint32_t comm = vp_intern_string(&spaces->texts, vp_perf_spaces_comm(spaces, pid));
	vp_vec_push(
	    &spaces->spaces,
	    ((struct vp_perf_space){.start = time, .pid = pid, .parent = parent, .comm = comm}));
	uint32_t number = (uint32_t)spaces->spaces.count - 1;
	*vp_map_insert(&spaces->space_of_pid, pid, number, &inserted) = number;
}

static void perf_spaces_take_comm(struct vp_perf_spaces *spaces,
				  const struct vp_perfdata_record *record)
{
	uint32_t tid = 0;
	struct vp_slice name = vp_perfdata_comm(record, &tid);
	struct vp_cursor cursor = vp_perfdata_cursor(record, record->body);
	uint32_t pid = vp_cursor_u32(&cursor);
	uint32_t number = vp_intern_add(&spaces->texts, name.bytes, name.size);
	bool inserted;

	*vp_map_insert(&spaces->comm_of_tid, tid, number, &inserted) = number;
	if (record->misc & PERF_RECORD_MISC_COMM_EXEC && record->time)
		perf_spaces_begin_space(spaces, pid, 0, record->time);
	uint32_t space = pid == tid ? perf_spaces_space_of(spaces, pid) : NOBODY;
	if (space != NOBODY)
		spaces->spaces.at[space].comm = number;
}

static void take_fork(struct vp_perf_spaces *spaces, const struct vp_perfdata_record *record)
{
	struct vp_cursor cursor = vp_perfdata_cursor(record, record->body);
	uint32_t pid = vp_cursor_u32(&cursor), parent = vp_cursor_u32(&cursor);
	uint32_t tid = vp_cursor_u32(&cursor), parent_tid = vp_cursor_u32(&cursor);
	const uint32_t *comm = vp_map_find(&spaces->comm_of_tid, parent_tid);
	bool inserted;

	if (!vp_cursor_ok(&cursor) || tid == parent_tid)
		return;
	if (comm) {
		uint32_t number = *comm;
		*vp_map_insert(&spaces->comm_of_tid, tid, number, &inserted) = number;
	}
	if (pid == parent || !record->time)
		return;
	uint32_t from = perf_spaces_space_of(spaces, parent);
	perf_spaces_begin_space(spaces, pid, from == NOBODY ? 0 : from + 1, record->time);
}

static void perf_spaces_take_exit(struct vp_perf_spaces *spaces,
				  const struct vp_perfdata_record *record)
{
	struct vp_cursor cursor = vp_perfdata_cursor(record, record->body);
	uint32_t pid = vp_cursor_u32(&cursor);

	vp_cursor_u32(&cursor);
	uint32_t tid = vp_cursor_u32(&cursor);
	const uint32_t *found = vp_map_find(&spaces->space_of_pid, pid);
	if (vp_cursor_ok(&cursor) && pid == tid && found)
		spaces->spaces.at[*found].end = record->time;
}

/* "[kernel.kallsyms]_text": perf stores the symbol's address as the mapping's offset in the
 * file. */
static void perf_spaces_take_kernel(struct vp_perf_spaces *spaces, const uint64_t where[3],
				    const struct vp_build_id *given, const char *text)
{
	static const char host[] = "[kernel.kallsyms]", guest[] = "[guest.kernel.kallsyms";
	bool is_host = !strncmp(text, host, sizeof(host) - 1);

	if (!is_host && strncmp(text, guest, sizeof(guest) - 1) != 0)
		return;
	const char *symbol = strchr(text, ']');
	snprintf(spaces->kernel_symbol, sizeof(spaces->kernel_symbol), "%s",
		 symbol && symbol[1] ? symbol + 1 : "_text");
	spaces->kernel = where[2] ? where[2] : where[0];
	if (given)
		spaces->kernel_id = *given;
}

static void put_mapping(struct vp_perf_spaces *spaces, const struct vp_perfdata_record *record,
			uint32_t pid, const uint64_t where[3], const struct vp_build_id *given,
			struct vp_slice path)
{
	size_t size = path.size ? strnlen(path.bytes, path.size) : 0;
	VP_AUTO_FREE char *text =
	    vp_format("%.*s", (int)(size < LONGEST_PATH ? size : LONGEST_PATH), path.bytes);
	unsigned mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	if (mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_GUEST_KERNEL)
		perf_spaces_take_kernel(spaces, where, given, text);
	if ((mode != PERF_RECORD_MISC_USER && mode != PERF_RECORD_MISC_GUEST_USER) || !where[1])
		return;
	uint32_t space = perf_spaces_space_of(spaces, pid);
	struct vp_build_id id = given ? *given : vp_perfdata_build_id(spaces->file, text);
	if (space != NOBODY)
		vp_maps_write_mapping(&spaces->mappings, space + 1, where[0], where[0] + where[1],
				      where[2], record->time, &id, text);
}

static void perf_spaces_take_mapping(struct vp_perf_spaces *spaces,
				     const struct vp_perfdata_record *record)
{
	struct vp_cursor cursor = vp_perfdata_cursor(record, record->body);
	uint32_t pid = vp_cursor_u32(&cursor);

	vp_cursor_u32(&cursor); /* tid */
	uint64_t where[3] = {vp_cursor_u64(&cursor)};
	where[1] = vp_cursor_u64(&cursor);
	where[2] = vp_cursor_u64(&cursor);
	struct vp_build_id id = {0};
	bool has_id =
	    record->type == PERF_RECORD_MMAP2 && record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID;
	if (record->type == PERF_RECORD_MMAP2) {
		struct vp_slice file = vp_cursor_bytes(&cursor, 24);
		uint8_t size = file.size ? (uint8_t)file.bytes[0] : 0;
		if (has_id)
			id = vp_build_id_of(file.bytes + 4, size <= 20 ? size : 0);
		if (!(vp_cursor_u32(&cursor) & PROT_EXEC))
			return;
		vp_cursor_u32(&cursor); /* flags */
	} else if (record->misc & PERF_RECORD_MISC_MMAP_DATA) {
		return;
	}
	struct vp_slice path = vp_cursor_rest(&cursor);
	if (vp_cursor_ok(&cursor))
		put_mapping(spaces, record, pid, where, has_id ? &id : NULL, path);
}

void vp_perf_spaces_take(struct vp_perf_spaces *spaces, const struct vp_perfdata_record *record)
{
	if (spaces->machine != (record->vcpu ? record->vcpu->machine : 0))
		return;
	switch (record->type) {
	case PERF_RECORD_COMM:
		perf_spaces_take_comm(spaces, record);
		break;
	case PERF_RECORD_FORK:
		take_fork(spaces, record);
		break;
	case PERF_RECORD_EXIT:
		perf_spaces_take_exit(spaces, record);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		perf_spaces_take_mapping(spaces, record);
		break;
	default:
		break;
	}
}

void vp_perf_spaces_write(struct vp_perf_spaces *spaces, struct vp_maps_writer *out)
{
	const struct vp_buffer *lines = &spaces->mappings.buffer;
	uint64_t number = 0;

	vp_vec_each (&spaces->spaces, space)
		vp_maps_write_space(out, ++number, space->pid, 0, space->start, space->end,
				    vp_intern_text(&spaces->texts, space->comm));
	for (size_t i = 0; i < spaces->spaces.count; i++)
		if (spaces->spaces.at[i].parent)
			vp_maps_write_fork(out, i + 1, spaces->spaces.at[i].parent);
	vp_maps_writer_adopt(out, (struct vp_slice){lines->bytes, lines->size}, "m");
}
