/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/event_options.h"

#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "cmd/common/time_options.h"
#include "cmd/common/verb.h"

static struct vp_error *event_options_choose_cpus(struct vp_event_options *options)
{
	if (!options->cpus)
		return NULL;
	VP_AUTO_ERROR struct vp_error *error =
	    vp_pcpus_parse(options->cpus, "option --cpu", &options->pcpus);
	if (error || !options->pcpus.count)
		return vp_error_usage(
		    "option --cpu: expected a list of pCPUs such as 0-3,8, not '%s'",
		    options->cpus);
	return NULL;
}

struct vp_error *vp_event_options_check(struct vp_event_options *options)
{
	VP_TRY(event_options_choose_cpus(options));
	VP_TRY((options->joins ? vp_store_options_choose_parts : vp_store_options_choose)(
	    &options->store, &options->operands, options->input, "vperf.data", &options->time,
	    &options->directory));
	if (options->joins && vp_store_options_has_several(&options->store))
		return NULL;
	VP_TRY(vp_clock_option_parse(options->clock_form, options->directory, &options->clock));
	return vp_time_option_parse(options->time, options->directory, &options->from,
				    &options->to);
}

void vp_event_options_deinit(struct vp_event_options *options)
{
	vp_vec_deinit(&options->pcpus);
	vp_store_options_deinit(&options->store);
}
