/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's copies of files that guests have mapped. */
#ifndef VP_COLLECT_GUESTS_HOST_COPY_H
#define VP_COLLECT_GUESTS_HOST_COPY_H

#include "base/macros.h"

/*
 * Opens the host's file of that path; -1: none. The path is from a guest, and the descriptor is for
 * a process that parses the guest's memory: only files of root below `folder` (with a '/' at its
 * end) that every user can read, after all links.
 */
int vp_host_copy_open(const char *path, const char *folder) VP_MUST_CHECK;

#endif
