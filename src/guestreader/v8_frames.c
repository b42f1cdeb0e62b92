/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestreader/v8_frames.h"

#include <string.h>

#include "base/cursor.h"
#include "runtime/process_memory.h"
#include "runtime/v8.h"
#include "schema/chain_end.h"
#include "unwind/cfi.h"

/* A chain in V8's process. */
struct v8_chain {
	const struct vp_guest_v8_code *code;
	const struct vp_user_program *program;
	const struct vp_user_chain *chain;
};

/* Whether the frame may be of V8's own code where its place is not known: it has no unwind table,
 * and a frame pointer. Functions of C++ that it called have that in the register still. */
static bool may_be_own(const struct v8_chain *in, uint32_t number, uint64_t ip)
{
	const struct vp_user_program *program = in->program;
	const struct vp_user_chain *chain = in->chain;
	struct vp_slice expressions;
	struct vp_cfi_row row;

	return in->code->blob_low == in->code->blob_high &&
	       (number + 1 == chain->count || chain->fps[number] != chain->fps[number + 1]) &&
	       program->find(program->context, ip, &row, &expressions) == VP_CFI_NONE;
}

static bool is_in_v8(const struct v8_chain *in, uint32_t number)
{
	const struct vp_guest_v8_code *code = in->code;
	const uint64_t ip = in->chain->ips[number] - (number != 0);

	return (ip >= code->low && ip < code->high) ||
	       (ip >= code->blob_low && ip < code->blob_high) || may_be_own(in, number, ip);
}

/* The SharedFunctionInfo of the frame; 0: not of JavaScript. */
static uint64_t function_of(const struct vp_v8 *v8, uint64_t fp)
{
	uint64_t context, function;

	return fp && vp_process_u64(v8->memory, fp - v8->layout.context_below, &context) &&
		       vp_process_u64(v8->memory, fp - v8->layout.function_below, &function)
		   ? vp_v8_function_of_frame(v8, context, function)
		   : 0;
}

/* Removes the innermost frame. */
static void remove_first(struct vp_user_chain *chain)
{
	chain->count--;
	memmove(chain->ips, chain->ips + 1, chain->count * sizeof(*chain->ips));
	memmove(chain->fps, chain->fps + 1, chain->count * sizeof(*chain->fps));
}

unsigned vp_v8_frames_put(const struct vp_guest_v8_code *code,
			  const struct vp_user_program *program, struct vp_user_chain *chain,
			  uint64_t functions[VP_CHAIN_LONGEST])
{
	const struct vp_process_memory memory = {program->read, program->context};
	const struct vp_v8 v8 = {.memory = &memory, .layout = *code->layout};
	const struct v8_chain in = {code, program, chain};
	unsigned count = 0;

	if (chain->count > 1 && is_in_v8(&in, 0) && !function_of(&v8, chain->fps[0]) &&
	    is_in_v8(&in, 1) && function_of(&v8, chain->fps[1])) {
		remove_first(chain);
		chain->ips[0]--;
	}
	for (uint32_t i = 0; i < chain->count; i++) {
		uint64_t function = is_in_v8(&in, i) ? function_of(&v8, chain->fps[i]) : 0;
		if (!function)
			continue;
		functions[count++] = function;
		chain->ips[i] = function + (i != 0);
	}
	return count;
}
