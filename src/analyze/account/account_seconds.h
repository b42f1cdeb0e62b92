/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The accounting of a recording, write by write: a recorder writes once a second. */
#ifndef VP_ANALYZE_ACCOUNT_ACCOUNT_SECONDS_H
#define VP_ANALYZE_ACCOUNT_ACCOUNT_SECONDS_H

#include <stdint.h>

#include "analyze/account/account.h"
#include "base/error.h"
#include "base/macros.h"

/* `second`: settled account of the time from `begin` to `end` only, without exit sites. */
typedef void (*vp_account_second_take)(void *context, const struct vp_account *second,
				       uint64_t begin, uint64_t end);

/* Calls `take` for each write of the recording in `directory`, oldest first; VMs and window are
 * those of `whole`. Errors: unreadable. */
struct vp_error *vp_account_seconds_read(const char *directory, const struct vp_account *whole,
					 vp_account_second_take take, void *context) VP_MUST_CHECK;

#endif
