/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders the output of 'vperf guests', appended to `out`. */
#ifndef VP_CMD_HOST_GUESTS_TABLE_H
#define VP_CMD_HOST_GUESTS_TABLE_H

#include "base/vec.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_reader.h"
#include "schema/vm.h"

/* The reply of one VM, cleaned; `problem`: reason for missing data, or NULL. */
struct vp_guest_answer {
	const struct vp_vm *vm;
	struct vp_guest_finding finding;
	vp_guest_processes processes;
	char *problem;
};
typedef VP_VEC(struct vp_guest_answer) vp_guest_answers;

/* The terminal has `width` characters per line; 0: no limit. */
void vp_render_guests_text(const vp_guest_answers *answers, size_t width, struct vp_buffer *out);
void vp_render_guests_json(const vp_guest_answers *answers, struct vp_buffer *out);
/* One line per process. */
void vp_render_guests_csv(const vp_guest_answers *answers, struct vp_buffer *out);

#endif
