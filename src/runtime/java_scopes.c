/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/java_scopes.h"

#include "base/macros.h"
#include "runtime/java_loop.h"
#include "runtime/java_tables.h"
#include "runtime/process_memory.h"

enum {
	WORD = 8,
	MAX_PC_SIZE = 64,     /* bytes of a PcDesc */
	MAX_PCS = 1 << 16,    /* of a compiled method */
	MAX_BYTES = 16 << 20, /* of its debug information */
	LONGEST_NUMBER = 5,   /* bytes of a compressed number */
	LONGEST_SCOPE = 2 * LONGEST_NUMBER,
};

/* Where a compiled method's debug information is. */
struct java_scopes {
	uint64_t pcs, pcs_end;
	uint64_t data, data_end;
	uint64_t metadata, metadata_end;
	uint64_t code;     /* its first instruction */
	bool without_zero; /* no byte of a compressed number is zero: JDK 20 and newer */
};

static bool has_all(const uint32_t *offsets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (offsets[i] == VP_JAVA_NONE)
			return false;
	return true;
}

/* Reads 32-bit numbers at these offsets. */
static bool read_numbers(const struct vp_java_vm *vm, uint64_t blob, const uint32_t *offsets,
			 size_t count, uint32_t *values)
{
	if (!has_all(offsets, count))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!vp_process_u32(vm->memory, blob + offsets[i], &values[i]) ||
		    values[i] > MAX_BYTES)
			return false;
	return true;
}

/* Finds where the scopes begin: an address in JDK 9 to 22, an offset in JDK 8. */
static bool find_scopes_begin(const struct vp_java_vm *vm, const struct vp_java_code *code,
			      uint64_t *ret)
{
	const struct vp_java_layout *at = &vm->tables.at;
	uint32_t offset;

	if (at->nmethod_scopes_begin != VP_JAVA_NONE)
		return vp_process_u64(vm->memory, code->start + at->nmethod_scopes_begin, ret);
	if (!read_numbers(vm, code->start, &at->nmethod_scopes, 1, &offset))
		return false;
	*ret = code->start + offset;
	return true;
}

/* JDK 8 to 22: all of it is in the method's block. */
static bool find_in_block(const struct vp_java_vm *vm, const struct vp_java_code *code,
			  struct java_scopes *ret)
{
	const struct vp_java_layout *at = &vm->tables.at;
	const uint32_t offsets[] = {at->nmethod_pcs, at->nmethod_pcs_end, at->nmethod_metadata};
	uint32_t values[VP_ARRAY_SIZE(offsets)];

	if (!read_numbers(vm, code->start, offsets, VP_ARRAY_SIZE(offsets), values) ||
	    !find_scopes_begin(vm, code, &ret->data))
		return false;
	ret->pcs = code->start + values[0];
	ret->pcs_end = code->start + values[1];
	ret->data_end = ret->pcs;
	ret->metadata = code->start + values[2];
	ret->metadata_end = ret->data;
	/* Since JDK 20; the tables show versions from 21 on, by a member's name. */
	ret->without_zero = at->const_new_flags != VP_JAVA_NONE;
	return ret->pcs_end <= code->end && ret->data >= code->start;
}

/* JDK 25 and newer: in two blocks of memory, one of which the garbage collector changes. */
static bool find_in_data(const struct vp_java_vm *vm, const struct vp_java_code *code,
			 struct java_scopes *ret)
{
	const struct vp_java_layout *at = &vm->tables.at;
	const uint32_t offsets[] = {at->nmethod_pcs, at->nmethod_scopes, at->nmethod_immutable_size,
				    at->blob_relocation_size, at->blob_mutable_size};
	uint32_t values[VP_ARRAY_SIZE(offsets)];
	uint64_t immutable, mutable;

	if (at->blob_mutable == VP_JAVA_NONE ||
	    !read_numbers(vm, code->start, offsets, VP_ARRAY_SIZE(offsets), values) ||
	    !vp_process_u64(vm->memory, code->start + at->nmethod_immutable, &immutable) ||
	    !vp_process_u64(vm->memory, code->start + at->blob_mutable, &mutable))
		return false;
	ret->pcs = immutable + values[0];
	ret->pcs_end = ret->data = immutable + values[1];
	ret->data_end = immutable + values[2];
	ret->metadata = mutable + (values[3] + WORD - 1) / WORD * WORD;
	ret->metadata_end = mutable + values[4];
	ret->without_zero = true;
	return true;
}

static bool find_scopes(const struct vp_java_vm *vm, const struct vp_java_code *code,
			struct java_scopes *ret)
{
	const struct vp_java_layout *at = &vm->tables.at;

	if (!vp_java_code_begin(vm, code, &ret->code) || at->pc_offset == VP_JAVA_NONE ||
	    at->pc_scope == VP_JAVA_NONE || at->pc_size == VP_JAVA_NONE || at->pc_size < 8 ||
	    at->pc_size > MAX_PC_SIZE || at->pc_offset > at->pc_size - 4 ||
	    at->pc_scope > at->pc_size - 4)
		return false;
	return (at->nmethod_immutable != VP_JAVA_NONE ? find_in_data(vm, code, ret)
						      : find_in_block(vm, code, ret)) &&
	       ret->pcs <= ret->pcs_end && ret->data <= ret->data_end &&
	       ret->data_end - ret->data <= MAX_BYTES && ret->metadata <= ret->metadata_end &&
	       ret->metadata_end - ret->metadata <= MAX_BYTES &&
	       (ret->pcs_end - ret->pcs) / at->pc_size <= MAX_PCS;
}

static bool read_pc(const struct vp_java_vm *vm, const struct java_scopes *scopes, uint64_t number,
		    uint32_t member, uint32_t *ret)
{
	const struct vp_java_layout *at = &vm->tables.at;

	return vp_process_u32(vm->memory, scopes->pcs + number * at->pc_size + member, ret);
}

/* The branch after a loop's safepoint belongs to the entry before it. True: it includes the offset.
 */
static bool split_at_branch(const struct vp_java_vm *vm, uint64_t code, uint64_t offset,
			    struct vp_java_scope *scope)
{
	uint64_t end;

	if (!vp_java_loop_end(vm->memory, code + scope->begin, &end) || end - code >= scope->end)
		return false;
	bool inside = offset < end - code;
	*(inside ? &scope->end : &scope->begin) = end - code;
	return inside;
}

/* Finds the instructions of the same scope, and its place: that of the next entry, as entries are
 * at return addresses. The first and the last one are delimiters. */
static bool find_first(const struct vp_java_vm *vm, const struct java_scopes *scopes,
		       uint64_t offset, struct vp_java_scope *scope, uint32_t *ret)
{
	const struct vp_java_layout *at = &vm->tables.at;
	uint64_t count = (scopes->pcs_end - scopes->pcs) / at->pc_size;
	uint64_t low = 1, high = count ? count - 1 : 0;
	uint32_t value, before;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (!read_pc(vm, scopes, middle, at->pc_offset, &value))
			return false;
		if ((int32_t)value <= (int64_t)offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (count <= 2 || !read_pc(vm, scopes, low - 1, at->pc_offset, &before) ||
	    !read_pc(vm, scopes, low, at->pc_offset, &value))
		return false;
	scope->begin = (int32_t)before > 0 ? before : 0;
	scope->end = value;
	if (low > 1 && split_at_branch(vm, scopes->code, offset, scope))
		low--;
	return low < count - 1 && read_pc(vm, scopes, low, at->pc_scope, ret) &&
	       offset >= scope->begin && offset < scope->end;
}

/* Reads a number (UNSIGNED5): bytes of at least 192 are followed by another one. */
static bool take_number(const struct java_scopes *scopes, const uint8_t *bytes, size_t size,
			size_t *at, uint32_t *ret)
{
	const uint32_t excluded = scopes->without_zero;
	uint32_t value = 0;

	for (unsigned i = 0; i < LONGEST_NUMBER; i++) {
		if (*at == size || bytes[*at] < excluded)
			return false;
		uint32_t byte = bytes[(*at)++] - excluded;
		value += byte << (6 * i);
		if (byte < 192 - excluded || i == LONGEST_NUMBER - 1)
			break;
	}
	*ret = value;
	return true;
}

/* Reads a scope: its caller's offset, 0 if it is the compiled method, and its method. */
static bool read_scope(const struct vp_java_vm *vm, const struct java_scopes *scopes,
		       uint32_t offset, uint32_t *sender, uint64_t *method)
{
	uint64_t all = scopes->data_end - scopes->data;
	uint8_t bytes[LONGEST_SCOPE];
	uint32_t number;
	size_t at = 0;

	if (!offset || offset >= all)
		return false;
	size_t size = all - offset < sizeof(bytes) ? (size_t)(all - offset) : sizeof(bytes);
	if (!vp_process_read(vm->memory, scopes->data + offset, bytes, size) ||
	    !take_number(scopes, bytes, size, &at, sender) ||
	    !take_number(scopes, bytes, size, &at, &number) || !number ||
	    number > (scopes->metadata_end - scopes->metadata) / WORD)
		return false;
	return vp_process_u64(vm->memory, scopes->metadata + WORD * (number - 1ULL), method) &&
	       *method && *method % WORD == 0;
}

bool vp_java_scopes_read(const struct vp_java_vm *vm, const struct vp_java_code *code,
			 uint64_t offset, struct vp_java_scope *ret)
{
	struct java_scopes scopes;
	uint32_t at, sender;

	*ret = (struct vp_java_scope){0};
	if (!find_scopes(vm, code, &scopes) || !find_first(vm, &scopes, offset, ret, &at))
		return false;
	for (unsigned count = 0;; at = sender) {
		uint64_t method;
		if (!read_scope(vm, &scopes, at, &sender, &method))
			return false;
		if (!sender) {
			ret->n_inlined = count;
			return method == code->method;
		}
		if (count == VP_JAVA_INLINED)
			return false;
		ret->inlined[count++] = method;
	}
}
