/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A directory of trace-cmd files, host.dat and guest-NAME.dat, which trace-cmd and KernelShark
 * recognise as belonging together: host.dat has the trace id of each guest file and the threads of
 * its vCPUs. All times are the host's CLOCK_MONOTONIC, so no offsets are needed.
 */
#include "analyze/report/export.h"
#include "analyze/trace/script.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "export/exporters.h"
#include "schema/vm.h"
#include "store/recording.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "export/tracedat_events.h"
#include "export/tracedat_file.h"

/* Constants of trace-cmd.dat(5). */
enum {
	OPTION_CLOCK = 4,
	OPTION_ID = 11,
	OPTION_GUEST = 13,
	NO_THREAD = -1,
	MAX_EVENTS = 65535,
	MAX_CPUS = 65535
};

struct machine {
	VP_VEC(struct vp_ftrace_format) formats;
	struct vp_map by_name; /* name of an event → its format */
	struct vp_intern names;
	vp_dat_cpus cpus;
	struct vp_map comms; /* tid -> text */
	VP_VEC(uint32_t) tids;
};

struct dat {
	struct vp_dat_pages pages;
	bool has_pages;
	VP_VEC(struct machine) machines; /* the host, then the VMs in the order of the report */
	struct vp_intern texts;
	struct vp_buffer event;
	uint64_t events, too_long, without_cpu;
};

static void export_tracedat_fail(struct vp_export *export, struct vp_error *error)
{
	if (export->error)
		vp_error_free(error);
	else
		export->error = error;
}

/* VMs known only from records are added during the export. */
static void make_machines(struct vp_export *export)
{
	struct dat *dat = export->state;

	while (dat->machines.count <= export->report->vms.count)
		vp_vec_push(&dat->machines, (struct machine){0});
}

static void export_tracedat_begin(struct vp_export *export)
{
	struct dat *dat = export->state;
	struct vp_error *error = vp_dat_pages_init(&dat->pages, export->directory);

	if (error)
		export_tracedat_fail(export, error);
	dat->has_pages = !error;
	make_machines(export);
}

static void deinit_machine(struct machine *machine)
{
	vp_vec_each (&machine->formats, format)
		vp_ftrace_format_deinit(format);
	vp_vec_deinit(&machine->formats);
	vp_map_deinit(&machine->by_name);
	vp_intern_deinit(&machine->names);
	vp_vec_each (&machine->cpus, cpu)
		vp_dat_cpu_deinit(cpu);
	vp_vec_deinit(&machine->cpus);
	vp_map_deinit(&machine->comms);
	vp_vec_deinit(&machine->tids);
}

static void export_tracedat_deinit(void *state)
{
	struct dat *dat = state;

	vp_vec_each (&dat->machines, machine)
		deinit_machine(machine);
	vp_vec_deinit(&dat->machines);
	vp_intern_deinit(&dat->texts);
	vp_buffer_deinit(&dat->event);
	if (dat->has_pages)
		vp_dat_pages_deinit(&dat->pages);
}

static const struct vp_ftrace_format *format_of(struct machine *machine,
						const struct vp_script_event *event)
{
	bool inserted;
	uint32_t name = vp_intern_string(&machine->names, event->name);
	uint32_t *number = vp_map_insert(&machine->by_name, name, 0, &inserted);

	if (!inserted && vp_ftrace_format_is_of(&machine->formats.at[*number], event))
		return &machine->formats.at[*number];
	/* Event classes of the same name with different fields are rare. */
	for (uint32_t i = 0; i < machine->formats.count; i++)
		if (vp_ftrace_format_is_of(&machine->formats.at[i], event)) {
			*number = i;
			return &machine->formats.at[i];
		}
	if (machine->formats.count == MAX_EVENTS)
		return NULL;
	*number = (uint32_t)machine->formats.count;
	struct vp_ftrace_format *format = vp_vec_push_slot(&machine->formats);
	vp_ftrace_format_make(event, (uint16_t)(*number + 1), format);
	return format;
}

static void export_tracedat_name_thread(struct dat *dat, struct machine *machine,
					const struct vp_script_event *event)
{
	bool inserted;

	if (!event->has_tid || !event->comm)
		return;
	uint32_t text = vp_intern_string(&dat->texts, event->comm);
	uint32_t *have = vp_map_insert(&machine->comms, event->tid, text, &inserted);
	*have = text; /* the latest name, as in trace-cmd's files */
	if (inserted)
		vp_vec_push(&machine->tids, event->tid);
}

static struct vp_dat_cpu *export_tracedat_cpu_of(struct machine *machine, uint32_t cpu)
{
	while (machine->cpus.count <= cpu)
		vp_vec_push(&machine->cpus, (struct vp_dat_cpu){0});
	return &machine->cpus.at[cpu];
}

static void export_tracedat_put_event(struct vp_export *export, const struct vp_script_event *event)
{
	struct dat *dat = export->state;
	uint32_t cpu = event->of_guest ? event->vcpu : event->pcpu;
	size_t number = event->of_guest ? event->guest + 1 : 0;

	/* Samples are not events: only tracepoints have a system in their name. */
	if (export->error || !strchr(event->name, ':'))
		return;
	const struct vp_ftrace_format *format = NULL;
	if (cpu < MAX_CPUS && number < dat->machines.count)
		format = format_of(&dat->machines.at[number], event);
	if (!format) {
		dat->without_cpu++;
		return;
	}
	struct machine *machine = &dat->machines.at[number];
	dat->event.size = 0;
	vp_ftrace_put(format, event, &dat->event);
	if (!vp_dat_cpu_put(export_tracedat_cpu_of(machine, cpu), &dat->pages, event->time,
			    dat->event.bytes, dat->event.size)) {
		dat->too_long++;
		return;
	}
	export_tracedat_name_thread(dat, machine, event);
	dat->events++;
}

static uint64_t export_tracedat_id_of(const struct vp_export *export, const char *part)
{
	return XXH64(part, strlen(part), export->report->recording.start);
}

static size_t system_size(const char *name)
{
	return (size_t)(strchr(name, ':') - name);
}

static bool same_system(const struct vp_ftrace_format *a, const struct vp_ftrace_format *b)
{
	size_t size = system_size(a->name);

	return size == system_size(b->name) && !memcmp(a->name, b->name, size);
}

/* A system with the formats of its events; `first`: index of its first event. */
static void put_system(const struct machine *machine, size_t first, struct vp_buffer *out)
{
	struct vp_buffer text = {0}, formats = {0};
	uint32_t count = 0;

	for (size_t i = first; i < machine->formats.count; i++) {
		const struct vp_ftrace_format *format = &machine->formats.at[i];
		if (!same_system(format, &machine->formats.at[first]))
			continue;
		text.size = 0;
		vp_ftrace_format_text(format, &text);
		uint64_t size = text.size;
		vp_buffer_append(&formats, &size, sizeof(size));
		vp_buffer_append(&formats, text.bytes, text.size);
		count++;
	}
	const char *name = machine->formats.at[first].name;
	vp_buffer_append(out, name, system_size(name));
	vp_buffer_append(out, "", 1);
	vp_buffer_append(out, &count, sizeof(count));
	vp_buffer_append(out, formats.bytes, formats.size);
	vp_buffer_deinit(&text);
	vp_buffer_deinit(&formats);
}

static void put_systems(const struct machine *machine, struct vp_dat_head *head)
{
	for (size_t i = 0; i < machine->formats.count; i++) {
		bool is_known = false;
		for (size_t before = 0; before < i && !is_known; before++)
			is_known =
			    same_system(&machine->formats.at[before], &machine->formats.at[i]);
		if (is_known)
			continue;
		put_system(machine, i, &head->systems);
		head->n_systems++;
	}
}

static void put_commands(const struct dat *dat, const struct machine *machine,
			 struct vp_buffer *out)
{
	vp_vec_each (&machine->tids, tid)
		vp_buffer_printf(out, "%" PRIu32 " %s\n", *tid,
				 vp_intern_text(&dat->texts, *vp_map_find(&machine->comms, *tid)));
}

/* The trace id of a guest, and the thread of each of its CPUs. */
static void export_tracedat_put_guest(const struct vp_vm *vm, uint64_t id,
				      struct vp_buffer *options)
{
	struct vp_buffer guest = {0};
	uint32_t cpus = 0;

	vp_vec_each (&vm->vcpus, vcpu)
		cpus = vcpu->number >= cpus ? vcpu->number + 1 : cpus;
	vp_buffer_append(&guest, vm->name, strlen(vm->name) + 1);
	vp_buffer_append(&guest, &id, sizeof(id));
	vp_buffer_append(&guest, &cpus, sizeof(cpus));
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		int32_t tid = NO_THREAD;
		vp_vec_each (&vm->vcpus, vcpu)
			if (vcpu->number == cpu)
				tid = (int32_t)vcpu->tid;
		vp_buffer_append(&guest, &cpu, sizeof(cpu));
		vp_buffer_append(&guest, &tid, sizeof(tid));
	}
	vp_dat_option(options, OPTION_GUEST, guest.bytes, guest.size);
	vp_buffer_deinit(&guest);
}

static void put_guests(const struct vp_export *export, struct vp_buffer *options)
{
	const struct dat *dat = export->state;
	const vp_vms *vms = &export->report->vms;

	for (size_t i = 0; i < vms->count; i++) {
		if (!dat->machines.at[i + 1].cpus.count)
			continue;
		VP_AUTO_FREE char *part = vp_vm_part(vms, &vms->at[i]);
		export_tracedat_put_guest(&vms->at[i], export_tracedat_id_of(export, part),
					  options);
	}
}

static void write_machine(struct vp_export *export, size_t number, const char *part)
{
	static const char clock[] = "[mono]\n";
	struct dat *dat = export->state;
	struct machine *machine = &dat->machines.at[number];
	VP_AUTO_FREE char *path = vp_format("%s/%s.dat", export->directory, part);
	struct vp_dat_head head = {0};
	uint64_t id = export_tracedat_id_of(export, part);

	put_systems(machine, &head);
	put_commands(dat, machine, &head.commands);
	vp_dat_option(&head.options, OPTION_CLOCK, clock, sizeof(clock));
	vp_dat_option(&head.options, OPTION_ID, &id, sizeof(id));
	if (!number)
		put_guests(export, &head.options);
	struct vp_error *error = vp_dat_write(path, &head, &machine->cpus, &dat->pages);
	if (error)
		export_tracedat_fail(export, error);
	vp_buffer_deinit(&head.systems);
	vp_buffer_deinit(&head.commands);
	vp_buffer_deinit(&head.options);
}

static void export_tracedat_note_count(struct vp_export *export, uint64_t count, const char *why)
{
	if (count)
		vp_vec_push(&export->notes,
			    vp_format("%" PRIu64 " events are left out: %s", count, why));
}

static void export_tracedat_end(struct vp_export *export)
{
	struct dat *dat = export->state;
	const vp_vms *vms = &export->report->vms;

	if (export->error)
		return;
	make_machines(export);
	export_tracedat_cpu_of(&dat->machines.at[0], 0); /* trace-cmd rejects a file without CPUs */
	write_machine(export, 0, "host");
	for (size_t i = 0; i < vms->count && !export->error; i++) {
		if (!dat->machines.at[i + 1].cpus.count)
			continue;
		VP_AUTO_FREE char *part = vp_vm_part(vms, &vms->at[i]);
		write_machine(export, i + 1, part);
	}
	if (!dat->events)
		vp_vec_push(&export->notes,
			    vp_format("the recording has no events%s",
				      vp_recording_advice(&export->report->recording,
							  ": 'vperf record --trace' records "
							  "them")));
	export_tracedat_note_count(export, dat->without_cpu, "their CPU is unknown");
	export_tracedat_note_count(export, dat->too_long, "they are longer than a page");
}

const struct vp_exporter *vp_exporter_tracedat(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct dat),
						    .directory = true,
						    .begin = export_tracedat_begin,
						    .event = export_tracedat_put_event,
						    .end = export_tracedat_end,
						    .deinit = export_tracedat_deinit};

	return &exporter;
}
