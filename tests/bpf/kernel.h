/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What tests of programs in the running kernel have in common. */
#ifndef VP_TESTS_BPF_KERNEL_H
#define VP_TESTS_BPF_KERNEL_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "schema/schema.h"

/* What meson takes for a test that was skipped. */
enum { VP_SKIPPED = 77 };

/* Whether this kernel takes programs from us; if not, says why `what` is skipped. */
bool vp_kernel_takes_programs(const char *what);

/* Runs a raw tracepoint's program on this thread, as if the kernel had come by. */
void vp_run(const struct bpf_program *program, uint64_t first, uint64_t second, uint64_t third);
/* The same, with what the program returns. */
uint32_t vp_run_for_result(const struct bpf_program *program, uint64_t first, uint64_t second);

/* Keeps this thread on the pCPU where it is, or on that one; returns it. */
uint32_t vp_stay_here(void);
void vp_stay_on(uint32_t pcpu);
/* Two pCPUs that this process may use; false if there is only one. */
bool vp_two_pcpus(const cpu_set_t *allowed, uint32_t ret[2]);

uint32_t vp_own_tid(void);
uint64_t vp_now(void);
/* Keeps this thread's pCPU busy so long. */
void vp_burn(uint64_t ns);
void vp_sleep(uint64_t ns);

/* How often a program of its own is told of this thread by a tracepoint, from vp_told_open() on.
 * Some kernels tell programs nothing while a task of theirs has the pCPU: what others count (perf)
 * is more. */
struct vp_told {
	int map, link;
};
/* argument: which of the tracepoint's is a task, and to be this thread. */
void vp_told_open(struct vp_told *told, const char *tracepoint, uint32_t argument);
uint64_t vp_told_read(const struct vp_told *told);
void vp_told_close(struct vp_told *told);

/* Each of the records that lie in a row, as a const struct vp_record_header *. */
#define vp_each_record(records, size, header)                                                      \
	for (const struct vp_record_header *header = (const void *)(records);                      \
	     (const char *)header < (records) + (size);                                            \
	     header = (const void *)((const char *)header + vp_record_length(header)))

#endif
