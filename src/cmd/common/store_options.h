/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --store DIR: recordings that vperfd keeps, instead of the directory of one. */
#ifndef VP_CMD_COMMON_STORE_OPTIONS_H
#define VP_CMD_COMMON_STORE_OPTIONS_H

#include "analyze/account/account_joined.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/options.h"

struct vp_store_options {
	const char *store; /* NULL: none */
	/* By vp_store_options_choose(): */
	char *directory, *time;
};

#define VP_STORE_OPTION(options)                                                                   \
	{                                                                                          \
		0, "store", VP_OPTION_TEXT, &(options)->store, "DIR",                              \
		    "a store of vperfd: read its recordings of that time, or the newest"           \
	}

/*
 * The recording in *directory: an operand, `input`, or `otherwise`. With --store it is the one that
 * has most of *time, which is then on that recording's clock; a sentence on stderr names it if
 * others have the rest. Errors: more than one is given, the store cannot be read, it has nothing of
 * that time.
 */
struct vp_error *vp_store_options_choose(struct vp_store_options *options,
					 const struct vp_texts *operands, const char *input,
					 const char *otherwise, const char **time,
					 const char **directory) VP_MUST_CHECK;
/* All recordings that have some of `time` (NULL: the newest), in the order of time, without the
 * time that two of them have. */
struct vp_error *vp_store_options_parts(const char *store, const char *time,
					vp_account_parts *ret) VP_MUST_CHECK;
void vp_store_options_deinit(struct vp_store_options *options);

#endif
