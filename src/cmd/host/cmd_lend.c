/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf lend: makes host counters available to threads of a guest. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/choice.h"
#include "cmd/common/command.h"
#include "cmd/common/options.h"
#include "cmd/common/verb.h"
#include "collect/programs/lender.h"
#include "host/vm_scan.h"
#include "protocol/agent_protocol.h"
#include "schema/vm.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_lend(void)
{
	return &verb;
}

struct lend {
	const char *vm, *events;
	uint64_t port;
	struct vp_format_words format;
	bool json, quiet;
	struct vp_texts command;
	vp_vms vms;
	VP_VEC(char *) names;
	int status; /* of COMMAND */
};

enum { STEP_MS = 200 };

/* Splits at commas, except between the slashes of PMU/TERM,TERM/. */
static void split_events(struct lend *lend)
{
	const char *begin = lend->events;
	bool in_slashes = false;

	for (const char *c = begin;; c++) {
		in_slashes ^= *c == '/';
		if (*c && (*c != ',' || in_slashes))
			continue;
		vp_vec_push(&lend->names, vp_strndup(begin, (size_t)(c - begin)));
		begin = c + 1;
		if (!*c)
			return;
	}
}

static struct vp_error *cmd_lend_find_vm(const struct lend *lend, const struct vp_vm **ret)
{
	VP_TRY(vp_vms_expect(&lend->vms, &lend->vm, 1));
	vp_vec_each (&lend->vms, vm) {
		if (!vp_vm_is_named(vm, &lend->vm, 1))
			continue;
		if (*ret)
			return vp_error_new(
			    "several VMs are named '%s': name one by the pid of its VMM", lend->vm);
		*ret = vm;
	}
	return NULL;
}

static void put_totals(const struct lend *lend, const struct vp_lender *lender,
		       struct vp_buffer *out)
{
	struct vp_lender_totals totals = vp_lender_totals(lender);

	if (!lend->json) {
		vp_buffer_printf(out,
				 "published at %" PRIu64 " VM entries; skipped: %" PRIu64
				 " without a client, %" PRIu64
				 " with a failed counter read, %" PRIu64
				 " with the guest page not mapped\n",
				 totals.published, totals.idle, totals.unread, totals.unwritten);
		return;
	}
	struct vp_json json = vp_json_to(out);
	vp_json_answer(&json);
	vp_json_count(&json, "vcpus", vp_lender_vcpus(lender));
	vp_json_count(&json, "published", totals.published);
	vp_json_count(&json, "without_client", totals.idle);
	vp_json_count(&json, "unread", totals.unread);
	vp_json_count(&json, "unwritten", totals.unwritten);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

/* Runs until COMMAND, the VM or the agent ends, or a signal arrives. */
static struct vp_error *cmd_lend_serve(struct lend *lend, const struct vp_vm *vm,
				       struct vp_lender *lender, struct vp_command *command)
{
	bool lends = false, said = false;

	while (!vp_command_stop_wanted() &&
	       !(command->pid && said && vp_command_ended(command, &lend->status))) {
		VP_TRY(vp_lender_step(lender, STEP_MS, &lends));
		if (vp_vm_has_exited(vm))
			return vp_error_new("VM '%s' has ended", vm->name);
		if (!lends || said)
			continue;
		said = true;
		VP_TRY(vp_command_go(command));
		if (!lend->quiet) {
			VP_AUTO_FREE char *text = vp_format(
			    "%s: lent to '%s', %zu vCPU%s", lend->events, vm->name,
			    vp_lender_vcpus(lender), vp_lender_vcpus(lender) == 1 ? "" : "s");
			vp_verb_say("lend", text);
		}
	}
	return NULL;
}

static struct vp_error *lend_to(struct lend *lend, const struct vp_vm *vm)
{
	struct vp_lender *lender = NULL;
	struct vp_command command = {0};
	struct vp_buffer out = {0};

	vp_command_catch_signals();
	if (lend->command.count)
		VP_TRY(vp_command_prepare(&lend->command, &command));
	struct vp_error *error = vp_lender_open(vm, (const char *const *)lend->names.at,
						lend->names.count, (unsigned)lend->port, &lender);
	if (!error)
		error = cmd_lend_serve(lend, vm, lender, &command);
	if (command.pid)
		kill(command.pid, SIGTERM);
	if (lender)
		put_totals(lend, lender, &out);
	vp_lender_free(lender);
	struct vp_error *print_error = vp_verb_print(&out);
	vp_buffer_deinit(&out);
	if (!error)
		return print_error;
	vp_error_free(print_error);
	return error;
}

static struct vp_error *lend_with(void *context)
{
	struct lend *lend = context;
	const struct vp_vm *vm = NULL;
	const char *format;

	VP_TRY(vp_choose_text_or_json(&lend->format, &format));
	lend->json = !strcmp(format, "json");
	if (!lend->vm || !lend->events)
		return vp_error_usage("expected --vm NAME and --events LIST");
	if (lend->port >= UINT32_MAX)
		return vp_error_usage("option --agent-port: expected at most %u", UINT32_MAX - 1);
	if (geteuid() != 0)
		return vp_error_new("lending counters requires root (try sudo)");
	split_events(lend);
	VP_TRY(vp_vm_scan(&lend->vms, true));
	VP_TRY(cmd_lend_find_vm(lend, &vm));
	return lend_to(lend, vm);
}

static int run_lend(int argc, char **argv)
{
	struct lend lend = {.port = VP_AGENT_PORT};
	const struct vp_option options[] = {
	    {0, "vm", VP_OPTION_TEXT, &lend.vm, "NAME",
	     "the VM to lend to (name, or pid of its VMM)"},
	    {'e', "events", VP_OPTION_TEXT, &lend.events, "LIST",
	     "perf events to make available, up to 8, separated by commas"},
	    {0, "agent-port", VP_OPTION_COUNT, &lend.port, "PORT",
	     "vsock port of the guest's agent (default: 733)"},
	    {0, "format", VP_OPTION_TEXT, &lend.format.format, "FORMAT",
	     "of the summary: text or json (default: text)"},
	    {0, "json", VP_OPTION_FLAG, &lend.format.json, NULL, "same as --format json"},
	    {'q', "quiet", VP_OPTION_FLAG, &lend.quiet, NULL, "do not print when lending starts"},
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &lend.command,
				 lend_with, &lend);

	vp_vec_each (&lend.names, name)
		free(*name);
	vp_vec_deinit(&lend.names);
	vp_vms_deinit(&lend.vms);
	return status ? status : lend.status != 0 && !vp_command_stop_wanted();
}

static const struct vp_verb verb = {
    .name = "lend",
    .usage = "--vm NAME -e LIST [OPTION]... [-- COMMAND]",
    .summary = "make host counters available to programs in a guest",
    .takes_command = true,
    .run = run_lend,
};
