/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf COMMAND …: all commands. */
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "cmd/common/program.h"
#include "cmd/common/verb.h"
#include <bpf/libbpf.h>

static const struct vp_verb *(*const verbs[])(void) = {
    vp_verb_record, vp_verb_diagnose, vp_verb_report, vp_verb_account,  vp_verb_steal,
    vp_verb_exits,  vp_verb_top,      vp_verb_stat,   vp_verb_script,   vp_verb_timeline,
    vp_verb_sched,  vp_verb_critical, vp_verb_guests, vp_verb_info,     vp_verb_check,
    vp_verb_model,  vp_verb_export,   vp_verb_import, vp_verb_snapshot, vp_verb_html,
    vp_verb_lend,   vp_verb_selftest, vp_verb_diff,   vp_verb_metrics,  vp_verb_store,
    vp_verb_pull,   vp_verb_fleet};

/* libbpf's messages are only for debugging vperf. */
static int print_of_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	return getenv("VPERF_DEBUG") ? vfprintf(stderr, format, args) : 0;
}

int main(int argc, char **argv)
{
	const struct vp_program program = {.name = "vperf",
					   .summary =
					       "show where the CPU time of a KVM or Xen host goes",
					   .verbs = verbs,
					   .n_verbs = VP_ARRAY_SIZE(verbs)};

	libbpf_set_print(print_of_libbpf);
	return vp_program_run(&program, argc, argv);
}
