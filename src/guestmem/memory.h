/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest's memory as its VMM has it mapped. Everything in it may be a lie: a read either yields
 * the bytes or fails, and a place that the guest does not have is never touched.
 */
#ifndef VP_GUESTMEM_MEMORY_H
#define VP_GUESTMEM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

/* A piece of guest RAM: guest physical addresses [gpa, gpa + size) are at `hva` in the VMM. */
struct vp_guest_slot {
	uint64_t gpa, size, hva;
};

enum { VP_GUEST_SLOTS_MAX = 2048 };

/* The processor of the guest, which decides on page tables and kernels. */
enum vp_guest_arch { VP_GUEST_X86_64, VP_GUEST_ARM64 };

struct vp_guest_memory {
	VP_VEC(struct vp_guest_slot) slots;
	enum vp_guest_arch arch;
	/* Reads the VMM's memory; false if not all of it is available. */
	bool (*read)(void *context, uint64_t hva, void *bytes, size_t size);
	/* Says of each of these pages of the VMM's memory whether the host has it now (1): reading
	 * any other would have it made, or brought from a disk or another machine. NULL: not known.
	 */
	void (*backed)(void *context, uint64_t hva, size_t pages, unsigned char *ret);
	/* The guest physical address of an address, by the guest's page tables and CR3; ~0: not
	 * mapped. NULL: addresses are physical already. */
	uint64_t (*translate)(void *context, uint64_t address);
	void *context;
};

/* The guest physical address of a page table's entry, or of CR3. */
static inline uint64_t vp_guest_memory_physical(const struct vp_guest_memory *memory,
						uint64_t address)
{
	return memory->translate ? memory->translate(memory->context, address) : address;
}

enum { VP_GUEST_PAGE = 4096 };

/* Adds a slot in its place: they are in order of their guest physical addresses. False for one that
 * makes no sense: empty, beyond the address space, too many. */
bool vp_guest_memory_add(struct vp_guest_memory *memory, uint64_t gpa, uint64_t size, uint64_t hva);
/* Makes the slots those of `now`. True if any has changed. */
bool vp_guest_memory_change(struct vp_guest_memory *memory, const struct vp_guest_memory *now);
void vp_guest_memory_deinit(struct vp_guest_memory *memory);
/* Reads guest physical memory; it may cross from slot to slot. */
bool vp_guest_memory_read(const struct vp_guest_memory *memory, uint64_t gpa, void *bytes,
			  size_t size) VP_MUST_CHECK;
/*
 * Copies what the host has of that memory, and zeros for the rest: pages that the host does not
 * have are not touched. Returns how many bytes were read.
 */
size_t vp_guest_memory_copy(const struct vp_guest_memory *memory, uint64_t gpa, void *bytes,
			    size_t size);
/* Whether the host has any page of that memory now; if that is not known: whether it is memory. */
bool vp_guest_memory_has(const struct vp_guest_memory *memory, uint64_t gpa, size_t size);
/* The VMM's address of a range within one slot; 0: none. */
uint64_t vp_guest_memory_hva(const struct vp_guest_memory *memory, uint64_t gpa, size_t size);
/* How many bytes of one slot there are from `gpa` on; 0: none. */
uint64_t vp_guest_memory_left(const struct vp_guest_memory *memory, uint64_t gpa);

/* Descriptors of /proc/PID/mem and /proc/PID/pagemap; without the second (-1) it is not known what
 * the host has. */
struct vp_guest_files {
	int memory, pagemap;
};

/* Reads through descriptors, which outlive the memory; its `context` is then theirs. */
void vp_guest_memory_by_files(struct vp_guest_memory *memory, const struct vp_guest_files *files);

/* Registers of a vCPU, as far as the host can read them. 0: unknown. On Intel hosts they are in the
 * VMCS, which only the processor reads. Those of Arm may be as of when its thread left KVM's loop
 * last. */
struct vp_guest_registers {
	uint32_t vcpu;
	uint64_t cr3, cr4;
	uint64_t lstar;                   /* where system calls enter the kernel */
	uint64_t idt;                     /* the table of interrupt handlers */
	uint64_t gs_base, kernel_gs_base; /* one of them is the per-CPU base */
	uint64_t ttbr1, tcr, vbar;        /* 64-bit Arm … */
	uint64_t tpidr1;                  /* … where Linux has the per-CPU base */
};

/*
 * A part of a guest's memory as a file, for tests: "VPGM1\n", then lines `slot GPA SIZE` and
 * `vcpu NUMBER CR3 CR4 LSTAR IDT GS KERNEL_GS` (hexadecimal), or for 64-bit Arm the line `arm64`
 * and lines `vcpu NUMBER TTBR1 TCR VBAR TPIDR1`, an empty line, and then the bytes of the slots
 * one after the other; what is missing at the end cannot be read.
 */
struct vp_guest_snapshot {
	struct vp_guest_memory memory;
	VP_VEC(struct vp_guest_registers) vcpus;
	const char *bytes;
	size_t size;
};

/* Over bytes that outlive the snapshot. */
struct vp_error *vp_guest_snapshot_init(const void *bytes, size_t size,
					struct vp_guest_snapshot *ret) VP_MUST_CHECK;
void vp_guest_snapshot_deinit(struct vp_guest_snapshot *snapshot);

#endif
