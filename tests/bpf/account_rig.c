/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "account_rig.h"

#include "unit.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/alloc.h"
#include "schema/account_grade.h"

/* Thieves to each place, as the loader has it. */
enum { ARM_TRAP = 2, THIEVES = 15 };

static size_t map_size(const struct bpf_map *map)
{
	size_t page = (size_t)getpagesize();
	size_t bytes = (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);

	return (bytes + page - 1) / page * page;
}

static void *share(const struct bpf_map *map)
{
	void *bytes =
	    mmap(NULL, map_size(map), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	assert_true(bytes != MAP_FAILED);
	return bytes;
}

static void size_map(struct bpf_map *map, uint32_t entries)
{
	assert_int_equal(bpf_map__set_max_entries(map, entries), 0);
}

static void load(struct rig *rig, enum vp_vendor vendor, enum vp_account_grade grade)
{
	libbpf_set_print(NULL);
	rig->programs = account_bpf__open();
	assert_non_null(rig->programs);
	rig->programs->rodata->vendor = vendor;
	rig->programs->rodata->samples_exits = grade == VP_ACCOUNT_SAMPLED;
	rig->programs->rodata->only_states = grade == VP_ACCOUNT_STATES;
	rig->programs->rodata->by_memory = vendor == VP_VENDOR_INTEL;
	rig->programs->rodata->counts_hits = vendor == VP_VENDOR_ARM;
	size_map(rig->programs->maps.vcpus, rig->slots);
	size_map(rig->programs->maps.slots, rig->slots);
	size_map(rig->programs->maps.slot_of_tid, rig->slots);
	size_map(rig->programs->maps.exits, rig->slots * VP_EXIT_REASONS);
	size_map(rig->programs->maps.sites, rig->slots * VP_EXIT_SITES);
	size_map(rig->programs->maps.cpus, rig->pcpus);
	size_map(rig->programs->maps.last_exit, rig->pcpus);
	if (rig->slots * THIEVES > bpf_map__max_entries(rig->programs->maps.thieves))
		size_map(rig->programs->maps.thieves, rig->slots * THIEVES);
	size_map(rig->programs->maps.other_thieves, rig->slots * VP_STEAL_STATES);
	assert_int_equal(account_bpf__load(rig->programs), 0);
	for (uint32_t slot = 1; slot <= rig->slots; slot++)
		assert_int_equal(bpf_map_update_elem(bpf_map__fd(rig->programs->maps.slots), NULL,
						     &slot, BPF_ANY),
				 0);
}

static struct rig *open_graded(enum vp_vendor vendor, uint32_t slots, enum vp_account_grade grade)
{
	struct rig *rig = vp_alloc(sizeof(*rig));

	*rig = (struct rig){.slots = slots, .pcpus = (uint32_t)libbpf_num_possible_cpus()};
	load(rig, vendor, grade);
	rig->vcpus = share(rig->programs->maps.vcpus);
	rig->exits = share(rig->programs->maps.exits);
	rig->sites = share(rig->programs->maps.sites);
	rig->cpus = share(rig->programs->maps.cpus);
	rig->programs->bss->enabled = 1;
	return rig;
}

struct rig *rig_open(enum vp_vendor vendor, uint32_t slots)
{
	return open_graded(vendor, slots, VP_ACCOUNT_EXACT);
}

struct rig *rig_open_sampled(enum vp_vendor vendor, uint32_t slots)
{
	return open_graded(vendor, slots, VP_ACCOUNT_SAMPLED);
}

struct rig *rig_open_states(enum vp_vendor vendor, uint32_t slots)
{
	return open_graded(vendor, slots, VP_ACCOUNT_STATES);
}

void rig_close(struct rig *rig)
{
	munmap(rig->vcpus, map_size(rig->programs->maps.vcpus));
	munmap(rig->exits, map_size(rig->programs->maps.exits));
	munmap(rig->sites, map_size(rig->programs->maps.sites));
	munmap(rig->cpus, map_size(rig->programs->maps.cpus));
	account_bpf__destroy(rig->programs);
	free(rig);
}

void rig_forget_pcpus(struct rig *rig)
{
	for (uint32_t i = 0; i < rig->pcpus; i++)
		rig->programs->bss->heres[i].vcpu = 0;
}

struct vp_account_vcpu *rig_vcpu(const struct rig *rig, uint32_t tid)
{
	for (uint32_t i = 0; i < rig->slots; i++)
		if (rig->vcpus[i].tid == tid)
			return &rig->vcpus[i];
	return NULL;
}

void rig_exit(const struct rig *rig, uint32_t class, uint64_t ip)
{
	vp_run(rig->programs->progs.note_exit, ARM_TRAP, class, ip);
}

void rig_entry(const struct rig *rig)
{
	vp_run(rig->programs->progs.note_entry, 0, 0, 0);
}

void rig_let_pass(struct rig *rig, struct vp_account_vcpu *vcpu, uint64_t ns)
{
	for (uint32_t i = 0; i < rig->pcpus; i++) {
		struct vp_account_here *here = &rig->programs->bss->heres[i];
		here->irq_at -= ns;
		here->hit_at -= ns;
		here->hit_end -= ns;
	}
	struct vp_account_exit *exits = &rig->exits[(vcpu - rig->vcpus) * VP_EXIT_REASONS];
	for (uint32_t i = 0; i < VP_EXIT_REASONS; i++)
		exits[i].timed_at -= exits[i].timed_at ? ns : 0;
	vcpu->begin -= ns;
	vcpu->since -= ns;
	vcpu->exit_at -= ns;
	vcpu->block_at -= ns;
	vcpu->wait_at -= ns;
}

void rig_expect_whole(const struct vp_account_vcpu *vcpu)
{
	uint64_t sum = 0;

	assert_non_null(vcpu);
	for (size_t i = 0; i < VP_STATE_ROOM; i++) {
		sum += vcpu->states[i];
		assert_true(i < VP_STATES || !vcpu->states[i]);
	}
	assert_int_equal(sum, vcpu->since - vcpu->begin);
	assert_int_equal(vcpu->busy, 0);
}

static size_t place_of(const struct rig *rig, const struct vp_account_vcpu *vcpu)
{
	return (size_t)(vcpu - rig->vcpus);
}

const struct vp_account_exit *rig_exits(const struct rig *rig, const struct vp_account_vcpu *vcpu,
					uint32_t reason)
{
	const struct vp_account_exit *row = &rig->exits[place_of(rig, vcpu) * VP_EXIT_REASONS];

	for (size_t i = 0; i < VP_EXIT_REASONS; i++)
		if (row[i].count && row[i].reason == reason)
			return &row[i];
	fail_msg("there is no exit for reason %#x", reason);
	return NULL;
}

static void expect_buckets(const struct vp_account_exit *exit)
{
	uint64_t sum = 0, highest = 0;

	for (size_t i = 0; i < VP_BUCKETS; i++) {
		sum += exit->buckets[i];
		if (exit->buckets[i])
			highest = i;
	}
	assert_int_equal(sum + exit->untimed, exit->count);
	assert_int_equal(highest, vp_bucket_of(exit->max));
}

struct vp_account_exit rig_all_exits(const struct rig *rig, const struct vp_account_vcpu *vcpu)
{
	const struct vp_account_exit *row = &rig->exits[place_of(rig, vcpu) * VP_EXIT_REASONS];
	struct vp_account_exit sum = {0};

	for (size_t i = 0; i < VP_EXIT_REASONS; i++) {
		expect_buckets(&row[i]);
		sum.count += row[i].count;
		sum.total += row[i].total;
		sum.poll += row[i].poll;
		sum.vmm += row[i].vmm;
		sum.stolen += row[i].stolen;
		sum.blocked += row[i].blocked;
		sum.waking += row[i].waking;
	}
	return sum;
}

struct vp_thief_cost rig_thieves(const struct rig *rig, const struct vp_account_vcpu *vcpu,
				 uint32_t states, uint32_t kind, uint32_t id)
{
	int map = bpf_map__fd(rig->programs->maps.thieves);
	struct vp_thief_cost sum = {0}, cost;
	struct vp_thief_key key, *before = NULL;

	for (; !bpf_map_get_next_key(map, before, &key); before = &key) {
		if (key.vcpu != place_of(rig, vcpu) || !(states >> key.state & 1) ||
		    (kind && (key.kind != kind || key.id != id)))
			continue;
		assert_int_equal(bpf_map_lookup_elem(map, &key, &cost), 0);
		sum.ns += cost.ns;
		sum.count += cost.count;
	}
	for (uint32_t i = 0; i < VP_IRQ_SOURCES; i++) {
		if (!vcpu->irq_device[i] || !(states >> VP_STATE_IRQ & 1) ||
		    (kind && (kind != VP_BY_DEVICE || vcpu->irq_device[i] != VP_IRQ_DEVICE + id)))
			continue;
		sum.ns += vcpu->irq_ns[i];
		sum.count += vcpu->irq_count[i];
	}
	for (uint32_t state = VP_STATE_WAKING; !kind && state <= VP_STATE_IRQ; state++) {
		uint32_t row = place_of(rig, vcpu) * VP_STEAL_STATES + VP_STEAL_STATE(state);
		map = bpf_map__fd(rig->programs->maps.other_thieves);
		assert_int_equal(bpf_map_lookup_elem(map, &row, &cost), 0);
		sum.ns += states >> state & 1 ? cost.ns : 0;
		sum.count += states >> state & 1 ? cost.count : 0;
	}
	return sum;
}
