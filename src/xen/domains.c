/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/domains.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "xen/placement.h"
#include "xen/states.h"

bool vp_xen_domain_next(const struct vp_xen *xen, uint32_t from, struct vp_xen_domain *ret)
{
	while (from < VP_XEN_DOMID_FIRST_RESERVED &&
	       xen->call.domain_getinfolist(xen->control, from, 1, ret) == 1) {
		if (!(ret->flags & VP_XEN_DYING))
			return true;
		from = ret->id + 1u;
	}
	return false;
}

bool vp_xen_domain_of(const struct vp_xen *xen, const struct vp_vm *vm, struct vp_xen_domain *ret)
{
	return vm->has_domain && vp_xen_domain_next(xen, vm->domain, ret) && ret->id == vm->domain;
}

/* xl's name of the domain; NULL: no name (yet). */
static char *domains_name_of(const struct vp_xen *xen, uint32_t domain)
{
	VP_AUTO_FREE char *path = vp_format("/local/domain/%u/name", domain);
	void *store = xen->call.store_open(0);
	unsigned size;
	char *name = store ? xen->call.store_read(store, 0, path, &size) : NULL;

	if (store)
		xen->call.store_close(store);
	if (name && !name[0]) {
		free(name);
		name = NULL;
	}
	return name;
}

static void write_uuid(const uint8_t *bytes, char text[40])
{
	char *at = text;

	for (size_t i = 0; i < 16; i++)
		at += snprintf(at, 4, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			       bytes[i]);
}

static void add_domain(const struct vp_xen *xen, const struct vp_xen_domain *domain, bool at_start,
		       vp_vms *vms)
{
	char uuid[40];
	char *name = domains_name_of(xen, domain->id);
	struct vp_vm *vm = vp_vec_push_slot(vms);

	write_uuid(domain->uuid, uuid);
	*vm = (struct vp_vm){.pid = vp_xen_vm_number(domain->id),
			     .has_domain = true,
			     .domain = domain->id,
			     .start = vp_clock_monotonic(),
			     .at_start = at_start,
			     .name = name ? name : vp_format("domain-%u", domain->id),
			     .uuid = vp_strdup(domain->id ? uuid : ""),
			     .agent = vp_strdup(""),
			     .memory = vp_strdup("")};
	for (uint32_t i = 0; i <= domain->last_vcpu && domain->last_vcpu != UINT32_MAX; i++)
		vp_vm_vcpu(vm, i)->tid = vp_xen_tid(domain->id, i);
	vp_xen_read_placement(xen, domain->cpupool, vm);
}

void vp_xen_domains_add(const struct vp_xen *xen, uint32_t only, bool at_start, vp_vms *vms)
{
	struct vp_xen_domain domain;
	uint32_t next = only == UINT32_MAX ? 0 : only;

	while (vp_xen_domain_next(xen, next, &domain)) {
		if (only != UINT32_MAX && domain.id != only)
			return;
		const struct vp_vm *known = vp_vms_latest(vms, vp_xen_vm_number(domain.id));
		if (!known)
			add_domain(xen, &domain, at_start, vms);
		next = domain.id + 1u;
	}
}

void vp_xen_domains_read_placements(vp_vms *vms)
{
	struct vp_xen_domain domain;
	struct vp_xen *xen;
	VP_AUTO_ERROR struct vp_error *error = vp_xen_open(&xen);

	if (error) /* the affinity from the start is kept */
		return;
	vp_vec_each (vms, vm)
		if (!vm->end && vp_xen_domain_of(xen, vm, &domain))
			vp_xen_read_placement(xen, domain.cpupool, vm);
	vp_xen_close(xen);
}
