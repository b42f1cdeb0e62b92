/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/pmu.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/vec.h"
#include "schema/event.h"
#include "schema/interval.h"

#define DEVICES "bus/event_source/devices"
#define TRACEPOINTS "kernel/tracing/events"
enum { MAX_BYTES = 4096 };

struct pmu {
	const char *event; /* the complete name, for messages */
	char *name, *folder;
};

static struct vp_error *unknown_pmu_event(const char *event, char *reason,
					  const struct vp_nearest *nearest)
{
	VP_AUTO_FREE char *near = nearest ? vp_nearest_text(nearest) : vp_strdup("");
	struct vp_error *error = vp_error_new("unknown event '%s': %s%s", event, reason, near);

	free(reason);
	return error;
}

/* Reads a file of one line, without the newline; false: unreadable. */
static bool pmu_read_line(const char *folder, const char *name, struct vp_buffer *text)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s", folder, name);

	text->size = 0;
	VP_AUTO_ERROR struct vp_error *error = vp_file_read(path, MAX_BYTES, text);
	while (!error && text->size && isspace((unsigned char)text->bytes[text->size - 1]))
		text->size--;
	vp_buffer_text(text);
	return !error;
}

static bool pmu_take_number(const char *text, uint64_t *value)
{
	struct vp_cursor cursor = vp_cursor_of(text, strlen(text));

	if (strncmp(text, "0x", 2)) {
		*value = vp_cursor_decimal(&cursor);
	} else {
		cursor.next += 2;
		*value = vp_cursor_hex(&cursor);
	}
	return vp_cursor_ok(&cursor) && !vp_cursor_left(&cursor);
}

static bool read_number(const char *folder, const char *name, uint64_t *value)
{
	struct vp_buffer text = {0};
	bool found =
	    pmu_read_line(folder, name, &text) && pmu_take_number(vp_buffer_text(&text), value);

	vp_buffer_deinit(&text);
	return found;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Calls `each` for the entries of a folder in order; not for a missing folder. */
static void pmu_each_entry(const char *folder, void (*each)(void *context, const char *name),
			   void *context)
{
	struct dirent **entries;
	int n = scandir(folder, &entries, is_visible, alphasort);

	for (int i = 0; i < n; i++) {
		each(context, entries[i]->d_name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

/* Other files of an event have its scale, its unit and whether it is a snapshot. */
static bool pmu_is_event(const char *file)
{
	const char *dot = strrchr(file, '.');

	return !dot || (strcmp(dot, ".scale") && strcmp(dot, ".unit") && strcmp(dot, ".snapshot") &&
			strcmp(dot, ".per-pkg"));
}

static void compare_pmu_name(void *nearest, const char *name)
{
	if (pmu_is_event(name))
		vp_nearest_add(nearest, name);
}

static void pmu_compare_names(const char *folder, const char *kind, struct vp_nearest *nearest)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s", folder, kind);

	pmu_each_entry(path, compare_pmu_name, nearest);
}

static struct vp_error *unknown_term(const struct pmu *pmu, const char *term)
{
	struct vp_nearest nearest;

	vp_nearest_init(&nearest, (struct vp_slice){term, strlen(term)});
	pmu_compare_names(pmu->folder, "events", &nearest);
	pmu_compare_names(pmu->folder, "format", &nearest);
	return unknown_pmu_event(
	    pmu->event, vp_format("PMU '%s' has no event or format term '%s'", pmu->name, term),
	    &nearest);
}

static uint64_t *pmu_field_of(const char *name, struct vp_event *event)
{
	return !strcmp(name, "config")    ? &event->config
	       : !strcmp(name, "config1") ? &event->config1
	       : !strcmp(name, "config2") ? &event->config2
					  : NULL;
}

/* Distributes the bits of a value to a list of ranges such as 0-7,32-35; false: the value has
 * more bits. */
static bool deposit_bits(const char *ranges, uint64_t value, uint64_t *field)
{
	for (const char *next = ranges; *next;) {
		char *end;
		unsigned long first = strtoul(next, &end, 10), last = first;
		if (end == next)
			return false;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long bit = first; bit <= last && bit < 64; bit++, value >>= 1)
			*field |= (value & 1) << bit;
		next = end + (*end == ',');
		if (*end && *end != ',')
			return false;
	}
	return !value;
}

/* A term with a format defined by the PMU, such as config1:0-7. */
static struct vp_error *set_formatted(const struct pmu *pmu, const char *term, uint64_t value,
				      char *format, struct vp_event *event)
{
	char *colon = strchr(format, ':');

	if (colon)
		*colon = 0;
	uint64_t *field = colon ? pmu_field_of(format, event) : NULL;
	if (!field)
		return unknown_pmu_event(
		    pmu->event,
		    vp_format("PMU '%s': term '%s' has an unsupported format", pmu->name, term),
		    NULL);
	return deposit_bits(colon + 1, value, field)
		   ? NULL
		   : unknown_pmu_event(pmu->event,
				       vp_format("%#" PRIx64 " does not fit into term '%s', %s:%s",
						 value, term, format, colon + 1),
				       NULL);
}

static struct vp_error *set_term(const struct pmu *pmu, const char *term, const char *number,
				 struct vp_event *event)
{
	VP_AUTO_FREE char *file = vp_format("format/%s", term);
	struct vp_buffer format = {0};
	uint64_t value = 1, *field = pmu_field_of(term, event);
	struct vp_error *error = NULL;

	if (number && !pmu_take_number(number, &value))
		error = unknown_pmu_event(
		    pmu->event,
		    vp_format("expected a number for term '%s', not '%s'", term, number), NULL);
	else if (pmu_read_line(pmu->folder, file, &format))
		error = set_formatted(pmu, term, value, format.bytes, event);
	else if (field && number)
		*field = value;
	else
		error = unknown_term(pmu, term);
	vp_buffer_deinit(&format);
	return error;
}

/* Terms separated by commas; terms of a named event (`within`) cannot name another event. */
static struct vp_error *pmu_set_terms(const struct pmu *pmu, char *terms, bool within,
				      struct vp_event *event)
{
	for (char *term; (term = strsep(&terms, ","));) {
		char *number = strchr(term, '=');
		if (number)
			*number++ = 0;
		VP_AUTO_FREE char *file = vp_format("events/%s", term);
		struct vp_buffer named = {0};
		bool is_named = !number && !within && pmu_read_line(pmu->folder, file, &named);
		struct vp_error *error = is_named ? pmu_set_terms(pmu, named.bytes, true, event)
						  : set_term(pmu, term, number, event);
		vp_buffer_deinit(&named);
		if (error)
			return error;
	}
	return NULL;
}

static struct vp_error *unknown_pmu(const char *sysfs, const struct pmu *pmu)
{
	struct vp_nearest nearest;

	vp_nearest_init(&nearest, (struct vp_slice){pmu->name, strlen(pmu->name)});
	pmu_compare_names(sysfs, DEVICES, &nearest);
	return unknown_pmu_event(pmu->event, vp_format("this host has no PMU '%s'", pmu->name),
				 &nearest);
}

static struct vp_error *pmu_find_event(const char *sysfs, const struct pmu *pmu, char *terms,
				       struct vp_event *event)
{
	VP_AUTO_FREE char *cpumask = vp_format("%s/cpumask", pmu->folder);
	uint64_t type;

	if (!read_number(pmu->folder, "type", &type) || type > UINT32_MAX)
		return unknown_pmu(sysfs, pmu);
	if (!access(cpumask, F_OK))
		return vp_error_new("event '%s': PMU '%s' is an uncore PMU (it has a cpumask): "
				    "uncore PMUs are not supported",
				    pmu->event, pmu->name);
	event->type = (uint32_t)type;
	return pmu_set_terms(pmu, terms, false, event);
}

static struct vp_error *resolve_pmu(const char *sysfs, const char *name, struct vp_event *event)
{
	const char *first = strchr(name, '/'), *last = strchr(first + 1, '/');
	VP_AUTO_FREE char *terms = vp_strndup(first + 1, (size_t)(last - first) - 1);
	struct pmu pmu = {.event = name, .name = vp_strndup(name, (size_t)(first - name))};

	pmu.folder = vp_format("%s/" DEVICES "/%s", sysfs, pmu.name);
	struct vp_error *error = pmu_find_event(sysfs, &pmu, terms, event);
	free(pmu.folder);
	free(pmu.name);
	return error;
}

/* The tracepoints of a system, prefixed with its name. */
struct system {
	const char *name;
	struct vp_nearest *nearest;
};

static void pmu_compare_tracepoint(void *context, const char *name)
{
	const struct system *system = context;
	VP_AUTO_FREE char *whole = vp_format("%s:%s", system->name, name);

	vp_nearest_add(system->nearest, whole);
}

static struct vp_error *resolve_tracepoint(const char *sysfs, const char *name,
					   struct vp_event *event)
{
	const char *colon = strchr(name, ':');
	VP_AUTO_FREE char *all = vp_format("%s/" TRACEPOINTS, sysfs);
	VP_AUTO_FREE char *system_name = vp_strndup(name, (size_t)(colon - name));
	VP_AUTO_FREE char *folder = vp_format("%s/%s", all, system_name);
	VP_AUTO_FREE char *id = vp_format("%s/id", colon + 1);
	struct vp_nearest nearest;
	const struct system system = {system_name, &nearest};

	event->type = PERF_TYPE_TRACEPOINT;
	if (read_number(folder, id, &event->config))
		return NULL;
	vp_nearest_init(&nearest, (struct vp_slice){name, strlen(name)});
	vp_event_look_near(&nearest);
	pmu_each_entry(folder, pmu_compare_tracepoint, (void *)&system);
	return unknown_pmu_event(name,
				 access(all, R_OK)
				     ? vp_format("tracepoints cannot be read in '%s'", all)
				     : vp_strdup("no such tracepoint"),
				 &nearest);
}

struct vp_error *vp_pmu_resolve(const char *sysfs, const char *name, struct vp_event *event)
{
	if (!event->of_machine)
		return NULL;
	VP_TRY(strchr(name, '/') ? resolve_pmu(sysfs, name, event)
				 : resolve_tracepoint(sysfs, name, event));
	event->of_machine = false;
	return NULL;
}

static struct vp_error *resolve_at(const char *sysfs, const char *label,
				   struct vp_recipe_position position, const char *name,
				   struct vp_event *event)
{
	VP_AUTO_ERROR struct vp_error *error = vp_pmu_resolve(sysfs, name, event);

	return error ? vp_recipe_fail(label, position, vp_strdup(vp_error_message(error))) : NULL;
}

/* A PMU type for events of guest kernels may be missing: perf then reports an error. */
static void resolve_native(const char *sysfs, struct vp_event *event)
{
	struct vp_error *error = vp_pmu_resolve(sysfs, event->machine_name, event);

	if (error)
		event->type = UINT32_MAX;
	vp_error_free(error);
}

struct vp_error *vp_pmu_resolve_recipe(const char *sysfs, const char *label,
				       struct vp_recipe *recipe)
{
	VP_TRY(
	    resolve_at(sysfs, label, recipe->unit_position, recipe->unit_name, &recipe->trigger));
	if (recipe->unit == VP_UNIT_EVENT && recipe->trigger.type == PERF_TYPE_TRACEPOINT)
		return vp_recipe_fail(
		    label, recipe->unit_position,
		    vp_format("'%s' is a tracepoint: tracepoints can be counted but cannot be the "
			      "interval trigger; expected time, exits or a counter",
			      recipe->unit_name));
	vp_vec_each (&recipe->events, event) {
		if (event->event.machine_name)
			resolve_native(sysfs, &event->event);
		else
			VP_TRY(
			    resolve_at(sysfs, label, event->position, event->name, &event->event));
	}
	return NULL;
}

struct listing {
	const char *devices, *pmu;
	void (*each)(void *context, const char *name);
	void *context;
};

static void pmu_list_event(void *context, const char *event)
{
	const struct listing *listing = context;
	VP_AUTO_FREE char *name = vp_format("%s/%s/", listing->pmu, event);

	if (pmu_is_event(event))
		listing->each(listing->context, name);
}

static void list_pmu(void *context, const char *pmu)
{
	struct listing *listing = context;
	VP_AUTO_FREE char *folder = vp_format("%s/%s/events", listing->devices, pmu);
	VP_AUTO_FREE char *cpumask = vp_format("%s/%s/cpumask", listing->devices, pmu);

	listing->pmu = pmu;
	if (access(cpumask, F_OK))
		pmu_each_entry(folder, pmu_list_event, listing);
}

void vp_pmu_each(const char *sysfs, void (*each)(void *context, const char *name), void *context)
{
	VP_AUTO_FREE char *devices = vp_format("%s/" DEVICES, sysfs);
	struct listing listing = {.devices = devices, .each = each, .context = context};

	pmu_each_entry(devices, list_pmu, &listing);
}
