/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/naming_options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"

/* Splits each NAME=FILE at the first '=', in the caller's argv. */
static struct vp_error *naming_options_take(const struct vp_texts *texts, const char *option,
					    vp_naming_files *files)
{
	for (size_t i = 0; i < texts->count; i++) {
		char *equals = strchr(texts->at[i], '=');
		if (!equals || equals == texts->at[i] || !equals[1])
			return vp_error_usage("option --%s: expected NAME=FILE, not '%s'", option,
					      texts->at[i]);
		if (access(equals + 1, R_OK))
			return vp_error_errno(errno, "option --%s: cannot read '%s'", option,
					      equals + 1);
		*equals = 0;
		vp_vec_push(files, ((struct vp_naming_file){texts->at[i], equals + 1}));
	}
	return NULL;
}

struct vp_error *vp_naming_words_check(const struct vp_naming_words *words, const char *directory,
				       struct vp_naming_options *ret)
{
	ret->directory = directory;
	ret->symfs = words->symfs;
	ret->no_host_files = words->no_host_files;
	if (words->symfs && words->no_host_files)
		return vp_error_usage("--symfs and --no-host-files are mutually exclusive");
	VP_TRY(naming_options_take(&words->guests, "guest", &ret->maps));
	return naming_options_take(&words->kallsyms, "kallsyms", &ret->kernels);
}

void vp_naming_words_deinit(struct vp_naming_words *words, struct vp_naming_options *options)
{
	vp_vec_deinit(&words->guests);
	vp_vec_deinit(&words->kallsyms);
	vp_vec_deinit(&options->maps);
	vp_vec_deinit(&options->kernels);
}
