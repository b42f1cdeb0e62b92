/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the guest watch and guest_dump.c, which writes symbol maps. */
#ifndef VP_COLLECT_GUESTS_GUEST_WATCH_PRIVATE_H
#define VP_COLLECT_GUESTS_GUEST_WATCH_PRIVATE_H

#include "base/macros.h"
#include "base/map.h"
#include "base/notices.h"
#include "base/vec.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_hits.h"
#include "collect/guests/guest_retry.h"
#include "collect/guests/guest_state.h"
#include "collect/guests/guest_watch.h"
#include "collect/guests/host_fetch.h"
#include "collect/guests/pack_cache.h"

/* Limit for the symbol maps of a guest in memory, including that of a lost reader. */
#define VP_GUEST_MAX_TEXT (256ULL << 20)

/* GUEST_LEAVING: its memory has changed; the results so far are being written. */
enum guest_state { GUEST_FINDING, GUEST_READY, GUEST_CHECKING, GUEST_LEAVING, GUEST_LOST };

/* Progress of writing symbol map and unwind tables: nothing, reader not asked yet, writing one,
 * writing the other. */
enum guest_writing { WRITING_NOTHING, WRITING_SOON, WRITING_MAP, WRITING_TABLES };

struct guest {
	uint32_t vm; /* recording number of the VM */
	uint32_t pid;
	uint32_t number; /* number for clients */
	enum guest_state state;
	struct vp_guest_reader *reader;
	int text;      /* file in which the reader writes the symbol map */
	int last_text; /* the map written when the reader was lost; -1: none */
	struct vp_guest_finding finding;
	struct vp_guest_state memory;
	uint64_t nowhere;            /* tasks outside all slots at the last refresh of the slots */
	uint64_t asked, next;        /* time of the last request; time of the next one */
	uint64_t busy_since;         /* since then, the reader accepts no requests; 0: it does */
	uint64_t lost_at;            /* time at which the kernel was lost; 0: not lost */
	uint64_t lost_ns;            /* total time without the kernel … */
	char *lost_why;              /* … and the last reason */
	struct vp_guest_retry retry; /* of a lost guest */
	bool has_new_vcpu;           /* samples are of a vCPU that was not online at the search */
	unsigned vcpu_tries;         /* number of searches because of that … */
	uint64_t vcpu_due;           /* … and the earliest time of the next one */
	bool is_protected;           /* its memory is protected from the host: no retries */
	bool ended;                  /* the VM ended: its map is read once more, then nothing */
	bool put_away;               /* its map was moved to the recording */
	uint64_t added;              /* start of the search for its kernel */
	unsigned quiet_tries;        /* number of failures before a warning */
	bool reported_missing;       /* the warning was given */
	bool searching; /* a scan for the kernel is in progress: bytes done, and in total */
	uint64_t searched, to_search;
	uint64_t banner_gpa; /* where the last scan found its kernel; 0: unknown */
	bool unwinding;      /* stacks of the current request */
	struct vp_guest_hits hits;
	char *name, *problem;
	/* The last write of symbol maps: */
	enum guest_writing writing;
	bool has_map;   /* `text`, up to map_size */
	off_t map_size; /* unwind tables follow the map */
	bool has_tables;
	struct vp_error *lacks_tables; /* reason for missing unwind tables */
};

/* A process whose mappings will be read again: programs map libraries after their start. */
struct vp_seen_lately {
	uint64_t task, first, due; /* first, due: ns */
	uint32_t vm, pid;
	unsigned times;
};

struct vp_guest_watch {
	VP_VEC(struct vp_guest_watch_client) users;
	vp_notices *notices;
	bool is_quiet; /* see vp_guest_watch_be_quiet() */
	const struct vp_guest_access *access;
	void *lister; /* of the access operations; NULL: see lister_problem */
	char *lister_problem;
	char *cache;           /* the user's cache of kernel packs */
	const char *directory; /* of the recording; may be renamed */
	bool symbols;          /* write symbols to symbol maps */
	vp_pack_texts packs;
	struct vp_host_fetch *fetch; /* files that readers lack */
	VP_VEC(struct guest) guests;
	bool sampled;       /* samples of guests are taken */
	bool any_lost;      /* a guest may be in GUEST_LOST */
	size_t n_runtimes;  /* upper bound of the number of followed processes; 0 is exact */
	struct vp_map seen; /* VMM's pid << 32 | tgid → hash of the process's name */
	VP_VEC(struct vp_seen_lately) lately;
	uint64_t second, seen_in_fallback;
};

/* The guest of that VM, or NULL. */
struct guest *vp_guest_of(const struct vp_guest_watch *watch, uint32_t vm);
/* Drops all results from the guest's memory; `error` is freed. */
void vp_guest_drop_results(struct vp_guest_watch *watch, struct guest *guest,
			   struct vp_error *error);
/* Processes the pending reply of the guest's reader, if it arrives within that time. */
void vp_guest_poll(struct vp_guest_watch *watch, struct guest *guest, int timeout_ms);
/* Reads the memory slots again: memory may have been plugged or unplugged. */
struct vp_error *vp_guest_refresh_memory(struct vp_guest_watch *watch,
					 struct guest *guest) VP_MUST_CHECK;
/* Keeps the reader's output as the guest's last map. */
void vp_guest_keep_text(struct guest *guest);
uint64_t vp_guest_text_size(int text);
uint64_t vp_guest_max_text(const struct guest *guest);

#endif
