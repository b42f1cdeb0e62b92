/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/device_memory.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/macros.h"

/* Upper limit: a line of /proc/PID/maps has about 100 bytes, a process at most 65,530 mappings
 * (vm.max_map_count). */
enum { MAPS_MAX = 32 << 20 };

/* Files whose mappings are device memory. Mappings of other files in /dev are RAM: hugetlbfs,
 * tmpfs, DAX. */
static const char *const devices[] = {
    "anon_inode:[vfio", "anon_inode:dmabuf", "/dmabuf:",    "/dev/vfio/", "/dev/dri/",
    "/dev/nvidia",      "/dev/kfd",          "/dev/accel/", "/dev/mem",   "/sys/",
};

static bool is_device(struct vp_slice path)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(devices); i++) {
		size_t size = strlen(devices[i]);
		if (path.size >= size && !memcmp(path.bytes, devices[i], size))
			return true;
	}
	return false;
}

/* "7f0000000000-7f0000001000 rw-s 00000000 00:0e 1027   anon_inode:[vfio-device]" */
static bool device_memory_parse_line(struct vp_slice text, struct vp_device_range *range)
{
	struct vp_cursor line = vp_cursor_of(text.bytes, text.size);
	struct vp_slice addresses = vp_cursor_word(&line);
	const char *dash = addresses.size ? memchr(addresses.bytes, '-', addresses.size) : NULL;

	if (!dash)
		return false;
	size_t size = (size_t)(dash - addresses.bytes);
	struct vp_cursor start = vp_cursor_of(addresses.bytes, size);
	struct vp_cursor end = vp_cursor_of(dash + 1, addresses.size - size - 1);
	*range = (struct vp_device_range){vp_cursor_hex(&start), vp_cursor_hex(&end)};
	for (int i = 0; i < 4; i++) /* permissions, offset, device, inode */
		vp_cursor_word(&line);
	return vp_cursor_ok(&line) && vp_cursor_ok(&start) && vp_cursor_ok(&end) &&
	       range->end > range->start && is_device(vp_cursor_rest(&line));
}

vp_device_ranges vp_device_memory_parse(struct vp_slice maps)
{
	struct vp_cursor text = vp_cursor_of(maps.bytes, maps.size);
	vp_device_ranges found = {0};
	struct vp_device_range range;
	struct vp_slice line;

	while (vp_cursor_line(&text, &line))
		if (device_memory_parse_line(line, &range))
			vp_vec_push(&found, range);
	return found;
}

vp_device_ranges vp_device_memory_of(uint32_t pid)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%u/maps", pid);
	struct vp_buffer text = {0};
	vp_device_ranges found = {0};
	struct vp_error *error = vp_file_read(path, MAPS_MAX, &text);

	if (!error)
		found = vp_device_memory_parse((struct vp_slice){text.bytes, text.size});
	vp_error_free(error);
	vp_buffer_deinit(&text);
	return found;
}

bool vp_device_memory_has(const vp_device_ranges *ranges, uint64_t start, uint64_t size)
{
	vp_vec_each (ranges, range)
		if (range->end > start && (range->start <= start || range->start - start < size))
			return true;
	return false;
}
