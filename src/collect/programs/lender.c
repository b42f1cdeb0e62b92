/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/lender.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/vec.h"
#include "bpf/lend_abi.h"
#include "collect/agent/agent_client.h"
#include "collect/agent/counts_client.h"
#include "collect/guests/guest_state.h"
#include "collect/programs/load.h"
#include "host/host.h"
#include "host/host_rules.h"
#include "host/kernel_btf.h"
#include "host/perf_event.h"
#include "host/pmu.h"
#include "host/source.h"
#include "host_lend.skel.h"
#include "protocol/lent.h"
#include "schema/event.h"
#include "schema/interval.h"
#include "schema/records.h"

struct lent_vcpu {
	uint32_t number, tid, first, slot;
	bool has_cell;
	uint64_t hva; /* of the cell */
};

struct vp_lender {
	uint32_t pid; /* of the VMM */
	struct host_lend_bpf *programs;
	struct bpf_link *link;
	struct vp_guest_lister *lister;
	struct vp_agent_counts *agent;
	bool lends;
	uint64_t moved; /* VM entries with changed memory slots, at the last listing */
	uint32_t n;     /* number of events */
	VP_VEC(struct lent_vcpu) vcpus;
	VP_VEC(int) fds;
};

static struct vp_error *open_programs(void *context, const struct bpf_object_open_opts *options,
				      struct bpf_object_skeleton **ret)
{
	struct host_lend_bpf **programs = context;

	*programs = host_lend_bpf__open_opts(options);
	if (!*programs)
		return vp_host_load_error(-errno, "lending");
	(*programs)->rodata->vendor = vp_host_vendor();
	*ret = (*programs)->skeleton;
	return NULL;
}

static struct vp_error *lender_load(struct host_lend_bpf **ret)
{
	struct vp_programs_load load = {.name = "lending", .context = ret, .open = open_programs};

	VP_TRY(vp_host_expect_btf("lending"));
	load.elf = host_lend_bpf__elf_bytes(&load.elf_size);
	struct vp_error *error = vp_programs_load(&load);
	if (!error)
		return NULL;
	host_lend_bpf__destroy(*ret);
	*ret = NULL;
	const char *lockdown = vp_host_lockdown(VP_SYSFS);
	if (!lockdown)
		return error;
	vp_error_free(error);
	return vp_error_new("this kernel is locked down (%s, as by Secure Boot): programs may not "
			    "write to guest memory",
			    lockdown);
}

static struct vp_error *lender_find_event(const char *name, struct vp_event *ret)
{
	struct vp_slice slice = {name, strlen(name)};

	if (!vp_event_find(slice, ret)) {
		VP_AUTO_FREE char *unknown = vp_event_unknown(slice);
		return vp_error_usage("option --events: %s", unknown);
	}
	if (ret->source != VP_FROM_COUNTER || ret->exclude_host || ret->exclude_guest ||
	    !vp_lend_name_fits(name))
		return vp_error_usage(
		    "option --events: '%s' cannot be lent: expected a perf event with the "
		    "modifiers u and k at most, shorter than %d characters",
		    name, VP_LENT_NAME_SIZE);
	return vp_pmu_resolve(VP_SYSFS, name, ret);
}

static const char no_counters_left[] = "KVM passes the PMU to guests (enable_mediated_pmu): no VM "
				       "could start while the host counts guest events";

/* Counts the vCPU thread in guest mode, always or not at all (pinned). */
static struct vp_error *open_counter(struct vp_lender *lender, const char *name,
				     const struct vp_event *event, uint32_t tid, uint32_t slot)
{
	struct perf_event_attr attr = vp_perf_event_attr(event);

	attr.exclude_host = 1;
	attr.pinned = 1;
	if (vp_host_event_blocks_vms(VP_SYSFS, &attr))
		return vp_error_new("cannot count '%s' of a guest: %s", name, no_counters_left);
	int fd = vp_perf_event_open(&attr, (int)tid, -1, -1);
	if (fd < 0 && (errno == ENOENT || errno == EOPNOTSUPP || errno == EINVAL))
		return vp_error_errno(errno, "this host cannot count '%s' of a guest", name);
	if (fd < 0)
		return vp_error_errno(errno, "cannot count '%s' of vCPU thread %u", name, tid);
	vp_vec_push(&lender->fds, fd);
	if (bpf_map_update_elem(bpf_map__fd(lender->programs->maps.events), &slot, &fd, BPF_ANY))
		return vp_error_errno(errno, "cannot pass '%s' to the lending program", name);
	return NULL;
}

static struct vp_error *lender_open_counters(struct vp_lender *lender, const struct vp_vm *vm,
					     const char *const *names)
{
	struct vp_event events[VP_LENT_EVENTS];

	for (uint32_t i = 0; i < lender->n; i++)
		VP_TRY(lender_find_event(names[i], &events[i]));
	vp_vec_each (&vm->vcpus, vcpu) {
		uint32_t first = (uint32_t)lender->vcpus.count * VP_LENT_EVENTS;
		if (!vcpu->tid)
			continue;
		if (lender->vcpus.count == VP_LEND_MAX_VCPUS)
			return vp_error_new("counters can be lent to at most %d vCPUs",
					    VP_LEND_MAX_VCPUS);
		for (uint32_t i = 0; i < lender->n; i++)
			VP_TRY(open_counter(lender, names[i], &events[i], vcpu->tid, first + i));
		vp_vec_push(&lender->vcpus, ((struct lent_vcpu){vcpu->number, vcpu->tid, first}));
	}
	return lender->vcpus.count ? NULL
				   : vp_error_new("VM '%s' has no known vCPU threads", vm->name);
}

static struct vp_error *ask_agent(struct vp_lender *lender, const struct vp_vm *vm,
				  const char *const *names, unsigned port)
{
	struct vp_lend_request request = {.n = lender->n};

	const struct vp_agent_address address = vp_agent_address_of(vm, port);

	if (!vp_agent_is_addressed(&address))
		return vp_error_new("VM '%s' has no vsock device: its agent cannot be reached",
				    vm->name);
	for (uint32_t i = 0; i < lender->n; i++)
		strncpy(request.names[i], names[i], VP_LENT_NAME_SIZE - 1);
	return vp_agent_lend_start(&address, &request, &lender->agent);
}

static struct vp_error *lender_open_all(struct vp_lender *lender, const struct vp_vm *vm,
					const char *const *names, unsigned port)
{
	if (!lender->n || lender->n > VP_LENT_EVENTS)
		return vp_error_usage("option --events: expected 1 to %d events, got %u",
				      VP_LENT_EVENTS, lender->n);
	VP_TRY(lender_load(&lender->programs));
	VP_TRY(lender_open_counters(lender, vm, names));
	VP_TRY(vp_guest_lister_new(&lender->lister));
	lender->link = bpf_program__attach(lender->programs->progs.publish);
	if (!lender->link)
		return vp_error_errno(errno, "cannot attach to KVM's VM entries");
	return ask_agent(lender, vm, names, port);
}

struct vp_error *vp_lender_open(const struct vp_vm *vm, const char *const *names, size_t n,
				unsigned port, struct vp_lender **ret)
{
	struct vp_lender *lender = vp_alloc(sizeof(*lender));

	*lender = (struct vp_lender){.pid = vm->pid, .n = (uint32_t)n};
	struct vp_error *error = lender_open_all(lender, vm, names, port);
	if (error)
		vp_lender_free(lender);
	else
		*ret = lender;
	return error;
}

void vp_lender_free(struct vp_lender *lender)
{
	if (!lender)
		return;
	bpf_link__destroy(lender->link);
	vp_agent_counts_free(lender->agent);
	vp_guest_lister_free(lender->lister);
	host_lend_bpf__destroy(lender->programs);
	vp_vec_each (&lender->fds, fd)
		close(*fd);
	vp_vec_deinit(&lender->fds);
	vp_vec_deinit(&lender->vcpus);
	free(lender);
}

/* The cell's address comes from the guest: accepted only within guest memory. */
static uint64_t hva_of_cell(const struct vp_guest_state *state,
			    const struct vp_agent_memory *memory, uint32_t vcpu)
{
	vp_vec_each (&memory->cells, cell)
		if (cell->vcpu == vcpu && cell->gpa % sizeof(struct vp_lent_cell) == 0)
			return vp_guest_state_hva(state, cell->gpa);
	return 0;
}

/* The thread id is set last: the program uses the entry from then on. */
static bool lender_put_vcpu(const struct vp_lender *lender, struct lent_vcpu *vcpu,
			    struct vp_lend_vcpu *entry)
{
	int map = bpf_map__fd(lender->programs->maps.vcpus);

	for (uint32_t i = 0; i < VP_LEND_TRIES; i++) {
		struct vp_lend_vcpu there;
		vcpu->slot = (vcpu->tid + i) % VP_LEND_SLOTS;
		if (bpf_map_lookup_elem(map, &vcpu->slot, &there))
			return false;
		if (there.tid)
			continue;
		if (bpf_map_update_elem(map, &vcpu->slot, entry, BPF_ANY))
			return false;
		entry->tid = vcpu->tid;
		return !bpf_map_update_elem(map, &vcpu->slot, entry, BPF_ANY);
	}
	errno = ENOSPC;
	return false;
}

static struct vp_error *take_cells(struct vp_lender *lender, const struct vp_guest_state *state)
{
	const struct vp_agent_memory *memory = vp_agent_counts_memory(lender->agent);

	vp_vec_each (&lender->vcpus, vcpu) {
		struct vp_lend_vcpu entry = {.hva = hva_of_cell(state, memory, vcpu->number),
					     .marker = memory->marker,
					     .first = vcpu->first,
					     .n = lender->n};
		if (!entry.hva)
			return vp_error_new(
			    "the guest's agent reports no cell in guest memory for vCPU %u",
			    vcpu->number);
		if (!lender_put_vcpu(lender, vcpu, &entry))
			return vp_error_errno(errno, "cannot pass vCPU %u to the lending program",
					      vcpu->number);
		vcpu->hva = entry.hva;
		vcpu->has_cell = true;
	}
	return NULL;
}

/* The VM's memory slots have changed: continues if the cells are still in place. */
static struct vp_error *expect_cells(const struct vp_lender *lender,
				     const struct vp_guest_state *state)
{
	const struct vp_agent_memory *memory = vp_agent_counts_memory(lender->agent);

	vp_vec_each (&lender->vcpus, vcpu)
		if (hva_of_cell(state, memory, vcpu->number) != vcpu->hva)
			return vp_error_new("the VM's memory changed: the cell of vCPU %u is not "
					    "where it was",
					    vcpu->number);
	return NULL;
}

static struct vp_error *find_cells(struct vp_lender *lender)
{
	vp_guest_states states = {0};
	struct vp_error *error = vp_guest_lister_read_one(lender->lister, lender->pid, &states);

	if (!error)
		error = vp_guest_state_expect_open(&states.at[0]);
	if (!error)
		error = lender->lends ? expect_cells(lender, &states.at[0])
				      : take_cells(lender, &states.at[0]);
	/* The program writes nothing until it has the new generation. */
	if (!error)
		lender->programs->bss->generation = states.at[0].generation;
	vp_guest_states_deinit(&states);
	lender->lends = !error;
	return error;
}

static uint64_t count_moved(const struct vp_lender *lender)
{
	uint64_t moved = 0;

	vp_vec_each (&lender->vcpus, vcpu) {
		struct vp_lend_vcpu entry;
		if (vcpu->has_cell &&
		    !bpf_map_lookup_elem(bpf_map__fd(lender->programs->maps.vcpus), &vcpu->slot,
					 &entry))
			moved += entry.moved;
	}
	return moved;
}

static struct vp_error *follow_memory(struct vp_lender *lender)
{
	uint64_t moved = count_moved(lender);

	if (moved == lender->moved)
		return NULL;
	lender->moved = moved;
	return find_cells(lender);
}

struct vp_error *vp_lender_step(struct vp_lender *lender, int timeout_ms, bool *lends)
{
	enum vp_agent_counts_state state = vp_agent_counts_poll(lender->agent, timeout_ms);

	if (state == VP_AGENT_GONE)
		return vp_error_new("%s", vp_agent_counts_problem(lender->agent));
	if (state == VP_AGENT_COUNTING && !lender->lends)
		VP_TRY(find_cells(lender));
	else if (lender->lends)
		VP_TRY(follow_memory(lender));
	*lends = lender->lends;
	return NULL;
}

size_t vp_lender_vcpus(const struct vp_lender *lender)
{
	return lender->vcpus.count;
}

struct vp_lender_totals vp_lender_totals(const struct vp_lender *lender)
{
	struct vp_lender_totals totals = {0};

	vp_vec_each (&lender->vcpus, vcpu) {
		struct vp_lend_vcpu entry = {0};
		if (!vcpu->has_cell ||
		    bpf_map_lookup_elem(bpf_map__fd(lender->programs->maps.vcpus), &vcpu->slot,
					&entry))
			continue;
		totals.published += entry.published;
		totals.idle += entry.idle;
		totals.unread += entry.unread;
		totals.unwritten += entry.unwritten + entry.moved;
	}
	return totals;
}

static struct vp_error *try_lending(void)
{
	struct host_lend_bpf *programs = NULL;

	if (vp_host_vendor() == VP_VENDOR_UNKNOWN)
		return vp_error_new("no KVM on this host: counters can be lent to KVM guests only");
	VP_TRY(lender_load(&programs));
	host_lend_bpf__destroy(programs);
	if (vp_host_has_mediated_pmu(VP_SYSFS))
		return vp_error_new("%s", no_counters_left);
	return NULL;
}

static bool probe_lending(char *detail, size_t size)
{
	struct vp_error *error = try_lending();

	return vp_probe_report_opened(error, error ? NULL : "loaded", detail, size);
}

const struct vp_source *vp_source_lend(void)
{
	static const struct vp_probe probes[] = {
	    {"lending counters", "vperf lend: guests without a PMU have no counters", false,
	     probe_lending},
	};
	static const struct vp_source source = {probes, VP_ARRAY_SIZE(probes)};

	return &source;
}
