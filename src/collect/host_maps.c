/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/host_maps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "base/file.h"
#include "base/intern.h"
#include "base/map.h"
#include "collect/host_images.h"
#include "maps/proc.h"

struct mapping {
	uint32_t space;
	uint32_t path; /* in paths */
	uint64_t start, end, pgoff;
};

struct space {
	uint32_t pid;
	char comm[16];       /* or "": not known */
	uint64_t start, end; /* 0: before the recording; still there */
};

struct vp_host_maps {
	VP_VEC(struct space) spaces;
	VP_VEC(struct mapping) mappings;
	struct vp_intern paths;
	VP_VEC(struct vp_mapped) images; /* by path; who has it mapped now or had it last */
	struct vp_map known;             /* pid -> its latest space */
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
	vp_vec_deinit(&maps->images);
	vp_map_deinit(&maps->known);
	vp_map_deinit(&maps->known_mappings);
	free(maps);
}

struct reading {
	struct vp_host_maps *maps;
	uint32_t space;
};

static void take_mapping(void *context, const struct vp_proc_mapping *seen)
{
	const struct reading *reading = context;
	struct vp_host_maps *maps = reading->maps;
	struct mapping mapping = {.space = reading->space,
				  .path = vp_intern_string(&maps->paths, seen->path),
				  .start = seen->start,
				  .end = seen->end,
				  .pgoff = seen->pgoff};
	bool is_new;

	while (maps->images.count <= mapping.path)
		vp_vec_push(&maps->images, (struct vp_mapped){0});
	struct vp_mapped *image = &maps->images.at[mapping.path];
	image->pid = maps->spaces.at[mapping.space].pid;
	image->start = mapping.start;
	image->end = mapping.end;
	uint64_t hash = XXH3_64bits_withSeed(&mapping, sizeof(mapping), vp_hash_seed());
	vp_map_insert(&maps->known_mappings, hash, 0, &is_new);
	if (is_new)
		vp_vec_push(&maps->mappings, mapping);
}

/* Whether the process is still the program that the space is of, as far as its name tells. */
static bool is_still(const struct space *space)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%u/comm", space->pid);
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read(path, 4096, &text);
	bool same = !error && (!space->comm[0] ||
			       (!strncmp(vp_buffer_text(&text), space->comm, strlen(space->comm)) &&
				text.bytes[strlen(space->comm)] == '\n'));

	vp_error_free(error);
	vp_buffer_deinit(&text);
	return same;
}

/* Nothing is read if the process is gone, or another program: its samples stay without names. */
static void read_mappings(struct vp_host_maps *maps, uint32_t space)
{
	struct reading reading = {maps, space};

	if (!maps->spaces.at[space].end && is_still(&maps->spaces.at[space]))
		vp_proc_mappings(maps->spaces.at[space].pid, take_mapping, &reading);
}

/* Whether the program in the space is not the one named `comm`; learns the name if it is new. */
static bool is_other_program(struct space *space, const char *comm)
{
	if (!comm)
		return false;
	if (!space->comm[0])
		memcpy(space->comm, comm, strnlen(comm, sizeof(space->comm) - 1));
	return strncmp(space->comm, comm, sizeof(space->comm) - 1) != 0;
}

void vp_host_maps_see(struct vp_host_maps *maps, uint32_t pid, const char *comm, uint64_t time)
{
	struct space space = {.pid = pid};
	bool is_new;
	uint32_t *latest = vp_map_insert(&maps->known, pid, (uint32_t)maps->spaces.count, &is_new);

	if (!is_new) {
		struct space *before = &maps->spaces.at[*latest];
		/* One pCPU's samples are seen after another's: this may be of the program before.
		 */
		if (time < before->start || !is_other_program(before, comm))
			return;
		before->end = space.start = time;
		*latest = (uint32_t)maps->spaces.count;
	}
	if (comm)
		memcpy(space.comm, comm, strnlen(comm, sizeof(space.comm) - 1));
	vp_vec_push(&maps->spaces, space);
	read_mappings(maps, (uint32_t)maps->spaces.count - 1);
}

static void write_images(struct vp_host_maps *maps, struct vp_maps_writer *writer,
			 bool with_symbols)
{
	for (uint32_t i = 0; i < maps->images.count; i++)
		maps->images.at[i].path = vp_intern_text(&maps->paths, i);
	vp_host_images_write(writer, maps->images.at, maps->images.count, with_symbols);
	if (with_symbols)
		vp_mapped_write_vdso(writer);
}

static void write_spaces(struct vp_host_maps *maps, struct vp_maps_writer *writer)
{
	for (size_t i = 0; i < maps->spaces.count; i++) {
		const struct space *space = &maps->spaces.at[i];
		vp_maps_write_space(writer, i, space->pid, 0, space->start, space->end,
				    space->comm);
	}
}

static void write_mappings(struct vp_host_maps *maps, struct vp_maps_writer *writer)
{
	vp_vec_each (&maps->mappings, mapping)
		vp_maps_write_mapping(writer, mapping->space, mapping->start, mapping->end,
				      mapping->pgoff, 0, &maps->images.at[mapping->path].build_id,
				      vp_intern_text(&maps->paths, mapping->path));
}

struct vp_error *vp_host_maps_write(struct vp_host_maps *maps, const char *path, bool with_symbols)
{
	VP_AUTO_NEW_FILE struct vp_new_file file;
	struct vp_maps_writer writer;
	int result = vp_new_file_create(&file, path, 0644);

	if (result)
		return vp_error_errno(-result, "cannot create a file beside '%s'", path);
	for (uint32_t i = 0; i < maps->spaces.count; i++)
		read_mappings(maps, i);

	vp_maps_writer_init(&writer, file.fd);
	vp_proc_write_machine(&writer, false);
	vp_proc_write_kallsyms(&writer);
	write_spaces(maps, &writer);
	write_images(maps, &writer, with_symbols);
	write_mappings(maps, &writer);
	result = vp_maps_writer_finish(&writer);
	vp_maps_writer_deinit(&writer);

	/* What there was room for on a full disk is kept: it is seen to be cut off. */
	if (!result || result == -ENOSPC || result == -EDQUOT) {
		int published = vp_new_file_publish(&file);
		result = published ? published : result;
	}
	return result ? vp_error_errno(-result, "cannot write '%s'", path) : NULL;
}
