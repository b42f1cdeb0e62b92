/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "make_recording.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"

void made_begin(struct made *made, const char *name, unsigned n_vms)
{
	static const uint8_t uuid[16] = {1, 2, 3};
	struct vp_ctf_trace trace = {uuid, "made", "host", 0};

	*made = (struct made){0};
	snprintf(made->path, sizeof(made->path), "%s", name);
	/* What an earlier run left here would be read, too. */
	VP_AUTO_FREE char *command = vp_format("rm -rf '%s'", name);
	if (system(command) || mkdir(name, 0755))
		abort();
	VP_AUTO_FREE char *host = vp_format("%s/host", name);
	if (vp_trace_writer_create(host, &trace, &made->writer))
		abort();
	made->about = (struct vp_recording){.tool = vp_strdup("test"),
					    .hostname = vp_strdup("made"),
					    .kernel = vp_strdup("6.1"),
					    .instruments = vp_strdup("profile"),
					    .trigger = vp_strdup("cpu-clock"),
					    .command = vp_strdup(""),
					    .note = vp_strdup(""),
					    .period_ns = MADE_PERIOD,
					    .by_time = true,
					    .pcpus = 2,
					    .start = MADE_START};
	for (unsigned i = 0; i < n_vms; i++) {
		struct vp_vm vm = {.pid = 1000 * (i + 1),
				   .at_start = true,
				   .start = MADE_START,
				   .name = vp_format("vm%u", i),
				   .uuid = vp_strdup(""),
				   .agent = vp_strdup("")};
		for (unsigned j = 0; j < 2; j++)
			vp_vm_vcpu(&vm, j)->tid = vm.pid + j + 1;
		vp_vec_push(&made->vms, vm);
	}
}

void made_end(struct made *made, uint64_t end)
{
	for (uint32_t pcpu = 0; pcpu < made->pcpus; pcpu++) {
		vp_trace_flush(made->writer, vp_stream_of_pcpu(pcpu), made->lost);
		if (made->intervals)
			vp_trace_flush(made->writer,
				       (struct vp_stream_id){VP_STREAM_INTERVALS, pcpu},
				       made->lost);
	}
	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++)
		made->about.records[kind] = vp_trace_written(made->writer, VP_STREAMS(kind));
	made->about.end = end ? MADE_START + end * MADE_PERIOD : 0;
	if (vp_recording_write(made->path, &made->about) || vp_vms_write(made->path, &made->vms))
		abort();
	vp_trace_writer_free(made->writer);
	vp_recording_deinit(&made->about);
	vp_vms_deinit(&made->vms);
}

static void append(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t id,
		   union vp_any_record *record)
{
	record->header.id = id;
	record->header.time = MADE_START + tick * MADE_PERIOD + made->offset;
	made->pcpus = pcpu < made->pcpus ? made->pcpus : pcpu + 1;
	bool of_interval = id == VP_ID_interval || id == VP_ID_interval_value;
	made->intervals |= of_interval;
	vp_trace_append(
	    made->writer,
	    (struct vp_stream_id){of_interval ? VP_STREAM_INTERVALS : VP_STREAM_PCPU, pcpu},
	    record);
}

void made_guest(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu,
		uint32_t mode, int exit)
{
	union vp_any_record record = {
	    .guest_sample = {.vm = 1000 * (vm + 1),
			     .tid = 1000 * (vm + 1) + vcpu + 1,
			     .mode = mode,
			     .ip = 0x400000 + 16 * vm,
			     .as_root = 0x1000 * (vm + 1),
			     .vcpu = vcpu,
			     .exit_reason = (uint32_t)exit,
			     .vendor = VP_VENDOR_AMD,
			     .flags =
				 VP_HAS_AS_ROOT | (exit == MADE_UNKNOWN ? 0 : VP_HAS_EXIT_REASON)}};

	append(made, pcpu, tick, VP_ID_guest_sample, &record);
}

void made_guest_at(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t mode, uint64_t ip)
{
	union vp_any_record record = {.guest_sample = {.vm = 1000,
						       .tid = 1001,
						       .mode = mode,
						       .ip = ip,
						       .as_root = 0x1000,
						       .vendor = VP_VENDOR_AMD,
						       .flags = VP_HAS_AS_ROOT}};

	append(made, pcpu, tick, VP_ID_guest_sample, &record);
}

void made_guest_thread(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, uint32_t pid,
		       uint32_t tid, const char *comm, uint64_t root, uint64_t ip)
{
	union vp_any_record name = {
	    .guest_task = {.vm = 1000 * (vm + 1), .guest_pid = vm, .guest_tid = tid}};
	union vp_any_record record = {.guest_sample = {.vm = 1000 * (vm + 1),
						       .tid = 1000 * (vm + 1) + 1,
						       .mode = VP_MODE_GUEST_USER,
						       .ip = ip,
						       .as_root = root,
						       .flags = VP_HAS_AS_ROOT | VP_BY_MEMORY,
						       .guest_pid = pid,
						       .guest_tid = tid}};

	strncpy(name.guest_task.comm, comm, sizeof(name.guest_task.comm) - 1);
	append(made, pcpu, tick, VP_ID_guest_task, &name);
	append(made, pcpu, tick, VP_ID_guest_sample, &record);
}

void made_in_kvm(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu,
		 int exit)
{
	union vp_any_record record = {
	    .vcpu_sample = {.vm = 1000 * (vm + 1),
			    .tid = 1000 * (vm + 1) + vcpu + 1,
			    .mode = VP_MODE_KERNEL,
			    .ip = 0xffffffff81000000,
			    .vcpu = vcpu,
			    .exit_reason = (uint32_t)exit,
			    .vendor = VP_VENDOR_AMD,
			    .flags = exit == MADE_UNKNOWN ? 0 : VP_HAS_EXIT_REASON}};

	append(made, pcpu, tick, VP_ID_vcpu_sample, &record);
}

static void host_sample(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t pid, uint32_t tid,
			uint32_t mode)
{
	union vp_any_record record = {
	    .host_sample = {.pid = pid, .tid = tid, .mode = mode, .ip = 0xffffffff82000000}};

	append(made, pcpu, tick, VP_ID_host_sample, &record);
}

void made_in_vmm(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu)
{
	host_sample(made, pcpu, tick, 1000 * (vm + 1), 1000 * (vm + 1) + vcpu + 1, VP_MODE_USER);
}

void made_host(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t pid, uint32_t mode)
{
	host_sample(made, pcpu, tick, pid, pid, mode);
}

void made_period(struct made *made, uint32_t pcpu, uint64_t tick, uint64_t events)
{
	union vp_any_record record = {.sample_period = {.events = events}};

	append(made, pcpu, tick, VP_ID_sample_period, &record);
}

void made_idle(struct made *made, uint32_t pcpu, uint64_t tick)
{
	host_sample(made, pcpu, tick, 0, 0, VP_MODE_KERNEL);
}

static void switched(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu,
		     int exit, bool blocked, uint32_t id)
{
	union vp_any_record record = {
	    .vcpu_out = {.vm = 1000 * (vm + 1),
			 .tid = 1000 * (vm + 1) + vcpu + 1,
			 .vcpu = vcpu,
			 .exit_reason = (uint32_t)exit,
			 .vendor = VP_VENDOR_AMD,
			 .flags = (exit == MADE_UNKNOWN ? 0 : VP_HAS_EXIT_REASON) |
				  (blocked ? VP_BLOCKED : 0)}};

	append(made, pcpu, tick, id, &record);
}

void made_in(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu, int exit)
{
	switched(made, pcpu, tick, vm, vcpu, exit, false, VP_ID_vcpu_in);
}

void made_out(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu, int exit,
	      bool blocked)
{
	switched(made, pcpu, tick, vm, vcpu, exit, blocked, VP_ID_vcpu_out);
}

void made_task(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t pid, uint32_t tid,
	       const char *comm)
{
	union vp_any_record record = {.task = {.pid = pid, .tid = tid}};

	strncpy(record.task.comm, comm, sizeof(record.task.comm) - 1);
	append(made, pcpu, tick, VP_ID_task, &record);
}

void made_regs(struct made *made, uint32_t pcpu, uint64_t tick, const struct vp_guest_regs *regs)
{
	union vp_any_record record = {.guest_regs = *regs};

	made->about.chains = true;
	append(made, pcpu, tick, VP_ID_guest_regs, &record);
}

void made_frames(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t tid, uint32_t mode,
		 const uint64_t *ips, uint32_t count, uint32_t end)
{
	made_flagged_frames(made, pcpu, tick, tid, mode, ips, count, end, 0);
}

void made_flagged_frames(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t tid,
			 uint32_t mode, const uint64_t *ips, uint32_t count, uint32_t end,
			 uint32_t flags)
{
	union vp_any_record record = {
	    .chain_frames = {.tid = tid, .mode = mode, .count = count, .end = end, .flags = flags}};

	made->about.chains = true;
	memcpy(record.chain_frames.ips, ips, count * sizeof(*ips));
	append(made, pcpu, tick, VP_ID_chain_frames, &record);
}

void made_stack(struct made *made, uint32_t pcpu, uint64_t tick, const struct vp_chain_stack *piece)
{
	union vp_any_record record = {.chain_stack = *piece};

	append(made, pcpu, tick, VP_ID_chain_stack, &record);
}

void made_interval(struct made *made, uint32_t pcpu, uint64_t begin, uint64_t end, unsigned vm,
		   unsigned vcpu, uint32_t flags, unsigned n, const uint64_t *values,
		   const uint32_t *live)
{
	union vp_any_record record = {
	    .interval = {.owner = 1000 * (vm + 1),
			 .tid = 1000 * (vm + 1) + vcpu + 1,
			 .vcpu = vcpu,
			 .flags = flags,
			 .values = n,
			 .comm = "CPU",
			 .begin = MADE_START + begin * MADE_PERIOD + made->offset}};

	append(made, pcpu, end, VP_ID_interval, &record);
	for (unsigned i = 0; i < n; i++) {
		record.interval_value =
		    (struct vp_interval_value){.place = i, .value = values[i], .live = live[i]};
		append(made, pcpu, end, VP_ID_interval_value, &record);
	}
}

void made_event(struct made *made, uint32_t pcpu, void *record)
{
	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_TRACE, pcpu}, record);
}

void made_trace_begin(struct made *made, uint32_t pcpus)
{
	vp_event_classes classes = {0};

	free(made->about.instruments);
	made->about.instruments = vp_strdup("profile trace");
	made->about.pcpus = pcpus;
	if (vp_trace_event_classes(&classes) || vp_trace_writer_define(made->writer, &classes))
		abort();
	vp_event_classes_deinit(&classes);
}

void made_trace_end(struct made *made, uint32_t pcpus, uint64_t end)
{
	for (uint32_t pcpu = 0; pcpu < pcpus; pcpu++)
		vp_trace_flush(made->writer, (struct vp_stream_id){VP_STREAM_TRACE, pcpu}, 0);
	made_end(made, end);
}
