/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A weak `extern` of libbpf's would do the same, but refuses to load where the variable has another
 * type, as it has in kernels before 6.1.
 */
#include "collect/svm_data.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/filter.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "bpf/vmcb_memo.h"
#include "collect/host.h"

static bool is_named(int fd, const char *module)
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
		if (fd >= 0 && is_named(fd, module))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

/* The variable, if it is the struct itself; 0: it is not. */
static unsigned find_variable(const struct btf *module)
{
	int id = btf__find_by_name_kind(module, "svm_data", BTF_KIND_VAR);
	const struct btf_type *type = id > 0 ? btf__type_by_id(module, (uint32_t)id) : NULL;
	const struct btf_type *its = type ? btf__type_by_id(module, type->type) : NULL;

	return its && btf_is_struct(its) ? (unsigned)id : 0;
}

static bool is_mark(const struct bpf_insn *at)
{
	uint64_t value = (uint32_t)at[0].imm | (uint64_t)(uint32_t)at[1].imm << 32;

	return at->code == (BPF_LD | BPF_DW | BPF_IMM) && !at->src_reg && value == VP_SVM_DATA;
}

static int put_into(struct bpf_program *program, const struct vp_svm_data *data)
{
	size_t count = bpf_program__insn_cnt(program);
	VP_AUTO_FREE struct bpf_insn *copy = vp_alloc(count * sizeof(*copy));

	memcpy(copy, bpf_program__insns(program), count * sizeof(*copy));
	for (size_t i = 0; i + 1 < count; i++) {
		if (!is_mark(&copy[i]))
			continue;
		copy[i].src_reg = BPF_PSEUDO_BTF_ID;
		copy[i].imm = (int)data->type;
		copy[i + 1].imm = data->fd;
	}
	return bpf_program__set_insns(program, copy, count);
}

bool vp_svm_data_open(struct bpf_object *programs, bool wanted, struct vp_kernel_btf *kernel,
		      struct vp_svm_data *ret)
{
	struct bpf_program *program;

	*ret = (struct vp_svm_data){.fd = -1};
	if (!wanted || vp_host_vendor() != VP_VENDOR_AMD)
		return false;
	const struct btf *module = vp_kernel_btf_module(kernel, "kvm_amd");
	ret->type = module ? find_variable(module) : 0;
	if (ret->type)
		ret->fd = open_module("kvm_amd");
	bool done = ret->fd >= 0;
	bpf_object__for_each_program(program, programs) done = done && !put_into(program, ret);
	return done;
}

void vp_svm_data_close(struct vp_svm_data *data)
{
	if (data->fd >= 0)
		close(data->fd);
	data->fd = -1;
}
