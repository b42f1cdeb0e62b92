/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings of BPF programs on 64-bit Arm hosts before Linux 5.18 (1902472b4fa9 "bpf, arm64: Support
 * more atomic operations"). There, programs cannot publish a record by an atomic exchange
 * (store_after()), and a plain store of the ring's new head may be seen before the record. So the
 * reader waits, between reading the heads and the records, until all CPUs have passed a memory
 * barrier.
 */
#ifndef VP_COLLECT_PROGRAMS_PLAIN_STORES_H
#define VP_COLLECT_PROGRAMS_PLAIN_STORES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/macros.h"

/* Whether this kernel rejects programs with atomic exchanges. */
bool vp_plain_stores_needed(void);
/* Replaces the exchanges of 64-bit words in the programs of an object file by stores. Their results
 * must be unused. Returns the number of them. */
size_t vp_plain_stores_replace(void *elf, size_t size);
/* Whether this kernel can order the stores for the reader. */
struct vp_error *vp_plain_stores_check(void) VP_MUST_CHECK;
/* Everything that programs stored before a store that the caller has seen can be read now. */
void vp_plain_stores_wait(void);

#endif
