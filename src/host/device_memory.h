/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Device memory mapped by a VMM (BARs of VFIO devices, GPU memory). KVM has memory slots for it as
 * for RAM, but reading it can have side effects on the device. */
#ifndef VP_HOST_DEVICE_MEMORY_H
#define VP_HOST_DEVICE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/vec.h"

struct vp_device_range {
	uint64_t start, end;
};
typedef VP_VEC(struct vp_device_range) vp_device_ranges;

/* The device ranges of the process, sorted; empty if the process is gone. */
vp_device_ranges vp_device_memory_of(uint32_t pid);
/* The same from the text of /proc/PID/maps. */
vp_device_ranges vp_device_memory_parse(struct vp_slice maps);
/* Whether any byte of the range is device memory. */
bool vp_device_memory_has(const vp_device_ranges *ranges, uint64_t start, uint64_t size);

#endif
