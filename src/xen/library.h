/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Xen's libraries, loaded at run time: libxenctrl is tied to one version of Xen, so it is not
 * linked. The prototypes are unchanged from 4.14 to 4.20; of structs that did change, only the
 * common start is used.
 */
#ifndef VP_XEN_LIBRARY_H
#define VP_XEN_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* Reserved domain ids: Xen's own, and the idle domain. */
enum {
	VP_XEN_DOMID_FIRST_RESERVED = 0x7ff0,
	VP_XEN_DOMID_XEN = 0x7ff2,
	VP_XEN_DOMID_IDLE = 0x7fff
};

/* Common start of struct xen_domctl_getdomaininfo. */
struct vp_xen_domain {
	uint16_t id, pad;
	uint32_t flags; /* enum vp_xen_domain_flag */
	uint64_t pages[5], shared_info_frame;
	uint64_t cpu_time; /* ns */
	uint32_t vcpus_online;
	uint32_t last_vcpu; /* highest vCPU number; all bits set: none */
	uint32_t label;
	uint8_t uuid[16];
	uint32_t cpupool;
	uint8_t rest[512];
};

enum vp_xen_domain_flag {
	VP_XEN_DYING = 1,
	VP_XEN_HVM = 2, /* HVM or PVH; otherwise PV */
	VP_XEN_SHUTDOWN = 4,
	VP_XEN_PAUSED = 8,
};

/* struct xen_domctl_getvcpuinfo */
struct vp_xen_vcpu {
	uint32_t number;
	uint8_t online, blocked, running, pad;
	uint64_t cpu_time; /* ns */
	uint32_t pcpu, pad2;
};

/* struct xen_domctl_sched_credit, and xen_domctl_sched_credit2 */
struct vp_xen_credit {
	uint16_t weight, cap;
};

/* xc_cpupoolinfo_t */
struct vp_xen_cpupool {
	uint32_t id, scheduler, n_domains;
	uint8_t *pcpus; /* one bit each */
};

/* Result of xc_domain_hvm_getcontext_partial(): one vCPU's registers (Xen's
 * public/arch-x86/hvm/save.h). */
enum { VP_XEN_HVM_SAVE_CPU = 2 };

/* Common start of struct xen_sysctl_physinfo. */
struct vp_xen_machine {
	uint32_t threads_per_core, cores_per_socket, n_pcpus, last_pcpu, n_nodes, last_node;
	uint32_t khz; /* TSC frequency, as measured by Xen at boot */
	uint8_t rest[512];
};

struct vp_xen_calls {
	void *(*interface_open)(void *logger, void *dombuild_logger, unsigned flags);
	int (*interface_close)(void *xen);
	int (*domain_getinfolist)(void *xen, uint32_t first, unsigned max,
				  struct vp_xen_domain *ret);
	int (*vcpu_getinfo)(void *xen, uint32_t domain, uint32_t vcpu, struct vp_xen_vcpu *ret);
	int (*sched_credit2_domain_get)(void *xen, uint32_t domain, struct vp_xen_credit *ret);
	int (*sched_credit_domain_get)(void *xen, uint32_t domain, struct vp_xen_credit *ret);
	int (*physinfo)(void *xen, struct vp_xen_machine *ret);
	int (*get_cpumap_size)(void *xen); /* bytes of the bit maps of pCPUs */
	int (*vcpu_getaffinity)(void *xen, uint32_t domain, int vcpu, uint8_t *hard, uint8_t *soft,
				uint32_t flags);
	struct vp_xen_cpupool *(*cpupool_getinfo)(void *xen, uint32_t id);
	void (*cpupool_infofree)(void *xen, struct vp_xen_cpupool *pool);
	int (*vcpu_getcontext)(void *xen, uint32_t domain, uint32_t vcpu, void *ret);
	int (*domain_hvm_getcontext_partial)(void *xen, uint32_t domain, uint16_t type,
					     uint16_t instance, void *ret, uint32_t size);
	int (*domain_maximum_gpfn)(void *xen, uint32_t domain, uint64_t *ret);
	int (*maximum_ram_page)(void *xen, unsigned long *ret);
	int (*machphys_mfn_list)(void *xen, unsigned long max, uint64_t *ret);
	int (*tbuf_enable)(void *xen, unsigned long pages, unsigned long *frame,
			   unsigned long *size);
	int (*tbuf_disable)(void *xen);
	int (*tbuf_set_evt_mask)(void *xen, uint32_t mask);
	void *(*memory_open)(void *logger, unsigned flags);
	int (*memory_close)(void *memory);
	void *(*memory_map)(void *memory, uint32_t domain, int protection, size_t pages,
			    const uint64_t *frames, int *errors);
	int (*memory_unmap)(void *memory, void *address, size_t pages);
	void *(*store_open)(unsigned long flags);
	void (*store_close)(void *store);
	void *(*store_read)(void *store, uint32_t transaction, const char *path, unsigned *size);
};

struct vp_xen {
	struct vp_xen_calls call;
	void *control, *memory; /* handles */
	void *libraries[3];
	char version[32]; /* version of the running Xen: "4.17" */
};

/* Whether this is a Xen dom0. */
bool vp_xen_is_here(void);
/* Loads the libraries of the running Xen, and opens its interfaces. Errors: not dom0, no
 * permission, no such library. */
struct vp_error *vp_xen_open(struct vp_xen **ret) VP_MUST_CHECK;
void vp_xen_close(struct vp_xen *xen);

#endif
