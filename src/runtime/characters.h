/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Characters of names from a process's memory. */
#ifndef VP_RUNTIME_CHARACTERS_H
#define VP_RUNTIME_CHARACTERS_H

#include <stdint.h>

#include "base/buffer.h"

/* Appends a character in UTF-8. Replaces control characters, surrogates and values that are no
 * character. */
void vp_put_character(struct vp_buffer *text, uint32_t c);

#endif
