/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/resolve.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "analyze/common/key_set.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "schema/records.h"
#include "symbol/names.h"

enum {
	/*
	 * Sets of the cache, as powers of two: small for a small recording, then sufficient for
	 * most (8 MB), then the maximum (32 MB). It grows when more than one lookup in 1 <<
	 * EVICTION_BITS of a window evicts a slot.
	 */
	CACHE_BITS_FIRST = 10,
	CACHE_BITS_USUAL = 17,
	CACHE_BITS_MAX = 19,
	EVICTION_BITS = 5,
	EVICTION_WINDOW = 1 << 14,
	SHARED_BITS = 16, /* of the sets that threads share */
	CONTEXT_BITS = 10,
	LINE_BITS = 6, /* of an address: a function has a cache entry per 64 bytes */
};

/* The page table's address in CR3: below it the PCID or flags, above it flags. */
#define ROOT_MASK 0x000ffffffffff000ULL

/* Context of a sample, everything except its address: kernel or user side of a process of a
 * machine. */
struct context {
	uint32_t part;
	uint32_t kind;  /* of its frames */
	uint32_t vm;    /* of a guest sample, otherwise VP_NONE */
	uint32_t vcpu;  /* number, or VP_NONE */
	uint32_t space; /* of the machine's names, or VP_NONE */
	uint32_t process, pid;
	uint32_t kernel;     /* 0, 1 */
	uint32_t hidden;     /* 0, 1: filtered out */
	uint32_t by_memory;  /* 0, 1: the process was read from guest memory */
	uint32_t by_address; /* 0, 1: the process was found by the address only */
};

/* Key of an address space. */
struct space_key {
	uint64_t id; /* CR3 or pid */
	uint32_t vm; /* VP_NONE: the host */
	uint32_t by_pid;
};

/* The address space of a (machine, CR3 or pid), and the host times for which it is valid. */
struct space_slot {
	uint64_t from, to;
	uint32_t space;
	uint32_t process, pid;
};

/* A context with its search key. */
struct context_slot {
	uint64_t id;   /* CR3 or pid */
	uint64_t root; /* of a guest sample with a pid, or 0 */
	uint64_t page; /* if the page identifies the process, otherwise 0 */
	uint64_t from, to;
	uint32_t vm, vcpu, mode, comm, part;
	uint32_t by_pid;
	uint32_t context; /* VP_NONE until it is resolved */
};

struct frame_slot {
	uint64_t start; /* start of the function … */
	uint32_t size;  /* … and number of bytes for which the entry is valid; 0: free */
	uint32_t context;
	uint32_t code; /* struct vp_named_range */
} __attribute__((packed, aligned(4)));

/* Slots per hash: as many as fit into a cache line of the processor. */
enum { FRAME_SLOTS = 3 };
struct frame_set {
	struct frame_slot slots[FRAME_SLOTS];
} __attribute__((aligned(64)));

/* A sample waiting for its slots to be fetched into the CPU cache. */
struct pending_sample {
	struct frame_set *set;
	uint64_t ip, time, weight;
	uint32_t context;
	bool guest;
};
enum { MAX_PENDING = 48 };

/* Results of look-ups, which resolvers of several threads may share. */
struct resolved_names {
	pthread_mutex_t lock;
	bool shared;
	struct vp_key_set context_keys;
	struct frame_set *ranges; /* if shared, by hash of context and address */
	VP_VEC(uint32_t) unnamed; /* texts of distinct unnamed addresses */
	struct vp_map text_of_address;
};

struct vp_resolver {
	struct vp_resolver_setup setup;
	struct resolved_names *names; /* `own`, or those of setup.shares */
	struct resolved_names own;
	struct context_slot *contexts; /* by hash of the key */
	struct vp_key_set space_keys;
	VP_VEC(struct space_slot) spaces; /* by space_keys */
	struct frame_set *cache;          /* by hash of context and address */
	struct frame_slot passing;        /* result that is valid for one sample only */
	struct pending_sample pending[MAX_PENDING];
	uint32_t n_pending;
	unsigned cache_bits; /* log2 of the number of sets */
	/* Number of samples and evictions since the last check of the cache's size. */
	uint32_t lookups, evictions;
};

const char *vp_route_name(enum vp_route route)
{
	static const char *const names[] = {[VP_ROUTE_NONE] = "none",
					    [VP_ROUTE_CR3] = "cr3",
					    [VP_ROUTE_KERNEL] = "kernel-symbols",
					    [VP_ROUTE_MEMORY] = "memory",
					    [VP_ROUTE_ADDRESS] = "address"};

	return names[route];
}

static void names_lock(struct resolved_names *names)
{
	if (names->shared)
		pthread_mutex_lock(&names->lock);
}

static void names_unlock(struct resolved_names *names)
{
	if (names->shared)
		pthread_mutex_unlock(&names->lock);
}

/* Looks up an address space; the result is valid for the slot's times. */
static void find_space(struct vp_resolver *resolver, const struct space_key *key, uint64_t time,
		       struct space_slot *slot)
{
	const struct vp_naming_machine *machine =
	    vp_naming_machine(resolver->setup.naming, key->vm);
	bool by_root = !key->by_pid;
	const char *comm;

	*slot = (struct space_slot){
	    .to = UINT64_MAX, .space = VP_NAMES_NO_SPACE, .process = VP_NONE, .pid = VP_NONE};
	if (machine->names) {
		slot->space = by_root
				  ? vp_names_space_by_root(machine->names, key->id, time)
				  : vp_names_space_by_pid(machine->names, (uint32_t)key->id, time);
		slot->from = UINT64_MAX;
		slot->to = 0;
	}
	if (slot->space != VP_NAMES_NO_SPACE) {
		vp_names_process(machine->names, slot->space, &comm, &slot->pid);
		slot->process = vp_frames_text(resolver->setup.frames, comm);
		vp_naming_lifetime(machine, slot->space, &slot->from, &slot->to);
	} else if (by_root && key->id) {
		char name[32];
		snprintf(name, sizeof(name), "cr3:0x%" PRIx64, (uint64_t)(key->id & ROOT_MASK));
		slot->process = vp_frames_text(resolver->setup.frames, name);
	}
}

static const struct space_slot *resolve_space_of(struct vp_resolver *resolver, uint32_t vm,
						 bool by_pid, uint64_t id, uint64_t time)
{
	struct space_key key = {id, vm, by_pid};
	bool inserted;
	uint32_t number = vp_key_set_add(&resolver->space_keys, &key, &inserted);

	if (inserted)
		vp_vec_push(&resolver->spaces, (struct space_slot){0});
	struct space_slot *slot = &resolver->spaces.at[number];
	if (inserted || time < slot->from || time > slot->to)
		find_space(resolver, &key, time, slot);
	return slot;
}

static bool resolve_is_hidden(const struct vp_resolver *resolver, const struct vp_tick *tick,
			      const struct context *context)
{
	const struct vp_filter *filter = resolver->setup.filter;
	const struct vp_timeline *timeline = resolver->setup.timeline;

	if (filter->comm &&
	    (context->process == VP_NONE ||
	     strcmp(vp_intern_text(&resolver->setup.frames->texts, context->process),
		    filter->comm) != 0))
		return true;
	if (filter->pid && context->pid != filter->pid)
		return true;
	if (filter->has_vcpu &&
	    (tick->vcpu == VP_NONE ||
	     !vp_filter_has_vcpu(filter, timeline->guests.vcpus.at[tick->vcpu].number)))
		return true;
	return !vp_filter_has_vm(filter, tick->vm);
}

static uint32_t comm_text(struct vp_resolver *resolver, uint32_t comm)
{
	const char *text = vp_intern_text(&resolver->setup.timeline->comms, comm);
	VP_AUTO_FREE char *clean = vp_text_cleaned(text);

	return vp_frames_text(resolver->setup.frames, clean);
}

/* The address space of a sample. If the process is known from guest memory, CR3 identifies its
 * program: it changes immediately with exec, unlike recorded lifetimes. */
static const struct space_slot *space_of_tick(struct vp_resolver *resolver,
					      const struct vp_tick *tick,
					      const struct context_slot *slot)
{
	const struct vp_naming_machine *machine =
	    vp_naming_machine(resolver->setup.naming, slot->vm);
	bool by_memory = slot->vm != VP_NONE && slot->by_pid;

	if (by_memory && slot->root) {
		const struct space_slot *space =
		    resolve_space_of(resolver, slot->vm, false, slot->root, tick->time);
		if (space->space != VP_NAMES_NO_SPACE && space->pid == slot->id)
			return space;
	}
	const struct space_slot *space =
	    resolve_space_of(resolver, slot->vm, slot->by_pid, slot->id, tick->time);
	/* Agents know a vfork(2) child only by its parent's CR3. */
	if (by_memory && slot->root && space->space == VP_NAMES_NO_SPACE && machine->names &&
	    (!vp_names_maps(machine->names)->from_memory || vp_names_fallback(machine->names)))
		return resolve_space_of(resolver, slot->vm, false, slot->root, tick->time);
	return space;
}

/*
 * At an exit for an interrupt only the guest RIP is known. If the process of the surrounding
 * samples has no code there, the sample belongs to the only process that does, unless there are
 * several.
 */
static struct space_slot space_of_page(struct vp_resolver *resolver, const struct vp_tick *tick,
				       const struct context_slot *slot, struct space_slot claimed)
{
	const struct vp_names *names = vp_naming_machine(resolver->setup.naming, slot->vm)->names;
	const char *comm;
	uint32_t pid;

	if (!names || (slot->id && claimed.space == VP_NAMES_NO_SPACE))
		return claimed;
	uint32_t space =
	    vp_names_space_by_address(names, claimed.space, tick->sample->ip, tick->time);
	if (space == claimed.space)
		return claimed;
	if (!vp_names_process(names, space, &comm, &pid))
		return *resolve_space_of(resolver, slot->vm, false, 0, tick->time);
	return *resolve_space_of(resolver, slot->vm, true, pid, tick->time);
}

/* Makes the context of a sample, with the times for which it is valid. */
static void find_context(struct vp_resolver *resolver, const struct vp_tick *tick,
			 struct context_slot *slot)
{
	const struct space_slot claimed = *space_of_tick(resolver, tick, slot);
	const struct space_slot space =
	    slot->page ? space_of_page(resolver, tick, slot, claimed) : claimed;
	const struct vp_names *names = vp_naming_machine(resolver->setup.naming, slot->vm)->names;
	bool guest = slot->vm != VP_NONE, as_claimed = space.space == claimed.space;
	bool by_memory = guest && slot->by_pid && as_claimed;
	bool kernel = slot->mode == VP_MODE_KERNEL || slot->mode == VP_MODE_GUEST_KERNEL;
	struct context context = {
	    .part = slot->part,
	    .kind = kernel ? VP_KIND_KERNEL : VP_KIND_USER,
	    .vm = slot->vm,
	    .vcpu = slot->vcpu == VP_NONE
			? VP_NONE
			: resolver->setup.timeline->guests.vcpus.at[slot->vcpu].number,
	    .space = space.space,
	    .process = space.process,
	    .pid = by_memory ? (uint32_t)slot->id
		   : guest   ? space.pid
			     : tick->sample->pid,
	    .kernel = kernel,
	    .by_memory = by_memory,
	    .by_address = !as_claimed && space.space != VP_NAMES_NO_SPACE,
	};
	bool inserted;

	if ((!guest || by_memory) && tick->comm != VP_NONE)
		context.process = comm_text(resolver, tick->comm);
	/* A CR3 of no process is used by the kernel's idle loop and threads, or by an exiting
	 * process. */
	if (guest && !by_memory && kernel && space.space == VP_NAMES_NO_SPACE && names)
		context.process = vp_frames_text(resolver->setup.frames, "[kernel]");
	context.hidden = resolve_is_hidden(resolver, tick, &context);
	slot->from = space.from;
	slot->to = space.to;
	/* Another process may have code at that page at other times. */
	if (slot->page && names) {
		uint64_t from, to;
		vp_naming_period(vp_naming_machine(resolver->setup.naming, slot->vm), tick->time,
				 &from, &to);
		slot->from = from > slot->from ? from : slot->from;
		slot->to = to < slot->to ? to : slot->to;
	}
	slot->context = vp_key_set_add(&resolver->names->context_keys, &context, &inserted);
}

/* Whether frames or filters depend on the vCPU of a sample. */
static bool vcpu_matters(const struct vp_resolver *resolver)
{
	return resolver->setup.filter->has_vcpu || resolver->setup.frames->columns & VP_COLUMN_VCPU;
}

uint32_t vp_resolver_context(struct vp_resolver *resolver, const struct vp_tick *tick,
			     uint32_t part)
{
	uint64_t from, to;

	return vp_resolver_context_for(resolver, tick, part, &from, &to);
}

uint32_t vp_resolver_context_for(struct vp_resolver *resolver, const struct vp_tick *tick,
				 uint32_t part, uint64_t *from, uint64_t *to)
{
	const struct vp_guest_sample *guest =
	    vp_tick_is_guest(tick) ? (const void *)tick->sample : NULL;
	struct context_slot wanted = {.id = tick->sample->pid,
				      .vm = VP_NONE,
				      .by_pid = !guest || vp_tick_is_by_memory(tick),
				      .vcpu = vcpu_matters(resolver) ? tick->vcpu : VP_NONE,
				      .mode = tick->mode,
				      .comm = tick->comm,
				      .part = part};

	if (guest) {
		uint64_t root = guest->flags & VP_HAS_AS_ROOT ? guest->as_root : 0;
		wanted.id = wanted.by_pid ? guest->guest_pid : root;
		wanted.root = wanted.by_pid ? root : 0;
		wanted.vm = tick->vm;
		if (guest->flags & VP_AT_INTERRUPT && tick->mode == VP_MODE_GUEST_USER)
			wanted.page = tick->sample->ip >> 12;
	}
	/* The low bits of a CR3 are mostly zero: the high bits of the product depend on all
	 * bits. */
	uint64_t hash = (wanted.id ^ wanted.root ^ wanted.page ^ (uint64_t)wanted.vm << 56 ^
			 (uint64_t)wanted.vcpu << 48 ^ (uint64_t)wanted.comm << 32 ^
			 (uint64_t)part << 8 ^ wanted.mode) *
			0x9e3779b97f4a7c15ULL;
	struct context_slot *slot = &resolver->contexts[hash >> (64 - CONTEXT_BITS)];
	if (slot->context != VP_NONE && slot->id == wanted.id && slot->root == wanted.root &&
	    slot->page == wanted.page && slot->vm == wanted.vm && slot->comm == wanted.comm &&
	    slot->mode == wanted.mode && slot->part == part && slot->by_pid == wanted.by_pid &&
	    slot->vcpu == wanted.vcpu && tick->time >= slot->from && tick->time <= slot->to) {
		*from = slot->from;
		*to = slot->to;
		return slot->context;
	}
	*slot = wanted;
	names_lock(resolver->names);
	find_context(resolver, tick, slot);
	names_unlock(resolver->names);
	*from = slot->from;
	*to = slot->to;
	return slot->context;
}

/* Name of an address without a function; 0 in a guest was blanked out. */
static uint32_t unnamed_text(struct vp_resolver *resolver, const struct vp_name *name, uint64_t ip,
			     bool guest)
{
	struct vp_intern *texts = &resolver->setup.frames->texts;
	size_t before = texts->strings.count;
	bool is_full = resolver->names->unnamed.count >= VP_RESOLVER_UNNAMED;
	const char *base = name->module ? strrchr(name->module, '/') : NULL;
	VP_AUTO_FREE char *text =
	    is_full                               ? vp_strdup("[unknown]")
	    : guest && !ip                        ? vp_strdup("[not recorded]")
	    : vp_names_is_anonymous(name->module) ? vp_strdup(VP_JIT_CODE)
	    : name->gap_end
		? vp_format("%s+0x%" PRIx64 "-0x%" PRIx64, base ? base + 1 : name->module,
			    name->gap_start, name->gap_end)
	    : name->module
		? vp_format("%s+0x%" PRIx64, base ? base + 1 : name->module, name->module_offset)
		: vp_format("0x%" PRIx64, ip);
	uint32_t number = vp_intern_string(texts, text);

	if (texts->strings.count > before)
		vp_vec_push(&resolver->names->unnamed, number);
	return number;
}

const uint32_t *vp_resolver_unnamed(const struct vp_resolver *resolver, size_t *count)
{
	names_lock(resolver->names);
	*count = resolver->names->unnamed.count;
	const uint32_t *texts = resolver->names->unnamed.at;
	names_unlock(resolver->names);
	return texts;
}

bool vp_resolver_is_full(const struct vp_resolver *resolver)
{
	size_t count;

	(void)vp_resolver_unnamed(resolver, &count);
	return count >= VP_RESOLVER_UNNAMED;
}

/* Number of a string that lives as long as the names: cached by its address. */
static uint32_t lasting_text(struct vp_resolver *resolver, const char *text)
{
	const uint32_t *known = vp_map_find(&resolver->names->text_of_address, (uintptr_t)text);
	bool inserted;

	if (known)
		return *known;
	uint32_t number = vp_frames_text(resolver->setup.frames, text);
	vp_map_insert(&resolver->names->text_of_address, (uintptr_t)text, number, &inserted);
	return number;
}

/* The frame of an address after its lookup. */
static uint32_t frame_of_name(struct vp_resolver *resolver, const struct context *context,
			      const struct vp_name *name, uint64_t ip)
{
	struct vp_frame frame = {
	    .part = context->part,
	    .kind = context->kind,
	    .function = name->function ? lasting_text(resolver, name->function)
				       : unnamed_text(resolver, name, ip, context->vm != VP_NONE),
	    .module = name->module ? lasting_text(resolver, name->module) : VP_NONE,
	    .process = context->process,
	    .pid = context->pid,
	    .vm = context->vm,
	    .vcpu = context->vcpu};

	return vp_frames_add(resolver->setup.frames, &frame);
}

/* Code may be replaced by other code in the same process. */
static struct vp_named_range find_range(struct vp_resolver *resolver, uint32_t number, uint64_t ip,
					uint64_t time)
{
	const struct context context =
	    *(const struct context *)vp_key_set_key(&resolver->names->context_keys, number);
	const struct vp_naming_machine *machine =
	    vp_naming_machine(resolver->setup.naming, context.vm);
	struct vp_names *names =
	    context.kernel && machine->kernel ? machine->kernel : machine->names;
	struct vp_name name = {0};
	uint32_t route = context.by_memory                    ? VP_ROUTE_MEMORY
			 : context.by_address                 ? VP_ROUTE_ADDRESS
			 : context.space != VP_NAMES_NO_SPACE ? VP_ROUTE_CR3
							      : VP_ROUTE_NONE;

	if (names)
		vp_names_find(names, names == machine->names ? context.space : VP_NAMES_NO_SPACE,
			      context.kernel, ip, time, &name);
	if (route == VP_ROUTE_NONE && name.function && context.kernel)
		route = VP_ROUTE_KERNEL;
	if (context.vm == VP_NONE)
		route = VP_CODE_OF_HOST;
	bool ranged = name.function && name.function_size > name.function_offset;
	uint64_t size = ranged ? name.function_size : 1;
	uint32_t frame =
	    context.hidden ? VP_CODE_FRAME : frame_of_name(resolver, &context, &name, ip);
	return (struct vp_named_range){.start = ranged ? ip - name.function_offset : ip,
				       .size = name.varies ? 0 : size,
				       .code = route << VP_CODE_FRAME_BITS |
					       (name.function ? 0 : VP_CODE_UNNAMED) | frame};
}

/* False: out of memory; the cache is unchanged. */
static bool cache_new(struct vp_resolver *resolver, unsigned bits)
{
	struct frame_set *cache = vp_alloc_large(sizeof(*cache) << bits);

	if (!cache)
		return false;
	free(resolver->cache);
	resolver->cache = cache;
	resolver->cache_bits = bits;
	return true;
}

/* Must not be called while samples are pending: the cache may be replaced. */
static void cache_adapt(struct vp_resolver *resolver)
{
	bool small = resolver->evictions > resolver->lookups >> EVICTION_BITS;
	unsigned bits = resolver->cache_bits < CACHE_BITS_USUAL ? CACHE_BITS_USUAL : CACHE_BITS_MAX;

	resolver->lookups = resolver->evictions = 0;
	/* out of memory: continue with the present size */
	if (small && resolver->cache_bits < CACHE_BITS_MAX)
		(void)cache_new(resolver, bits);
}

static inline bool slot_holds(const struct frame_slot *slot, uint32_t context, uint64_t ip)
{
	return slot->context == context && ip - slot->start < slot->size;
}

static inline size_t resolve_set_of(unsigned bits, uint64_t context, uint64_t ip)
{
	uint64_t hash = ((ip >> LINE_BITS) + (context << 40)) * 0x9e3779b97f4a7c15ULL;

	return hash >> (64 - bits);
}

static inline struct frame_set *set_of(const struct vp_resolver *resolver, uint64_t context,
				       uint64_t ip)
{
	return &resolver->cache[resolve_set_of(resolver->cache_bits, context, ip)];
}

static void slots_push(struct frame_slot slots[FRAME_SLOTS], struct frame_slot first)
{
	memmove(&slots[1], &slots[0], (FRAME_SLOTS - 1) * sizeof(*slots));
	slots[0] = first;
}

static struct frame_slot slot_of(uint32_t context, const struct vp_named_range *range)
{
	return (struct frame_slot){.start = range->start,
				   .size = range->size > UINT32_MAX ? UINT32_MAX
								    : (uint32_t)range->size,
				   .context = context,
				   .code = range->code};
}

/* The same as find_range(), with the results of all threads. */
static struct vp_named_range shared_range(struct vp_resolver *resolver, uint32_t context,
					  uint64_t ip, uint64_t time)
{
	struct frame_slot *slots =
	    resolver->names->ranges[resolve_set_of(SHARED_BITS, context, ip)].slots;

	for (size_t i = 0; i < FRAME_SLOTS; i++)
		if (slot_holds(&slots[i], context, ip))
			return (struct vp_named_range){slots[i].start, slots[i].size,
						       slots[i].code};
	struct vp_named_range range = find_range(resolver, context, ip, time);
	if (range.size)
		slots_push(slots, slot_of(context, &range));
	return range;
}

struct vp_named_range vp_resolver_range(struct vp_resolver *resolver, uint32_t context, uint64_t ip,
					uint64_t time)
{
	if (!resolver->names->shared)
		return find_range(resolver, context, ip, time);
	names_lock(resolver->names);
	struct vp_named_range range = shared_range(resolver, context, ip, time);
	names_unlock(resolver->names);
	return range;
}

uint32_t vp_resolver_label(struct vp_resolver *resolver, const char *label, struct vp_frame frame)
{
	names_lock(resolver->names);
	frame.function = vp_frames_text(resolver->setup.frames, label);
	frame.module = frame.process = VP_NONE;
	uint32_t number = vp_frames_add(resolver->setup.frames, &frame);
	names_unlock(resolver->names);
	return number;
}

static const struct frame_slot *frame_slot(struct vp_resolver *resolver,
					   const struct pending_sample *sample)
{
	struct frame_slot *slots = sample->set->slots;

	for (size_t i = 0; i < FRAME_SLOTS; i++)
		if (slot_holds(&slots[i], sample->context, sample->ip))
			return &slots[i];
	struct vp_named_range range =
	    find_range(resolver, sample->context, sample->ip, sample->time);
	resolver->passing = slot_of(sample->context, &range);
	if (!resolver->passing.size)
		return &resolver->passing;
	resolver->evictions += slots[FRAME_SLOTS - 1].size != 0;
	slots_push(slots, resolver->passing);
	return &slots[0];
}

void vp_resolver_flush(struct vp_resolver *resolver)
{
	struct vp_resolved resolved[MAX_PENDING];
	uint32_t count = resolver->n_pending;

	for (uint32_t i = 0; i < count; i++) {
		const struct pending_sample *sample = &resolver->pending[i];
		const struct frame_slot *found = frame_slot(resolver, sample);
		resolved[i] = (struct vp_resolved){.weight = sample->weight,
						   .start = found->start,
						   .frame = vp_code_frame(found->code),
						   .route = vp_code_route(found->code),
						   .named = vp_code_is_named(found->code),
						   .guest = sample->guest};
	}
	resolver->setup.take(resolver->setup.context, resolved, count);
	resolver->lookups += count;
	resolver->n_pending = 0;
	if (resolver->lookups >= EVICTION_WINDOW)
		cache_adapt(resolver);
}

uint32_t vp_resolver_frame(struct vp_resolver *resolver, uint32_t context, uint64_t ip,
			   uint64_t time, uint64_t *start)
{
	struct pending_sample sample = {
	    .set = set_of(resolver, context, ip), .ip = ip, .time = time, .context = context};
	const struct frame_slot *slot = frame_slot(resolver, &sample);

	*start = slot->start;
	return vp_code_frame(slot->code);
}

void vp_resolver_submit(struct vp_resolver *resolver, const struct vp_tick *tick, uint32_t part)
{
	uint64_t context = vp_resolver_context(resolver, tick, part), ip = tick->sample->ip;
	struct frame_set *set = set_of(resolver, context, ip);

	__builtin_prefetch(set, 1);
	resolver->pending[resolver->n_pending++] =
	    (struct pending_sample){.set = set,
				    .ip = ip,
				    .time = tick->time,
				    .weight = tick->weight,
				    .context = (uint32_t)context,
				    .guest = vp_tick_is_guest(tick)};
	if (resolver->n_pending == MAX_PENDING)
		vp_resolver_flush(resolver);
}

static void names_share(struct vp_resolver *resolver, struct vp_resolver *with)
{
	struct resolved_names *names = with->names;

	if (!names->ranges)
		names->ranges = vp_alloc_large(sizeof(*names->ranges) << SHARED_BITS);
	if (!names->ranges)
		vp_alloc_failed();
	names->shared = true;
	resolver->names = names;
}

struct vp_resolver *vp_resolver_new(const struct vp_resolver_setup *setup)
{
	struct vp_resolver *resolver = vp_alloc(sizeof(*resolver));

	resolver->setup = *setup;
	resolver->names = &resolver->own;
	pthread_mutex_init(&resolver->own.lock, NULL);
	resolver->own.context_keys.key_size = sizeof(struct context);
	if (setup->shares)
		names_share(resolver, setup->shares);
	resolver->space_keys.key_size = sizeof(struct space_key);
	resolver->contexts = vp_realloc_array(NULL, 1 << CONTEXT_BITS, sizeof(*resolver->contexts));
	for (size_t i = 0; i < 1 << CONTEXT_BITS; i++)
		resolver->contexts[i].context = VP_NONE;
	if (!cache_new(resolver, CACHE_BITS_FIRST))
		vp_alloc_failed();
	return resolver;
}

void vp_resolver_free(struct vp_resolver *resolver)
{
	if (!resolver)
		return;
	vp_key_set_deinit(&resolver->own.context_keys);
	vp_map_deinit(&resolver->own.text_of_address);
	vp_vec_deinit(&resolver->own.unnamed);
	pthread_mutex_destroy(&resolver->own.lock);
	free(resolver->own.ranges);
	vp_key_set_deinit(&resolver->space_keys);
	vp_vec_deinit(&resolver->spaces);
	free(resolver->contexts);
	free(resolver->cache);
	free(resolver);
}
