/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/xen_events.h"

#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/nearest.h"
#include "schema/event_class.h"
#include "xen/event_types.h"
#include "xen/trace.h"

#define SYSTEM "xentrace"
#define OTHER "other"

enum {
	WIDE = 0x100,            /* TRC_64_FLAG: addresses have 64 bits */
	CLASS_BITS = 0x0fff0000, /* class of an event */
	MASK_BITS = 0x0ffff000,  /* class and subclass */
	NO_TYPE = UINT32_MAX,
	NEVER = 0x0001f000,     /* class gen: for readers of the buffers only … */
	TRACE_IRQ = 0x0001f004, /* … except this one */
};

static const struct event_type {
	uint32_t number;
	const char *name, *words;
} types[] = {
#define TYPE(number, name, words) {number, name, words},
    VP_XEN_EVENT_TYPES(TYPE)
#undef TYPE
};

/* xentrace's names. */
static const struct {
	const char *name;
	uint32_t bits;
} classes[] = {
    {"gen", 0x0001f000},   {"sched", 0x0002f000}, {"dom0op", 0x0004f000}, {"hvm", 0x0008f000},
    {"mem", 0x0010f000},   {"pv", 0x0020f000},    {"shadow", 0x0040f000}, {"hw", 0x0080f000},
    {"guest", 0x0800f000}, {"all", 0x0ffff000},
};

struct vp_hypervisor_events {
	uint32_t classes; /* completely selected classes */
	uint32_t mask;
	bool chosen[VP_ARRAY_SIZE(types)]; /* selected by name */
	struct vp_map type_of_number;
	vp_event_classes own;                  /* by type; the last one is for all other events */
	uint16_t id[VP_ARRAY_SIZE(types) + 1]; /* in the recording; 0: not selected */
	struct vp_buffer records, taken;
	uint64_t lost;
};

static bool xen_events_is_chosen(const struct vp_hypervisor_events *events, size_t type)
{
	return events->chosen[type] || types[type].number & events->classes & CLASS_BITS;
}

static bool choose_class(struct vp_hypervisor_events *events, const char *name)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(classes); i++) {
		if (strcmp(classes[i].name, name) != 0)
			continue;
		events->classes |= classes[i].bits & CLASS_BITS;
		events->mask |= classes[i].bits;
		return true;
	}
	return false;
}

static bool choose_types(struct vp_hypervisor_events *events, const char *pattern)
{
	bool found = false;

	for (size_t i = 0; i < VP_ARRAY_SIZE(types); i++) {
		if (fnmatch(pattern, types[i].name, 0) != 0)
			continue;
		found = events->chosen[i] = true;
		events->mask |= types[i].number & MASK_BITS;
	}
	return found;
}

static struct vp_error *no_event(const char *name)
{
	struct vp_nearest nearest;

	vp_nearest_init(&nearest, (struct vp_slice){name, strlen(name)});
	for (size_t i = 0; i < VP_ARRAY_SIZE(classes); i++)
		vp_nearest_add(&nearest, classes[i].name);
	for (size_t i = 0; i < VP_ARRAY_SIZE(types); i++)
		vp_nearest_add(&nearest, types[i].name);
	VP_AUTO_FREE char *near = vp_nearest_text(&nearest);
	return vp_error_usage("option --event: Xen traces no event '" SYSTEM ":%s'%s; classes of "
			      "events are gen, sched, dom0op, hvm, mem, pv, shadow, hw, guest, all",
			      name, near);
}

static void xen_events_events_free(struct vp_hypervisor_events *events)
{
	if (!events)
		return;
	vp_map_deinit(&events->type_of_number);
	vp_event_classes_deinit(&events->own);
	vp_buffer_deinit(&events->records);
	vp_buffer_deinit(&events->taken);
	free(events);
}

static struct vp_error *xen_events_choose(struct vp_hypervisor_events *events,
					  const char *const *names, size_t n_names)
{
	for (size_t i = 0; i < n_names; i++)
		if (!choose_class(events, names[i]) && !choose_types(events, names[i]))
			return no_event(names[i]);
	return NULL;
}

static struct vp_error *xen_events_events_open(const char *const *names, size_t n_names,
					       struct vp_hypervisor_events **ret)
{
	struct vp_hypervisor_events *events = vp_alloc(sizeof(*events));
	struct vp_error *error = xen_events_choose(events, names, n_names);
	bool inserted;

	for (size_t i = 0; i < VP_ARRAY_SIZE(types); i++)
		vp_map_insert(&events->type_of_number, types[i].number, (uint32_t)i, &inserted);
	if (error)
		xen_events_events_free(events);
	else
		*ret = events;
	return error;
}

static struct vp_error *xen_events_add_field(struct vp_event_class *event, const char *name,
					     char letter)
{
	const struct vp_event_field field = {.name = (char *)name,
					     .shape = letter == 'r' ? VP_EVENT_SEQUENCE
								    : VP_EVENT_INTEGER,
					     .size = letter == 'q' || letter == 'a' ? 8 : 4,
					     .is_signed = letter == 's',
					     .is_hex = letter != 'd' && letter != 's'};

	return vp_event_class_add_field(event, &field);
}

/* "name:letter …" */
static struct vp_error *add_words(struct vp_event_class *event, const char *words)
{
	while (*words) {
		size_t size = strcspn(words, ":");
		VP_AUTO_FREE char *name = vp_strndup(words, size);
		char letter = words[size + 1];
		if (letter == 'v') {
			VP_TRY(xen_events_add_field(event, "domid", 'd'));
			VP_TRY(xen_events_add_field(event, "vcpuid", 'd'));
		} else {
			VP_TRY(xen_events_add_field(event, name, letter));
		}
		words += size + 2;
		words += *words == ' ';
	}
	return NULL;
}

static struct vp_error *xen_events_add_class(vp_event_classes *to, const char *name,
					     const char *words)
{
	VP_AUTO_FREE char *full = vp_format(SYSTEM ":%s", name);
	struct vp_event_class *event;

	VP_TRY(vp_event_classes_add(to, full, &event));
	VP_TRY(xen_events_add_field(event, "pcpu", 'd'));
	VP_TRY(xen_events_add_field(event, "vm", 'd'));
	VP_TRY(xen_events_add_field(event, "vcpu", 'd'));
	return add_words(event, words);
}

static struct vp_error *events_define(struct vp_hypervisor_events *events, vp_event_classes *to)
{
	const size_t count = VP_ARRAY_SIZE(types);

	for (size_t i = 0; i <= count; i++) {
		const char *name = i < count ? types[i].name : OTHER;
		const char *words = i < count ? types[i].words : "number:x words:r";
		VP_TRY(xen_events_add_class(&events->own, name, words));
		if (i < count && !xen_events_is_chosen(events, i))
			continue;
		VP_TRY(xen_events_add_class(to, name, words));
		events->id[i] = to->at[to->count - 1].id;
		events->own.at[i].id = events->id[i];
	}
	return NULL;
}

static unsigned words_of(char letter, uint32_t number)
{
	return letter == 'q' || (letter == 'a' && number & WIDE) ? 2 : 1;
}

/* Whether a record with that number and that many words matches its type. */
static bool xen_events_fits(const struct event_type *type, const struct vp_xen_record *record)
{
	unsigned wanted = 0;

	for (const char *at = strchr(type->words, ':'); at; at = strchr(at + 1, ':')) {
		if (at[1] == 'r')
			return record->n_words >= wanted;
		wanted += words_of(at[1], record->id);
	}
	return record->n_words == wanted;
}

static void xen_events_put_word(struct vp_buffer *out, uint64_t value, uint8_t size)
{
	const struct vp_event_field field = {.shape = VP_EVENT_INTEGER, .size = size};

	vp_event_put_integer(out, &field, value);
}

static void put_rest(struct vp_buffer *out, const struct vp_xen_record *record, unsigned from)
{
	const struct vp_event_field field = {.shape = VP_EVENT_SEQUENCE, .size = sizeof(uint32_t)};

	vp_event_put_bytes(out, &field, record->words + from,
			   (record->n_words - from) * sizeof(uint32_t));
}

static void put_words(struct vp_buffer *out, const char *words, const struct vp_xen_record *record)
{
	unsigned next = 0;

	for (const char *at = strchr(words, ':'); at; at = strchr(at + 1, ':')) {
		unsigned count = words_of(at[1], record->id);
		if (at[1] == 'r') {
			put_rest(out, record, next);
			return;
		}
		uint64_t value = record->words[next];
		if (count == 2)
			value |= (uint64_t)record->words[next + 1] << 32;
		if (at[1] == 'v') {
			xen_events_put_word(out, value >> 16, sizeof(uint32_t));
			value &= UINT16_MAX;
		}
		xen_events_put_word(out, value, at[1] == 'q' || at[1] == 'a' ? 8 : 4);
		next += count;
	}
}

/* Type of the record's number; NO_TYPE: unknown, or of another form. */
static uint32_t xen_events_type_of(const struct vp_hypervisor_events *events,
				   const struct vp_xen_record *record)
{
	const uint32_t *found = vp_map_find(&events->type_of_number, record->id);

	if (!found)
		found = vp_map_find(&events->type_of_number, record->id & ~(uint32_t)WIDE);
	return found && xen_events_fits(&types[*found], record) ? *found : NO_TYPE;
}

/* Some records only inform readers of the buffers. */
static bool xen_events_is_event(uint32_t number)
{
	return (number & MASK_BITS) != NEVER || number == TRACE_IRQ;
}

void vp_xen_events_add(struct vp_hypervisor_events *events, const struct vp_xen_traced *traced,
		       uint32_t vm, uint32_t vcpu)
{
	const struct vp_xen_record *record = &traced->record;
	uint32_t type = xen_events_type_of(events, record);
	size_t begin = events->records.size;
	struct vp_buffer *out = &events->records;

	if (type == NO_TYPE &&
	    (!(record->id & events->classes & CLASS_BITS) || !xen_events_is_event(record->id)))
		return;
	if (type != NO_TYPE && !events->id[type])
		return;
	vp_event_begin(out, &events->own.at[type == NO_TYPE ? VP_ARRAY_SIZE(types) : type],
		       traced->time);
	xen_events_put_word(out, traced->pcpu, sizeof(uint32_t));
	xen_events_put_word(out, vm, sizeof(uint32_t));
	xen_events_put_word(out, vcpu, sizeof(uint32_t));
	if (type == NO_TYPE) {
		xen_events_put_word(out, record->id, sizeof(uint32_t));
		put_rest(out, record, 0);
	} else {
		put_words(out, types[type].words, record);
	}
	vp_error_free(vp_event_end(out, begin)); /* cannot fail: at most eleven words */
}

uint32_t vp_xen_events_mask(const struct vp_hypervisor_events *events)
{
	return events->mask;
}

void vp_xen_events_note_lost(struct vp_hypervisor_events *events, uint64_t lost)
{
	events->lost = lost;
}

static struct vp_buffer *events_take(struct vp_hypervisor_events *events)
{
	struct vp_buffer gathered = events->records;

	events->records = events->taken;
	events->records.size = 0;
	events->taken = gathered;
	return &events->taken;
}

static uint64_t xen_events_events_lost(const struct vp_hypervisor_events *events)
{
	return events->lost;
}

const struct vp_hypervisor_events_ops *vp_xen_events_ops(void)
{
	static const struct vp_hypervisor_events_ops ops = {.system = SYSTEM,
							    .open = xen_events_events_open,
							    .define = events_define,
							    .take = events_take,
							    .lost = xen_events_events_lost,
							    .free = xen_events_events_free};

	return &ops;
}
