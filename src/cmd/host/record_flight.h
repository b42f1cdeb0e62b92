/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flight recorder options of 'vperf record'. */
#ifndef VP_CMD_HOST_RECORD_FLIGHT_H
#define VP_CMD_HOST_RECORD_FLIGHT_H

#include "base/macros.h"
#include "cmd/common/options.h"
#include "session/session.h"

/* Default limits of triggered snapshots, also printed in --help. */
#define VP_RECORD_SNAPSHOTS 100
#define VP_RECORD_SNAPSHOT_BYTES (10ULL << 30)

struct vp_record_flight {
	const char *size; /* NULL: not a flight recorder */
	const char *after, *every;
	const char *all, *left; /* --snapshot-size, --snapshot-free */
	struct vp_texts conditions;
	uint64_t most;                    /* 0: not given */
	struct vp_flight_options options; /* parsed values */
};

#define VP_RECORD_FLIGHT_OPTIONS(flight)                                                           \
	{0,                                                                                        \
	 "flight",                                                                                 \
	 VP_OPTION_TEXT,                                                                           \
	 &(flight)->size,                                                                          \
	 "SIZE",                                                                                   \
	 "flight recorder: keep the last SIZE (e.g. 64M) of data in memory; dump it on vperf "     \
	 "snapshot, SIGUSR2, a --snapshot-on trigger, or exit"},                                   \
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
	     "delay between trigger and snapshot (default: 0)"},                                   \
	    {0,                                                                                    \
	     "snapshot-every",                                                                     \
	     VP_OPTION_TEXT,                                                                       \
	     &(flight)->every,                                                                     \
	     "TIME",                                                                               \
	     "minimum time between triggered snapshots (default: 10s)"},                           \
	    {0,                                                                                    \
	     "snapshot-max",                                                                       \
	     VP_OPTION_COUNT,                                                                      \
	     &(flight)->most,                                                                      \
	     "N",                                                                                  \
	     "at most N triggered snapshots (default: 100)"},                                      \
	    {0,                                                                                    \
	     "snapshot-size",                                                                      \
	     VP_OPTION_TEXT,                                                                       \
	     &(flight)->all,                                                                       \
	     "SIZE",                                                                               \
	     "at most SIZE for all triggered snapshots (default: 10G)"},                           \
	{                                                                                          \
		0, "snapshot-free", VP_OPTION_TEXT, &(flight)->left, "SIZE",                       \
		    "take no triggered snapshot that leaves less than SIZE of the disk free "      \
		    "(default: 1G, or a tenth of a smaller file system)"                           \
	}

/* Parses the values. Errors: an invalid value, or an option that requires --flight. */
struct vp_error *vp_record_flight_check(struct vp_record_flight *flight) VP_MUST_CHECK;

#endif
