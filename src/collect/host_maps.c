/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/host_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

#include <xxhash.h>

#include "base/cursor.h"
#include "base/file.h"
#include "base/intern.h"
#include "base/map.h"
#include "maps/image.h"
#include "maps/writer.h"

enum { PROC_TEXT_MAX = 64 * 1024 * 1024 };

struct mapping {
	uint32_t space;
	uint32_t path; /* in paths */
	uint64_t start, end, pgoff;
};

struct space {
	uint32_t pid;
	char comm[16];
};

struct vp_host_maps {
	VP_VEC(struct space) spaces;
	VP_VEC(struct mapping) mappings;
	struct vp_intern paths;
	struct vp_map known;          /* hash of pid and comm -> space */
	struct vp_map known_mappings; /* hash of a mapping; one that is seen again adds nothing */
};

struct vp_host_maps *vp_host_maps_new(void)
{
	return vp_alloc(sizeof(struct vp_host_maps));
}

void vp_host_maps_free(struct vp_host_maps *maps)
{
	if (!maps)
		return;
	vp_vec_deinit(&maps->spaces);
	vp_vec_deinit(&maps->mappings);
	vp_intern_deinit(&maps->paths);
	vp_map_deinit(&maps->known);
	vp_map_deinit(&maps->known_mappings);
	free(maps);
}

/* One line of /proc/PID/maps: start-end perms pgoff dev inode path. Only executable ones are kept.
 */
static void take_line(struct vp_host_maps *maps, uint32_t space, struct vp_slice line)
{
	struct mapping mapping = {.space = space};
	bool is_new;
	char perms[5];
	int path_at = 0;
	VP_AUTO_FREE char *text = vp_strndup(line.bytes, line.size);

	if (sscanf(text, "%lx-%lx %4s %lx %*s %*u %n", &mapping.start, &mapping.end, perms,
		   &mapping.pgoff, &path_at) != 4 ||
	    perms[2] != 'x')
		return;
	const char *path = path_at ? text + path_at : "";
	mapping.path = vp_intern_string(&maps->paths, path[0] ? path : "//anon");
	vp_map_insert(&maps->known_mappings, XXH3_64bits(&mapping, sizeof(mapping)), 0, &is_new);
	if (is_new)
		vp_vec_push(&maps->mappings, mapping);
}

static void read_mappings(struct vp_host_maps *maps, uint32_t space)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%u/maps", maps->spaces.at[space].pid);
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read(path, PROC_TEXT_MAX, &text);
	struct vp_cursor lines = vp_cursor_of(text.bytes, text.size);
	struct vp_slice line;

	while (!error && vp_cursor_line(&lines, &line))
		take_line(maps, space, line);
	vp_error_free(error); /* the process is gone: its samples stay without names */
	vp_buffer_deinit(&text);
}

void vp_host_maps_see(struct vp_host_maps *maps, uint32_t pid, const char *comm)
{
	uint64_t key = XXH3_64bits_withSeed(comm, strnlen(comm, 16), pid);
	bool inserted;

	vp_map_insert(&maps->known, key, (uint32_t)maps->spaces.count, &inserted);
	if (!inserted)
		return;
	struct space *space = vp_vec_push_slot(&maps->spaces);
	*space = (struct space){.pid = pid};
	memcpy(space->comm, comm, strnlen(comm, sizeof(space->comm) - 1));
	read_mappings(maps, (uint32_t)maps->spaces.count - 1);
}

/* One line of /proc/kallsyms: address type name [module]. */
static void write_kernel_symbol(struct vp_maps_writer *writer, struct vp_slice line)
{
	struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
	uint64_t address = vp_cursor_hex(&words);
	struct vp_slice type = vp_cursor_word(&words);
	struct vp_slice name = vp_cursor_word(&words);

	if (!vp_cursor_ok(&words) || !strchr("tTwWiI", type.bytes[0]))
		return;
	VP_AUTO_FREE char *name_text = vp_strndup(name.bytes, name.size);
	VP_AUTO_FREE char *module = NULL;
	if (vp_cursor_left(&words) > 2) {
		struct vp_slice bracketed = vp_cursor_word(&words);
		module = vp_strndup(bracketed.bytes + 1, bracketed.size - 2);
	}
	vp_maps_write_kernel_symbol(writer, address, 0, type.bytes[0], name_text, module);
}

static struct vp_error *write_kernel(struct vp_maps_writer *writer)
{
	struct vp_buffer text = {0}, notes = {0};
	struct vp_build_id build_id = {0};
	struct utsname names;
	struct vp_slice line;

	uname(&names);
	struct vp_error *error = vp_file_read("/sys/kernel/notes", 1 << 20, &notes);
	if (!error)
		vp_build_id_in_notes(notes.bytes, notes.size, &build_id);
	vp_error_free(error);
	vp_maps_write_machine(writer, false, names.nodename);
	vp_maps_write_kernel(writer, names.release, &build_id);

	error = vp_file_read("/proc/kallsyms", PROC_TEXT_MAX, &text);
	struct vp_cursor lines = vp_cursor_of(text.bytes, text.size);
	while (!error && vp_cursor_line(&lines, &line))
		write_kernel_symbol(writer, line);
	vp_buffer_deinit(&text);
	vp_buffer_deinit(&notes);
	return error;
}

/* The image's build-id and symbols; unreadable files have none, and their samples no function. */
static void read_image(const char *path, struct vp_image *image)
{
	VP_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct vp_image_places places = {0};

	if (path[0] != '/' || fd < 0)
		return;
	struct vp_error *error = vp_image_read(fd, path, &places, image);
	vp_error_free(error);
}

static void write_image(struct vp_maps_writer *writer, const char *path,
			const struct vp_image *image)
{
	vp_maps_write_image(writer, &image->build_id, path);
	vp_vec_each (&image->symbols, symbol)
		vp_maps_write_symbol(writer, symbol->offset, symbol->size,
				     vp_image_symbol_name(image, symbol));
}

static void write_spaces(struct vp_host_maps *maps, struct vp_maps_writer *writer)
{
	for (size_t i = 0; i < maps->spaces.count; i++) {
		const struct space *space = &maps->spaces.at[i];
		vp_maps_write_space(writer, i, space->pid, 0, 0, 0, space->comm);
	}
}

static void write_mappings(struct vp_host_maps *maps, const struct vp_build_id *build_ids,
			   struct vp_maps_writer *writer)
{
	vp_vec_each (&maps->mappings, mapping)
		vp_maps_write_mapping(writer, mapping->space, mapping->start, mapping->end,
				      mapping->pgoff, 0, &build_ids[mapping->path],
				      vp_intern_text(&maps->paths, mapping->path));
}

struct vp_error *vp_host_maps_write(struct vp_host_maps *maps, const char *path, bool with_symbols)
{
	VP_AUTO_FREE char *temporary = vp_format("%s.tmp", path);
	VP_AUTO_CLOSE int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	struct vp_maps_writer writer;

	if (fd < 0)
		return vp_error_errno(errno, "cannot create '%s'", temporary);
	for (uint32_t i = 0; i < maps->spaces.count; i++)
		read_mappings(maps, i);

	vp_maps_writer_init(&writer, fd);
	struct vp_error *error = write_kernel(&writer);
	struct vp_build_id *build_ids = vp_alloc(maps->paths.strings.count * sizeof(*build_ids));
	write_spaces(maps, &writer);
	for (uint32_t i = 0; i < maps->paths.strings.count; i++) {
		struct vp_image image = {0};
		read_image(vp_intern_text(&maps->paths, i), &image);
		build_ids[i] = image.build_id;
		if (with_symbols && image.symbols.count)
			write_image(&writer, vp_intern_text(&maps->paths, i), &image);
		vp_image_deinit(&image);
	}
	write_mappings(maps, build_ids, &writer);
	free(build_ids);

	int result = vp_maps_writer_finish(&writer);
	vp_maps_writer_deinit(&writer);
	if (!error && !result && rename(temporary, path))
		result = -errno;
	if (!error && result)
		error = vp_error_errno(-result, "cannot write '%s'", path);
	if (error)
		unlink(temporary);
	return error;
}
