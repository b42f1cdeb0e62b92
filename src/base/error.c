/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/error.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"

struct vp_error {
	enum vp_error_kind kind;
	char *message;
};

static struct vp_error *error_make(enum vp_error_kind kind, const char *format, va_list args)
{
	struct vp_error *error = vp_alloc(sizeof(*error));

	error->kind = kind;
	if (vasprintf(&error->message, format, args) < 0)
		vp_alloc_failed();
	return error;
}

struct vp_error *vp_error_new(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	struct vp_error *error = error_make(VP_ERROR_FAILURE, format, args);
	va_end(args);
	return error;
}

struct vp_error *vp_error_usage(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	struct vp_error *error = error_make(VP_ERROR_USAGE, format, args);
	va_end(args);
	return error;
}

struct vp_error *vp_error_errno(int errnum, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	struct vp_error *error = error_make(VP_ERROR_FAILURE, format, args);
	va_end(args);

	char *whole;
	if (asprintf(&whole, "%s: %s", error->message, strerror(errnum)) < 0)
		vp_alloc_failed();
	free(error->message);
	error->message = whole;
	return error;
}

const char *vp_error_message(const struct vp_error *error)
{
	return error->message;
}

enum vp_error_kind vp_error_kind(const struct vp_error *error)
{
	return error->kind;
}

void vp_error_free(struct vp_error *error)
{
	if (!error)
		return;
	free(error->message);
	free(error);
}
