/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/symbols/images.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/vec.h"
#include "guestmem/memory/guest_view.h"
#include "guestmem/symbols/elf_tables.h"
#include "guestmem/tasks/pagecache.h"
#include "maps/image.h"

enum { LARGEST_VDSO = 64 << 10, MAX_REPORTED = 100 };
/* Limit for symbol tables of all files. */
#define MAX_BYTES (512ULL << 20)

void vp_guest_images_init(struct vp_guest_images *images, const struct vp_guest_kernel *kernel,
			  struct vp_maps_writer *writer)
{
	*images = (struct vp_guest_images){.kernel = kernel, .writer = writer, .left = MAX_BYTES};
}

static void images_report(struct vp_guest_images *images, const char *path, const char *why)
{
	if (images->reported++ < MAX_REPORTED)
		vp_maps_write_note(images->writer, "no function names of '%s': %s", path, why);
	else
		images->missed++;
}

static void images_report_missing(struct vp_guest_images *images, const char *path,
				  const struct vp_elf_pages *pages, const char *which)
{
	if (images->reported++ < MAX_REPORTED)
		vp_maps_write_note(images->writer,
				   "only some function names of '%s': %" PRIu64 " of %" PRIu64
				   " pages of its %s tables are not in the guest's page cache",
				   path, pages->missing, pages->all, which);
	else
		images->missed++;
}

static struct vp_error *images_write_symbols(const struct vp_buffer *bytes, const char *path,
					     struct vp_maps_writer *writer)
{
	struct vp_image elf = {0};
	struct vp_error *error = vp_image_read_memory(bytes->bytes, bytes->size, path, &elf);

	if (!error)
		vp_vec_each (&elf.symbols, symbol)
			vp_maps_write_symbol(writer, symbol->offset, symbol->size,
					     vp_image_symbol_name(&elf, symbol));
	vp_image_deinit(&elf);
	return error;
}

/* Counts a file without its section headers: tables that are not loaded are not found. */
static void images_count_headless(struct vp_guest_images *images, const char *path)
{
	if (!images->headless++)
		snprintf(images->headless_path, sizeof(images->headless_path), "%s", path);
}

static void images_write_tables(struct vp_guest_images *images, const char *path,
				const struct vp_guest_file *file)
{
	struct vp_elf_tables tables;

	vp_elf_tables_read(file, images->left, &tables);
	images->left -= tables.bytes.size < images->left ? tables.bytes.size : images->left;
	if (tables.problem) {
		images_report(images, path, tables.problem);
	} else {
		struct vp_error *error = images_write_symbols(&tables.bytes, path, images->writer);
		if (error)
			images_report(images, path, vp_error_message(error));
		else if (tables.symbols.missing)
			images_report_missing(images, path, &tables.symbols, "symbol");
		else if (tables.functions.missing && !tables.has_symtab)
			images_report_missing(images, path, &tables.functions, "unwind");
		vp_error_free(error);
	}
	if (!tables.problem && tables.no_sections)
		images_count_headless(images, path);
	vp_elf_tables_deinit(&tables);
}

/* Reason why the file may differ from the mapped one, or NULL. */
static const char *images_differs(const struct vp_guest_file *file,
				  const struct vp_guest_image *image)
{
	struct vp_build_id now;
	uint64_t print = vp_guest_file_print(file);
	bool has_id = vp_guest_file_build_id(file, &now);

	if (!has_id && !print)
		return "its build-id is missing or not in the guest's page cache";
	if (!vp_build_id_equal(&now, &image->build_id) || (!has_id && print != image->print))
		return "it changed since it was mapped";
	return NULL;
}

void vp_guest_images_write(struct vp_guest_images *images, const struct vp_guest_image *image)
{
	struct vp_guest_file file;
	const char *problem;

	vp_maps_write_image(images->writer, &image->build_id, image->path);
	if (!image->inode || !vp_guest_file_open_inode(images->kernel, image->inode, &file))
		images_report(images, image->path,
			      "the guest kernel's page cache cannot be located");
	else if ((problem = images_differs(&file, image)))
		images_report(images, image->path, problem);
	else
		images_write_tables(images, image->path, &file);
}

bool vp_guest_vdso_read(const struct vp_guest_view *view, uint64_t start, uint64_t size,
			struct vp_buffer *ret)
{
	if (!start || !size || size > LARGEST_VDSO)
		return false;
	ret->size = 0;
	if (vp_guest_view_read(view, start, vp_buffer_extend(ret, size), size))
		return true;
	ret->size = 0;
	return false;
}

/* Reads the kernel's vDSO. Its struct vdso_image, renamed between 6.12 and 7.2, starts with
 * address and size. */
static bool read_vdso(const struct vp_guest_kernel *kernel, struct vp_buffer *ret)
{
	uint64_t older = vp_guest_kernel_symbol(kernel, kernel->pack.symbol.vdso_image);
	uint64_t newer = vp_guest_kernel_symbol(kernel, kernel->pack.symbol.vdso64_image);
	uint64_t at = newer ? newer : older;
	uint64_t image[2];

	/* On Arm, symbols mark its start and end. */
	image[0] = vp_guest_kernel_symbol(kernel, kernel->pack.symbol.vdso_start);
	image[1] = vp_guest_kernel_symbol(kernel, kernel->pack.symbol.vdso_end) - image[0];
	if (at && !vp_guest_view_read(&kernel->view, at, image, sizeof(image)))
		return false;
	return vp_guest_vdso_read(&kernel->view, image[0], image[1], ret);
}

/* Writes the vDSO's symbols. */
static void write_vdso(const struct vp_guest_images *images)
{
	const struct vp_build_id unknown = {0};
	struct vp_buffer bytes = {0};

	if (!read_vdso(images->kernel, &bytes))
		vp_buffer_append(&bytes, images->vdso.bytes, images->vdso.size);
	if (bytes.size) {
		vp_maps_write_image(images->writer, &unknown, "[vdso]");
		vp_error_free(images_write_symbols(&bytes, "[vdso]", images->writer));
	}
	vp_buffer_deinit(&bytes);
}

void vp_guest_images_finish(struct vp_guest_images *images)
{
	write_vdso(images);
	if (images->headless)
		vp_maps_write_note(images->writer,
				   "function names may be missing in '%s' (files: %" PRIu64
				   "): section headers are not in the guest's page cache",
				   images->headless_path, images->headless);
	if (images->missed)
		vp_maps_write_note(images->writer,
				   "function names of %" PRIu64
				   " more files are missing or incomplete",
				   images->missed);
}
