/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the guest watcher and the writing of guest maps (guest_dump.c). */
#ifndef VP_COLLECT_GUESTS_GUEST_WATCH_PRIVATE_H
#define VP_COLLECT_GUESTS_GUEST_WATCH_PRIVATE_H

#include "base/macros.h"
#include "base/map.h"
#include "base/notices.h"
#include "base/vec.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_hits.h"
#include "collect/guests/guest_state.h"
#include "collect/guests/guest_watch.h"
#include "collect/guests/pack_cache.h"

/* Bytes of a guest's symbol maps that are kept in memory, that of a lost reader included. */
#define VP_GUEST_MAX_TEXT (256ULL << 20)

/* Leaving: its memory is not what it was; what is known so far is being written. */
enum guest_state { GUEST_FINDING, GUEST_READY, GUEST_CHECKING, GUEST_LEAVING, GUEST_LOST };

/* State of writing a symbol map and unwind tables: reader not asked yet, writing one, writing the
 * other. */
enum guest_writing { WRITING_NOTHING, WRITING_SOON, WRITING_MAP, WRITING_TABLES };

struct guest {
	uint32_t vm; /* its number in the recording */
	uint32_t pid;
	uint32_t number; /* for its users */
	enum guest_state state;
	struct vp_guest_reader *reader;
	int text;      /* where the reader writes the symbol map */
	int last_text; /* what was written when it was lost; -1: nothing */
	struct vp_guest_finding finding;
	struct vp_guest_state memory;
	uint64_t nowhere;     /* tasks that were in no slot, until the slots were looked at last */
	uint64_t asked, next; /* when it was asked; when it is to be asked again */
	uint64_t busy_since;  /* the reader does not listen since then; 0: it does */
	uint64_t lost_at;     /* what had been found was lost then; 0: it was not */
	uint64_t lost_ns;     /* how long it was lost before it was found again … */
	char *lost_why;       /* … and why, the last time */
	unsigned tries;       /* since its kernel was known last */
	bool is_protected; /* its memory is kept from the host: there is no use in trying again */
	bool ended;        /* the VM did: its map is read once more, and then nothing */
	bool put_away;     /* its map is where it belongs, and kept here no more */
	uint64_t added;    /* when looking for its kernel began */
	unsigned quiet_tries;  /* number of failures before the user is warned */
	bool reported_missing; /* and the warning was given */
	bool searching;        /* its memory is gone through for the kernel: bytes, of all */
	uint64_t searched, to_search;
	uint64_t banner_gpa; /* where a scan found its kernel the last time; 0: not known */
	struct vp_guest_hits hits;
	char *name, *problem;
	/* State of the last time that maps were written: */
	enum guest_writing writing;
	bool has_map;   /* `text`, up to map_size */
	off_t map_size; /* unwind tables follow it */
	bool has_tables;
	struct vp_error *lacks_tables; /* why not */
};

/* A process whose mappings are read again soon: programs map libraries after their start. */
struct vp_seen_lately {
	uint64_t task, first, due; /* first, due: ns */
	uint32_t vm, pid;
	unsigned times;
};

struct vp_guest_watch {
	VP_VEC(struct vp_guest_watch_client) users;
	vp_notices *notices;
	const struct vp_guest_access *access;
	void *lister; /* the access's; NULL: see lister_problem */
	char *lister_problem;
	char *cache;           /* the user's folder of kernel packs */
	const char *directory; /* the recording's, which may be renamed */
	bool symbols;          /* go into symbol maps */
	vp_pack_texts packs;
	VP_VEC(struct guest) guests;
	size_t n_runtimes;  /* of the processes that are followed, or more; 0 is exact */
	struct vp_map seen; /* VMM's pid << 32 | tgid → hash of the process's name */
	VP_VEC(struct vp_seen_lately) lately;
	uint64_t second, seen_in_fallback;
};

/* The guest of that VM, or NULL. */
struct guest *vp_guest_of(const struct vp_guest_watch *watch, uint32_t vm);
/* Nothing of the guest is known by its memory from now on; `error` is freed. */
void vp_guest_lose(struct vp_guest_watch *watch, struct guest *guest, struct vp_error *error);
/* Takes the answer that the guest's reader owes, if it has come within that time. */
void vp_guest_poll(struct vp_guest_watch *watch, struct guest *guest, int timeout_ms);
/* Memory may have been plugged in or out: it is looked for again. */
struct vp_error *vp_guest_refresh_memory(struct vp_guest_watch *watch,
					 struct guest *guest) VP_MUST_CHECK;
/* Makes the reader's output the guest's last map. */
void vp_guest_keep_text(struct guest *guest);
uint64_t vp_guest_text_size(int text);
uint64_t vp_guest_max_text(const struct guest *guest);

#endif
