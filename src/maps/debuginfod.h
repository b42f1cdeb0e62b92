/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files by build-id, from debuginfod servers and from the cache of their client, elfutils'
 * libdebuginfod. */
#ifndef VP_MAPS_DEBUGINFOD_H
#define VP_MAPS_DEBUGINFOD_H

#include <stdbool.h>

#include "maps/format.h"

/* EXECUTABLE: the stripped file. DEBUGINFO: its symbols, without code and unwind tables. */
enum vp_debuginfod_kind { VP_DEBUGINFOD_EXECUTABLE, VP_DEBUGINFOD_DEBUGINFO };

/* The client's cache folder; NULL: none. Not all environments have one. */
char *vp_debuginfod_cache(void);
/* The path of the file in that folder, whether it exists or not. */
char *vp_debuginfod_cached(const char *cache, const struct vp_build_id *id,
			   enum vp_debuginfod_kind kind);
/* Whether the user has configured servers. */
bool vp_debuginfod_has_servers(void);
/* Queries the servers and returns the path of the download; NULL: none has the file, or the client
 * is not installed. May take minutes. */
char *vp_debuginfod_fetch(const struct vp_build_id *id, enum vp_debuginfod_kind kind);
/* The path of an earlier download, otherwise of a new one. */
char *vp_debuginfod_find(const struct vp_build_id *id, enum vp_debuginfod_kind kind);

#endif
