/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recent values of vCPUs and VMs, from the last updates of an account, for 'vperf top'. */
#ifndef VP_ANALYZE_REPORT_LIVE_H
#define VP_ANALYZE_REPORT_LIVE_H

#include "analyze/account/account_tables.h"
#include "base/map.h"
#include "base/vec.h"

/* Percent of the time, except exits per second. For a VM: the mean over its vCPUs, and the sum of
 * their exits. */
enum vp_live_value {
	VP_LIVE_GUEST,
	VP_LIVE_HOST,  /* kernel, poll and vmm */
	VP_LIVE_IDLE,  /* halted or waiting */
	VP_LIVE_STEAL, /* steal */
	VP_LIVE_EXITS,
	VP_LIVE_VALUES
};

enum { VP_LIVE_HISTORY = 64 };

struct vp_live_row {
	uint32_t vm;   /* index in the account's VMs */
	uint32_t vcpu; /* UINT32_MAX: the row of the VM */
	uint32_t vcpus;
	uint64_t last_update; /* number of the last update with this row, from 1 */
	float values[VP_LIVE_HISTORY][VP_LIVE_VALUES]; /* NaN: unknown */
};

struct vp_live {
	uint64_t updates;
	struct vp_map numbers;
	VP_VEC(struct vp_live_row) rows;
};

void vp_live_deinit(struct vp_live *live);
/* Adds the next update, from the view's account. */
void vp_live_take(struct vp_live *live, const struct vp_account_view *view);
/* Before the next update: some updates are missing. */
void vp_live_miss(struct vp_live *live);
/* The row's value `ago` updates before the last; NaN if not kept. */
float vp_live_value(const struct vp_live *live, const struct vp_live_row *row,
		    enum vp_live_value value, uint64_t ago);

/* Selection and order of rows. */
struct vp_live_order {
	bool by_vm;    /* rows of VMs instead of vCPUs */
	bool has_vm;   /* only this VM */
	uint32_t vm;   /* index */
	unsigned sort; /* enum vp_live_value, descending; VP_LIVE_VALUES: by VM and vCPU */
};

typedef VP_VEC(const struct vp_live_row *) vp_live_rows;

/* Rows of the last update; valid until the next call. */
void vp_live_rows_make(const struct vp_live *live, const struct vp_live_order *order,
		       vp_live_rows *ret);

#endif
