/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts the counters of the accounting programs to records: increments since the last read. */
#ifndef VP_SESSION_ACCOUNT_WRITER_H
#define VP_SESSION_ACCOUNT_WRITER_H

#include "base/error.h"
#include "base/macros.h"
#include "collect/programs/account_source.h"
#include "collect/programs/exit_programs.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "store/cgroups.h"

struct vp_account_writer;

/* Receives one record; its header has id and time. */
typedef void (*vp_account_fn)(void *context, struct vp_record_header *record);

/* The recording number of the VM in which thread `tid` of VMM process `pid` is a vCPU. */
typedef uint32_t (*vp_account_vm_id)(void *context, uint32_t pid, uint32_t tid);

/*
 * Opens the accounting of that hypervisor. `vms` provides vCPU numbers that the kernel does not,
 * and stays owned by the caller; `vendor`: enum vp_vendor. Errors: missing kernel features, no
 * permission.
 */
struct vp_error *vp_account_writer_open(const struct vp_account_ops *ops, const vp_vms *vms,
					uint32_t vendor,
					const struct vp_account_source_options *options,
					vp_account_fn take, void *context,
					struct vp_account_writer **ret) VP_MUST_CHECK;
/* Its accounting source, with the operations of vp_account_ops_complete(), for everything except
 * reading it; valid as long as the writer. */
struct vp_account_source *vp_account_writer_source(const struct vp_account_writer *writer,
						   const struct vp_account_ops **ops);
/* Sets the `vm` of records to the result of `vm_id`, called with the context of `take`; without it,
 * `vm` is the VMM's pid. */
void vp_account_writer_number_vms(struct vp_account_writer *writer, vp_account_vm_id vm_id);
/* Emits records about the time since the last call, up to `now` (CLOCK_MONOTONIC, ns); with `all`,
 * at the end, also the exit sites. */
void vp_account_writer_write(struct vp_account_writer *writer, uint64_t now, bool all);
/* Emits the spans (vcpu_span) that ended since the last call, in order; call it several times a
 * second. With `last`, also the spans that have not ended. */
void vp_account_writer_write_states(struct vp_account_writer *writer, bool last);
/* Cgroups of the thieves so far. */
vp_cgroups *vp_account_writer_cgroups(struct vp_account_writer *writer);
void vp_account_writer_free(struct vp_account_writer *writer);

#endif
