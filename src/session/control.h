/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Snapshot requests: the client connects to the socket `control` in the recorder's directory. The
 * recorder replies with one line, "ok PATH" or "error SENTENCE", and closes the connection. */
#ifndef VP_SESSION_CONTROL_H
#define VP_SESSION_CONTROL_H

#include <sys/types.h>

#include "base/error.h"
#include "base/macros.h"

/* Listens in directory `path`; *ret is the socket. Errors: cannot be created. */
struct vp_error *vp_control_listen(const char *path, int *ret) VP_MUST_CHECK;
/* Accepts one request. -1: no request, or from a user other than root and this one. */
int vp_control_accept(int listener) VP_MUST_CHECK;
/* Replies with the snapshot's path, or the error, which the caller keeps. */
void vp_control_answer(int connection, const char *path, const struct vp_error *error);
/* Stops listening. */
void vp_control_close(const char *path, int listener);

/* Sends a request to the recorder in directory `path`; *ret is the snapshot's path, to be freed.
 * Errors: no recorder, no permission, or the recorder's error. */
struct vp_error *vp_control_ask(const char *path, char **ret) VP_MUST_CHECK;
/* The directory of the recorder with that pid, to be freed. Errors: not a recorder. */
struct vp_error *vp_control_find(pid_t pid, char **ret) VP_MUST_CHECK;

#endif
