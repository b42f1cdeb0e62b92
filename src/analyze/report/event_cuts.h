/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much of each accounting record is in a window, from the events of `vperf record --trace`; on
 * Xen from the states of all vCPUs: waits with their thieves, and exits. */
#ifndef VP_ANALYZE_REPORT_EVENT_CUTS_H
#define VP_ANALYZE_REPORT_EVENT_CUTS_H

#include "analyze/account/account_cuts.h"
#include "base/macros.h"
#include "schema/vm.h"

/* `ret` is initialized, and stays empty if there are no such events. */
struct vp_error *vp_event_cuts_read(const char *directory, const vp_vms *vms,
				    struct vp_account_cuts *ret) VP_MUST_CHECK;

#endif
