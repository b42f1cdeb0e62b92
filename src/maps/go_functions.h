/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Function names of Go programs (1.16 and newer) from their own table for stack traces
 * (.gopclntab), which stripped programs keep. */
#ifndef VP_MAPS_GO_FUNCTIONS_H
#define VP_MAPS_GO_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

/* Contents of the table; bytes missing from the file are zero. */
struct vp_go_table {
	const void *bytes;
	size_t size;
	uint64_t text; /* address of the Go code (moduledata.text), for tables without it; or 0 */
};

struct vp_go_function {
	uint64_t addr, size;
	struct vp_slice name; /* empty: unknown */
};

/* Whether these bytes can be the start of such a table. */
bool vp_go_table_starts(const void *bytes, size_t size);
/* Whether the table has addresses relative to the Go code, but lacks the address of that code. */
bool vp_go_table_needs_text(const void *bytes, size_t size);
/* Calls `take` for each function. Damaged entries are skipped. */
void vp_go_functions(const struct vp_go_table *table,
		     void (*take)(void *context, const struct vp_go_function *function),
		     void *context);

#endif
