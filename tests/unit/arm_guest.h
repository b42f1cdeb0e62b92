/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A made guest of 64-bit Arm: the built kernel, with Arm's page tables and per-CPU variables. */
#ifndef VP_TESTS_ARM_GUEST_H
#define VP_TESTS_ARM_GUEST_H

#include "arm_tables.h"
#include "guest_builder.h"

/* The made kernel with page tables of Arm's: they are behind it, as is one more mm. */
enum { TABLES_GPA = 0x10000000, TABLES = 0x80000, PERCPU_AT = 0x1e000 };

struct arm_guest {
	unsigned page_bits, va_bits;
	char tables[TABLES];
	uint64_t free;      /* the next table */
	uint64_t tpidr1[2]; /* of two CPUs */
};

static struct guest_builder guest;
static struct arm_guest arm;

static inline void map_one(uint64_t va, uint64_t gpa)
{
	const struct vp_paging paging = vp_paging_arm(arm.page_bits, arm.va_bits, false);
	uint64_t table = 0;

	for (unsigned level = paging.levels; level; level--) {
		char *at = arm.tables + table + 8 * vp_paging_index(&paging, level, va);
		uint64_t entry;
		memcpy(&entry, at, sizeof(entry));
		if (level == 1) {
			put64(at, gpa | ARM_PAGE | 0x400);
		} else if (!entry) {
			put64(at, (TABLES_GPA + arm.free) | ARM_TABLE);
			table = arm.free;
			arm.free += 1ULL << arm.page_bits;
			if (arm.free > TABLES)
				abort();
		} else {
			table = (entry & 0xfffffffff000ULL) - TABLES_GPA;
		}
	}
}

static inline void map_range(uint64_t va, uint64_t gpa, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += 1ULL << arm.page_bits)
		map_one(va + at, gpa + at);
}

static inline void make_arm(unsigned page_bits, unsigned va_bits, bool functions)
{
	const struct vp_kernel_pack *pack = &guest.pack;

	memset(&arm, 0, sizeof(arm));
	arm.page_bits = page_bits;
	arm.va_bits = va_bits;
	arm.free = 1ULL << page_bits;
	built_kernel_of(&guest, BUILT_NEW, AT_BANNER, functions);
	memcpy(guest.image + 56, "ARM\x64", 4);
	map_range(BUILT_DIRECT, 0, BUILT_LOW);
	map_range(BUILT_DIRECT + BUILT_IMAGE_GPA, BUILT_IMAGE_GPA, BUILT_IMAGE);
	map_range(BUILT_TEXT, BUILT_IMAGE_GPA, 12 << 20);
	uint64_t init, second = built_object(&guest, BUILT_TASK, 16);
	memcpy(&init, guest.image + AT_INIT_TASK + pack->at.task_tasks, sizeof(init));
	init -= pack->at.task_tasks;
	built_task(&guest, second, 0, 0, 0, "swapper/1");
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		uint64_t area = built_object(&guest, PERCPU_END, 4096);
		uint64_t queue = area + PERCPU_RUNQUEUES;
		built_put64(&guest, area + PERCPU_ENTRY_TASK, cpu ? second : init);
		built_put64(&guest, queue + pack->at.rq_idle,
			    cpu ? second : BUILT_TEXT + AT_INIT_TASK);
		built_put64(&guest, queue + pack->at.rq_curr, cpu ? second : init);
		put32(built_at(&guest, queue + pack->at.rq_cpu), cpu);
		arm.tpidr1[cpu] = area - (BUILT_TEXT + PERCPU_AT);
	}
}

/* T1SZ and TG1. */
static inline uint64_t tcr(void)
{
	uint64_t granule = arm.page_bits == 14 ? 1 : arm.page_bits == 12 ? 2 : 3;

	return (uint64_t)(64 - arm.va_bits) << 16 | granule << 30;
}

/* The guest as a snapshot; the caller frees the buffer. */
static inline void arm_snapshot(struct vp_buffer *snapshot)
{
	vp_buffer_printf(snapshot,
			 "VPGM1\narm64\nslot %x %x\nslot %x %lx\nslot 0 %x\n"
			 "vcpu 5 %llx %lx %llx %lx\nvcpu 6 0 0 0 %lx\n\n",
			 BUILT_IMAGE_GPA, BUILT_IMAGE, TABLES_GPA, arm.free, BUILT_LOW,
			 TABLES_GPA | 0x5000000000001ULL, tcr(), BUILT_TEXT + AT_ENTRY,
			 arm.tpidr1[0], arm.tpidr1[1]);
	vp_buffer_append(snapshot, guest.image, sizeof(guest.image));
	vp_buffer_append(snapshot, arm.tables, arm.free);
	vp_buffer_append(snapshot, guest.low, sizeof(guest.low));
}

#endif
