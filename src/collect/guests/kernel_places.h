/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where in a VM's memory its kernel was found the last time, beside the kernel packs: a file
 * `places` with a line `GPA NAME` for each VM, the address in hexadecimal, the name escaped as in
 * map text, the one that was found last at the end.
 */
#ifndef VP_COLLECT_GUESTS_KERNEL_PLACES_H
#define VP_COLLECT_GUESTS_KERNEL_PLACES_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* 0: not known. What is read there may be anything. */
uint64_t vp_kernel_place_recall(const char *folder, const char *vm);
/* The folder is made if it has to be. */
struct vp_error *vp_kernel_place_remember(const char *folder, const char *vm,
					  uint64_t gpa) VP_MUST_CHECK;

#endif
