/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/xen_condition_ops.h"

#include <string.h>

#include "base/error.h"
#include "base/macros.h"
#include "schema/condition.h"
#include "xen/domains.h"
#include "xen/library.h"
#include "xen/placement.h"
#include "xen/xen_conditions.h"

/* Errors: the scheduler has no caps. */
static struct vp_error *check_scheduler(const struct vp_xen *xen)
{
	VP_AUTO_FREE char *name = vp_xen_scheduler(xen, 0);

	return !name || !strcmp(name, "credit") || !strcmp(name, "credit2")
		   ? NULL
		   : vp_error_new("option --snapshot-on: throttled is not available: Xen's "
				  "scheduler '%s' has no caps",
				  name);
}

static bool has_hvm_domain(const struct vp_xen *xen)
{
	struct vp_xen_domain domain;

	for (uint32_t next = 0; vp_xen_domain_next(xen, next, &domain); next = domain.id + 1u)
		if (domain.flags & VP_XEN_HVM)
			return true;
	return false;
}

static struct vp_error *xen_condition_ops_open(const struct vp_conditions *conditions,
					       bool every_vm, struct vp_condition_watch **ret)
{
	struct vp_xen *xen;

	VP_TRY(vp_xen_open(&xen));
	struct vp_error *error =
	    conditions->wanted[VP_CONDITION_THROTTLED] ? check_scheduler(xen) : NULL;
	vp_xen_close(xen);
	if (!error)
		*ret = vp_xen_conditions_new(conditions, every_vm);
	return error;
}

static struct vp_error *xen_condition_ops_check(const struct vp_condition_watch *watch)
{
	return vp_xen_conditions_is_fed(watch)
		   ? NULL
		   : vp_error_new("option --snapshot-on: on Xen, triggers need vCPU accounting, "
				  "which is not available");
}

static const char *xen_condition_ops_missing(const struct vp_conditions *conditions)
{
	struct vp_xen *xen;
	VP_AUTO_ERROR struct vp_error *error =
	    conditions->wanted[VP_CONDITION_EXIT] ? vp_xen_open(&xen) : NULL;

	if (error || !conditions->wanted[VP_CONDITION_EXIT])
		return NULL;
	bool has_exits = has_hvm_domain(xen);
	vp_xen_close(xen);
	return has_exits
		   ? NULL
		   : "trigger exit: no HVM or PVH guest is running, and PV guests have no VM exits";
}

/* Triggers are evaluated while the accounting drains; there is nothing to wait for. */
static int xen_condition_ops_fd(const struct vp_condition_watch *watch)
{
	return -1;
}

const struct vp_condition_ops *vp_xen_condition_ops(void)
{
	static const struct vp_condition_ops ops = {.needs_account = true,
						    .open = xen_condition_ops_open,
						    .check = xen_condition_ops_check,
						    .missing = xen_condition_ops_missing,
						    .add = vp_xen_conditions_add,
						    .arm = vp_xen_conditions_arm,
						    .fd = xen_condition_ops_fd,
						    .take = vp_xen_conditions_fired,
						    .dropped = vp_xen_conditions_dropped,
						    .free = vp_xen_conditions_free};

	return &ops;
}
