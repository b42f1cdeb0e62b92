/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/host.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "host/host_rules.h"

enum vp_vendor vp_host_vendor(void)
{
	if (!access("/sys/module/kvm_amd", F_OK))
		return VP_VENDOR_AMD;
	if (!access("/sys/module/kvm_intel", F_OK))
		return VP_VENDOR_INTEL;
#if defined(__aarch64__) /* KVM is not a module */
	if (!access("/dev/kvm", F_OK))
		return VP_VENDOR_ARM;
#endif
	return VP_VENDOR_UNKNOWN;
}

/* The parameter is Y or 1, depending on the kernel version. */
bool vp_host_has_nested_paging(void)
{
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read("/sys/module/kvm_amd/parameters/npt", 16, &text);
	bool has = !error && strchr("Y1", vp_buffer_text(&text)[0]) && text.size;

	vp_error_free(error);
	vp_buffer_deinit(&text);
	return has;
}

struct vp_error *vp_host_expect_btf(const char *programs)
{
	return access(VP_HOST_BTF, R_OK)
		   ? vp_error_errno(errno,
				    "cannot read '" VP_HOST_BTF "': the %s programs need a "
				    "kernel with BTF (CONFIG_DEBUG_INFO_BTF)",
				    programs)
		   : NULL;
}

struct vp_error *vp_host_load_error(int result, const char *programs)
{
	const char *lockdown = vp_host_lockdown("/sys");

	/* In this mode BPF programs cannot read kernel memory, not even for root. */
	if (lockdown && !strcmp(lockdown, "confidentiality"))
		return vp_error_new("cannot load the %s programs: this kernel is locked down "
				    "(confidentiality), BPF programs cannot read its memory",
				    programs);
	/* Rejected by the verifier; an unprivileged program is rejected for actions that
	 * CAP_PERFMON permits. */
	if (result == -EACCES && !geteuid())
		return vp_error_new(
		    "the verifier of this kernel rejects the %s programs: a defect of "
		    "vperf, please report it with the kernel's version and what "
		    "VPERF_DEBUG=1 prints",
		    programs);
	if (result == -EPERM || result == -EACCES)
		return vp_error_new(
		    "cannot load BPF programs: root (or CAP_BPF and CAP_PERFMON) is needed");
	return vp_error_errno(
	    -result,
	    "cannot load the %s programs on this kernel ('vperf check' reports what is missing)",
	    programs);
}
