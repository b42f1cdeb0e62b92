/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes a recording of two VMs of two vCPUs each, every one with another number of everything:
 * make_recording_of_two_vms DIR. What there is of which is told on standard output, as JSON.
 */
#include <stdio.h>

#include "../unit/make_recording.h"

#define AT(us) (MADE_START + (us)*1000ULL)

/* Waker and host process; vCPU `v` of VM `vm` is on pCPU 2 * vm + v, the former on the last. */
enum { VMS = 2, VCPUS = 2, WAKER = 50, WAKERS_PCPU = 4, HOST_PROCESS = 3000, BLOCKED = 1 };

static const unsigned in_guest[VMS][VCPUS] = {{3, 5}, {7, 11}};
static const unsigned in_vmm[VMS][VCPUS] = {{2, 4}, {6, 8}};
static const unsigned rounds[VMS][VCPUS] = {{4, 5}, {6, 7}};

static uint32_t vm_id(unsigned vm)
{
	return 1000 * (vm + 1);
}

static uint32_t thread_of(unsigned vm, unsigned vcpu)
{
	return vm_id(vm) + vcpu + 1;
}

static uint32_t guest_pid(unsigned vm, unsigned vcpu)
{
	return 100 * (vm + 1) + 10 * (vcpu + 1);
}

/* A sample of a process of its own in each vCPU, whose thread has the next number. */
static void put_guest(struct made *made, unsigned vm, unsigned vcpu, uint64_t tick)
{
	uint32_t pcpu = VCPUS * vm + vcpu, tid = guest_pid(vm, vcpu) + 1;
	uint64_t time = MADE_START + tick * MADE_PERIOD;
	union vp_any_record name = {.guest_task = {.time = time,
						   .id = VP_ID_guest_task,
						   .vm = vm_id(vm),
						   .guest_pid = guest_pid(vm, vcpu),
						   .guest_tid = tid}};
	union vp_any_record sample = {.guest_sample = {.time = time,
						       .id = VP_ID_guest_sample,
						       .vm = vm_id(vm),
						       .tid = thread_of(vm, vcpu),
						       .vcpu = (uint16_t)vcpu,
						       .mode = VP_MODE_GUEST_USER,
						       .ip = 0x400000 + 0x1000 * pcpu,
						       .as_root = 0x10000 * (pcpu + 1),
						       .flags = VP_HAS_AS_ROOT | VP_BY_MEMORY,
						       .guest_pid = guest_pid(vm, vcpu),
						       .guest_tid = tid}};

	snprintf(name.guest_task.comm, sizeof(name.guest_task.comm), "task-%u-%u", vm, vcpu);
	vp_trace_append(made->writer, vp_stream_of_pcpu(pcpu), &name);
	vp_trace_append(made->writer, vp_stream_of_pcpu(pcpu), &sample);
}

#define PUT(made, pcpu, us, event, ...) MADE_EVENT(made, pcpu, AT(us), event, __VA_ARGS__)

/* 1 ms: in the guest, then halted, woken by the other thread. */
static void put_round(struct made *made, unsigned vm, unsigned vcpu, uint64_t us)
{
	uint32_t pcpu = VCPUS * vm + vcpu, tid = thread_of(vm, vcpu);
	uint64_t guest_us = 100 * (pcpu + 1);

	PUT(made, pcpu, us, kvm_entry, .tid = tid, .vm = vm_id(vm), .vcpu = (uint16_t)vcpu);
	PUT(made, pcpu, us + guest_us, kvm_exit, .tid = tid, .vm = vm_id(vm), .reason = MADE_HLT,
	    .vcpu = (uint16_t)vcpu, .vendor = VP_VENDOR_AMD);
	PUT(made, pcpu, us + 510, sched_switch, .prev_tid = tid, .next_tid = 0,
	    .prev_state = BLOCKED);
	PUT(made, pcpu, us + 720, sched_switch, .prev_tid = 0, .next_tid = tid);
}

static void put_trace(struct made *made)
{
	PUT(made, WAKERS_PCPU, 5, sched_switch, .prev_tid = 0, .next_tid = WAKER);
	for (unsigned round = 0; round < 10; round++)
		for (unsigned vm = 0; vm < VMS; vm++)
			for (unsigned vcpu = 0; vcpu < VCPUS; vcpu++) {
				uint64_t us = 10 + 1000 * round;
				if (round >= rounds[vm][vcpu])
					continue;
				put_round(made, vm, vcpu, us);
				PUT(made, WAKERS_PCPU, us + 700 + VCPUS * vm + vcpu, sched_wakeup,
				    .tid = WAKER, .woken_tid = thread_of(vm, vcpu),
				    .target_cpu = VCPUS * vm + vcpu);
			}
}

static void tell(unsigned vm, unsigned vcpu)
{
	printf("%s{\"vm\": \"vm%u\", \"id\": %u, \"vcpu\": %u, \"pcpu\": %u, \"tid\": %u, "
	       "\"pid\": %u, \"process\": \"task-%u-%u\", \"in_guest\": %u, \"in_vmm\": %u, "
	       "\"rounds\": %u}",
	       vm || vcpu ? ", " : "[", vm, vm_id(vm), vcpu, VCPUS * vm + vcpu, thread_of(vm, vcpu),
	       guest_pid(vm, vcpu), vm, vcpu, in_guest[vm][vcpu], in_vmm[vm][vcpu],
	       rounds[vm][vcpu]);
}

int main(int argc, char **argv)
{
	struct made made;

	if (argc != 2) {
		fputs("usage: make_recording_of_two_vms DIR\n", stderr);
		return 2;
	}
	made_begin(&made, argv[1], VMS);
	made_trace_begin(&made, WAKERS_PCPU + 1);
	for (unsigned vm = 0; vm < VMS; vm++)
		for (unsigned vcpu = 0; vcpu < VCPUS; vcpu++) {
			for (unsigned i = 0; i < in_guest[vm][vcpu]; i++)
				put_guest(&made, vm, vcpu, 1 + i);
			for (unsigned i = 0; i < in_vmm[vm][vcpu]; i++)
				made_in_vmm(&made, VCPUS * vm + vcpu, 12 + i, vm, vcpu);
			tell(vm, vcpu);
		}
	for (unsigned i = 0; i < 9; i++)
		made_host(&made, WAKERS_PCPU, 1 + i, HOST_PROCESS, VP_MODE_USER);
	puts("]");
	put_trace(&made);
	made_trace_end(&made, WAKERS_PCPU + 1, 30);
	return 0;
}
