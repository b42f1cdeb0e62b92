/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/java_tables.h"

#include <inttypes.h>

enum {
	MAX_ENTRIES = 8192, /* JDK 25 has 2,900 entries */
	MAX_STRIDE = 256,
	MAX_NAME = 96,
	MAX_OFFSET = 1 << 16,
};

static const char *const symbol_names[VP_JAVA_SYMBOLS] = {
    [VP_JAVA_STRUCTS] = "gHotSpotVMStructs",
    [VP_JAVA_STRUCT_TYPE_NAME] = "gHotSpotVMStructEntryTypeNameOffset",
    [VP_JAVA_STRUCT_FIELD_NAME] = "gHotSpotVMStructEntryFieldNameOffset",
    [VP_JAVA_STRUCT_IS_STATIC] = "gHotSpotVMStructEntryIsStaticOffset",
    [VP_JAVA_STRUCT_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
    [VP_JAVA_STRUCT_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
    [VP_JAVA_STRUCT_STRIDE] = "gHotSpotVMStructEntryArrayStride",
    [VP_JAVA_TYPES] = "gHotSpotVMTypes",
    [VP_JAVA_TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
    [VP_JAVA_TYPE_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
    [VP_JAVA_TYPE_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
};

const char *vp_java_symbol_name(enum vp_java_symbol symbol)
{
	return symbol_names[symbol];
}

/* Members by type and name. A member that moved to another type in some version is listed twice. */
static const struct {
	const char *type, *field;
	size_t place; /* offset in struct vp_java_layout */
} members[] = {
#define MEMBER(type, field, name)                                                                  \
	{                                                                                          \
		type, field, offsetof(struct vp_java_layout, name)                                 \
	}
    MEMBER("GenericGrowableArray", "_len", array_length), /* up to JDK 15 */
    MEMBER("GrowableArrayBase", "_len", array_length),
    MEMBER("GrowableArray<int>", "_data", array_data),
    MEMBER("CodeHeap", "_memory", heap_memory),
    MEMBER("CodeHeap", "_segmap", heap_segmap),
    MEMBER("CodeHeap", "_log2_segment_size", heap_log2_segment),
    MEMBER("VirtualSpace", "_low", space_low),
    MEMBER("VirtualSpace", "_high", space_high),
    MEMBER("HeapBlock::Header", "_length", header_length),
    MEMBER("HeapBlock::Header", "_used", header_used),
    MEMBER("CodeBlob", "_name", blob_name),
    MEMBER("CodeBlob", "_size", blob_size),
    MEMBER("CodeBlob", "_code_begin", blob_code_begin),   /* JDK 9 to 22 */
    MEMBER("CodeBlob", "_code_offset", blob_code_offset), /* others */
    MEMBER("CodeBlob", "_frame_size", blob_frame_size),
    MEMBER("CodeBlob", "_frame_complete_offset", blob_frame_complete),
    MEMBER("CodeBlob", "_mutable_data", blob_mutable), /* JDK 25 */
    MEMBER("CodeBlob", "_mutable_data_size", blob_mutable_size),
    MEMBER("CodeBlob", "_relocation_size", blob_relocation_size),
    MEMBER("CompiledMethod", "_scopes_data_begin", nmethod_scopes_begin),
    MEMBER("nmethod", "_scopes_data_offset", nmethod_scopes),
    MEMBER("nmethod", "_scopes_pcs_offset", nmethod_pcs),
    MEMBER("nmethod", "_dependencies_offset", nmethod_pcs_end), /* up to JDK 22 */
    MEMBER("nmethod", "_metadata_offset", nmethod_metadata),
    MEMBER("nmethod", "_immutable_data", nmethod_immutable), /* JDK 23 and newer */
    MEMBER("nmethod", "_immutable_data_size", nmethod_immutable_size),
    MEMBER("PcDesc", "_pc_offset", pc_offset),
    MEMBER("PcDesc", "_scope_decode_offset", pc_scope),
    MEMBER("nmethod", "_method", nmethod_method),
    MEMBER("CompiledMethod", "_method", nmethod_method), /* JDK 9 to 22 */
    MEMBER("nmethod", "_compile_id", nmethod_compile_id),
    MEMBER("nmethod", "_comp_level", nmethod_level),
    MEMBER("Method", "_constMethod", method_const),
    MEMBER("ConstMethod", "_constants", const_constants),
    MEMBER("ConstMethod", "_name_index", const_name_index),
    MEMBER("ConstMethod", "_flags._flags", const_new_flags), /* JDK 21 and newer */
    MEMBER("ConstantPool", "_pool_holder", pool_holder),
    MEMBER("ConstantPool", "_length", pool_length),
    MEMBER("Klass", "_name", klass_name),
    MEMBER("Symbol", "_length", symbol_length),
    MEMBER("Symbol", "_length_and_refcount", symbol_length_and_refcount), /* JDK 12, 13 */
    MEMBER("Symbol", "_body", symbol_body),
#undef MEMBER
};

static const struct {
	const char *type;
	size_t place;
} sizes[] = {
    {"HeapBlock", offsetof(struct vp_java_layout, block_size)},
    {"ConstantPool", offsetof(struct vp_java_layout, pool_size)},
    {"PcDesc", offsetof(struct vp_java_layout, pc_size)},
};

static const struct {
	const char *type, *field;
	size_t place; /* offset in struct vp_java_tables */
} statics[] = {
    {"CodeCache", "_heaps", offsetof(struct vp_java_tables, heaps)},
    {"CodeCache", "_heap", offsetof(struct vp_java_tables, heap)},
};

/* A table in memory, and the layout of its entries. */
struct table {
	const struct vp_process_memory *memory;
	uint64_t start, stride;
	uint64_t type, field, is_static, offset, address; /* `offset`: size, of types */
	uint64_t last_type; /* entries of a type are adjacent, so its name is read only once */
	bool last_is_needed;
	char name[MAX_NAME];
};

static uint64_t tables_u64(const char *entry, uint64_t at)
{
	uint64_t value;

	memcpy(&value, entry + at, sizeof(value));
	return value;
}

static struct vp_error *tables_bad(const char *what)
{
	return vp_error_new("the tables of libjvm.so cannot be read: %s", what);
}

static bool is_needed_type(const char *name)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(members); i++)
		if (!strcmp(members[i].type, name))
			return true;
	for (size_t i = 0; i < VP_ARRAY_SIZE(statics); i++)
		if (!strcmp(statics[i].type, name))
			return true;
	return false;
}

/* Reads the type's name, unless it is the same as in the previous entry. Names longer than any
 * known one are rejected. */
static void tables_read_type(struct table *table, uint64_t place)
{
	if (place == table->last_type)
		return;
	table->last_type = place;
	if (!vp_process_string(table->memory, place, table->name, sizeof(table->name)))
		table->name[0] = 0;
	table->last_is_needed = is_needed_type(table->name);
}

static void set_offset(struct vp_java_tables *ret, size_t place, uint64_t value)
{
	uint32_t offset = value < MAX_OFFSET ? (uint32_t)value : VP_JAVA_NONE;

	memcpy((char *)&ret->at + place, &offset, sizeof(offset));
}

static void tables_take_struct(struct table *table, const char *entry, struct vp_java_tables *ret)
{
	char field[MAX_NAME];
	uint32_t is_static;

	tables_read_type(table, tables_u64(entry, table->type));
	if (!table->last_is_needed ||
	    !vp_process_string(table->memory, tables_u64(entry, table->field), field,
			       sizeof(field)))
		return;
	memcpy(&is_static, entry + table->is_static, sizeof(is_static));
	for (size_t i = 0; i < VP_ARRAY_SIZE(members) && !is_static; i++)
		if (!strcmp(members[i].type, table->name) && !strcmp(members[i].field, field))
			set_offset(ret, members[i].place, tables_u64(entry, table->offset));
	for (size_t i = 0; i < VP_ARRAY_SIZE(statics) && is_static; i++)
		if (!strcmp(statics[i].type, table->name) && !strcmp(statics[i].field, field)) {
			uint64_t address = tables_u64(entry, table->address);
			memcpy((char *)ret + statics[i].place, &address, sizeof(address));
		}
}

static void tables_take_type(struct table *table, const char *entry, struct vp_java_tables *ret)
{
	tables_read_type(table, tables_u64(entry, table->type));
	for (size_t i = 0; i < VP_ARRAY_SIZE(sizes); i++)
		if (!strcmp(sizes[i].type, table->name))
			set_offset(ret, sizes[i].place, tables_u64(entry, table->offset));
}

/* Calls `take` for each entry; the table ends with an entry without a type. */
static struct vp_error *tables_each(struct table *table,
				    void (*take)(struct table *table, const char *entry,
						 struct vp_java_tables *ret),
				    struct vp_java_tables *ret)
{
	char entry[MAX_STRIDE];

	for (unsigned i = 0; i < MAX_ENTRIES; i++) {
		if (!vp_process_read(table->memory, table->start + i * table->stride, entry,
				     (size_t)table->stride))
			return tables_bad("a page of them is missing");
		if (!tables_u64(entry, table->type))
			return NULL;
		take(table, entry, ret);
	}
	return tables_bad("they have no end");
}

/* Whether a member of that size fits into an entry. */
static bool is_in_entry(const struct table *table, uint64_t at, uint64_t size)
{
	return at <= table->stride && size <= table->stride - at;
}

static bool structs_fit(const struct table *table)
{
	return table->start && table->stride && table->stride <= MAX_STRIDE &&
	       is_in_entry(table, table->type, 8) && is_in_entry(table, table->field, 8) &&
	       is_in_entry(table, table->is_static, 4) && is_in_entry(table, table->offset, 8) &&
	       is_in_entry(table, table->address, 8);
}

static bool types_fit(const struct table *table)
{
	return table->start && table->stride && table->stride <= MAX_STRIDE &&
	       is_in_entry(table, table->type, 8) && is_in_entry(table, table->offset, 8);
}

/* The first missing member that all supported versions have, or NULL. */
static const char *what_is_missing(const struct vp_java_tables *tables)
{
	const struct vp_java_layout *at = &tables->at;
	const struct {
		uint32_t offset;
		const char *name;
	} needed[] = {
	    {at->heap_memory, "CodeHeap::_memory"},
	    {at->heap_segmap, "CodeHeap::_segmap"},
	    {at->heap_log2_segment, "CodeHeap::_log2_segment_size"},
	    {at->space_low, "VirtualSpace::_low"},
	    {at->space_high, "VirtualSpace::_high"},
	    {at->header_length, "HeapBlock::Header::_length"},
	    {at->header_used, "HeapBlock::Header::_used"},
	    {at->block_size, "HeapBlock"},
	    {at->blob_name, "CodeBlob::_name"},
	    {at->blob_size, "CodeBlob::_size"},
	    {at->nmethod_method, "nmethod::_method"},
	    {at->nmethod_compile_id, "nmethod::_compile_id"},
	    {at->method_const, "Method::_constMethod"},
	    {at->const_constants, "ConstMethod::_constants"},
	    {at->const_name_index, "ConstMethod::_name_index"},
	    {at->pool_holder, "ConstantPool::_pool_holder"},
	    {at->pool_length, "ConstantPool::_length"},
	    {at->pool_size, "ConstantPool"},
	    {at->klass_name, "Klass::_name"},
	    {at->symbol_body, "Symbol::_body"},
	};

	for (size_t i = 0; i < VP_ARRAY_SIZE(needed); i++)
		if (needed[i].offset == VP_JAVA_NONE)
			return needed[i].name;
	if (at->symbol_length == VP_JAVA_NONE && at->symbol_length_and_refcount == VP_JAVA_NONE)
		return "Symbol::_length";
	if (tables->heaps && (at->array_length == VP_JAVA_NONE || at->array_data == VP_JAVA_NONE))
		return "GrowableArray";
	return tables->heaps || tables->heap ? NULL : "CodeCache::_heaps";
}

struct vp_error *vp_java_tables_read(const struct vp_process_memory *memory,
				     const uint64_t symbols[VP_JAVA_SYMBOLS],
				     struct vp_java_tables *ret)
{
	uint64_t values[VP_JAVA_SYMBOLS];

	*ret = (struct vp_java_tables){0};
	memset(&ret->at, 0xff, sizeof(ret->at));
	for (size_t i = 0; i < VP_JAVA_SYMBOLS; i++)
		if (!symbols[i] || !vp_process_u64(memory, symbols[i], &values[i]))
			return tables_bad("it exports no tables, or they are not in memory");
	struct table structs = {.memory = memory,
				.start = values[VP_JAVA_STRUCTS],
				.stride = values[VP_JAVA_STRUCT_STRIDE],
				.type = values[VP_JAVA_STRUCT_TYPE_NAME],
				.field = values[VP_JAVA_STRUCT_FIELD_NAME],
				.is_static = values[VP_JAVA_STRUCT_IS_STATIC],
				.offset = values[VP_JAVA_STRUCT_OFFSET],
				.address = values[VP_JAVA_STRUCT_ADDRESS]};
	struct table types = {.memory = memory,
			      .start = values[VP_JAVA_TYPES],
			      .stride = values[VP_JAVA_TYPE_STRIDE],
			      .type = values[VP_JAVA_TYPE_NAME],
			      .offset = values[VP_JAVA_TYPE_SIZE]};
	if (!structs_fit(&structs) || !types_fit(&types))
		return tables_bad("their entries make no sense");
	VP_TRY(tables_each(&structs, tables_take_struct, ret));
	VP_TRY(tables_each(&types, tables_take_type, ret));
	const char *missing = what_is_missing(ret);
	return missing ? vp_error_new("the tables of libjvm.so have no %s", missing) : NULL;
}
