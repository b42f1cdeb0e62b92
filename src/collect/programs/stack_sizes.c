/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/stack_sizes.h"

/* Stacks between reductions. */
enum { STACKS = 200, MOST = VP_USER_STACK_BYTES / VP_STACK_UNIT };
_Static_assert(STACKS <= UINT8_MAX && MOST <= UINT8_MAX, "counted in bytes");

/* An eighth more than was needed: stacks differ a little. */
static uint8_t units_for(uint32_t needed)
{
	uint32_t bytes = needed < VP_USER_STACK_BYTES ? needed : VP_USER_STACK_BYTES;
	uint32_t units = (bytes + bytes / 8 + VP_STACK_UNIT - 1) / VP_STACK_UNIT;
	const uint32_t least = VP_USER_STACK_LEAST / VP_STACK_UNIT;

	return (uint8_t)(units < least ? least : units < MOST ? units : MOST);
}

void vp_stack_sizes_take(struct vp_stack_sizes *sizes, uint8_t units[VP_STACK_SIZES],
			 uint64_t as_root, uint32_t needed)
{
	const uint64_t slot = VP_STACK_SIZE_OF(as_root);
	const uint8_t wanted = units_for(needed);
	uint8_t *most = &sizes->at[slot].most, *seen = &sizes->at[slot].seen;

	if (wanted > *most)
		*most = wanted;
	if (!units[slot] || wanted > units[slot])
		units[slot] = wanted;
	if (++*seen < STACKS)
		return;
	units[slot] = *most;
	*most = *seen = 0;
}
