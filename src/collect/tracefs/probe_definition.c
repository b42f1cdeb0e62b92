/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/tracefs/probe_definition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const struct {
	const char *begin;
	bool of_user, at_return;
} kinds[] = {{"kprobe:", false, false},
	     {"kretprobe:", false, true},
	     {"uprobe:", true, false},
	     {"uretprobe:", true, true}};

bool vp_probe_is_definition(const char *text)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(kinds); i++)
		if (!strncmp(text, kinds[i].begin, strlen(kinds[i].begin)))
			return true;
	return false;
}

static struct vp_error *probe_definition_expected(const struct vp_probe_definition *own,
						  const char *what)
{
	return vp_error_usage("event '%s': expected %s", own->text, what);
}

/* Removes the kind and a program's BINARY: from the text; function names have no colon. */
static struct vp_error *parse_kind(struct vp_probe_definition *own, const char **at, size_t *size)
{
	const char *rest = own->text;

	for (size_t i = 0; i < VP_ARRAY_SIZE(kinds); i++) {
		size_t length = strlen(kinds[i].begin);
		if (strncmp(own->text, kinds[i].begin, length) != 0)
			continue;
		own->of_user = kinds[i].of_user;
		own->at_return = kinds[i].at_return;
		rest += length;
	}
	*at = rest;
	*size = strcspn(rest, " \t");
	if (!own->of_user)
		return NULL;
	const char *colon = memrchr(rest, ':', *size);
	if (!colon || colon == rest)
		return probe_definition_expected(own, "uprobe:BINARY:FUNCTION");
	own->binary = vp_strndup(rest, (size_t)(colon - rest));
	*size -= (size_t)(colon + 1 - rest);
	*at = colon + 1;
	return NULL;
}

static bool is_event_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

	return name[0] && strchr(letters, name[0]) &&
	       !name[strspn(name,
			    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")];
}

/* [EVENT=]FUNCTION[+OFFSET|%return] */
static struct vp_error *parse_location(struct vp_probe_definition *own, const char *text,
				       size_t size)
{
	const char *equals = memchr(text, '=', size);
	char *end;

	if (equals) {
		own->event = vp_strndup(text, (size_t)(equals - text));
		if (!is_event_name(own->event))
			return probe_definition_expected(
			    own, "letters, digits and '_' as the event's name");
		size -= (size_t)(equals + 1 - text);
		text = equals + 1;
	}
	own->function = vp_strndup(text, size);
	char *mark = strpbrk(own->function, "+%");
	if (mark && *mark == '%') {
		if (strcmp(mark, "%return") != 0)
			return probe_definition_expected(own,
							 "%return after the function, if anything");
		own->at_return = true;
	} else if (mark) {
		errno = 0;
		own->offset = strtoull(mark + 1, &end, 0);
		if (errno || end == mark + 1 || *end || mark[1] == '-')
			return probe_definition_expected(own, "a number of bytes after FUNCTION+");
	}
	if (mark)
		*mark = 0;
	if (!own->function[0])
		return probe_definition_expected(own, own->of_user ? "uprobe:BINARY:FUNCTION"
								   : "kprobe:FUNCTION");
	return own->at_return && own->offset
		   ? probe_definition_expected(own, "a function without an offset before %return")
		   : NULL;
}

/* [NAME=]VALUE[:TYPE] */
static struct vp_error *parse_argument(struct vp_probe_definition *own, const char *text,
				       size_t size)
{
	const char *equals = memchr(text, '=', size), *end = text + size;
	struct vp_probe_argument *argument = vp_vec_push_slot(&own->arguments);

	*argument = (struct vp_probe_argument){0};
	if (equals) {
		argument->name = vp_strndup(text, (size_t)(equals - text));
		if (!is_event_name(argument->name))
			return probe_definition_expected(
			    own, "letters, digits and '_' as an argument's name");
		text = equals + 1;
	}
	const char *colon = memrchr(text, ':', (size_t)(end - text));
	if (colon) {
		argument->type = vp_strndup(colon + 1, (size_t)(end - colon - 1));
		if (!argument->type[0])
			return probe_definition_expected(own, "a type after an argument's ':'");
		end = colon;
	}
	argument->what = vp_strndup(text, (size_t)(end - text));
	return argument->what[0]
		   ? NULL
		   : probe_definition_expected(own, "arguments of the form [NAME=]VALUE[:TYPE]");
}

static struct vp_error *probe_definition_parse(struct vp_probe_definition *own)
{
	const char *at;
	size_t size;

	VP_TRY(parse_kind(own, &at, &size));
	VP_TRY(parse_location(own, at, size));
	for (const char *word = at + size; *(word += strspn(word, " \t")); word += size) {
		size = strcspn(word, " \t");
		VP_TRY(parse_argument(own, word, size));
	}
	return NULL;
}

struct vp_error *vp_probe_definition_parse(const char *text, struct vp_probe_definition *ret)
{
	*ret = (struct vp_probe_definition){.text = text};
	struct vp_error *error = probe_definition_parse(ret);
	if (error)
		vp_probe_definition_deinit(ret);
	return error;
}

void vp_probe_definition_deinit(struct vp_probe_definition *definition)
{
	vp_vec_each (&definition->arguments, argument) {
		free(argument->name);
		free(argument->what);
		free(argument->type);
	}
	vp_vec_deinit(&definition->arguments);
	free(definition->binary);
	free(definition->event);
	free(definition->function);
	*definition = (struct vp_probe_definition){0};
}

bool vp_probe_argument_is_raw(const struct vp_probe_argument *argument)
{
	return strchr("$%@+-\\0123456789", argument->what[0]) != NULL;
}
