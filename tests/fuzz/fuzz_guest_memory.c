/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest's memory that lies. The first byte chooses: a whole snapshot, from its kernel to its map
 * text; a snapshot whose kernel and pack are true, so that the walkers get to the lies at once, of
 * x86 or of 64-bit Arm with each size of pages; the same, with places that have to be worked out;
 * or a piece of memory alone, as symbol tables, BTF, a kernel pack or a perf map.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/arm_guest.h"
#include "guestmem/kernel/derive.h"
#include "guestmem/kernel/scan.h"
#include "guestmem/symbols/dump.h"
#include "guestmem/symbols/jit.h"
#include "guestmem/tasks/process.h"
#include "guestmem/tasks/tasks.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MAX_SYMBOLS = 4 << 20, MAX_STEPS = 4, STEP_NS = 1000000 };

static void dump_all(const struct vp_guest_kernel *kernel)
{
	struct vp_guest_dump *dump = vp_guest_dump_new();
	VP_AUTO_CLOSE int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	vp_guest_cpus cpus = {0};
	size_t processes;
	bool unsettled;

	vp_error_free(vp_guest_kernel_check(kernel));
	vp_error_free(vp_guest_cpus_find(kernel, &cpus, &unsettled));
	vp_guest_dump_see(dump, kernel, kernel->text + kernel->pack.symbol.init_task.offset, 0, 1);
	vp_guest_dump_keep(dump, kernel);
	vp_error_free(vp_guest_dump_write(dump, kernel, nowhere, true, &processes));
	vp_vec_deinit(&cpus);
	vp_guest_dump_free(dump);
}

/* A few steps: slots may claim any size. */
static struct vp_error *scan_for_kernel(const struct vp_guest_snapshot *snapshot,
					struct vp_guest_kernel *kernel)
{
	static const vp_kernel_packs none;
	const struct vp_scan_setup setup = {.memory = &snapshot->memory, .packs = &none};
	enum vp_scan_result result = VP_SCAN_GOES_ON;
	struct vp_guest_view found;
	struct vp_kernel_scan *scan = vp_kernel_scan_new(&setup);

	*kernel = (struct vp_guest_kernel){0};
	for (unsigned i = 0; i < MAX_STEPS && result == VP_SCAN_GOES_ON; i++)
		result = vp_kernel_scan_step(scan, STEP_NS, &found);
	vp_kernel_scan_free(scan);
	return result == VP_SCAN_FOUND ? vp_guest_kernel_read(&found, &none, 1, kernel)
				       : vp_error_new("no kernel");
}

static void try_snapshot(const uint8_t *bytes, size_t size)
{
	static const vp_kernel_packs none;
	struct vp_guest_snapshot snapshot;
	struct vp_guest_kernel kernel;
	struct vp_error *error = vp_guest_snapshot_init(bytes, size, &snapshot);

	if (!error) {
		error = snapshot.vcpus.count
			    ? vp_guest_kernel_find(&snapshot.memory, snapshot.vcpus.at,
						   snapshot.vcpus.count, &none, 1, &kernel)
			    : scan_for_kernel(&snapshot, &kernel);
		if (!error)
			dump_all(&kernel);
		vp_guest_kernel_deinit(&kernel);
		vp_guest_snapshot_deinit(&snapshot);
	}
	vp_error_free(error);
}

/* The first byte of an input that is the low memory of the built guest. */
enum { OBJECTS = 1, OBJECTS_DERIVE = 2, OBJECTS_ARM = 4, OBJECTS_PAGES = 24 /* 4, 16, 64 KiB */ };

static void build_guest(uint8_t kind, struct vp_buffer *text)
{
	static const unsigned page_bits[] = {12, 14, 16, 12}, va_bits[] = {48, 47, 48, 48};
	unsigned pages = (kind & OBJECTS_PAGES) / 8;

	if (kind & OBJECTS_ARM) {
		make_arm(page_bits[pages], va_bits[pages], true);
		arm_snapshot(text);
	} else {
		built_kernel(&guest, BUILT_NEW);
		built_snapshot(&guest, text);
	}
}

/* The bytes are the low memory of the built guest: its tasks, trees and files. */
static void try_objects(const uint8_t *bytes, size_t size, uint8_t kind)
{
	static const vp_kernel_packs none;
	struct vp_guest_snapshot snapshot;
	struct vp_guest_kernel kernel;
	struct vp_buffer text = {0};

	build_guest(kind, &text);
	if (vp_guest_snapshot_init(text.bytes, text.size, &snapshot) ||
	    vp_guest_kernel_find(&snapshot.memory, snapshot.vcpus.at, snapshot.vcpus.count, &none,
				 1, &kernel))
		abort();
	/* The kernel is known; now the memory becomes what the input says. */
	char *low = text.bytes + text.size - BUILT_LOW;
	memcpy(low, bytes, size < BUILT_LOW ? size : BUILT_LOW);
	kernel.view.image_size = BUILT_IMAGE;
	if (!(kind & OBJECTS_DERIVE) || vp_guest_derive_tasks(&kernel))
		dump_all(&kernel);
	vp_guest_kernel_deinit(&kernel);
	vp_guest_snapshot_deinit(&snapshot);
	vp_buffer_deinit(&text);
}

static bool count(void *context, const struct vp_kallsyms_symbol *symbol)
{
	unsigned *symbols = context;

	if (!memchr(symbol->name, 0, sizeof(symbol->name)) || ++*symbols > MAX_SYMBOLS)
		abort();
	return true;
}

/* Every line of a perf map that is one must be whole and inside. */
static void try_perf_map(const uint8_t *bytes, size_t size)
{
	struct vp_cursor cursor = vp_cursor_of(bytes, size);
	struct vp_jit_symbol symbol;
	struct vp_slice line;

	while (vp_cursor_line(&cursor, &line))
		if (vp_jit_line_parse(line, &symbol) &&
		    (!symbol.addr || !symbol.size || symbol.addr + symbol.size < symbol.addr ||
		     symbol.name.bytes < line.bytes ||
		     symbol.name.bytes + symbol.name.size > line.bytes + line.size))
			abort();
}

static void try_pieces(const uint8_t *bytes, size_t size)
{
	try_perf_map(bytes, size);
	struct vp_kallsyms tables;
	struct vp_guest_btf btf;
	struct vp_kernel_pack pack;
	unsigned symbols = 0;
	struct vp_error *error = vp_kallsyms_find((const char *)bytes, size, BUILT_TEXT, &tables);

	if (!error)
		vp_kallsyms_each(&tables, (const char *)bytes, size, count, &symbols);
	vp_error_free(error);
	error = vp_guest_btf_init(bytes, size, &btf);
	if (!error) {
		vp_kernel_pack_init(&pack);
		vp_kernel_pack_members(&pack, &btf);
		vp_guest_btf_deinit(&btf);
	}
	vp_error_free(error);
	error = vp_kernel_pack_parse("pack", bytes, size, &pack);
	if (!error) /* what a pack says of the tables is not believed either */
		vp_kallsyms_each(&pack.kallsyms, (const char *)bytes, size, count, &symbols);
	vp_error_free(error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	if (!size)
		return 0;
	if (bytes[0] == 'V')
		try_snapshot(bytes, size);
	else if (bytes[0] & OBJECTS)
		try_objects(bytes + 1, size - 1, bytes[0]);
	else
		try_pieces(bytes + 1, size - 1);
	return 0;
}
