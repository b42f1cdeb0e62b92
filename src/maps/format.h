/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbol map: processes, mappings and symbols of a machine. Plain text, one line per item,
 * words separated by one blank. `vperf record` writes it for the host, `vperf-agent` for a guest.
 * docs/format-maps.md is the reference; in short:
 *
 *   vperf-maps 1
 *   machine guest|host NAME
 *   source memory                               the host made it, from the guest's memory
 *   kernel RELEASE BUILDID|-
 *   address-bits LEVELS kpti 0|1
 *   clock MONO_NS TSC [ERROR_NS]
 *   k ADDR SIZE TYPE NAME [MODULE]              kernel symbol; SIZE 0: up to the next one
 *   a ID TGID ROOT START_NS END_NS COMM         one address space, from birth to death
 *   f ID PARENT                                 ID was forked: it starts with PARENT's mappings
 *   m ID START END PGOFF FROM_NS BUILDID|- PATH executable mapping
 *   i BUILDID|- PATH                            image: the s lines after it are its symbols
 *   s OFFSET SIZE NAME                          symbol by offset in the image's file
 *   j ID ADDR SIZE NAME                         symbol of generated code, by address
 *   n TEXT                                      a note about something missing, in one sentence
 *   end LINES                                   number of lines before this one
 *
 * ADDR, SIZE, ROOT, START, END, PGOFF, OFFSET and BUILDID are hexadecimal, the rest is decimal.
 * NAME, COMM, PATH and TEXT are escaped: each byte up to blank, DEL and '%' is %XX; nothing is "-",
 * and a lone "-" is "%2d".
 */
#ifndef VP_MAPS_FORMAT_H
#define VP_MAPS_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"

#define VP_MAPS_VERSION 1

/* Limits of a reader; a larger file is read up to here, with a warning. */
#define VP_MAPS_MAX_LINE ((size_t)8 * 1024)
#define VP_MAPS_MAX_BYTES ((size_t)2 * 1024 * 1024 * 1024)
#define VP_MAPS_MAX_SYMBOLS ((size_t)32 * 1024 * 1024)
#define VP_MAPS_MAX_SPACES ((size_t)1024 * 1024)
#define VP_MAPS_MAX_MAPPINGS ((size_t)16 * 1024 * 1024)
#define VP_MAPS_MAX_IMAGES ((size_t)1024 * 1024)
#define VP_MAPS_MAX_NOTES ((size_t)1000)
#define VP_MAPS_MAX_CLOCKS ((size_t)10000)

enum { VP_BUILD_ID_MAX = 32 };

struct vp_build_id {
	uint8_t size; /* 0: unknown */
	uint8_t bytes[VP_BUILD_ID_MAX];
};

/* The build-id of `size` bytes at `bytes`; unknown if the size is 0 or above the limit. */
struct vp_build_id vp_build_id_of(const void *bytes, size_t size);
/* Parses hexadecimal digits, or "-" (unknown); false: malformed. */
bool vp_build_id_parse(struct vp_slice text, struct vp_build_id *id);
/* Appends the hexadecimal digits, or "-" if unknown. */
void vp_build_id_put(const struct vp_build_id *id, struct vp_buffer *buffer);
bool vp_build_id_equal(const struct vp_build_id *a, const struct vp_build_id *b);
/* Finds the GNU build-id among ELF notes, such as /sys/kernel/notes or a PT_NOTE segment. */
bool vp_build_id_in_notes(const void *notes, size_t size, struct vp_build_id *id);

/* Whether a kernel symbol of that type, a letter of nm(1), is a function. */
static inline bool vp_maps_is_text(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/* Appends `text` escaped to one word. */
void vp_maps_escape(const char *text, struct vp_buffer *buffer);
/* Appends `word` unescaped; a '%' without two digits after it is kept. */
void vp_maps_unescape(struct vp_slice word, struct vp_buffer *buffer);

#endif
