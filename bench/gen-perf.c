/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A perf.data file of the same samples, so that perf report can be timed on as many. The format is
 * that of linux/tools/perf/Documentation/perf.data-file-format.txt: header, one event, data.
 */
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "gen.h"

struct section {
	uint64_t offset, size;
};

struct file_header {
	char magic[8];
	uint64_t size, attr_size;
	struct section attrs, data, event_types;
	uint64_t features[4];
};

struct file_attr {
	struct perf_event_attr attr;
	struct section ids;
};

enum { FINISHED_ROUND = 68, ROUND = 4096, FIRST_PID = 1000 };

struct sample {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t period;
};

static void put_process(FILE *file, uint32_t pid, const char *program)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		char comm[16];
	} comm = {{PERF_RECORD_COMM, 0, sizeof(comm)}, pid, pid, ""};
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t addr, length, offset;
		char name[256];
	} map = {{PERF_RECORD_MMAP, PERF_RECORD_MISC_USER, sizeof(map)},
		 pid,
		 pid,
		 GEN_TEXT,
		 GEN_FUNCTIONS * GEN_FUNCTION_SIZE,
		 GEN_TEXT_OFFSET,
		 ""};

	snprintf(comm.comm, sizeof(comm.comm), "process%u", pid % GEN_PROCESSES);
	fwrite(&comm, sizeof(comm), 1, file);
	snprintf(map.name, sizeof(map.name), "%s", program);
	fwrite(&map, sizeof(map), 1, file);
}

static void put_samples(FILE *file, uint64_t samples)
{
	uint64_t state = 88172645463325252ULL;
	struct perf_event_header round = {FINISHED_ROUND, 0, sizeof(round)};

	for (uint64_t i = 0; i < samples; i++) {
		uint32_t pid =
		    FIRST_PID + (uint32_t)(gen_random(&state) % (GEN_VMS * GEN_PROCESSES));
		struct sample sample = {
		    .header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, sizeof(sample)},
		    .ip = gen_address(&state, GEN_TEXT),
		    .pid = pid,
		    .tid = pid,
		    .time = GEN_START + i / GEN_PCPUS * GEN_PERIOD,
		    .cpu = i % GEN_PCPUS,
		    .period = GEN_PERIOD,
		};
		fwrite(&sample, sizeof(sample), 1, file);
		if (i % ROUND == ROUND - 1)
			fwrite(&round, sizeof(round), 1, file);
	}
}

int gen_perf_data(const char *path, const char *program, uint64_t samples)
{
	struct file_header header = {
	    .magic = {'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'},
	    .size = sizeof(header),
	    .attr_size = sizeof(struct file_attr),
	    .attrs = {sizeof(header), sizeof(struct file_attr)},
	    .data = {.offset = sizeof(header) + sizeof(struct file_attr)},
	};
	struct file_attr event = {
	    .attr = {.type = PERF_TYPE_SOFTWARE,
		     .size = sizeof(struct perf_event_attr),
		     .config = PERF_COUNT_SW_CPU_CLOCK,
		     .sample_period = GEN_PERIOD,
		     .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				    PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
		     .mmap = 1,
		     .comm = 1},
	};
	FILE *file = fopen(path, "w");

	if (!file)
		return -1;
	fwrite(&header, sizeof(header), 1, file);
	fwrite(&event, sizeof(event), 1, file);
	for (uint32_t i = 0; i < GEN_VMS * GEN_PROCESSES; i++)
		put_process(file, FIRST_PID + i, program);
	put_samples(file, samples);
	header.data.size = (uint64_t)ftell(file) - header.data.offset;
	rewind(file);
	fwrite(&header, sizeof(header), 1, file);
	int failed = ferror(file);
	return fclose(file) || failed ? -1 : 0;
}
