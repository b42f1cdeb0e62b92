/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The terminal as one screen with a keyboard, and as it was again at the end, however that comes.
 */
#ifndef VP_CMD_COMMON_TERMINAL_H
#define VP_CMD_COMMON_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

struct vp_terminal_size {
	uint32_t width, height;
};

/* Standard output becomes one screen, standard input its keyboard if it is the terminal as well.
 * False: standard output is no terminal, and nothing is changed. */
bool vp_terminal_begin(void);
/* As it was before; nothing if it is. */
void vp_terminal_end(void);
bool vp_terminal_has_keys(void);
/* 80 × 24 if the size is unknown. */
struct vp_terminal_size vp_terminal_size(void);
/* Waits for at most `ms`; returns how many bytes of keys there are: 0 also if there are signals. */
size_t vp_terminal_read(int ms, char *bytes, size_t size);
/* Whether there was a reason to draw the screen again, since the last call. */
bool vp_terminal_changed(void);
/* Lines, ended by line feeds, as the whole screen, for vp_verb_print(). */
void vp_terminal_show(const struct vp_buffer *lines, struct vp_buffer *out);

#endif
