/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/memory/memory.h"

#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/io.h"

/* Index of the first slot that starts after that address. */
static size_t first_beyond(const struct vp_guest_memory *memory, uint64_t gpa)
{
	size_t low = 0, high = memory->slots.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (memory->slots.at[middle].gpa > gpa)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

bool vp_guest_memory_add(struct vp_guest_memory *memory, uint64_t gpa, uint64_t size, uint64_t hva)
{
	uint64_t end;

	if (!size || __builtin_add_overflow(gpa, size, &end) ||
	    __builtin_add_overflow(hva, size, &end) || memory->slots.count == VP_GUEST_SLOTS_MAX)
		return false;
	size_t index = first_beyond(memory, gpa);
	vp_vec_push(&memory->slots, ((struct vp_guest_slot){0}));
	struct vp_guest_slot *slot = &memory->slots.at[index];
	memmove(slot + 1, slot, (memory->slots.count - 1 - index) * sizeof(*slot));
	*slot = (struct vp_guest_slot){gpa, size, hva};
	return true;
}

static bool memory_is_same(const struct vp_guest_slot *one, const struct vp_guest_slot *other)
{
	return one->gpa == other->gpa && one->size == other->size && one->hva == other->hva;
}

bool vp_guest_memory_change(struct vp_guest_memory *memory, const struct vp_guest_memory *now)
{
	bool same = memory->slots.count == now->slots.count;

	for (size_t i = 0; i < now->slots.count && same; i++)
		same = memory_is_same(&memory->slots.at[i], &now->slots.at[i]);
	if (same)
		return false;
	memory->slots.count = 0;
	vp_vec_each (&now->slots, slot)
		vp_guest_memory_add(memory, slot->gpa, slot->size, slot->hva);
	return true;
}

void vp_guest_memory_deinit(struct vp_guest_memory *memory)
{
	vp_vec_deinit(&memory->slots);
}

static const struct vp_guest_slot *memory_slot_of(const struct vp_guest_memory *memory,
						  uint64_t gpa)
{
	size_t beyond = first_beyond(memory, gpa);
	const struct vp_guest_slot *slot = beyond ? &memory->slots.at[beyond - 1] : NULL;

	return slot && gpa - slot->gpa < slot->size ? slot : NULL;
}

uint64_t vp_guest_memory_hva(const struct vp_guest_memory *memory, uint64_t gpa, size_t size)
{
	const struct vp_guest_slot *slot = memory_slot_of(memory, gpa);

	return slot && slot->size - (gpa - slot->gpa) >= size ? slot->hva + (gpa - slot->gpa) : 0;
}

uint64_t vp_guest_memory_left(const struct vp_guest_memory *memory, uint64_t gpa)
{
	const struct vp_guest_slot *slot = memory_slot_of(memory, gpa);

	return slot ? slot->size - (gpa - slot->gpa) : 0;
}

bool vp_guest_memory_read(const struct vp_guest_memory *memory, uint64_t gpa, void *bytes,
			  size_t size)
{
	char *to = bytes;

	while (size) {
		const struct vp_guest_slot *slot = memory_slot_of(memory, gpa);
		if (!slot)
			return false;
		uint64_t at = gpa - slot->gpa, left = slot->size - at;
		size_t piece = left < size ? (size_t)left : size;
		if (!memory->read(memory->context, slot->hva + at, to, piece))
			return false;
		gpa += piece;
		to += piece;
		size -= piece;
	}
	return true;
}

/* Reads present pages, with zeros for those that fail. Returns the number of bytes read. */
static size_t copy_run(const struct vp_guest_memory *memory, uint64_t hva, char *to, size_t size)
{
	size_t got = 0;

	if (memory->read(memory->context, hva, to, size))
		return size;
	for (size_t at = 0, piece; at < size; at += piece) {
		piece = VP_GUEST_PAGE - (hva + at) % VP_GUEST_PAGE;
		piece = piece < size - at ? piece : size - at;
		if (memory->read(memory->context, hva + at, to + at, piece))
			got += piece;
		else
			memset(to + at, 0, piece);
	}
	return got;
}

enum { PAGES_AT_ONCE = 512 };

/* Copies at most PAGES_AT_ONCE pages of one slot, with zeros for absent pages. */
static size_t copy_piece(const struct vp_guest_memory *memory, uint64_t hva, char *to, size_t size)
{
	uint64_t first = hva / VP_GUEST_PAGE;
	size_t pages = (size_t)((hva + size - 1) / VP_GUEST_PAGE - first + 1), got = 0;
	unsigned char backed[PAGES_AT_ONCE + 1];

	memset(backed, 1, sizeof(backed));
	if (memory->backed)
		memory->backed(memory->context, first * VP_GUEST_PAGE, pages, backed);
	for (size_t i = 0, end; i < pages; i = end) {
		for (end = i + 1; end < pages && backed[end] == backed[i];)
			end++;
		uint64_t from = i ? (first + i) * VP_GUEST_PAGE - hva : 0;
		uint64_t until = end < pages ? (first + end) * VP_GUEST_PAGE - hva : size;
		if (backed[i])
			got += copy_run(memory, hva + from, to + from, until - from);
		else
			memset(to + from, 0, until - from);
	}
	return got;
}

size_t vp_guest_memory_copy(const struct vp_guest_memory *memory, uint64_t gpa, void *bytes,
			    size_t size)
{
	const size_t most = (size_t)PAGES_AT_ONCE * VP_GUEST_PAGE;
	size_t got = 0;

	for (size_t at = 0, piece; at < size; at += piece) {
		const struct vp_guest_slot *slot = memory_slot_of(memory, gpa + at);
		piece = size - at < most ? size - at : most;
		if (!slot) {
			piece = piece < VP_GUEST_PAGE ? piece : VP_GUEST_PAGE;
			memset((char *)bytes + at, 0, piece);
			continue;
		}
		uint64_t inside = gpa + at - slot->gpa;
		if (slot->size - inside < piece)
			piece = (size_t)(slot->size - inside);
		got += copy_piece(memory, slot->hva + inside, (char *)bytes + at, piece);
	}
	return got;
}

/* Whether any of at most PAGES_AT_ONCE pages of one slot is present. */
static bool has_piece(const struct vp_guest_memory *memory, uint64_t hva, size_t size)
{
	uint64_t first = hva / VP_GUEST_PAGE;
	size_t pages = (size_t)((hva + size - 1) / VP_GUEST_PAGE - first + 1);
	unsigned char backed[PAGES_AT_ONCE + 1];

	if (!memory->backed)
		return true;
	memory->backed(memory->context, first * VP_GUEST_PAGE, pages, backed);
	return memchr(backed, 1, pages);
}

bool vp_guest_memory_has(const struct vp_guest_memory *memory, uint64_t gpa, size_t size)
{
	const size_t most = (size_t)PAGES_AT_ONCE * VP_GUEST_PAGE;

	for (size_t at = 0, piece; at < size; at += piece) {
		const struct vp_guest_slot *slot = memory_slot_of(memory, gpa + at);
		piece = size - at < most ? size - at : most;
		if (!slot) {
			piece = piece < VP_GUEST_PAGE ? piece : VP_GUEST_PAGE;
			continue;
		}
		uint64_t inside = gpa + at - slot->gpa;
		if (slot->size - inside < piece)
			piece = (size_t)(slot->size - inside);
		if (has_piece(memory, slot->hva + inside, piece))
			return true;
	}
	return false;
}

static bool memory_read_file(void *context, uint64_t hva, void *bytes, size_t size)
{
	const struct vp_guest_files *files = context;
	char *to = bytes;

	while (size) {
		ssize_t got = vp_pread(files->memory, to, size, (off_t)hva);
		if (got <= 0)
			return false;
		to += got;
		hva += (uint64_t)got;
		size -= (size_t)got;
	}
	return true;
}

/* Reads pagemap (Documentation/admin-guide/mm/pagemap.rst): 64 bits per page; bit 63: present. */
static void ask_pagemap(void *context, uint64_t hva, size_t pages, unsigned char *ret)
{
	const struct vp_guest_files *files = context;
	const uint64_t page = (uint64_t)getpagesize();
	uint64_t entries[PAGES_AT_ONCE + 1];

	for (size_t at = 0, piece; at < pages; at += piece) {
		piece = pages - at < VP_ARRAY_SIZE(entries) ? pages - at : VP_ARRAY_SIZE(entries);
		/* Host pages may be larger: one entry then covers 4 or 16 of these pages. */
		uint64_t begin = hva + at * VP_GUEST_PAGE, first = begin / page;
		size_t count = (size_t)((begin + piece * VP_GUEST_PAGE - 1) / page - first + 1);
		ssize_t got = vp_pread(files->pagemap, entries, count * sizeof(*entries),
				       (off_t)(first * sizeof(*entries)));
		size_t known = got > 0 ? (size_t)got / sizeof(*entries) : 0;
		for (size_t i = 0; i < piece; i++) {
			size_t entry = (size_t)((begin + i * VP_GUEST_PAGE) / page - first);
			ret[at + i] = entry < known && entries[entry] >> 63;
		}
	}
}

void vp_guest_memory_by_files(struct vp_guest_memory *memory, const struct vp_guest_files *files)
{
	memory->read = memory_read_file;
	memory->backed = files->pagemap >= 0 ? ask_pagemap : NULL;
	memory->context = (void *)files;
}

/* In a snapshot, host addresses are offsets in its bytes. */
static bool read_snapshot(void *context, uint64_t hva, void *bytes, size_t size)
{
	const struct vp_guest_snapshot *snapshot = context;

	if (hva > snapshot->size || size > snapshot->size - hva)
		return false;
	memcpy(bytes, snapshot->bytes + hva, size);
	return true;
}

static void ask_snapshot(void *context, uint64_t hva, size_t pages, unsigned char *ret)
{
	const struct vp_guest_snapshot *snapshot = context;

	for (size_t i = 0; i < pages; i++)
		ret[i] = hva / VP_GUEST_PAGE + i <= snapshot->size / VP_GUEST_PAGE;
}

static bool take_memory_slot(struct vp_guest_snapshot *snapshot, struct vp_slice line,
			     uint64_t *next_hva)
{
	struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
	struct vp_slice what = vp_cursor_word(&words);

	if (vp_slice_is(what, "slot")) {
		uint64_t gpa = vp_cursor_hex(&words), size = vp_cursor_hex(&words);
		bool added = vp_cursor_ok(&words) &&
			     vp_guest_memory_add(&snapshot->memory, gpa, size, *next_hva);
		*next_hva += added ? size : 0;
		return added;
	}
	if (vp_slice_is(what, "arm64")) {
		snapshot->memory.arch = VP_GUEST_ARM64;
		return vp_cursor_ok(&words);
	}
	const bool arm = snapshot->memory.arch == VP_GUEST_ARM64;
	struct vp_guest_registers vcpu = {.vcpu = (uint32_t)vp_cursor_hex(&words)};
	uint64_t *x86_fields[] = {&vcpu.cr3, &vcpu.cr4,     &vcpu.lstar,
				  &vcpu.idt, &vcpu.gs_base, &vcpu.kernel_gs_base};
	uint64_t *arm_fields[] = {&vcpu.ttbr1, &vcpu.tcr, &vcpu.vbar, &vcpu.tpidr1};
	uint64_t **fields = arm ? arm_fields : x86_fields;
	size_t count = arm ? VP_ARRAY_SIZE(arm_fields) : VP_ARRAY_SIZE(x86_fields);
	for (size_t i = 0; i < count; i++)
		*fields[i] = vp_cursor_hex(&words);
	if (!vp_slice_is(what, "vcpu") || !vp_cursor_ok(&words) ||
	    snapshot->vcpus.count == VP_GUEST_SLOTS_MAX)
		return false;
	vp_vec_push(&snapshot->vcpus, vcpu);
	return true;
}

struct vp_error *vp_guest_snapshot_init(const void *bytes, size_t size,
					struct vp_guest_snapshot *ret)
{
	struct vp_cursor cursor = vp_cursor_of(bytes, size);
	struct vp_slice line;
	uint64_t next_hva = 0;
	bool good = vp_cursor_line(&cursor, &line) && vp_slice_is(line, "VPGM1");

	*ret = (struct vp_guest_snapshot){0};
	while (good && (good = vp_cursor_line(&cursor, &line)) && line.size)
		good = take_memory_slot(ret, line, &next_hva);
	if (!good) {
		vp_guest_snapshot_deinit(ret);
		return vp_error_new("the snapshot of guest memory is malformed at offset %zu",
				    vp_cursor_offset(&cursor));
	}
	ret->bytes = (const char *)bytes + vp_cursor_offset(&cursor);
	ret->size = vp_cursor_left(&cursor);
	ret->memory.read = read_snapshot;
	ret->memory.backed = ask_snapshot;
	ret->memory.context = ret;
	return NULL;
}

void vp_guest_snapshot_deinit(struct vp_guest_snapshot *snapshot)
{
	vp_guest_memory_deinit(&snapshot->memory);
	vp_vec_deinit(&snapshot->vcpus);
}
