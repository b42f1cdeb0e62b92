/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/memory.h"

#include <string.h>
#include <unistd.h>

#include "base/cursor.h"

bool vp_guest_memory_add(struct vp_guest_memory *memory, uint64_t gpa, uint64_t size, uint64_t hva)
{
	uint64_t end;

	if (!size || __builtin_add_overflow(gpa, size, &end) ||
	    __builtin_add_overflow(hva, size, &end) || memory->slots.count == VP_GUEST_SLOTS_MAX)
		return false;
	vp_vec_push(&memory->slots, ((struct vp_guest_slot){gpa, size, hva}));
	return true;
}

static bool has_slot(const struct vp_guest_memory *memory, const struct vp_guest_slot *wanted)
{
	vp_vec_each (&memory->slots, slot)
		if (slot->gpa == wanted->gpa && slot->size == wanted->size &&
		    slot->hva == wanted->hva)
			return true;
	return false;
}

bool vp_guest_memory_change(struct vp_guest_memory *memory, const struct vp_guest_memory *now)
{
	size_t before = memory->slots.count, kept = 0;

	vp_vec_each (&memory->slots, slot)
		if (has_slot(now, slot))
			memory->slots.at[kept++] = *slot;
	memory->slots.count = kept;
	vp_vec_each (&now->slots, slot)
		if (!has_slot(memory, slot))
			vp_guest_memory_add(memory, slot->gpa, slot->size, slot->hva);
	return kept != before || memory->slots.count != kept;
}

void vp_guest_memory_deinit(struct vp_guest_memory *memory)
{
	vp_vec_deinit(&memory->slots);
}

static const struct vp_guest_slot *slot_of(const struct vp_guest_memory *memory, uint64_t gpa)
{
	vp_vec_each (&memory->slots, slot)
		if (gpa - slot->gpa < slot->size)
			return slot;
	return NULL;
}

uint64_t vp_guest_memory_left(const struct vp_guest_memory *memory, uint64_t gpa)
{
	const struct vp_guest_slot *slot = slot_of(memory, gpa);

	return slot ? slot->size - (gpa - slot->gpa) : 0;
}

bool vp_guest_memory_read(const struct vp_guest_memory *memory, uint64_t gpa, void *bytes,
			  size_t size)
{
	char *to = bytes;

	while (size) {
		const struct vp_guest_slot *slot = slot_of(memory, gpa);
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

static bool read_fd(void *context, uint64_t hva, void *bytes, size_t size)
{
	int fd = (int)(intptr_t)context;
	char *to = bytes;

	while (size) {
		ssize_t got = pread(fd, to, size, (off_t)hva);
		if (got <= 0)
			return false;
		to += got;
		hva += (uint64_t)got;
		size -= (size_t)got;
	}
	return true;
}

void vp_guest_memory_by_fd(struct vp_guest_memory *memory, int fd)
{
	memory->read = read_fd;
	memory->context = (void *)(intptr_t)fd;
}

/* In a snapshot, host addresses are places in its bytes. */
static bool read_snapshot(void *context, uint64_t hva, void *bytes, size_t size)
{
	const struct vp_guest_snapshot *snapshot = context;

	if (hva > snapshot->size || size > snapshot->size - hva)
		return false;
	memcpy(bytes, snapshot->bytes + hva, size);
	return true;
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
	struct vp_guest_registers vcpu = {.vcpu = (uint32_t)vp_cursor_hex(&words)};
	uint64_t *fields[] = {&vcpu.cr3, &vcpu.cr4,     &vcpu.lstar,
			      &vcpu.idt, &vcpu.gs_base, &vcpu.kernel_gs_base};
	for (size_t i = 0; i < VP_ARRAY_SIZE(fields); i++)
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
	ret->memory.context = ret;
	return NULL;
}

void vp_guest_snapshot_deinit(struct vp_guest_snapshot *snapshot)
{
	vp_guest_memory_deinit(&snapshot->memory);
	vp_vec_deinit(&snapshot->vcpus);
}
