/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A directory of CTF 1.8 traces in the layout of LTTng's kernel tracer, one for the host and one
 * per VM. Trace Compass opens it as a "Virtual Machine Experiment". All times are on the host's
 * clock. Each trace has its own clock uuid, so that Trace Compass treats it as a different machine
 * and does not synchronise it again.
 *
 * Before the first event, synthetic events map threads to vCPUs for Trace Compass: a pair of marks
 * per vCPU at the time when its thread had the pCPU, one nanosecond apart.
 */
#include "analyze/report/export.h"
#include "analyze/report/report.h"
#include "analyze/trace/script.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"
#include "export/exporters.h"
#include "schema/event_class.h"
#include "schema/schema.h"
#include "schema/vm.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_reader.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "export/lttng_events.h"
#include "store/trace_writer.h"
#include "timeline/clock_map.h"

enum { MARKS = 8 /* ns reserved per vCPU; more than its number of synthetic events */ };

struct machine {
	struct vp_trace_writer *writer;
	uint32_t cpus; /* number of CPUs with events */
};

struct ctf {
	vp_event_classes classes;
	VP_VEC(struct machine) machines; /* the host, then the VMs in the order of the report */
	struct vp_buffer record;
	struct vp_intern left_out;
	VP_VEC(uint64_t) n_left_out;
	bool begun;
};

static void export_ctf_fail(struct vp_export *export, struct vp_error *error)
{
	if (export->error)
		vp_error_free(error);
	else
		export->error = error;
}

static void make_uuid(const char *part, const struct vp_report *report, uint8_t uuid[16])
{
	for (unsigned half = 0; half < 2; half++) {
		XXH64_hash_t hash = XXH64(part, strlen(part), report->recording.start + half);
		memcpy(uuid + half * sizeof(hash), &hash, sizeof(hash));
	}
	uuid[6] = (uuid[6] & 0x0f) | 0x40; /* RFC 4122: version 4, variant 1 */
	uuid[8] = (uuid[8] & 0x3f) | 0x80;
}

static void export_ctf_add_machine(struct vp_export *export, const char *part, const char *name,
				   int64_t realtime_offset)
{
	struct ctf *ctf = export->state;
	VP_AUTO_FREE char *path = vp_format("%s/%s", export->directory, part);
	struct machine machine = {0};
	uint8_t uuid[16];

	make_uuid(part, export->report, uuid);
	const struct vp_ctf_trace trace = {.uuid = uuid,
					   .hostname = name,
					   .machine = ctf->machines.count ? "guest" : "host",
					   .realtime_offset_ns = realtime_offset,
					   .classes = &ctf->classes,
					   .as_lttng = true};
	struct vp_error *error = vp_trace_writer_create(path, &trace, &machine.writer);
	if (error)
		export_ctf_fail(export, error);
	vp_vec_push(&ctf->machines, machine);
}

/* CLOCK_REALTIME - CLOCK_MONOTONIC; 0: unknown. */
static int64_t realtime_offset_of(const struct vp_report *report)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", report->path);
	vp_stream_readers streams = {0};
	struct vp_host_clock clock = {0};

	vp_error_free(vp_trace_open(host, VP_STREAMS_ALL, &streams));
	vp_host_clock_read(&streams, &clock);
	vp_trace_close(&streams);
	return clock.realtime_offset_ns;
}

static void export_ctf_begin(struct vp_export *export)
{
	const struct vp_report *report = export->report;
	int64_t offset = realtime_offset_of(report);
	struct ctf *ctf = export->state;
	struct vp_error *error = vp_lttng_classes(&ctf->classes);

	if (error)
		export_ctf_fail(export, error);
	export_ctf_add_machine(export, "host", report->recording.hostname, offset);
	vp_vec_each (&report->vms, vm) {
		VP_AUTO_FREE char *part = vp_vm_part(&report->vms, vm);
		export_ctf_add_machine(export, part, vm->name, offset);
	}
}

/* Appends `ctf->record` to the stream of the machine's CPU. */
static void export_ctf_append(struct ctf *ctf, struct machine *machine, uint32_t cpu)
{
	const struct vp_stream_id id = {VP_STREAM_TRACE, cpu};

	vp_trace_append(machine->writer, id, ctf->record.bytes);
	if (machine->cpus <= cpu)
		machine->cpus = cpu + 1;
	ctf->record.size = 0;
}

static uint64_t uid_of(const struct vp_vm *vm)
{
	return XXH64(vm->name, strlen(vm->name), vp_vm_id(vm));
}

static void mark_vcpu(struct ctf *ctf, const struct vp_vm *vm, struct machine *guest,
		      const struct vp_vcpu *vcpu, uint64_t time)
{
	struct machine *host = &ctf->machines.at[0];
	VP_AUTO_FREE char *comm = vp_format("CPU %" PRIu32 "/KVM", vcpu->number);
	const struct vp_lttng_thread idle = {0, "swapper/0"}, thread = {vcpu->tid, comm};

	vp_lttng_put_process(&ctf->classes, time, vcpu->tid, vm->pid, comm, &ctf->record);
	export_ctf_append(ctf, host, 0);
	vp_lttng_put_switch(&ctf->classes, time + 1, &idle, &thread, &ctf->record);
	export_ctf_append(ctf, host, 0);
	vp_lttng_put_mark(&ctf->classes, VP_LTTNG_GUEST_MARK, time + 2, vcpu->number, uid_of(vm),
			  &ctf->record);
	export_ctf_append(ctf, guest, vcpu->number);
	vp_lttng_put_mark(&ctf->classes, VP_LTTNG_HOST_MARK, time + 3, vcpu->number, uid_of(vm),
			  &ctf->record);
	export_ctf_append(ctf, host, 0);
	vp_lttng_put_entry(&ctf->classes, time + 4, vcpu->number, &ctf->record);
	export_ctf_append(ctf, host, 0);
	vp_lttng_put_exit(&ctf->classes, time + 5, vcpu->number, &ctf->record);
	export_ctf_append(ctf, host, 0);
	vp_lttng_put_switch(&ctf->classes, time + 6, &thread, &idle, &ctf->record);
	export_ctf_append(ctf, host, 0);
}

static void mark_all(struct vp_export *export, uint64_t first)
{
	const struct vp_report *report = export->report;
	struct ctf *ctf = export->state;
	uint64_t vcpus = 0;

	vp_vec_each (&report->vms, vm)
		vcpus += vm->vcpus.count;
	uint64_t room = MARKS * vcpus, time = first > room ? first - room : 0;
	/* VMs known only from records have no trace. */
	for (size_t i = 0; i < report->vms.count && i + 1 < ctf->machines.count; i++)
		vp_vec_each (&report->vms.at[i].vcpus, vcpu) {
			mark_vcpu(ctf, &report->vms.at[i], &ctf->machines.at[i + 1], vcpu, time);
			time += MARKS;
		}
}

static void export_ctf_leave_out(struct ctf *ctf, const char *name)
{
	uint32_t number = vp_intern_string(&ctf->left_out, name);

	while (ctf->n_left_out.count <= number)
		vp_vec_push(&ctf->n_left_out, (uint64_t)0);
	ctf->n_left_out.at[number]++;
}

static void export_ctf_put_event(struct vp_export *export, const struct vp_script_event *event)
{
	struct ctf *ctf = export->state;
	uint32_t cpu = event->of_guest ? event->vcpu : event->pcpu;
	size_t machine = event->of_guest ? event->guest + 1 : 0;

	/* Samples are not events: only tracepoints have a system in their name. */
	if (!strchr(event->name, ':'))
		return;
	if (!ctf->begun)
		mark_all(export, event->time);
	ctf->begun = true;
	if (cpu != VP_NO_PCPU && machine < ctf->machines.count &&
	    vp_lttng_convert(&ctf->classes, event, &ctf->record))
		export_ctf_append(ctf, &ctf->machines.at[machine], cpu);
	else
		export_ctf_leave_out(ctf, event->name);
}

static void export_ctf_flush(struct vp_export *export, const struct machine *machine)
{
	for (uint32_t cpu = 0; cpu < machine->cpus; cpu++)
		vp_trace_flush(machine->writer, (struct vp_stream_id){VP_STREAM_TRACE, cpu}, 0);
	int failure = vp_trace_take_failure(machine->writer);
	if (failure)
		export_ctf_fail(
		    export, vp_error_errno(failure, "cannot write into '%s'", export->directory));
}

static void export_ctf_note_what_is_missing(struct vp_export *export)
{
	struct ctf *ctf = export->state;
	struct vp_buffer text = {0};

	if (!ctf->begun)
		vp_vec_push(&export->notes,
			    vp_format("the recording has no events%s",
				      vp_recording_advice(&export->report->recording,
							  ": 'vperf record --trace' records "
							  "them")));
	for (uint32_t i = 0; i < ctf->n_left_out.count; i++)
		vp_buffer_printf(&text, "%s%" PRIu64 " %s", i ? ", " : "", ctf->n_left_out.at[i],
				 vp_intern_text(&ctf->left_out, i));
	if (text.size)
		vp_vec_push(&export->notes,
			    vp_format("left out, as LTTng's kernel tracer has no such events: %s",
				      vp_buffer_text(&text)));
	vp_buffer_deinit(&text);
}

static void export_ctf_end(struct vp_export *export)
{
	struct ctf *ctf = export->state;

	vp_vec_each (&ctf->machines, machine)
		export_ctf_flush(export, machine);
	export_ctf_note_what_is_missing(export);
}

static void export_ctf_deinit(void *state)
{
	struct ctf *ctf = state;

	vp_vec_each (&ctf->machines, machine)
		vp_trace_writer_free(machine->writer);
	vp_vec_deinit(&ctf->machines);
	vp_event_classes_deinit(&ctf->classes);
	vp_buffer_deinit(&ctf->record);
	vp_intern_deinit(&ctf->left_out);
	vp_vec_deinit(&ctf->n_left_out);
}

const struct vp_exporter *vp_exporter_ctf(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct ctf),
						    .directory = true,
						    .begin = export_ctf_begin,
						    .event = export_ctf_put_event,
						    .end = export_ctf_end,
						    .deinit = export_ctf_deinit};

	return &exporter;
}
