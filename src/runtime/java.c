/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/java.h"

#include "runtime/process_memory.h"

enum {
	MIN_LOG2_SEGMENT = 4,
	MAX_LOG2_SEGMENT = 16,
	FREE_SEGMENT = 0xff,
	/* Maximum steps back in the segment map; a step is up to 254 segments (32 KiB). About 10
	 * occur in practice. */
	MAX_STEPS = 256,
	MAX_BLOCKS = 1 << 17, /* of all heaps together */
	MAX_BLOCK_SIZE = 64,  /* maximum size of a block's header */
	MAX_NAME = 512,
	MAX_CONSTANTS = 1 << 16,
};
#define MAX_HEAP (4ULL << 30)

static bool read_space(const struct vp_java_vm *vm, uint64_t space, uint64_t *low, uint64_t *high)
{
	const struct vp_java_layout *at = &vm->tables.at;

	return vp_process_u64(vm->memory, space + at->space_low, low) &&
	       vp_process_u64(vm->memory, space + at->space_high, high) && *low < *high;
}

/* Reads one heap; false if it is empty or invalid. */
static bool read_heap(const struct vp_java_vm *vm, uint64_t place, struct vp_java_heap *ret)
{
	const struct vp_java_layout *at = &vm->tables.at;
	uint32_t log2_segment;

	if (!place || !read_space(vm, place + at->heap_memory, &ret->low, &ret->high) ||
	    !read_space(vm, place + at->heap_segmap, &ret->map_low, &ret->map_high) ||
	    !vp_process_u32(vm->memory, place + at->heap_log2_segment, &log2_segment))
		return false;
	ret->log2_segment = log2_segment;
	return log2_segment >= MIN_LOG2_SEGMENT && log2_segment <= MAX_LOG2_SEGMENT &&
	       ret->high - ret->low <= MAX_HEAP &&
	       ret->map_high - ret->map_low >= (ret->high - ret->low) >> log2_segment;
}

static void java_add_heap(struct vp_java_vm *vm, uint64_t place)
{
	struct vp_java_heap heap;

	if (vm->n_heaps < VP_JAVA_HEAPS && read_heap(vm, place, &heap))
		vm->heaps[vm->n_heaps++] = heap;
}

/* JDK 9 and newer: the code cache has up to three heaps. */
static void read_heap_array(struct vp_java_vm *vm)
{
	const struct vp_java_layout *at = &vm->tables.at;
	uint64_t array, data, heap;
	uint32_t count;

	if (!vp_process_u64(vm->memory, vm->tables.heaps, &array) || !array ||
	    !vp_process_u32(vm->memory, array + at->array_length, &count) ||
	    count > VP_JAVA_HEAPS || !vp_process_u64(vm->memory, array + at->array_data, &data) ||
	    !data)
		return;
	for (uint32_t i = 0; i < count; i++)
		if (vp_process_u64(vm->memory, data + 8ULL * i, &heap))
			java_add_heap(vm, heap);
}

struct vp_error *vp_java_heaps_read(struct vp_java_vm *vm)
{
	uint64_t heap;

	vm->n_heaps = 0;
	if (vm->tables.heaps)
		read_heap_array(vm);
	else if (vp_process_u64(vm->memory, vm->tables.heap, &heap))
		java_add_heap(vm, heap);
	return vm->n_heaps ? NULL : vp_error_new("the Java VM has no code heap yet");
}

/* Finds the block of a segment: map entries lead back to its first segment. */
static bool find_block(const struct vp_java_vm *vm, const struct vp_java_heap *heap, uint64_t addr,
		       uint64_t *ret)
{
	uint64_t segment = (addr - heap->low) >> heap->log2_segment;

	for (unsigned step = 0; step < MAX_STEPS; step++) {
		uint8_t back;
		if (!vp_process_read(vm->memory, heap->map_low + segment, &back, 1) ||
		    back == FREE_SEGMENT || back > segment)
			return false;
		if (!back) {
			*ret = heap->low + (segment << heap->log2_segment);
			return true;
		}
		segment -= back;
	}
	return false;
}

struct java_block {
	uint64_t size; /* including its header */
	bool used;
};

/* Reads a block's header. Its length has 8 bytes, since JDK 21 4 bytes; the offset of the next
 * member shows which. */
static bool read_block(const struct vp_java_vm *vm, const struct vp_java_heap *heap, uint64_t place,
		       struct java_block *ret)
{
	const struct vp_java_layout *at = &vm->tables.at;
	bool wide = at->header_used - at->header_length >= 8;
	uint64_t length = 0, room = heap->high - place;
	uint8_t used;

	if (at->block_size > MAX_BLOCK_SIZE || at->header_used < at->header_length ||
	    !vp_process_read(vm->memory, place + at->header_length, &length, wide ? 8 : 4) ||
	    !vp_process_read(vm->memory, place + at->header_used, &used, 1))
		return false;
	if (!length || length > room >> heap->log2_segment ||
	    length << heap->log2_segment <= at->block_size)
		return false;
	*ret = (struct java_block){length << heap->log2_segment, used == 1};
	return used <= 1;
}

static bool is_method_name(const char *name)
{
	return !strcmp(name, "nmethod") || !strcmp(name, "native nmethod");
}

static bool read_method(const struct vp_java_vm *vm, uint64_t blob, struct vp_java_code *ret)
{
	const struct vp_java_layout *at = &vm->tables.at;

	ret->level = 0;
	if (at->nmethod_level != VP_JAVA_NONE &&
	    (!vp_process_read(vm->memory, blob + at->nmethod_level, &ret->level, 1) ||
	     ret->level > 4))
		ret->level = 0;
	return vp_process_u64(vm->memory, blob + at->nmethod_method, &ret->method) && ret->method &&
	       vp_process_u32(vm->memory, blob + at->nmethod_compile_id, &ret->compile_id);
}

/* Reads the blob in a used block, after the block's header. */
static bool read_blob(const struct vp_java_vm *vm, uint64_t place, const struct java_block *block,
		      struct vp_java_code *ret)
{
	const struct vp_java_layout *at = &vm->tables.at;
	uint64_t blob = place + at->block_size, name;
	uint32_t size;

	*ret = (struct vp_java_code){.start = blob};
	if (!vp_process_u64(vm->memory, blob + at->blob_name, &name) || !name ||
	    !vp_process_u32(vm->memory, blob + at->blob_size, &size) || !size ||
	    size > block->size - at->block_size ||
	    !vp_process_string(vm->memory, name, ret->name, VP_JAVA_BLOB_NAME) || !ret->name[0])
		return false;
	ret->end = blob + size;
	ret->kind = is_method_name(ret->name)           ? VP_JAVA_METHOD
		    : !strcmp(ret->name, "Interpreter") ? VP_JAVA_INTERPRETER
							: VP_JAVA_STUB;
	return ret->kind != VP_JAVA_METHOD || read_method(vm, blob, ret);
}

bool vp_java_code_find(const struct vp_java_vm *vm, uint64_t addr, struct vp_java_code *ret)
{
	for (unsigned i = 0; i < vm->n_heaps; i++) {
		const struct vp_java_heap *heap = &vm->heaps[i];
		struct java_block block;
		uint64_t place;
		if (addr < heap->low || addr >= heap->high)
			continue;
		return find_block(vm, heap, addr, &place) && read_block(vm, heap, place, &block) &&
		       block.used && read_blob(vm, place, &block, ret) && addr >= ret->start &&
		       addr < ret->end;
	}
	return false;
}

bool vp_java_code_begin(const struct vp_java_vm *vm, const struct vp_java_code *code, uint64_t *ret)
{
	const struct vp_java_layout *at = &vm->tables.at;
	uint32_t offset;

	if (at->blob_code_begin != VP_JAVA_NONE)
		return vp_process_u64(vm->memory, code->start + at->blob_code_begin, ret);
	if (at->blob_code_offset == VP_JAVA_NONE ||
	    !vp_process_u32(vm->memory, code->start + at->blob_code_offset, &offset))
		return false;
	*ret = code->start + offset;
	return true;
}

void vp_java_code_each(const struct vp_java_vm *vm,
		       bool (*each)(void *context, const struct vp_java_code *code), void *context,
		       bool *damaged)
{
	unsigned blocks = 0;

	*damaged = false;
	for (unsigned i = 0; i < vm->n_heaps; i++) {
		const struct vp_java_heap *heap = &vm->heaps[i];
		struct java_block block;
		struct vp_java_code code;
		for (uint64_t place = heap->low; place < heap->high; place += block.size) {
			if (blocks++ == MAX_BLOCKS || !read_block(vm, heap, place, &block)) {
				/* Normal end: the segment after the last block is free. */
				uint8_t free = 0;
				*damaged |= !vp_process_read(vm->memory,
							     heap->map_low + ((place - heap->low) >>
									      heap->log2_segment),
							     &free, 1) ||
					    free != FREE_SEGMENT;
				break;
			}
			if (block.used && read_blob(vm, place, &block, &code) &&
			    !each(context, &code))
				return;
		}
	}
}

/* Appends a symbol's text; rejects NUL and control characters. */
static bool put_symbol(const struct vp_java_vm *vm, uint64_t symbol, struct vp_buffer *name)
{
	const struct vp_java_layout *at = &vm->tables.at;
	uint32_t both = 0;
	uint16_t length = 0;
	char text[MAX_NAME];

	if (!symbol)
		return false;
	if (at->symbol_length != VP_JAVA_NONE) {
		if (!vp_process_u16(vm->memory, symbol + at->symbol_length, &length))
			return false;
	} else {
		if (!vp_process_u32(vm->memory, symbol + at->symbol_length_and_refcount, &both))
			return false;
		length = (uint16_t)(both >> 16);
	}
	size_t size = length < sizeof(text) ? length : sizeof(text);
	if (!size || !vp_process_read(vm->memory, symbol + at->symbol_body, text, size))
		return false;
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	vp_buffer_append(name, text, size);
	return true;
}

/* Formats a class name like Class.getName(): "a/B" as a.B, and "a/B$$Lambda+0x12" as
 * a.B$$Lambda/0x12. */
static void make_class_name(char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] == '/')
			text[i] = '.';
		else if (text[i] == '+' && size - i > 2 && text[i + 1] == '0' && text[i + 2] == 'x')
			text[i] = '/';
}

static bool put_class(const struct vp_java_vm *vm, uint64_t pool, struct vp_buffer *name)
{
	const struct vp_java_layout *at = &vm->tables.at;
	uint64_t holder, symbol;
	size_t start = name->size;

	if (!vp_process_u64(vm->memory, pool + at->pool_holder, &holder) || !holder ||
	    !vp_process_u64(vm->memory, holder + at->klass_name, &symbol) ||
	    !put_symbol(vm, symbol, name))
		return false;
	make_class_name(name->bytes + start, name->size - start);
	return true;
}

static bool put_method(const struct vp_java_vm *vm, uint64_t method, struct vp_buffer *name)
{
	const struct vp_java_layout *at = &vm->tables.at;
	uint64_t constants, pool, symbol;
	uint32_t count;
	uint16_t index;

	if (method % 8 || !vp_process_u64(vm->memory, method + at->method_const, &constants) ||
	    !constants || constants % 8 ||
	    !vp_process_u64(vm->memory, constants + at->const_constants, &pool) || !pool ||
	    pool % 8 || !vp_process_u16(vm->memory, constants + at->const_name_index, &index) ||
	    !index || !vp_process_u32(vm->memory, pool + at->pool_length, &count) ||
	    index >= count || count > MAX_CONSTANTS ||
	    !vp_process_u64(vm->memory, pool + at->pool_size + 8ULL * index, &symbol) ||
	    !put_class(vm, pool, name))
		return false;
	vp_buffer_string(name, ".");
	return put_symbol(vm, symbol & ~1ULL, name); /* the lowest bit is a tag in some versions */
}

bool vp_java_method_name(const struct vp_java_vm *vm, uint64_t method, struct vp_buffer *name)
{
	size_t start = name->size;

	if (method && put_method(vm, method, name))
		return true;
	name->size = start;
	return false;
}
