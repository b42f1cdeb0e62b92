/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel's stack and unwind tables that lie: the first bytes are registers and a copy of a stack,
 * the rest is the tables' text. Beside no crash: the walk ends, within its frames, where it says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { PIECES = 3 };

/* What a walk starts from. */
struct start {
	struct vp_unwind_registers registers;
	struct vp_chain_stack pieces[PIECES];
};

static void unwind(const struct vp_orc *orc, const struct start *start)
{
	struct vp_unwind chain;

	vp_unwind_kernel(orc, &start->registers, start->pieces, PIECES, &chain);
	if (!chain.count || chain.count > VP_UNWIND_FRAMES || chain.end >= VP_UNWIND_ENDS ||
	    chain.at[0] != start->registers.ip ||
	    (chain.end == VP_UNWIND_TOO_DEEP && chain.count < VP_UNWIND_FRAMES))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct start start;
	struct vp_orc orc;

	if (size < sizeof(start))
		return 0;
	memcpy(&start, bytes, sizeof(start));
	struct vp_error *error =
	    vp_orc_parse("it", bytes + sizeof(start), size - sizeof(start), &orc);
	if (!error) {
		for (size_t i = 1; i < orc.entries.count; i++)
			if (orc.entries.at[i].from < orc.entries.at[i - 1].from)
				abort();
		unwind(&orc, &start);
	}
	vp_error_free(error);
	vp_orc_deinit(&orc);
	return 0;
}
