/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/host/record_flight.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "schema/condition.h"
#include "session/snapshot_limits.h"
#include "store/packet_store.h"

/* Parses a size with K, M or G as powers of 1024, as in perf; errors below `least`. */
static struct vp_error *parse_size(const char *option, const char *text, uint64_t least,
				   uint64_t *ret)
{
	static const char suffixes[] = "KMG";
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	bool good = text[0] >= '0' && text[0] <= '9' && !errno;
	const char *suffix = *end ? strchr(suffixes, *end) : NULL;
	good = good && (!*end || (suffix && !end[1]));
	for (long i = 0; good && suffix && i <= suffix - suffixes; i++)
		good = !__builtin_mul_overflow(value, 1024, &value);
	if (!good || value < least)
		return vp_error_usage("option --%s: expected a size of at least %" PRIu64
				      "M such as 64M, with K, M or G, not '%s'",
				      option, least >> 20, text);
	*ret = value;
	return NULL;
}

static struct vp_error *expect_flight(const struct vp_record_flight *flight)
{
	const char *option = flight->conditions.count ? "snapshot-on"
			     : flight->after          ? "snapshot-after"
			     : flight->every          ? "snapshot-every"
			     : flight->most           ? "snapshot-max"
			     : flight->all            ? "snapshot-size"
			     : flight->left           ? "snapshot-free"
						      : NULL;

	return option ? vp_error_usage("option --%s needs --flight SIZE", option) : NULL;
}

struct vp_error *vp_record_flight_check(struct vp_record_flight *flight)
{
	struct vp_flight_options *options = &flight->options;

	if (!flight->size)
		return expect_flight(flight);
	*options = (struct vp_flight_options){
	    .every_ns = 10000000000ULL,
	    .limits = {.count = flight->most ? flight->most : VP_RECORD_SNAPSHOTS,
		       .bytes = VP_RECORD_SNAPSHOT_BYTES,
		       .free_bytes = VP_SNAPSHOT_FREE_DEFAULT}};
	VP_TRY(parse_size("flight", flight->size, VP_PACKET_STORE_MIN, &options->bytes));
	if (flight->all)
		VP_TRY(parse_size("snapshot-size", flight->all, 1 << 20, &options->limits.bytes));
	if (flight->left)
		VP_TRY(parse_size("snapshot-free", flight->left, 0, &options->limits.free_bytes));
	vp_vec_each (&flight->conditions, text)
		VP_TRY(vp_conditions_add(&options->conditions, *text, strlen(*text)));
	if (flight->after)
		VP_TRY(vp_duration_parse("snapshot-after", flight->after, strlen(flight->after),
					 true, &options->after_ns));
	if (flight->every)
		VP_TRY(vp_duration_parse("snapshot-every", flight->every, strlen(flight->every),
					 true, &options->every_ns));
	return NULL;
}
