/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A compressed recording as it is without compression: its streams are CTF then. */
#ifndef VP_STORE_DECOMPRESS_H
#define VP_STORE_DECOMPRESS_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/*
 * Copies the recording in directory `from` to directory `to`, which there is, with streams that are
 * not compressed; damaged packets are left out. *damaged is the bytes of these. Errors: `from` is
 * no recording, a file cannot be read or written.
 */
struct vp_error *vp_recording_decompress(const char *from, const char *to,
					 uint64_t *damaged) VP_MUST_CHECK;

#endif
