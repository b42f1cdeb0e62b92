/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A store: the directory in which vperfd keeps its recordings, each a directory that is named by
 * the host's time at which it began. The directory is its own index: what is in it is found by
 * reading it, so that a crash leaves nothing that disagrees with it.
 *
 *   20261126T055305Z          a recording; 20261126T055305Z-2 if that name was taken
 *   20261126T060102Z.flight   a snapshot of the flight recorder
 *   20261126T060102Z.samples  samples at a high rate, which a finding caused
 *   flight                    the flight recorder's own directory
 *   findings                  a line for each finding that caused something (kept_findings.h)
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
	VP_KEPT_REMAINS, /* of a recording that was never complete, or whose removal was cut off */
	VP_KEPT_FOREIGN, /* not vperfd's: never removed */
	VP_KEPT_KINDS
};

/* Endings of names. */
#define VP_KEPT_FLIGHT_SUFFIX ".flight"
#define VP_KEPT_SAMPLES_SUFFIX ".samples"
#define VP_KEPT_REMOVED_SUFFIX ".removed"
#define VP_HISTORY_LOCK "lock"
#define VP_HISTORY_FLIGHT "flight"
#define VP_HISTORY_FINDINGS "findings"

struct vp_kept {
	char *name, *path;
	enum vp_kept_kind kind;
	char *problem;       /* why it cannot be read, or NULL: then the next ones are known */
	bool is_open;        /* a recorder writes it */
	bool is_interrupted; /* its recorder did not end it: `end` is that of its last packet */
	uint64_t start, end; /* host CLOCK_MONOTONIC, ns */
	int64_t realtime_offset;
	uint64_t named; /* the time in its name, CLOCK_REALTIME, ns; 0: none */
	uint64_t bytes; /* of the disk */
	vp_vms vms;
};

typedef VP_VEC(struct vp_kept) vp_history;

/* Reads the store in directory `path`, the oldest first. Errors: no such directory. Entries that
 * cannot be read are in the list, with the reason. */
struct vp_error *vp_history_read(const char *path, vp_history *ret) VP_MUST_CHECK;
void vp_history_deinit(vp_history *history);

/* "recording", "snapshot", … */
const char *vp_kept_kind_name(enum vp_kept_kind kind);
/* When it began and ended, CLOCK_REALTIME, ns; of one that cannot be read, by its name. */
uint64_t vp_kept_start(const struct vp_kept *kept);
uint64_t vp_kept_end(const struct vp_kept *kept);
/* Whether both were made since the host was last booted. */
bool vp_kept_is_same_boot(const struct vp_kept *before, const struct vp_kept *after);
/* ns without a recording between two; negative: they overlap. */
int64_t vp_kept_gap(const struct vp_kept *before, const struct vp_kept *after);
/* The recording (of that kind) before number `index`, or NULL. */
const struct vp_kept *vp_history_before(const vp_history *history, size_t index);

/* Bytes of the disk that a file, or a directory with all that is in it, takes. */
uint64_t vp_disk_bytes(const char *path);
/* Whether a recorder has locked the directory. */
bool vp_kept_is_locked(const char *path);

enum { VP_KEPT_NAME_SIZE = 64 };
/* The name of what begins at `realtime` in the store at `path`, with that ending ("" of a
 * recording): one that is not taken. Returns `name`. */
const char *vp_history_name(const char *path, uint64_t realtime, const char *suffix,
			    char name[VP_KEPT_NAME_SIZE]);

#endif
