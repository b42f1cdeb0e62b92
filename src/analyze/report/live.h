/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recent state of vCPUs and VMs: values of the last updates of an account, for 'vperf top'. */
#ifndef VP_ANALYZE_REPORT_LIVE_H
#define VP_ANALYZE_REPORT_LIVE_H

#include "analyze/account/account_tables.h"
#include "base/map.h"
#include "base/vec.h"

/* Percent of the time, except exits per second. A VM's are the mean of its vCPUs' and the sum of
 * their exits. */
enum vp_live_value {
	VP_LIVE_GUEST,
	VP_LIVE_HOST,  /* the kernel for the guest, its polling, the VMM */
	VP_LIVE_IDLE,  /* halted, or waiting for the VMM */
	VP_LIVE_STEAL, /* wanted to run, and did not */
	VP_LIVE_EXITS,
	VP_LIVE_VALUES
};

enum { VP_LIVE_HISTORY = 64 };

struct vp_live_row {
	uint32_t vm;   /* index in the account's VMs */
	uint32_t vcpu; /* UINT32_MAX: the VM's row */
	uint32_t vcpus;
	uint64_t seen;                                 /* the last update that it was in, from 1 */
	float values[VP_LIVE_HISTORY][VP_LIVE_VALUES]; /* NaN: not there */
};

struct vp_live {
	uint64_t updates;
	struct vp_map numbers;
	VP_VEC(struct vp_live_row) rows;
};

void vp_live_deinit(struct vp_live *live);
/* The next update: what the view shows of its account. */
void vp_live_take(struct vp_live *live, const struct vp_account_view *view);
/* Before the next update: there were others, which are not known. */
void vp_live_miss(struct vp_live *live);
/* The row's value `ago` updates before the last; NaN if it is not kept. */
float vp_live_value(const struct vp_live *live, const struct vp_live_row *row,
		    enum vp_live_value value, uint64_t ago);

/* How rows are chosen and ordered. */
struct vp_live_order {
	bool by_vm;    /* rows of VMs, else of vCPUs */
	bool has_vm;   /* only this one's */
	uint32_t vm;   /* index */
	unsigned sort; /* enum vp_live_value, most first; VP_LIVE_VALUES: by VM and vCPU */
};

typedef VP_VEC(const struct vp_live_row *) vp_live_rows;

/* Rows of the last update; valid until the next. */
void vp_live_rows_make(const struct vp_live *live, const struct vp_live_order *order,
		       vp_live_rows *ret);

#endif
