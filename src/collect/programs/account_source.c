/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/account_source.h"

#include <errno.h>
#include <ftw.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "account.skel.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/vec.h"
#include "collect/programs/account_slots.h"
#include "collect/programs/load.h"
#include "host/host.h"
#include "host/kernel_btf.h"
#include "host/kernel_function.h"
#include "host/source.h"
#include "schema/account_grade.h"
#include "schema/account_terms.h"

enum {
	/* spare slots for vCPUs that start later: minimum, and per pCPU */
	SPARE_SLOTS = 256,
	SPARE_SLOTS_OF_PCPU = 32,
	MAX_SLOTS = 8192,
	SLOT_BYTES = 70 << 10,
	MEMORY_SHARE = 128, /* share of the host's memory, for more than SPARE_SLOTS spare ones */
	COPY_TRIES = 10000, /* attempts to copy an entry that is being written */
	ENTRIES_AT_ONCE = 512,
	LARGEST_KEY = sizeof(struct vp_site_key), /* largest key of the maps read in batches */
	LARGEST_VALUE = sizeof(struct vp_site_cost),
	/* Thieves per slot, and minimum. The cost of reading depends on the table's size. */
	THIEVES = 15,
	MIN_THIEVES = 4096,
	/* Exit sites per vCPU beyond those counted in place. */
	OLD_SITES = 32,
	/* Kept thread names per pCPU. */
	TASKS = 128,
	/* A busy pCPU ends some 100,000 states per second, 48 bytes each. */
	STATES_SIZE = 16 << 20,
	AMD_HLT = 0x78,
	INTEL_HLT = 12,
	ARM_WFX = 0x01,
};

struct vp_account_source {
	struct account_bpf *programs;
	const struct vp_account_source_options *options; /* while they are loaded */
	size_t slots;
	vp_links links;
	const struct vp_account_vcpu *vcpus;
	const struct vp_account_exit *exits;
	const struct vp_account_site *sites;
	struct vp_identity identity;
	char *missing;
	struct ring_buffer *states; /* NULL: only sums are needed */
	void (*take)(void *context, struct vp_vcpu_span *record);
	void *context;
};

/* Limits: text of a cgroup's quota, open folders while walking the cgroups. */
enum { MAX_QUOTA_TEXT = 4096, MAX_OPEN_FOLDERS = 16 };

static const struct vp_optional_program optional[] = {
    {"note_vmm", "time in the VMM is counted as kernel time"},
    {"note_poll", "halt polling is counted as kernel time"},
    {"note_fault", "exits for guest memory have no address"},
    {"note_mmio", "MMIO exits have no address"},
    {"note_fast_mmio", "virtio notifications have no address"},
    {"note_unthrottle",
     "it does not report CFS unthrottling, so time throttled by a CPU quota may be overstated"},
    {"begin_local_timer", "timer interrupts are counted as guest or kernel time"},
    {"begin_device", "device interrupts are counted as guest or kernel time"},
    {"begin_softirq", "softirqs are counted as guest or kernel time"},
};

static size_t array_size(size_t entries, size_t entry)
{
	size_t page = (size_t)getpagesize();

	return (entries * entry + page - 1) / page * page;
}

static const void *map_array(const struct bpf_map *map, size_t entries, size_t entry)
{
	void *slot =
	    mmap(NULL, array_size(entries, entry), PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);

	return slot == MAP_FAILED ? NULL : slot;
}

static void unmap_array(const void *slot, size_t entries, size_t entry)
{
	if (slot)
		munmap((void *)slot, array_size(entries, entry));
}

static size_t count_vcpus(const vp_vms *vms)
{
	size_t count = 0;

	vp_vec_each (vms, vm)
		count += vm->vcpus.count;
	return count;
}

/* Number of vCPUs to expect on a host of this size. */
static size_t wanted_slots(const vp_vms *vms)
{
	size_t pcpus = (size_t)libbpf_num_possible_cpus(), known = 2 * count_vcpus(vms);
	size_t spare = SPARE_SLOTS_OF_PCPU * pcpus;
	size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)getpagesize();
	size_t affordable = bytes / MEMORY_SHARE / SLOT_BYTES;

	spare = spare < affordable ? spare : affordable;
	spare = spare > SPARE_SLOTS ? spare : SPARE_SLOTS;
	return known + spare < MAX_SLOTS ? known + spare : MAX_SLOTS;
}

static size_t max_thieves(const struct vp_account_source *source)
{
	size_t wanted = source->slots * THIEVES;

	return wanted > MIN_THIEVES ? wanted : MIN_THIEVES;
}

/* Sets the sizes of maps before they are created. */
static int account_source_size_maps(struct vp_account_source *source)
{
	struct account_bpf *programs = source->programs;
	uint32_t slots = (uint32_t)source->slots;
	uint32_t pcpus = (uint32_t)libbpf_num_possible_cpus();
	int result = bpf_map__set_max_entries(programs->maps.vcpus, slots);

	if (!result)
		result =
		    bpf_map__set_max_entries(programs->maps.thieves, (uint32_t)max_thieves(source));
	if (!result)
		result =
		    bpf_map__set_max_entries(programs->maps.other_thieves, slots * VP_STEAL_STATES);

	if (!result)
		result = bpf_map__set_max_entries(programs->maps.slots, slots);
	if (!result)
		result = bpf_map__set_max_entries(programs->maps.slot_of_tid, slots);
	if (!result)
		result = bpf_map__set_max_entries(programs->maps.exits, slots * VP_EXIT_REASONS);
	if (!result)
		result = bpf_map__set_max_entries(programs->maps.sites, slots * VP_EXIT_SITES);
	if (!result && slots * OLD_SITES > bpf_map__max_entries(programs->maps.old_sites))
		result = bpf_map__set_max_entries(programs->maps.old_sites, slots * OLD_SITES);
	if (!result && pcpus * TASKS > bpf_map__max_entries(programs->maps.tasks))
		result = bpf_map__set_max_entries(programs->maps.tasks, pcpus * TASKS);
	if (!result)
		result = bpf_map__set_max_entries(programs->maps.cpus, pcpus);
	if (!result && programs->rodata->emit_states)
		result = bpf_map__set_max_entries(programs->maps.states, STATES_SIZE);
	return result;
}

static int account_source_fill_slots(const struct vp_account_source *source)
{
	int queue = bpf_map__fd(source->programs->maps.slots);
	int result = 0;

	for (uint32_t slot = 1; !result && slot <= source->slots; slot++)
		result = bpf_map_update_elem(queue, NULL, &slot, BPF_ANY);
	return result;
}

static int take_state(void *context, void *data, size_t size)
{
	struct vp_account_source *source = context;
	struct vp_vcpu_span record;

	memcpy(&record, data, size < sizeof(record) ? size : sizeof(record));
	source->take(source->context, &record);
	return 0;
}

static struct vp_error *open_states(struct vp_account_source *source)
{
	if (!source->programs->rodata->emit_states)
		return NULL;
	source->states =
	    ring_buffer__new(bpf_map__fd(source->programs->maps.states), take_state, source, NULL);
	return source->states ? NULL : vp_error_errno(errno, "cannot map the vCPU states");
}

/* Loads only the scheduler's programs: the others would cost as much as full accounting. */
static void choose_scheduler(const struct bpf_object *object)
{
	static const char *const wanted[] = {"note_switch", "note_wakeup", "note_migration",
					     "note_unthrottle"};
	struct bpf_program *program;

	bpf_object__for_each_program (program, object) {
		bool found = false;
		for (size_t i = 0; i < VP_ARRAY_SIZE(wanted); i++)
			found |= !strcmp(wanted[i], bpf_program__name(program));
		bpf_program__set_autoload(program, found);
	}
}

/* Arm: selects the function that KVM calls first after each exit of guest mode, if this kernel
 * (since v6.4) can run programs at functions. */
static void choose_left(const struct account_bpf *programs)
{
	/* The first one until Linux 6.13. */
	static const char *const functions[] = {"kvm_arm_clear_debug", "kvm_vgic_sync_hwstate"};
	struct bpf_program *program = programs->progs.note_left;
	struct vp_kernel_function unused;
	int result = -1;

	if (vp_kernel_function_find("/proc/kallsyms", "register_ftrace_direct", &unused))
		for (size_t i = 0; result && i < VP_ARRAY_SIZE(functions); i++)
			result = bpf_program__set_attach_target(program, 0, functions[i]);
	bpf_program__set_autoload(program, !result);
}

/* Selects programs that find the guest physical address of an exit. On AMD, the exit itself has
 * it. */
static void choose_programs(struct account_bpf *programs)
{
	uint32_t vendor = vp_host_vendor();

	bpf_program__set_autoload(programs->progs.note_fault, vendor == VP_VENDOR_INTEL);
	bpf_program__set_autoload(programs->progs.note_fast_mmio, vendor == VP_VENDOR_INTEL);
	bpf_program__set_autoload(programs->progs.note_mmio,
				  vendor == VP_VENDOR_INTEL || vendor == VP_VENDOR_AMD);
	if (vendor == VP_VENDOR_ARM)
		choose_left(programs);
}

static struct vp_error *open_programs(void *context, const struct bpf_object_open_opts *options,
				      struct bpf_object_skeleton **ret)
{
	struct vp_account_source *source = context;
	const struct vp_account_source_options *wanted = source->options;
	struct account_bpf *programs = account_bpf__open_opts(options);

	source->programs = programs;
	if (!programs)
		return vp_error_errno(errno, "cannot open the accounting programs");
	*ret = programs->skeleton;
	programs->rodata->vendor = vp_host_vendor();
	programs->rodata->emit_states = wanted->with_states;
	programs->rodata->notifies_freplace = wanted->reports_exits;
	programs->rodata->samples_exits =
	    wanted->grade == VP_ACCOUNT_SAMPLED && !wanted->with_states && !wanted->reports_exits;
	programs->rodata->by_memory = wanted->by_memory && (vp_host_vendor() == VP_VENDOR_INTEL ||
							    vp_host_vendor() == VP_VENDOR_ARM);
	programs->rodata->only_states = wanted->grade == VP_ACCOUNT_STATES;
	if (wanted->grade == VP_ACCOUNT_STATES)
		choose_scheduler(programs->obj);
	else
		choose_programs(programs);
	int result = account_source_size_maps(source);
	if (!result && !programs->rodata->by_memory)
		result = vp_identity_shrink(programs->obj);
	return result ? vp_host_load_error(result, "accounting") : NULL;
}

static void account_source_set_svm_data(void *context, bool is_known)
{
	struct vp_account_source *source = context;
	struct account_bpf__rodata *constants = source->programs->rodata;

	constants->has_svm_data = is_known;
	constants->counts_hits = (is_known || vp_host_vendor() == VP_VENDOR_ARM) &&
				 !constants->emit_states && !constants->notifies_freplace;
}

static void account_source_close(void *context)
{
	struct vp_account_source *source = context;

	account_bpf__destroy(source->programs);
	source->programs = NULL;
}

static struct vp_error *account_source_map(struct vp_account_source *source)
{
	const struct account_bpf *programs = source->programs;

	source->vcpus = map_array(programs->maps.vcpus, source->slots, sizeof(*source->vcpus));
	source->exits = map_array(programs->maps.exits, source->slots * VP_EXIT_REASONS,
				  sizeof(*source->exits));
	source->sites =
	    map_array(programs->maps.sites, source->slots * VP_EXIT_SITES, sizeof(*source->sites));
	return source->vcpus && source->exits && source->sites
		   ? open_states(source)
		   : vp_error_errno(errno, "cannot map the account");
}

static struct vp_error *account_source_load(struct vp_account_source *source,
					    const struct vp_account_source_options *options)
{
	struct vp_programs_load load = {.name = "accounting",
					.kernel = options->kernel,
					.exit_event = options->exit_event,
					.context = source,
					.open = open_programs,
					.set_svm_data = account_source_set_svm_data,
					.close = account_source_close};

	load.elf = account_bpf__elf_bytes(&load.elf_size);
	source->options = options;
	struct vp_error *error = vp_programs_load(&load);
	source->options = NULL;
	VP_TRY(error);
	vp_identity_init(&source->identity, source->programs->obj);
	int result = account_source_fill_slots(source);
	return result ? vp_host_load_error(result, "accounting") : account_source_map(source);
}

/* Stops walking at a cgroup with a quota. */
static int look_for_quota(const char *path, const struct stat *status, int type, struct FTW *slot)
{
	const char *name = path + slot->base;
	struct vp_buffer text = {0};

	if (strcmp(name, "cpu.max") != 0 && strcmp(name, "cpu.cfs_quota_us") != 0)
		return 0;
	struct vp_error *error = vp_file_read(path, MAX_QUOTA_TEXT, &text);
	bool found = !error && text.size && text.bytes[0] >= '0' && text.bytes[0] <= '9';
	vp_error_free(error);
	vp_buffer_deinit(&text);
	return found;
}

/* Whether any cgroup of this host has a CPU quota: otherwise nothing can be throttled. */
static bool has_quota(void)
{
	return nftw("/sys/fs/cgroup", look_for_quota, MAX_OPEN_FOLDERS, FTW_PHYS) == 1;
}

static bool is_needed(const char *program)
{
	static const char *const needed[] = {"note_switch", "note_wakeup", "note_migration",
					     "note_exit", "note_entry"};

	for (size_t i = 0; i < VP_ARRAY_SIZE(needed); i++)
		if (!strcmp(needed[i], program))
			return true;
	return false;
}

static bool account_source_is_missed(void *context, size_t number)
{
	return strcmp(optional[number].name, "note_unthrottle") != 0 || has_quota();
}

static struct vp_error *account_source_attach(struct vp_account_source *source)
{
	const struct vp_programs_attach attach = {.optional = optional,
						  .n_optional = VP_ARRAY_SIZE(optional),
						  .is_needed = is_needed,
						  .is_missed = account_source_is_missed};

	return vp_programs_attach(source->programs->obj, &attach, &source->links, &source->missing);
}

static void account_source_free(struct vp_account_source *source)
{
	if (!source)
		return;
	vp_identity_deinit(&source->identity);
	vp_links_deinit(&source->links);
	unmap_array(source->vcpus, source->slots, sizeof(*source->vcpus));
	unmap_array(source->exits, source->slots * VP_EXIT_REASONS, sizeof(*source->exits));
	unmap_array(source->sites, source->slots * VP_EXIT_SITES, sizeof(*source->sites));
	ring_buffer__free(source->states);
	account_bpf__destroy(source->programs);
	free(source->missing);
	free(source);
}

static struct vp_error *account_source_open(const vp_vms *vms,
					    const struct vp_account_source_options *options,
					    struct vp_account_source **ret)
{
	struct vp_account_source *source = vp_alloc(sizeof(*source));

	source->slots = wanted_slots(vms);
	struct vp_error *error = account_source_load(source, options);
	if (!error)
		error = account_source_attach(source);
	if (error)
		account_source_free(source);
	else
		*ret = source;
	return error;
}

static struct vp_exit_programs account_source_programs(const struct vp_account_source *source)
{
	const struct account_bpf *programs = source->programs;

	if (!programs->rodata->notifies_freplace)
		return (struct vp_exit_programs){0};
	return (struct vp_exit_programs){.exit = bpf_program__fd(programs->progs.note_exit),
					 .entry = bpf_program__fd(programs->progs.note_entry)};
}

static struct vp_identity *account_source_identity(struct vp_account_source *source)
{
	return source->programs->rodata->by_memory ? &source->identity : NULL;
}

enum sleep { SLEEP_NONE, SLEEP_IN_KVM, SLEEP_ELSEWHERE };

/* Kind of sleep, from the kernel function: KVM has its own wait for events. */
static enum sleep account_source_sleep_of(uint32_t pid, uint32_t tid)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%u/task/%u/wchan", pid, tid);
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read(path, 256, &text);
	enum sleep ret = SLEEP_ELSEWHERE;

	if (!error && strstr(vp_buffer_text(&text), "kvm_vcpu"))
		ret = SLEEP_IN_KVM;
	else if (!error && !strcmp(vp_buffer_text(&text), "0"))
		ret = SLEEP_NONE;
	vp_error_free(error);
	vp_buffer_deinit(&text);
	return ret;
}

/* Same computation as in the programs. */
static bool note_tid(struct vp_account_source *source, uint32_t tid, uint32_t slot)
{
	int map = bpf_map__fd(source->programs->maps.slot_of_tid);

	if (bpf_map_update_elem(map, &tid, &slot, BPF_ANY))
		return false;
	source->programs->bss->may_be_vcpu[tid % VP_TID_BITS] = 1;
	return true;
}

/* Exit reason for a vCPU that sleeps in KVM. */
static uint32_t halt_reason(void)
{
	switch (vp_host_vendor()) {
	case VP_VENDOR_AMD:
		return AMD_HLT;
	case VP_VENDOR_ARM:
		return ARM_WFX;
	default:
		return INTEL_HLT;
	}
}

static void account_source_seed(struct vp_account_source *source, const struct vp_vm *vm,
				const struct vp_vcpu *vcpu, uint64_t now)
{
	const struct account_bpf *programs = source->programs;
	int vcpus = bpf_map__fd(programs->maps.vcpus), slots = bpf_map__fd(programs->maps.slots);
	uint32_t slot = 0;

	/* A vCPU without a slot gets one at its next event, or is counted as lost then. */
	if (bpf_map_lookup_and_delete_elem(slots, NULL, &slot))
		return;
	enum sleep sleep = account_source_sleep_of(vm->pid, vcpu->tid);
	bool in_kvm = sleep == SLEEP_IN_KVM, only_states = programs->rodata->only_states;
	struct vp_account_vcpu entry = {
	    .begin = now,
	    .since = now,
	    .tid = vcpu->tid,
	    .pid = vm->pid,
	    .number = vcpu->number,
	    .flags = VP_NUMBER_KNOWN | (in_kvm ? VP_REASON_KNOWN : 0),
	    .reason = halt_reason(),
	    .state = VP_STATE_UNKNOWN,
	    .base = only_states ? VP_STATE_GUEST
		    : in_kvm    ? VP_STATE_KERNEL
				: VP_STATE_VMM,
	    /* Without programs at exits, a vCPU that runs all the time has no events. */
	    .asleep = only_states && sleep == SLEEP_NONE ? VP_STATE_GUEST
		      : in_kvm                           ? VP_STATE_HALTED
							 : VP_STATE_WAITING,
	};
	uint32_t index = slot - 1;
	if (!bpf_map_update_elem(vcpus, &index, &entry, BPF_ANY) &&
	    note_tid(source, vcpu->tid, slot))
		return;
	bpf_map_update_elem(vcpus, &index, &(struct vp_account_vcpu){0}, BPF_ANY);
	bpf_map_update_elem(slots, NULL, &slot, BPF_ANY);
}

static void account_source_begin(struct vp_account_source *source, const vp_vms *vms, uint64_t now)
{
	vp_vec_each (vms, vm)
		vp_vec_each (&vm->vcpus, vcpu)
			if (vcpu->tid)
				account_source_seed(source, vm, vcpu, now);
	source->programs->bss->enabled = 1;
}

static void account_source_end(struct vp_account_source *source)
{
	source->programs->bss->enabled = 0;
}

static const char *account_source_missing(const struct vp_account_source *source)
{
	return source->missing;
}

static size_t account_source_slots(const struct vp_account_source *source)
{
	return source->slots;
}

static bool account_source_is_whole(const struct vp_account_vcpu *vcpu)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < VP_STATES; i++)
		sum += vcpu->states[i];
	return sum == vcpu->since - vcpu->begin && vcpu->state <= VP_STATE_GONE;
}

static bool account_source_vcpu(const struct vp_account_source *source, size_t slot,
				struct vp_account_vcpu *ret)
{
	const volatile struct vp_account_vcpu *entry = &source->vcpus[slot];

	if (!entry->begin)
		return false;
	for (int tries = 0; tries < COPY_TRIES; tries++) {
		memcpy(ret, (const void *)entry, sizeof(*ret));
		if (account_source_is_whole(ret) && entry->since == ret->since &&
		    entry->state == ret->state)
			return true;
	}
	return true;
}

static void account_source_release(struct vp_account_source *source, const uint32_t *slots,
				   size_t count)
{
	vp_account_slots_release(source->programs, slots, count);
}

static const struct vp_account_exit *account_source_exits(const struct vp_account_source *source,
							  size_t slot)
{
	return &source->exits[slot * VP_EXIT_REASONS];
}

static const struct vp_account_site *account_source_sites(const struct vp_account_source *source,
							  size_t slot)
{
	return &source->sites[slot * VP_EXIT_SITES];
}

/* Reads a map in batches of hundreds of entries, instead of two system calls per entry; keys and
 * values have these sizes. Entries added meanwhile may be missing until the next call. */
static void account_source_each_entry(int map, size_t key_size, size_t value_size,
				      void (*take)(void *context, const void *key,
						   const void *value),
				      void *context)
{
	/* Static, because heap memory would be zeroed each second. */
	_Alignas(uint64_t) char keys[ENTRIES_AT_ONCE * LARGEST_KEY];
	_Alignas(uint64_t) char values[ENTRIES_AT_ONCE * LARGEST_VALUE];
	uint32_t at = 0, next = 0, count;
	bool first = true;
	int result;

	do {
		count = ENTRIES_AT_ONCE;
		result = bpf_map_lookup_batch(map, first ? NULL : &at, &next, keys, values, &count,
					      NULL);
		if (result && result != -ENOENT)
			break;
		for (size_t i = 0; i < count; i++)
			take(context, keys + i * key_size, values + i * value_size);
		at = next;
		first = false;
	} while (!result);
}

struct others {
	void (*take)(void *context, const void *key, const void *cost);
	void *context;
};

/* Emits the total of thieves that did not fit into the table. */
static void take_others(void *context, const void *row, const void *cost)
{
	const struct others *others = context;
	uint32_t number;

	memcpy(&number, row, sizeof(number));
	for (uint8_t state = VP_STATE_WAKING; state <= VP_STATE_IRQ; state++) {
		struct vp_thief_key key = {.vcpu = (uint16_t)(number / VP_STEAL_STATES),
					   .kind = VP_BY_MANY,
					   .state = state};
		if (VP_STEAL_STATE(state) == number % VP_STEAL_STATES &&
		    ((const struct vp_thief_cost *)cost)->count)
			others->take(others->context, &key, cost);
	}
}

static void account_source_thieves(const struct vp_account_source *source,
				   void (*take)(void *context, const void *key, const void *cost),
				   void *context)
{
	account_source_each_entry(bpf_map__fd(source->programs->maps.thieves),
				  sizeof(struct vp_thief_key), sizeof(struct vp_thief_cost), take,
				  context);
	struct others others = {take, context};
	if (source->programs->bss->lost.thieves)
		account_source_each_entry(bpf_map__fd(source->programs->maps.other_thieves),
					  sizeof(uint32_t), sizeof(struct vp_thief_cost),
					  take_others, &others);
}

static void account_source_forget_thieves(
    const struct vp_account_source *source, const struct vp_thief_key *keys, size_t count,
    void (*take)(void *context, const void *key, const void *cost), void *context)
{
	int map = bpf_map__fd(source->programs->maps.thieves);
	struct vp_thief_cost cost;

	for (size_t i = 0; i < count; i++) {
		/* In one call since Linux 5.14; before, increments in between are lost. */
		int result = bpf_map_lookup_and_delete_elem(map, &keys[i], &cost);
		if (result && !bpf_map_lookup_elem(map, &keys[i], &cost))
			result = bpf_map_delete_elem(map, &keys[i]);
		if (!result)
			take(context, &keys[i], &cost);
	}
}

static void account_source_old_sites(const struct vp_account_source *source,
				     void (*take)(void *context, const void *key, const void *cost),
				     void *context)
{
	account_source_each_entry(bpf_map__fd(source->programs->maps.old_sites),
				  sizeof(struct vp_site_key), sizeof(struct vp_site_cost), take,
				  context);
}

static bool account_source_task(const struct vp_account_source *source, uint32_t tid,
				struct vp_account_task *ret)
{
	return !bpf_map_lookup_elem(bpf_map__fd(source->programs->maps.tasks), &tid, ret);
}

static void account_source_drain(struct vp_account_source *source,
				 void (*take)(void *context, struct vp_vcpu_span *record),
				 void *context)
{
	source->take = take;
	source->context = context;
	if (source->states)
		ring_buffer__consume(source->states);
}

static uint64_t account_source_lost_states(const struct vp_account_source *source)
{
	return source->programs->bss->lost_states;
}

static struct vp_account_lost account_source_lost(const struct vp_account_source *source)
{
	struct account_bpf__bss *bss = source->programs->bss;

	return (struct vp_account_lost){bss->lost.vcpus, bss->lost.thieves, bss->lost.sites};
}

static struct vp_exit_programs no_programs(const struct vp_account_source *source)
{
	return (struct vp_exit_programs){0};
}

static struct vp_identity *no_identity(struct vp_account_source *source)
{
	return NULL;
}

static struct vp_error *prepare_nothing(struct vp_account_source *source)
{
	return NULL;
}

static uint64_t gather_nothing(struct vp_account_source *source, uint64_t now)
{
	return now;
}

static uint64_t no_lost_events(const struct vp_account_source *source)
{
	return 0;
}

struct vp_account_ops vp_account_ops_complete(const struct vp_account_ops *ops)
{
	struct vp_account_ops all = *ops;

	all.programs = ops->programs ? ops->programs : no_programs;
	all.identity = ops->identity ? ops->identity : no_identity;
	all.prepare = ops->prepare ? ops->prepare : prepare_nothing;
	all.gather = ops->gather ? ops->gather : gather_nothing;
	all.lost_events = ops->lost_events ? ops->lost_events : no_lost_events;
	return all;
}

const struct vp_account_ops *vp_account_source_ops(void)
{
	static const struct vp_account_ops ops = {
	    .has_grades = true,
	    .open = account_source_open,
	    .programs = account_source_programs,
	    .identity = account_source_identity,
	    .begin = account_source_begin,
	    .end = account_source_end,
	    .free = account_source_free,
	    .missing = account_source_missing,
	    .slots = account_source_slots,
	    .vcpu = account_source_vcpu,
	    .release = account_source_release,
	    .exits = account_source_exits,
	    .sites = account_source_sites,
	    .thieves = account_source_thieves,
	    .forget_thieves = account_source_forget_thieves,
	    .max_thieves = max_thieves,
	    .old_sites = account_source_old_sites,
	    .task = account_source_task,
	    .drain = account_source_drain,
	    .lost_states = account_source_lost_states,
	    .lost = account_source_lost,
	};

	return &ops;
}

static bool probe_account(char *detail, size_t size)
{
	struct vp_account_source *source = NULL;
	const struct vp_account_source_options options = {0};
	vp_vms none = {0};
	struct vp_error *error = account_source_open(&none, &options, &source);
	bool found = vp_probe_report_opened(error, source ? account_source_missing(source) : NULL,
					    detail, size);

	account_source_free(source);
	return found;
}

const struct vp_source *vp_source_account(void)
{
	static const struct vp_probe probe = {
	    "accounting programs", "no exact vCPU accounting (account, steal, exits, top)", false,
	    probe_account};
	static const struct vp_source source = {&probe, 1};

	return &source;
}
