/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decompresses a recording, so that its streams are plain CTF. */
#ifndef VP_STORE_DECOMPRESS_H
#define VP_STORE_DECOMPRESS_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/*
 * Copies the recording in directory `from` to the existing directory `to`, with uncompressed
 * streams and without damaged packets. *damaged: bytes of those. Errors: `from` is not a recording;
 * a file cannot be read or written.
 */
struct vp_error *vp_recording_decompress(const char *from, const char *to,
					 uint64_t *damaged) VP_MUST_CHECK;

#endif
