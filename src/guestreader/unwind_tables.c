/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestreader/unwind_tables.h"

#include <elf.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/map.h"
#include "base/vec.h"
#include "maps/eh_frame.h"
#include "maps/format.h"
#include "unwind/cfi.h"

enum {
	PAGE = 4096,
	MAX_TABLES = 2048,
	MAX_SEGMENTS = 16,
	MAX_PROGRAM_HEADERS = 512,
	MAX_READS = 8, /* attempts for a table with missing pages */
	ROWS = 8192,   /* cached rows */
	PCREL_SDATA4 = 0x1b,
};
/* Maximum bytes of a section, and of all files of a guest. */
#define MAX_SECTION (64ULL << 20)
#define MAX_BYTES (256ULL << 20)
#define AGAIN_NS 1000000000ULL

struct unwind_segment {
	uint64_t addr, offset, size;
};

/* A section of the file; missing pages are zero. */
struct part {
	uint64_t offset, addr;
	struct vp_buffer bytes;
	struct vp_buffer missing; /* a byte per page: 1 if it is missing */
};

struct table {
	struct unwind_segment segments[MAX_SEGMENTS];
	unsigned n_segments;
	struct part header, frame;
	bool exists;
	bool unreadable;             /* unknown whether it exists: pages with headers are missing */
	uint64_t missing;            /* number of pages */
	struct vp_build_id build_id; /* of a copy of the file … */
	char *path;                  /* … and its path; NULL: not named */
	bool reported;
	unsigned reads;
	uint64_t read_at; /* time of the last read, ns; 0: not read */
};

struct kept_row {
	uint64_t address;
	int32_t table; /* index + 1; 0: none */
	enum vp_cfi_result result;
	struct vp_cfi_row row;
};

struct vp_unwind_tables {
	VP_VEC(struct table) at;
	struct vp_map by_key;
	uint64_t left; /* remaining bytes */
	struct kept_row rows[ROWS];
};

struct vp_unwind_tables *vp_unwind_tables_new(void)
{
	struct vp_unwind_tables *tables = vp_alloc(sizeof(*tables));

	tables->left = MAX_BYTES;
	return tables;
}

static void part_deinit(struct part *part)
{
	vp_buffer_deinit(&part->bytes);
	vp_buffer_deinit(&part->missing);
}

void vp_unwind_tables_free(struct vp_unwind_tables *tables)
{
	if (!tables)
		return;
	vp_vec_each (&tables->at, table) {
		part_deinit(&table->header);
		part_deinit(&table->frame);
		free(table->path);
	}
	vp_vec_deinit(&tables->at);
	vp_map_deinit(&tables->by_key);
	free(tables);
}

/* Reads the section's missing pages. */
static void part_read(struct table *table, struct part *part, const struct vp_unwind_file *file)
{
	uint64_t size = part->bytes.size, piece;

	for (uint64_t done = 0, page = 0; done < size; done += piece, page++) {
		piece = PAGE - (part->offset + done) % PAGE;
		piece = piece < size - done ? piece : size - done;
		if (!part->missing.bytes[page])
			continue;
		char bytes[PAGE];
		if (!file->read(file->context, part->offset + done, bytes, piece))
			continue;
		memcpy(part->bytes.bytes + done, bytes, piece);
		part->missing.bytes[page] = 0;
		table->missing--;
	}
}

/* Allocates the section, with all pages missing; false: limit exceeded. */
static bool part_begin(struct vp_unwind_tables *tables, struct table *table, struct part *part,
		       uint64_t size)
{
	uint64_t pages = (part->offset % PAGE + size + PAGE - 1) / PAGE;

	if (size > MAX_SECTION || size > tables->left)
		return false;
	tables->left -= size;
	vp_buffer_fill(&part->bytes, 0, size);
	vp_buffer_fill(&part->missing, 1, pages);
	table->missing += pages;
	return true;
}

/* Converts an address to a file offset; *left: bytes up to its segment's end. False: not loaded. */
static bool tables_offset(const struct table *table, uint64_t addr, uint64_t *offset,
			  uint64_t *left)
{
	for (unsigned i = 0; i < table->n_segments; i++) {
		const struct unwind_segment *segment = &table->segments[i];
		if (addr - segment->addr >= segment->size)
			continue;
		*offset = segment->offset + (addr - segment->addr);
		*left = segment->size - (addr - segment->addr);
		return true;
	}
	return false;
}

/* Reads a part of the headers. */
static bool read_header(struct table *table, const struct vp_unwind_file *file, uint64_t offset,
			void *bytes, size_t size)
{
	table->unreadable = !file->read(file->context, offset, bytes, size);
	return !table->unreadable;
}

/* Reads the program headers of loaded segments; *header: that of .eh_frame_hdr. */
static bool read_segments(struct table *table, const struct vp_unwind_file *file,
			  Elf64_Phdr *header)
{
	Elf64_Ehdr elf;

	*header = (Elf64_Phdr){0};
	table->n_segments = 0;
	if (!read_header(table, file, 0, &elf, sizeof(elf)) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf.e_ident[EI_DATA] != ELFDATA2LSB || elf.e_phentsize != sizeof(Elf64_Phdr) ||
	    elf.e_phnum > MAX_PROGRAM_HEADERS)
		return false;
	for (unsigned i = 0; i < elf.e_phnum; i++) {
		Elf64_Phdr segment;
		if (!read_header(table, file, elf.e_phoff + i * sizeof(segment), &segment,
				 sizeof(segment)))
			return false;
		if (segment.p_type == PT_GNU_EH_FRAME)
			*header = segment;
		else if (segment.p_type == PT_LOAD && table->n_segments < MAX_SEGMENTS &&
			 segment.p_offset <= file->size &&
			 segment.p_filesz <= file->size - segment.p_offset)
			table->segments[table->n_segments++] = (struct unwind_segment){
			    segment.p_vaddr, segment.p_offset, segment.p_filesz};
	}
	return header->p_type == PT_GNU_EH_FRAME;
}

/* Finds .eh_frame_hdr and .eh_frame, which may extend to the end of its segment. */
static bool find_parts(struct vp_unwind_tables *tables, struct table *table,
		       const struct vp_unwind_file *file)
{
	Elf64_Phdr header;
	struct {
		uint8_t start[4];
		int32_t distance;
	} first;
	uint64_t left;

	if (!read_segments(table, file, &header) ||
	    !tables_offset(table, header.p_vaddr, &table->header.offset, &left) ||
	    header.p_filesz > left || header.p_filesz < sizeof(first) ||
	    !read_header(table, file, table->header.offset, &first, sizeof(first)) ||
	    !part_begin(tables, table, &table->header, header.p_filesz))
		return false;
	table->header.addr = header.p_vaddr;
	part_read(table, &table->header, file);
	table->frame.addr =
	    header.p_vaddr + sizeof(first.start) + (uint64_t)(int64_t)first.distance;
	return first.start[1] == PCREL_SDATA4 &&
	       tables_offset(table, table->frame.addr, &table->frame.offset, &left) &&
	       part_begin(tables, table, &table->frame, left < MAX_SECTION ? left : MAX_SECTION);
}

static void read_table(struct vp_unwind_tables *tables, struct table *table,
		       const struct vp_unwind_file *file)
{
	table->exists = find_parts(tables, table, file);
	if (table->exists)
		part_read(table, &table->frame, file);
}

int32_t vp_unwind_tables_add(struct vp_unwind_tables *tables, const struct vp_unwind_file *file)
{
	bool is_new;
	uint32_t *known =
	    vp_map_insert(&tables->by_key, file->key, (uint32_t)tables->at.count, &is_new);
	uint32_t number = *known;

	if (is_new && tables->at.count == MAX_TABLES) {
		*known = MAX_TABLES;
		return VP_NO_UNWIND_TABLE;
	}
	if (is_new) {
		struct table table = {0};
		read_table(tables, &table, file);
		vp_vec_push(&tables->at, table);
	}
	const struct table *table = number < tables->at.count ? &tables->at.at[number] : NULL;
	return table && (table->exists || table->unreadable) ? (int32_t)number : VP_NO_UNWIND_TABLE;
}

static bool tables_address(const struct table *table, uint64_t offset, uint64_t *ret)
{
	for (unsigned i = 0; i < table->n_segments; i++) {
		const struct unwind_segment *segment = &table->segments[i];
		if (offset - segment->offset >= segment->size)
			continue;
		*ret = segment->addr + (offset - segment->offset);
		return true;
	}
	return false;
}

enum vp_cfi_result vp_unwind_tables_find(struct vp_unwind_tables *tables, int32_t number,
					 uint64_t offset, uint32_t *work, struct vp_cfi_row *row,
					 struct vp_slice *expressions)
{
	const struct table *table = &tables->at.at[number];
	const struct part *header = &table->header, *frame = &table->frame;
	uint64_t address;

	if (!table->exists || !tables_address(table, offset, &address))
		return VP_CFI_NONE;
	*expressions = (struct vp_slice){frame->bytes.bytes, frame->bytes.size};
	struct kept_row *kept = &tables->rows[vp_hash64(address ^ (uint64_t)number << 48) % ROWS];
	if (kept->table == number + 1 && kept->address == address) {
		*row = kept->row;
		return kept->result;
	}
	const struct vp_eh_frame bytes = {
	    .frame = {frame->bytes.bytes, frame->bytes.size, frame->addr},
	    .header = {header->bytes.bytes, header->bytes.size, header->addr},
	    .is_64_bit = true};
	enum vp_cfi_result result = vp_cfi_find(&bytes, address, work, row);
	if (*work) /* 0: work limit exceeded, result unknown */
		*kept = (struct kept_row){
		    .address = address, .table = number + 1, .result = result, .row = *row};
	return result;
}

bool vp_unwind_tables_lacks(struct vp_unwind_tables *tables, int32_t number, uint64_t now)
{
	struct table *table = &tables->at.at[number];

	if ((!table->missing && !table->unreadable) || table->reads == MAX_READS ||
	    now < table->read_at + AGAIN_NS)
		return false;
	table->read_at = now;
	return true;
}

static void complete(struct vp_unwind_tables *tables, int32_t number,
		     const struct vp_unwind_file *file)
{
	struct table *table = &tables->at.at[number];

	if (table->unreadable) {
		read_table(tables, table, file);
	} else {
		part_read(table, &table->header, file);
		part_read(table, &table->frame, file);
	}
	for (size_t i = 0; i < ROWS; i++)
		if (tables->rows[i].table == number + 1 && tables->rows[i].result != VP_CFI_FOUND)
			tables->rows[i].table = 0;
}

void vp_unwind_tables_complete(struct vp_unwind_tables *tables, int32_t number,
			       const struct vp_unwind_file *file)
{
	tables->at.at[number].reads++;
	complete(tables, number, file);
}

static bool lacks_pages(const struct table *table)
{
	return table->unreadable || (table->exists && table->missing);
}

bool vp_unwind_tables_wants_copy(const struct vp_unwind_tables *tables, int32_t number)
{
	const struct table *table = &tables->at.at[number];

	return lacks_pages(table) && !table->path;
}

void vp_unwind_tables_name_copy(struct vp_unwind_tables *tables, int32_t number,
				const struct vp_build_id *build_id, const char *path)
{
	struct table *table = &tables->at.at[number];

	free(table->path);
	table->path = vp_strdup(path);
	table->build_id = *build_id;
}

void vp_unwind_tables_each_copy(struct vp_unwind_tables *tables,
				void (*each)(void *context, const struct vp_build_id *build_id,
					     const char *path),
				void *context)
{
	vp_vec_each (&tables->at, table) {
		if (!table->path || table->reported || !lacks_pages(table))
			continue;
		table->reported = true;
		each(context, &table->build_id, table->path);
	}
}

void vp_unwind_tables_take_copy(struct vp_unwind_tables *tables, const struct vp_build_id *build_id,
				const struct vp_unwind_file *copy)
{
	struct vp_build_id found;

	if (!vp_file_build_id(copy->read, copy->context, &found) ||
	    !vp_build_id_equal(&found, build_id))
		return;
	for (size_t i = 0; i < tables->at.count; i++)
		if (tables->at.at[i].reported && lacks_pages(&tables->at.at[i]) &&
		    vp_build_id_equal(&tables->at.at[i].build_id, build_id))
			complete(tables, (int32_t)i, copy);
}
