/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layout of HotSpot's data, from the tables that libjvm.so exports for debuggers (gHotSpotVMStructs
 * and gHotSpotVMTypes): JDK 8 and newer. In some versions the tables are filled when the library is
 * loaded, so they are read from the process's memory and not from the file.
 */
#ifndef VP_RUNTIME_JAVA_TABLES_H
#define VP_RUNTIME_JAVA_TABLES_H

#include "base/error.h"
#include "base/macros.h"
#include "runtime/process_memory.h"

/* Exported variables of libjvm.so: addresses of the tables, and layout of their entries. */
enum vp_java_symbol {
	VP_JAVA_STRUCTS,
	VP_JAVA_STRUCT_TYPE_NAME,
	VP_JAVA_STRUCT_FIELD_NAME,
	VP_JAVA_STRUCT_IS_STATIC,
	VP_JAVA_STRUCT_OFFSET,
	VP_JAVA_STRUCT_ADDRESS,
	VP_JAVA_STRUCT_STRIDE,
	VP_JAVA_TYPES,
	VP_JAVA_TYPE_NAME,
	VP_JAVA_TYPE_SIZE,
	VP_JAVA_TYPE_STRIDE,
	VP_JAVA_SYMBOLS,
};

/* Name of the symbol in .dynsym. */
const char *vp_java_symbol_name(enum vp_java_symbol symbol);

#define VP_JAVA_NONE UINT32_MAX

/* Offsets of members and sizes of types; VP_JAVA_NONE: not in this version. */
struct vp_java_layout {
	uint32_t array_length, array_data; /* members of a GrowableArray */
	uint32_t heap_memory, heap_segmap, heap_log2_segment;
	uint32_t space_low, space_high; /* members of a VirtualSpace */
	uint32_t header_length, header_used, block_size;
	uint32_t blob_name, blob_size;
	uint32_t blob_code_begin, blob_code_offset; /* an address, or an offset in the blob */
	uint32_t blob_frame_size, blob_frame_complete;
	uint32_t nmethod_method, nmethod_compile_id, nmethod_level;
	/* Debug information of compiled methods. JDK 25: in two blocks of their own. */
	uint32_t nmethod_pcs, nmethod_pcs_end, nmethod_metadata;
	uint32_t nmethod_scopes_begin, nmethod_scopes; /* an address, or an offset */
	uint32_t nmethod_immutable, nmethod_immutable_size;
	uint32_t blob_mutable, blob_mutable_size, blob_relocation_size;
	uint32_t pc_offset, pc_scope, pc_size; /* members and size of a PcDesc */
	uint32_t method_const;
	uint32_t const_constants, const_name_index;
	uint32_t const_new_flags; /* JDK 21 and newer */
	uint32_t pool_holder, pool_length, pool_size;
	uint32_t klass_name;
	uint32_t symbol_length, symbol_length_and_refcount, symbol_body;
};

struct vp_java_tables {
	struct vp_java_layout at;
	/* Addresses of static variables; 0: not in this version. */
	uint64_t heaps; /* pointer to a GrowableArray of CodeHeap pointers: JDK 9 and newer */
	uint64_t heap;  /* pointer to the only CodeHeap: JDK 8 */
};

/* Reads the tables at the addresses of the symbols. Errors: a required entry is missing or
 * invalid. */
struct vp_error *vp_java_tables_read(const struct vp_process_memory *memory,
				     const uint64_t symbols[VP_JAVA_SYMBOLS],
				     struct vp_java_tables *ret) VP_MUST_CHECK;

#endif
