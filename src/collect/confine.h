/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes every right from this process but that to use what it has open. */
#ifndef VP_COLLECT_CONFINE_H
#define VP_COLLECT_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

/*
 * For ever: another user without capabilities, no descriptors but `fds` (they get new numbers; -1
 * stays), standard input, output and error lead nowhere (but the last stays with VPERF_DEBUG), and
 * of system calls only reading, writing, waiting and memory, and the ioctl `request`, if that is
 * not 0. False if any of it could not be had.
 */
bool vp_confine(int *fds, size_t count, unsigned long request) VP_MUST_CHECK;
/*
 * For a process that has to find files by itself: it may open any file to read, as before, and
 * write to `fds`; no more than that. Other system calls fail.
 */
bool vp_confine_to_reading(int *fds, size_t count) VP_MUST_CHECK;

#endif
