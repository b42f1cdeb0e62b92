/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestreader/v8_frames.h"

#include <string.h>

#include "runtime/process_memory.h"
#include "runtime/v8.h"
#include "schema/chain_end.h"

static bool is_in_v8(const struct vp_guest_v8_code *code, uint64_t ip)
{
	return (ip >= code->low && ip < code->high) ||
	       (ip >= code->blob_low && ip < code->blob_high);
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
			  uint64_t functions[VP_CHAIN_FRAMES])
{
	const struct vp_process_memory memory = {program->read, program->context};
	const struct vp_v8 v8 = {.memory = &memory, .layout = *code->layout};
	unsigned count = 0;

	if (chain->count > 1 && is_in_v8(code, chain->ips[0]) && !function_of(&v8, chain->fps[0]) &&
	    is_in_v8(code, chain->ips[1] - 1) && function_of(&v8, chain->fps[1])) {
		remove_first(chain);
		chain->ips[0]--;
	}
	for (uint32_t i = 0; i < chain->count; i++) {
		uint64_t ip = chain->ips[i] - (i != 0);
		uint64_t function = is_in_v8(code, ip) ? function_of(&v8, chain->fps[i]) : 0;
		if (!function)
			continue;
		functions[count++] = function;
		chain->ips[i] = function + (i != 0);
	}
	return count;
}
