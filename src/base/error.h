/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Errors: a sentence, made where the cause is known, returned up to cmd/, which prints it.
 *
 * A function that can fail returns `struct vp_error *`; NULL is success. The caller returns the
 * error or frees it. Sentences are lower case, without a full stop, and name the file, offset or
 * option and what was expected.
 */
#ifndef VP_BASE_ERROR_H
#define VP_BASE_ERROR_H

#include "base/macros.h"

struct vp_error;

/* The exit status: 1 for a failure, 2 for wrong usage. */
enum vp_error_kind { VP_ERROR_FAILURE = 1, VP_ERROR_USAGE = 2 };

/* New errors: a failure, and wrong usage; the sentence is formatted as by printf(). Free with
 * vp_error_free(). */
struct vp_error *vp_error_new(const char *format, ...) VP_PRINTF(1, 2) VP_MUST_CHECK;
struct vp_error *vp_error_usage(const char *format, ...) VP_PRINTF(1, 2) VP_MUST_CHECK;
/* Like vp_error_new(), followed by ": " and the text of `errnum` (an errno value). */
struct vp_error *vp_error_errno(int errnum, const char *format, ...) VP_PRINTF(2, 3) VP_MUST_CHECK;

/* The sentence; valid as long as the error. */
const char *vp_error_message(const struct vp_error *error);
enum vp_error_kind vp_error_kind(const struct vp_error *error);
/* Frees the error; NULL is allowed. */
void vp_error_free(struct vp_error *error);

static inline void vp_cleanup_error(struct vp_error **error)
{
	vp_error_free(*error);
}
#define VP_AUTO_ERROR VP_CLEANUP(vp_cleanup_error)

/* Returns the error of `call`, if any, from the calling function. */
#define VP_TRY(call)                                                                               \
	do {                                                                                       \
		struct vp_error *vp_try_error = (call);                                            \
		if (vp_try_error)                                                                  \
			return vp_try_error;                                                       \
	} while (0)

#endif
