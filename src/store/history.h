/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A store: the directory in which vperfd keeps its recordings. Each is a directory named by its
 * start time. There is no separate index, so a crash cannot leave an inconsistent one.
 *
 *   20261126T055305Z          a recording; 20261126T055305Z-2 if that name was taken
 *   20261126T060102Z.flight   a snapshot of the flight recorder
 *   20261126T060102Z.samples  samples at a high rate, which a finding caused
 *   flight                    the flight recorder's own directory
 *   findings                  a line for each finding that caused something (kept_findings.h)
 *   spool                     closed recordings for other programs (spool.h)
 *   lock                      locked while a vperfd runs
 */
#ifndef VP_STORE_HISTORY_H
#define VP_STORE_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/vm.h"

enum vp_kept_kind {
	VP_KEPT_RECORDING,
	VP_KEPT_SNAPSHOT,
	VP_KEPT_SAMPLES,
	VP_KEPT_REMAINS, /* an incomplete recording, or the rest of an interrupted removal */
	VP_KEPT_FOREIGN, /* not created by vperfd: never removed */
	VP_KEPT_KINDS
};

/* Suffixes of names. */
#define VP_KEPT_FLIGHT_SUFFIX ".flight"
#define VP_KEPT_SAMPLES_SUFFIX ".samples"
#define VP_KEPT_REMOVED_SUFFIX ".removed"
#define VP_HISTORY_LOCK "lock"
#define VP_HISTORY_FLIGHT "flight"
#define VP_HISTORY_FINDINGS "findings"
#define VP_HISTORY_SPOOL "spool"

struct vp_kept {
	char *name, *path;
	enum vp_kept_kind kind;
	char *problem; /* reason why it is unreadable, or NULL; then the fields below are valid */
	bool is_open;  /* a recorder is writing it */
	bool is_interrupted; /* its recorder was killed: `end` is that of its last packet */
	uint64_t start, end; /* host CLOCK_MONOTONIC, ns */
	char *boot;          /* vp_boot_id() of the host then; "": unknown */
	int64_t realtime_offset;
	uint64_t sorted;      /* the date by which the store is sorted, ns */
	uint64_t named;       /* time in its name, CLOCK_REALTIME, ns; 0: none */
	uint64_t bytes;       /* disk space */
	uint64_t names_bytes; /* of it: all but the streams; most of that is written at once */
	vp_vms vms;
};

typedef VP_VEC(struct vp_kept) vp_history;

/* Reads the store in directory `path`, sorted by age, oldest first, also if the clock was set back
 * meanwhile. Errors: no such directory. Unreadable entries are included, with the reason. */
struct vp_error *vp_history_read(const char *path, vp_history *ret) VP_MUST_CHECK;
void vp_history_deinit(vp_history *history);

/* "recording", "snapshot", … */
const char *vp_kept_kind_name(enum vp_kept_kind kind);
/* Start and end, CLOCK_REALTIME, ns; for an unreadable one, from its name. */
uint64_t vp_kept_start(const struct vp_kept *kept);
uint64_t vp_kept_end(const struct vp_kept *kept);
/* Whether both were recorded in the same boot of the host. */
bool vp_kept_is_same_boot(const struct vp_kept *before, const struct vp_kept *after);
/* Gap between two recordings, ns; negative: they overlap. Within a boot it is by
 * CLOCK_MONOTONIC: sleep of the host and setting the clock do not count. */
int64_t vp_kept_gap(const struct vp_kept *before, const struct vp_kept *after);
/* How far CLOCK_REALTIME was set between the starts of two recordings of one boot, or the host
 * slept, ns; 0: by less than a second. */
int64_t vp_kept_jump(const struct vp_kept *before, const struct vp_kept *after);
/* The previous recording (of that kind) before entry `index`, or NULL. */
const struct vp_kept *vp_history_before(const vp_history *history, size_t index);

/* Disk space of a file or a directory tree, bytes. */
uint64_t vp_disk_bytes(const char *path);
/* Whether a recorder holds the lock of the directory. */
bool vp_kept_is_locked(const char *path);

enum { VP_KEPT_NAME_SIZE = 64 };
/* A free name in the store at `path` for an entry that starts at `realtime`, with that suffix (""
 * for a recording). Returns `name`. */
const char *vp_history_name(const char *path, uint64_t realtime, const char *suffix,
			    char name[VP_KEPT_NAME_SIZE]);

#endif
