/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drops all rights of this process except using its open descriptors. */
#ifndef VP_BASE_CONFINE_H
#define VP_BASE_CONFINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/*
 * Memory limits of a confined process, bytes, on top of what it has mapped at the time of the call.
 * A reader of guest memory, whose input the guest chose, has a lower limit than a reader of files.
 */
#define VP_CONFINED_MEMORY (1ULL << 30)
#define VP_CONFINED_READER_MEMORY (4ULL << 30)

/*
 * Confines the process for the rest of its life. It becomes another user without capabilities. It
 * keeps only the descriptors `fds` (renumbered; -1 stays) and standard input, output and error,
 * which lead to /dev/null (standard error stays with VPERF_DEBUG). The remaining system calls are
 * reading, writing, waiting, memory, and the ioctl `request` unless 0. Files are limited to
 * `max_file` bytes (EFBIG). Errors: a step failed; the process must then exit.
 */
struct vp_error *vp_confine(int *fds, size_t count, unsigned long request,
			    uint64_t max_file) VP_MUST_CHECK;
/* The same, and the process may receive messages with descriptors. */
struct vp_error *vp_confine_to_receiving(int *fds, size_t count, unsigned long request,
					 uint64_t max_file) VP_MUST_CHECK;
/* Confines a process that passes bytes between descriptors: as vp_confine(), and it may poll()
 * them. It may not write to files. */
struct vp_error *vp_confine_to_passing(int *fds, size_t count, unsigned long request) VP_MUST_CHECK;
/* Confines a process that has to find files by itself: it may open any file for reading and write
 * to `fds`. Other system calls fail. */
struct vp_error *vp_confine_to_reading(int *fds, size_t count, uint64_t max_file) VP_MUST_CHECK;
/* Confines a server of listening sockets `fds`: as vp_confine(), and it may accept connections,
 * receive and send. */
struct vp_error *vp_confine_to_serving(int *fds, size_t count) VP_MUST_CHECK;
/*
 * Confines a client of servers: as vp_confine(), and it may connect, use threads (for the
 * resolver), and open world-readable files for reading. `fd`: where the process sends the response.
 * Other system calls fail.
 */
struct vp_error *vp_confine_to_asking(int *fd) VP_MUST_CHECK;

#endif
