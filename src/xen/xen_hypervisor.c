/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/xen_hypervisor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "host/source.h"
#include "schema/vm.h"
#include "xen/buffers.h"
#include "xen/domains.h"
#include "xen/foreign.h"
#include "xen/library.h"
#include "xen/placement.h"
#include "xen/vcpu_intervals.h"
#include "xen/xen_account.h"
#include "xen/xen_condition_ops.h"
#include "xen/xen_events.h"
#include "xen/xen_guest_access.h"
#include "xen/xen_pmu.h"
#include "xen/xen_sampler.h"

enum { FEW_PAGES = 512, PROBE_HZ = 97 };

static struct vp_error *xen_hypervisor_scan(vp_vms *vms, bool at_start)
{
	struct vp_xen *xen;

	VP_TRY(vp_xen_open(&xen));
	vp_xen_domains_add(xen, UINT32_MAX, at_start, vms);
	vp_xen_close(xen);
	return NULL;
}

static struct vp_vm *xen_hypervisor_scan_domain(vp_vms *vms, uint32_t id, bool at_start)
{
	size_t before = vms->count;
	struct vp_xen *xen;

	if (!id)
		return NULL;
	VP_AUTO_ERROR struct vp_error *error = vp_xen_open(&xen);
	if (!error) { /* otherwise retried at its next event */
		vp_xen_domains_add(xen, id - 1, at_start, vms);
		vp_xen_close(xen);
	}
	return vms->count > before ? &vms->at[before] : NULL;
}

static bool is_gone(const struct vp_vm *vm)
{
	struct vp_xen_domain domain;
	struct vp_xen *xen;
	struct vp_error *error = vp_xen_open(&xen);
	bool gone = false;

	if (!error) {
		gone = !vp_xen_domain_of(xen, vm, &domain);
		vp_xen_close(xen);
	}
	vp_error_free(error);
	return gone;
}

/* Too expensive for once a second per VM; is_gone() is called now and then. */
static bool has_exited(const struct vp_vm *vm)
{
	return false;
}

static bool probe_xen(char *detail, size_t size)
{
	struct vp_xen *xen;
	struct vp_error *error = vp_xen_open(&xen);

	if (error)
		return vp_probe_report_opened(error, NULL, detail, size);
	snprintf(detail, size, "Xen %s, this is dom0; libxenctrl.so.%s is loaded", xen->version,
		 xen->version);
	vp_xen_close(xen);
	return true;
}

static bool probe_domains(char *detail, size_t size)
{
	vp_vms vms = {0};
	struct vp_error *error = xen_hypervisor_scan(&vms, true);
	size_t at = 0;

	if (error)
		return vp_probe_report_opened(error, NULL, detail, size);
	detail[0] = 0;
	vp_vec_each (&vms, vm)
		if (at < size)
			at += (size_t)snprintf(detail + at, size - at, "%s%s", at ? ", " : "",
					       vm->name);
	vp_vms_deinit(&vms);
	return true;
}

static bool xen_hypervisor_probe_trace(char *detail, size_t size)
{
	struct vp_xen *xen;
	struct vp_xen_buffers *buffers = NULL;
	struct vp_error *error = vp_xen_open(&xen);

	if (!error) {
		error = vp_xen_buffers_open(xen, &buffers);
		if (buffers)
			vp_xen_buffers_close(buffers);
		vp_xen_close(xen);
	}
	return vp_probe_report_opened(error, "enabled and mapped", detail, size);
}

static bool probe_pmu(char *detail, size_t size)
{
	struct vp_xen_pmu *pmu = NULL;
	struct vp_xen *xen;
	struct vp_error *error = vp_xen_open(&xen);

	if (!error) {
		error = vp_xen_pmu_open(xen, PROBE_HZ, &pmu);
		vp_xen_pmu_free(pmu);
		vp_xen_close(xen);
	}
	return vp_probe_report_opened(error,
				      "dom0's counter can interrupt all domains; tested under "
				      "emulation only",
				      detail, size);
}

/* Whether any page of its first 2 MiB can be mapped; for a PV guest, at its machine frames. */
static bool can_read(const struct vp_xen_domain *domain, int fd)
{
	struct vp_xen_foreign *foreign = vp_xen_foreign_new(fd, domain->id);
	unsigned char backed[FEW_PAGES];
	bool found =
	    domain->flags & VP_XEN_HVM || vp_xen_foreign_is_pv(foreign, domain->shared_info_frame);

	vp_xen_foreign_backed(foreign, 0, FEW_PAGES, backed);
	found = found && memchr(backed, true, FEW_PAGES);
	vp_xen_foreign_free(foreign);
	return found;
}

static struct vp_error *read_some(const struct vp_xen_domain *domain)
{
	int fd;

	VP_TRY(vp_xen_foreign_open(domain->id, &fd));
	struct vp_error *error =
	    can_read(domain, fd) ? NULL
				 : vp_error_new("cannot map the memory of domain %u", domain->id);
	close(fd);
	return error;
}

static bool probe_memory(char *detail, size_t size)
{
	struct vp_xen_domain domain;
	struct vp_xen *xen;
	struct vp_error *error = vp_xen_open(&xen);
	bool found = false;

	if (!error) {
		found = vp_xen_domain_next(xen, 1, &domain);
		error =
		    found ? read_some(&domain) : vp_error_new("not tested: no guest is running");
		vp_xen_close(xen);
	}
	char good[64] = "";
	if (found)
		snprintf(good, sizeof(good), "that of domain %u can be mapped", domain.id);
	return vp_probe_report_opened(error, good, detail, size);
}

static const struct vp_source *source_xen(void)
{
	static const struct vp_probe probes[] = {
	    {"Xen", "VMs are not found", false, probe_xen},
	    {"running VMs", "only the host can be recorded", false, probe_domains},
	    {"Xen's trace buffers", "no exact vCPU accounting (account, steal, exits, top)", false,
	     xen_hypervisor_probe_trace},
	    {"Xen's PMU", "no samples of guests by a hardware counter (record --interrupts=pmu)",
	     false, probe_pmu},
	    {"guests' memory", "samples of guests have no processes and no names", false,
	     probe_memory},
	};
	static const struct vp_source source = {probes, VP_ARRAY_SIZE(probes)};

	return &source;
}

static const struct vp_source *source(size_t number)
{
	const struct vp_source *(*const all[])(void) = {
	    vp_source_host,        source_xen,     vp_source_sampler, vp_source_intervals,
	    vp_source_tracepoints, vp_source_lend, vp_source_machine};

	return number < VP_ARRAY_SIZE(all) ? all[number]() : NULL;
}

const struct vp_hypervisor *vp_hypervisor_xen(void)
{
	static const struct vp_hypervisor xen = {
	    .name = "Xen",
	    .vendor = vp_xen_vendor,
	    .scan = xen_hypervisor_scan,
	    .scan_one = xen_hypervisor_scan_domain,
	    .has_exited = has_exited,
	    .is_gone = is_gone,
	    .has_counter_times = true,
	    .read_placements = vp_xen_domains_read_placements,
	    .count_pcpus = vp_xen_count_pcpus,
	    .account = vp_xen_account_ops,
	    .guest_access = vp_guest_access_xen,
	    .guest_sampler = vp_guest_sampler_xen,
	    .events = vp_xen_events_ops,
	    .intervals = vp_xen_intervals_ops,
	    .conditions = vp_xen_condition_ops,
	    .source = source,
	};

	return &xen;
}

bool vp_xen_is_dom0(void)
{
	return vp_xen_is_here();
}
