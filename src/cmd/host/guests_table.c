/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/host/guests_table.h"

#include <inttypes.h>

#include "analyze/common/table.h"
#include "base/buffer.h"
#include "base/json.h"
#include "guestmem/memory/guest_view.h"
#include "maps/format.h"
#include "render/render_table.h"

/* KASLR offset of the kernel; 0 on 64-bit Arm, where kernels have no fixed link address. */
static uint64_t slide_of(const struct vp_guest_finding *finding)
{
	return finding->paging.halves ? 0 : finding->text - VP_KERNEL_LINKED;
}

static void put_place(const struct vp_guest_finding *finding, struct vp_buffer *out)
{
	vp_buffer_printf(out, ", at 0x%" PRIx64 " (", finding->text);
	if (!finding->paging.halves)
		vp_buffer_printf(out, "KASLR slide 0x%" PRIx64 ", ", slide_of(finding));
	vp_buffer_printf(out, "physical 0x%" PRIx64 "), %u-level paging\n", finding->gpa,
			 finding->paging.levels);
}

static void guests_table_put_guest(const struct vp_guest_answer *answer, struct vp_buffer *out)
{
	const struct vp_guest_finding *finding = &answer->finding;

	vp_buffer_printf(out, "VM %s (%s)\n", answer->vm->name,
			 vp_vm_location(answer->vm, (char[32]){""}));
	if (answer->problem)
		vp_buffer_printf(out, "  %s\n", answer->problem);
	if (finding->dropped)
		vp_buffer_printf(out, "  a cached kernel pack was rejected: %s\n",
				 finding->dropped);
	if (!finding->banner)
		return;
	vp_buffer_printf(out, "  %s\n  build-id ", finding->banner);
	vp_build_id_put(&finding->build_id, out);
	put_place(finding, out);
	vp_buffer_printf(
	    out, "  %s, %s; %zu CPU%s, %zu process%s\n%s",
	    finding->scanned ? "found by memory scan" : "found from the vCPU registers",
	    finding->cached    ? "cached kernel pack"
	    : finding->derived ? "symbols read"
			       : "symbols and BTF read",
	    finding->cpus.count, finding->cpus.count == 1 ? "" : "s", answer->processes.count,
	    answer->processes.count == 1 ? "" : "es",
	    finding->derived
		? "  no BTF: struct offsets were derived; tasks are known, mappings are not\n"
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

void vp_render_guests_text(const vp_guest_answers *answers, size_t width, struct vp_buffer *out)
{
	static const char *const least[] = {"vm", NULL};
	struct vp_table table = {.least = answers->count == 1 ? least : NULL,
				 .whole = "--csv has all"};

	vp_vec_each (answers, answer)
		guests_table_put_guest(answer, out);
	fill_table(answers, &table);
	vp_render_table_fitted(&table, width, false, out);
	vp_table_deinit(&table);
}

void vp_render_guests_csv(const vp_guest_answers *answers, struct vp_buffer *out)
{
	struct vp_table table = {0};

	fill_table(answers, &table);
	vp_render_table_csv(&table, true, out);
	vp_table_deinit(&table);
}

static void put_cpus(const struct vp_guest_finding *finding, struct vp_json *json)
{
	vp_json_array(json, "cpus");
	vp_vec_each (&finding->cpus, cpu) {
		vp_json_object(json, NULL);
		vp_json_count(json, "vcpu", cpu->vcpu);
		vp_json_count(json, "cpu", cpu->cpu);
		vp_json_hex(json, "current_at", cpu->current_gpa);
		vp_json_object_end(json);
	}
	vp_json_array_end(json);
}

static void guests_table_put_kernel(const struct vp_guest_finding *finding, struct vp_json *json)
{
	struct vp_buffer build_id = {0};

	vp_build_id_put(&finding->build_id, &build_id);
	vp_json_object(json, "kernel");
	vp_json_text(json, "banner", finding->banner);
	vp_json_text(json, "build_id", vp_buffer_text(&build_id));
	vp_json_hex(json, "text", finding->text);
	vp_json_hex(json, "kaslr_slide", slide_of(finding));
	vp_json_hex(json, "physical", finding->gpa);
	vp_json_hex(json, "direct_map", finding->direct_map);
	vp_json_count(json, "paging_levels", finding->paging.levels);
	vp_json_text(json, "found_by", finding->scanned ? "scan" : "registers");
	vp_json_text(json, "pack", finding->cached ? "cached" : "read");
	vp_json_bool(json, "derived", finding->derived);
	vp_json_text(json, "dropped_pack", finding->dropped);
	put_cpus(finding, json);
	vp_json_object_end(json);
	vp_buffer_deinit(&build_id);
}

static void put_answer(const struct vp_guest_answer *answer, struct vp_json *json)
{
	vp_json_object(json, NULL);
	vp_json_text(json, "vm", answer->vm->name);
	vp_json_count(json, "pid", answer->vm->pid);
	vp_json_text(json, "problem", answer->problem);
	if (answer->finding.banner)
		guests_table_put_kernel(&answer->finding, json);
	else
		vp_json_null(json, "kernel");
	vp_json_array(json, "processes");
	vp_vec_each (&answer->processes, process) {
		vp_json_object(json, NULL);
		vp_json_count(json, "pid", process->tgid);
		vp_json_text(json, "process", process->comm);
		vp_json_hex(json, "root", process->root);
		vp_json_object_end(json);
	}
	vp_json_array_end(json);
	vp_json_object_end(json);
}

void vp_render_guests_json(const vp_guest_answers *answers, struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_pretty(&json, true);
	vp_json_answer(&json);
	vp_json_array(&json, "vms");
	vp_vec_each (answers, answer)
		put_answer(answer, &json);
	vp_json_array_end(&json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}
