/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes a recording of a vCPU that halts and is woken: make_recording_with_wakeups DIR N. N
 * wake-ups have a waker that is known; one more comes before anything is known of the waker's pCPU,
 * and each is repeated when the vCPU is awake already.
 */
#include <stdio.h>

#include "../unit/make_recording.h"
#include "schema/trace_event.h"

#define AT(us) (MADE_START + (us)*1000ULL)

enum { VM = 1000, CPU0 = 1001, WAKER = 50, WAKERS_PCPU = 0, VCPUS_PCPU = 1, BLOCKED = 1 };

static void append(struct made *made, uint32_t pcpu, void *record)
{
	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_TRACE, pcpu}, record);
}

#define PUT(made, pcpu, us, event, ...)                                                            \
	append(made, pcpu,                                                                         \
	       &(struct vp_trace_##event){.time = AT(us),                                          \
					  .id = VP_TRACE_ID_##event,                               \
					  .size = VP_TRACE_SIZE_##event,                           \
					  __VA_ARGS__})

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
	vp_event_classes classes = {0};
	struct made made;

	if (argc != 3) {
		fputs("usage: make_recording_with_wakeups DIR N\n", stderr);
		return 2;
	}
	uint64_t rounds = strtoull(argv[2], NULL, 10) + 1;
	made_begin(&made, argv[1], 1);
	free(made.about.instruments);
	made.about.instruments = vp_strdup("profile trace");
	if (vp_trace_event_classes(&classes) || vp_trace_writer_define(made.writer, &classes))
		abort();
	vp_event_classes_deinit(&classes);
	made.pcpus = 2;
	for (uint64_t round = 0; round < rounds; round++) {
		put_round(&made, 10 + 1000 * round);
		if (!round)
			PUT(&made, WAKERS_PCPU, 800, sched_switch, .prev_tid = 0,
			    .next_tid = WAKER);
	}
	for (uint32_t pcpu = 0; pcpu < 2; pcpu++)
		vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_TRACE, pcpu}, 0);
	made_end(&made, rounds + 1);
	return 0;
}
