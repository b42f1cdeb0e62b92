/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A profile with the data needed to judge it: source and missing data. */
#ifndef VP_ANALYZE_REPORT_REPORT_H
#define VP_ANALYZE_REPORT_REPORT_H

#include "analyze/common/health.h"
#include "analyze/common/naming.h"
#include "analyze/common/table.h"
#include "analyze/profile/call_tree.h"
#include "analyze/profile/pass.h"
#include "analyze/profile/profile.h"
#include "base/macros.h"
#include "schema/vm.h"
#include "store/recording.h"

struct vp_report {
	const char *path; /* of the recording */
	struct vp_recording recording;
	vp_vms vms;
	struct vp_naming naming;
	struct vp_profile profile;
	struct vp_profile_options options;
	uint64_t lost;        /* lost records */
	uint64_t begin;       /* of the recording, or of the part that was chosen */
	double duration;      /* seconds */
	vp_sentences notes;   /* one each */
	uint64_t limit;       /* maximum number of rows per part; 0: all */
	double percent_limit; /* minimum percentage of printed rows */
	bool verbose;         /* print every note instead of merging similar ones */
	size_t width;         /* of the terminal; 0: no limit */
	struct {
		bool shown;
		enum vp_call_order order;
		double min_percent; /* minimum percentage of printed branches, of the part */
	} graph;                    /* below rows in text output */
};

void vp_report_deinit(struct vp_report *report);

/* `samples` in percent of the part's total; 0 if that is 0. */
double vp_report_percent(const struct vp_profile_part *part, uint64_t samples);
enum { VP_AMOUNT_SIZE = 96 };
/* A sum of weights with its unit: "3 samples", "1.5 ms", "3 cycles". */
const char *vp_report_amount(const struct vp_report *report, uint64_t weight,
			     char text[VP_AMOUNT_SIZE]);
/* Key of such sums in machine output: "samples", "ns" or "events". */
const char *vp_report_weight_key(const struct vp_report *report);
/* Name of the VM of a part, or NULL: all. */
const char *vp_report_vm(const struct vp_report *report, const struct vp_profile_part *part);
/* Number of rows of the part to print. */
size_t vp_report_rows(const struct vp_report *report, const struct vp_profile_part *part);
/* Number of further rows; without stacks, rows without samples of their own do not count. */
size_t vp_report_hidden(const struct vp_report *report, const struct vp_profile_part *part);
/* The table of a part. Texts belong to the report. */
void vp_report_table(const struct vp_report *report, const struct vp_profile_part *part,
		     struct vp_table *table);

#endif
