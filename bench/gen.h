/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The synthetic samples that both files of the report benchmark are made of. */
#ifndef VP_BENCH_GEN_H
#define VP_BENCH_GEN_H

#include <stdbool.h>
#include <stdint.h>

enum {
	GEN_PCPUS = 4,
	GEN_VMS = 2,
	GEN_PROCESSES = 8, /* of each VM */
	GEN_FUNCTIONS = 3000,
	GEN_FUNCTION_SIZE = 64,
	GEN_PLACES = 12, /* of a function: where samples hit it */
	GEN_PERIOD = 1000000,
	GEN_VMM = 1000, /* process of the first VM; of the next twice that */
	GEN_TASK = 50,  /* process without a VM, with changes */
	GEN_CHANGING_VMS = 3,
};

#define GEN_KERNEL_TEXT 0xffffffff81000000ULL
#define GEN_TEXT 0x401000ULL /* of the program: as bench/report-speed.sh links it */
#define GEN_TEXT_OFFSET 0x1000ULL
#define GEN_START 1000000000ULL

/* xorshift64: the same samples on every run. */
static inline uint64_t gen_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545f4914f6cdd1dULL;
}

/* An address in one of GEN_FUNCTIONS functions from `base` on; few of them have most samples. */
static inline uint64_t gen_address(uint64_t *state, uint64_t base)
{
	uint64_t random = gen_random(state);
	uint64_t x = random & 0xffff, y = random >> 16 & 0xffff, z = random >> 32 & 0xffff;
	uint64_t function = GEN_FUNCTIONS * x / 65536 * y / 65536 * z / 65536;
	uint64_t place = (random >> 48) % GEN_PLACES;

	return base + function * GEN_FUNCTION_SIZE + place * (GEN_FUNCTION_SIZE / GEN_PLACES);
}

struct vp_trace_writer;
/* Samples with changes (gen-changes.c). */
struct gen_changes {
	uint64_t samples, end;
	bool chains, gaps, periods;
	uint32_t ids[GEN_CHANGING_VMS];  /* of the VMs in records */
	uint32_t tids[GEN_CHANGING_VMS]; /* vCPU 0 of the VM has the next tid */
};
void gen_changes(struct vp_trace_writer *writer, const struct gen_changes *wanted);
/* Intervals of vCPUs and their counters, as many; and the directory's recipe for them. */
struct vp_error *gen_intervals(const char *directory, struct vp_trace_writer *writer,
			       uint64_t count, uint64_t end);
/* Events of pCPUs on which the VMs' vCPUs take turns, about as many. */
struct vp_error *gen_events(struct vp_trace_writer *writer, uint64_t count, uint64_t end);

/* Writes a perf.data with `samples` samples of `program`; 0 or -1 with errno. */
int gen_perf_data(const char *path, const char *program, uint64_t samples);

#endif
