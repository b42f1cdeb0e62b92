/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/symbols/elf_segments.h"

#include "maps/elf_file.h"

enum {
	EH_FRAME_HDR = 1,
	EH_FRAME,
	DYNSYM,
	DYNSTR,
	MAX_DYNAMIC = 512,
	MAX_BUCKETS = 1 << 18,
	PIECE = 512,
	MAX_CHAIN = 1 << 16,
	LARGEST_FRAME = 64 << 20,
	PCREL_SDATA4 = 0x1b,
};

static const char section_names[] = "\0.eh_frame_hdr\0.eh_frame\0.dynsym\0.dynstr";
static const uint8_t name_of_section[] = {0, 1, 15, 25, 33};

struct search {
	const struct vp_guest_file *file;
	const Elf64_Phdr *segments;
	unsigned count;
	Elf64_Shdr *sections;
};

/* Converts an address to a file offset; *left: bytes up to its segment's end. False: not loaded. */
static bool segments_offset(const struct search *search, uint64_t addr, uint64_t *offset,
			    uint64_t *left)
{
	for (unsigned i = 0; i < search->count; i++) {
		const Elf64_Phdr *segment = &search->segments[i];
		if (segment->p_type != PT_LOAD || addr < segment->p_vaddr ||
		    addr - segment->p_vaddr >= segment->p_filesz)
			continue;
		*left = segment->p_filesz - (addr - segment->p_vaddr);
		return !__builtin_add_overflow(segment->p_offset, addr - segment->p_vaddr, offset);
	}
	return false;
}

static bool segments_read(const struct search *search, uint64_t addr, void *bytes, size_t size)
{
	uint64_t offset, left;

	return segments_offset(search, addr, &offset, &left) && size <= left &&
	       vp_guest_file_read(search->file, offset, bytes, size);
}

static const Elf64_Phdr *segment_of_type(const struct search *search, uint32_t type)
{
	for (unsigned i = 0; i < search->count; i++)
		if (search->segments[i].p_type == type)
			return &search->segments[i];
	return NULL;
}

static void put_section(struct search *search, unsigned number, uint32_t type, uint64_t addr,
			uint64_t size)
{
	uint64_t offset, left;

	if (!segments_offset(search, addr, &offset, &left))
		return;
	search->sections[number] = (Elf64_Shdr){.sh_name = name_of_section[number],
						.sh_type = type,
						.sh_addr = addr,
						.sh_offset = offset,
						.sh_size = size < left ? size : left,
						.sh_addralign = 1};
}

/* Finds .eh_frame_hdr, and .eh_frame from the pointer at its start. The size of .eh_frame is
 * unknown: it ends at the latest with its segment. */
static void find_unwind_tables(struct search *search)
{
	const Elf64_Phdr *header = segment_of_type(search, PT_GNU_EH_FRAME);
	uint8_t start[4];
	int32_t distance;

	if (!header)
		return;
	put_section(search, EH_FRAME_HDR, SHT_PROGBITS, header->p_vaddr, header->p_filesz);
	if (segments_read(search, header->p_vaddr, start, sizeof(start)) &&
	    start[1] == PCREL_SDATA4 &&
	    segments_read(search, header->p_vaddr + sizeof(start), &distance, sizeof(distance)))
		put_section(search, EH_FRAME, SHT_PROGBITS,
			    header->p_vaddr + sizeof(start) + (uint64_t)(int64_t)distance,
			    LARGEST_FRAME);
}

/* Returns the highest symbol number in the buckets of DT_GNU_HASH; 0: none. */
static uint32_t highest_bucket(const struct search *search, uint64_t buckets, uint32_t count)
{
	uint32_t highest = 0, piece[PIECE];

	for (uint32_t done = 0, some; done < count; done += some) {
		some = count - done < PIECE ? count - done : PIECE;
		if (!segments_read(search, buckets + 4ULL * done, piece, some * sizeof(*piece)))
			return 0;
		for (uint32_t i = 0; i < some; i++)
			highest = piece[i] > highest ? piece[i] : highest;
	}
	return highest;
}

/* Number of symbols from DT_GNU_HASH: the last symbol ends the chain with the highest number. */
static uint64_t count_by_gnu_hash(const struct search *search, uint64_t hash)
{
	uint32_t header[4], entry; /* buckets, first symbol, words of the filter, its shift */

	if (!segments_read(search, hash, header, sizeof(header)) || header[0] > MAX_BUCKETS ||
	    header[2] > MAX_BUCKETS)
		return 0;
	uint64_t buckets = hash + sizeof(header) + 8ULL * header[2];
	uint64_t chains = buckets + 4ULL * header[0];
	uint32_t last = highest_bucket(search, buckets, header[0]);
	if (last < header[1] || !last)
		return header[1];
	for (unsigned i = 0; i < MAX_CHAIN; i++, last++) {
		if (!segments_read(search, chains + 4ULL * (last - header[1]), &entry,
				   sizeof(entry)))
			return 0;
		if (entry & 1)
			return last + 1ULL;
	}
	return 0;
}

static uint64_t count_by_hash(const struct search *search, uint64_t hash)
{
	uint32_t header[2]; /* buckets, symbols */

	return segments_read(search, hash, header, sizeof(header)) ? header[1] : 0;
}

static void find_symbols(struct search *search)
{
	const Elf64_Phdr *dynamic = segment_of_type(search, PT_DYNAMIC);
	uint64_t symbols = 0, strings = 0, strings_size = 0, hash = 0, gnu_hash = 0;

	for (unsigned i = 0; dynamic && i < MAX_DYNAMIC; i++) {
		Elf64_Dyn entry;
		if ((i + 1) * sizeof(entry) > dynamic->p_filesz ||
		    !segments_read(search, dynamic->p_vaddr + i * sizeof(entry), &entry,
				   sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			break;
		symbols = entry.d_tag == DT_SYMTAB ? entry.d_un.d_ptr : symbols;
		strings = entry.d_tag == DT_STRTAB ? entry.d_un.d_ptr : strings;
		strings_size = entry.d_tag == DT_STRSZ ? entry.d_un.d_val : strings_size;
		hash = entry.d_tag == DT_HASH ? entry.d_un.d_ptr : hash;
		gnu_hash = entry.d_tag == DT_GNU_HASH ? entry.d_un.d_ptr : gnu_hash;
	}
	uint64_t count = hash ? count_by_hash(search, hash) : 0;
	if (!count && gnu_hash)
		count = count_by_gnu_hash(search, gnu_hash);
	if (!count || count > VP_ELF_MAX_TABLE / sizeof(Elf64_Sym) || !symbols || !strings)
		return;
	put_section(search, DYNSYM, SHT_DYNSYM, symbols, count * sizeof(Elf64_Sym));
	put_section(search, DYNSTR, SHT_STRTAB, strings, strings_size);
	search->sections[DYNSYM].sh_link = DYNSTR;
	search->sections[DYNSYM].sh_entsize = sizeof(Elf64_Sym);
	if (!search->sections[DYNSTR].sh_size)
		search->sections[DYNSYM] = (Elf64_Shdr){0};
}

bool vp_elf_segments_find(const struct vp_guest_file *file, const Elf64_Phdr *segments,
			  unsigned count, struct vp_elf_segments *ret)
{
	struct search search = {file, segments, count, ret->sections};

	*ret =
	    (struct vp_elf_segments){.names = section_names, .names_size = sizeof(section_names)};
	find_unwind_tables(&search);
	find_symbols(&search);
	return ret->sections[EH_FRAME_HDR].sh_size || ret->sections[DYNSYM].sh_size;
}
