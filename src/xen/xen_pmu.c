/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/xen_pmu.h"

#include <linux/perf_event.h>

#include <errno.h>
#include <sys/ioctl.h>

#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "collect/programs/trigger.h"
#include "host/kernel_btf.h"
#include "host/kernel_variable.h"
#include "xen/xen_pmu_mode.h"
#include "xen_pmu.skel.h"

/* Domain ids from here on are reserved (Xen's public/xen.h). */
#define FIRST_RESERVED 0x7ff0

enum { MAX_PCPUS = 1 << 16 }; /* Xen's maximum is 16,384 */

struct vp_xen_pmu {
	struct vp_xen_pmu_mode mode;
	struct xen_pmu_bpf *programs;
	struct ring_buffer *ring;
	struct vp_trigger trigger;
	struct vp_xen_pmu_totals totals;
	VP_VEC(bool) seen; /* by pCPU */
	void (*take)(void *context, const struct vp_xen_pmu_sample *sample);
	void *context;
};

enum vp_xen_pmu_owner vp_xen_pmu_owner(const struct vp_xen_pmu_sample *sample)
{
	if (sample->domain == 0 || sample->domain == FIRST_RESERVED)
		return VP_XEN_PMU_DOM0;
	return sample->domain > FIRST_RESERVED ? VP_XEN_PMU_XEN : VP_XEN_PMU_GUEST;
}

static void xen_pmu_note_pcpu(struct vp_xen_pmu *pmu, uint32_t pcpu)
{
	while (pmu->seen.count <= pcpu)
		vp_vec_push(&pmu->seen, false);
	pmu->totals.n_pcpus += !pmu->seen.at[pcpu];
	pmu->seen.at[pcpu] = true;
}

static int xen_pmu_take_sample(void *context, void *data, size_t size)
{
	struct vp_xen_pmu *pmu = context;
	const struct vp_xen_pmu_sample *sample = data;
	enum vp_xen_pmu_owner owner = vp_xen_pmu_owner(sample);

	pmu->totals.of[owner]++;
	if (sample->pcpu < MAX_PCPUS)
		xen_pmu_note_pcpu(pmu, sample->pcpu);
	if (owner != VP_XEN_PMU_DOM0)
		pmu->take(pmu->context, sample);
	return 0;
}

static struct vp_error *put_pages(struct vp_xen_pmu *pmu)
{
	struct vp_kernel_btf *kernel = vp_kernel_btf_new();
	const struct btf *types = vp_kernel_btf_all(kernel);
	const struct vp_kernel_variable pages = {
	    .mark = VP_XENPMU_SHARED,
	    .type = types ? vp_kernel_variable_find(types, "xenpmu_shared") : 0};
	int status = pages.type ? vp_kernel_variable_put(pmu->programs->obj, &pages) : 0;

	vp_kernel_btf_free(kernel);
	if (!pages.type)
		return vp_error_new("dom0's kernel does not describe its variable xenpmu_shared "
				    "(CONFIG_XEN_HAVE_VPMU and CONFIG_DEBUG_INFO_BTF)");
	return status ? vp_error_errno(-status, "cannot patch the BPF program for Xen's PMU pages")
		      : NULL;
}

static struct vp_error *xen_pmu_load(struct vp_xen_pmu *pmu)
{
	pmu->programs = xen_pmu_bpf__open();
	if (pmu->programs)
		VP_TRY(put_pages(pmu));
	if (!pmu->programs || xen_pmu_bpf__load(pmu->programs))
		return vp_error_errno(errno, "cannot load the program that reads Xen's PMU pages");
	pmu->ring = ring_buffer__new(bpf_map__fd(pmu->programs->maps.samples), xen_pmu_take_sample,
				     pmu, NULL);
	return pmu->ring ? NULL : vp_error_errno(errno, "cannot map the ring of Xen's PMU pages");
}

/* Uses a fixed period in cycles: perf adapts a frequency at closely spaced interrupts and at
 * ticks, which an idle dom0 does not have. */
static struct vp_error *xen_pmu_open_counters(const struct vp_xen *xen, struct vp_xen_pmu *pmu,
					      uint64_t frequency)
{
	struct vp_trigger_options options = {.event = "cycles"};
	struct vp_xen_machine machine = {0};

	if (xen->call.physinfo(xen->control, &machine) || !machine.khz)
		return vp_error_errno(errno, "cannot read the clock rate of the pCPUs from Xen");
	options.period = machine.khz * 1000ULL / frequency;
	if (!vp_trigger_has_hardware())
		return vp_error_new("dom0's kernel has no hardware counter that interrupts");
	VP_TRY(vp_trigger_open(&options, &pmu->trigger));
	vp_vec_each (&pmu->trigger.fds, fd)
		if (ioctl(*fd, PERF_EVENT_IOC_SET_BPF,
			  bpf_program__fd(pmu->programs->progs.take_pmu_sample)))
			return vp_error_errno(errno, "cannot attach the program to a counter");
	return NULL;
}

struct vp_error *vp_xen_pmu_open(const struct vp_xen *xen, uint64_t frequency,
				 struct vp_xen_pmu **ret)
{
	struct vp_xen_pmu *pmu = vp_alloc(sizeof(*pmu));

	pmu->mode.folder = VP_XEN_PMU_FOLDER;
	struct vp_error *error = vp_xen_pmu_mode_try(&pmu->mode);
	if (!error)
		error = xen_pmu_load(pmu);
	if (!error)
		error = xen_pmu_open_counters(xen, pmu, frequency);
	if (error)
		vp_xen_pmu_free(pmu);
	else
		*ret = pmu;
	return error;
}

struct vp_error *vp_xen_pmu_begin(struct vp_xen_pmu *pmu)
{
	VP_TRY(vp_xen_pmu_mode_take(&pmu->mode));
	return vp_trigger_enable(&pmu->trigger, true);
}

struct vp_error *vp_xen_pmu_end(struct vp_xen_pmu *pmu)
{
	/* On failure they end when their descriptors are closed. */
	vp_error_free(vp_trigger_enable(&pmu->trigger, false));
	return vp_xen_pmu_mode_restore(&pmu->mode);
}

void vp_xen_pmu_drain(struct vp_xen_pmu *pmu,
		      void (*take)(void *context, const struct vp_xen_pmu_sample *sample),
		      void *context)
{
	pmu->take = take;
	pmu->context = context;
	ring_buffer__consume(pmu->ring);
}

struct vp_xen_pmu_totals vp_xen_pmu_totals(const struct vp_xen_pmu *pmu)
{
	struct vp_xen_pmu_totals totals = pmu->totals;

	totals.lost = pmu->programs->bss->lost;
	return totals;
}

void vp_xen_pmu_free(struct vp_xen_pmu *pmu)
{
	if (!pmu)
		return;
	vp_error_free(vp_xen_pmu_end(pmu));
	vp_trigger_close(&pmu->trigger);
	ring_buffer__free(pmu->ring);
	xen_pmu_bpf__destroy(pmu->programs);
	vp_vec_deinit(&pmu->seen);
	free(pmu);
}
