/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/classes.h"

#include <string.h>

#include "analyze/profile/flow.h"
#include "analyze/profile/resolve.h"
#include "analyze/profile/tally.h"
#include "analyze/profile/view.h"
#include "base/alloc.h"
#include "base/macros.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "schema/vm.h"
#include "schema/weighting.h"
#include "timeline/guests.h"
#include "timeline/timeline.h"

enum {
	/* Number of classes, as powers of two; it grows when more than one record in 1 << MISS_BITS
	 * of a window had no class. */
	BITS_FIRST = 10,
	BITS_MAX = 14,
	MISS_BITS = 7,
	MISS_WINDOW = 1 << 14,
	PAIRS = 3,
};

/* Two words of a record, processed together. */
typedef uint64_t pair __attribute__((vector_size(16)));

/* How ticks are counted for the vCPU that they hit, in a view with other vCPUs. */
enum own {
	OWN_NOBODY,
	OWN_CLASS, /* by class */
	OWN_EACH,  /* individually: it depends on the previous exit */
};

struct class
{
	/* The key of its records, and its time: one cache line. An unused class has key 0. */
	pair key[PAIRS];
	uint64_t from, length; /* valid for that time; `length` is one less */
	/* Its counts and location: another cache line. */
	uint64_t n, weight;
	uint32_t context; /* of its addresses; VP_NONE: not code */
	uint32_t own;     /* enum own */
	uint32_t vm, vcpu;
	uint64_t exit;  /* in its records, packed; 0: unknown */
	uint32_t bound; /* number of the period between bounds with its time */
	bool used, counted;
} __attribute__((aligned(64)));

/* Its first record, which represents all. */
struct sample {
	struct vp_tick tick;
	union vp_any_record record;
} __attribute__((aligned(64)));

/* Consecutive records of a stream that hit the same vCPU: their effect on other vCPUs at home on
 * the pCPU is counted at the end. */
struct run {
	struct vp_occupied by;
	uint64_t exit;  /* last exit in its records, packed; 0: none */
	uint32_t bound; /* VP_NONE: no run */
	bool counted;
};

struct vp_classes {
	struct vp_classes_setup setup;
	const struct vp_view_ops *view;
	void *state; /* of the view */
	struct vp_flow *flow;
	struct vp_timeline *timeline;
	struct class *classes;    /* by hash of the words */
	struct sample *samples;   /* of the classes */
	unsigned bits, shift;     /* log2 of their number; hash >> shift is an index */
	uint32_t records, misses; /* since the last check of the number of classes */
	struct run *runs;         /* by stream */
	/* Sorted times at which the counting of ticks changes. */
	uint64_t *bounds;
	uint32_t n_bounds;
};

static int by_time(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static void make_bounds(struct vp_classes *classes)
{
	const struct vp_classes_setup *setup = &classes->setup;
	const vp_vms *vms = classes->flow->vms;
	uint32_t n = 0;

	classes->bounds = vp_realloc_array(NULL, vms->count + 2, sizeof(*classes->bounds));
	classes->bounds[n++] = setup->from;
	if (setup->to && setup->to < UINT64_MAX)
		classes->bounds[n++] = setup->to + 1;
	for (size_t i = 0; classes->view->other && i < vms->count; i++)
		if (vms->at[i].end && vms->at[i].end < UINT64_MAX)
			classes->bounds[n++] = vms->at[i].end + 1;
	qsort(classes->bounds, n, sizeof(*classes->bounds), by_time);
	classes->n_bounds = n;
}

static void make_table(struct vp_classes *classes, unsigned bits)
{
	free(classes->classes);
	free(classes->samples);
	classes->bits = bits;
	classes->shift = 64 - bits;
	classes->classes = vp_alloc_large(sizeof(*classes->classes) << bits);
	classes->samples = vp_alloc_large(sizeof(*classes->samples) << bits);
	if (!classes->classes || !classes->samples)
		vp_alloc_failed();
}

struct vp_classes *vp_classes_new(const struct vp_classes_setup *setup)
{
	struct vp_classes *classes = vp_alloc(sizeof(*classes));
	uint32_t streams = setup->flow->timeline->merge.count;

	classes->setup = *setup;
	classes->view = setup->view;
	classes->state = setup->state;
	classes->flow = setup->flow;
	classes->timeline = setup->flow->timeline;
	make_table(classes, BITS_FIRST);
	make_bounds(classes);
	classes->runs = vp_alloc((streams + 1) * sizeof(*classes->runs));
	for (uint32_t i = 0; i < streams; i++)
		classes->runs[i].bound = VP_NONE;
	return classes;
}

void vp_classes_free(struct vp_classes *classes)
{
	free(classes->classes);
	free(classes->samples);
	free(classes->bounds);
	free(classes->runs);
	free(classes);
}

static struct sample *sample_of(const struct vp_classes *classes, const struct class *class)
{
	return &classes->samples[class - classes->classes];
}

/* A tick with the total weight of the class. */
static struct vp_tick tick_of(const struct vp_classes *classes, const struct class *class,
			      uint64_t weight)
{
	struct sample *sample = sample_of(classes, class);
	struct vp_tick tick = sample->tick;

	tick.weight = weight;
	tick.sample = &sample->record.host_sample;
	return tick;
}

/* An exit in 64 bits; 0: unknown. */
static uint64_t packed(uint32_t vendor, uint32_t reason)
{
	return 1ULL << 63 | (uint64_t)vendor << 32 | reason;
}

static struct vp_exit unpacked(uint64_t exit)
{
	return (struct vp_exit){exit >> 32 & 0xff, (uint32_t)exit, exit != 0};
}

/* Adds the class's ticks to the view. */
static void count_own(struct vp_classes *classes, const struct class *class)
{
	struct vp_flow *flow = classes->flow;
	struct vp_tick tick = tick_of(classes, class, class->weight);
	struct vp_exit kept = {0}, *exit = NULL;

	if (class->exit && class->vcpu != VP_NONE) {
		exit = &classes->timeline->guests.vcpus.at[class->vcpu].exit;
		kept = *exit;
		*exit = unpacked(class->exit);
	}
	flow->apart = true;
	flow->code_part = VP_NONE;
	classes->view->own(classes->state, flow, &tick);
	flow->apart = false;
	if (exit)
		*exit = kept;
}

static void class_apply(struct vp_classes *classes, struct class *class)
{
	if (class->n && class->counted) {
		struct vp_tick tick = tick_of(classes, class, class->weight);
		vp_pass_counts_add(classes->setup.counts, &tick, class->n);
		if (class->own == OWN_CLASS)
			count_own(classes, class);
	}
	class->n = class->weight = 0;
}

static void class_drop(struct vp_classes *classes, size_t number)
{
	struct class *class = &classes->classes[number];

	class_apply(classes, class);
	*class = (struct class){0}; /* id 0 is no record */
}

static VP_NOINLINE void drop_all(struct vp_classes *classes)
{
	for (size_t i = 0; i < 1ULL << classes->bits; i++)
		if (classes->classes[i].used)
			class_drop(classes, i);
}

/* Drops the classes of a thread, of the host or a guest, whose name changes. */
static void drop_thread(struct vp_classes *classes, const struct vp_record_header *record)
{
	bool guest = record->id == VP_ID_guest_task;
	uint32_t tid = guest ? ((const struct vp_guest_task *)(const void *)record)->guest_tid
			     : ((const struct vp_task *)(const void *)record)->tid;

	for (size_t i = 0; i < 1ULL << classes->bits; i++) {
		const union vp_any_record *of = &classes->samples[i].record;
		if (!classes->classes[i].used)
			continue;
		if (guest ? of->header.id == VP_ID_guest_sample && of->guest_sample.guest_tid == tid
			  : of->host_sample.tid == tid)
			class_drop(classes, i);
	}
}

/* Sets the run's vCPU to the state after its last record. */
static void run_settle(struct vp_classes *classes, const struct run *run)
{
	struct vp_vcpu_state *vcpu;

	if (run->bound == VP_NONE || run->by.vcpu == VP_NONE)
		return;
	vcpu = &classes->timeline->guests.vcpus.at[run->by.vcpu];
	vcpu->blocked = false;
	if (run->exit)
		vcpu->exit = unpacked(run->exit);
}

static void run_end(struct vp_classes *classes, uint32_t stream)
{
	struct run *run = &classes->runs[stream];
	const struct vp_home_vcpus *here = &classes->timeline->guests.home_vcpus.at[stream];

	run_settle(classes, run);
	if (run->bound != VP_NONE && run->counted &&
	    !classes->timeline->pcpus.at[stream].of_vcpus) {
		for (size_t i = 0; i < here->vcpus.count; i++)
			if (here->vcpus.at[i] != run->by.vcpu)
				classes->view->other(classes->state, classes->flow,
						     here->vcpus.at[i], &run->by);
	}
	run->bound = VP_NONE;
}

static void end_runs(struct vp_classes *classes)
{
	for (uint32_t i = 0; classes->view->other && i < classes->timeline->merge.count; i++)
		run_end(classes, i);
}

static VP_NOINLINE void run_begin(struct vp_classes *classes, uint32_t stream,
				  const struct class *class)
{
	struct vp_guests *guests = &classes->timeline->guests;
	uint32_t home = class->vcpu == VP_NONE ? stream : guests->vcpus.at[class->vcpu].home;

	run_end(classes, stream);
	if (home != stream) {
		if (home != VP_NONE)
			run_end(classes, home);
		vp_guests_move(guests, class->vcpu, stream);
	}
	classes->runs[stream] = (struct run){.by = {.time = sample_of(classes, class)->tick.time,
						    .vm = class->vm,
						    .vcpu = class->vcpu},
					     .bound = class->bound,
					     .counted = class->counted};
}

/* Counts a tick whose part for its vCPU depends on the previous exit. */
static VP_NOINLINE void count_each(struct vp_classes *classes, const struct run *run,
				   const struct class *class, const struct vp_record_header *record,
				   uint64_t weight)
{
	struct vp_tick tick = tick_of(classes, class, weight);

	run_settle(classes, run);
	tick.time = record->time;
	tick.sample = (const void *)record;
	classes->view->own(classes->state, classes->flow, &tick);
}

/* The period between bounds with the class's time, which limits its validity. */
static void class_bound(const struct vp_classes *classes, struct class *class, uint64_t time,
			uint64_t *to)
{
	const struct vp_classes_setup *setup = &classes->setup;
	uint32_t i = 0;

	class->from = 0;
	*to = UINT64_MAX;
	for (; i < classes->n_bounds && classes->bounds[i] <= time; i++)
		class->from = classes->bounds[i];
	if (i < classes->n_bounds)
		*to = classes->bounds[i] - 1;
	class->bound = i;
	class->counted = time >= setup->from && (!setup->to || time <= setup->to);
}

/* The context of its addresses, and how long it is valid. */
static void class_context(struct vp_classes *classes, struct class *class, uint64_t *to)
{
	const struct vp_tick tick = tick_of(classes, class, 0);
	uint64_t good_from, good_to;

	class->context = vp_resolver_context_for(classes->flow->resolver, &tick,
						 classes->flow->code_part, &good_from, &good_to);
	/* Valid for this lookup only, or the best match from another time. */
	if (tick.time < good_from || tick.time > good_to)
		good_from = good_to = tick.time;
	class->from = good_from > class->from ? good_from : class->from;
	*to = good_to < *to ? good_to : *to;
}

static uint64_t exit_of(const union vp_any_record *record)
{
	if (record->header.id == VP_ID_guest_sample &&
	    record->guest_sample.flags & VP_HAS_EXIT_REASON)
		return packed(record->guest_sample.vendor, record->guest_sample.exit_reason);
	if (record->header.id == VP_ID_vcpu_sample &&
	    record->vcpu_sample.flags & VP_HAS_EXIT_REASON)
		return packed(record->vcpu_sample.vendor, record->vcpu_sample.exit_reason);
	return 0;
}

static inline uint64_t word_at(const void *record, size_t number)
{
	uint64_t word;

	memcpy(&word, (const char *)record + number * sizeof(word), sizeof(word));
	return word;
}

static inline pair pair_at(const void *record, size_t number)
{
	pair words;

	memcpy(&words, (const char *)record + number * sizeof(uint64_t), sizeof(words));
	return words;
}

/* At an exit for an interrupt, the page in guest user space identifies the process. */
static VP_NOINLINE uint64_t page_of(const struct vp_record_header *record)
{
	const struct vp_guest_sample *sample = (const void *)record;
	bool user =
	    sample->flags & VP_HAS_CPL ? sample->cpl == 3 : sample->mode == VP_MODE_GUEST_USER;

	return user ? sample->ip >> 12 : 0;
}

/* Words after the program counter that a kind of sample has. */
static const pair masks[VP_ID_guest_sample + 1][PAIRS - 1] = {
    [VP_ID_vcpu_sample] = {{UINT64_MAX, 0}, {0, 0}},
    [VP_ID_guest_sample] = {{UINT64_MAX, UINT64_MAX}, {UINT64_MAX, 0}},
};

/* Reads the words that are equal in all samples of a class; words beyond a shorter record are
 * masked. */
static VP_INLINE void read_key(const struct vp_record_header *record, uint32_t id, pair key[PAIRS])
{
	const uint32_t at_interrupt = VP_ID_guest_sample | (uint32_t)VP_AT_INTERRUPT << 16;
	uint32_t id_and_flags;

	key[0] = pair_at(record, 1);
	key[1] = pair_at(record, 4) & masks[id][0];
	key[2] = pair_at(record, 6) & masks[id][1];
	memcpy(&id_and_flags, &record->id, sizeof(id_and_flags));
	if (VP_RARELY((id_and_flags & at_interrupt) == at_interrupt))
		key[2][1] = page_of(record);
}

/* Replaces a class by that of the record. */
static VP_NOINLINE void class_make(struct vp_classes *classes, struct class *class, uint32_t stream,
				   const struct vp_record_header *record)
{
	struct sample *sample = sample_of(classes, class);
	uint32_t generation = classes->timeline->guests.generation;
	uint64_t to;

	classes->misses++;
	if (class->used)
		class_drop(classes, (size_t)(class - classes->classes));
	vp_timeline_tick(classes->timeline, stream, record, &sample->tick);
	/* A host thread may belong to another vCPU now. */
	if (classes->timeline->guests.generation != generation)
		drop_all(classes);
	memcpy(&sample->record, record, vp_record_size(record->id));
	read_key(record, record->id, class->key);
	class->used = true;
	class->vm = sample->tick.vm;
	class->vcpu = sample->tick.vcpu;
	class->exit = exit_of(&sample->record);
	class->own = OWN_CLASS;
	class->context = VP_NONE;
	class_bound(classes, class, record->time, &to);
	if (classes->view->other && class->vcpu == VP_NONE)
		class->own = OWN_NOBODY;
	else if (classes->view->other && record->id != VP_ID_guest_sample && !class->exit)
		class->own = OWN_EACH;
	if (class->own == OWN_CLASS && class->counted) {
		count_own(classes, class);
		if (classes->flow->code_part != VP_NONE)
			class_context(classes, class, &to);
	}
	class->length = to - class->from;
}

static VP_NOINLINE void take_other(struct vp_classes *classes, uint32_t stream,
				   const struct vp_record_header *record)
{
	struct vp_timeline *timeline = classes->timeline;
	struct vp_guests *guests = &timeline->guests;
	uint32_t generation = guests->generation;

	if (record->id == VP_ID_task || record->id == VP_ID_guest_task) {
		if (vp_timeline_is_of_all(timeline, stream, record))
			drop_thread(classes, record);
	} else if (record->id == VP_ID_vcpu_in || record->id == VP_ID_vcpu_out) {
		const struct vp_vcpu_in *in = (const void *)record;
		uint32_t vcpu = vp_guests_vcpu(guests, in->vm & VP_PID_MASK, in->tid);
		uint32_t home = vcpu == VP_NONE ? VP_NONE : guests->vcpus.at[vcpu].home;
		if (classes->view->other && home == stream)
			run_end(classes, stream);
		else
			end_runs(classes);
	}
	vp_timeline_take(timeline, stream, record);
	if (guests->generation != generation)
		drop_all(classes);
}

/* The record's class. */
static VP_INLINE struct class *class_of(struct vp_classes *classes, uint32_t stream,
					const struct vp_record_header *record, uint32_t id,
					uint64_t time)
{
	pair key[PAIRS], mixed, differ;

	read_key(record, id, key);
	mixed = key[0] ^ key[1] << 20 ^ key[2] << 5;
	uint64_t hash = mixed[0] * 0x9e3779b97f4a7c15ULL + mixed[1] * 0xc2b2ae3d27d4eb4fULL;
	struct class *class = (struct class *)((char *)classes->classes +
					       (hash >> classes->shift) * sizeof(struct class));
	differ = (class->key[0] ^ key[0]) | (class->key[1] ^ key[1]) | (class->key[2] ^ key[2]);
	if (VP_RARELY((differ[0] | differ[1]) || time - class->from > class->length))
		class_make(classes, class, stream, record);
	return class;
}

/* Takes one sample, without a branch on its kind. `with_home` and `weighted` are constants. */
static VP_INLINE void take_sample(struct vp_classes *classes, uint32_t stream,
				  const struct vp_record_header *record, uint32_t id,
				  bool with_home, bool weighted)
{
	uint64_t time = record->time;
	uint64_t weight = weighted ? vp_timeline_weight(classes->timeline, stream, time) : 1;
	struct class *class = class_of(classes, stream, record, id, time);

	class->n++;
	class->weight += weight;
	if (with_home) {
		struct run *run = &classes->runs[stream];
		if (VP_RARELY(run->by.vcpu != class->vcpu || run->bound != class->bound ||
			      run->by.vm != class->vm))
			run_begin(classes, stream, class);
		run->by.weight += weight;
		run->exit = class->exit ? class->exit : run->exit;
		if (class->own == OWN_EACH && class->counted)
			count_each(classes, run, class, record, weight);
	}
	if (class->context != VP_NONE)
		vp_tally_add(&classes->flow->tally, class->context, word_at(record, 3), time,
			     weight);
}

static VP_INLINE uint64_t take_batch(struct vp_classes *classes, struct vp_batch *batch,
				     uint64_t *last, bool with_home, bool weighted)
{
	static const uint8_t sizes[] = {0, sizeof(struct vp_host_sample),
					sizeof(struct vp_vcpu_sample),
					sizeof(struct vp_guest_sample)};
	const char *at = batch->at, *end = batch->end;
	/* A sample of any kind fits from here on. */
	const char *last_sample = end - sizeof(struct vp_guest_sample);
	uint64_t records = 0, through = batch->through, time = *last;
	uint32_t stream = batch->stream;

	for (; at < end; records++) {
		const struct vp_record_header *record = (const void *)at;
		uint32_t id = record->id;
		size_t size;
		if (VP_RARELY(id - 1 >= VP_ID_guest_sample || at > last_sample)) {
			size = vp_record_size(id);
			if (!size || size > (size_t)(end - at))
				break;
		} else {
			size = sizes[id];
		}
		if (record->time > through)
			break;
		time = record->time > time ? record->time : time;
		if (VP_RARELY(id > VP_ID_guest_sample))
			take_other(classes, stream, record);
		else
			take_sample(classes, stream, record, id, with_home, weighted);
		at += size;
	}
	*last = time;
	batch->at = at;
	return records;
}

static void classes_adapt(struct vp_classes *classes)
{
	bool few = classes->misses > classes->records >> MISS_BITS;

	classes->records = classes->misses = 0;
	if (!few || classes->bits == BITS_MAX)
		return;
	drop_all(classes);
	make_table(classes, classes->bits + 1);
}

uint64_t vp_classes_take(struct vp_classes *classes, struct vp_batch *batch, uint64_t *last)
{
	bool weighted = classes->timeline->weighting != VP_WEIGHTING_TICKS;
	uint64_t records;

	if (classes->view->other)
		records = weighted ? take_batch(classes, batch, last, true, true)
				   : take_batch(classes, batch, last, true, false);
	else
		records = weighted ? take_batch(classes, batch, last, false, true)
				   : take_batch(classes, batch, last, false, false);
	classes->records += (uint32_t)records;
	if (classes->records >= MISS_WINDOW)
		classes_adapt(classes);
	return records;
}

void vp_classes_close(struct vp_classes *classes)
{
	end_runs(classes);
	drop_all(classes);
}
