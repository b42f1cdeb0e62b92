/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/naming_options.h"

#include <string.h>

struct vp_error *vp_naming_options_take(const struct vp_texts *texts, const char *option,
					vp_naming_files *files)
{
	for (size_t i = 0; i < texts->count; i++) {
		char *equals = strchr(texts->at[i], '=');
		if (!equals || equals == texts->at[i] || !equals[1])
			return vp_error_usage("option --%s: expected NAME=FILE, not '%s'", option,
					      texts->at[i]);
		*equals = 0;
		vp_vec_push(files, ((struct vp_naming_file){texts->at[i], equals + 1}));
	}
	return NULL;
}
