/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process of the built guest whose file has unwind tables, and stacks of it. */
#ifndef VP_TESTS_UNWOUND_PROGRAM_H
#define VP_TESTS_UNWOUND_PROGRAM_H

#include "guest_files.h"

#include <elf.h>

#include "guestreader/stack_job.h"

enum {
	TGID = 5,
	START = 0x400000, /* of the program, whose file is mapped from its begin on */
	STACK = 0x600000, /* a large page of user space, at the begin of memory */
	NOTE = 0x600,
	HEADER = 0x800,        /* of the unwind tables, in the file … */
	LATER_HEADER = 0x1400, /* … or in its second page */
	FRAME = 0x1000,
	INNER = 0x1800, /* functions: the first saves RBP … */
	OUTER = 0x1900, /* … the second one is nobody's callee */
	PAGE = 0x1000,
};

static char file_bytes[2 * PAGE];
static uint32_t header_at = HEADER;
static bool with_build_id;

static inline void put_phdr(unsigned number, uint32_t type, uint64_t at, uint64_t size)
{
	const Elf64_Phdr segment = {.p_type = type,
				    .p_flags = PF_R | PF_X,
				    .p_offset = at,
				    .p_vaddr = at,
				    .p_filesz = size,
				    .p_memsz = size};

	memcpy(file_bytes + sizeof(Elf64_Ehdr) + number * sizeof(segment), &segment,
	       sizeof(segment));
}

static inline uint32_t put_rules(uint32_t at, const void *body, uint32_t size)
{
	put32(file_bytes + at, size);
	memcpy(file_bytes + at + 4, body, size);
	return at + 4 + size;
}

static inline uint32_t put_function(uint32_t at, uint32_t cie, uint32_t start, const char *rules,
				    uint32_t size)
{
	char body[64] = {0};
	uint32_t words[] = {at + 4 - cie, start - (at + 8), 0x100};

	memcpy(body, words, sizeof(words));
	memcpy(body + sizeof(words) + 1, rules, size); /* after the size of augmentation data: 0 */
	return put_rules(at, body, 32);
}

static inline void put_note(void)
{
	static const char note[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xab\xcd\xef\1";

	memcpy(file_bytes + NOTE, note, sizeof(note) - 1);
	put_phdr(2, PT_NOTE, NOTE, sizeof(note) - 1);
}

/* The file. `ends`: the inner function is nobody's callee either. */
static inline void unwound_file(bool ends)
{
	/* CFA is RSP + 8, RIP is at CFA - 8 */
	static const char cie[24] = "\0\0\0\0\1zR\0\1\x78\x10\1\x1b\x0c\7\x8\x90\1";
	/* after one byte: CFA is RSP + 16, RBP at CFA - 16; RIP is undefined */
	static const char inner[] = "\x41\x0e\x10\x86\2", outer[] = "\7\x10";
	const Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
				   .e_phoff = sizeof(header),
				   .e_phentsize = sizeof(Elf64_Phdr),
				   .e_phnum = with_build_id ? 3 : 2};
	uint32_t at = FRAME, fdes[2];

	memset(file_bytes, 0, sizeof(file_bytes));
	memcpy(file_bytes, &header, sizeof(header));
	file_bytes[HEADER - 1] = ends; /* its first page identifies it */
	put_phdr(0, PT_LOAD, 0, sizeof(file_bytes));
	if (with_build_id)
		put_note();
	put_phdr(1, PT_GNU_EH_FRAME, header_at, 12 + 8 * 2);
	at = put_rules(at, cie, sizeof(cie));
	fdes[0] = at;
	at = ends ? put_function(at, FRAME, INNER, outer, sizeof(outer))
		  : put_function(at, FRAME, INNER, inner, sizeof(inner));
	fdes[1] = at;
	put_function(at, FRAME, OUTER, outer, sizeof(outer));
	memcpy(file_bytes + header_at, "\1\x1b\3\x3b", 4);
	put32(file_bytes + header_at + 4, FRAME - (header_at + 4));
	put32(file_bytes + header_at + 8, 2);
	for (uint32_t i = 0; i < 2; i++) {
		put32(file_bytes + header_at + 12 + 8 * i, (i ? OUTER : INNER) - header_at);
		put32(file_bytes + header_at + 16 + 8 * i, fdes[i] - header_at);
	}
}

static uint64_t task, program_file, program_vma;
static uint64_t stack_entry, code_entry; /* of the page table, as offsets in memory */

/* A guest with the program, whose second page is in the page cache or not. */
static inline void build_unwound(struct guest_builder *guest, bool whole)
{
	enum { PRESENT_USER = 5, LARGE = 0x80 };

	unwound_file(false);
	built_kernel(guest, BUILT_NEW);
	struct root root = built_root(guest);
	uint64_t dentry = built_dentry(guest, root.dentry, "prog");
	program_file = built_file(guest, dentry, root.mnt);
	const struct page_at pages[] = {{0, built_page(guest, file_bytes, PAGE)},
					{1, built_page(guest, file_bytes + PAGE, PAGE)}};
	built_page_cache(guest, program_file, built_tree(guest, pages, whole ? 2 : 1),
			 sizeof(file_bytes));
	task = built_program(guest, &root, TGID, program_file);
	/* its mapping is from the file's begin on */
	uint64_t mm;
	memcpy(&mm, built_at(guest, task + guest->pack.at.task_mm), sizeof(mm));
	memcpy(&program_vma, built_at(guest, mm + guest->pack.at.mm_maple_root),
	       sizeof(program_vma));
	built_put64(guest, program_vma + guest->pack.at.vma_pgoff, 0);
	uint64_t pdpt = built_object(guest, PAGE, PAGE) - BUILT_DIRECT;
	uint64_t pd = built_object(guest, PAGE, PAGE) - BUILT_DIRECT;
	put64(guest->low + BUILT_CR3, pdpt | PRESENT_USER);
	put64(guest->low + pdpt, pd | PRESENT_USER);
	stack_entry = pd + 8 * (STACK >> 21);
	code_entry = pd + 8 * (START >> 21);
	put64(guest->low + stack_entry, 0 | LARGE | PRESENT_USER);
}

/* A stack where the inner function was called from the outer one, copied or not. */
static inline struct vp_stack_job unwound_job(uint64_t time, uint32_t copied)
{
	struct vp_stack_job job = {.stack = {.time = time,
					     .guest_pid = TGID,
					     .task = task,
					     .as_root = BUILT_CR3,
					     .known = 0x1ffff,
					     .from = STACK + 0x100,
					     .bytes = copied}};
	const uint64_t words[] = {0x1234, START + OUTER + 0x80};

	job.stack.registers[6] = 0x77;
	job.stack.registers[7] = STACK + 0x100;
	job.stack.registers[16] = START + INNER + 0x10;
	memcpy(job.stack.stack, words, copied < sizeof(words) ? copied : sizeof(words));
	return job;
}

#endif
