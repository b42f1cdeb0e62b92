/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/placement.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/pcpus.h"
#include "base/vec.h"

enum { HARD_AFFINITY = 1 /* XEN_VCPUAFFINITY_HARD of Xen's public/domctl.h */, BITS = 8 };

/* XEN_SCHEDULER_* of Xen's public/domctl.h, with the names of Xen's option sched=. */
static const char *scheduler_name(uint32_t id)
{
	static const char *const names[] = {
	    [5] = "credit", [6] = "credit2", [7] = "arinc653", [8] = "rtds", [9] = "null"};

	return id < VP_ARRAY_SIZE(names) ? names[id] : NULL;
}

uint32_t vp_xen_count_pcpus(void)
{
	struct vp_xen_machine machine = {0};
	struct vp_xen *xen;
	VP_AUTO_ERROR struct vp_error *error = vp_xen_open(&xen);

	if (error)
		return 0;
	uint32_t count = xen->call.physinfo(xen->control, &machine) ? 0 : machine.n_pcpus;
	vp_xen_close(xen);
	return count;
}

/* Sets the lists of the vCPUs; `allowed` has a bit for each pCPU of the cpupool. */
static void read_lists(const struct vp_xen *xen, struct vp_vm *vm, const uint8_t *allowed,
		       size_t bytes)
{
	VP_AUTO_FREE uint8_t *affinity = vp_alloc(bytes);
	struct vp_pcpus pcpus = {0};

	vp_vec_each (&vm->vcpus, vcpu) {
		if (xen->call.vcpu_getaffinity(xen->control, vm->domain, (int)vcpu->number,
					       affinity, NULL, HARD_AFFINITY))
			continue;
		pcpus.count = 0;
		for (size_t i = 0; i < bytes * BITS; i++)
			if (affinity[i / BITS] & allowed[i / BITS] & 1 << i % BITS)
				vp_vec_push(&pcpus, (int)i);
		if (!pcpus.count)
			continue;
		free(vcpu->pcpus);
		vcpu->pcpus = vp_pcpus_format(&pcpus);
	}
	vp_vec_deinit(&pcpus);
}

/* The cpupool, to be freed by Xen's library; NULL: Xen does not have it. */
static struct vp_xen_cpupool *find_pool(const struct vp_xen *xen, uint32_t id)
{
	struct vp_xen_cpupool *pool = xen->call.cpupool_getinfo(xen->control, id);

	if (!pool || pool->id == id)
		return pool;
	/* Xen returns the next pool if the number is not in use. */
	xen->call.cpupool_infofree(xen->control, pool);
	return NULL;
}

char *vp_xen_scheduler(const struct vp_xen *xen, uint32_t cpupool)
{
	struct vp_xen_cpupool *pool = find_pool(xen, cpupool);
	const char *name = pool ? scheduler_name(pool->scheduler) : NULL;

	if (pool)
		xen->call.cpupool_infofree(xen->control, pool);
	return name ? vp_strdup(name) : NULL;
}

void vp_xen_read_placement(const struct vp_xen *xen, uint32_t cpupool, struct vp_vm *vm)
{
	int bytes = xen->call.get_cpumap_size(xen->control);
	struct vp_xen_cpupool *pool = bytes > 0 ? find_pool(xen, cpupool) : NULL;

	if (!pool)
		return;
	const char *scheduler = scheduler_name(pool->scheduler);
	free(vm->scheduler);
	vm->scheduler = scheduler ? vp_strdup(scheduler) : NULL;
	read_lists(xen, vm, pool->pcpus, (size_t)bytes);
	xen->call.cpupool_infofree(xen->control, pool);
}
