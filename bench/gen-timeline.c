/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a synthetic recording has beside samples: intervals with counters, and events. */
#include "base/alloc.h"
#include "base/file.h"
#include "gen.h"
#include "schema/trace_event.h"
#include "store/trace_writer.h"

enum { AMD_INTR = 0x60, AMD_HLT = 0x78, EVENTS_OF_A_TURN = 4, VALUES = 2 };

static uint32_t pid_of(uint64_t vm)
{
	return (uint32_t)(GEN_VMM * (vm + 1));
}

static uint32_t tid_of(uint64_t vm, uint32_t pcpu)
{
	return pid_of(vm) + 1 + pcpu;
}

static void put_interval(struct vp_trace_writer *writer, uint32_t pcpu, uint64_t vm, uint64_t begin,
			 uint64_t end, uint64_t exits)
{
	const struct vp_stream_id stream = {VP_STREAM_INTERVALS, pcpu};
	const uint64_t values[VALUES] = {exits, end - begin};
	struct vp_interval interval = {.time = end,
				       .id = VP_ID_interval,
				       .owner = pid_of(vm),
				       .tid = tid_of(vm, pcpu),
				       .vcpu = pcpu,
				       .values = VALUES,
				       .comm = "CPU",
				       .begin = begin};

	vp_trace_append(writer, stream, &interval);
	for (uint32_t i = 0; i < VALUES; i++) {
		struct vp_interval_value value = {.time = end,
						  .id = VP_ID_interval_value,
						  .place = i,
						  .value = values[i],
						  .live = 1000000000};
		vp_trace_append(writer, stream, &value);
	}
}

struct vp_error *gen_intervals(const char *directory, struct vp_trace_writer *writer,
			       uint64_t count, uint64_t end)
{
	static const char recipe[] = "interval time 1ms\nper vcpu\ncount exits time\n";
	VP_AUTO_FREE char *path = vp_format("%s/recipe", directory);
	uint64_t rounds = count / (GEN_PCPUS * GEN_VMS), state = 1;
	uint64_t length = rounds ? (end - GEN_START) / rounds : 0;

	for (uint64_t i = 0; i < rounds; i++)
		for (uint32_t pcpu = 0; pcpu < GEN_PCPUS; pcpu++)
			for (uint64_t vm = 0; vm < GEN_VMS; vm++)
				put_interval(writer, pcpu, vm, GEN_START + i * length,
					     GEN_START + (i + 1) * length,
					     gen_random(&state) % 1000);
	for (uint32_t pcpu = 0; pcpu < GEN_PCPUS; pcpu++)
		vp_trace_flush(writer, (struct vp_stream_id){VP_STREAM_INTERVALS, pcpu}, 0);
	return vp_file_publish(path, recipe, sizeof(recipe) - 1);
}

#define PUT(writer, pcpu, at, event, ...)                                                          \
	vp_trace_append(writer, (struct vp_stream_id){VP_STREAM_TRACE, pcpu},                      \
			&(struct vp_trace_##event){.time = (at),                                   \
						   .id = VP_TRACE_ID_##event,                      \
						   .size = VP_TRACE_SIZE_##event,                  \
						   __VA_ARGS__})

/* A vCPU's turn: in the guest, one exit, in the guest again, until the next one gets its pCPU. */
static void put_turn(struct vp_trace_writer *writer, uint32_t pcpu, uint64_t vm, uint64_t begin,
		     uint64_t length)
{
	uint32_t tid = tid_of(vm, pcpu), pid = pid_of(vm);
	uint32_t next = tid_of((vm + 1) % GEN_VMS, pcpu);

	PUT(writer, pcpu, begin, kvm_entry, .tid = tid, .vm = pid, .vcpu = pcpu);
	PUT(writer, pcpu, begin + length / 2, kvm_exit, .tid = tid, .vm = pid, .vcpu = pcpu,
	    .reason = begin % 3 ? AMD_INTR : AMD_HLT, .vendor = VP_VENDOR_AMD);
	PUT(writer, pcpu, begin + length / 2 + length / 8, kvm_entry, .tid = tid, .vm = pid,
	    .vcpu = pcpu);
	PUT(writer, pcpu, begin + length - 1, sched_switch, .prev_tid = tid, .next_tid = next);
}

struct vp_error *gen_events(struct vp_trace_writer *writer, uint64_t count, uint64_t end)
{
	uint64_t turns = count / (GEN_PCPUS * EVENTS_OF_A_TURN);
	uint64_t length = turns ? (end - GEN_START) / turns : 0;
	vp_event_classes classes = {0};
	struct vp_error *error = vp_trace_event_classes(&classes);

	if (!error)
		error = vp_trace_writer_define(writer, &classes);
	for (uint32_t pcpu = 0; pcpu < GEN_PCPUS && !error; pcpu++) {
		for (uint64_t i = 0; i < turns; i++)
			put_turn(writer, pcpu, i % GEN_VMS, GEN_START + i * length, length);
		vp_trace_flush(writer, (struct vp_stream_id){VP_STREAM_TRACE, pcpu}, 0);
	}
	vp_event_classes_deinit(&classes);
	return error;
}
