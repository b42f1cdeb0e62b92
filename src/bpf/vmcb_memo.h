/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cached VMCB pointer of a vCPU: see read_exit_reason() in kvm_compat.bpf.h. */
#ifndef VP_BPF_VMCB_MEMO_H
#define VP_BPF_VMCB_MEMO_H

#include <linux/types.h>

struct vp_vmcb_memo {
	__u64 vmcb; /* 0: unknown, or possibly not the guest's own */
	__u64 uses;
};

/* Placeholder immediate that the loader patches with the address of svm_data: see
 * collect/programs/svm_data.c. */
#define VP_SVM_DATA 0x7670737664617461
#define VP_SVM_DATA_TEXT "0x7670737664617461"

#endif
