/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/host/record_targets.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/pcpus.h"
#include "base/vec.h"

/* Each must be in /proc: a mistyped number would record nothing. */
static struct vp_error *read_numbers(const char *option, const char *what, const char *of_many,
				     const char *text, struct vp_profile_ids *ret)
{
	const char *all = text;

	while (text) {
		char *end;
		unsigned long number = strtoul(text, &end, 10);
		if (end == text || (*end && *end != ',') || text[0] == '-' || text[0] == '+' ||
		    !number || number > INT32_MAX)
			return vp_error_usage("option --%s: expected numbers of %s, separated by "
					      "commas, not '%s'",
					      option, of_many, all);
		VP_AUTO_FREE char *path = vp_format("/proc/%lu", number);
		if (access(path, F_OK))
			return vp_error_new("option --%s: there is no %s %lu", option, what,
					    number);
		vp_vec_push(ret, (uint32_t)number);
		text = *end ? end + 1 : NULL;
	}
	return NULL;
}

static struct vp_error *read_pcpus(const char *text, struct vp_pcpus *ret)
{
	struct vp_pcpus online = {0};

	VP_AUTO_ERROR struct vp_error *error = vp_pcpus_parse(text, "option --cpu", ret);
	if (error || !ret->count)
		return vp_error_usage(
		    "option --cpu: expected a list of pCPUs such as 0-3,8, not '%s'", text);
	VP_TRY(vp_pcpus_online(&online));
	struct vp_error *missing = NULL;
	vp_vec_each (ret, pcpu) {
		bool found = false;
		vp_vec_each (&online, other)
			found |= *other == *pcpu;
		if (!found && !missing)
			missing = vp_error_new("option --cpu: pCPU %d is not online", *pcpu);
	}
	vp_vec_deinit(&online);
	return missing;
}

struct vp_error *vp_record_targets_check(struct vp_record_targets *targets)
{
	VP_TRY(read_numbers("pid", "process", "processes", targets->pids, &targets->chosen.pids));
	VP_TRY(read_numbers("tid", "thread", "threads", targets->tids, &targets->chosen.tids));
	return targets->cpus ? read_pcpus(targets->cpus, &targets->chosen.pcpus) : NULL;
}

void vp_record_targets_deinit(struct vp_record_targets *targets)
{
	vp_vec_deinit(&targets->chosen.pids);
	vp_vec_deinit(&targets->chosen.tids);
	vp_vec_deinit(&targets->chosen.pcpus);
}
