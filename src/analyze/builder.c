/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a sample to its row. Three caches stand before the names: the context of a pCPU's last
 * sample, the address space of a (machine, root), and the row of a (context, address).
 */
#include "analyze/profile_private.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "base/text.h"

enum {
	/* Sets in the cache, as powers of two: small for a small recording, then as large as most
	 * need (8 MB), then the largest (32 MB). It grows when more than one look-up in
	 * 1 << EVICTION_BITS of a window takes another's slot. */
	CACHE_BITS_FIRST = 10,
	CACHE_BITS_USUAL = 17,
	CACHE_BITS_MAX = 19,
	EVICTION_BITS = 5,
	EVICTION_WINDOW = 1 << 14,
	HUGE_PAGE = 2 << 20,
	CONTEXT_BITS = 10,
	LINE_BITS = 6, /* of an address: a function has a cache entry for each 64 bytes of it */
	/* Addresses without a name are rows of their own up to here, then one row. */
	MAX_UNNAMED = 50000,
};

/* The page table's address in CR3: below it the PCID or flags, above it flags. */
#define ROOT_MASK 0x000ffffffffff000ULL

uint32_t vp_builder_text(struct vp_builder *builder, const char *text)
{
	return vp_intern_string(&builder->profile->texts, text);
}

bool vp_builder_is_chosen(const struct vp_builder *builder, uint32_t vm)
{
	return builder->all_chosen || (vm < builder->n_chosen && builder->chosen[vm]);
}

uint32_t vp_builder_part(struct vp_builder *builder, uint32_t vm, uint32_t vcpu)
{
	struct vp_profile *profile = builder->profile;
	bool split = builder->options->per_vcpu && vcpu != VP_NONE;
	bool inserted;
	uint32_t *part = vp_map_insert(&builder->part_of_vcpu, split ? vcpu + 1ULL : 0,
				       (uint32_t)profile->parts.count, &inserted);

	if (inserted)
		vp_vec_push(&profile->parts,
			    ((struct vp_profile_part){
				.vm = vm,
				.vcpu = split ? builder->timeline->guests.vcpus.at[vcpu].number
					      : VP_NONE}));
	return *part;
}

/* The key without the columns that are not told apart. */
static struct vp_row_key masked(const struct vp_builder *builder, const struct vp_row_key *key)
{
	struct vp_row_key result = *key;
	unsigned columns = builder->profile->columns;
	bool labelled = key->kind != VP_KIND_OS && key->kind != VP_KIND_USER;

	if (!(columns & VP_COLUMN_FUNCTION) && !labelled)
		result.function = VP_NONE;
	if (!(columns & (VP_COLUMN_FUNCTION | VP_COLUMN_MODULE)) && !labelled)
		result.kind = VP_NONE;
	if (!(columns & VP_COLUMN_MODULE))
		result.module = VP_NONE;
	if (!(columns & VP_COLUMN_PROCESS))
		result.process = VP_NONE;
	if (!(columns & VP_COLUMN_PID))
		result.pid = VP_NONE;
	if (!(columns & VP_COLUMN_VM))
		result.vm = VP_NONE;
	if (!(columns & VP_COLUMN_VCPU))
		result.vcpu = VP_NONE;
	return result;
}

/* What differs within a row is unknown for the row. */
static void merge_columns(struct vp_profile_row *row, const struct vp_row_key *key)
{
	uint32_t *mine[] = {&row->kind, &row->function, &row->module, &row->process,
			    &row->pid,  &row->vm,       &row->vcpu};
	const uint32_t other[] = {key->kind, key->function, key->module, key->process,
				  key->pid,  key->vm,       key->vcpu};

	for (size_t i = 0; i < VP_ARRAY_SIZE(mine); i++)
		if (*mine[i] != other[i])
			*mine[i] = VP_NONE;
}

uint32_t vp_builder_row(struct vp_builder *builder, const struct vp_row_key *key)
{
	struct vp_profile *profile = builder->profile;
	struct vp_row_key part = masked(builder, key);
	bool inserted;
	uint32_t row = vp_key_set_add(&builder->row_keys, &part, &inserted);

	if (!inserted) {
		merge_columns(&profile->rows.at[row], key);
		return row;
	}
	vp_vec_push(&builder->counts, 0);
	vp_vec_push(&profile->rows, ((struct vp_profile_row){.part = key->part,
							     .kind = key->kind,
							     .function = key->function,
							     .module = key->module,
							     .process = key->process,
							     .pid = key->pid,
							     .vm = key->vm,
							     .vcpu = key->vcpu}));
	return row;
}

const struct vp_naming_machine *vp_builder_machine(const struct vp_builder *builder, uint32_t vm)
{
	static const struct vp_naming_machine nothing;

	if (vm == VP_NONE)
		return &builder->naming->host;
	return vm < builder->naming->vms.count ? &builder->naming->vms.at[vm] : &nothing;
}

/* Looks an address space up; the slot's lifetime says how long the answer is good. */
static void find_space(struct vp_builder *builder, const struct vp_space_key *key, uint64_t time,
		       struct vp_space_slot *slot)
{
	const struct vp_naming_machine *machine = vp_builder_machine(builder, key->vm);
	bool by_root = !key->by_pid;
	const char *comm;

	*slot = (struct vp_space_slot){
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
		slot->process = vp_builder_text(builder, comm);
		vp_naming_lifetime(machine, slot->space, &slot->from, &slot->to);
	} else if (by_root && key->id) {
		char name[32];
		snprintf(name, sizeof(name), "cr3:0x%" PRIx64, (uint64_t)(key->id & ROOT_MASK));
		slot->process = vp_builder_text(builder, name);
	}
}

static const struct vp_space_slot *space_of(struct vp_builder *builder, uint32_t vm, bool by_pid,
					    uint64_t id, uint64_t time)
{
	struct vp_space_key key = {id, vm, by_pid};
	bool inserted;
	uint32_t number = vp_key_set_add(&builder->space_keys, &key, &inserted);

	if (inserted)
		vp_vec_push(&builder->spaces, (struct vp_space_slot){0});
	struct vp_space_slot *slot = &builder->spaces.at[number];
	if (inserted || time < slot->from || time > slot->to)
		find_space(builder, &key, time, slot);
	return slot;
}

static bool is_hidden(const struct vp_builder *builder, const struct vp_tick *tick,
		      const struct vp_context *context)
{
	const struct vp_profile_options *options = builder->options;

	if (options->comm && (context->process == VP_NONE ||
			      strcmp(vp_intern_text(&builder->profile->texts, context->process),
				     options->comm) != 0))
		return true;
	if (options->pid && context->pid != options->pid)
		return true;
	if (options->view == VP_VIEW_GUEST)
		return false;
	if (options->has_vcpu &&
	    (tick->vcpu == VP_NONE ||
	     builder->timeline->guests.vcpus.at[tick->vcpu].number != options->vcpu))
		return true;
	return !builder->all_chosen && !vp_builder_is_chosen(builder, tick->vm);
}

static uint32_t comm_text(struct vp_builder *builder, uint32_t comm)
{
	const char *text = vp_intern_text(&builder->timeline->comms, comm);
	VP_AUTO_FREE char *clean = vp_text_cleaned(text);

	return vp_builder_text(builder, clean);
}

/*
 * The address space of a sample. Where the guest's memory told the process, the page table's root
 * tells which of its programs: it changes with exec at once, times of lives do not.
 */
static const struct vp_space_slot *space_of_tick(struct vp_builder *builder,
						 const struct vp_tick *tick,
						 const struct vp_context_slot *slot)
{
	const struct vp_naming_machine *machine = vp_builder_machine(builder, slot->vm);
	bool by_memory = slot->vm != VP_NONE && slot->by_pid;

	if (by_memory && slot->root) {
		const struct vp_space_slot *space =
		    space_of(builder, slot->vm, false, slot->root, tick->time);
		if (space->space != VP_NAMES_NO_SPACE && space->pid == slot->id)
			return space;
	}
	const struct vp_space_slot *space =
	    space_of(builder, slot->vm, slot->by_pid, slot->id, tick->time);
	/* An agent knows a process of vfork(2) by its parent's page tables only. */
	if (by_memory && slot->root && space->space == VP_NAMES_NO_SPACE && machine->names &&
	    !vp_names_maps(machine->names)->from_memory)
		return space_of(builder, slot->vm, false, slot->root, tick->time);
	return space;
}

/* Makes the context of a sample, and notes in the slot how long it is good. */
static void find_context(struct vp_builder *builder, const struct vp_tick *tick,
			 struct vp_context_slot *slot)
{
	const struct vp_space_slot *space = space_of_tick(builder, tick, slot);
	bool guest = slot->vm != VP_NONE, by_memory = guest && slot->by_pid;
	bool kernel = slot->mode == VP_MODE_KERNEL || slot->mode == VP_MODE_GUEST_KERNEL;
	struct vp_context context = {
	    .part = slot->part,
	    .kind = kernel ? VP_KIND_OS : VP_KIND_USER,
	    .vm = slot->vm,
	    .vcpu = slot->vcpu == VP_NONE ? VP_NONE
					  : builder->timeline->guests.vcpus.at[slot->vcpu].number,
	    .space = space->space,
	    .process = space->process,
	    .pid = by_memory ? (uint32_t)slot->id
		   : guest   ? space->pid
			     : tick->sample->pid,
	    .kernel = kernel,
	    .by_memory = by_memory,
	};
	bool inserted;

	if ((!guest || by_memory) && tick->comm != VP_NONE)
		context.process = comm_text(builder, tick->comm);
	/* A root that no process has is the kernel's own, as its idle loop and its threads use it,
	 * or that of a process on its way out. */
	if (guest && !by_memory && kernel && space->space == VP_NAMES_NO_SPACE &&
	    vp_builder_machine(builder, slot->vm)->names)
		context.process = vp_builder_text(builder, "[kernel]");
	context.hidden = is_hidden(builder, tick, &context);
	slot->from = space->from;
	slot->to = space->to;
	slot->context = vp_key_set_add(&builder->context_keys, &context, &inserted);
}

/* Whether rows or filters depend on the vCPU of a sample. */
static bool vcpu_matters(const struct vp_builder *builder)
{
	return builder->options->has_vcpu || builder->profile->columns & VP_COLUMN_VCPU;
}

uint32_t vp_builder_context(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part)
{
	const struct vp_guest_sample *guest =
	    vp_tick_is_guest(tick) ? (const void *)tick->sample : NULL;
	struct vp_context_slot wanted = {.id = tick->sample->pid,
					 .vm = VP_NONE,
					 .by_pid = !guest || vp_tick_is_by_memory(tick),
					 .vcpu = vcpu_matters(builder) ? tick->vcpu : VP_NONE,
					 .mode = tick->mode,
					 .comm = tick->comm,
					 .part = part};

	if (guest) {
		uint64_t root = guest->flags & VP_HAS_AS_ROOT ? guest->as_root : 0;
		wanted.id = wanted.by_pid ? guest->guest_pid : root;
		wanted.root = wanted.by_pid ? root : 0;
		wanted.vm = tick->vm;
	}
	/* A root's low bits are mostly zero: the product's high bits depend on all of them. */
	uint64_t hash =
	    (wanted.id ^ wanted.root ^ (uint64_t)wanted.vm << 56 ^ (uint64_t)wanted.vcpu << 48 ^
	     (uint64_t)wanted.comm << 32 ^ (uint64_t)part << 8 ^ wanted.mode) *
	    0x9e3779b97f4a7c15ULL;
	struct vp_context_slot *slot = &builder->contexts[hash >> (64 - CONTEXT_BITS)];
	if (slot->context != VP_NONE && slot->id == wanted.id && slot->root == wanted.root &&
	    slot->vm == wanted.vm && slot->comm == wanted.comm && slot->mode == wanted.mode &&
	    slot->part == part && slot->by_pid == wanted.by_pid && slot->vcpu == wanted.vcpu &&
	    tick->time >= slot->from && tick->time <= slot->to)
		return slot->context;
	*slot = wanted;
	find_context(builder, tick, slot);
	return slot->context;
}

/* What an address without a function is called; 0 in a guest is one that was blanked out. */
static uint32_t unnamed_text(struct vp_builder *builder, const struct vp_name *name, uint64_t ip,
			     bool guest)
{
	struct vp_intern *texts = &builder->profile->texts;
	size_t before = texts->strings.count;
	const char *base = name->module ? strrchr(name->module, '/') : NULL;
	VP_AUTO_FREE char *text =
	    builder->unnamed >= MAX_UNNAMED ? vp_strdup("[unknown]")
	    : guest && !ip                  ? vp_strdup("[not recorded]")
	    : name->module
		? vp_format("%s+0x%" PRIx64, base ? base + 1 : name->module, name->module_offset)
		: vp_format("0x%" PRIx64, ip);
	uint32_t number = vp_intern_string(texts, text);

	builder->unnamed += texts->strings.count > before;
	return number;
}

/* The text of a string that lives as long as the names do: known by its address after the first
 * time. */
static uint32_t lasting_text(struct vp_builder *builder, const char *text)
{
	const uint32_t *known = vp_map_find(&builder->text_of_address, (uintptr_t)text);
	bool inserted;

	if (known)
		return *known;
	uint32_t number = vp_builder_text(builder, text);
	vp_map_insert(&builder->text_of_address, (uintptr_t)text, number, &inserted);
	return number;
}

/* The row of an address whose name was looked for. */
static uint32_t row_of_name(struct vp_builder *builder, const struct vp_context *context,
			    const struct vp_name *name, uint64_t ip)
{
	struct vp_row_key key = {
	    .part = context->part,
	    .kind = context->kind,
	    .function = name->function ? lasting_text(builder, name->function)
				       : unnamed_text(builder, name, ip, context->vm != VP_NONE),
	    .module = name->module ? lasting_text(builder, name->module) : VP_NONE,
	    .process = context->process,
	    .pid = context->pid,
	    .vm = context->vm,
	    .vcpu = context->vcpu};

	return vp_builder_row(builder, &key);
}

/* Finds the name and the row of an address; fills the slot. Its size is 0 if it is not to be kept:
 * code that was replaced in the same process has another name at another time. */
static void resolve(struct vp_builder *builder, uint32_t number, uint64_t ip, uint64_t time,
		    struct vp_row_slot *slot)
{
	const struct vp_context context =
	    *(const struct vp_context *)vp_key_set_key(&builder->context_keys, number);
	const struct vp_naming_machine *machine = vp_builder_machine(builder, context.vm);
	struct vp_names *names =
	    context.kernel && machine->kernel ? machine->kernel : machine->names;
	struct vp_name name = {0};
	uint32_t route = context.by_memory                    ? VP_ROUTE_MEMORY
			 : context.space != VP_NAMES_NO_SPACE ? VP_ROUTE_CR3
							      : VP_ROUTE_NONE;

	if (names)
		vp_names_find(names, names == machine->names ? context.space : VP_NAMES_NO_SPACE,
			      context.kernel, ip, time, &name);
	if (route == VP_ROUTE_NONE && name.function && context.kernel)
		route = VP_ROUTE_KERNEL;
	bool ranged = name.function && name.function_size > name.function_offset;
	uint64_t size = ranged ? name.function_size : 1;
	*slot = (struct vp_row_slot){
	    .start = ranged ? ip - name.function_offset : ip,
	    .size = name.varies         ? 0
		    : size > UINT32_MAX ? UINT32_MAX
					: (uint32_t)size,
	    .context = number,
	    .row = route << VP_ROW_BITS | (name.function ? 0 : VP_ROW_UNNAMED),
	};
	slot->row |= context.hidden ? VP_ROW_MASK : row_of_name(builder, &context, &name, ip);
}

static void cache_new(struct vp_builder *builder, unsigned bits)
{
	size_t sets = 1ULL << bits, size = sets * sizeof(*builder->cache);
	bool large = size >= HUGE_PAGE;

	free(builder->cache);
	builder->cache = aligned_alloc(large ? HUGE_PAGE : sizeof(*builder->cache), size);
	if (!builder->cache)
		vp_alloc_failed();
	/* It is hit all over: with small pages most look-ups would walk page tables. */
	if (large)
		madvise(builder->cache, size, MADV_HUGEPAGE);
	memset(builder->cache, 0, size);
	builder->cache_bits = bits;
}

/* Nothing is pending when this is called: the cache may be replaced. */
static void cache_adapt(struct vp_builder *builder)
{
	bool small = builder->evictions > builder->lookups >> EVICTION_BITS;

	builder->lookups = builder->evictions = 0;
	if (small && builder->cache_bits < CACHE_BITS_MAX)
		cache_new(builder, builder->cache_bits < CACHE_BITS_USUAL ? CACHE_BITS_USUAL
									  : CACHE_BITS_MAX);
}

static inline bool slot_holds(const struct vp_row_slot *slot, uint32_t context, uint64_t ip)
{
	return slot->context == context && ip - slot->start < slot->size;
}

static const struct vp_row_slot *row_slot(struct vp_builder *builder,
					  const struct vp_pending *sample)
{
	struct vp_row_slot *slots = sample->set->slots;

	for (size_t i = 0; i < VP_ROW_SLOTS; i++)
		if (slot_holds(&slots[i], sample->context, sample->ip))
			return &slots[i];
	resolve(builder, sample->context, sample->ip, sample->time, &builder->passing);
	if (!builder->passing.size)
		return &builder->passing;
	builder->evictions += slots[VP_ROW_SLOTS - 1].size != 0;
	memmove(&slots[1], &slots[0], (VP_ROW_SLOTS - 1) * sizeof(*slots));
	slots[0] = builder->passing;
	return &slots[0];
}

void vp_builder_flush(struct vp_builder *builder)
{
	struct vp_profile *profile = builder->profile;

	for (uint32_t i = 0; i < builder->n_pending; i++) {
		const struct vp_pending *sample = &builder->pending[i];
		const struct vp_row_slot *slot = row_slot(builder, sample);
		if ((slot->row & VP_ROW_MASK) != VP_ROW_MASK)
			vp_builder_add(builder, slot->row & VP_ROW_MASK, sample->weight);
		profile->unattributed += slot->row & VP_ROW_UNNAMED ? sample->weight : 0;
		if (sample->guest)
			profile->routes[VP_ROW_ROUTE(slot->row)] += sample->weight;
	}
	builder->lookups += builder->n_pending;
	builder->n_pending = 0;
	if (builder->lookups >= EVICTION_WINDOW)
		cache_adapt(builder);
}

static inline struct vp_row_set *set_of(const struct vp_builder *builder, uint64_t context,
					uint64_t ip)
{
	uint64_t hash = ((ip >> LINE_BITS) + (context << 40)) * 0x9e3779b97f4a7c15ULL;

	return &builder->cache[hash >> (64 - builder->cache_bits)];
}

uint32_t vp_builder_row_at(struct vp_builder *builder, uint32_t context, uint64_t ip, uint64_t time)
{
	struct vp_pending sample = {
	    .set = set_of(builder, context, ip), .ip = ip, .time = time, .context = context};
	uint32_t row = row_slot(builder, &sample)->row & VP_ROW_MASK;

	return row == VP_ROW_MASK ? VP_NONE : row;
}

void vp_builder_count(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part)
{
	uint64_t context = vp_builder_context(builder, tick, part), ip = tick->sample->ip;
	struct vp_row_set *set = set_of(builder, context, ip);

	__builtin_prefetch(set, 1);
	if (builder->options->chains)
		vp_stacks_count(builder, tick, part);
	builder->pending[builder->n_pending++] =
	    (struct vp_pending){.set = set,
				.ip = ip,
				.time = tick->time,
				.weight = tick->weight,
				.context = (uint32_t)context,
				.guest = vp_tick_is_guest(tick)};
	if (builder->n_pending == VP_PENDING)
		vp_builder_flush(builder);
}

void vp_builder_init(struct vp_builder *builder)
{
	builder->row_keys.key_size = sizeof(struct vp_row_key);
	builder->context_keys.key_size = sizeof(struct vp_context);
	builder->space_keys.key_size = sizeof(struct vp_space_key);
	builder->stacks.node_keys.key_size = 2 * sizeof(uint32_t); /* parent, row */
	builder->contexts = vp_realloc_array(NULL, 1 << CONTEXT_BITS, sizeof(*builder->contexts));
	for (size_t i = 0; i < 1 << CONTEXT_BITS; i++)
		builder->contexts[i].context = VP_NONE;
	cache_new(builder, CACHE_BITS_FIRST);
}

void vp_builder_deinit(struct vp_builder *builder)
{
	vp_key_set_deinit(&builder->row_keys);
	vp_key_set_deinit(&builder->context_keys);
	vp_key_set_deinit(&builder->space_keys);
	free(builder->contexts);
	vp_vec_deinit(&builder->counts);
	vp_vec_deinit(&builder->spaces);
	vp_map_deinit(&builder->part_of_vcpu);
	vp_map_deinit(&builder->reason_of);
	vp_map_deinit(&builder->text_of_address);
	vp_stacks_deinit(&builder->stacks);
	free(builder->cache);
	free(builder->chosen);
}
