/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of a process, by virtual addresses. The contents are untrusted: a read either yields
 * the bytes or fails. */
#ifndef VP_RUNTIME_PROCESS_MEMORY_H
#define VP_RUNTIME_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct vp_process_memory {
	/* False unless all bytes can be read. */
	bool (*read)(void *context, uint64_t addr, void *bytes, size_t size);
	void *context;
};

static inline bool vp_process_read(const struct vp_process_memory *memory, uint64_t addr,
				   void *bytes, size_t size)
{
	return addr <= UINT64_MAX - size && memory->read(memory->context, addr, bytes, size);
}

static inline bool vp_process_u64(const struct vp_process_memory *memory, uint64_t addr,
				  uint64_t *ret)
{
	return vp_process_read(memory, addr, ret, sizeof(*ret));
}

static inline bool vp_process_u32(const struct vp_process_memory *memory, uint64_t addr,
				  uint32_t *ret)
{
	return vp_process_read(memory, addr, ret, sizeof(*ret));
}

static inline bool vp_process_u16(const struct vp_process_memory *memory, uint64_t addr,
				  uint16_t *ret)
{
	return vp_process_read(memory, addr, ret, sizeof(*ret));
}

/* Reads a text that is NUL-terminated within `size` bytes; the bytes after it may be unreadable. */
static inline bool vp_process_string(const struct vp_process_memory *memory, uint64_t addr,
				     char *text, size_t size)
{
	enum { PIECE = 32 };

	for (size_t at = 0; at < size;) {
		size_t piece = PIECE - (addr + at) % PIECE;
		if (piece > size - at)
			piece = size - at;
		if (!vp_process_read(memory, addr + at, text + at, piece))
			return false;
		if (memchr(text + at, 0, piece))
			return true;
		at += piece;
	}
	return false;
}

#endif
