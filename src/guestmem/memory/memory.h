/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest's memory as mapped by its VMM. The contents are untrusted: a read either returns all
 * bytes or fails, and addresses outside guest RAM are never accessed. */
#ifndef VP_GUESTMEM_MEMORY_MEMORY_H
#define VP_GUESTMEM_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

/* A range of guest RAM: guest physical addresses [gpa, gpa + size) are at `hva` in the VMM. */
struct vp_guest_slot {
	uint64_t gpa, size, hva;
};

enum { VP_GUEST_SLOTS_MAX = 2048 };

/* Architecture of the guest, which determines page tables and kernels. */
enum vp_guest_arch { VP_GUEST_X86_64, VP_GUEST_ARM64 };

struct vp_guest_memory {
	VP_VEC(struct vp_guest_slot) slots;
	enum vp_guest_arch arch;
	/* Reads the VMM's memory; false unless all bytes were read. */
	bool (*read)(void *context, uint64_t hva, void *bytes, size_t size);
	/* Sets ret[i] to 1 if page i of the range is present in the host, otherwise to 0. Reading
	 * an absent page would allocate it, or fetch it from a disk or another host. NULL:
	 * unknown. */
	void (*backed)(void *context, uint64_t hva, size_t pages, unsigned char *ret);
	/* Converts an address in a page table or CR3 to a guest physical one; ~0: not mapped. NULL:
	 * these addresses are guest physical. */
	uint64_t (*translate)(void *context, uint64_t address);
	void *context;
};

/* The guest physical address of a page-table entry's target, or of CR3. */
static inline uint64_t vp_guest_memory_physical(const struct vp_guest_memory *memory,
						uint64_t address)
{
	return memory->translate ? memory->translate(memory->context, address) : address;
}

enum { VP_GUEST_PAGE = 4096 };

/* Inserts a slot; slots are sorted by guest physical address. False for an invalid one: empty,
 * beyond the address space, too many. */
bool vp_guest_memory_add(struct vp_guest_memory *memory, uint64_t gpa, uint64_t size, uint64_t hva);
/* Replaces the slots by those of `now`; true: they have changed. */
bool vp_guest_memory_change(struct vp_guest_memory *memory, const struct vp_guest_memory *now);
void vp_guest_memory_deinit(struct vp_guest_memory *memory);
/* Reads guest physical memory, also across slots. */
bool vp_guest_memory_read(const struct vp_guest_memory *memory, uint64_t gpa, void *bytes,
			  size_t size) VP_MUST_CHECK;
/* Copies pages that are present in the host, and zeros for the others, which are not accessed.
 * Returns the number of bytes read. */
size_t vp_guest_memory_copy(const struct vp_guest_memory *memory, uint64_t gpa, void *bytes,
			    size_t size);
/* Whether any page of that range is present in the host; if unknown: whether any is in a slot. */
bool vp_guest_memory_has(const struct vp_guest_memory *memory, uint64_t gpa, size_t size);
/* The VMM's address of a range within one slot; 0: none. */
uint64_t vp_guest_memory_hva(const struct vp_guest_memory *memory, uint64_t gpa, size_t size);
/* Number of bytes from `gpa` to the end of its slot; 0: no slot. */
uint64_t vp_guest_memory_left(const struct vp_guest_memory *memory, uint64_t gpa);

/* Descriptors of /proc/PID/mem and /proc/PID/pagemap; without the second (-1), present pages are
 * unknown. */
struct vp_guest_files {
	int memory, pagemap;
};

/* Reads through descriptors, which must outlive the memory; they become its `context`. */
void vp_guest_memory_by_files(struct vp_guest_memory *memory, const struct vp_guest_files *files);

/* Registers of a vCPU that the host can read; 0: unknown. Unknown on Intel hosts: they are in the
 * VMCS, which only the CPU can read. Arm's may be stale: from the last return of the vCPU thread
 * from KVM's run loop. */
struct vp_guest_registers {
	uint32_t vcpu;
	uint64_t cr3, cr4;
	uint64_t lstar;                   /* system call entry of the kernel */
	uint64_t idt;                     /* interrupt descriptor table */
	uint64_t gs_base, kernel_gs_base; /* one of the two is the per-CPU base */
	uint64_t ttbr1, tcr, vbar;        /* 64-bit Arm … */
	uint64_t tpidr1; /* … of which Linux uses this one for the per-CPU base */
};

/*
 * Part of a guest's memory as a file, for tests: "VPGM1\n", then lines `slot GPA SIZE` and `vcpu
 * NUMBER CR3 CR4 LSTAR IDT GS KERNEL_GS` (hexadecimal), or for 64-bit Arm the line `arm64` and
 * lines `vcpu NUMBER TTBR1 TCR VBAR TPIDR1`, an empty line, and the bytes of all slots in order;
 * missing bytes at the end are unreadable.
 */
struct vp_guest_snapshot {
	struct vp_guest_memory memory;
	VP_VEC(struct vp_guest_registers) vcpus;
	const char *bytes;
	size_t size;
};

/* The bytes must outlive the snapshot. */
struct vp_error *vp_guest_snapshot_init(const void *bytes, size_t size,
					struct vp_guest_snapshot *ret) VP_MUST_CHECK;
void vp_guest_snapshot_deinit(struct vp_guest_snapshot *snapshot);

#endif
