/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/vcpu_numbers.h"

#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/macros.h"
#include "base/vec.h"

enum { NAME_MAX_BYTES = 256 };

struct numbered {
	uint32_t number, tid; /* 0: unknown thread */
	bool is_guessed;      /* the pair of number and thread is a guess */
};
typedef VP_VEC(struct numbered) numbers;

static int vcpu_numbers_compare(const void *one, const void *other)
{
	const struct numbered *a = one, *b = other;

	return a->number < b->number ? -1 : a->number > b->number;
}

static void sort(const numbers *list)
{
	if (list->count)
		qsort(list->at, list->count, sizeof(*list->at), vcpu_numbers_compare);
}

/* Reads a file of one line: false if it is missing. */
static bool vcpu_numbers_read_line(const char *folder, const char *name, const char *file,
				   struct vp_buffer *text)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s/%s", folder, name, file);
	struct vp_error *error = vp_file_read(path, NAME_MAX_BYTES, text);
	bool read = !error;

	vp_error_free(error);
	return read;
}

/* debugfs names the VM's folder after the process and the file descriptor that created the VM. */
static char *vcpu_numbers_find_folder(const char *debugfs, bool alone, const struct vp_vm *vm)
{
	VP_AUTO_FREE char *own = vp_format("%s/%u-%u", debugfs, vm->pid, vm->fd);
	VP_AUTO_FREE char *any = vp_format("%s/%u-*", debugfs, vm->pid);
	char *found = NULL;
	glob_t paths;

	if (!glob(own, 0, NULL, &paths)) {
		globfree(&paths);
		return VP_TAKE(own);
	}
	/* Some VMMs duplicate the descriptor. */
	if (!alone || glob(any, 0, NULL, &paths))
		return NULL;
	if (paths.gl_pathc == 1)
		found = vp_strdup(paths.gl_pathv[0]);
	globfree(&paths);
	return found;
}

/* vcpu0, vcpu1, vcpu4 …, with the file `pid` since v6.1, e36de87d34a7 "KVM: debugfs: expose pid of
 * vcpu threads". */
static void read_kvms(const char *folder, numbers *ret)
{
	DIR *directory = opendir(folder);

	if (!directory)
		return;
	for (struct dirent *entry; (entry = readdir(directory));) {
		struct vp_buffer text = {0};
		struct numbered vcpu = {0};
		int end = 0;
		if (sscanf(entry->d_name, "vcpu%u%n", &vcpu.number, &end) != 1 ||
		    entry->d_name[end])
			continue;
		vcpu.tid = vcpu_numbers_read_line(folder, entry->d_name, "pid", &text)
			       ? (uint32_t)strtoul(vp_buffer_text(&text), NULL, 10)
			       : 0;
		vp_vec_push(ret, vcpu);
		vp_buffer_deinit(&text);
	}
	closedir(directory);
	sort(ret);
}

/* Thread names of QEMU with debug-threads=on: "CPU 3/KVM". */
static void read_named(const char *proc, uint32_t pid, numbers *ret)
{
	VP_AUTO_FREE char *path = vp_format("%s/%u/task", proc, pid);
	DIR *directory = opendir(path);

	if (!directory)
		return;
	for (struct dirent *entry; (entry = readdir(directory));) {
		struct vp_buffer text = {0};
		struct numbered vcpu = {.tid = (uint32_t)strtoul(entry->d_name, NULL, 10),
					.is_guessed = true};
		int end = 0;
		if (vcpu.tid && vcpu_numbers_read_line(path, entry->d_name, "comm", &text) &&
		    sscanf(vp_buffer_text(&text), "CPU %u/KVM%n", &vcpu.number, &end) == 1 && end)
			vp_vec_push(ret, vcpu);
		vp_buffer_deinit(&text);
	}
	closedir(directory);
	sort(ret);
}

static bool has_threads(const numbers *list)
{
	vp_vec_each (list, vcpu)
		if (vcpu->tid)
			return true;
	return false;
}

/* Matches KVM's ids with QEMU's numbers: both ascend. Without KVM's ids, uses QEMU's. */
static void take_named(const char *proc, uint32_t pid, numbers *kvms)
{
	numbers named = {0};

	read_named(proc, pid, &named);
	for (size_t i = 0; i < named.count && named.count == kvms->count; i++) {
		kvms->at[i].tid = named.at[i].tid;
		kvms->at[i].is_guessed = true;
	}
	if (kvms->count) {
		vp_vec_deinit(&named);
		return;
	}
	vp_vec_deinit(kvms);
	*kvms = named;
}

void vp_vcpu_numbers_read(const char *proc, const char *debugfs, bool alone, struct vp_vm *vm)
{
	VP_AUTO_FREE char *folder = vcpu_numbers_find_folder(debugfs, alone, vm);
	numbers found = {0};

	if (folder)
		read_kvms(folder, &found);
	if (alone && !has_threads(&found))
		take_named(proc, vm->pid, &found);
	vp_vec_each (&found, vcpu) {
		if (!vcpu->tid)
			continue;
		struct vp_vcpu *known = vp_vm_vcpu(vm, vcpu->number);
		known->tid = vcpu->tid;
		known->is_guessed = vcpu->is_guessed;
	}
	vp_vec_deinit(&found);
}
