/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/ctf/babeltrace.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/macros.h"

#define LIBRARY "libbabeltrace2.so.0"

static const struct {
	const char *name;
	size_t offset; /* in struct vp_babeltrace */
} calls[] = {
#define CALL(type, name, arguments) {"bt_" #name, offsetof(struct vp_babeltrace, name)},
    VP_BT_CALLS(CALL)
#undef CALL
};

struct vp_error *vp_babeltrace_load(struct vp_babeltrace *ret)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return vp_error_new("traces in the Common Trace Format are read by babeltrace2's "
				    "library, which cannot be loaded (%s): install it (Debian: "
				    "libbabeltrace2-0)",
				    dlerror());
	for (size_t i = 0; i < VP_ARRAY_SIZE(calls); i++) {
		void *found = dlsym(library, calls[i].name);
		if (!found)
			return vp_error_new("the library '%s' has no function '%s'", LIBRARY,
					    calls[i].name);
		memcpy((char *)ret + calls[i].offset, &found, sizeof(found));
	}
	/* Only plugins installed with the library: plugins from the environment are not run. */
	if (ret->plugin_find("ctf", 0, 0, 1, 1, 0, &ret->ctf) != VP_BT_OK ||
	    ret->plugin_find("utils", 0, 0, 1, 1, 0, &ret->utils) != VP_BT_OK)
		return vp_error_new("babeltrace2's plugins 'ctf' and 'utils' cannot be loaded: "
				    "they belong to '%s'",
				    LIBRARY);
	return NULL;
}

/* A trace that is being read. */
struct reading {
	const struct vp_babeltrace *babeltrace;
	struct bt_graph *graph;
	vp_babeltrace_take take;
	void *context;
};

static int consume(struct bt_message_iterator *iterator, void *context)
{
	const struct reading *reading = context;
	const struct vp_babeltrace *bt = reading->babeltrace;
	const struct bt_message **messages;
	uint64_t count;
	bool goes_on = true;

	int status = bt->message_iterator_next(iterator, &messages, &count);
	if (status != VP_BT_OK)
		return status;
	for (uint64_t i = 0; i < count; i++) {
		goes_on = goes_on && reading->take(reading->context, messages[i]);
		bt->message_put_ref(messages[i]);
	}
	return goes_on ? VP_BT_OK : VP_BT_END;
}

/* Adds the source component, with {"inputs": [path]}. */
static bool babeltrace_add_source(const struct reading *reading, const char *path,
				  const struct bt_component_source **ret)
{
	const struct vp_babeltrace *bt = reading->babeltrace;
	struct bt_value *parameters = bt->value_map_create(), *inputs = bt->value_array_create();

	bool good = parameters && inputs && !bt->value_array_append_string_element(inputs, path) &&
		    !bt->value_map_insert_entry(parameters, "inputs", inputs) &&
		    !bt->graph_add_source_component(
			reading->graph,
			bt->plugin_borrow_source_component_class_by_name_const(bt->ctf, "fs"),
			"trace", parameters, VP_BT_LOG_NONE, ret);
	bt->value_put_ref(inputs);
	bt->value_put_ref(parameters);
	return good;
}

/* Connects its streams, merged by time, to a sink that calls consume(). */
static bool connect(struct reading *reading, const char *path)
{
	const struct vp_babeltrace *bt = reading->babeltrace;
	const struct bt_component_source *source;
	const struct bt_component_filter *muxer;
	const struct bt_component_sink *sink;

	if (!reading->graph || !babeltrace_add_source(reading, path, &source) ||
	    bt->graph_add_filter_component(
		reading->graph,
		bt->plugin_borrow_filter_component_class_by_name_const(bt->utils, "muxer"), "muxer",
		NULL, VP_BT_LOG_NONE, &muxer) ||
	    bt->graph_add_simple_sink_component(reading->graph, "sink", NULL, consume, NULL,
						reading, &sink))
		return false;
	uint64_t streams = bt->component_source_get_output_port_count(source);
	/* The muxer adds an input port after each connection. */
	for (uint64_t i = 0; i < streams; i++)
		if (bt->graph_connect_ports(
			reading->graph,
			bt->component_source_borrow_output_port_by_index_const(source, i),
			bt->component_filter_borrow_input_port_by_index_const(muxer, i), NULL))
			return false;
	return !bt->graph_connect_ports(
	    reading->graph, bt->component_filter_borrow_output_port_by_index_const(muxer, 0),
	    bt->component_sink_borrow_input_port_by_index_const(sink, 0), NULL);
}

/* Its first message has the cause. */
static struct vp_error *why(const struct vp_babeltrace *bt, const char *path)
{
	const struct bt_error *error = bt->current_thread_take_error();
	struct vp_error *ret;

	if (error && bt->error_get_cause_count(error))
		ret = vp_error_new(
		    "'%s' cannot be read as a CTF trace: babeltrace2: %s", path,
		    bt->error_cause_get_message(bt->error_borrow_cause_by_index(error, 0)));
	else
		ret = vp_error_new("'%s' cannot be read as a CTF trace", path);
	if (error)
		bt->error_release(error);
	return ret;
}

struct vp_error *vp_babeltrace_read(const struct vp_babeltrace *babeltrace, const char *path,
				    vp_babeltrace_take take, void *context)
{
	struct reading reading = {.babeltrace = babeltrace,
				  .graph = babeltrace->graph_create(0),
				  .take = take,
				  .context = context};
	struct vp_error *error = NULL;

	if (!connect(&reading, path) || babeltrace->graph_run(reading.graph) != VP_BT_OK)
		error = why(babeltrace, path);
	babeltrace->graph_put_ref(reading.graph);
	return error;
}
