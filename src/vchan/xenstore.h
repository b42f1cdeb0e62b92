/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A few requests to xenstore, by its protocol (Xen's public/io/xs_wire.h): no library is needed. */
#ifndef VP_VCHAN_XENSTORE_H
#define VP_VCHAN_XENSTORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/macros.h"

#define VP_XENSTORE_DEVICE "/dev/xen/xenbus"

/* *ret is a connection, to be closed. Errors: no rights, no Xen. */
struct vp_error *vp_xenstore_open(int *ret) VP_MUST_CHECK;
/* The value at `path`, of at most `room` - 1 bytes, as a string. *found is false if it is missing.
 * A path without a slash before it is the domain's own. Errors of all requests: xenstore does not
 * answer within a few seconds, or refuses. */
struct vp_error *vp_xenstore_read(int fd, const char *path, char *ret, size_t room,
				  bool *found) VP_MUST_CHECK;
struct vp_error *vp_xenstore_write(int fd, const char *path, const char *value) VP_MUST_CHECK;
/* Removes the path with all below it, if it exists. */
struct vp_error *vp_xenstore_remove(int fd, const char *path) VP_MUST_CHECK;
/* From now on `fd` is readable after a change at or below `path`. */
struct vp_error *vp_xenstore_watch(int fd, const char *path) VP_MUST_CHECK;
/* Takes a message of a watch, when `fd` is readable. */
struct vp_error *vp_xenstore_take_change(int fd) VP_MUST_CHECK;

#endif
