/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Option --store DIR: reads recordings of vperfd instead of one directory. */
#ifndef VP_CMD_COMMON_STORE_OPTIONS_H
#define VP_CMD_COMMON_STORE_OPTIONS_H

#include "analyze/account/account_joined.h"
#include "analyze/common/recording_parts.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/options.h"

/* A command reads continuous recordings; these, and snapshots of the flight recorder; or those of
 * both that have events of the host's trace. */
enum vp_store_reads { VP_STORE_RECORDINGS, VP_STORE_WITH_SNAPSHOTS, VP_STORE_EVENTS };

struct vp_store_options {
	const char *store;         /* NULL: not given */
	enum vp_store_reads reads; /* set by the command */
	/* Set by vp_store_options_choose(): */
	char *directory, *time;
	/* Set by vp_store_options_choose_parts(). */
	vp_recording_parts parts;
};

#define VP_STORE_OPTION(options)                                                                   \
	{                                                                                          \
		0, "store", VP_OPTION_TEXT, &(options)->store, "DIR",                              \
		    "a store of vperfd: read its recordings of that time, or the newest"           \
	}

/*
 * Chooses the recording, in *directory: an operand, `input`, or `otherwise`. With --store: the one
 * that has *time, which is converted to that recording's clock. Errors: more than one given,
 * unreadable store, nothing recorded in that time; several recordings have it, which the sentence
 * lists.
 */
struct vp_error *vp_store_options_choose(struct vp_store_options *options,
					 const struct vp_texts *operands, const char *input,
					 const char *otherwise, const char **time,
					 const char **directory) VP_MUST_CHECK;
/* The same for a command that can join recordings: if several have a part of *time, they are all in
 * options->parts, and *directory is the first of them. */
struct vp_error *vp_store_options_choose_parts(struct vp_store_options *options,
					       const struct vp_texts *operands, const char *input,
					       const char *otherwise, const char **time,
					       const char **directory) VP_MUST_CHECK;
static inline bool vp_store_options_has_several(const struct vp_store_options *options)
{
	return options->parts.count > 1;
}
/* All recordings with a part of `time` (NULL: only the newest), in order of time, without overlaps;
 * snapshots may overlap recordings. */
struct vp_error *vp_store_options_parts(const char *store, enum vp_store_reads reads,
					const char *time, vp_recording_parts *ret) VP_MUST_CHECK;
/* Arguments, each with a space before it, that make another command read the same recordings. */
char *vp_store_options_arguments(const struct vp_store_options *options, const char *time);
void vp_store_options_deinit(struct vp_store_options *options);

#endif
