/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts samples of another program to vperf's own. */
#ifndef VP_IMPORT_RECORDING_IMPORT_SAMPLES_H
#define VP_IMPORT_RECORDING_IMPORT_SAMPLES_H

#include <stdbool.h>

#include "base/cursor.h"
#include "base/macros.h"
#include "base/map.h"
#include "schema/vm.h"
#include "store/trace_writer.h"

struct vp_import_samples {
	bool are_there, by_period; /* the weight of a sample is its period */
	char *directory;
	const vp_vms *vms;
	struct vp_map vcpu_of_tid; /* value: index of the VM << 16 | its vCPU */
	uint64_t strange;          /* skipped samples of unknown VMs */
	struct vp_map task_of_cpu; /* per CPU: hash of the latest thread and its name */
};

/* `vms` is only read. */
void vp_import_samples_begin(struct vp_import_samples *samples, const char *directory,
			     const vp_vms *vms);
void vp_import_samples_deinit(struct vp_import_samples *samples);
/* Writes the next part of the symbol map of the VM of that process, or of the host (0). Errors: not
 * writable. */
struct vp_error *vp_import_samples_map(struct vp_import_samples *samples, uint64_t process,
				       struct vp_slice text) VP_MUST_CHECK;
/* Adds samples of a CPU, sorted by time. False: malformed. */
bool vp_import_samples_take(struct vp_import_samples *samples, struct vp_trace_writer *writer,
			    uint32_t cpu, struct vp_slice bytes);

#endif
