/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stream of named samples, vCPU states and events for export formats. An exporter is a file that
 * fills a table of operations, with a line in cmd/common/formats.c. */
#ifndef VP_ANALYZE_REPORT_EXPORT_H
#define VP_ANALYZE_REPORT_EXPORT_H

#include "analyze/common/health.h"
#include "analyze/report/export_queue.h"
#include "analyze/report/report.h"
#include "analyze/trace/script.h"
#include "analyze/trace/tracks.h"
#include "base/macros.h"
#include "schema/vm.h"

/* A span of a vCPU's state, from 'vperf record --account-events'. */
struct vp_state_slice {
	uint64_t begin, end; /* host CLOCK_MONOTONIC, ns */
	uint32_t vm;         /* its number */
	uint32_t vcpu, pcpu;
	const char *state;
	const char *reason; /* of the VM exit, or NULL */
};

struct vp_export {
	/* The recording: VMs, counts, and facts noted at the end. */
	const struct vp_report *report;
	/* Texts of frames, and VMs, by number; more are added during the export. */
	vp_export_names texts;
	vp_vms vms;
	struct vp_buffer *out; /* output of the operations */
	void *state;           /* the exporter's state, zero-initialized before begin() */
	/* vCPU slices are passed as track slices, which have more members. */
	bool has_track_slices;
	struct vp_tracks *tracks; /* names of their VMs */
	const char *directory;    /* for an exporter to a directory: absolute path, empty */
	struct vp_error *error;   /* set by the exporter to fail */
	vp_sentences notes;       /* limitations of the format, which become notes of the report */
};

/* Output is written when the buffer has that many bytes. */
enum { VP_EXPORT_PIECE = 1 << 16 };

struct vp_exporter {
	size_t state_size;
	bool totals;      /* needs each stack once, with all its samples, instead of each sample */
	unsigned columns; /* with totals: enum vp_frame_column of the format; 0: all */
	bool directory;   /* writes files of its own instead of `out` */
	/*
	 * Called in this order: sample() and slice() any number of times, by time (slices by their
	 * end), then track_slice(), by end, then event(), by time; each may be NULL. sample() and
	 * slice() run in parallel with the report's pass and may use only what existed at begin().
	 */
	void (*begin)(struct vp_export *export);
	void (*sample)(struct vp_export *export, const struct vp_sample *sample);
	void (*slice)(struct vp_export *export, const struct vp_state_slice *slice);
	void (*track_slice)(struct vp_export *export, const struct vp_track_slice *track_slice);
	void (*event)(struct vp_export *export, const struct vp_script_event *event);
	void (*end)(struct vp_export *export);
	/* Frees the state, whether end() was reached or not. */
	void (*deinit)(void *state);
};

/* A text of a frame, or NULL: unknown. */
const char *vp_export_text(const struct vp_export *export, uint32_t text);
/* Name of a VM by its number; NULL: the host. */
const char *vp_export_vm(const struct vp_export *export, uint32_t vm);

/* For an exporter of totals: emits the stacks of the report. */
void vp_export_totals(const struct vp_report *report, const struct vp_exporter *exporter,
		      struct vp_buffer *out);

/* Writes output that does not fit in memory: writes and empties `out`. */
struct vp_export_writer {
	void *context;
	const char *directory;
	struct vp_error *(*write)(void *context, struct vp_buffer *out);
};
/* For an exporter of single samples: emits them while making the report. */
struct vp_error *vp_export_stream(const struct vp_naming_options *naming,
				  const struct vp_profile_options *options,
				  const struct vp_exporter *exporter,
				  const struct vp_export_writer *writer,
				  struct vp_report *ret) VP_MUST_CHECK;

#endif
