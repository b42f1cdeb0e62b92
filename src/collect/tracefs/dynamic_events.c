/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/tracefs/dynamic_events.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "base/vec.h"
#include "collect/tracefs/probe_binary.h"
#include "collect/tracefs/probe_definition.h"
#include "collect/tracefs/probe_kernel.h"
#include "host/host_rules.h"

#define GROUP "vperf_"

enum {
	LIST_MAX = 16 << 20,
	MAX_NAME =
	    56, /* of an event; the kernel allows 63 characters, and a number may be appended */
};

struct event {
	bool of_user;
	char *name;  /* name in the kernel, without the group */
	char *shown; /* "probe:NAME" */
};

struct vp_dynamic_events {
	char *tracing, *kallsyms;
	VP_VEC(struct event) events;
	unsigned leftover;
};

static const char *const lists[] = {"kprobe_events", "uprobe_events"};

/* Appends; 0 or -errno. */
static int write_line(const struct vp_dynamic_events *own, bool of_user, const char *line)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s", own->tracing, lists[of_user]);
	VP_AUTO_CLOSE int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	return fd < 0 ? -errno : vp_fd_write_all(fd, line, strlen(line));
}

/* "p:vperf_123/name place …", "r16:…": the group's process, or 0. */
static int owner_of(struct vp_slice line, struct vp_slice *name)
{
	const char *colon = memchr(line.bytes, ':', line.size);
	size_t left = colon ? (size_t)(line.bytes + line.size - colon - 1) : 0,
	       prefix = strlen(GROUP);

	if (left <= prefix || memcmp(colon + 1, GROUP, prefix) != 0)
		return 0;
	struct vp_cursor cursor = vp_cursor_of(colon + 1, left);
	*name = vp_cursor_word(&cursor);
	const char *slash = memchr(name->bytes, '/', name->size);
	if (!slash)
		return 0;
	size_t digits = (size_t)(slash - name->bytes) - prefix;
	struct vp_cursor number = vp_cursor_of(name->bytes + prefix, digits);
	uint64_t process = vp_cursor_decimal(&number);
	return vp_cursor_ok(&number) && process < INT32_MAX ? (int)process : 0;
}

/* An event in use cannot be removed. */
static void dynamic_events_remove_leftover(struct vp_dynamic_events *own, bool of_user)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s", own->tracing, lists[of_user]);
	struct vp_buffer list = {0};
	struct vp_slice line, name = {0};

	vp_error_free(vp_file_read(path, LIST_MAX, &list));
	struct vp_cursor lines = vp_cursor_of(list.bytes, list.size);
	while (vp_cursor_line(&lines, &line)) {
		int process = owner_of(line, &name);
		bool is_over =
		    process == getpid() || (process && kill(process, 0) && errno == ESRCH);
		if (!is_over)
			continue;
		VP_AUTO_FREE char *order = vp_format("-:%.*s\n", (int)name.size, name.bytes);
		own->leftover += !write_line(own, of_user, order);
	}
	vp_buffer_deinit(&list);
}

struct vp_dynamic_events *vp_dynamic_events_new(const char *tracing, const char *kallsyms)
{
	struct vp_dynamic_events *own = vp_alloc(sizeof(*own));

	own->tracing = vp_strdup(tracing);
	own->kallsyms = vp_strdup(kallsyms);
	for (size_t i = 0; i < VP_ARRAY_SIZE(lists); i++)
		dynamic_events_remove_leftover(own, i);
	return own;
}

/* An event that is still in use is removed by the next recorder. */
void vp_dynamic_events_free(struct vp_dynamic_events *own)
{
	if (!own)
		return;
	vp_vec_each (&own->events, event) {
		VP_AUTO_FREE char *order =
		    vp_format("-:" GROUP "%d/%s\n", (int)getpid(), event->name);
		for (int tries = 0; tries < 20 && write_line(own, event->of_user, order) == -EBUSY;
		     tries++)
			vp_sleep_us(10000);
		free(event->name);
		free(event->shown);
	}
	vp_vec_deinit(&own->events);
	free(own->tracing);
	free(own->kallsyms);
	free(own);
}

unsigned vp_dynamic_events_leftover(const struct vp_dynamic_events *own)
{
	return own->leftover;
}

/* Replaces characters that the kernel does not allow in event names by '_'. */
static char *as_name(const char *text)
{
	char *name = vp_strndup(text, MAX_NAME);

	for (char *c = name; *c; c++)
		if (!isascii((unsigned char)*c) || !isalnum((unsigned char)*c))
			*c = '_';
	return name;
}

/* perf's default group: "probe", or "probe_" and the start of the file's name. */
static char *shown_group(const struct vp_probe_definition *definition)
{
	if (!definition->of_user)
		return vp_strdup("probe");
	const char *slash = strrchr(definition->binary, '/');
	const char *base = slash ? slash + 1 : definition->binary;
	VP_AUTO_FREE char *word = vp_strndup(base, strcspn(base, "-._"));
	VP_AUTO_FREE char *name = as_name(word);
	return vp_format("probe_%s", name);
}

static bool dynamic_events_has_name(const struct vp_dynamic_events *own, const char *name)
{
	vp_vec_each (&own->events, event)
		if (!strcmp(event->name, name))
			return true;
	return false;
}

/* perf's names: FUNCTION, FUNCTION__return, FUNCTION_1. */
static char *event_name(const struct vp_dynamic_events *own,
			const struct vp_probe_definition *definition)
{
	VP_AUTO_FREE char *function = as_name(definition->function);
	VP_AUTO_FREE char *first =
	    definition->event
		? vp_strdup(definition->event)
		: vp_format("%s%s", function, definition->at_return ? "__return" : "");
	char *name = vp_strdup(first);

	for (unsigned number = 1; dynamic_events_has_name(own, name); number++) {
		free(name);
		name = vp_format("%s_%u", first, number);
	}
	return name;
}

/* Default name of an argument: the last word of its expression. */
static char *argument_name(const struct vp_probe_argument *argument, size_t number)
{
	if (argument->name)
		return vp_strdup(argument->name);
	if (!strcmp(argument->what, "$retval") || !strncmp(argument->what, "$arg", 4))
		return vp_strdup(argument->what + 1);
	if (vp_probe_argument_is_raw(argument))
		return vp_format("arg%zu", number);
	const char *last = argument->what;
	for (const char *c = argument->what; *c; c++)
		if (*c == '.' || *c == '>')
			last = c + 1;
	return vp_strdup(last);
}

static struct vp_error *put_arguments(const struct vp_probe_definition *definition,
				      const struct vp_probe_function *function,
				      struct vp_buffer *line)
{
	vp_vec_each (&definition->arguments, argument) {
		size_t number = (size_t)(argument - definition->arguments.at) + 1;
		VP_AUTO_FREE char *name = argument_name(argument, number);
		vp_buffer_printf(line, " %s=", name);
		VP_TRY(function ? vp_probe_function_argument(function, definition, argument, line)
				: vp_probe_binary_argument(definition, argument, line));
	}
	return NULL;
}

/* The part after "p:GROUP/EVENT ": address and parameters. */
static struct vp_error *put_user_location(const struct vp_probe_definition *definition,
					  struct vp_buffer *line)
{
	VP_AUTO_FREE char *path = NULL;
	uint64_t offset;

	VP_TRY(vp_probe_binary_find(definition, &path, &offset));
	vp_buffer_printf(line, "%s:0x%" PRIx64, path, offset);
	return put_arguments(definition, NULL, line);
}

static struct vp_error *put_kernel_location(const struct vp_dynamic_events *own,
					    const struct vp_probe_definition *definition,
					    struct vp_buffer *line)
{
	struct vp_probe_function function;

	VP_TRY(vp_probe_function_find(definition, own->kallsyms, &function));
	vp_buffer_string(line, definition->function);
	if (definition->offset)
		vp_buffer_printf(line, "+0x%" PRIx64, definition->offset);
	struct vp_error *error = put_arguments(definition, &function, line);
	vp_probe_function_deinit(&function);
	return error;
}

/* Reason from tracefs's error log for our last rejected line: "[time] SUBSYSTEM: error: REASON",
 * followed by " Command: LINE"; NULL: none. */
static char *dynamic_events_reason_of(const struct vp_dynamic_events *own, const char *name)
{
	VP_AUTO_FREE char *path = vp_format("%s/error_log", own->tracing);
	struct vp_slice line, why = {0}, found = {0};
	struct vp_buffer log = {0};

	vp_error_free(vp_file_read(path, LIST_MAX, &log));
	struct vp_cursor lines = vp_cursor_of(log.bytes, log.size);
	while (vp_cursor_line(&lines, &line)) {
		const char *error = memmem(line.bytes, line.size, "error: ", 7);
		if (error)
			why = (struct vp_slice){error + 7,
						(size_t)(line.bytes + line.size - error - 7)};
		else if (memmem(line.bytes, line.size, name, strlen(name)))
			found = why;
	}
	char *text = found.size ? vp_strndup(found.bytes, found.size) : NULL;
	vp_buffer_deinit(&log);
	return text;
}

static struct vp_error *dynamic_events_refused(const struct vp_dynamic_events *own,
					       const struct vp_probe_definition *definition,
					       const char *name, int errnum)
{
	VP_AUTO_FREE char *said = dynamic_events_reason_of(own, name);
	VP_AUTO_FREE char *clean = said ? vp_text_cleaned(said) : NULL;

	if (errnum == ENOENT && !clean)
		return vp_error_new(
		    "event '%s': this kernel has no %s (is tracefs mounted at '%s'?)",
		    definition->text, definition->of_user ? "user probes" : "kernel probes",
		    own->tracing);
	const char *lockdown = vp_host_lockdown("/sys");
	if ((errnum == EPERM || errnum == EACCES) && lockdown)
		return vp_error_new("event '%s': this kernel is locked down (%s) and allows no "
				    "probes",
				    definition->text, lockdown);
	if (errnum == EPERM || errnum == EACCES)
		return vp_error_new("event '%s': the kernel allows no probes", definition->text);
	if (clean)
		return vp_error_usage("event '%s': rejected by the kernel: %s", definition->text,
				      clean);
	return vp_error_errno(errnum, "event '%s': rejected by the kernel", definition->text);
}

static struct vp_error *make_event(struct vp_dynamic_events *own,
				   const struct vp_probe_definition *definition,
				   struct vp_buffer *line)
{
	VP_AUTO_FREE char *name = event_name(own, definition);
	VP_AUTO_FREE char *group = shown_group(definition);
	VP_AUTO_FREE char *full = vp_format(GROUP "%d/%s", (int)getpid(), name);

	vp_buffer_printf(line, "%c:%s ", definition->at_return ? 'r' : 'p', full);
	VP_TRY(definition->of_user ? put_user_location(definition, line)
				   : put_kernel_location(own, definition, line));
	vp_buffer_string(line, "\n");
	int result = write_line(own, definition->of_user, vp_buffer_text(line));
	if (result)
		return dynamic_events_refused(own, definition, full, -result);
	vp_vec_push(&own->events, ((struct event){.of_user = definition->of_user,
						  .name = name,
						  .shown = vp_format("%s:%s", group, name)}));
	name = NULL;
	return NULL;
}

struct vp_error *vp_dynamic_events_add(struct vp_dynamic_events *own, const char *text, char **name,
				       char **shown)
{
	struct vp_probe_definition definition;
	struct vp_buffer line = {0};

	VP_TRY(vp_probe_definition_parse(text, &definition));
	struct vp_error *error = make_event(own, &definition, &line);
	vp_buffer_deinit(&line);
	vp_probe_definition_deinit(&definition);
	if (error)
		return error;
	const struct event *event = &own->events.at[own->events.count - 1];
	*name = vp_format(GROUP "%d:%s", (int)getpid(), event->name);
	*shown = vp_strdup(event->shown);
	return NULL;
}
