/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small guest, made by code, as a snapshot of its memory: a kernel with symbol table, BTF, page
 * tables and notes, and whatever tasks, mappings and files a test puts into its direct map.
 */
#ifndef VP_TESTS_GUEST_BUILDER_H
#define VP_TESTS_GUEST_BUILDER_H

#include <linux/btf.h>
#include <stdio.h>
#include <string.h>

#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"

#define BUILT_TEXT 0xffffffff81000000ULL
#define BUILT_DIRECT 0xffff888000000000ULL
#define BUILT_MEMMAP 0xffffea0000000000ULL

enum {
	BUILT_IMAGE_GPA = 0x200000,
	BUILT_IMAGE = 0x20000, /* bytes of the image that are there */
	BUILT_LOW = 0x40000,   /* bytes of memory from 0 on */
	BUILT_PAGE_SIZE_OF = 64,
	BUILT_STRUCT = 512, /* of any other struct, by the BTF */
	BUILT_TASK = 8192,  /* bytes of a task_struct */
	/* Places in the image. */
	AT_ENTRY = 0x100,
	AT_BANNER = 0x200,
	AT_NOTES = 0x300,
	AT_PAGE_OFFSET = 0x400,
	AT_MEMMAP = 0x408,
	AT_PHYS_BASE = 0x410,
	AT_L5 = 0x418,
	AT_CPU_IDS = 0x420,
	AT_PER_CPU = 0x428,
	AT_MODULES = 0x440,
	AT_BPF = 0x450,
	AT_FTRACE = 0x460,
	AT_INIT_MM = 0x480,
	AT_ORC_IPS = 0x600,
	AT_ORC = 0x640,
	AT_INIT_TASK = 0x800,
	AT_TOP_PGT = 0x1000,
	AT_BTF = 0x2000,
	AT_KALLSYMS = 0x8000,
	AT_FORK = 0x1f000, /* copy_process(), and the next function */
	AT_AFTER_FORK = 0x1f080,
	AT_END = 0x20000,
	/* Offsets from a per-CPU base. */
	PERCPU_CURRENT = 0x10,
	PERCPU_APICID = 0x20,
	PERCPU_ENTRY_TASK = 0x30,
	PERCPU_RUNQUEUES = 0x80,
	PERCPU_END = 0x200,
	BUILT_CR3 = 0x1000,
	BUILT_SYMBOLS = 1200,
	BUILT_LONG = 700, /* this symbol's name has BUILT_LONG_NAME bytes */
	BUILT_LONG_NAME = 200,
	BUILT_ORC = 5, /* entries of the unwind tables */
};

enum built_layout {
	BUILT_OLD,   /* offsets before num_syms, per-CPU symbols absolute */
	BUILT_NEW,   /* offsets behind token_index, relative */
	BUILT_PLACE, /* offsets relative to their own places, aligned to 4 bytes */
};

struct guest_builder {
	char image[BUILT_IMAGE];
	char low[BUILT_LOW];
	uint64_t free; /* next object's physical address */
	enum built_layout layout;
	bool functions;             /* its symbol table has nothing else: no CONFIG_KALLSYMS_ALL */
	uint32_t banner;            /* where it is in the image */
	struct vp_kernel_pack pack; /* with the places that the BTF gives */
	size_t btf_size, kallsyms_end;
};

static inline void put64(char *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

static inline void put32(char *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* Room in the direct map; its address in the guest's kernel. */
static inline uint64_t built_object(struct guest_builder *guest, size_t size, size_t align)
{
	guest->free = (guest->free + align - 1) / align * align;
	uint64_t at = guest->free;
	guest->free += size;
	return BUILT_DIRECT + at;
}

/* Where the bytes at an address of the direct map or the image are. */
static inline char *built_at(struct guest_builder *guest, uint64_t va)
{
	return va >= BUILT_TEXT ? guest->image + (va - BUILT_TEXT)
				: guest->low + (va - BUILT_DIRECT);
}

static inline void built_put64(struct guest_builder *guest, uint64_t va, uint64_t value)
{
	put64(built_at(guest, va), value);
}

/* Offsets that are not a matter of taste: pid and tgid are neighbours, nodes have their shapes. */
static inline uint32_t built_offset(const char *type, const char *member, uint32_t index)
{
	static const struct {
		const char *type, *member;
		uint32_t offset;
	} fixed[] = {{"task_struct", "pid", 0},       {"task_struct", "tgid", 4},
		     {"maple_range_64", "pivot", 8},  {"maple_range_64", "slot", 128},
		     {"maple_arange_64", "pivot", 8}, {"maple_arange_64", "slot", 80},
		     {"xa_node", "shift", 0},         {"xa_node", "slots", 40},
		     {"module", "name", 24},          {"module", "list", 8},
		     {"module", "kallsyms", 96}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(fixed); i++)
		if (!strcmp(fixed[i].type, type) && !strcmp(fixed[i].member, member))
			return fixed[i].offset;
	return 16 * (index + 1);
}

struct btf_builder {
	char types[8192], strings[4096];
	size_t types_size, strings_size;
	uint32_t last_id;
};

static inline uint32_t btf_string(struct btf_builder *btf, const char *text, size_t size)
{
	uint32_t at = (uint32_t)btf->strings_size;

	memcpy(btf->strings + at, text, size);
	btf->strings_size += size + 1;
	return at;
}

/* A struct of one or no member; `type` 0: the member is void. Yields its id. */
static inline uint32_t btf_struct(struct btf_builder *btf, const char *name, uint32_t size,
				  const struct btf_member *members, uint32_t count)
{
	struct btf_type head = {.name_off = name ? btf_string(btf, name, strlen(name)) : 0,
				.info = (uint32_t)BTF_KIND_STRUCT << 24 | count,
				.size = size};

	memcpy(btf->types + btf->types_size, &head, sizeof(head));
	if (count)
		memcpy(btf->types + btf->types_size + sizeof(head), members,
		       count * sizeof(*members));
	btf->types_size += sizeof(head) + count * sizeof(*members);
	return ++btf->last_id;
}

static const struct {
	const char *type, *member;
	size_t place;
} built_members[] = {
#define BUILT_MEMBER(id, type, member) {type, member, offsetof(struct vp_kernel_pack, at.id)},
    VP_PACK_MEMBERS(BUILT_MEMBER)
#undef BUILT_MEMBER
};

/* "a.b" becomes a member `a` whose own type has `b` at its begin. */
static inline struct btf_member built_member(struct guest_builder *guest, struct btf_builder *btf,
					     size_t number, uint32_t index)
{
	const char *type = built_members[number].type, *member = built_members[number].member;
	const char *dot = strchr(member, '.');
	uint32_t offset = built_offset(type, member, index), inner = 0;

	if (dot) {
		struct btf_member only = {.name_off = btf_string(btf, dot + 1, strlen(dot + 1))};
		inner = btf_struct(btf, NULL, 8, &only, 1);
	}
	*(uint32_t *)((char *)&guest->pack + built_members[number].place) = offset;
	return (struct btf_member){
	    .name_off = btf_string(btf, member, dot ? (size_t)(dot - member) : strlen(member)),
	    .type = inner,
	    .offset = 8 * offset};
}

/* Entries of a folder are in a ring in older kernels, in a list in newer ones. */
static inline bool built_has(const struct guest_builder *guest, const char *member)
{
	const char *other[] = {guest->layout == BUILT_OLD ? "d_children" : "d_subdirs",
			       guest->layout == BUILT_OLD ? "d_sib" : "d_child"};

	return strcmp(member, other[0]) != 0 && strcmp(member, other[1]) != 0;
}

static inline void btf_put(struct btf_builder *btf, const void *bytes, size_t size)
{
	memcpy(btf->types + btf->types_size, bytes, size);
	btf->types_size += size;
}

/* The section of per-CPU variables, with two of 64-bit Arm's. */
static inline void built_percpu(struct btf_builder *btf)
{
	static const char section[] = ".data..percpu";
	static const struct {
		const char *name;
		uint32_t offset;
	} variables[] = {{"__entry_task", PERCPU_ENTRY_TASK}, {"runqueues", PERCPU_RUNQUEUES}};
	struct btf_var_secinfo items[VP_ARRAY_SIZE(variables)];

	for (size_t i = 0; i < VP_ARRAY_SIZE(variables); i++) {
		const char *name = variables[i].name;
		const struct btf_type head = {.name_off = btf_string(btf, name, strlen(name)),
					      .info = (uint32_t)BTF_KIND_VAR << 24};
		const struct btf_var var = {.linkage = BTF_VAR_GLOBAL_ALLOCATED};
		btf_put(btf, &head, sizeof(head));
		btf_put(btf, &var, sizeof(var));
		items[i] = (struct btf_var_secinfo){++btf->last_id, variables[i].offset, 8};
	}
	const struct btf_type head = {.name_off = btf_string(btf, section, sizeof(section) - 1),
				      .info = (uint32_t)BTF_KIND_DATASEC << 24 |
					      VP_ARRAY_SIZE(variables)};
	btf_put(btf, &head, sizeof(head));
	btf_put(btf, items, sizeof(items));
	btf->last_id++;
}

static inline void built_btf(struct guest_builder *guest)
{
	struct btf_builder btf = {.strings_size = 1};

	for (size_t i = 0, next; i < VP_ARRAY_SIZE(built_members); i = next) {
		struct btf_member members[16];
		uint32_t count = 0;
		for (next = i; next < VP_ARRAY_SIZE(built_members) &&
			       !strcmp(built_members[next].type, built_members[i].type);
		     next++)
			if (built_has(guest, built_members[next].member)) {
				members[count] = built_member(guest, &btf, next, count);
				count++;
			}
		btf_struct(&btf, built_members[i].type, BUILT_STRUCT, members, count);
	}
	btf_struct(&btf, "page", BUILT_PAGE_SIZE_OF, NULL, 0);
	built_percpu(&btf);
	struct btf_header header = {.magic = BTF_MAGIC,
				    .version = BTF_VERSION,
				    .hdr_len = sizeof(header),
				    .type_len = (uint32_t)btf.types_size,
				    .str_off = (uint32_t)btf.types_size,
				    .str_len = (uint32_t)btf.strings_size};
	char *at = guest->image + AT_BTF;
	memcpy(at, &header, sizeof(header));
	memcpy(at + sizeof(header), btf.types, btf.types_size);
	memcpy(at + sizeof(header) + btf.types_size, btf.strings, btf.strings_size);
	guest->btf_size = sizeof(header) + btf.types_size + btf.strings_size;
}

/* An entry of the unwind tables: from `at` in the image on. The last two bytes are bit fields. */
static inline void built_orc(struct guest_builder *guest, unsigned number, uint32_t at,
			     int16_t sp_offset, int16_t bp_offset, unsigned registers,
			     unsigned kind)
{
	const unsigned char bits[] = {(unsigned char)registers, (unsigned char)kind};
	uint32_t place = AT_ORC_IPS + 4 * number;
	char *entry = guest->image + AT_ORC + 6 * number;

	put32(guest->image + place, at - place);
	memcpy(entry, &sp_offset, sizeof(sp_offset));
	memcpy(entry + 2, &bp_offset, sizeof(bp_offset));
	memcpy(entry + 4, bits, sizeof(bits));
}

struct built_symbol {
	char name[32];
	char type;
	bool percpu;
	uint32_t offset;
};

/* The kernel's symbols in the order of their addresses, per-CPU ones first. */
static inline struct built_symbol built_symbol(const struct guest_builder *guest, unsigned i)
{
	const struct built_symbol special[] = {
	    {"current_task", 'A', true, PERCPU_CURRENT},
	    {"x86_cpu_to_apicid", 'A', true, PERCPU_APICID},
	    {"_stext", 'T', false, 0},
	    {"_text", 'T', false, 0},
	    {"entry_SYSCALL_64", 'T', false, AT_ENTRY},
	    {"linux_banner", 'D', false, AT_BANNER},
	    {"__start_notes", 'R', false, AT_NOTES},
	    {"__stop_notes", 'R', false, AT_NOTES + 36},
	    {"page_offset_base", 'D', false, AT_PAGE_OFFSET},
	    {"vmemmap_base", 'D', false, AT_MEMMAP},
	    {"phys_base", 'D', false, AT_PHYS_BASE},
	    {"__pgtable_l5_enabled", 'D', false, AT_L5},
	    {"nr_cpu_ids", 'D', false, AT_CPU_IDS},
	    {"__per_cpu_offset", 'D', false, AT_PER_CPU},
	    {"modules", 'd', false, AT_MODULES},
	    {"bpf_kallsyms", 'd', false, AT_BPF},
	    {"ftrace_ops_trampoline_list", 'd', false, AT_FTRACE},
	    {"init_mm", 'D', false, AT_INIT_MM},
	    {"__start_orc_unwind_ip", 'R', false, AT_ORC_IPS},
	    {"__stop_orc_unwind_ip", 'R', false, AT_ORC_IPS + 4 * BUILT_ORC},
	    {"__start_orc_unwind", 'R', false, AT_ORC},
	    {"__stop_orc_unwind", 'R', false, AT_ORC + 6 * BUILT_ORC},
	    {"init_task", 'D', false, AT_INIT_TASK},
	    {"init_top_pgt", 'D', false, AT_TOP_PGT},
	    {"__start_BTF", 'R', false, AT_BTF},
	    {"__stop_BTF", 'R', false, AT_BTF + (uint32_t)guest->btf_size},
	};
	struct built_symbol symbol = {.type = 't', .offset = AT_KALLSYMS};

	if (guest->functions && i < VP_ARRAY_SIZE(special)) {
		symbol.offset = AT_ENTRY;
		snprintf(symbol.name, sizeof(symbol.name), i ? "early_%u" : "_stext", i);
		return symbol;
	}
	if (guest->functions && i == BUILT_SYMBOLS - 2)
		return (struct built_symbol){"copy_process", 't', false, AT_FORK};
	if (guest->functions && i == BUILT_SYMBOLS - 1)
		return (struct built_symbol){"after_fork", 't', false, AT_AFTER_FORK};
	if (guest->functions) {
		snprintf(symbol.name, sizeof(symbol.name), "filler_%u", i);
		return symbol;
	}
	/* Since v6.15 the per-CPU ones are addresses in the image. */
	if (i < 2 && guest->layout != BUILT_OLD)
		symbol = (struct built_symbol){.type = 't', .offset = 0};
	else if (i < VP_ARRAY_SIZE(special) &&
		 (guest->banner == AT_BANNER || special[i].offset != AT_BANNER))
		return special[i];
	else if (i < VP_ARRAY_SIZE(special))
		symbol.offset = AT_BANNER;
	if (i == BUILT_SYMBOLS - 4 && guest->banner != AT_BANNER)
		return (struct built_symbol){"linux_banner", 'D', false, guest->banner};
	if (i == BUILT_SYMBOLS - 3)
		return (struct built_symbol){"_end", 'B', false, AT_END};
	/* Their section counts for more than its place: it is that of the area of CPU 0. */
	if (i == BUILT_SYMBOLS - 2 && guest->layout != BUILT_OLD)
		return (struct built_symbol){"current_task", 'D', false, AT_END + PERCPU_CURRENT};
	if (i == BUILT_SYMBOLS - 1 && guest->layout != BUILT_OLD)
		return (struct built_symbol){"x86_cpu_to_apicid", 'D', false,
					     AT_END + PERCPU_APICID};
	if (i >= BUILT_SYMBOLS - 2)
		symbol.offset = AT_END;
	snprintf(symbol.name, sizeof(symbol.name), "filler_%u", i);
	return symbol;
}

static inline size_t built_align(size_t at, size_t to)
{
	return (at + to - 1) / to * to;
}

static inline size_t built_offsets(struct guest_builder *guest, size_t at)
{
	for (unsigned i = 0; i < BUILT_SYMBOLS; i++, at += 4) {
		struct built_symbol symbol = built_symbol(guest, i);
		int32_t value = (int32_t)symbol.offset;
		if (guest->layout == BUILT_PLACE)
			value -= (int32_t)at;
		else if (guest->layout == BUILT_OLD && !symbol.percpu)
			value = -1 - value;
		put32(guest->image + at, (uint32_t)value);
	}
	if (guest->layout == BUILT_PLACE)
		return at;
	at = built_align(at, 8);
	put64(guest->image + at, BUILT_TEXT);
	return at + 8;
}

static inline size_t built_names(struct guest_builder *guest, size_t at, uint32_t *markers)
{
	size_t start = at;

	for (unsigned i = 0; i < BUILT_SYMBOLS; i++) {
		struct built_symbol symbol = built_symbol(guest, i);
		size_t length = strlen(symbol.name) + 1;
		if (i % 256 == 0)
			markers[i / 256] = (uint32_t)(at - start);
		if (i == BUILT_LONG) { /* a length of more than 127 has two bytes */
			length = BUILT_LONG_NAME + 1;
			guest->image[at++] = (char)(0x80 | (length & 0x7f));
			guest->image[at++] = (char)(length >> 7);
			guest->image[at++] = symbol.type;
			memset(guest->image + at, 'x', BUILT_LONG_NAME);
			at += BUILT_LONG_NAME;
			continue;
		}
		guest->image[at++] = (char)length;
		guest->image[at++] = symbol.type;
		memcpy(guest->image + at, symbol.name, length - 1);
		at += length - 1;
	}
	return at;
}

static inline size_t built_tokens(struct guest_builder *guest, size_t at)
{
	size_t align = guest->layout == BUILT_PLACE ? 4 : 8, start = at;
	uint16_t index[256];

	for (unsigned i = 0; i < 256; i++) {
		index[i] = (uint16_t)(at - start);
		guest->image[at] = (char)(i > ' ' && i < 127 ? i : '?');
		at += 2;
	}
	at = built_align(at, align);
	memcpy(guest->image + at, index, sizeof(index));
	return at + sizeof(index);
}

static inline void built_kallsyms(struct guest_builder *guest)
{
	size_t at = AT_KALLSYMS, align = guest->layout == BUILT_PLACE ? 4 : 8;
	uint32_t markers[(BUILT_SYMBOLS + 255) / 256];

	if (guest->layout == BUILT_OLD)
		at = built_offsets(guest, at);
	put32(guest->image + at, BUILT_SYMBOLS);
	at = built_names(guest, built_align(at + 4, align), markers);
	at = built_align(at, align);
	memcpy(guest->image + at, markers, sizeof(markers));
	at = built_tokens(guest, built_align(at + sizeof(markers), align));
	if (guest->layout != BUILT_OLD)
		at = built_offsets(guest, built_align(at, align));
	guest->kallsyms_end = at;
}

static inline void built_page_tables(struct guest_builder *guest)
{
	enum { PRESENT = 1, LARGE = 0x80, PDPT = 0x2000, PD = 0x3000 };

	put64(guest->low + BUILT_CR3 + 8 * 511, PDPT | PRESENT);
	put64(guest->image + AT_TOP_PGT + 8 * 511, PDPT | PRESENT);
	put64(guest->low + PDPT + 8 * 510, PD | PRESENT);
	for (unsigned i = 0; i < 8; i++) /* 16 MiB from 0xffffffff81000000 on */
		put64(guest->low + PD + 8 * (8 + i),
		      (BUILT_IMAGE_GPA + 0x200000ULL * i) | LARGE | PRESENT);
	guest->free = 0x4000;
}

static inline void built_task(struct guest_builder *guest, uint64_t task, uint32_t tgid,
			      uint32_t tid, uint64_t mm, const char *comm)
{
	const struct vp_kernel_pack *pack = &guest->pack;

	put32(built_at(guest, task + pack->at.task_pid), tid);
	put32(built_at(guest, task + pack->at.task_tgid), tgid);
	built_put64(guest, task + pack->at.task_mm, mm);
	/* active_mm: threads of the kernel borrow one */
	built_put64(guest, task + pack->at.task_mm + 8, mm ? mm : BUILT_TEXT + AT_INIT_MM);
	strcpy(built_at(guest, task + pack->at.task_comm), comm);
}

/* Puts a task behind the last one of the ring; its address. */
static inline uint64_t built_process(struct guest_builder *guest, uint32_t tgid, uint64_t mm,
				     const char *comm)
{
	uint64_t task = built_object(guest, BUILT_TASK, 16), first = BUILT_TEXT + AT_INIT_TASK;
	uint32_t link = guest->pack.at.task_tasks;
	uint64_t last = first, next;

	for (;;) {
		memcpy(&next, built_at(guest, last + link), sizeof(next));
		if (next == first + link)
			break;
		last = next - link;
	}
	built_task(guest, task, tgid, tgid, mm, comm);
	built_put64(guest, last + link, task + link);
	built_put64(guest, task + link, first + link);
	built_put64(guest, task + link + 8, last + link);
	put64(guest->image + AT_INIT_TASK + link + 8, task + link);
	return task;
}

/* An address space on the page tables of the kernel. */
static inline uint64_t built_mm(struct guest_builder *guest)
{
	uint64_t mm = built_object(guest, 512, 16);

	built_put64(guest, mm + guest->pack.at.mm_pgd, BUILT_DIRECT + BUILT_CR3);
	return mm;
}

static inline uint64_t built_vma(struct guest_builder *guest, uint64_t start, uint64_t end,
				 uint64_t page, uint64_t file)
{
	const struct vp_kernel_pack *pack = &guest->pack;
	uint64_t vma = built_object(guest, 256, 16);

	built_put64(guest, vma + pack->at.vma_start, start);
	built_put64(guest, vma + pack->at.vma_end, end);
	built_put64(guest, vma + pack->at.vma_pgoff, page);
	built_put64(guest, vma + pack->at.vma_flags, 5);
	built_put64(guest, vma + pack->at.vma_file, file);
	return vma;
}

/* The kernel with its idle task and process 1, and CPU 0, which runs `init`. */
static inline void built_kernel_of(struct guest_builder *guest, enum built_layout layout,
				   uint32_t banner, bool functions)
{
	static const char notes[36] = "\4\0\0\0\24\0\0\0\3\0\0\0GNU\0build-id-of-20-bytes";
	const uint64_t idle = BUILT_TEXT + AT_INIT_TASK;

	memset(guest, 0, sizeof(*guest));
	guest->layout = layout;
	guest->banner = banner;
	guest->functions = functions;
	vp_kernel_pack_init(&guest->pack);
	built_page_tables(guest);
	built_btf(guest);
	built_kallsyms(guest);
	strcpy(guest->image + banner, "Linux version 6.1.0-built (who@where) #1 SMP\n");
	memcpy(guest->image + AT_NOTES, notes, sizeof(notes));
	put64(guest->image + AT_PAGE_OFFSET, BUILT_DIRECT);
	put64(guest->image + AT_MEMMAP, BUILT_MEMMAP);
	put64(guest->image + AT_PHYS_BASE, BUILT_IMAGE_GPA - (BUILT_TEXT - VP_KERNEL_MAP));
	put32(guest->image + AT_CPU_IDS, 1);
	built_put64(guest, BUILT_TEXT + AT_INIT_MM + guest->pack.at.mm_pgd,
		    BUILT_TEXT + AT_TOP_PGT);
	built_put64(guest, BUILT_TEXT + AT_MODULES, BUILT_TEXT + AT_MODULES);
	built_put64(guest, BUILT_TEXT + AT_BPF, BUILT_TEXT + AT_BPF);
	built_put64(guest, BUILT_TEXT + AT_FTRACE, BUILT_TEXT + AT_FTRACE);
	built_put64(guest, idle + guest->pack.at.task_tasks, idle + guest->pack.at.task_tasks);
	built_task(guest, idle, 0, 0, 0, "swapper/0");
	uint64_t init = built_process(guest, 1, built_mm(guest), "init");
	uint64_t area = built_object(guest, 64, 64);
	built_put64(guest, area + PERCPU_CURRENT, init);
	put64(guest->image + AT_PER_CPU, layout == BUILT_OLD ? area : area - (BUILT_TEXT + AT_END));
}

static inline void built_kernel_with_banner(struct guest_builder *guest, enum built_layout layout,
					    uint32_t banner)
{
	built_kernel_of(guest, layout, banner, false);
}

static inline void built_kernel(struct guest_builder *guest, enum built_layout layout)
{
	built_kernel_with_banner(guest, layout, AT_BANNER);
}

/* Moves the image: KASLR has put it there. */
static inline void built_move(struct guest_builder *guest, uint64_t gpa)
{
	for (unsigned i = 0; i < 8; i++) {
		char *entry = guest->low + 0x3000 + 8 * (8 + i);
		uint64_t value;
		memcpy(&value, entry, sizeof(value));
		put64(entry, (value & 0xfff) | (gpa + 0x200000ULL * i));
	}
	put64(guest->image + AT_PHYS_BASE, gpa - (BUILT_TEXT - VP_KERNEL_MAP));
}

/* The guest as a snapshot; the caller frees the buffer. */
static inline void built_snapshot(const struct guest_builder *guest, struct vp_buffer *snapshot)
{
	vp_buffer_printf(snapshot, "VPGM1\nslot %x %x\nslot 0 %x\nvcpu 0 %x 0 %llx 0 0 0\n\n",
			 BUILT_IMAGE_GPA, BUILT_IMAGE, BUILT_LOW, BUILT_CR3, BUILT_TEXT + AT_ENTRY);
	vp_buffer_append(snapshot, guest->image, sizeof(guest->image));
	vp_buffer_append(snapshot, guest->low, sizeof(guest->low));
}

#endif
