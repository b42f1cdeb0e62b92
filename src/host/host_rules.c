/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/host_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/macros.h"

/* Reads a small file; false: it is missing. */
static bool host_rules_read_file(const char *sysfs, const char *name, struct vp_buffer *text)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s", sysfs, name);
	struct vp_error *error = vp_file_read(path, 256, text);
	bool read = !error;

	vp_error_free(error);
	return read;
}

/* "none [integrity] confidentiality": the kernel's mode is in brackets. */
const char *vp_host_lockdown(const char *sysfs)
{
	static const char *const modes[] = {"integrity", "confidentiality"};
	struct vp_buffer text = {0};
	const char *found = NULL;

	if (host_rules_read_file(sysfs, "kernel/security/lockdown", &text))
		for (size_t i = 0; i < VP_ARRAY_SIZE(modes); i++) {
			VP_AUTO_FREE char *chosen = vp_format("[%s]", modes[i]);
			if (strstr(vp_buffer_text(&text), chosen))
				found = modes[i];
		}
	vp_buffer_deinit(&text);
	return found;
}

char *vp_host_other_clock(const char *sysfs)
{
	static const char *const counters[] = {"tsc", "tsc-early", "arch_sys_counter", "xen"};
	struct vp_buffer text = {0};
	char *name = NULL;

	if (host_rules_read_file(
		sysfs, "devices/system/clocksource/clocksource0/current_clocksource", &text))
		name = vp_strndup(vp_buffer_text(&text), strcspn(vp_buffer_text(&text), "\n"));
	bool is_counter = !name || !*name;
	for (size_t i = 0; i < VP_ARRAY_SIZE(counters); i++)
		is_counter |= name && !strcmp(name, counters[i]);
	if (is_counter) {
		free(name);
		name = NULL;
	}
	vp_buffer_deinit(&text);
	return name;
}

bool vp_host_has_mediated_pmu(const char *sysfs)
{
	static const char *const files[] = {"module/kvm_intel/parameters/enable_mediated_pmu",
					    "module/kvm_amd/parameters/enable_mediated_pmu"};
	bool found = false;

	for (size_t i = 0; i < VP_ARRAY_SIZE(files); i++) {
		struct vp_buffer text = {0};
		found |= host_rules_read_file(sysfs, files[i], &text) && text.size &&
			 strchr("Y1", vp_buffer_text(&text)[0]);
		vp_buffer_deinit(&text);
	}
	return found;
}

/* Whether it is a core PMU: others, such as uncore, count for the host only. */
static bool is_of_core(const char *sysfs, uint32_t type)
{
	static const char *const pmus[] = {"cpu", "cpu_core", "cpu_atom"};
	bool found =
	    type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE || type == PERF_TYPE_RAW;

	for (size_t i = 0; i < VP_ARRAY_SIZE(pmus) && !found; i++) {
		VP_AUTO_FREE char *file = vp_format("bus/event_source/devices/%s/type", pmus[i]);
		struct vp_buffer text = {0};
		found = host_rules_read_file(sysfs, file, &text) && text.size &&
			strtoul(vp_buffer_text(&text), NULL, 10) == type;
		vp_buffer_deinit(&text);
	}
	return found;
}

bool vp_host_event_blocks_vms(const char *sysfs, const struct perf_event_attr *attr)
{
	return !attr->exclude_guest && attr->type != PERF_TYPE_SOFTWARE &&
	       attr->type != PERF_TYPE_TRACEPOINT && vp_host_has_mediated_pmu(sysfs) &&
	       is_of_core(sysfs, attr->type);
}
