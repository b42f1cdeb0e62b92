/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_CMD_COMMON_NAMING_OPTIONS_H
#define VP_CMD_COMMON_NAMING_OPTIONS_H

#include "analyze/common/naming.h"
#include "cmd/common/options.h"

/* Splits each NAME=FILE at its first '='; the words are the caller's argv. */
struct vp_error *vp_naming_options_take(const struct vp_texts *texts, const char *option,
					vp_naming_files *files) VP_MUST_CHECK;

#endif
