/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lying-guest VM LIE... -- COMMAND...: makes a running guest's kernel lie about itself, by writing
 * into its memory from the host, while COMMAND runs; then the truth is back. A lie is KIND or
 * KIND:PROCESS; with '~' before it, it is told for every other quarter of a second only. The exit
 * status is the command's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/alloc.h"
#include "collect/guests/guest_state.h"
#include "host/vm_scan.h"
#include "lies.h"

enum { BLINK_MS = 250 };

struct liar {
	int memory; /* the VMM's */
	struct vp_guest_kernel kernel;
	lie_list lies;
};

/* Writes into the VMM's memory what is to be at the guest's address. */
static struct vp_error *put(const struct liar *liar, const struct lie *lie, const char *bytes)
{
	const struct vp_guest_view *view = &liar->kernel.view;

	for (size_t at = 0, piece; at < lie->size; at += piece) {
		struct vp_guest_page page;
		uint64_t hva = 0;
		if (!vp_guest_view_translate(view, lie->va + at, &page))
			return vp_error_new("0x%llx is not mapped in the guest",
					    (unsigned long long)lie->va);
		piece = lie->size - at < page.left ? lie->size - at : (size_t)page.left;
		vp_vec_each (&view->memory->slots, slot)
			if (page.gpa - slot->gpa < slot->size)
				hva = slot->hva + (page.gpa - slot->gpa);
		if (pwrite(liar->memory, bytes + at, piece, (off_t)hva) != (ssize_t)piece)
			return vp_error_errno(errno, "cannot write into the VMM's memory");
	}
	return NULL;
}

/* Tells the lies that blink, or all; or the truth. */
static struct vp_error *tell(const struct liar *liar, bool lie, bool all)
{
	vp_vec_each (&liar->lies, one)
		if (all || one->blinks)
			VP_TRY(put(liar, one, lie ? one->lie : one->truth));
	return NULL;
}

static struct vp_error *find_vm(const char *name, uint32_t *pid)
{
	vp_vms vms = {0};

	VP_TRY(vp_vm_scan(&vms, true));
	*pid = 0;
	vp_vec_each (&vms, vm)
		if (!strcmp(vm->name, name))
			*pid = vm->pid;
	vp_vms_deinit(&vms);
	return *pid ? NULL : vp_error_new("no VM named '%s' is running", name);
}

static struct vp_error *make_lies(struct liar *liar, char **words, int count)
{
	for (int i = 0; i < count; i++) {
		bool blinks = words[i][0] == '~';
		size_t before = liar->lies.count;
		VP_AUTO_FREE char *kind = vp_strdup(words[i] + blinks);
		char *colon = strchr(kind, ':');
		if (colon)
			*colon = 0;
		VP_TRY(lies_make(&liar->kernel, kind, colon ? colon + 1 : NULL, &liar->lies));
		for (size_t lie = before; lie < liar->lies.count; lie++)
			liar->lies.at[lie].blinks = blinks;
	}
	return NULL;
}

/* Runs the command while lies are told; *status is its exit status. */
static struct vp_error *lie_during(const struct liar *liar, char **command, int *status)
{
	const struct timespec moment = {.tv_nsec = BLINK_MS * 1000000L};
	bool lying = true;
	int ended = 0;

	VP_TRY(tell(liar, true, true));
	fprintf(stderr, "%zu lies are told\n", liar->lies.count);
	pid_t child = fork();
	if (child == 0) {
		execvp(command[0], command);
		_exit(127);
	}
	while (child > 0 && waitpid(child, &ended, WNOHANG) == 0) {
		nanosleep(&moment, NULL);
		lying = !lying;
		VP_TRY(tell(liar, lying, false));
	}
	*status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
	VP_TRY(tell(liar, false, true));
	return child > 0 ? NULL : vp_error_new("cannot start a process");
}

static struct vp_error *run(const char *vm, char **words, int count, int *status)
{
	static const vp_kernel_packs none;
	struct vp_guest_lister *lister;
	vp_guest_states states = {0};
	struct liar liar = {0};
	uint32_t pid;

	VP_TRY(find_vm(vm, &pid));
	VP_TRY(vp_guest_lister_new(&lister));
	VP_TRY(vp_guest_lister_read_one(lister, pid, &states));
	if (!states.count)
		return vp_error_new("KVM's memory slots are not to be had");
	VP_AUTO_FREE char *path = vp_format("/proc/%u/mem", pid);
	liar.memory = open(path, O_RDWR | O_CLOEXEC);
	if (liar.memory < 0)
		return vp_error_errno(errno, "cannot open '%s'", path);
	struct vp_guest_memory *memory = &states.at[0].memory;
	const struct vp_guest_files files = {.memory = liar.memory, .pagemap = -1};
	vp_guest_memory_by_files(memory, &files);
	VP_TRY(vp_guest_kernel_find(memory, states.at[0].vcpus.at, states.at[0].vcpus.count, &none,
				    1, &liar.kernel));
	VP_TRY(make_lies(&liar, words, count));
	return lie_during(&liar, words + count + 1, status);
}

int main(int argc, char **argv)
{
	int dashes = 1, status = 0;

	while (dashes < argc && strcmp(argv[dashes], "--") != 0)
		dashes++;
	if (dashes < 3 || dashes + 1 >= argc) {
		struct vp_buffer kinds = {0};
		lies_list(&kinds);
		fprintf(stderr, "usage: lying-guest VM [~]LIE... -- COMMAND...\nlies:\n%s",
			vp_buffer_text(&kinds));
		return 2;
	}
	struct vp_error *error = run(argv[1], argv + 2, dashes - 2, &status);
	if (!error)
		return status;
	fprintf(stderr, "lying-guest: %s\n", vp_error_message(error));
	return vp_error_kind(error);
}
