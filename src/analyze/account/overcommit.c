/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/overcommit.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

/* Above this number of sets, further ones are merged into one with all pCPUs. */
enum { PCPUS_MAX = 65536, WORD_BITS = 64, WORDS = PCPUS_MAX / WORD_BITS, MAX_SETS = 1024 };

/* Minimum part of the time with excess demand, to call it overcommitted: even idle guests have
 * timer ticks. */
enum { NOTABLE_PART = 20 };

/* Unknown affinity: all pCPUs; never equal to a kernel list. */
static const char everywhere[] = "";

void vp_overcommit_deinit(struct vp_overcommit *overcommit)
{
	vp_vec_each (&overcommit->sets, set) {
		free(set->pcpus);
		vp_vec_deinit(&set->within);
	}
	vp_vec_deinit(&overcommit->sets);
	vp_vec_deinit(&overcommit->by_size);
	vp_vec_deinit(&overcommit->thefts);
	vp_intern_deinit(&overcommit->lists);
}

static struct vp_overcommit_set *overcommit_set_at(struct vp_overcommit *overcommit, size_t index)
{
	return &overcommit->sets.at[overcommit->by_size.at[index]];
}

static bool is_within(const struct vp_overcommit_set *set, const struct vp_overcommit_set *other)
{
	if (!other->pcpus)
		return true;
	for (size_t i = 0; i < WORDS; i++)
		if (!set->pcpus || set->pcpus[i] & ~other->pcpus[i])
			return false;
	return true;
}

/* Sorted by number of pCPUs. */
static void add_by_size(struct vp_overcommit *overcommit, uint32_t number)
{
	const struct vp_overcommit_set *set = &overcommit->sets.at[number];
	size_t index = overcommit->by_size.count;

	vp_vec_push(&overcommit->by_size, number);
	for (; index > 0; index--) {
		const struct vp_overcommit_set *before = overcommit_set_at(overcommit, index - 1);
		if (before->n_pcpus < set->n_pcpus ||
		    (before->n_pcpus == set->n_pcpus && (before->pcpus || !set->pcpus)))
			break;
		overcommit->by_size.at[index] = overcommit->by_size.at[index - 1];
	}
	overcommit->by_size.at[index] = number;
}

static void relate(struct vp_overcommit *overcommit, uint32_t number)
{
	struct vp_overcommit_set *set = &overcommit->sets.at[number];

	for (uint32_t i = 0; i < overcommit->sets.count; i++) {
		struct vp_overcommit_set *other = &overcommit->sets.at[i];
		if (is_within(other, set))
			vp_vec_push(&set->within, i);
		if (i != number && is_within(set, other))
			vp_vec_push(&other->within, number);
	}
}

/* Parses an ascending list, like the kernel's. Number of pCPUs; 0: malformed. */
static uint32_t overcommit_read_list(const char *next, uint64_t *pcpus)
{
	uint32_t count = 0;
	unsigned long least = 0;

	while (*next) {
		char *end;
		unsigned long first = strtoul(next, &end, 10), last = first;
		if (end != next && *end == '-')
			last = strtoul(end + 1, &end, 10);
		if (end == next || first < least || last < first || last >= PCPUS_MAX ||
		    (*end && *end != ','))
			return 0;
		for (unsigned long pcpu = first; pcpu <= last; pcpu++, count++)
			pcpus[pcpu / WORD_BITS] |= 1ULL << pcpu % WORD_BITS;
		least = last + 1;
		next = *end == ',' ? end + 1 : end;
	}
	return count;
}

/* A malformed list counts as all pCPUs, like a list of all. */
static struct vp_overcommit_set make_overcommit_set(const char *list, uint32_t n_all)
{
	struct vp_overcommit_set ret = {.n_pcpus = n_all,
					.pcpus = vp_alloc(WORDS * sizeof(*ret.pcpus))};
	uint32_t count = overcommit_read_list(list, ret.pcpus);

	if (count && count < n_all) {
		ret.n_pcpus = count;
		return ret;
	}
	free(ret.pcpus);
	ret.pcpus = NULL;
	return ret;
}

static const char *overcommit_list_of(const struct vp_vm *vm, uint32_t number)
{
	vp_vec_each (&vm->vcpus, vcpu)
		if (vcpu->number == number && vcpu->pcpus)
			return vcpu->pcpus;
	return everywhere;
}

static uint32_t overcommit_set_of(struct vp_overcommit *overcommit, const struct vp_vm *vm,
				  uint32_t vcpu)
{
	const char *list = overcommit_list_of(vm, vcpu);

	if (overcommit->sets.count == MAX_SETS && !vp_intern_has(&overcommit->lists, list))
		list = everywhere;
	uint32_t number = vp_intern_string(&overcommit->lists, list);

	if (number == overcommit->sets.count) {
		vp_vec_push(&overcommit->sets, make_overcommit_set(list, overcommit->pcpus));
		add_by_size(overcommit, number);
		relate(overcommit, number);
	}
	return number;
}

/* Recordings of Xen before 0.3 lack Xen's number of pCPUs and all affinities. */
static bool is_placed(const struct vp_overcommit *overcommit, const struct vp_vm *vm, uint32_t vcpu)
{
	return overcommit->pcpus && (!vm->has_domain || overcommit_list_of(vm, vcpu) != everywhere);
}

bool vp_overcommit_is_next(const struct vp_overcommit *overcommit, uint64_t time)
{
	return overcommit->end && overcommit->time != time;
}

void vp_overcommit_take(struct vp_overcommit *overcommit, const struct vp_vm *vm,
			const struct vp_vcpu_account *record)
{
	if (!is_placed(overcommit, vm, record->vcpu))
		return;
	uint32_t number = overcommit_set_of(overcommit, vm, record->vcpu);
	overcommit->time = record->time;
	if (!overcommit->end || record->begin < overcommit->begin)
		overcommit->begin = record->begin;
	if (record->end > overcommit->end)
		overcommit->end = record->end;
	overcommit->sets.at[number].wanted += record->guest + record->kernel + record->vmm +
					      record->waking + record->preempted + record->irq;
}

void vp_overcommit_take_theft(struct vp_overcommit *overcommit, const struct vp_vm *vm,
			      const struct vp_thief *record, uint32_t theft)
{
	if (!is_placed(overcommit, vm, record->vcpu))
		return;
	uint32_t number = overcommit_set_of(overcommit, vm, record->vcpu);
	overcommit->sets.at[number].taken += record->ns;
	vp_vec_push(&overcommit->thefts, ((struct vp_overcommit_theft){
					     .set = number, .ns = record->ns, .theft = theft}));
}

/* Demand beyond the capacity of the set's pCPUs, of vCPUs limited to these, explains the same
 * amount of their losses to vCPUs. */
static void overcommit_explain(struct vp_overcommit *overcommit, struct vp_overcommit_set *set,
			       uint64_t length)
{
	double wanted = 0, shed = 0, taken = 0, room = (double)length * set->n_pcpus;

	vp_vec_each (&set->within, number) {
		const struct vp_overcommit_set *other = &overcommit->sets.at[*number];
		wanted += (double)other->wanted;
		shed += other->shed;
		taken += (double)other->taken * other->left;
	}
	double more = wanted - shed - room;
	if (more <= 0 || taken <= 0)
		return;
	set->shed += more;
	if (more * NOTABLE_PART >= room) {
		set->overcommitted_ns += (double)length;
		set->overcommitted_wanted += wanted;
	}
	vp_vec_each (&set->within, number)
		overcommit->sets.at[*number].left *= 1 - fmin(more / taken, 1);
}

void vp_overcommit_close(struct vp_overcommit *overcommit,
			 void (*overcommitted)(void *context, uint32_t theft, uint64_t ns),
			 void *context)
{
	uint64_t length = overcommit->end - overcommit->begin;

	vp_vec_each (&overcommit->sets, set) {
		set->shed = 0;
		set->left = 1;
	}
	for (size_t i = 0; i < overcommit->by_size.count; i++)
		overcommit_explain(overcommit, overcommit_set_at(overcommit, i), length);
	vp_vec_each (&overcommit->thefts, theft)
		overcommitted(
		    context, theft->theft,
		    (uint64_t)((1 - overcommit->sets.at[theft->set].left) * (double)theft->ns +
			       0.5));
	vp_vec_each (&overcommit->sets, set)
		set->wanted = set->taken = 0;
	overcommit->thefts.count = 0;
	overcommit->time = overcommit->begin = overcommit->end = 0;
}

/* Whether vCPUs of the VM are in a set that is a subset of this one. */
static bool has_of(const struct vp_overcommit *overcommit, const struct vp_overcommit_set *set,
		   const struct vp_vm *vm)
{
	if (!set->pcpus)
		return true;
	vp_vec_each (&set->within, number)
		vp_vec_each (&vm->vcpus, vcpu)
			if (vcpu->pcpus &&
			    !strcmp(vcpu->pcpus, vp_intern_text(&overcommit->lists, *number)))
				return true;
	return false;
}

bool vp_overcommit_of_vm(const struct vp_overcommit *overcommit, const struct vp_vm *vm,
			 struct vp_overcommit_of_vm *ret)
{
	const struct vp_overcommit_set *most = NULL;

	vp_vec_each (&overcommit->sets, set)
		if (has_of(overcommit, set, vm) &&
		    (!most || set->overcommitted_ns > most->overcommitted_ns))
			most = set;
	if (!most || most->overcommitted_ns <= 0)
		return false;
	*ret = (struct vp_overcommit_of_vm){.pcpus = most->n_pcpus,
					    .wanted =
						most->overcommitted_wanted / most->overcommitted_ns,
					    .ns = most->overcommitted_ns};
	return true;
}
