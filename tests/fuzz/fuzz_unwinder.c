/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies of stacks, unwound by a guest's reader in memory that the guest made. The input: a byte of
 * flags, pieces that replace memory (place, size, bytes; size 0 is the last), then registers and
 * the stack. The rest of the guest is that of the unit test.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../unit/unwound_program.h"
#include "guestmem/kernel/scan.h"
#include "guestreader/unwinder.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define SECOND 1000000000ULL
/* Flags: the copy has all bytes that follow, or what is after the first page is read later; the
 * registers are those of the input; the process has ended before the second stack. */
enum { SHORT_COPY = 1, OWN_REGISTERS = 2, ENDED = 4 };

static struct guest_builder guest;
static struct vp_buffer snapshot_bytes;
static struct vp_guest_snapshot snapshot;
static struct vp_guest_kernel kernel;
static char *low; /* the guest's memory, as the snapshot has it */
static uint64_t file_gpa, task_gpa;

static void fuzz_open(void)
{
	static const vp_kernel_packs packs;

	build_unwound(&guest, true);
	file_gpa = (uint64_t)((char *)memmem(guest.low, BUILT_LOW, file_bytes, PAGE) - guest.low);
	task_gpa = task - BUILT_DIRECT;
	built_snapshot(&guest, &snapshot_bytes);
	low = snapshot_bytes.bytes + snapshot_bytes.size - BUILT_LOW;
	struct vp_error *error =
	    vp_guest_snapshot_init(snapshot_bytes.bytes, snapshot_bytes.size, &snapshot);
	if (!error)
		error = vp_guest_kernel_find(&snapshot.memory, snapshot.vcpus.at,
					     snapshot.vcpus.count, &packs, 42, &kernel);
	if (error)
		abort();
}

/* Replaces memory; returns the bytes of the input that were used. A place with its highest bit set
 * is in the program's file, in bytes; others are anywhere, in fours. */
static size_t replace_memory(const uint8_t *bytes, size_t size)
{
	size_t at = 0;

	while (at + 3 < size && bytes[at + 2]) {
		size_t place = bytes[at] | (size_t)bytes[at + 1] << 8, piece = bytes[at + 2];
		place = place & 0x8000 ? file_gpa + (place & 0x1fff) : place * 4;
		at += 3;
		piece = piece < size - at ? piece : size - at;
		piece = piece < BUILT_LOW - place ? piece : BUILT_LOW - place;
		memcpy(low + place, bytes + at, piece);
		at += piece;
	}
	return at + 3 < size ? at + 3 : size;
}

static void expect_bounded(const struct vp_stack_job *job)
{
	if (job->count > VP_CHAIN_LONGEST || job->needed > VP_USER_STACK_BYTES)
		abort();
	for (uint32_t i = 1; i < job->count; i++)
		if (!job->ips[i] ||
		    (job->ips[i] & VP_CHAIN_GUESSED_IP && !(job->flags & VP_CHAIN_GUESSED)))
			abort();
}

/* Registers and the stack. Those that the input does not choose are of the unit test's stack. */
static void read_job(struct vp_stack_job *job, uint8_t flags, const uint8_t *bytes, size_t size)
{
	struct vp_user_stack *stack = &job->stack;
	size_t registers = flags & OWN_REGISTERS ? VP_USER_X86_REGISTERS * sizeof(uint64_t) : 0;

	*job = unwound_job(SECOND, 0);
	registers = registers < size ? registers : size;
	memcpy(stack->registers, bytes, registers);
	if (flags & OWN_REGISTERS)
		stack->from = stack->registers[VP_USER_X86_SP] & ~7ULL;
	size -= registers;
	size = size < sizeof(stack->stack) ? size : sizeof(stack->stack);
	memcpy(stack->stack, bytes + registers, size);
	stack->bytes = (uint32_t)(flags & SHORT_COPY && size > 512 ? 512 : size) & ~7U;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct vp_stack_job job;

	if (!size)
		return 0;
	if (!low)
		fuzz_open();
	memcpy(low, guest.low, BUILT_LOW);
	const uint8_t flags = bytes[0];
	const size_t used = 1 + replace_memory(bytes + 1, size - 1);
	struct vp_guest_unwinder *unwinder = vp_guest_unwinder_new();
	for (unsigned i = 0; i < 2; i++) {
		read_job(&job, flags, bytes + used, size - used);
		if (i && flags & ENDED)
			put64(low + task_gpa + guest.pack.at.task_mm, 0);
		vp_guest_unwinder_run(unwinder, &kernel, NULL, &job);
		expect_bounded(&job);
	}
	vp_guest_unwinder_free(unwinder);
	return 0;
}
