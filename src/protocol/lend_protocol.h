/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protocol by which the host lends counters to the guest (protocol/lent.h). The host sends
 *
 *   vperf-request 1 lend MARKER EVENT...
 *
 * and the agent replies
 *
 *   vperf-lend 1
 *   cell VCPU GPA            there is that vCPU's struct vp_lent_cell
 *   end LINES                number of lines before this one
 *
 * The host may write to a cell as long as the cell begins with MARKER, until it closes the
 * connection. It has to send a line at least every VP_COUNTS_LEASE_S. EVENT is
 * a name of schema/event.h, MARKER and GPA are hexadecimal, the rest is decimal.
 */
#ifndef VP_PROTOCOL_LEND_PROTOCOL_H
#define VP_PROTOCOL_LEND_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "protocol/lent.h"

enum { VP_LEND_MAX_CELLS = 512 };

struct vp_lend_request {
	uint64_t marker;
	uint32_t n;
	char names[VP_LENT_EVENTS][VP_LENT_NAME_SIZE];
};

/* Whether an event name can be requested: it is short enough and one printable word. */
bool vp_lend_name_fits(const char *name);
/* Writes the request line with its newline; parses one without it (false: a different request, or
 * malformed). */
void vp_lend_request_write(const struct vp_lend_request *request, struct vp_buffer *text);
bool vp_lend_request_parse(struct vp_slice line, struct vp_lend_request *ret) VP_MUST_CHECK;

enum vp_lend_kind { VP_LEND_HEAD, VP_LEND_CELL, VP_LEND_END };

/* A line of the reply. */
struct vp_lend_line {
	enum vp_lend_kind kind;
	uint32_t vcpu;
	uint64_t number; /* the address; in the end line, the number of lines before it */
};

void vp_lend_line_write(const struct vp_lend_line *line, struct vp_buffer *text);
/* Parses the next line of a reply into `ret`. `*lines`: number of lines so far; `whole`: the end
 * line has been read. The error completes "the agent": the reply is invalid, or has a reason. */
struct vp_error *vp_lend_answer_take(uint64_t *lines, bool whole, struct vp_slice text,
				     struct vp_lend_line *ret) VP_MUST_CHECK;

#endif
