/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/kernel_variable.h"

#include <string.h>

#include <bpf/btf.h>
#include <linux/filter.h>

#include "base/alloc.h"
#include "base/macros.h"

unsigned vp_kernel_variable_find(const struct btf *types, const char *name)
{
	int id = btf__find_by_name_kind(types, name, BTF_KIND_VAR);
	const struct btf_type *type = id > 0 ? btf__type_by_id(types, (uint32_t)id) : NULL;
	const struct btf_type *its = type ? btf__type_by_id(types, type->type) : NULL;

	return its && btf_is_struct(its) ? (unsigned)id : 0;
}

static bool is_mark(const struct bpf_insn *at, uint64_t mark)
{
	uint64_t value = (uint32_t)at[0].imm | (uint64_t)(uint32_t)at[1].imm << 32;

	return at->code == (BPF_LD | BPF_DW | BPF_IMM) && !at->src_reg && value == mark;
}

static int put_into(struct bpf_program *program, const struct vp_kernel_variable *variable)
{
	size_t count = bpf_program__insn_cnt(program);
	VP_AUTO_FREE struct bpf_insn *copy = vp_alloc(count * sizeof(*copy));

	memcpy(copy, bpf_program__insns(program), count * sizeof(*copy));
	for (size_t i = 0; i + 1 < count; i++) {
		if (!is_mark(&copy[i], variable->mark))
			continue;
		copy[i].src_reg = BPF_PSEUDO_BTF_ID;
		copy[i].imm = (int)variable->type;
		copy[i + 1].imm = variable->fd;
	}
	return bpf_program__set_insns(program, copy, count);
}

int vp_kernel_variable_put(struct bpf_object *programs, const struct vp_kernel_variable *variable)
{
	struct bpf_program *program;
	int status = 0;

	bpf_object__for_each_program (program, programs) {
		if (!status)
			status = put_into(program, variable);
	}
	return status;
}
