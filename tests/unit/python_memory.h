/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of a Python process, made by code: two interpreters with three threads, code objects
 * and their names. */
#ifndef VP_TESTS_PYTHON_MEMORY_H
#define VP_TESTS_PYTHON_MEMORY_H

#include <string.h>

#include "runtime/python.h"

#define PYTHON_BASE 0x7f0000000000ULL

enum {
	PYTHON_SIZE = 0x4000,
	/* Places, from PYTHON_BASE on: */
	PYTHON_AT_RUNTIME = 0x100,
	PYTHON_AT_VERSION = 0x400,
	PYTHON_AT_INTERPRETERS = 0x800, /* 0x200 bytes each */
	PYTHON_AT_THREADS = 0xc00,      /* the same */
	PYTHON_AT_CODE = 0x1800,        /* 0x100 bytes each */
	PYTHON_AT_TEXTS = 0x2000,       /* 0x100 bytes each: function and file of each code */
	PYTHON_AT_LONG = 0x2800,
	PYTHON_CODE_TYPE = 0x3800,
	PYTHON_TEXT_TYPE = 0x3900,
	PYTHON_LOOP = 0x3a00,
	PYTHON_CODES = 4,
};

struct python_memory {
	unsigned char bytes[PYTHON_SIZE];
	uint64_t symbols[VP_PYTHON_SYMBOLS];
	uint64_t reads;
	uint64_t unreadable; /* address of a byte that cannot be read; 0: none */
	unsigned minor;
	struct vp_process_memory memory;
};

static inline void python_put(struct python_memory *python, size_t at, uint64_t value, size_t size)
{
	memcpy(python->bytes + at, &value, size);
}

static inline bool python_memory_read(void *context, uint64_t addr, void *bytes, size_t size)
{
	struct python_memory *python = context;
	uint64_t at = addr - PYTHON_BASE;

	python->reads++;
	if (at >= PYTHON_SIZE || size > PYTHON_SIZE - at ||
	    (python->unreadable >= addr && python->unreadable < addr + size))
		return false;
	memcpy(bytes, python->bytes + at, size);
	return true;
}

static inline uint64_t python_code_at(unsigned number)
{
	return PYTHON_BASE + PYTHON_AT_CODE + 0x100 * number;
}

/* Offsets as in struct _Py_DebugOffsets: the words that have them in 3.13 and 3.14. */
static inline void python_put_debug_offsets(struct python_memory *python)
{
	static const struct {
		unsigned of_13, of_14;
		uint64_t value;
	} offsets[] = {{5, 5, 0x240},  {8, 8, 0x10},   {9, 9, 0x18},   {21, 24, 8},
		       {23, 26, 0x48}, {25, 28, 0xa0}, {29, 32, 8},    {30, 33, 0},
		       {33, 36, 0x46}, {35, 40, 0x70}, {37, 42, 0x80}, {45, 51, 8},
		       {68, 78, 0x20}, {69, 79, 0x10}, {70, 80, 0x28}};

	memcpy(python->bytes + PYTHON_AT_RUNTIME, "xdebugpy", 8);
	memcpy(python->bytes + PYTHON_AT_RUNTIME + 8, python->bytes + PYTHON_AT_VERSION, 8);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++)
		python_put(python,
			   PYTHON_AT_RUNTIME +
			       8UL * (python->minor == 13 ? offsets[i].of_13 : offsets[i].of_14),
			   offsets[i].value, 8);
}

/* A compact string of characters of that size. */
static inline void python_put_text(struct python_memory *python, size_t at, const uint32_t *text,
				   size_t length, unsigned size, bool ascii)
{
	size_t header = python->minor == 11 ? 48 : 40;
	size_t more = python->minor == 11 ? 24 : 16;

	python_put(python, at + 8, PYTHON_BASE + PYTHON_TEXT_TYPE, 8);
	python_put(python, at + 16, length, 8);
	python_put(python, at + 32, (uint64_t)size << 2 | 1 << 5 | (uint64_t)ascii << 6, 4);
	for (size_t i = 0; i < length; i++)
		python_put(python, at + header + (ascii ? 0 : more) + i * size, text[i], size);
}

static inline void python_put_ascii(struct python_memory *python, size_t at, const char *text)
{
	uint32_t wide[128];
	size_t length = strlen(text);

	for (size_t i = 0; i < length; i++)
		wide[i] = (unsigned char)text[i];
	python_put_text(python, at, wide, length, 1, true);
}

static inline size_t python_text_at(unsigned number)
{
	return PYTHON_AT_TEXTS + 0x100 * number;
}

static inline void python_memory_make(struct python_memory *python, unsigned minor)
{
	static const size_t threads[] = {PYTHON_AT_THREADS, PYTHON_AT_THREADS + 0x200,
					 PYTHON_AT_THREADS + 0x400};
	size_t interpreter = PYTHON_AT_INTERPRETERS, next = minor == 11 ? 0 : 0x10;
	size_t head = minor == 11 ? 16 : 0x18;

	*python = (struct python_memory){.minor = minor, .memory = {python_memory_read, python}};
	python->symbols[VP_PYTHON_RUNTIME] = PYTHON_BASE + PYTHON_AT_RUNTIME;
	python->symbols[VP_PYTHON_VERSION] = PYTHON_BASE + PYTHON_AT_VERSION;
	python->symbols[VP_PYTHON_CODE_TYPE] = PYTHON_BASE + PYTHON_CODE_TYPE;
	python->symbols[VP_PYTHON_UNICODE_TYPE] = PYTHON_BASE + PYTHON_TEXT_TYPE;
	python->symbols[VP_PYTHON_LOOP] = PYTHON_BASE + PYTHON_LOOP;
	python_put(python, PYTHON_AT_VERSION, 0x030002f0 | (uint64_t)minor << 16, 8);
	if (minor != 11)
		python_put_debug_offsets(python);
	/* The first interpreter has two threads, the second one has one. */
	python_put(python, PYTHON_AT_RUNTIME + (minor == 11 ? 40 : 0x240),
		   PYTHON_BASE + interpreter, 8);
	python_put(python, interpreter + next, PYTHON_BASE + interpreter + 0x200, 8);
	python_put(python, interpreter + head, PYTHON_BASE + threads[0], 8);
	python_put(python, interpreter + 0x200 + head, PYTHON_BASE + threads[2], 8);
	python_put(python, threads[0] + 8, PYTHON_BASE + threads[1], 8);
	for (unsigned i = 0; i < 3; i++)
		python_put(python, threads[i] + 0xa0, 100 + i, 8);
	for (unsigned i = 0; i < PYTHON_CODES; i++) {
		size_t code = PYTHON_AT_CODE + 0x100 * i;
		python_put(python, code + 8, PYTHON_BASE + PYTHON_CODE_TYPE, 8);
		python_put(python, code + 0x70, PYTHON_BASE + python_text_at(2 * i + 1), 8);
		python_put(python, code + 0x80, PYTHON_BASE + python_text_at(2 * i), 8);
		python_put_ascii(python, python_text_at(2 * i), i ? "Class.method" : "work");
		python_put_ascii(python, python_text_at(2 * i + 1), "/srv/app.py");
	}
}

#endif
