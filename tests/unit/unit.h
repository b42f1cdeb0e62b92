/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every unit test begins with. */
#ifndef VP_TESTS_UNIT_H
#define VP_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static inline void expect_no_error(struct vp_error *error)
{
	if (error)
		fail_msg("unexpected error: %s", vp_error_message(error));
}

/* The error's sentence contains `part`. */
static inline void expect_error(struct vp_error *error, const char *part)
{
	assert_non_null(error);
	if (!strstr(vp_error_message(error), part))
		fail_msg("'%s' does not say '%s'", vp_error_message(error), part);
	vp_error_free(error);
}

/* Writes a file in the current directory and yields its name. */
static inline const char *temporary_file(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
	return name;
}

#endif
