/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf-report COMMAND …: the commands that read recordings and need no host. */
#include "base/macros.h"
#include "cmd/common/program.h"
#include "cmd/common/verb.h"

static const struct vp_verb *(*const verbs[])(void) = {
    vp_verb_diagnose, vp_verb_report,   vp_verb_account, vp_verb_steal,    vp_verb_exits,
    vp_verb_script,   vp_verb_timeline, vp_verb_sched,   vp_verb_critical, vp_verb_info,
    vp_verb_model,    vp_verb_export,   vp_verb_import,  vp_verb_html,     vp_verb_stat_report,
    vp_verb_diff,     vp_verb_store,    vp_verb_pull};

int main(int argc, char **argv)
{
	const struct vp_program program = {.name = "vperf-report",
					   .summary = "read vperf recordings, on any machine",
					   .verbs = verbs,
					   .n_verbs = VP_ARRAY_SIZE(verbs)};

	return vp_program_run(&program, argc, argv);
}
