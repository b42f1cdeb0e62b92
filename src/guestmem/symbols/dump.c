/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/symbols/dump.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "guestmem/kernel/kallsyms.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"
#include "guestmem/memory/lines.h"
#include "guestmem/symbols/images.h"
#include "guestmem/symbols/jit.h"
#include "guestmem/symbols/kernel_code.h"
#include "guestmem/symbols/modules.h"
#include "guestmem/symbols/runtimes.h"
#include "guestmem/tasks/pagecache.h"
#include "guestmem/tasks/process.h"
#include "guestmem/tasks/tasks.h"
#include "maps/format.h"
#include "maps/writer.h"

enum {
	MAX_SPACES = 100000,
	MAX_KEPT = 4 << 20, /* total number of mappings */
};

/* A program of a process: from one exec to the next, or to its exit. */
struct space {
	uint32_t tgid;
	uint64_t root, start,
	    end;         /* host ns; start 0: before the recording; end 0: still running */
	uint64_t leader; /* its main thread as last seen in the list; 0: not seen */
	char comm[16];
};

struct mapping {
	uint32_t space, image;
	uint64_t start, end, pgoff;
};

struct image {
	uint32_t path; /* index in paths */
	struct vp_build_id build_id;
	uint64_t inode; /* as last seen; 0: unknown */
	uint64_t print; /* without a build-id: hash of its first page; 0: unknown */
	bool several;   /* `print` differed between mappings */
};

struct vp_guest_dump {
	VP_VEC(struct space) spaces;
	VP_VEC(struct mapping) mappings;
	VP_VEC(struct image) images;
	struct vp_intern paths;
	struct vp_map space_of; /* tgid → latest */
	struct vp_map image_of; /* hash of path and build-id → image */
	struct vp_map known;    /* hashes of mappings */
	uint64_t damaged, nameless;
	struct vp_guest_lines lines;
	struct vp_guest_runtimes *runtimes;
	struct vp_buffer vdso; /* of a process */
	/* Set by vp_guest_dump_keep(): */
	struct vp_buffer symbols; /* bytes with the symbol tables */
	struct vp_kallsyms tables;
	bool isolates;
};

struct vp_guest_dump *vp_guest_dump_new(void)
{
	struct vp_guest_dump *dump = vp_alloc(sizeof(*dump));

	dump->runtimes = vp_guest_runtimes_new();
	return dump;
}

void vp_guest_dump_free(struct vp_guest_dump *dump)
{
	if (!dump)
		return;
	vp_vec_deinit(&dump->spaces);
	vp_vec_deinit(&dump->mappings);
	vp_vec_deinit(&dump->images);
	vp_intern_deinit(&dump->paths);
	vp_map_deinit(&dump->space_of);
	vp_map_deinit(&dump->image_of);
	vp_map_deinit(&dump->known);
	vp_buffer_deinit(&dump->symbols);
	vp_buffer_deinit(&dump->vdso);
	vp_guest_runtimes_free(dump->runtimes);
	free(dump);
}

void vp_guest_dump_keep(struct vp_guest_dump *dump, const struct vp_guest_kernel *kernel)
{
	if (!vp_guest_kernel_tables(kernel, &dump->symbols, &dump->tables))
		dump->symbols.size = 0;
	dump->isolates = vp_guest_kernel_isolates(kernel);
}

struct reading {
	struct vp_guest_dump *dump;
	const struct vp_guest_kernel *kernel;
	const struct vp_guest_task *task;
	uint32_t space;
	uint64_t vdso;
};

/* Keeps the vDSO of the first process. */
static void keep_vdso(const struct reading *reading, const struct vp_guest_mapping *seen)
{
	struct vp_guest_view view = reading->kernel->view;

	view.root = reading->task->root;
	if (!reading->dump->vdso.size &&
	    !vp_guest_vdso_read(&view, seen->start, seen->end - seen->start, &reading->dump->vdso))
		reading->dump->vdso.size = 0; /* the next process may have it */
}

static uint64_t dump_hash_of(const uint64_t *words, size_t count)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < count; i++)
		hash = vp_hash64(hash ^ words[i]) + i;
	return hash;
}

/* Returns the index of the image with that path and build-id; adds it if new. */
static uint32_t image_add(struct vp_guest_dump *dump, const char *path,
			  const struct vp_build_id *build_id, uint64_t inode, uint64_t print)
{
	uint64_t words[5] = {vp_intern_string(&dump->paths, path)};
	bool inserted;

	memcpy(&words[1], build_id->bytes, sizeof(build_id->bytes));
	uint32_t *image = vp_map_insert(&dump->image_of, dump_hash_of(words, VP_ARRAY_SIZE(words)),
					(uint32_t)dump->images.count, &inserted);
	if (inserted)
		vp_vec_push(&dump->images, ((struct image){.path = (uint32_t)words[0],
							   .build_id = *build_id,
							   .print = print}));
	struct image *kept = &dump->images.at[*image];
	kept->inode = inode;
	kept->several |= kept->print != print;
	return *image;
}

static uint32_t image_of_mapping(struct reading *reading, const struct vp_guest_mapping *mapping)
{
	struct vp_build_id build_id = {0};
	struct vp_buffer path = {0};
	struct vp_guest_file file = {0};
	uint64_t print = 0;

	if (!mapping->file) {
		vp_buffer_string(&path, mapping->start == reading->vdso ? "[vdso]" : "//anon");
	} else if (!vp_guest_path(reading->kernel, reading->task, mapping->file, &path)) {
		path.size = 0;
		vp_buffer_string(&path, "//unknown");
		reading->dump->nameless++;
	}
	if (mapping->file && vp_guest_file_open(reading->kernel, mapping->file, &file) &&
	    !vp_guest_file_build_id(&file, &build_id))
		print = vp_guest_file_print(&file);
	uint32_t image =
	    image_add(reading->dump, vp_buffer_text(&path), &build_id, file.inode, print);
	vp_buffer_deinit(&path);
	return image;
}

static void dump_take_mapping(void *context, const struct vp_guest_mapping *seen)
{
	struct reading *reading = context;
	struct vp_guest_dump *dump = reading->dump;
	struct mapping mapping = {
	    .space = reading->space, .start = seen->start, .end = seen->end, .pgoff = seen->pgoff};
	/* The struct file identifies a known mapping: paths are read only for new ones. */
	const uint64_t words[] = {mapping.space, mapping.start, mapping.end, mapping.pgoff,
				  seen->file};
	bool is_new;

	if (dump->mappings.count == MAX_KEPT)
		return;
	vp_map_insert(&dump->known, dump_hash_of(words, VP_ARRAY_SIZE(words)), 0, &is_new);
	if (!is_new)
		return;
	mapping.image = image_of_mapping(reading, seen);
	vp_vec_push(&dump->mappings, mapping);
	if (!seen->file && seen->start == reading->vdso)
		keep_vdso(reading, seen);
	const struct vp_guest_library library = {
	    .task = reading->task,
	    .space = reading->space,
	    .mapping = seen,
	    .path = vp_intern_text(&dump->paths, dump->images.at[mapping.image].path)};
	if (seen->file)
		vp_guest_runtimes_add(dump->runtimes, reading->kernel, &library);
}

static void dump_read_mappings(struct vp_guest_dump *dump, const struct vp_guest_kernel *kernel,
			       const struct vp_guest_task *task, uint32_t space)
{
	struct reading reading = {.dump = dump, .kernel = kernel, .task = task, .space = space};

	if (kernel->pack.derived) /* offsets of mappings are unknown */
		return;
	if (kernel->pack.at.mm_vdso == VP_PACK_NONE ||
	    !vp_guest_view_u64(&kernel->view, task->mm + kernel->pack.at.mm_vdso, &reading.vdso))
		reading.vdso = 0;
	dump->damaged += !vp_guest_mappings_each(kernel, task->mm, dump_take_mapping, &reading);
}

static void dump_see_task(struct vp_guest_dump *dump, const struct vp_guest_kernel *kernel,
			  const struct vp_guest_task *task, uint64_t time)
{
	struct space space = {.tgid = task->tgid, .root = task->root};
	bool is_new;

	if (!task->mm || dump->spaces.count == MAX_SPACES)
		return;
	memcpy(space.comm, task->comm, sizeof(space.comm));
	uint32_t *latest =
	    vp_map_insert(&dump->space_of, task->tgid, (uint32_t)dump->spaces.count, &is_new);
	if (!is_new) {
		struct space *before = &dump->spaces.at[*latest];
		if (before->root == task->root) {
			memcpy(before->comm, task->comm, sizeof(before->comm));
			dump_read_mappings(dump, kernel, task, *latest);
			return;
		}
		before->end = space.start = time;
		*latest = (uint32_t)dump->spaces.count;
	}
	vp_vec_push(&dump->spaces, space);
	dump_read_mappings(dump, kernel, task, (uint32_t)dump->spaces.count - 1);
}

void vp_guest_dump_see(struct vp_guest_dump *dump, const struct vp_guest_kernel *kernel,
		       uint64_t address, uint32_t tgid, uint64_t time)
{
	struct vp_guest_kernel near = *kernel;
	struct vp_guest_task task;

	/* Cached: hundreds of small reads, while samples are taken. */
	vp_guest_lines_begin(&dump->lines, kernel->view.memory);
	near.view.memory = &dump->lines.memory;
	if (vp_guest_task_read(&near, address, &task) && task.tgid == tgid)
		dump_see_task(dump, &near, &task, time);
}

struct vp_guest_runtimes *vp_guest_dump_runtimes(struct vp_guest_dump *dump)
{
	return dump->runtimes;
}

struct refreshing {
	struct vp_guest_dump *dump;
	const struct vp_guest_kernel *kernel;
	bool all;
};

static bool dump_refresh(void *context, const struct vp_guest_task *task)
{
	const struct refreshing *refreshing = context;
	const uint32_t *space = vp_map_find(&refreshing->dump->space_of, task->tgid);
	bool known = space && refreshing->dump->spaces.at[*space].root == task->root;

	if (refreshing->all || known)
		dump_see_task(refreshing->dump, refreshing->kernel, task, 0);
	space = vp_map_find(&refreshing->dump->space_of, task->tgid);
	if (space && refreshing->dump->spaces.at[*space].root == task->root)
		refreshing->dump->spaces.at[*space].leader = task->address;
	return true;
}

static bool put_kernel_symbol(void *context, const struct vp_kallsyms_symbol *symbol)
{
	if (!symbol->percpu)
		vp_maps_write_kernel_symbol(context, symbol->addr, 0, symbol->type, symbol->name,
					    NULL);
	return true;
}

static void dump_write_kernel(const struct vp_guest_dump *dump,
			      const struct vp_guest_kernel *kernel, struct vp_maps_writer *writer)
{
	if (!vp_kallsyms_each(&dump->tables, dump->symbols.bytes, dump->symbols.size,
			      put_kernel_symbol, writer))
		vp_maps_write_note(writer,
				   "the guest kernel's symbol table could only be read in part");
	vp_guest_modules_write(kernel, writer);
	vp_guest_kernel_code_write(kernel, writer);
}

static void dump_write_images(const struct vp_guest_dump *dump,
			      const struct vp_guest_kernel *kernel, bool symbols,
			      struct vp_maps_writer *writer)
{
	struct vp_guest_images images;

	vp_guest_images_init(&images, kernel, writer);
	images.vdso = (struct vp_slice){dump->vdso.bytes, dump->vdso.size};
	vp_vec_each (&dump->images, image) {
		struct vp_guest_image file = {.path = vp_intern_text(&dump->paths, image->path),
					      .build_id = image->build_id,
					      .print = image->several ? 0 : image->print,
					      .inode = image->inode};
		if (file.path[0] != '/' || file.path[1] == '/')
			continue;
		if (symbols)
			vp_guest_images_write(&images, &file);
		else
			vp_maps_write_image(writer, &file.build_id, file.path);
	}
	if (symbols)
		vp_guest_images_finish(&images);
}

static bool keep_first(void *context, const struct vp_guest_task *task)
{
	*(struct vp_guest_task *)context = *task;
	return false;
}

/* Writes the names in perf maps. The map of an ended process may remain in the /tmp of process 1:
 * it is used for the last process with that pid. */
static void dump_write_jit(const struct vp_guest_dump *dump, const struct vp_guest_kernel *kernel,
			   struct vp_maps_writer *writer)
{
	struct vp_guest_jit *jit = vp_guest_jit_new(kernel, writer);
	struct vp_guest_task first = {0}, task;
	bool damaged;

	vp_guest_tasks_each(kernel, keep_first, &first, &damaged);
	for (size_t i = 0; i < dump->spaces.count; i++) {
		const struct space *space = &dump->spaces.at[i];
		const uint32_t *latest = vp_map_find(&dump->space_of, space->tgid);
		if (!latest || *latest != i)
			continue;
		if (space->leader && vp_guest_task_read(kernel, space->leader, &task) &&
		    task.tgid == space->tgid)
			vp_guest_jit_write(jit, &task, vp_guest_inner_pid(kernel, &task), i);
		else if (first.address)
			vp_guest_jit_write(jit, &first, space->tgid, i);
	}
	vp_guest_jit_free(jit);
}

static void dump_write_spaces(const struct vp_guest_dump *dump, struct vp_maps_writer *writer)
{
	for (size_t i = 0; i < dump->spaces.count; i++) {
		const struct space *space = &dump->spaces.at[i];
		vp_maps_write_space(writer, i, space->tgid, space->root, space->start, space->end,
				    space->comm);
	}
	vp_vec_each (&dump->mappings, mapping) {
		const struct image *image = &dump->images.at[mapping->image];
		vp_maps_write_mapping(writer, mapping->space, mapping->start, mapping->end,
				      mapping->pgoff, 0, &image->build_id,
				      vp_intern_text(&dump->paths, image->path));
	}
}

struct vp_error *vp_guest_dump_write(struct vp_guest_dump *dump,
				     const struct vp_guest_kernel *kernel, int fd, bool symbols,
				     size_t *processes)
{
	struct refreshing refreshing = {dump, kernel, !dump->spaces.count};
	struct vp_maps_writer writer;
	bool damaged;

	vp_vec_each (&dump->spaces, space)
		space->leader = 0;
	vp_guest_tasks_each(kernel, dump_refresh, &refreshing, &damaged);
	vp_maps_writer_init(&writer, fd);
	vp_maps_write_machine(&writer, true, "");
	vp_maps_write_source(&writer, "memory");
	vp_maps_write_kernel(&writer, kernel->pack.release, &kernel->pack.build_id);
	vp_maps_write_paging(&writer, kernel->view.paging.levels, dump->isolates);
	dump_write_kernel(dump, kernel, &writer);
	dump_write_spaces(dump, &writer);
	dump_write_images(dump, kernel, symbols, &writer);
	if (symbols) {
		dump_write_jit(dump, kernel, &writer);
		vp_guest_runtimes_write(dump->runtimes, kernel, &writer);
	}
	if (kernel->pack.derived)
		vp_maps_write_note(&writer, "the guest's kernel has no BTF: process mappings "
					    "cannot be read from guest memory");
	if (damaged)
		vp_maps_write_note(&writer, "the guest's task list could only be read in part");
	if (dump->damaged)
		vp_maps_write_note(&writer,
				   "process mappings could only be read in part, %llu times",
				   (unsigned long long)dump->damaged);
	if (dump->nameless)
		vp_maps_write_note(&writer, "the path of %llu mapped files could not be read",
				   (unsigned long long)dump->nameless);
	*processes = dump->spaces.count;
	int result = vp_maps_writer_finish(&writer);
	vp_maps_writer_deinit(&writer);
	/* A map that reached the size limit is used, and is known to be truncated. */
	return result && result != -EFBIG
		   ? vp_error_errno(-result, "cannot write the guest's symbol map")
		   : NULL;
}
