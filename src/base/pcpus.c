/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/pcpus.h"

#include <stdbool.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"

enum { PCPU_MAX = 65536 };

struct vp_error *vp_pcpus_parse(const char *list, const char *source, struct vp_pcpus *ret)
{
	const char *next = list;

	while (*next && *next != '\n') {
		char *end;
		long first = strtol(next, &end, 10), last = first;
		bool good = end != next;
		if (good && *end == '-') {
			next = end + 1;
			last = strtol(next, &end, 10);
			good = end != next;
		}
		if (!good || first < 0 || last < first || last >= PCPU_MAX ||
		    (*end && *end != ',' && *end != '\n'))
			return vp_error_new("%s: '%s' is not a list of CPUs such as 0-3,8", source,
					    list);
		for (long cpu = first; cpu <= last; cpu++)
			vp_vec_push(ret, (int)cpu);
		next = *end == ',' ? end + 1 : end;
	}
	return NULL;
}

static struct vp_error *pcpus_read_list(const char *path, struct vp_pcpus *ret)
{
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read(path, 65536, &text);

	if (!error)
		error = vp_pcpus_parse(vp_buffer_text(&text), path, ret);
	vp_buffer_deinit(&text);
	return error;
}

struct vp_error *vp_pcpus_online(struct vp_pcpus *ret)
{
	return pcpus_read_list("/sys/devices/system/cpu/online", ret);
}

struct vp_error *vp_pcpus_present(uint32_t *ret)
{
	struct vp_pcpus present = {0};
	struct vp_error *error = pcpus_read_list("/sys/devices/system/cpu/present", &present);

	*ret = 0;
	vp_vec_each (&present, pcpu)
		if ((uint32_t)*pcpu >= *ret)
			*ret = (uint32_t)*pcpu + 1;
	vp_vec_deinit(&present);
	return error;
}

char *vp_pcpus_format(const struct vp_pcpus *pcpus)
{
	struct vp_buffer text = {0};

	for (size_t i = 0, first = 0; i < pcpus->count; first = ++i) {
		while (i + 1 < pcpus->count && pcpus->at[i + 1] == pcpus->at[i] + 1)
			i++;
		vp_buffer_printf(&text, i > first ? "%s%d-%d" : "%s%d", text.size ? "," : "",
				 pcpus->at[first], pcpus->at[i]);
	}
	char *list = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	return list;
}
