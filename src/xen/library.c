/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/macros.h"

#define HYPERVISOR "/sys/hypervisor/"

enum { CONTROL, MEMORY, STORE, LIBRARIES };

_Static_assert(offsetof(struct vp_xen_domain, cpu_time) == 56, "as in Xen's public/domctl.h");
_Static_assert(offsetof(struct vp_xen_domain, uuid) == 76, "as in Xen's public/domctl.h");
_Static_assert(offsetof(struct vp_xen_vcpu, cpu_time) == 8, "as in Xen's public/domctl.h");

static const struct {
	int library;
	const char *name;
	size_t offset; /* in struct vp_xen_calls */
} functions[] = {
#define FUNCTION(library, symbol, name)                                                            \
	{                                                                                          \
		library, #symbol, offsetof(struct vp_xen_calls, name)                              \
	}
    FUNCTION(CONTROL, xc_interface_open, interface_open),
    FUNCTION(CONTROL, xc_interface_close, interface_close),
    FUNCTION(CONTROL, xc_domain_getinfolist, domain_getinfolist),
    FUNCTION(CONTROL, xc_vcpu_getinfo, vcpu_getinfo),
    FUNCTION(CONTROL, xc_sched_credit2_domain_get, sched_credit2_domain_get),
    FUNCTION(CONTROL, xc_sched_credit_domain_get, sched_credit_domain_get),
    FUNCTION(CONTROL, xc_physinfo, physinfo),
    FUNCTION(CONTROL, xc_get_cpumap_size, get_cpumap_size),
    FUNCTION(CONTROL, xc_vcpu_getaffinity, vcpu_getaffinity),
    FUNCTION(CONTROL, xc_cpupool_getinfo, cpupool_getinfo),
    FUNCTION(CONTROL, xc_cpupool_infofree, cpupool_infofree),
    FUNCTION(CONTROL, xc_vcpu_getcontext, vcpu_getcontext),
    FUNCTION(CONTROL, xc_domain_hvm_getcontext_partial, domain_hvm_getcontext_partial),
    FUNCTION(CONTROL, xc_domain_maximum_gpfn, domain_maximum_gpfn),
    FUNCTION(CONTROL, xc_maximum_ram_page, maximum_ram_page),
    FUNCTION(CONTROL, xc_machphys_mfn_list, machphys_mfn_list),
    FUNCTION(CONTROL, xc_tbuf_enable, tbuf_enable),
    FUNCTION(CONTROL, xc_tbuf_disable, tbuf_disable),
    FUNCTION(CONTROL, xc_tbuf_set_evt_mask, tbuf_set_evt_mask),
    FUNCTION(MEMORY, xenforeignmemory_open, memory_open),
    FUNCTION(MEMORY, xenforeignmemory_close, memory_close),
    FUNCTION(MEMORY, xenforeignmemory_map, memory_map),
    FUNCTION(MEMORY, xenforeignmemory_unmap, memory_unmap),
    FUNCTION(STORE, xs_open, store_open),
    FUNCTION(STORE, xs_close, store_close),
    FUNCTION(STORE, xs_read, store_read),
#undef FUNCTION
};

/* Reads the first line of a small file; "" if unreadable. */
static void library_read_word(const char *path, char *ret, size_t size)
{
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read(path, 4096, &text);

	snprintf(ret, size, "%s", error ? "" : vp_buffer_text(&text));
	ret[strcspn(ret, "\n")] = 0;
	vp_error_free(error);
	vp_buffer_deinit(&text);
}

bool vp_xen_is_here(void)
{
	char type[16], features[16];

	library_read_word(HYPERVISOR "type", type, sizeof(type));
	/* Bit 11: initial domain (XENFEAT_dom0 of Xen's public/features.h). */
	library_read_word(HYPERVISOR "properties/features", features, sizeof(features));
	return !strcmp(type, "xen") && strtoul(features, NULL, 16) & 1UL << 11;
}

static struct vp_error *library_load(struct vp_xen *xen)
{
	char names[LIBRARIES][64] = {
	    [MEMORY] = "libxenforeignmemory.so.1", [STORE] = "libxenstore.so.4"};

	snprintf(names[CONTROL], sizeof(names[CONTROL]), "libxenctrl.so.%s", xen->version);
	for (int i = 0; i < LIBRARIES; i++) {
		xen->libraries[i] = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		if (!xen->libraries[i])
			return vp_error_new("this host's Xen is %s, and its library cannot be "
					    "loaded (%s): install the "
					    "utilities of that version (Debian: xen-utils-%s)",
					    xen->version, dlerror(), xen->version);
	}
	for (size_t i = 0; i < VP_ARRAY_SIZE(functions); i++) {
		void *found = dlsym(xen->libraries[functions[i].library], functions[i].name);
		if (!found)
			return vp_error_new("the library '%s' has no function '%s'",
					    names[functions[i].library], functions[i].name);
		memcpy((char *)&xen->call + functions[i].offset, &found, sizeof(found));
	}
	return NULL;
}

static struct vp_error *library_open_all(struct vp_xen *xen)
{
	char major[8], minor[8];

	if (!vp_xen_is_here())
		return vp_error_new("this is not the control domain (dom0) of a Xen");
	library_read_word(HYPERVISOR "version/major", major, sizeof(major));
	library_read_word(HYPERVISOR "version/minor", minor, sizeof(minor));
	snprintf(xen->version, sizeof(xen->version), "%s.%s", major, minor);
	if (access("/dev/xen/privcmd", R_OK | W_OK))
		return vp_error_errno(
		    errno,
		    "cannot use '/dev/xen/privcmd' (root, and the kernel's module xen-privcmd, "
		    "are needed)");
	VP_TRY(library_load(xen));
	xen->control = xen->call.interface_open(NULL, NULL, 0);
	xen->memory = xen->call.memory_open(NULL, 0);
	if (!xen->control || !xen->memory)
		return vp_error_errno(errno, "Xen cannot be opened");
	return NULL;
}

struct vp_error *vp_xen_open(struct vp_xen **ret)
{
	struct vp_xen *xen = vp_alloc(sizeof(*xen));
	struct vp_error *error = library_open_all(xen);

	if (error)
		vp_xen_close(xen);
	else
		*ret = xen;
	return error;
}

void vp_xen_close(struct vp_xen *xen)
{
	if (!xen)
		return;
	if (xen->memory)
		xen->call.memory_close(xen->memory);
	if (xen->control)
		xen->call.interface_close(xen->control);
	for (int i = 0; i < LIBRARIES; i++)
		if (xen->libraries[i])
			dlclose(xen->libraries[i]);
	free(xen);
}
