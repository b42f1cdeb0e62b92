/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of 'vperf record' that make it a flight recorder. */
#ifndef VP_CMD_RECORD_FLIGHT_H
#define VP_CMD_RECORD_FLIGHT_H

#include "cmd/options.h"
#include "recording/session.h"

struct vp_record_flight {
	const char *size; /* NULL: it is none */
	const char *after, *every;
	struct vp_texts conditions;
	uint64_t most;
	struct vp_flight_options options; /* what these say */
};

#define VP_RECORD_FLIGHT_OPTIONS(flight)                                                           \
	{0,                                                                                        \
	 "flight",                                                                                 \
	 VP_OPTION_TEXT,                                                                           \
	 &(flight)->size,                                                                          \
	 "SIZE",                                                                                   \
	 "keep the latest records in SIZE of memory (64M), write them when asked: vperf "          \
	 "snapshot, SIGUSR2, --snapshot-on; at the end in any case"},                              \
	    {0,                                                                                    \
	     "snapshot-on",                                                                        \
	     VP_OPTION_TEXTS,                                                                      \
	     &(flight)->conditions,                                                                \
	     "CONDITION",                                                                          \
	     "take a snapshot when steal>TIME, wakeup>TIME, exit>TIME or throttled; can be "       \
	     "repeated"},                                                                          \
	    {0,                                                                                    \
	     "snapshot-after",                                                                     \
	     VP_OPTION_TEXT,                                                                       \
	     &(flight)->after,                                                                     \
	     "TIME",                                                                               \
	     "so long after the condition (default: 0)"},                                          \
	    {0,                                                                                    \
	     "snapshot-every",                                                                     \
	     VP_OPTION_TEXT,                                                                       \
	     &(flight)->every,                                                                     \
	     "TIME",                                                                               \
	     "by conditions not sooner than TIME after another (default: 10s)"},                   \
	{                                                                                          \
		0, "snapshot-max", VP_OPTION_COUNT, &(flight)->most, "N",                          \
		    "by conditions at most N snapshots (default: no limit)"                        \
	}

/* Sets `options`. Errors: an option's value, or one that needs --flight. */
struct vp_error *vp_record_flight_check(struct vp_record_flight *flight) VP_MUST_CHECK;

#endif
