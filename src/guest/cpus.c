/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest/cpus.h"

#include <string.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/file.h"

/* Limit: the longest line is that of the processor's flags. */
enum { MAX_CPUINFO_BYTES = 64 << 20 };

/* Parses a line "KEY\t: NUMBER"; false: another key. */
static bool read_field(struct vp_slice line, const char *key, uint32_t *ret)
{
	size_t size = strlen(key);

	if (line.size < size || memcmp(line.bytes, key, size) != 0)
		return false;
	while (size < line.size && strchr("\t :", line.bytes[size]))
		size++;
	struct vp_cursor rest = vp_cursor_of(line.bytes + size, line.size - size);
	*ret = (uint32_t)vp_cursor_decimal(&rest);
	return vp_cursor_ok(&rest);
}

/* KVM numbers vCPUs by APIC id; on processors without APICs, by Linux's CPU number. */
struct vp_error *vp_guest_cpus(struct vp_error *(*take)(void *context, uint32_t cpu, uint32_t vcpu),
			       void *context)
{
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read("/proc/cpuinfo", MAX_CPUINFO_BYTES, &text);
	struct vp_cursor lines = vp_cursor_of(text.bytes, text.size);
	uint32_t cpu = UINT32_MAX, vcpu = 0, next;
	struct vp_slice line;

	while (!error && vp_cursor_line(&lines, &line)) {
		if (read_field(line, "apicid", &vcpu) || !read_field(line, "processor", &next))
			continue;
		if (cpu != UINT32_MAX)
			error = take(context, cpu, vcpu);
		cpu = vcpu = next;
	}
	if (!error && cpu != UINT32_MAX)
		error = take(context, cpu, vcpu);
	vp_buffer_deinit(&text);
	return error;
}
