/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes a recording of a vCPU that halts and is woken: make_recording_with_wakeups DIR N. N
 * wake-ups have a waker that is known; one more comes before anything is known of the waker's pCPU,
 * and each is repeated when the vCPU is awake already.
 */
#include <stdio.h>

#include "../unit/make_recording.h"

#define AT(us) (MADE_START + (us)*1000ULL)

enum {
	VM = 1000,
	CPU0 = 1001,
	WAKER = 50,
	WAKERS_PCPU = 0,
	VCPUS_PCPU = 1,
	PCPUS = 2,
	BLOCKED = 1
};

#define PUT(made, pcpu, us, event, ...) MADE_EVENT(made, pcpu, AT(us), event, __VA_ARGS__)

static void put_wakeup(struct made *made, uint64_t us)
{
	PUT(made, WAKERS_PCPU, us, sched_wakeup, .tid = WAKER, .woken_tid = CPU0,
	    .target_cpu = VCPUS_PCPU);
}

/* 1 ms: 300 us in the guest, then halted until 500, awake on its pCPU at 520. */
static void put_round(struct made *made, uint64_t us)
{
	PUT(made, VCPUS_PCPU, us, kvm_entry, .tid = CPU0, .vm = VM, .vcpu = 0);
	PUT(made, VCPUS_PCPU, us + 300, kvm_exit, .tid = CPU0, .vm = VM, .reason = MADE_HLT,
	    .vcpu = 0, .vendor = VP_VENDOR_AMD);
	PUT(made, VCPUS_PCPU, us + 310, sched_switch, .prev_tid = CPU0, .next_tid = 0,
	    .prev_state = BLOCKED);
	put_wakeup(made, us + 500);
	PUT(made, VCPUS_PCPU, us + 520, sched_switch, .prev_tid = 0, .next_tid = CPU0);
	put_wakeup(made, us + 600);
}

int main(int argc, char **argv)
{
	struct made made;

	if (argc != 3) {
		fputs("usage: make_recording_with_wakeups DIR N\n", stderr);
		return 2;
	}
	uint64_t rounds = strtoull(argv[2], NULL, 10) + 1;
	made_begin(&made, argv[1], 1);
	made_trace_begin(&made, PCPUS);
	made.pcpus = PCPUS;
	for (uint64_t round = 0; round < rounds; round++) {
		put_round(&made, 10 + 1000 * round);
		if (!round)
			PUT(&made, WAKERS_PCPU, 800, sched_switch, .prev_tid = 0,
			    .next_tid = WAKER);
	}
	made_trace_end(&made, PCPUS, rounds + 1);
	return 0;
}
