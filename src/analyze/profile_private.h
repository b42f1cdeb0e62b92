/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the views share: the profile while it is being made. */
#ifndef VP_ANALYZE_PROFILE_PRIVATE_H
#define VP_ANALYZE_PROFILE_PRIVATE_H

#include "analyze/key_set.h"
#include "analyze/profile.h"

/* What a row is found by; a column that does not matter is VP_NONE here. */
struct vp_row_key {
	uint32_t part, kind, function, module, process, pid, vm, vcpu;
};

/* Everything about a sample but its address: kernel or user side of one process of one machine. */
struct vp_context {
	uint32_t part;
	uint32_t kind;  /* of its rows */
	uint32_t vm;    /* of a guest sample, else VP_NONE */
	uint32_t vcpu;  /* number, or VP_NONE */
	uint32_t space; /* of the machine's names, or VP_NONE */
	uint32_t process, pid;
	uint32_t kernel;    /* 0, 1 */
	uint32_t hidden;    /* 0, 1: filtered out */
	uint32_t by_memory; /* 0, 1: the guest's memory told the process */
};

/* What an address space is looked up by. */
struct vp_space_key {
	uint64_t id; /* root or pid */
	uint32_t vm; /* VP_NONE: the host */
	uint32_t by_pid;
};

/* The address space of a (machine, root or pid), and the host times it is good for. */
struct vp_space_slot {
	uint64_t from, to;
	uint32_t space;
	uint32_t process, pid;
};

/* A context, and what it was found by. */
struct vp_context_slot {
	uint64_t id;   /* root or pid */
	uint64_t root; /* of a guest sample with a pid, or 0 */
	uint64_t from, to;
	uint32_t vm, vcpu, mode, comm, part;
	uint32_t by_pid;
	uint32_t context; /* VP_NONE: there is none yet */
};

struct vp_row_slot {
	uint64_t start; /* of the function … */
	uint32_t size;  /* … and how many bytes of it this is good for; 0: the slot is free */
	uint32_t context;
	uint32_t row; /* in the low bits; above it the route, and whether there is no name */
} __attribute__((packed, aligned(4)));

/* The slots of one hash: as many as a line of the processor's cache holds. */
enum { VP_ROW_SLOTS = 3 };
struct vp_row_set {
	struct vp_row_slot slots[VP_ROW_SLOTS];
} __attribute__((aligned(64)));

/* A sample that waits for its slots to come from memory. */
struct vp_pending {
	struct vp_row_set *set;
	uint64_t ip, time, weight;
	uint32_t context;
	bool guest;
};
enum { VP_PENDING = 48 };

/* Parts of vp_row_slot.row. The highest row number stands for "not shown". */
#define VP_ROW_BITS 29
#define VP_ROW_MASK ((1u << VP_ROW_BITS) - 1)
#define VP_ROW_UNNAMED (1u << 31)
#define VP_ROW_ROUTE(slot) ((slot) >> VP_ROW_BITS & 3)

/* The stacks of samples, while they are counted. */
struct vp_stacks {
	struct vp_key_set node_keys;
	VP_VEC(uint64_t) samples; /* by node */
	VP_VEC(uint64_t) totals;  /* by row */
	VP_VEC(uint64_t) seen_in; /* by row: number of the last stack that had it */
	uint64_t number;          /* of the stack at hand */
	struct vp_unwind unwind;
};

struct vp_builder {
	struct vp_profile *profile;
	const struct vp_profile_options *options;
	const struct vp_naming *naming;
	const vp_vms *vms;
	struct vp_timeline *timeline;
	bool *chosen;    /* by number of the VM */
	size_t n_chosen; /* how many there are flags for: later ones are chosen if all are */
	bool all_chosen;

	struct vp_key_set row_keys, context_keys;
	struct vp_context_slot *contexts; /* by hash of what they are found by */
	VP_VEC(uint64_t) counts;          /* by row; close together, since each sample adds here */
	struct vp_key_set space_keys;
	VP_VEC(struct vp_space_slot) spaces; /* by space_keys */
	struct vp_row_set *cache;            /* by hash of context and address */
	struct vp_row_slot passing;          /* what is good for one sample only */
	struct vp_pending pending[VP_PENDING];
	uint32_t n_pending;
	unsigned cache_bits; /* log2 of the number of sets */
	/* Samples, and slots taken from others, since the last look at whether the cache is too
	 * small. */
	uint32_t lookups, evictions;
	uint32_t idle_row; /* VP_NONE: there is none yet */
	uint32_t unnamed;  /* distinct addresses without a name */
	struct vp_map part_of_vcpu;
	struct vp_map reason_of;
	struct vp_map text_of_address;
	struct vp_stacks stacks;
};

void vp_builder_init(struct vp_builder *builder);
void vp_builder_deinit(struct vp_builder *builder);
bool vp_builder_is_chosen(const struct vp_builder *builder, uint32_t vm);
/* The row of that key; columns that are not told apart are left out first. */
uint32_t vp_builder_row(struct vp_builder *builder, const struct vp_row_key *key);
/* Counts `weight` samples in a row. */
static inline void vp_builder_add(struct vp_builder *builder, uint32_t row, uint64_t weight)
{
	builder->counts.at[row] += weight;
}
/* Counts a sample in the row of its address and process. `part` is where it belongs. */
void vp_builder_count(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part);
/* The context of a sample of a tick, the row of an address in it; VP_NONE: filtered out. */
uint32_t vp_builder_context(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part);
uint32_t vp_builder_row_at(struct vp_builder *builder, uint32_t context, uint64_t ip,
			   uint64_t time);
const struct vp_naming_machine *vp_builder_machine(const struct vp_builder *builder, uint32_t vm);
/* Counts what vp_builder_count() put off; to be called at the end. */
void vp_builder_flush(struct vp_builder *builder);
/* Counts the stack of a tick that vp_builder_count() counts. */
void vp_stacks_count(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part);
/* Hands over the tree; rows that were counted without a stack are stacks of themselves. */
void vp_stacks_finish(struct vp_builder *builder);
void vp_stacks_deinit(struct vp_stacks *stacks);
/* The part of a vCPU, or the only one. */
uint32_t vp_builder_part(struct vp_builder *builder, uint32_t vm, uint32_t vcpu);
/* A row's text. */
uint32_t vp_builder_text(struct vp_builder *builder, const char *text);

/* Notes what is counted of every tick, whatever the view. */
void vp_builder_see(struct vp_builder *builder, const struct vp_tick *tick);
/* Count an idle tick of a pCPU, a sample of the host. */
void vp_builder_count_idle(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part);
void vp_builder_count_host(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part);

void vp_view_guest(struct vp_builder *builder);
void vp_view_host(struct vp_builder *builder);
void vp_view_unified(struct vp_builder *builder);

#endif
