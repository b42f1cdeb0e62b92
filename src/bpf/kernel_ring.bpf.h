/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A BPF ring buffer as the value of an array map, one per pCPU. */
#ifndef VP_BPF_KERNEL_RING_H
#define VP_BPF_KERNEL_RING_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* Sized by the loader. */
struct kernel_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

#endif
