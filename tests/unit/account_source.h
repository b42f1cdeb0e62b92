/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account's source, whose counters a test sets, and what is written of it. */
#ifndef VP_TESTS_ACCOUNT_SOURCE_H
#define VP_TESTS_ACCOUNT_SOURCE_H

#include "unit.h"

#include "schema/schema.h"
#include "session/account_writer.h"

enum { ROOM = 40, SLOTS = 4, PID = 1000, TID = 1001, SECOND = 1000000000 };
/* Tasks of which more, or nothing, is known. */
enum { GROUPED = 51, GROUP = 77, KTHREAD = 52, UNKNOWN_TASK = 53 };

struct entry {
	struct vp_thief_key key;
	struct vp_thief_cost cost;
};

struct slot {
	bool has_vcpu;
	struct vp_account_vcpu vcpu;
	struct vp_account_exit exits[VP_EXIT_REASONS];
	struct vp_account_site sites[VP_EXIT_SITES];
};

struct vp_account_source {
	struct slot slots[SLOTS];
	VP_VEC(struct entry) table;
	struct vp_thief_cost others;
	struct vp_account_lost lost;
	struct vp_site_key old_site;
	struct vp_site_cost old_site_cost;
	VP_VEC(struct vp_vcpu_span) spans;
	VP_VEC(uint32_t) released;
};
static struct vp_account_source source;
static unsigned copies; /* of vCPUs' counters */
static VP_VEC(union vp_any_record) kept;

static struct vp_error *open_source(const vp_vms *vms,
				    const struct vp_account_source_options *options,
				    struct vp_account_source **ret)
{
	*ret = &source;
	return NULL;
}

static inline void begin_source(struct vp_account_source *own, const vp_vms *vms, uint64_t now)
{
}

static inline void free_source(struct vp_account_source *own)
{
	vp_vec_deinit(&own->table);
	vp_vec_deinit(&own->spans);
	vp_vec_deinit(&own->released);
}

static inline size_t slots(const struct vp_account_source *own)
{
	return SLOTS;
}

static inline bool vcpu_at(const struct vp_account_source *own, size_t slot,
			   struct vp_account_vcpu *ret)
{
	copies++;
	*ret = own->slots[slot].vcpu;
	return own->slots[slot].has_vcpu;
}

static inline void release(struct vp_account_source *own, const uint32_t *at, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		vp_vec_push(&own->released, at[i]);
		own->slots[at[i]] = (struct slot){.has_vcpu = false};
	}
}

static inline const struct vp_account_exit *exits(const struct vp_account_source *own, size_t slot)
{
	return own->slots[slot].exits;
}

static inline const struct vp_account_site *sites(const struct vp_account_source *own, size_t slot)
{
	return own->slots[slot].sites;
}

static inline void thieves(const struct vp_account_source *own,
			   void (*take)(void *context, const void *key, const void *cost),
			   void *context)
{
	const struct vp_thief_key many = {.kind = VP_BY_MANY, .state = VP_STATE_PREEMPTED};

	vp_vec_each (&own->table, entry)
		take(context, &entry->key, &entry->cost);
	if (own->others.count)
		take(context, &many, &own->others);
}

static void forget(const struct vp_account_source *own, const struct vp_thief_key *keys,
		   size_t count, void (*take)(void *context, const void *key, const void *cost),
		   void *context)
{
	struct vp_account_source *changed = &source;

	for (size_t i = 0; i < count; i++)
		for (size_t at = 0; at < changed->table.count; at++)
			if (!memcmp(&changed->table.at[at].key, &keys[i], sizeof(keys[i]))) {
				changed->table.at[at].cost.ns += 3; /* meanwhile */
				take(context, &keys[i], &changed->table.at[at].cost);
				changed->table.at[at] = changed->table.at[--changed->table.count];
				break;
			}
}

static inline size_t max_thieves(const struct vp_account_source *own)
{
	return ROOM;
}

static inline void old_sites(const struct vp_account_source *own,
			     void (*take)(void *context, const void *key, const void *cost),
			     void *context)
{
	if (own->old_site_cost.count)
		take(context, &own->old_site, &own->old_site_cost);
}

static inline bool task(const struct vp_account_source *own, uint32_t tid,
			struct vp_account_task *ret)
{
	*ret = (struct vp_account_task){.comm = "thief",
					.pid = tid,
					.cgroup = tid == GROUPED ? GROUP : 0,
					.kernel_thread = tid == KTHREAD};
	return tid != UNKNOWN_TASK;
}

static inline struct vp_account_lost lost(const struct vp_account_source *own)
{
	struct vp_account_lost lost = own->lost;

	lost.thieves += own->others.count;
	return lost;
}

static inline void drain(struct vp_account_source *own,
			 void (*take)(void *context, struct vp_vcpu_span *record), void *context)
{
	vp_vec_each (&own->spans, span)
		take(context, span);
	own->spans.count = 0;
}

static const struct vp_account_ops ops = {.open = open_source,
					  .begin = begin_source,
					  .free = free_source,
					  .slots = slots,
					  .vcpu = vcpu_at,
					  .release = release,
					  .exits = exits,
					  .sites = sites,
					  .thieves = thieves,
					  .forget_thieves = forget,
					  .max_thieves = max_thieves,
					  .old_sites = old_sites,
					  .task = task,
					  .drain = drain,
					  .lost = lost};

static inline void keep_record(void *context, struct vp_record_header *record)
{
	union vp_any_record *to = vp_vec_push_slot(&kept);

	memset(to, 0, sizeof(*to));
	memcpy(to, record, vp_record_size(record->id));
}

/* The `nth` record of that type, from 0. */
static inline const union vp_any_record *nth_kept(uint32_t id, size_t nth)
{
	static const union vp_any_record none;

	vp_vec_each (&kept, record)
		if (record->header.id == id && !nth--)
			return record;
	fail_msg("too few records of type %u", id);
	return &none;
}

static inline size_t count_kept(uint32_t id)
{
	size_t count = 0;

	vp_vec_each (&kept, record)
		count += record->header.id == id;
	return count;
}

/* VMs 1000 and 2000 with vCPUs 5 and 6 each, whose threads are those behind their processes. */
static inline vp_vms vms_make(void)
{
	vp_vms vms = {0};

	for (uint32_t pid = PID; pid <= 2 * PID; pid += PID) {
		struct vp_vm vm = {.pid = pid};
		for (uint32_t i = 0; i < 2; i++)
			vp_vm_vcpu(&vm, 5 + i)->tid = pid + 1 + i;
		vp_vec_push(&vms, vm);
	}
	return vms;
}

static inline struct vp_account_vcpu *vcpu_begin(size_t slot, uint32_t pid, uint32_t tid)
{
	struct slot *at = &source.slots[slot];

	*at = (struct slot){.has_vcpu = true};
	at->vcpu = (struct vp_account_vcpu){.pid = pid,
					    .tid = tid,
					    .number = VP_VCPU_UNKNOWN,
					    .begin = SECOND,
					    .since = SECOND,
					    .state = VP_STATE_UNKNOWN,
					    .asleep = VP_STATE_UNKNOWN};
	return &at->vcpu;
}

/* A writer whose records are kept, of an empty source. */
static inline struct vp_account_writer *open_keeping(const vp_vms *vms)
{
	struct vp_account_writer *writer;

	source = (struct vp_account_source){0};
	kept.count = 0;
	expect_no_error(
	    vp_account_writer_open(&ops, vms, VP_VENDOR_AMD, NULL, keep_record, NULL, &writer));
	return writer;
}

static inline void close_keeping(struct vp_account_writer *writer, vp_vms *vms)
{
	vp_account_writer_free(writer);
	vp_vms_deinit(vms);
	vp_vec_deinit(&kept);
}

static inline void add_thief(uint16_t slot, uint8_t kind, uint8_t how, uint32_t id, uint64_t ns,
			     uint64_t count)
{
	const struct vp_thief_key key = {.vcpu = slot, .kind = kind, .state = how, .id = id};

	vp_vec_push(&source.table, ((struct entry){key, {ns, count}}));
}

#endif
