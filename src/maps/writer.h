/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes a symbol map (maps/format.h), one function per kind of line. */
#ifndef VP_MAPS_WRITER_H
#define VP_MAPS_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"
#include "maps/format.h"

/*
 * Output buffer. With a file descriptor, the text is written in large pieces, and the first failed
 * write is kept in `error` (-errno; later lines are dropped). Without one (-1), the text stays in
 * `buffer`.
 */
struct vp_maps_writer {
	struct vp_buffer buffer;
	uint64_t lines;
	int fd;
	int error;
};

/* Starts the text with its version line. */
void vp_maps_writer_init(struct vp_maps_writer *writer, int fd);
/* Ends the text with the end line and writes the rest; 0 or the first write error. Call _deinit()
 * afterwards. */
int vp_maps_writer_finish(struct vp_maps_writer *writer) VP_MUST_CHECK;
void vp_maps_writer_deinit(struct vp_maps_writer *writer);
/* Writes the buffered text; 0 or the first write error. */
int vp_maps_writer_flush(struct vp_maps_writer *writer) VP_MUST_CHECK;
/* Adds whole lines of another symbol map: those whose keyword is in `keywords`. */
void vp_maps_writer_adopt(struct vp_maps_writer *writer, struct vp_slice text,
			  const char *keywords);

/* The lines of docs/format-maps.md, with fields of the same names. Times and errors: ns of the
 * machine's CLOCK_MONOTONIC; addresses and sizes: bytes. Texts are escaped. */
void vp_maps_write_machine(struct vp_maps_writer *writer, bool guest, const char *name);
/* Source of the text, unless an agent: "memory" for the host that reads guest memory. */
void vp_maps_write_source(struct vp_maps_writer *writer, const char *source);
void vp_maps_write_kernel(struct vp_maps_writer *writer, const char *release,
			  const struct vp_build_id *id);
void vp_maps_write_paging(struct vp_maps_writer *writer, unsigned levels, bool kpti);
void vp_maps_write_clock(struct vp_maps_writer *writer, uint64_t mono_ns, uint64_t tsc,
			 uint64_t error_ns);
/* `module` NULL: the kernel itself. */
void vp_maps_write_kernel_symbol(struct vp_maps_writer *writer, uint64_t addr, uint64_t size,
				 char type, const char *name, const char *module);
void vp_maps_write_space(struct vp_maps_writer *writer, uint64_t id, uint32_t tgid, uint64_t root,
			 uint64_t start_ns, uint64_t end_ns, const char *comm);
void vp_maps_write_fork(struct vp_maps_writer *writer, uint64_t id, uint64_t parent);
void vp_maps_write_mapping(struct vp_maps_writer *writer, uint64_t id, uint64_t start, uint64_t end,
			   uint64_t pgoff, uint64_t from_ns, const struct vp_build_id *build_id,
			   const char *path);
void vp_maps_write_image(struct vp_maps_writer *writer, const struct vp_build_id *id,
			 const char *path);
void vp_maps_write_symbol(struct vp_maps_writer *writer, uint64_t offset, uint64_t size,
			  const char *name);
void vp_maps_write_jit(struct vp_maps_writer *writer, uint64_t id, uint64_t addr, uint64_t size,
		       const char *name);
/* A symbol of code that was generated at that time. */
void vp_maps_write_jit_from(struct vp_maps_writer *writer, uint64_t id, uint64_t addr,
			    uint64_t size, const char *name, uint64_t from_ns);
void vp_maps_write_note(struct vp_maps_writer *writer, const char *format, ...) VP_PRINTF(2, 3);

#endif
