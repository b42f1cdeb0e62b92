/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf guests: the guests' kernels and processes, read from the host. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "cmd/common/choice.h"
#include "cmd/common/options.h"
#include "cmd/common/terminal.h"
#include "cmd/common/verb.h"
#include "cmd/host/guests_table.h"
#include "collect/guests/guest_access.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_reader.h"
#include "collect/guests/guest_state.h"
#include "collect/guests/kernel_addresses.h"
#include "collect/guests/pack_cache.h"
#include "collect/programs/hypervisor.h"
#include "schema/vm.h"
#include "session/hypervisor_choice.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_guests(void)
{
	return &verb;
}

enum { ANSWER_MS = 60000 };

struct guests {
	struct vp_texts vms, operands;
	const char *format;
	const struct vp_guest_access *access;
	bool scan, json, csv, no_cache;
	size_t unread; /* VMs that could not be read */
};

static struct vp_error *cmd_guests_ask(struct vp_guest_reader *reader, const char *request,
				       struct vp_slice *answer)
{
	bool done;

	VP_TRY(vp_guest_reader_request(reader, "%s", request));
	VP_TRY(vp_guest_reader_wait(reader, ANSWER_MS, &done, answer));
	return done ? NULL : vp_error_new("reading guest memory timed out");
}

/* Repeats the scan until the kernel is found, or the time limit is reached. */
static struct vp_error *cmd_guests_find(const struct guests *guests, struct vp_guest_reader *reader,
					const char *folder, struct vp_guest_answer *ret)
{
	uint64_t end = vp_clock_monotonic() + ANSWER_MS * 1000000ULL;
	uint64_t known_gpa = guests->no_cache ? 0 : vp_kernel_address_recall(folder, ret->vm->name);
	VP_AUTO_FREE char *where =
	    known_gpa ? vp_format(" banner %" PRIx64, known_gpa) : vp_strdup("");
	VP_AUTO_FREE char *request = vp_format("find%s%s", guests->scan ? " scan" : "", where);
	struct vp_guest_finding *finding = &ret->finding;
	struct vp_slice answer;

	do {
		vp_guest_finding_deinit(finding);
		VP_TRY(cmd_guests_ask(reader, request, &answer));
		VP_TRY(vp_guest_finding_parse(answer, finding));
	} while (finding->searching && vp_clock_monotonic() < end);
	if (finding->searching)
		return vp_error_new("the kernel was not found in %d s: %" PRIu64 " of %" PRIu64
				    " MiB of the guest's memory were searched",
				    ANSWER_MS / 1000, finding->searched >> 20,
				    finding->to_search >> 20);
	if (finding->scanned && finding->banner_gpa && !guests->no_cache)
		vp_error_free(vp_kernel_address_store(folder, ret->vm->name, finding->banner_gpa));
	return NULL;
}

static struct vp_error *cmd_guests_look(const struct guests *guests, struct vp_guest_reader *reader,
					const char *folder, struct vp_guest_answer *ret)
{
	struct vp_slice answer;
	bool damaged;

	VP_TRY(cmd_guests_find(guests, reader, folder, ret));
	if (ret->finding.lacks)
		return vp_error_new("the guest's tasks cannot be listed: its kernel lacks %s",
				    ret->finding.lacks);
	VP_TRY(cmd_guests_ask(reader, "tasks", &answer));
	VP_TRY(vp_guest_processes_parse(answer, &ret->processes, &damaged));
	return damaged ? vp_error_new("the task list could only be read in part") : NULL;
}

static struct vp_error *inspect_guest(const struct guests *guests, void *lister, const char *folder,
				      const vp_pack_texts *packs, struct vp_guest_answer *ret)
{
	const struct vp_guest_access *access = guests->access;
	struct vp_guest_state state = {0};
	struct vp_guest_reader *reader = NULL;

	struct vp_error *error = access->list(lister, ret->vm->pid, &state);
	if (!error)
		error =
		    vp_guest_reader_start(access, &state, packs->at, packs->count, -1, 0, &reader);
	if (!error)
		error = access->expect_same(&state);
	if (!error)
		error = cmd_guests_look(guests, reader, folder, ret);
	vp_guest_reader_free(reader);
	vp_guest_state_deinit(&state);
	return error;
}

/* Replaces control characters of guest text. */
static void cmd_guests_clean(char **text)
{
	char *before = *text;

	if (before)
		*text = vp_text_cleaned(before);
	free(before);
}

static void finish_answer(const struct guests *guests, const char *folder,
			  struct vp_guest_answer *answer, struct vp_error *error)
{
	if (!error && answer->finding.pack && !answer->finding.cached && !guests->no_cache)
		error =
		    vp_pack_cache_store(folder, &answer->finding.build_id, answer->finding.pack);
	answer->problem = error ? vp_strdup(vp_error_message(error)) : NULL;
	vp_error_free(error);
	cmd_guests_clean(&answer->problem);
	cmd_guests_clean(&answer->finding.banner);
	cmd_guests_clean(&answer->finding.dropped);
	vp_vec_each (&answer->processes, process)
		cmd_guests_clean(&process->comm);
}

static bool cmd_guests_is_wanted(const struct guests *guests, const struct vp_vm *vm)
{
	for (size_t i = 0; i < guests->vms.count; i++)
		if (!strcmp(guests->vms.at[i], vm->name))
			return true;
	return !guests->vms.count;
}

static struct vp_error *check_names(const struct guests *guests, const vp_vms *vms)
{
	for (size_t i = 0; i < guests->vms.count; i++) {
		bool found = false;
		vp_vec_each (vms, vm)
			found |= !strcmp(vm->name, guests->vms.at[i]);
		if (!found)
			return vp_error_new("no VM named '%s' is running", guests->vms.at[i]);
	}
	return vms->count ? NULL : vp_error_new("no VM is running");
}

/* Reads all selected VMs. */
static struct vp_error *cmd_guests_look_at_all(struct guests *guests, const vp_vms *vms,
					       vp_guest_answers *answers)
{
	VP_AUTO_FREE char *folder = vp_pack_cache_folder();
	void *lister = NULL;
	vp_pack_texts packs = {0};

	VP_TRY(check_names(guests, vms));
	VP_TRY(guests->access->open(&lister));
	if (!guests->no_cache)
		vp_pack_cache_load(folder, &packs);
	vp_vec_each (vms, vm) {
		struct vp_guest_answer answer = {.vm = vm};
		if (!cmd_guests_is_wanted(guests, vm) || vp_vm_is_host(vm))
			continue;
		finish_answer(guests, folder, &answer,
			      inspect_guest(guests, lister, folder, &packs, &answer));
		guests->unread += answer.problem != NULL;
		vp_vec_push(answers, answer);
	}
	vp_pack_texts_deinit(&packs);
	guests->access->close(lister);
	return NULL;
}

static struct vp_error *choose_guests_format(struct guests *guests)
{
	const struct vp_format_words words = {guests->format, guests->json, guests->csv};
	const char *format;

	VP_TRY(vp_choose_table_format(&words, &format));
	guests->json = !strcmp(format, "json");
	guests->csv = !strcmp(format, "csv");
	return NULL;
}

static struct vp_error *guests_with(void *context)
{
	struct guests *guests = context;
	struct vp_buffer out = {0};
	vp_guest_answers answers = {0};
	vp_vms vms = {0};

	if (guests->operands.count)
		return vp_error_usage("unexpected argument '%s'", guests->operands.at[0]);
	VP_TRY(choose_guests_format(guests));
	if (geteuid() != 0)
		return vp_error_new("reading guest memory requires root (try sudo)");
	const struct vp_hypervisor *hypervisor = vp_hypervisor_here();
	guests->access = hypervisor->guest_access();
	struct vp_error *error = hypervisor->scan(&vms, true);
	if (!error)
		error = cmd_guests_look_at_all(guests, &vms, &answers);
	vp_vec_each (&vms, vm)
		cmd_guests_clean(&vm->name);
	if (!error) {
		if (guests->json)
			vp_render_guests_json(&answers, &out);
		else if (guests->csv)
			vp_render_guests_csv(&answers, &out);
		else
			vp_render_guests_text(&answers, vp_terminal_width(), &out);
		error = guests->json || guests->csv ? vp_verb_print(&out)
						    : vp_verb_print_text(&out, true);
	}
	vp_vec_each (&answers, answer) {
		vp_guest_finding_deinit(&answer->finding);
		vp_guest_processes_deinit(&answer->processes);
		free(answer->problem);
	}
	vp_vec_deinit(&answers);
	vp_buffer_deinit(&out);
	vp_vms_deinit(&vms);
	return error;
}

static int run_guests(int argc, char **argv)
{
	struct guests guests = {0};
	const struct vp_option options[] = {
	    {0, "vm", VP_OPTION_TEXTS, &guests.vms, "NAME",
	     "only this VM; can be repeated (default: all VMs)"},
	    {0, "format", VP_OPTION_TEXT, &guests.format, "FORMAT",
	     "text, json or csv (default: text)"},
	    {0, "json", VP_OPTION_FLAG, &guests.json, NULL, "same as --format json"},
	    {0, "csv", VP_OPTION_FLAG, &guests.csv, NULL, "same as --format csv"},
	    {0, "scan", VP_OPTION_FLAG, &guests.scan, NULL,
	     "find kernels by memory scan, without vCPU registers (always so on Intel)"},
	    {0, "no-cache", VP_OPTION_FLAG, &guests.no_cache, NULL,
	     "do not use the kernel pack cache"},
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &guests.operands, guests_with, &guests);

	vp_vec_deinit(&guests.vms);
	return status ? status : guests.unread != 0;
}

static const struct vp_verb verb = {
    .name = "guests",
    .usage = "[--vm NAME]... [--format FORMAT]",
    .summary = "list guest kernels and processes, read from guest memory",
    .run = run_guests,
};
