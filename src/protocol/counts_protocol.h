/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protocol by which the host reads, in guest memory, the counts of the agent's BPF programs. The
 * host sends
 *
 *   vperf-request 1 counts MARKER EVENT...
 *
 * and the agent replies
 *
 *   vperf-counts 1
 *   marker GPA               there is the number MARKER, as long as anything is counted
 *   count VCPU EVENT GPA     there is how often it was on that vCPU, 8 bytes
 *   without EVENT            that cannot be counted here
 *   end LINES                number of lines before this one
 *
 * It counts until the host closes the connection, or sends no line for VP_COUNTS_LEASE_S.
 * EVENT is a name of schema/interval.h, MARKER and GPA (a guest-physical
 * address) are hexadecimal, the rest is decimal.
 */
#ifndef VP_PROTOCOL_COUNTS_PROTOCOL_H
#define VP_PROTOCOL_COUNTS_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "schema/interval.h"

enum {
	VP_COUNTS_LEASE_S = 30,
	VP_COUNTS_KEEP_S = 5,
	VP_COUNTS_MAX_ADDRESSES = 8192 * VP_GUEST_COUNT
};
#define VP_COUNTS_KEEP "keep\n"

struct vp_counts_request {
	uint64_t marker;
	uint32_t events; /* bits of enum vp_guest_count */
};

/* "guest:forks". */
const char *vp_counts_event_name(enum vp_guest_count event);

/* Writes the request line, with its newline. */
void vp_counts_request_write(const struct vp_counts_request *request, struct vp_buffer *text);
/* Parses a line without its newline; false: a different request, or malformed. */
bool vp_counts_request_parse(struct vp_slice line, struct vp_counts_request *ret) VP_MUST_CHECK;

enum vp_counts_kind {
	VP_COUNTS_HEAD,
	VP_COUNTS_MARKER,
	VP_COUNTS_ADDRESS,
	VP_COUNTS_WITHOUT,
	VP_COUNTS_END
};

/* A line of the reply. */
struct vp_counts_line {
	enum vp_counts_kind kind;
	uint32_t vcpu;
	enum vp_guest_count event;
	uint64_t number; /* the address; in the end line, the number of lines before it */
};

/* Appends the line with its newline; parses one without it (false: malformed). */
void vp_counts_line_write(const struct vp_counts_line *line, struct vp_buffer *text);

/* Progress of reading a reply. */
struct vp_counts_answer {
	uint64_t lines, addresses;
	bool whole;
};
/* Parses the next line, without the newline, into `ret`. The error completes "the agent": the reply
 * is invalid, or has a reason. */
struct vp_error *vp_counts_answer_take(struct vp_counts_answer *answer, struct vp_slice text,
				       struct vp_counts_line *ret) VP_MUST_CHECK;

#endif
