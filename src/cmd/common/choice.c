/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/choice.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"
#include "base/nearest.h"

static const char *const usual_formats[] = {"text", "json", "csv"};

struct vp_error *vp_choose(const char *option, const char *text, const char *const *names,
			   size_t n_names, size_t *ret)
{
	struct vp_buffer list = {0};
	struct vp_nearest nearest;

	vp_nearest_init(&nearest, (struct vp_slice){text, strlen(text)});
	for (size_t i = 0; i < n_names; i++) {
		if (!strcmp(text, names[i])) {
			*ret = i;
			vp_buffer_deinit(&list);
			return NULL;
		}
		vp_nearest_add(&nearest, names[i]);
		vp_buffer_printf(&list, "%s%s",
				 !i                ? ""
				 : i + 1 < n_names ? ", "
						   : " or ",
				 names[i]);
	}
	VP_AUTO_FREE char *meant = vp_nearest_text(&nearest);
	struct vp_error *error = vp_error_usage("option --%s: expected %s, not '%s'%s", option,
						vp_buffer_text(&list), text, meant);
	vp_buffer_deinit(&list);
	return error;
}

struct vp_error *vp_choose_format(const struct vp_format_words *words, const char *const *names,
				  size_t n_names, const char **ret)
{
	size_t chosen = 0;

	if ((words->format != NULL) + words->json + words->csv > 1)
		return vp_error_usage("more than one output format given");
	if (words->format)
		VP_TRY(vp_choose("format", words->format, names, n_names, &chosen));
	for (size_t i = 0; !words->format && i < n_names; i++)
		if ((words->json && !strncmp(names[i], "json", 4)) ||
		    (words->csv && !strcmp(names[i], "csv")))
			chosen = i;
	*ret = names[chosen];
	return NULL;
}

struct vp_error *vp_choose_table_format(const struct vp_format_words *words, const char **ret)
{
	return vp_choose_format(words, usual_formats, VP_ARRAY_SIZE(usual_formats), ret);
}

struct vp_error *vp_choose_text_or_json(const struct vp_format_words *words, const char **ret)
{
	return vp_choose_format(words, usual_formats, VP_ARRAY_SIZE(usual_formats) - 1, ret);
}
