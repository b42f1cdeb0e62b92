/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The library of babeltrace2, a reader of the Common Trace Format, loaded at run time: only users
 * of such traces need it and GLib. Its functions have the same prototypes from 2.0 to 2.1
 * (tests/unit/test_babeltrace.c compares them with its headers).
 */
#ifndef VP_IMPORT_CTF_BABELTRACE_H
#define VP_IMPORT_CTF_BABELTRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* Bits of a field class. */
#define VP_BT_BOOL (1UL << 0)
#define VP_BT_UNSIGNED (1UL << 3)
#define VP_BT_SIGNED (1UL << 4)
#define VP_BT_STRING (1UL << 9)
#define VP_BT_ARRAY (1UL << 11)

enum { VP_BT_OK = 0, VP_BT_END = 1, VP_BT_FAILED = -1 };
enum { VP_BT_MESSAGE_EVENT = 1 << 2, VP_BT_MESSAGE_DISCARDED = 1 << 5 };
enum { VP_BT_VALUE_STRING = 1 << 6 };
enum { VP_BT_LOG_NONE = 0xff };

struct bt_plugin;
struct bt_component_class_source;
struct bt_component_class_filter;
struct bt_component_source;
struct bt_component_filter;
struct bt_component_sink;
struct bt_connection;
struct bt_port_input;
struct bt_port_output;
struct bt_graph;
struct bt_value;
struct bt_error;
struct bt_error_cause;
struct bt_message;
struct bt_message_iterator;
struct bt_event;
struct bt_event_class;
struct bt_packet;
struct bt_stream;
struct bt_stream_class;
struct bt_trace;
struct bt_clock_class;
struct bt_clock_snapshot;
struct bt_field;
struct bt_field_class;
struct bt_field_class_structure_member;

/* CALL(return type, name without bt_, parameters) */
#define VP_BT_CALLS(CALL)                                                                          \
	CALL(int, plugin_find,                                                                     \
	     (const char *name, int in_env, int in_user, int in_system, int in_static,             \
	      int fail_on_error, const struct bt_plugin **ret))                                    \
	CALL(const struct bt_component_class_source *,                                             \
	     plugin_borrow_source_component_class_by_name_const,                                   \
	     (const struct bt_plugin *plugin, const char *name))                                   \
	CALL(const struct bt_component_class_filter *,                                             \
	     plugin_borrow_filter_component_class_by_name_const,                                   \
	     (const struct bt_plugin *plugin, const char *name))                                   \
	CALL(struct bt_graph *, graph_create, (uint64_t protocol))                                 \
	CALL(void, graph_put_ref, (const struct bt_graph *graph))                                  \
	CALL(int, graph_add_source_component,                                                      \
	     (struct bt_graph * graph, const struct bt_component_class_source *class,              \
	      const char *name, const struct bt_value *parameters, unsigned log_level,             \
	      const struct bt_component_source **ret))                                             \
	CALL(int, graph_add_filter_component,                                                      \
	     (struct bt_graph * graph, const struct bt_component_class_filter *class,              \
	      const char *name, const struct bt_value *parameters, unsigned log_level,             \
	      const struct bt_component_filter **ret))                                             \
	CALL(int, graph_add_simple_sink_component,                                                 \
	     (struct bt_graph * graph, const char *name,                                           \
	      int (*init)(struct bt_message_iterator *, void *),                                   \
	      int (*consume)(struct bt_message_iterator *, void *), void (*finalize)(void *),      \
	      void *context, const struct bt_component_sink **ret))                                \
	CALL(int, graph_connect_ports,                                                             \
	     (struct bt_graph * graph, const struct bt_port_output *from,                          \
	      const struct bt_port_input *to, const struct bt_connection **ret))                   \
	CALL(int, graph_run, (struct bt_graph * graph))                                            \
	CALL(uint64_t, component_source_get_output_port_count,                                     \
	     (const struct bt_component_source *component))                                        \
	CALL(const struct bt_port_output *, component_source_borrow_output_port_by_index_const,    \
	     (const struct bt_component_source *component, uint64_t index))                        \
	CALL(const struct bt_port_input *, component_filter_borrow_input_port_by_index_const,      \
	     (const struct bt_component_filter *component, uint64_t index))                        \
	CALL(const struct bt_port_output *, component_filter_borrow_output_port_by_index_const,    \
	     (const struct bt_component_filter *component, uint64_t index))                        \
	CALL(const struct bt_port_input *, component_sink_borrow_input_port_by_index_const,        \
	     (const struct bt_component_sink *component, uint64_t index))                          \
	CALL(struct bt_value *, value_map_create, (void))                                          \
	CALL(struct bt_value *, value_array_create, (void))                                        \
	CALL(int, value_array_append_string_element, (struct bt_value * array, const char *text))  \
	CALL(int, value_map_insert_entry,                                                          \
	     (struct bt_value * map, const char *key, struct bt_value *value))                     \
	CALL(void, value_put_ref, (const struct bt_value *value))                                  \
	CALL(unsigned, value_get_type, (const struct bt_value *value))                             \
	CALL(const char *, value_string_get, (const struct bt_value *value))                       \
	CALL(const struct bt_error *, current_thread_take_error, (void))                           \
	CALL(uint64_t, error_get_cause_count, (const struct bt_error *error))                      \
	CALL(const struct bt_error_cause *, error_borrow_cause_by_index,                           \
	     (const struct bt_error *error, uint64_t index))                                       \
	CALL(const char *, error_cause_get_message, (const struct bt_error_cause *cause))          \
	CALL(void, error_release, (const struct bt_error *error))                                  \
	CALL(int, message_iterator_next,                                                           \
	     (struct bt_message_iterator * iterator, const struct bt_message ***ret,               \
	      uint64_t *count))                                                                    \
	CALL(unsigned, message_get_type, (const struct bt_message *message))                       \
	CALL(void, message_put_ref, (const struct bt_message *message))                            \
	CALL(const struct bt_event *, message_event_borrow_event_const,                            \
	     (const struct bt_message *message))                                                   \
	CALL(const struct bt_clock_snapshot *, message_event_borrow_default_clock_snapshot_const,  \
	     (const struct bt_message *message))                                                   \
	CALL(unsigned, message_discarded_events_get_count,                                         \
	     (const struct bt_message *message, uint64_t *ret))                                    \
	CALL(uint64_t, clock_snapshot_get_value, (const struct bt_clock_snapshot *snapshot))       \
	CALL(uint64_t, clock_class_get_frequency, (const struct bt_clock_class *clock))            \
	CALL(void, clock_class_get_offset,                                                         \
	     (const struct bt_clock_class *clock, int64_t *seconds, uint64_t *cycles))             \
	CALL(const struct bt_event_class *, event_borrow_class_const,                              \
	     (const struct bt_event *event))                                                       \
	CALL(const struct bt_stream *, event_borrow_stream_const, (const struct bt_event *event))  \
	CALL(const struct bt_packet *, event_borrow_packet_const, (const struct bt_event *event))  \
	CALL(const struct bt_field *, event_borrow_payload_field_const,                            \
	     (const struct bt_event *event))                                                       \
	CALL(const struct bt_field *, event_borrow_specific_context_field_const,                   \
	     (const struct bt_event *event))                                                       \
	CALL(const struct bt_field *, event_borrow_common_context_field_const,                     \
	     (const struct bt_event *event))                                                       \
	CALL(uint64_t, event_class_get_id, (const struct bt_event_class *class))                   \
	CALL(const char *, event_class_get_name, (const struct bt_event_class *class))             \
	CALL(const struct bt_field_class *, event_class_borrow_payload_field_class_const,          \
	     (const struct bt_event_class *class))                                                 \
	CALL(const struct bt_field *, packet_borrow_context_field_const,                           \
	     (const struct bt_packet *packet))                                                     \
	CALL(const struct bt_stream_class *, stream_borrow_class_const,                            \
	     (const struct bt_stream *stream))                                                     \
	CALL(const struct bt_trace *, stream_borrow_trace_const, (const struct bt_stream *stream)) \
	CALL(uint64_t, stream_class_get_id, (const struct bt_stream_class *class))                 \
	CALL(const struct bt_clock_class *, stream_class_borrow_default_clock_class_const,         \
	     (const struct bt_stream_class *class))                                                \
	CALL(const struct bt_value *, trace_borrow_environment_entry_value_by_name_const,          \
	     (const struct bt_trace *trace, const char *name))                                     \
	CALL(unsigned long, field_get_class_type, (const struct bt_field *field))                  \
	CALL(int, field_bool_get_value, (const struct bt_field *field))                            \
	CALL(uint64_t, field_integer_unsigned_get_value, (const struct bt_field *field))           \
	CALL(int64_t, field_integer_signed_get_value, (const struct bt_field *field))              \
	CALL(uint64_t, field_string_get_length, (const struct bt_field *field))                    \
	CALL(const char *, field_string_get_value, (const struct bt_field *field))                 \
	CALL(uint64_t, field_array_get_length, (const struct bt_field *field))                     \
	CALL(const struct bt_field *, field_array_borrow_element_field_by_index_const,             \
	     (const struct bt_field *field, uint64_t index))                                       \
	CALL(const struct bt_field *, field_structure_borrow_member_field_by_index_const,          \
	     (const struct bt_field *field, uint64_t index))                                       \
	CALL(const struct bt_field *, field_structure_borrow_member_field_by_name_const,           \
	     (const struct bt_field *field, const char *name))                                     \
	CALL(unsigned long, field_class_get_type, (const struct bt_field_class *class))            \
	CALL(uint64_t, field_class_integer_get_field_value_range,                                  \
	     (const struct bt_field_class *class))                                                 \
	CALL(unsigned, field_class_integer_get_preferred_display_base,                             \
	     (const struct bt_field_class *class))                                                 \
	CALL(const struct bt_field_class *, field_class_array_borrow_element_field_class_const,    \
	     (const struct bt_field_class *class))                                                 \
	CALL(uint64_t, field_class_structure_get_member_count,                                     \
	     (const struct bt_field_class *class))                                                 \
	CALL(const struct bt_field_class_structure_member *,                                       \
	     field_class_structure_borrow_member_by_index_const,                                   \
	     (const struct bt_field_class *class, uint64_t index))                                 \
	CALL(const char *, field_class_structure_member_get_name,                                  \
	     (const struct bt_field_class_structure_member *member))                               \
	CALL(const struct bt_field_class *, field_class_structure_member_borrow_field_class_const, \
	     (const struct bt_field_class_structure_member *member))

/* One member per function: bt_graph_run() is `graph_run`. */
struct vp_babeltrace {
#define VP_BT_MEMBER(type, name, arguments) type(*name) arguments;
	VP_BT_CALLS(VP_BT_MEMBER)
#undef VP_BT_MEMBER
	const struct bt_plugin *ctf, *utils;
};

/* Loads the library and its CTF reader; never unloaded. Errors: not installed. */
struct vp_error *vp_babeltrace_load(struct vp_babeltrace *ret) VP_MUST_CHECK;

/* Receives a message of a trace. False: stop reading. */
typedef bool (*vp_babeltrace_take)(void *context, const struct bt_message *message);
/* Reads all messages of the CTF trace in directory `path`, in order of time. Errors: not a trace,
 * or damaged; events before the damage were processed. */
struct vp_error *vp_babeltrace_read(const struct vp_babeltrace *babeltrace, const char *path,
				    vp_babeltrace_take take, void *context) VP_MUST_CHECK;

#endif
