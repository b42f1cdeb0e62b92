/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lets programs read the VMCB that KVM has loaded with plain loads. */
#ifndef VP_COLLECT_PROGRAMS_SVM_DATA_H
#define VP_COLLECT_PROGRAMS_SVM_DATA_H

#include <stdbool.h>

#include "host/kernel_btf.h"

/* The kernel variable svm_data (kvm-amd), while programs that use it are loaded. */
struct vp_svm_data {
	int fd; /* of the module's BTF; -1: the variable is not in BTF */
};

/*
 * Patches its address into all programs of an object that is open and not loaded. False: programs
 * have to find the VMCB themselves (another vendor, no KVM, not in BTF, or `wanted` is false: the
 * kernel has rejected such programs). Close it after loading in any case.
 */
bool vp_svm_data_open(struct bpf_object *programs, bool wanted, struct vp_kernel_btf *kernel,
		      struct vp_svm_data *ret);
void vp_svm_data_close(struct vp_svm_data *data);

#endif
