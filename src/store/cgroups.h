/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Paths of the cgroups that a recording's records name by id. The file has a line `ID PATH` per
 * cgroup. */
#ifndef VP_STORE_CGROUPS_H
#define VP_STORE_CGROUPS_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

struct vp_cgroup {
	uint64_t id;
	char *path; /* relative to the hierarchy's root, which is "/"; NULL: unknown */
};
typedef VP_VEC(struct vp_cgroup) vp_cgroups;

void vp_cgroups_deinit(vp_cgroups *cgroups);
/* Adds the id, unless it is known or 0. */
void vp_cgroups_note(vp_cgroups *cgroups, uint64_t id);
/* Looks up the paths of those that still exist on this machine. */
void vp_cgroups_find(vp_cgroups *cgroups);
/* The path of the cgroup with that id; NULL: unknown. */
const char *vp_cgroups_path(const vp_cgroups *cgroups, uint64_t id);

/* Write and read the file `cgroups` of the recording in directory `path`; if it is missing, *ret is
 * empty. Errors: not writable, or malformed. */
struct vp_error *vp_cgroups_write(const char *path, const vp_cgroups *cgroups) VP_MUST_CHECK;
struct vp_error *vp_cgroups_read(const char *path, vp_cgroups *ret) VP_MUST_CHECK;

#endif
