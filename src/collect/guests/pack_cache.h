/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel packs that were made before: files BUILDID.pack, kept as they are. */
#ifndef VP_COLLECT_GUESTS_PACK_CACHE_H
#define VP_COLLECT_GUESTS_PACK_CACHE_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "maps/format.h"

typedef VP_VEC(struct vp_buffer) vp_pack_texts;

/* $XDG_CACHE_HOME/vperf/packs, or ~/.cache/vperf/packs; a new string. */
char *vp_pack_cache_folder(void) VP_MUST_CHECK;
/* Makes the folder if it has to be. */
struct vp_error *vp_pack_cache_make(const char *folder) VP_MUST_CHECK;
/* The texts of all packs in the folder, unparsed. */
void vp_pack_cache_load(const char *folder, vp_pack_texts *texts);
void vp_pack_texts_deinit(vp_pack_texts *texts);
/* Keeps a pack; the folder is made if it has to be. */
struct vp_error *vp_pack_cache_store(const char *folder, const struct vp_build_id *build_id,
				     const char *text) VP_MUST_CHECK;

#endif
