/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes files of trace-cmd (trace.dat, version 6) with pages of ring buffers. */
#ifndef VP_EXPORT_TRACEDAT_FILE_H
#define VP_EXPORT_TRACEDAT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

enum { VP_DAT_PAGE = 4096 };

/* Full pages of all CPUs, in a temporary unnamed file, in order of completion. */
struct vp_dat_pages {
	int fd;
	uint64_t count;
	int failure; /* errno of the first failed write */
};

/* Pages of a CPU. */
struct vp_dat_cpu {
	VP_VEC(uint64_t) pages; /* their indices among all pages */
	struct vp_buffer page;  /* the page being filled; empty: none */
	uint64_t last;          /* time of its last event */
};

/* `directory`: location of the unnamed file. */
struct vp_error *vp_dat_pages_init(struct vp_dat_pages *pages, const char *directory) VP_MUST_CHECK;
void vp_dat_pages_deinit(struct vp_dat_pages *pages);
/* Appends an event; events must be in order of time (ns). False: too long for a page. */
bool vp_dat_cpu_put(struct vp_dat_cpu *cpu, struct vp_dat_pages *pages, uint64_t time,
		    const void *bytes, size_t size);
void vp_dat_cpu_deinit(struct vp_dat_cpu *cpu);

typedef VP_VEC(struct vp_dat_cpu) vp_dat_cpus;

/* Contents of a file before its pages. */
struct vp_dat_head {
	struct vp_buffer
	    systems; /* number of systems; their names, counts and formats of their events */
	uint32_t n_systems;
	struct vp_buffer commands; /* lines "PID COMM" */
	struct vp_buffer options;  /* vp_dat_option()s */
};

void vp_dat_option(struct vp_buffer *options, uint16_t id, const void *bytes, size_t size);
/* Writes the file; the CPUs' last pages are added to `pages`. */
struct vp_error *vp_dat_write(const char *path, const struct vp_dat_head *head, vp_dat_cpus *cpus,
			      struct vp_dat_pages *pages) VP_MUST_CHECK;

#endif
