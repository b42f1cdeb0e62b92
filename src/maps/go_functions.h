/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Function names of Go programs (1.16 and newer), which they keep for their own stack traces in a
 * table (.gopclntab). Stripped programs have it, too.
 */
#ifndef VP_MAPS_GO_FUNCTIONS_H
#define VP_MAPS_GO_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

/* Contents of the table; bytes that are missing are zero. */
struct vp_go_table {
	const void *bytes;
	size_t size;
	uint64_t text; /* address of the Go code (moduledata.text), for tables without it; or 0 */
};

struct vp_go_function {
	uint64_t addr, size;
	struct vp_slice name; /* empty if it is missing */
};

/* Whether such a table may start with these bytes. */
bool vp_go_table_starts(const void *bytes, size_t size);
/* Whether the table has addresses relative to the Go code, but not the address of that code. */
bool vp_go_table_needs_text(const void *bytes, size_t size);
/* Calls `take` for each function. Entries that are damaged are left out. */
void vp_go_functions(const struct vp_go_table *table,
		     void (*take)(void *context, const struct vp_go_function *function),
		     void *context);

#endif
