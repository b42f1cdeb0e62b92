/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Offsets, threads, code objects and strings in the memory of a Python process that lies, and call
 * chains with its frames. The first byte chooses the version and whether the offsets are read after
 * the changes; the layout is that of the unit tests.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../unit/python_memory.h"
#include "guestreader/interpreted.h"
#include "runtime/python_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MOST_READS = 1 << 14, LONGEST_NAME = 8192 };

static bool fuzz_python_take_thread(void *context, const struct vp_python_thread *thread)
{
	unsigned *count = context;

	if (!thread->state || !thread->native_id || ++*count > 4096)
		abort();
	return true;
}

static void check_name(struct vp_python *python, uint64_t code)
{
	struct vp_buffer name = {0};

	if (vp_python_code_name(python, code, &name))
		for (size_t i = 0; i < name.size; i++)
			if ((unsigned char)name.bytes[i] < ' ')
				abort();
	if (name.size > LONGEST_NAME)
		abort();
	vp_buffer_deinit(&name);
}

/* The input as a chain and frames. */
static void fuzz_merge(const uint8_t *bytes, size_t size)
{
	static struct vp_stack_job job;

	memset(&job, 0, sizeof(job));
	memcpy(&job, bytes, size < sizeof(job) ? size : sizeof(job));
	if (size > 3) {
		job.count = bytes[1];
		job.interpreted.count = bytes[2];
		job.end = bytes[3] & 1;
	}
	for (size_t i = 4; i < size && i < 68; i++) {
		job.ips[i - 4] = bytes[i] & 1 ? 0x1800 : 0x5000;
		job.interpreted.frames[i - 4] = 0x9000 | (bytes[i] >> 1 & 1);
	}
	vp_interpreted_merge(&job, 0x1000, 0x2000);
	if (job.count > VP_CHAIN_LONGEST)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct python_memory memory;
	struct vp_code_names names = {0};
	struct vp_python python;
	unsigned threads = 0;

	if (!size)
		return 0;
	fuzz_merge(bytes, size);
	python_memory_make(&memory, bytes[0] & 1 ? 11 : bytes[0] & 4 ? 14 : 13);
	struct vp_error *error = vp_python_open(&memory.memory, memory.symbols, &python);
	if (error)
		abort();
	/* The rest of the input replaces memory: pieces of place, size and bytes. */
	for (size_t at = 1; at + 3 < size;) {
		size_t place = (bytes[at] | (size_t)bytes[at + 1] << 8) % PYTHON_SIZE;
		size_t piece = bytes[at + 2] % 64 + 1UL;
		at += 3;
		piece = piece < size - at ? piece : size - at;
		piece = piece < PYTHON_SIZE - place ? piece : PYTHON_SIZE - place;
		memcpy(memory.bytes + place, bytes + at, piece);
		at += piece;
	}
	memory.reads = 0;
	if (bytes[0] & 2) {
		error = vp_python_open(&memory.memory, memory.symbols, &python);
		vp_error_free(error);
		if (error)
			return 0;
	}
	if (vp_python_threads_each(&python, fuzz_python_take_thread, &threads) && threads > 1024)
		abort();
	for (unsigned i = 0; i < PYTHON_CODES; i++) {
		check_name(&python, python_code_at(i));
		vp_python_names_see(&names, &python, python_code_at(i), 1000 * i);
	}
	if (memory.reads > MOST_READS)
		abort();
	vp_code_names_deinit(&names);
	return 0;
}
