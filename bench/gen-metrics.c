/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints the metrics of a synthetic host, as vperfd serves them: gen-metrics VMS SECONDS. VMs have
 * 4 vCPUs, 8 exit reasons and 5 thieves; the counters are those after SECONDS. Names of VMs and the
 * recording start with HOST, which the caller replaces.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/account/account_counters.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "export/export_metrics.h"
#include "schema/vm.h"

enum { VCPUS = 4, REASONS = 8, THIEVES = 5 };

/* Time per second of each state, in thousandths; without steal. */
static const unsigned shares[VP_STATES] = {
    [VP_STATE_GUEST] = 400, [VP_STATE_KERNEL] = 30,    [VP_STATE_POLL] = 10,
    [VP_STATE_VMM] = 10,    [VP_STATE_HALTED] = 500,   [VP_STATE_WAITING] = 20,
    [VP_STATE_WAKING] = 5,  [VP_STATE_PREEMPTED] = 20, [VP_STATE_IRQ] = 5,
};

void vp_alloc_failed(void)
{
	abort();
}

/* Numbers that look random, the same in each run. */
static uint64_t varied(uint64_t number, uint64_t vm, uint64_t index)
{
	uint64_t hash = (vm * 64 + index + 1) * 0x9e3779b97f4a7c15ULL;

	return number / 2 + number * (hash >> 54) / 1024;
}

static struct vp_counted_vm vm_of(uint32_t number, uint64_t seconds)
{
	struct vp_counted_vm vm = {.id = number + 1, .n_reasons = REASONS, .n_thieves = THIEVES};

	for (uint32_t i = 0; i < VCPUS; i++) {
		struct vp_counted_vcpu vcpu = {.number = i,
					       .wakeups = varied(seconds * 2000, number, i),
					       .preemptions = varied(seconds * 50, number, i)};
		for (unsigned state = 0; state < VP_STATES; state++)
			vcpu.ns[state] = varied(seconds * shares[state] * 1000000, number, state);
		vp_vec_push(&vm.vcpus, vcpu);
	}
	for (unsigned i = 0; i <= REASONS; i++)
		vm.reasons[i < REASONS ? i : VP_COUNTED_REASONS] =
		    (struct vp_counted_reason){.count = varied(seconds * 900, number, i),
					       .ns = varied(seconds * 9000000, number, i)};
	for (unsigned i = 0; i < REASONS; i++)
		snprintf(vm.reasons[i].name, sizeof(vm.reasons[i].name), "REASON-%u", i);
	strcpy(vm.reasons[VP_COUNTED_REASONS].name, "other");
	for (unsigned i = 0; i <= THIEVES; i++) {
		struct vp_counted_thief *thief = &vm.thieves[i < THIEVES ? i : VP_COUNTED_THIEVES];
		thief->kind = i < 3 ? "vm" : i < THIEVES ? "task" : "";
		thief->ns = varied(seconds * 5000000, number, i);
		if (i == THIEVES)
			strcpy(thief->name, "other");
		else
			snprintf(thief->name, sizeof(thief->name), i < 3 ? "HOST-vm%u" : "task-%u",
				 (number + 1 + i) % 30);
	}
	return vm;
}

int main(int argc, char **argv)
{
	uint64_t vms = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
	uint64_t seconds = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	struct vp_account_counters counters = {.intervals = seconds};
	struct vp_buffer out = {0};
	vp_vms all = {0};

	if (!vms || !seconds) {
		fprintf(stderr, "usage: gen-metrics VMS SECONDS\n");
		return 2;
	}
	for (uint32_t i = 0; i < vms; i++) {
		vp_vec_push(&all, ((struct vp_vm){.pid = i + 1,
						  .name = vp_format("HOST-vm%u", i),
						  .uuid = vp_format("HOST-%08u-5f0c-4b6e-9a0e", i),
						  .cgroup = vp_format(
						      "/machine.slice/machine-qemu-%u.scope", i)}));
		vp_vec_push(&counters.vms, vm_of(i, seconds));
	}
	const struct vp_metrics_finding findings[] = {{1, "overcommit", 0.2}, {2, "steal-vm", 0.1}};
	const struct vp_metrics_store store = {.recording = "HOST-recording",
					       .bytes = seconds,
					       .recordings = 7,
					       .findings = findings,
					       .n_findings = VP_ARRAY_SIZE(findings)};
	const struct vp_metrics_self self = {.cpu_ns = seconds * 2000000,
					     .memory = 100 << 20,
					     .realtime_ns = seconds * 1000000000,
					     .accounted_ns = seconds * 1000000000,
					     .store = &store};
	vp_export_metrics(&counters, &all, &self, VP_METRICS_TEXT, &out);
	fwrite(out.bytes, 1, out.size, stdout);
	vp_buffer_deinit(&out);
	vp_account_counters_deinit(&counters);
	vp_vms_deinit(&all);
	return 0;
}
