/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/model/model_groups.h"

#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/file.h"
#include "stats/data.h"

enum { LARGEST_FILE = 1 << 20 };

static void add_up(struct vp_model_groups *groups, const struct vp_linear *model)
{
	for (size_t j = 0; j < model->inputs.at.count; j++) {
		const struct vp_linear_term *term = &model->terms[j];
		struct vp_model_group *group = &groups->at.at[term->group];
		group->contribution += term->contribution;
		group->part += term->coefficient * term->mean;
		group->members++;
	}
}

void vp_model_groups_propose(struct vp_model_groups *groups, struct vp_linear *model,
			     const struct vp_data *data)
{
	size_t count = vp_linear_group(model, data);

	*groups = (struct vp_model_groups){0};
	for (size_t i = 0; i < count; i++)
		vp_vec_push(&groups->at, (struct vp_model_group){0});
	add_up(groups, model);
	for (size_t j = 0; j < model->inputs.at.count; j++) {
		struct vp_model_group *group = &groups->at.at[model->terms[j].group];
		const char *name = model->inputs.at.at[j].name;
		if (!group->name && group->members > 1)
			group->name = vp_format("%s and %zu more", name, group->members - 1);
		else if (!group->name)
			group->name = vp_strdup(name);
	}
}

/* Adds the column's inputs to the group; false if no column matches. */
static bool take_members(struct vp_linear *model, const struct vp_data *data, const char *pattern,
			 uint32_t group)
{
	bool found = false;

	for (size_t i = 0; i < data->columns.count; i++) {
		if (fnmatch(pattern, data->columns.at[i].name, 0) &&
		    strcmp(pattern, data->columns.at[i].name))
			continue;
		found = true;
		for (size_t j = 0; j < model->inputs.at.count; j++)
			if (model->inputs.at.at[j].column == i)
				model->terms[j].group = group;
	}
	return found;
}

static char *trim(char *text)
{
	text += strspn(text, " \t");
	for (size_t n = strlen(text); n && strchr(" \t\r", text[n - 1]); n--)
		text[n - 1] = 0;
	return text;
}

static struct vp_error *take_group(struct vp_model_groups *groups, struct vp_linear *model,
				   const struct vp_data *data, char *line, const char *where)
{
	char *colon, *rest;

	line[strcspn(line, "#")] = 0;
	if (!*trim(line))
		return NULL;
	colon = strchr(line, ':');
	if (!colon)
		return vp_error_new("%s: expected 'NAME: COLUMN, COLUMN …'", where);
	*colon = 0;
	uint32_t group = (uint32_t)groups->at.count;
	vp_vec_push(&groups->at, ((struct vp_model_group){.name = vp_strdup(trim(line))}));
	for (char *member = strtok_r(colon + 1, ",", &rest); member;
	     member = strtok_r(NULL, ",", &rest)) {
		member = trim(member);
		if (!take_members(model, data, member, group))
			return vp_error_new("%s: no column '%s'", where, member);
	}
	return NULL;
}

static struct vp_error *model_groups_take_lines(struct vp_model_groups *groups,
						struct vp_linear *model, const struct vp_data *data,
						const struct vp_buffer *text, const char *path)
{
	struct vp_cursor cursor = vp_cursor_of(text->bytes, text->size);
	struct vp_slice slice;

	for (size_t number = 1; vp_cursor_line(&cursor, &slice); number++) {
		VP_AUTO_FREE char *line = vp_strndup(slice.bytes, slice.size);
		VP_AUTO_FREE char *where = vp_format("%s:%zu", path, number);
		VP_TRY(take_group(groups, model, data, line, where));
	}
	return NULL;
}

struct vp_error *vp_model_groups_read(struct vp_model_groups *groups, const char *path,
				      struct vp_linear *model, const struct vp_data *data)
{
	struct vp_buffer text = {0};

	*groups = (struct vp_model_groups){0};
	for (size_t j = 0; j < model->inputs.at.count; j++)
		model->terms[j].group = UINT32_MAX;
	struct vp_error *error = vp_file_read(path, LARGEST_FILE, &text);
	if (!error)
		error = model_groups_take_lines(groups, model, data, &text, path);
	vp_buffer_deinit(&text);
	if (error) {
		vp_model_groups_deinit(groups);
		return error;
	}
	for (size_t j = 0; j < model->inputs.at.count; j++) {
		if (model->terms[j].group != UINT32_MAX)
			continue;
		model->terms[j].group = (uint32_t)groups->at.count;
		vp_vec_push(&groups->at, ((struct vp_model_group){
					     .name = vp_strdup(model->inputs.at.at[j].name)}));
	}
	add_up(groups, model);
	return NULL;
}

void vp_model_groups_deinit(struct vp_model_groups *groups)
{
	vp_vec_each (&groups->at, group)
		free(group->name);
	vp_vec_deinit(&groups->at);
}
