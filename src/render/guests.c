/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/guests.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>

#include "analyze/table.h"
#include "guestmem/view.h"
#include "render/table.h"

/* How far KASLR has moved the kernel. */
static uint64_t slide_of(const struct vp_guest_finding *finding)
{
	return finding->text - VP_KERNEL_LINKED;
}

static void put_guest(const struct vp_guest_answer *answer, struct vp_buffer *out)
{
	const struct vp_guest_finding *finding = &answer->finding;

	vp_buffer_printf(out, "VM %s (process %u)\n", answer->vm->name, answer->vm->pid);
	if (answer->problem)
		vp_buffer_printf(out, "  %s\n", answer->problem);
	if (finding->dropped)
		vp_buffer_printf(out, "  a cached kernel pack was dropped: %s\n", finding->dropped);
	if (!finding->banner)
		return;
	vp_buffer_printf(out, "  %s\n  build-id ", finding->banner);
	vp_build_id_put(&finding->build_id, out);
	vp_buffer_printf(out,
			 ", at 0x%" PRIx64 " (KASLR slide 0x%" PRIx64 ", physical 0x%" PRIx64
			 "), %u-level paging\n  %s, %s; %zu CPUs, %zu processes\n%s",
			 finding->text, slide_of(finding), finding->gpa, finding->levels,
			 finding->scanned ? "found by looking through memory"
					  : "found by the vCPUs' registers",
			 finding->cached    ? "known by a kernel pack"
			 : finding->derived ? "symbols were read"
					    : "symbols and BTF were read",
			 finding->cpus.count, answer->processes.count,
			 finding->derived ? "  it has no BTF: tasks are told by what was worked "
					    "out, and mappings are not\n"
					  : "");
}

static void fill_table(const vp_guest_answers *answers, struct vp_table *table)
{
	vp_table_column_add(table, "vm", "VM", "", VP_CELL_TEXT);
	vp_table_column_add(table, "pid", "PID", "", VP_CELL_COUNT);
	vp_table_column_add(table, "process", "Process", "", VP_CELL_TEXT);
	vp_vec_each (answers, answer)
		vp_vec_each (&answer->processes, process) {
			vp_table_text(table, answer->vm->name);
			vp_table_count(table, process->tgid);
			vp_table_text(table, process->comm);
		}
}

void vp_render_guests_text(const vp_guest_answers *answers, struct vp_buffer *out)
{
	struct vp_table table = {0};

	vp_vec_each (answers, answer)
		put_guest(answer, out);
	fill_table(answers, &table);
	vp_render_table_text(&table, false, out);
	vp_table_deinit(&table);
}

void vp_render_guests_csv(const vp_guest_answers *answers, struct vp_buffer *out)
{
	struct vp_table table = {0};

	fill_table(answers, &table);
	vp_render_table_csv(&table, true, out);
	vp_table_deinit(&table);
}

static void add(struct json_object *object, const char *key, struct json_object *value)
{
	json_object_object_add(object, key, value);
}

static struct json_object *hex(uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_object_new_string(text);
}

static struct json_object *kernel_json(const struct vp_guest_finding *finding)
{
	struct json_object *kernel = json_object_new_object(), *cpus = json_object_new_array();
	struct vp_buffer build_id = {0};

	vp_build_id_put(&finding->build_id, &build_id);
	add(kernel, "banner", json_object_new_string(finding->banner));
	add(kernel, "build_id", json_object_new_string(vp_buffer_text(&build_id)));
	add(kernel, "text", hex(finding->text));
	add(kernel, "kaslr_slide", hex(slide_of(finding)));
	add(kernel, "physical", hex(finding->gpa));
	add(kernel, "direct_map", hex(finding->direct_map));
	add(kernel, "paging_levels", json_object_new_int64(finding->levels));
	add(kernel, "found_by", json_object_new_string(finding->scanned ? "scan" : "registers"));
	add(kernel, "pack", json_object_new_string(finding->cached ? "cached" : "read"));
	add(kernel, "derived", json_object_new_boolean(finding->derived));
	add(kernel, "dropped_pack",
	    finding->dropped ? json_object_new_string(finding->dropped) : NULL);
	vp_vec_each (&finding->cpus, cpu) {
		struct json_object *one = json_object_new_object();
		add(one, "vcpu", json_object_new_int64(cpu->vcpu));
		add(one, "cpu", json_object_new_int64(cpu->cpu));
		add(one, "current_at", hex(cpu->current_gpa));
		json_object_array_add(cpus, one);
	}
	add(kernel, "cpus", cpus);
	vp_buffer_deinit(&build_id);
	return kernel;
}

static struct json_object *answer_json(const struct vp_guest_answer *answer)
{
	struct json_object *vm = json_object_new_object(), *processes = json_object_new_array();

	add(vm, "vm", json_object_new_string(answer->vm->name));
	add(vm, "pid", json_object_new_int64(answer->vm->pid));
	add(vm, "problem", answer->problem ? json_object_new_string(answer->problem) : NULL);
	add(vm, "kernel", answer->finding.banner ? kernel_json(&answer->finding) : NULL);
	vp_vec_each (&answer->processes, process) {
		struct json_object *one = json_object_new_object();
		add(one, "pid", json_object_new_int64(process->tgid));
		add(one, "process", json_object_new_string(process->comm));
		add(one, "root", hex(process->root));
		json_object_array_add(processes, one);
	}
	add(vm, "processes", processes);
	return vm;
}

void vp_render_guests_json(const vp_guest_answers *answers, struct vp_buffer *out)
{
	struct json_object *array = json_object_new_array();

	vp_vec_each (answers, answer)
		json_object_array_add(array, answer_json(answer));
	vp_buffer_printf(out, "%s\n",
			 json_object_to_json_string_ext(array, JSON_C_TO_STRING_PRETTY));
	json_object_put(array);
}
