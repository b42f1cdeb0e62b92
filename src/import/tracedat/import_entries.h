/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds threads that entered a guest, from the tracepoint kvm:kvm_entry. */
#ifndef VP_IMPORT_TRACEDAT_IMPORT_ENTRIES_H
#define VP_IMPORT_TRACEDAT_IMPORT_ENTRIES_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/map.h"
#include "import/common/import_channel.h"
#include "import/tracedat/tracedat.h"

struct vp_import_entries {
	struct vp_map vcpu_of_tid;
	struct vp_buffer record;
};

/* Processes an event of that class in the file; sends a thread's first entry, with its process
 * unless 0. */
void vp_import_entries_update(struct vp_import_entries *entries, const struct vp_tracedat *file,
			      uint32_t class, struct vp_slice raw, uint32_t process,
			      const struct vp_import_channel *channel);

#endif
