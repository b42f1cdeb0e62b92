/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A profile with all that a reader needs to judge it: where it came from and what is missing. */
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
	uint64_t lost;        /* records that never reached the file */
	double duration;      /* seconds */
	vp_sentences notes;   /* one each */
	uint64_t limit;       /* rows to print of each part; 0: all */
	double percent_limit; /* rows below are not printed */
	bool verbose;         /* text has every note; else alike ones are folded */
	struct {
		bool shown;
		enum vp_call_order order;
		double min_percent; /* of the part; branches below are not printed */
	} graph;                    /* below rows of text */
};

/*
 * Reads the recording in `naming->directory` and makes the profile. Where the recording has no call
 * chains it is made without, whatever `options` ask of them; with needs_chains that is an error.
 */
struct vp_error *vp_report_make(const struct vp_naming_options *naming,
				const struct vp_profile_options *options,
				struct vp_report *ret) VP_MUST_CHECK;
void vp_report_deinit(struct vp_report *report);

/* `samples` in percent of the part's; 0 if it has none. */
double vp_report_percent(const struct vp_profile_part *part, uint64_t samples);
enum { VP_AMOUNT_SIZE = 96 };
/* A sum of weights with its unit: "3 samples", "1.5 ms", "3 cycles". */
const char *vp_report_amount(const struct vp_report *report, uint64_t weight,
			     char text[VP_AMOUNT_SIZE]);
/* The key of such sums in machine output: "samples", "ns" or "events". */
const char *vp_report_weight_key(const struct vp_report *report);
/* Name of the VM a part is of, or NULL: all. */
const char *vp_report_vm(const struct vp_report *report, const struct vp_profile_part *part);
/* How many rows of the part are to be printed. */
size_t vp_report_rows(const struct vp_report *report, const struct vp_profile_part *part);
/* Number of further rows; without call chains, rows that only called others do not count. */
size_t vp_report_hidden(const struct vp_report *report, const struct vp_profile_part *part);
/* The rows of a part. Texts belong to the report. */
void vp_report_table(const struct vp_report *report, const struct vp_profile_part *part,
		     struct vp_table *table);

#endif
