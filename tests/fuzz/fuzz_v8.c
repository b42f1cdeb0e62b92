/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Constants, frames, functions and strings in the memory of a process with V8 that lies. The first
 * byte chooses the version and whether the constants are read after the changes; the layout is that
 * of the unit tests.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../unit/v8_memory.h"
#include "guestreader/v8_frames.h"
#include "runtime/v8_names.h"
#include "schema/chain_end.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MOST_READS = 1 << 13, LONGEST_NAME = 8192, FRAMES = 8 };

static void check_name(struct vp_v8 *v8, uint64_t shared)
{
	struct vp_buffer name = {0};

	if (vp_v8_name(v8, shared, &name))
		for (size_t i = 0; i < name.size; i++)
			if ((unsigned char)name.bytes[i] < ' ')
				abort();
	if (name.size > LONGEST_NAME)
		abort();
	vp_buffer_deinit(&name);
}

/* A chain whose frames are anywhere in the memory. */
static void fuzz_frames(struct v8_memory *memory, const struct vp_v8 *v8, const uint8_t *bytes,
			size_t size)
{
	const struct vp_guest_v8_code code = {.low = 0x1000,
					      .high = 0x2000,
					      .blob_low = 0x4000,
					      .blob_high = 0x5000,
					      .layout = &v8->layout};
	const struct vp_user_program program = {.read = v8_memory_read, .context = memory};
	struct vp_user_chain chain = {.count = 0};
	uint64_t functions[VP_CHAIN_LONGEST];

	for (size_t i = 0; i < FRAMES && 2 * i + 2 < size; i++) {
		chain.ips[i] = bytes[2 * i + 1] & 1 ? 0x1800 : 0x4800;
		chain.fps[i] = V8_BASE + bytes[2 * i + 1] * 64UL + (bytes[2 * i + 2] & 0x3f);
		chain.count++;
	}
	if (vp_v8_frames_put(&code, &program, &chain, functions) > chain.count)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct v8_memory memory;
	struct vp_code_names names = {0};
	struct vp_v8 v8;

	if (!size)
		return 0;
	v8_memory_make(&memory, bytes[0] & 1 ? V8_OLD : V8_NEW);
	struct vp_error *error = vp_v8_open(&memory.memory, memory.symbols, &v8);
	if (error)
		abort();
	/* The rest of the input replaces memory: pieces of place, size and bytes. */
	for (size_t at = 1; at + 3 < size;) {
		size_t place = (bytes[at] | (size_t)bytes[at + 1] << 8) % V8_SIZE;
		size_t piece = bytes[at + 2] % 64 + 1UL;
		at += 3;
		piece = piece < size - at ? piece : size - at;
		piece = piece < V8_SIZE - place ? piece : V8_SIZE - place;
		memcpy(memory.bytes + place, bytes + at, piece);
		at += piece;
	}
	memory.reads = 0;
	if (bytes[0] & 2) {
		error = vp_v8_open(&memory.memory, memory.symbols, &v8);
		vp_error_free(error);
		if (error)
			return 0;
		if (v8.blob_high - v8.blob_low > 64 << 20)
			abort();
	}
	for (unsigned i = 0; i < V8_FUNCTIONS; i++) {
		check_name(&v8, v8_shared_at(i));
		vp_v8_names_see(&names, &v8, v8_shared_at(i), 1000 * i);
	}
	fuzz_frames(&memory, &v8, bytes, size);
	if (memory.reads > MOST_READS)
		abort();
	vp_code_names_deinit(&names);
	return 0;
}
