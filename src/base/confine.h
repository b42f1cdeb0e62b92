/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes every right from this process but that to use what it has open. */
#ifndef VP_BASE_CONFINE_H
#define VP_BASE_CONFINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/*
 * A confined process may use this much memory of its own beyond what it has already, whatever its
 * parent has mapped: the limits of its kind are relative to what was inherited. A reader of a
 * guest's memory, whose input the guest chose, gets less than one of files.
 */
#define VP_CONFINED_MEMORY (1ULL << 30)
#define VP_CONFINED_READER_MEMORY (4ULL << 30)

/*
 * For ever: another user without capabilities, no descriptors but `fds` (they get new numbers; -1
 * stays), standard input, output and error lead nowhere (but the last stays with VPERF_DEBUG), and
 * of system calls only reading, writing, waiting and memory, and the ioctl `request`, if that is
 * not 0. It can make no file larger than `max_file` bytes: writing more fails with EFBIG.
 * Errors: any of it is not possible; the process is to exit.
 */
struct vp_error *vp_confine(int *fds, size_t count, unsigned long request,
			    uint64_t max_file) VP_MUST_CHECK;
/*
 * For a process that has to find files by itself: it may open any file to read, as before, and
 * write to `fds`; no more than that. Other system calls fail.
 */
struct vp_error *vp_confine_to_reading(int *fds, size_t count, uint64_t max_file) VP_MUST_CHECK;
/*
 * For a process that talks to the clients of the listening socket `fd`: besides what vp_confine()
 * allows, it may accept connections, receive and send. Other system calls fail.
 */
struct vp_error *vp_confine_to_serving(int *fd) VP_MUST_CHECK;

#endif
