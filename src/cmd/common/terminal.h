/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Full-screen terminal mode with keyboard input, restored on every exit path. */
#ifndef VP_CMD_COMMON_TERMINAL_H
#define VP_CMD_COMMON_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

struct vp_terminal_size {
	uint32_t width, height;
};

/* Switches standard output to full-screen mode, and standard input to single keys if it is the
 * terminal, too. False: standard output is not a terminal; nothing was changed. */
bool vp_terminal_begin(void);
/* Restores the terminal; does nothing if already restored. */
void vp_terminal_end(void);
bool vp_terminal_has_keys(void);
/* 80 × 24 if unknown. */
struct vp_terminal_size vp_terminal_size(void);
/* Width of standard output; 0: it is no terminal, and lines can have any width. */
size_t vp_terminal_width(void);
/* The same of standard error. */
size_t vp_terminal_error_width(void);
/* Waits up to `ms` for keys; returns the number of bytes read, 0 also after a signal. */
size_t vp_terminal_read(int ms, char *bytes, size_t size);
/* Whether the screen must be redrawn (resized, continued) since the last call. */
bool vp_terminal_changed(void);
/* Converts lines with line feeds to a whole screen, for vp_verb_print(). */
void vp_terminal_show(const struct vp_buffer *lines, struct vp_buffer *out);

#endif
