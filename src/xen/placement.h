/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Xen's pCPUs, and the ones that each vCPU may use. */
#ifndef VP_XEN_PLACEMENT_H
#define VP_XEN_PLACEMENT_H

#include <stdint.h>

#include "schema/vm.h"
#include "xen/library.h"

/* Number of Xen's online pCPUs; 0: unknown. */
uint32_t vp_xen_count_pcpus(void);
/* Name of the cpupool's scheduler ("credit2"), to be freed; NULL: unknown. */
char *vp_xen_scheduler(const struct vp_xen *xen, uint32_t cpupool);
/* Reads which pCPUs of its cpupool the domain's vCPUs may use, by their hard affinity, and the
 * cpupool's scheduler. Without an answer of Xen, the values stay. */
void vp_xen_read_placement(const struct vp_xen *xen, uint32_t cpupool, struct vp_vm *vm);

#endif
