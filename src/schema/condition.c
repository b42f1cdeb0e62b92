/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/condition.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/nearest.h"
#include "base/text.h"

static const struct {
	const char *name;
	bool has_limit;
} conditions[VP_CONDITIONS] = {[VP_CONDITION_STEAL] = {"steal", true},
			       [VP_CONDITION_WAKEUP] = {"wakeup", true},
			       [VP_CONDITION_EXIT] = {"exit", true},
			       [VP_CONDITION_THROTTLED] = {"throttled", false}};

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};

/* Longer times are mistakes, or would overflow sums. */
#define LONGEST_NS (3600 * 1000000000ULL)
/* Limit of a number in units of 1e-9, with the smallest unit of time. */
#define MAX_NUMBER ((__uint128_t)LONGEST_NS * 1000000000)

static struct vp_slice trimmed(struct vp_slice text)
{
	while (text.size && (text.bytes[0] == ' ' || text.bytes[0] == '\t'))
		text.bytes++, text.size--;
	while (text.size && (text.bytes[text.size - 1] == ' ' || text.bytes[text.size - 1] == '\t'))
		text.size--;
	return text;
}

/* Parses digits with a fraction, in units of 1e-9, in which an hour's nanoseconds exceed 64 bits;
 * false: malformed, or too large. */
static bool condition_take_number(struct vp_slice *text, __uint128_t *ret)
{
	__uint128_t value = 0;
	uint64_t unit = 1000000000;
	bool has_point = false, has_digit = false;

	for (; text->size; text->bytes++, text->size--) {
		char c = text->bytes[0];
		if (c == '.' && !has_point) {
			has_point = true;
			continue;
		}
		if (c < '0' || c > '9')
			break;
		has_digit = true;
		if (has_point)
			unit /= 10;
		/* Digits after the ninth are ignored. */
		uint64_t digit = (uint64_t)(c - '0') * (has_point ? unit : 1000000000);
		if (!has_point)
			value *= 10;
		value += digit;
		if (value > MAX_NUMBER)
			return false;
	}
	*ret = value;
	return has_digit;
}

static bool parse_duration(struct vp_slice text, uint64_t *ret)
{
	__uint128_t value;

	if (!condition_take_number(&text, &value))
		return false;
	text = trimmed(text);
	for (size_t i = 0; i < VP_ARRAY_SIZE(units); i++) {
		if (!vp_slice_is(text, units[i].name))
			continue;
		__uint128_t ns = value * units[i].ns / 1000000000;
		*ret = (uint64_t)ns;
		return ns <= LONGEST_NS;
	}
	return false;
}

static char *condition_clean(struct vp_slice text)
{
	VP_AUTO_FREE char *raw = vp_strndup(text.bytes, text.size);

	return vp_text_cleaned(raw);
}

struct vp_error *vp_duration_parse(const char *option, const char *text, size_t size, bool may_be_0,
				   uint64_t *ret)
{
	struct vp_slice slice = trimmed((struct vp_slice){text, size});

	if (may_be_0 && vp_slice_is(slice, "0")) {
		*ret = 0;
		return NULL;
	}
	if (parse_duration(slice, ret) && (*ret || may_be_0))
		return NULL;
	VP_AUTO_FREE char *word = condition_clean(slice);
	return vp_error_usage("option --%s: expected a time of at most 3600s such as 10ms, with "
			      "ns, us, ms or s, not '%s'",
			      option, word);
}

static struct vp_error *find_condition(struct vp_slice name, enum vp_condition *ret)
{
	struct vp_nearest nearest;

	vp_nearest_init(&nearest, name);
	for (int i = 0; i < VP_CONDITIONS; i++) {
		if (vp_slice_is(name, conditions[i].name)) {
			*ret = (enum vp_condition)i;
			return NULL;
		}
		vp_nearest_add(&nearest, conditions[i].name);
	}
	VP_AUTO_FREE char *near = vp_nearest_text(&nearest);
	VP_AUTO_FREE char *word = condition_clean(name);
	return vp_error_usage(
	    "option --snapshot-on: expected steal>TIME, wakeup>TIME, exit>TIME or "
	    "throttled, not '%s'%s",
	    word, near);
}

struct vp_error *vp_conditions_add(struct vp_conditions *into, const char *text, size_t size)
{
	const char *sign = memchr(text, '>', size);
	struct vp_slice name = {text, sign ? (size_t)(sign - text) : size};
	enum vp_condition which = 0;
	uint64_t ns = 0;

	VP_TRY(find_condition(trimmed(name), &which));
	if (conditions[which].has_limit && !sign)
		return vp_error_usage("option --snapshot-on: %s needs a time: %s>10ms",
				      conditions[which].name, conditions[which].name);
	if (!conditions[which].has_limit && sign)
		return vp_error_usage("option --snapshot-on: %s takes no time",
				      conditions[which].name);
	if (sign)
		VP_TRY(vp_duration_parse("snapshot-on", sign + 1, size - (size_t)(sign + 1 - text),
					 false, &ns));
	if (into->wanted[which])
		return vp_error_usage("option --snapshot-on: %s is given twice",
				      conditions[which].name);
	into->wanted[which] = true;
	into->ns[which] = ns;
	return NULL;
}

char *vp_condition_text(const struct vp_conditions *from, enum vp_condition which)
{
	uint64_t ns = from->ns[which];
	size_t unit = VP_ARRAY_SIZE(units) - 1;

	if (!conditions[which].has_limit)
		return vp_strdup(conditions[which].name);
	while (unit && ns % units[unit].ns)
		unit--;
	return vp_format("%s>%" PRIu64 "%s", conditions[which].name, ns / units[unit].ns,
			 units[unit].name);
}
