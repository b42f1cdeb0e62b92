/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A store's spool: closed recordings that another program fetches and removes. They are hard
 * links, which outlast the recording in the store. */
#ifndef VP_STORE_SPOOL_H
#define VP_STORE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/*
 * Adds recording `name` of the store at `path` to its spool; other programs see it only when it is
 * complete. If the spool exceeds `most` bytes then, the oldest entries are removed: *dropped is
 * their number. Errors: cannot be linked.
 */
struct vp_error *vp_spool_add(const char *path, const char *name, uint64_t most,
			      uint64_t *dropped) VP_MUST_CHECK;

#endif
