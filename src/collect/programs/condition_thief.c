/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/condition_thief.h"

#include <stddef.h>
#include <string.h>

/* Overlap of a slice with the wait; an open slice lasts to the end of the wait. */
static uint64_t overlap(const struct vp_condition_slice *slice, uint64_t from, uint64_t to)
{
	uint64_t begin = slice->begin > from ? slice->begin : from;
	uint64_t end = slice->end && slice->end < to ? slice->end : to;

	return slice->begin && end > begin ? end - begin : 0;
}

/* Sum over all of its slices: a thread may lose the pCPU for microseconds, for example to
 * migration/N. */
static uint64_t condition_thief_time_of(const struct vp_condition_cpu *cpu, uint32_t tid,
					uint64_t from, uint64_t to)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < VP_CONDITION_SLICES; i++)
		if (cpu->slices[i].tid == tid)
			ns += overlap(&cpu->slices[i], from, to);
	return ns;
}

void vp_condition_find_thief(const struct vp_condition_cpu *cpu, struct vp_fired *fired)
{
	uint64_t from = fired->time - fired->ns;

	for (size_t i = 0; i < VP_CONDITION_SLICES; i++) {
		const struct vp_condition_slice *slice = &cpu->slices[i];
		if (!slice->tid || slice->tid == fired->tid || !overlap(slice, from, fired->time))
			continue;
		uint64_t ns = condition_thief_time_of(cpu, slice->tid, from, fired->time);
		if (ns <= fired->thief_ns)
			continue;
		fired->thief_ns = ns;
		fired->thief_pid = slice->pid;
		fired->thief_tid = slice->tid;
		memcpy(fired->thief_comm, slice->comm, sizeof(fired->thief_comm));
	}
}
