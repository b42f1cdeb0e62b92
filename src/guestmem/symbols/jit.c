/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/symbols/jit.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/map.h"
#include "base/vec.h"
#include "guestmem/kernel/kernel.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"
#include "guestmem/tasks/folder.h"
#include "guestmem/tasks/pagecache.h"

enum {
	PAGE = 4096,
	LARGEST_MAP = 64 << 20,
	MAX_LINES = 4 << 20, /* for all processes */
	MAX_FOLDERS = 1024,  /* number of different /tmp folders */
	MAX_REPORTED = 100,
	LONGEST_NAME = 2000, /* up to three times as long when escaped */
	MAX_LEVELS = 32,     /* of pid namespaces: MAX_PID_NS_LEVEL */
	UPID_SIZE = 16,      /* struct upid: the number, and a pointer to the namespace */
};
/* Limit for the maps of all processes. */
#define MAX_BYTES (512ULL << 20)

struct perf_map {
	uint32_t pid;
	uint64_t inode;
};

/* The perf maps in the /tmp of tasks with this root directory. */
struct tmp {
	struct vp_guest_folder root;
	VP_VEC(struct perf_map) maps;
};

struct vp_guest_jit {
	const struct vp_guest_kernel *kernel;
	struct vp_maps_writer *writer;
	VP_VEC(struct tmp) folders;
	uint64_t left; /* remaining bytes to read */
	unsigned lines, reported;
};

struct vp_guest_jit *vp_guest_jit_new(const struct vp_guest_kernel *kernel,
				      struct vp_maps_writer *writer)
{
	struct vp_guest_jit *jit = vp_alloc(sizeof(*jit));

	*jit = (struct vp_guest_jit){.kernel = kernel, .writer = writer, .left = MAX_BYTES};
	return jit;
}

void vp_guest_jit_free(struct vp_guest_jit *jit)
{
	vp_vec_each (&jit->folders, folder)
		vp_vec_deinit(&folder->maps);
	vp_vec_deinit(&jit->folders);
	free(jit);
}

uint32_t vp_guest_inner_pid(const struct vp_guest_kernel *kernel,
			    const struct vp_guest_task *leader)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	uint32_t level, number;
	uint64_t pid;

	if (pack->at.task_thread_pid == VP_PACK_NONE || pack->at.pid_level == VP_PACK_NONE ||
	    pack->at.pid_numbers == VP_PACK_NONE ||
	    !vp_guest_view_u64(&kernel->view, leader->address + pack->at.task_thread_pid, &pid) ||
	    !pid || !vp_guest_view_u32(&kernel->view, pid + pack->at.pid_level, &level) ||
	    level > MAX_LEVELS ||
	    !vp_guest_view_u32(&kernel->view, pid + pack->at.pid_numbers + UPID_SIZE * level,
			       &number))
		return leader->tgid;
	return number;
}

/* Parses exactly "perf-PID.map". */
static bool pid_in_name(const char *name, uint32_t *pid)
{
	static const char begin[] = "perf-", end[] = ".map";
	size_t size = strlen(name), around = sizeof(begin) - 1 + sizeof(end) - 1;

	if (size <= around || memcmp(name, begin, sizeof(begin) - 1) ||
	    strcmp(name + size - (sizeof(end) - 1), end) != 0)
		return false;
	struct vp_cursor digits = vp_cursor_of(name + sizeof(begin) - 1, size - around);
	uint64_t number = vp_cursor_decimal(&digits);
	*pid = (uint32_t)number;
	return vp_cursor_ok(&digits) && !vp_cursor_left(&digits) && number <= UINT32_MAX;
}

struct listing {
	struct vp_guest_jit *jit;
	struct tmp *tmp;
};

static bool jit_take_entry(void *context, const char *name, uint64_t dentry)
{
	struct listing *listing = context;
	struct perf_map map;

	if (pid_in_name(name, &map.pid) &&
	    (map.inode = vp_guest_folder_inode(listing->jit->kernel, dentry)))
		vp_vec_push(&listing->tmp->maps, map);
	return true;
}

/* Returns the perf maps in the task's /tmp, which is listed once per root directory; NULL: no root
 * directory, or too many different ones. */
static const struct tmp *tmp_of(struct vp_guest_jit *jit, const struct vp_guest_task *task)
{
	struct vp_guest_folder root, folder;

	if (!vp_guest_folder_root(jit->kernel, task, &root))
		return NULL;
	vp_vec_each (&jit->folders, known)
		if (known->root.dentry == root.dentry && known->root.mnt == root.mnt)
			return known;
	if (jit->folders.count == MAX_FOLDERS)
		return NULL;
	struct tmp *tmp = vp_vec_push_slot(&jit->folders);
	*tmp = (struct tmp){.root = root};
	struct listing listing = {jit, tmp};
	if (vp_guest_folder_enter(jit->kernel, &root, "tmp", &folder) &&
	    !vp_guest_folder_each(jit->kernel, &folder, jit_take_entry, &listing))
		vp_maps_write_note(jit->writer, "a /tmp of the guest could only be read in part: "
						"names of JIT code may be missing");
	return tmp;
}

/* Parses a hexadecimal number. perf writes no 0x, but some compilers do. */
static uint64_t number_word(struct vp_cursor *words)
{
	struct vp_slice word = vp_cursor_word(words);
	bool marked = word.size > 2 && word.bytes[0] == '0' && (word.bytes[1] | 0x20) == 'x';
	struct vp_cursor digits =
	    vp_cursor_of(word.bytes + (marked ? 2 : 0), word.size - (marked ? 2 : 0));
	uint64_t number = vp_cursor_hex(&digits);

	words->failed |= !vp_cursor_ok(&digits) || vp_cursor_left(&digits);
	return number;
}

bool vp_jit_line_parse(struct vp_slice line, struct vp_jit_symbol *ret)
{
	struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
	uint64_t end;

	ret->addr = number_word(&words);
	ret->size = number_word(&words);
	ret->name = vp_cursor_rest(&words);
	if (ret->name.size > LONGEST_NAME)
		ret->name.size = LONGEST_NAME;
	return vp_cursor_ok(&words) && ret->addr && ret->size && ret->name.size &&
	       !memchr(line.bytes, 0, line.size) &&
	       !__builtin_add_overflow(ret->addr, ret->size, &end);
}

static void jit_write_lines(struct vp_guest_jit *jit, const struct vp_buffer *text, uint64_t space)
{
	struct vp_cursor cursor = vp_cursor_of(text->bytes, text->size);
	struct vp_slice line = {0};

	while (vp_cursor_line(&cursor, &line) && jit->lines < MAX_LINES) {
		struct vp_jit_symbol symbol;
		char name[LONGEST_NAME + 1];
		if (!vp_jit_line_parse(line, &symbol))
			continue;
		memcpy(name, symbol.name.bytes, symbol.name.size);
		name[symbol.name.size] = 0;
		vp_maps_write_jit(jit->writer, space, symbol.addr, symbol.size, name);
		jit->lines++;
	}
}

/* Reads the resident pages, and returns the number of missing ones. These are zero, so lines that
 * continue in them are invalid. */
static uint64_t jit_read_pages(const struct vp_guest_file *file, uint64_t size,
			       struct vp_buffer *text)
{
	char *to = vp_buffer_extend(text, size);
	uint64_t missing = 0;

	for (uint64_t at = 0; at < size; at += PAGE) {
		size_t piece = size - at < PAGE ? (size_t)(size - at) : PAGE;
		if (vp_guest_file_read(file, at, to + at, piece))
			continue;
		memset(to + at, 0, piece);
		missing++;
	}
	return missing;
}

static void jit_write_map(struct vp_guest_jit *jit, const struct perf_map *map, uint64_t space)
{
	struct vp_buffer text = {0};
	struct vp_guest_file file;

	if (!vp_guest_file_open_inode(jit->kernel, map->inode, &file))
		return;
	uint64_t size = file.size < LARGEST_MAP ? file.size : LARGEST_MAP;
	size = size < jit->left ? size : jit->left;
	jit->left -= size;
	uint64_t missing = jit_read_pages(&file, size, &text);
	jit_write_lines(jit, &text, space);
	vp_buffer_deinit(&text);
	if ((missing || size < file.size) && jit->reported++ < MAX_REPORTED)
		vp_maps_write_note(
		    jit->writer,
		    "only some names of JIT code of process %u: of '/tmp/perf-%u.map', %" PRIu64
		    " KiB were read and %" PRIu64 " KiB are not in the guest's page cache",
		    map->pid, map->pid, size >> 10, missing * (PAGE >> 10));
}

void vp_guest_jit_write(struct vp_guest_jit *jit, const struct vp_guest_task *task, uint32_t pid,
			uint64_t space)
{
	const struct tmp *tmp = tmp_of(jit, task);

	if (!tmp)
		return;
	vp_vec_each (&tmp->maps, map)
		if (map->pid == pid)
			jit_write_map(jit, map, space);
}
