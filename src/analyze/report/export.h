/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples with their names, and what vCPUs were doing, as a stream for formats of other programs.
 * An exporter is one file that fills one table of operations and one line in cmd/common/formats.c.
 */
#ifndef VP_ANALYZE_REPORT_EXPORT_H
#define VP_ANALYZE_REPORT_EXPORT_H

#include "analyze/common/health.h"
#include "analyze/report/export_queue.h"
#include "analyze/report/report.h"
#include "analyze/trace/script.h"
#include "analyze/trace/tracks.h"
#include "base/macros.h"
#include "schema/vm.h"

/* A slice of a vCPU's state, from 'vperf record --account-events'. */
struct vp_state_slice {
	uint64_t begin, end; /* ns of the host's clock */
	uint32_t vm;         /* its number */
	uint32_t vcpu, pcpu;
	const char *state;
	const char *reason; /* of the VM exit, or NULL */
};

struct vp_export {
	/* The recording: its VMs, counts, and facts that were noted at the end. */
	const struct vp_report *report;
	/* The frames' texts and VMs, by number: as many as there are by now. */
	vp_export_names texts;
	vp_vms vms;
	struct vp_buffer *out; /* where operations write */
	void *state;           /* the exporter's own, zeroed before begin() */
	/* Slices of vCPUs are passed as periods, which have more members. */
	bool has_track_slices;
	struct vp_tracks *tracks; /* names of a period's VMs */
	const char *directory;    /* of an exporter to a directory: its own, absolute, empty */
	struct vp_error *error;   /* what an exporter could not do: it ends */
	vp_sentences notes;       /* what its format lacks; they become the report's */
};

/* Output is written when there is so much of it. */
enum { VP_EXPORT_PIECE = 1 << 16 };

struct vp_exporter {
	size_t state_size;
	bool totals;      /* wants each stack once, with all its samples, instead of each sample */
	unsigned columns; /* with totals: the enum vp_frame_column that it shows; 0: all */
	bool directory;   /* writes files of its own, instead of into `out` */
	/* Called in this order: sample() and slice() any number of times, by time (slices by their
	 * end), then period(), by end, then event(), by time; each may be NULL. sample() and
	 * slice() run in parallel with the pass of the report: they may use only what existed at
	 * begin(). */
	void (*begin)(struct vp_export *export);
	void (*sample)(struct vp_export *export, const struct vp_sample *sample);
	void (*slice)(struct vp_export *export, const struct vp_state_slice *slice);
	void (*track_slice)(struct vp_export *export, const struct vp_track_slice *track_slice);
	void (*event)(struct vp_export *export, const struct vp_script_event *event);
	void (*end)(struct vp_export *export);
	/* Frees what the state has, whether end() was reached or not. */
	void (*deinit)(void *state);
};

/* A text of a frame, or NULL: unknown. */
const char *vp_export_text(const struct vp_export *export, uint32_t text);
/* Name of a VM by its number; NULL: the host. */
const char *vp_export_vm(const struct vp_export *export, uint32_t vm);

/* For an exporter of totals: the stacks that the report shows. */
void vp_export_totals(const struct vp_report *report, const struct vp_exporter *exporter,
		      struct vp_buffer *out);

/* Where output goes that does not fit in memory: what is in `out` is written, and it is emptied. */
struct vp_export_writer {
	void *context;
	const char *directory;
	struct vp_error *(*write)(void *context, struct vp_buffer *out);
};
/* For an exporter of each sample: makes the report on the way. */
struct vp_error *vp_export_stream(const struct vp_naming_options *naming,
				  const struct vp_profile_options *options,
				  const struct vp_exporter *exporter,
				  const struct vp_export_writer *writer,
				  struct vp_report *ret) VP_MUST_CHECK;

#endif
