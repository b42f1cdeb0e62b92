/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/perf/perf_kernel.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/macros.h"
#include "import/common/import_file.h"
#include "import/perf/perfdata.h"
#include "maps/proc.h"

void vp_perf_kernel_read(struct vp_perf_kernel *kernel)
{
	struct vp_buffer notes = {0};
	/* If it is unreadable, the running kernel is not used for a file. */
	VP_AUTO_ERROR struct vp_error *error = vp_file_read("/sys/kernel/notes", 1 << 16, &notes);

	if (!error)
		vp_build_id_in_notes(notes.bytes, notes.size, &kernel->id);
	vp_buffer_deinit(&notes);
	vp_maps_writer_init(&kernel->kallsyms, -1);
	vp_proc_write_kallsyms(&kernel->kallsyms);
}

/* A line of /proc/kallsyms, or of a symbol map, which has a size as well. */
struct symbol {
	uint64_t address;
	char type;
	struct vp_slice name, module; /* "[kvm]" or "kvm", or empty */
};

static bool perf_kernel_take_symbol(struct vp_slice line, bool is_map, struct symbol *ret)
{
	struct vp_cursor words = vp_cursor_of(line.bytes, line.size);

	if (is_map && !vp_slice_is(vp_cursor_word(&words), "k"))
		return false;
	ret->address = vp_cursor_hex(&words);
	if (is_map)
		vp_cursor_word(&words); /* size */
	struct vp_slice type = vp_cursor_word(&words);
	struct vp_slice rest = vp_cursor_rest(&words);
	if (!vp_cursor_ok(&words) || type.size != 1)
		return false;
	const char *tab = rest.size ? memchr(rest.bytes, '\t', rest.size) : NULL;
	const char *gap = tab || !rest.size ? tab : memchr(rest.bytes, ' ', rest.size);
	size_t size = gap ? (size_t)(gap - rest.bytes) : rest.size;
	ret->type = type.bytes[0];
	ret->name = (struct vp_slice){rest.bytes, size};
	ret->module =
	    gap ? (struct vp_slice){gap + 1, rest.size - size - 1} : (struct vp_slice){"", 0};
	return ret->name.size != 0;
}

/* Difference between the recorded kernel's addresses and the text's (KASLR). False: the text has
 * no addresses, or lacks perf's reference symbol. */
static bool find_shift(struct vp_slice text, bool is_map, const struct vp_perf_spaces *spaces,
		       uint64_t *ret)
{
	struct vp_cursor lines = vp_cursor_of(text.bytes, text.size);
	struct vp_slice line;
	struct symbol symbol;

	*ret = 0;
	while (vp_cursor_line(&lines, &line)) {
		if (!perf_kernel_take_symbol(line, is_map, &symbol) || symbol.module.size)
			continue;
		if (!spaces->kernel && symbol.address)
			return true;
		if (!vp_slice_is(symbol.name, spaces->kernel_symbol))
			continue;
		*ret = spaces->kernel - symbol.address;
		return symbol.address != 0;
	}
	return false;
}

/* Modules have other addresses after a reboot. */
static void perf_kernel_put_symbols(struct vp_slice text, bool is_map, uint64_t shift,
				    struct vp_maps_writer *maps)
{
	struct vp_cursor lines = vp_cursor_of(text.bytes, text.size);
	struct vp_slice line;
	struct symbol symbol;

	while (vp_cursor_line(&lines, &line)) {
		if (!perf_kernel_take_symbol(line, is_map, &symbol) ||
		    (shift && symbol.module.size))
			continue;
		struct vp_slice module = symbol.module;
		if (module.size > 2 && module.bytes[0] == '[')
			module = (struct vp_slice){module.bytes + 1, module.size - 2};
		VP_AUTO_FREE char *name =
		    vp_format("%.*s", (int)symbol.name.size, symbol.name.bytes);
		VP_AUTO_FREE char *in =
		    module.size ? vp_format("%.*s", (int)module.size, module.bytes) : NULL;
		if (name[0])
			vp_maps_write_kernel_symbol(maps, symbol.address + shift, 0, symbol.type,
						    name, in);
	}
}

/* False: the text lacks the range of the kernel's functions. */
static bool perf_kernel_put_text(struct vp_slice text, bool is_map,
				 const struct vp_perf_spaces *spaces, struct vp_maps_writer *maps)
{
	uint64_t shift;

	if (!find_shift(text, is_map, spaces, &shift))
		return false;
	perf_kernel_put_symbols(text, is_map, shift, maps);
	return true;
}

static bool perf_kernel_put_file(const char *path, const struct vp_perf_spaces *spaces,
				 struct vp_maps_writer *maps)
{
	struct vp_slice text = vp_import_file_map_confined(path);

	return text.size && perf_kernel_put_text(text, false, spaces, maps);
}

/* From the data directory: perf record --kcore, or vperf export perf for its VMs. */
static bool put_from_directory(const char *directory, const struct vp_perf_spaces *spaces,
			       struct vp_maps_writer *maps)
{
	VP_AUTO_FREE char *suffix =
	    spaces->machine ? vp_format("__%" PRIu32, spaces->machine) : vp_strdup("");
	VP_AUTO_FREE char *path =
	    vp_format("%s/kcore_dir%s/kallsyms", directory ? directory : "", suffix);

	return directory && perf_kernel_put_file(path, spaces, maps);
}

/* From perf's cache (~/.debug), which has the symbols of each recorded kernel. */
static bool put_from_cache(const struct vp_build_id *id, const struct vp_perf_spaces *spaces,
			   struct vp_maps_writer *maps)
{
	const char *cache = getenv("PERF_BUILDID_DIR"), *home = getenv("HOME");
	struct vp_buffer digits = {0};

	vp_build_id_put(id, &digits);
	const char *text = vp_buffer_text(&digits);
	VP_AUTO_FREE char *path = vp_format("%s%s/.build-id/%.2s/%s/kallsyms",
					    cache  ? cache
					    : home ? home
						   : "",
					    cache ? "" : "/.debug", text, text + 2);
	vp_buffer_deinit(&digits);
	return perf_kernel_put_file(path, spaces, maps);
}

static struct vp_build_id perf_kernel_id_of(const struct vp_perfdata *file,
					    const struct vp_perf_spaces *spaces)
{
	return spaces->kernel_id.size ? spaces->kernel_id
				      : vp_perfdata_build_id(file, "[kernel.kallsyms]");
}

static bool perf_kernel_put_host(const struct vp_perf_kernel *here, const struct vp_build_id *id,
				 const struct vp_perf_spaces *spaces, struct vp_maps_writer *maps)
{
	const struct vp_buffer *own = &here->kallsyms.buffer;

	if (!id->size)
		return false;
	if (vp_build_id_equal(id, &here->id) &&
	    perf_kernel_put_text((struct vp_slice){own->bytes, own->size}, true, spaces, maps))
		return true;
	return put_from_cache(id, spaces, maps);
}

void vp_perf_kernel_write(const struct vp_perf_kernel *here, const char *directory,
			  const struct vp_perfdata *file, const struct vp_perf_spaces *spaces,
			  struct vp_maps_writer *maps)
{
	const struct vp_build_id id = perf_kernel_id_of(file, spaces);
	VP_AUTO_FREE char *release = vp_format("%.*s", (int)file->release.size,
					       file->release.bytes ? file->release.bytes : "");

	if (!spaces->machine)
		vp_maps_write_kernel(maps, release[0] ? release : "unknown", &id);
	if (put_from_directory(directory, spaces, maps) ||
	    (!spaces->machine && perf_kernel_put_host(here, &id, spaces, maps)))
		return;
	if (!spaces->machine && !id.size)
		vp_maps_write_note(
		    maps, "the file has no build-id of the kernel (perf record --buildid-mmap adds "
			  "it), so kernel functions have no names: use --kallsyms host=FILE");
	else if (!spaces->machine)
		vp_maps_write_note(maps,
				   "the samples are from a different kernel than the running one, "
				   "and perf's cache (~/.debug) has no kallsyms of it, so kernel "
				   "functions have no names: use --kallsyms host=FILE");
	else
		vp_maps_write_note(maps, "the directory has no kallsyms of this VM, so kernel "
					 "functions have no names");
}
