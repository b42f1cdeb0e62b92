/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's copies of files that guests have mapped. */
#ifndef VP_COLLECT_GUESTS_HOST_COPY_H
#define VP_COLLECT_GUESTS_HOST_COPY_H

#include "base/macros.h"
#include "maps/format.h"

/*
 * Opens the host's copy of a file with that build-id; -1: none. Paths and build-ids are from
 * guests, and the descriptor is for a process that parses the guest's memory. So only these files
 * are opened: installed programs of root that every user can read, and downloads of this user in
 * the cache folder of debuginfod's client.
 */
int vp_host_copy_find(const char *path, const struct vp_build_id *build_id) VP_MUST_CHECK;
/* The copy in the cache folder only. */
int vp_host_copy_download(const struct vp_build_id *build_id) VP_MUST_CHECK;

/* Opens the file if it is root's, below `folder` (with a '/' at its end) after all links, and every
 * user can read it; otherwise -1. */
int vp_host_copy_open(const char *path, const char *folder) VP_MUST_CHECK;

#endif
