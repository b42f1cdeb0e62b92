/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attributes and cleanup helpers. */
#ifndef VP_BASE_MACROS_H
#define VP_BASE_MACROS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define VP_MUST_CHECK __attribute__((warn_unused_result))
#define VP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define VP_NORETURN __attribute__((noreturn))
/* For loops over records: code kept out of the loop, code inlined into it, a condition that is
 * rarely true. */
#define VP_NOINLINE __attribute__((noinline))
#define VP_INLINE inline __attribute__((always_inline))
#define VP_RARELY(condition) __builtin_expect(!!(condition), 0)
#define VP_CLEANUP(fn) __attribute__((cleanup(fn)))

/* The invalid index. */
#define VP_NONE UINT32_MAX

#define VP_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline void vp_cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void vp_cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void vp_cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

#define VP_AUTO_FREE VP_CLEANUP(vp_cleanup_free)
#define VP_AUTO_CLOSE VP_CLEANUP(vp_cleanup_close)
#define VP_AUTO_FCLOSE VP_CLEANUP(vp_cleanup_fclose)

/* Transfers ownership of a pointer: yields it and clears the variable, whose cleanup then frees
 * nothing. */
#define VP_TAKE(p)                                                                                 \
	({                                                                                         \
		__typeof__(p) vp_taken = (p);                                                      \
		(p) = NULL;                                                                        \
		vp_taken;                                                                          \
	})

#endif
