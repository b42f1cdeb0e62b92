/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples with the events that make the counting of records depend on their order: vCPUs migrate
 * and block, threads are renamed, a VM ends and another one starts with its pid, idle pCPUs have no
 * samples, samples have periods, late ticks, pids from guest memory, VM exits for interrupts, and
 * (with chains) stacks.
 */
#include "base/alloc.h"
#include "gen.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "store/trace_writer.h"

enum {
	AMD_INTR = 0x60,
	AMD_HLT = 0x78,
	AMD_NPF = 0x400,
	TASKS = 6,     /* host threads without a vCPU */
	NAMES = 5,     /* of threads */
	RARELY = 60,   /* one in this many samples follows a change, … */
	PHASE = 20000, /* … in every second phase of this many ticks */
};

/* A vCPU's thread. */
struct place {
	uint32_t pcpu;
	uint32_t tid;
};

struct changes {
	const struct gen_changes *wanted;
	struct vp_trace_writer *writer;
	uint64_t state;
	uint64_t time;
	struct place places[GEN_CHANGING_VMS][GEN_PCPUS];
};

static uint32_t any(struct changes *changes, uint32_t count)
{
	return (uint32_t)(gen_random(&changes->state) % count);
}

static void put(struct changes *changes, uint32_t pcpu, void *record)
{
	vp_trace_append(changes->writer, vp_stream_of_pcpu(pcpu), record);
}

static void comm_of(uint32_t number, char comm[16])
{
	static const char *const names[NAMES] = {"CPU 0/KVM", "worker", "a name of 16 ch", "x", ""};

	memset(comm, 0, 16);
	strncpy(comm, names[number % NAMES], 15);
}

static void rename_host(struct changes *changes, uint32_t pcpu, uint32_t pid, uint32_t tid)
{
	struct vp_task task = {.time = changes->time, .id = VP_ID_task, .pid = pid, .tid = tid};

	comm_of(any(changes, NAMES), task.comm);
	put(changes, pcpu, &task);
}

static void rename_guest(struct changes *changes, uint32_t pcpu, uint32_t vm, uint32_t process)
{
	struct vp_guest_task task = {.time = changes->time,
				     .id = VP_ID_guest_task,
				     .vm = vm,
				     .guest_pid = 100 + process,
				     .guest_tid = 100 + process};

	comm_of(any(changes, NAMES), task.comm);
	put(changes, pcpu, &task);
}

static void put_switch(struct changes *changes, uint32_t pcpu, uint32_t vm, uint32_t vcpu,
		       uint32_t tid)
{
	bool out = any(changes, 2), known = any(changes, 4);
	union vp_any_record record = {
	    .vcpu_in = {.time = changes->time,
			.id = out ? VP_ID_vcpu_out : VP_ID_vcpu_in,
			.flags = (uint16_t)((known ? VP_HAS_EXIT_REASON : 0) |
					    (out && any(changes, 2) ? VP_BLOCKED : 0)),
			.vm = vm,
			.tid = tid,
			.vcpu = (uint16_t)vcpu,
			.vendor = VP_VENDOR_AMD,
			.exit_reason = any(changes, 2) ? AMD_HLT : AMD_NPF}};

	put(changes, pcpu, &record);
}

static void put_period(struct changes *changes, uint32_t pcpu)
{
	struct vp_sample_period period = {.time = changes->time,
					  .id = VP_ID_sample_period,
					  .events = 1 + gen_random(&changes->state) % 5000};

	put(changes, pcpu, &period);
}

static void put_chain(struct changes *changes, uint32_t pcpu, uint32_t tid, uint64_t ip, bool guest)
{
	struct vp_chain_frames chain = {.time = changes->time,
					.id = VP_ID_chain_frames,
					.tid = tid,
					.mode = guest ? VP_MODE_GUEST_USER : VP_MODE_USER,
					.count = 4,
					.ips = {ip}};

	for (uint32_t i = 1; i < chain.count; i++)
		chain.ips[i] = gen_address(&changes->state, GEN_TEXT);
	put(changes, pcpu, &chain);
}

/* The VMs at this time: the second one ends, and the third one starts with its pid. */
static uint32_t vm_now(struct changes *changes)
{
	uint64_t end = changes->wanted->end, length = end - GEN_START;
	uint32_t number = any(changes, GEN_CHANGING_VMS);
	uint64_t at = changes->time - GEN_START;

	if (number == 1 && at > length / 2)
		return 0;
	if (number == 2 && at < length / 2 + length / 10)
		return 0;
	return number;
}

static uint64_t address_of(struct changes *changes, bool kernel)
{
	if (!any(changes, 50))
		return any(changes, 2) ? 0 : 0x7000 + 4096ULL * any(changes, 20);
	return gen_address(&changes->state, kernel ? GEN_KERNEL_TEXT : GEN_TEXT);
}

static void put_host(struct changes *changes, uint32_t pcpu, uint32_t pid, uint32_t tid)
{
	bool kernel = !pid || any(changes, 2);
	struct vp_host_sample sample = {.time = changes->time,
					.id = VP_ID_host_sample,
					.flags = any(changes, 9) ? 0 : VP_LATE,
					.pid = pid,
					.tid = tid,
					.mode = kernel ? VP_MODE_KERNEL : VP_MODE_USER,
					.ip = address_of(changes, kernel)};

	if (changes->wanted->chains && pid && any(changes, 2))
		put_chain(changes, pcpu, tid, sample.ip, false);
	put(changes, pcpu, &sample);
}

static void put_vcpu(struct changes *changes, uint32_t pcpu, uint32_t vm, uint32_t vcpu,
		     uint32_t tid)
{
	static const uint32_t reasons[] = {AMD_NPF, AMD_HLT, AMD_INTR};
	struct vp_vcpu_sample sample = {.time = changes->time,
					.id = VP_ID_vcpu_sample,
					.flags = any(changes, 5) ? VP_HAS_EXIT_REASON : 0,
					.vm = vm,
					.tid = tid,
					.mode = VP_MODE_KERNEL,
					.vendor = VP_VENDOR_AMD,
					.vcpu = (uint16_t)vcpu,
					.ip = address_of(changes, true),
					.exit_reason = reasons[any(changes, 3)]};

	put(changes, pcpu, &sample);
}

static void put_guest(struct changes *changes, uint32_t pcpu, uint32_t vm, uint32_t vcpu,
		      uint32_t tid)
{
	bool kernel = any(changes, 4) == 0, by_memory = any(changes, 3) == 0;
	uint32_t process = any(changes, GEN_PROCESSES);
	struct vp_guest_sample sample = {
	    .time = changes->time,
	    .id = VP_ID_guest_sample,
	    .flags = (uint16_t)((any(changes, 5) ? VP_HAS_EXIT_REASON : 0) | VP_HAS_AS_ROOT |
				VP_HAS_CPL | (any(changes, 9) ? 0 : VP_LATE) |
				(by_memory ? VP_BY_MEMORY : 0) |
				(any(changes, 7) ? 0 : VP_AT_INTERRUPT)),
	    .vm = vm,
	    .tid = tid,
	    .mode = kernel ? VP_MODE_GUEST_KERNEL : VP_MODE_GUEST_USER,
	    .vendor = VP_VENDOR_AMD,
	    .vcpu = (uint16_t)vcpu,
	    .ip = address_of(changes, kernel),
	    .as_root = 0x10000ULL * (process + 1),
	    .exit_reason = AMD_INTR,
	    .cpl = kernel ? 0 : 3,
	    .guest_pid = by_memory ? 100 + process : 0,
	    .guest_tid = by_memory ? 100 + process : 0};

	if (changes->wanted->chains && any(changes, 2))
		put_chain(changes, pcpu, tid, sample.ip, true);
	put(changes, pcpu, &sample);
}

/* A vCPU of the VM at home on the pCPU, or GEN_PCPUS. */
static uint32_t vcpu_on(struct changes *changes, uint32_t vm, uint32_t pcpu)
{
	uint32_t first = any(changes, GEN_PCPUS);

	for (uint32_t i = 0; i < GEN_PCPUS; i++)
		if (changes->places[vm][(first + i) % GEN_PCPUS].pcpu == pcpu)
			return (first + i) % GEN_PCPUS;
	return GEN_PCPUS;
}

/* One change, or none. */
static void change(struct changes *changes, uint32_t pcpu, uint32_t vm)
{
	uint32_t id = changes->wanted->ids[vm], vcpu = any(changes, GEN_PCPUS);
	struct place *place = &changes->places[vm][vcpu];

	if ((changes->time - GEN_START) / GEN_PERIOD / PHASE % 2)
		return;
	switch (any(changes, RARELY)) {
	case 0:
		place->pcpu = any(changes, GEN_PCPUS);
		break;
	case 1:
		rename_host(changes, pcpu, id & VP_PID_MASK, place->tid);
		break;
	case 2:
		rename_guest(changes, pcpu, id, any(changes, GEN_PROCESSES));
		break;
	case 3:
		rename_host(changes, pcpu, GEN_TASK, GEN_TASK + any(changes, TASKS));
		break;
	case 4:
		if (place->pcpu == pcpu)
			put_switch(changes, pcpu, id, vcpu, place->tid);
		break;
	default:
		break;
	}
}

static void tick(struct changes *changes, uint32_t pcpu)
{
	uint32_t vm = vm_now(changes), what = any(changes, 100);
	uint32_t vcpu = vcpu_on(changes, vm, pcpu);

	change(changes, pcpu, vm);
	if (changes->wanted->periods && any(changes, 3))
		put_period(changes, pcpu);
	if (what < 10) {
		if (!changes->wanted->gaps)
			put_host(changes, pcpu, 0, 0);
		return;
	}
	if (what < 20 || vcpu == GEN_PCPUS) {
		put_host(changes, pcpu, GEN_TASK, GEN_TASK + any(changes, TASKS));
		return;
	}
	uint32_t tid = changes->places[vm][vcpu].tid, id = changes->wanted->ids[vm];
	if (what < 30)
		put_host(changes, pcpu, id & VP_PID_MASK, tid);
	else if (what < 45)
		put_vcpu(changes, pcpu, id, vcpu, tid);
	else
		put_guest(changes, pcpu, id, vcpu, tid);
}

static void put_clock(struct changes *changes)
{
	struct vp_clock_sync sync = {.time = changes->time,
				     .id = VP_ID_clock_sync,
				     .tsc = changes->time,
				     .realtime = changes->time};

	put(changes, 0, &sync);
}

void gen_changes(struct vp_trace_writer *writer, const struct gen_changes *wanted)
{
	struct changes changes = {
	    .wanted = wanted, .writer = writer, .state = 88172645463325252ULL, .time = GEN_START};

	for (uint32_t vm = 0; vm < GEN_CHANGING_VMS; vm++)
		for (uint32_t vcpu = 0; vcpu < GEN_PCPUS; vcpu++)
			changes.places[vm][vcpu] =
			    (struct place){vcpu, wanted->tids[vm] + 1 + vcpu};
	put_clock(&changes);
	for (uint64_t i = 0; i < wanted->samples; i++) {
		uint32_t pcpu = i % GEN_PCPUS;
		changes.time = GEN_START + i / GEN_PCPUS * GEN_PERIOD + 1000 * pcpu;
		tick(&changes, pcpu);
	}
	put_clock(&changes);
}
