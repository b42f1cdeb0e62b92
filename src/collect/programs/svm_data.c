/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/svm_data.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bpf/vmcb_memo.h"
#include "host/host.h"
#include "host/kernel_variable.h"
#include "schema/records.h"

static bool svm_data_is_named(int fd, const char *module)
{
	char name[64] = "";
	struct bpf_btf_info info = {.name = (uintptr_t)name, .name_len = sizeof(name)};
	uint32_t size = sizeof(info);

	return !bpf_obj_get_info_by_fd(fd, &info, &size) && info.kernel_btf &&
	       !strcmp(name, module);
}

/* A descriptor of the module's BTF, or -1. */
static int open_module(const char *module)
{
	uint32_t id = 0;

	while (!bpf_btf_get_next_id(id, &id)) {
		int fd = bpf_btf_get_fd_by_id(id);
		if (fd >= 0 && svm_data_is_named(fd, module))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

bool vp_svm_data_open(struct bpf_object *programs, bool wanted, struct vp_kernel_btf *kernel,
		      struct vp_svm_data *ret)
{
	*ret = (struct vp_svm_data){.fd = -1};
	if (!wanted || vp_host_vendor() != VP_VENDOR_AMD)
		return false;
	const struct btf *module = vp_kernel_btf_module(kernel, "kvm_amd");
	/* before 6.1: an array of pointers */
	unsigned type = module ? vp_kernel_variable_find(module, "svm_data") : 0;
	if (type)
		ret->fd = open_module("kvm_amd");
	const struct vp_kernel_variable variable = {VP_SVM_DATA, type, ret->fd};
	return ret->fd >= 0 && !vp_kernel_variable_put(programs, &variable);
}

void vp_svm_data_close(struct vp_svm_data *data)
{
	if (data->fd >= 0)
		close(data->fd);
	data->fd = -1;
}
