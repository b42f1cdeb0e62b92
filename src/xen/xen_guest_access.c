/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/xen_guest_access.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/vec.h"
#include "collect/guests/guest_state.h"
#include "guestmem/memory/memory.h"
#include "xen/context.h"
#include "xen/domains.h"
#include "xen/foreign.h"
#include "xen/frames.h"
#include "xen/library.h"
#include "xen/states.h"

static struct vp_error *xen_guest_access_open_lister(void **lister)
{
	return vp_xen_open((struct vp_xen **)lister);
}

static void xen_guest_access_close_lister(void *lister)
{
	vp_xen_close(lister);
}

static bool find_domain(const struct vp_xen *xen, uint32_t pid, struct vp_xen_domain *ret)
{
	return vp_xen_domain_next(xen, pid - 1, ret) && vp_xen_vm_number(ret->id) == pid;
}

static void read_registers(const struct vp_xen *xen, const struct vp_xen_domain *domain,
			   struct vp_guest_state *state)
{
	struct vp_guest_registers registers;

	for (uint32_t i = 0; i <= domain->last_vcpu && domain->last_vcpu != UINT32_MAX; i++)
		if (vp_xen_registers_read(xen, domain, i, &registers))
			vp_vec_push(&state->vcpus, registers);
}

static struct vp_error *xen_guest_access_list(void *lister, uint32_t pid,
					      struct vp_guest_state *ret)
{
	const struct vp_xen *xen = lister;
	struct vp_xen_domain domain;
	uint64_t last = 0;

	if (!find_domain(xen, pid, &domain))
		return vp_error_new("domain %u ended before its memory could be read", pid - 1);
	if (xen->call.domain_maximum_gpfn(xen->control, domain.id, &last))
		return vp_error_new("Xen does not report the memory size of domain %u", domain.id);
	*ret = (struct vp_guest_state){
	    .pid = pid, .detail = domain.flags & VP_XEN_HVM ? 0 : domain.shared_info_frame};
	/* Mapping a hole fails. */
	vp_guest_memory_add(&ret->memory, 0, (last + 1) * VP_GUEST_PAGE, 0);
	read_registers(xen, &domain, ret);
	return NULL;
}

static bool xen_guest_access_runs(uint32_t pid)
{
	struct vp_xen_domain domain;
	struct vp_xen *xen;
	struct vp_error *error = vp_xen_open(&xen);
	bool found = false;

	if (!error) {
		found = find_domain(xen, pid, &domain);
		vp_xen_close(xen);
	}
	vp_error_free(error);
	return found;
}

/* Xen reuses a domain id only after all others. */
static struct vp_error *expect_same(const struct vp_guest_state *state)
{
	return xen_guest_access_runs(state->pid)
		   ? NULL
		   : vp_error_new("domain %u has ended", state->pid - 1);
}

static struct vp_error *xen_guest_access_open_memory(const struct vp_guest_state *state,
						     int fds[VP_GUEST_ACCESS_FDS])
{
	return vp_xen_foreign_open((uint16_t)(state->pid - 1), &fds[0]);
}

/* State of the confined process, for its lifetime. */
struct reading {
	struct vp_xen_foreign *foreign;
	struct vp_xen_frames frames; /* of PV guests */
};

static bool read_memory(void *context, uint64_t hva, void *bytes, size_t size)
{
	const struct reading *reading = context;

	return vp_xen_foreign_read(reading->foreign, hva, bytes, size);
}

static void report_unbacked(void *context, uint64_t hva, size_t pages, unsigned char *ret)
{
	const struct reading *reading = context;

	vp_xen_foreign_backed(reading->foreign, hva, pages, ret);
}

static uint64_t translate(void *context, uint64_t address)
{
	const struct reading *reading = context;

	return vp_xen_frames_translate(&reading->frames, address);
}

/* Without Xen's M2P table, PV guests cannot be read. */
static struct vp_error *prepare(const struct vp_guest_state *state, void **ret)
{
	struct reading *reading = vp_alloc(sizeof(*reading));
	struct vp_xen *xen = NULL;

	*ret = reading;
	if (!state->detail)
		return NULL;
	VP_TRY(vp_xen_open(&xen));
	struct vp_error *error = vp_xen_frames_map(xen, &reading->frames);
	vp_xen_close(xen);
	return error;
}

static void xen_guest_access_read_by(const struct vp_guest_state *state, void *prepared,
				     const int fds[VP_GUEST_ACCESS_FDS],
				     struct vp_guest_memory *memory)
{
	struct reading *reading = prepared;

	reading->foreign = vp_xen_foreign_new(fds[0], (uint16_t)(state->pid - 1));
	memory->read = read_memory;
	memory->backed = report_unbacked;
	memory->context = reading;
	/* Continues without it: reads then fail with a message. */
	if (state->detail && vp_xen_foreign_is_pv(reading->foreign, state->detail))
		memory->translate = translate;
}

const struct vp_guest_access *vp_guest_access_xen(void)
{
	static const struct vp_guest_access access = {
	    .open = xen_guest_access_open_lister,
	    .close = xen_guest_access_close_lister,
	    .list = xen_guest_access_list,
	    .expect_same = expect_same,
	    .runs = xen_guest_access_runs,
	    .open_memory = xen_guest_access_open_memory,
	    .prepare = prepare,
	    .request = VP_XEN_MAP_REQUEST,
	    .read_by = xen_guest_access_read_by,
	};

	return &access;
}
