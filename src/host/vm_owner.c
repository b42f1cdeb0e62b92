/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/vm_owner.h"

#include <ctype.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/confine.h"
#include "base/error.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/seed.h"
#include "base/text.h"
#include "base/worker_process.h"
#include "host/domain_file.h"

enum { MAX_FILES = 4, PATIENCE_MS = 2000, PIECE = 65536 };

/* Files that may describe the VM; the first one that exists is read. */
struct candidates {
	struct {
		char *root, *path; /* path below the root: symbolic links do not leave it */
		bool is_xml;
	} at[MAX_FILES];
	size_t count;
};

static void add_candidate(struct candidates *all, char *root, char *path, bool is_xml)
{
	all->at[all->count].root = root;
	all->at[all->count].path = path;
	all->at[all->count++].is_xml = is_xml;
}

static void free_candidates(struct candidates *all)
{
	for (size_t i = 0; i < all->count; i++) {
		free(all->at[i].root);
		free(all->at[i].path);
	}
}

static bool has(const struct vp_vm *vm, const char *part)
{
	return vm->cgroup && strstr(vm->cgroup, part);
}

/* A domain's name is a file name there. */
static bool is_file_name(const char *name)
{
	return name && name[0] && name[0] != '.' && !strchr(name, '/');
}

static struct candidates candidates_of(const char *root, const char *proc, const struct vp_vm *vm)
{
	struct candidates all = {0};
	const char *slice = vm->cgroup ? strstr(vm->cgroup, "/qemu.slice/") : NULL;

	if (slice && isdigit((unsigned char)slice[12])) {
		add_candidate(
		    &all, vp_format("%s/", root),
		    vp_format("etc/pve/qemu-server/%lu.conf", strtoul(slice + 12, NULL, 10)),
		    false);
	} else if (is_file_name(vm->name) && has(vm, "/kubepods")) {
		/* The directories of virt-launcher's libvirt, as a user and as root. */
		add_candidate(&all, vp_format("%s/%u/root", proc, vm->pid),
			      vp_format("run/libvirt/qemu/run/%s.xml", vm->name), true);
		add_candidate(&all, vp_format("%s/%u/root", proc, vm->pid),
			      vp_format("run/libvirt/qemu/%s.xml", vm->name), true);
	} else if (is_file_name(vm->name) && (has(vm, "libvirt") || has(vm, "machine-qemu"))) {
		add_candidate(&all, vp_format("%s/", root),
			      vp_format("run/libvirt/qemu/%s.xml", vm->name), true);
		add_candidate(&all, vp_format("%s/", root),
			      vp_format("etc/libvirt/qemu/%s.xml", vm->name), true);
	}
	return all;
}

/* -1: there is no such regular file. */
static int open_below(const char *root, const char *path)
{
	const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
				     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	VP_AUTO_CLOSE int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat status;

	if (folder < 0)
		return -1;
	int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
	if (fd >= 0 && !fstat(fd, &status) && S_ISREG(status.st_mode) &&
	    status.st_size <= VP_DOMAIN_FILE_MOST)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* In the confined process. */
static void parse_file(int fd, bool is_xml, unsigned long salt, struct vp_domain_file *ret)
{
	struct vp_buffer text = {0};
	char piece[PIECE];
	ssize_t got;

	while ((got = vp_read(fd, piece, sizeof(piece))) > 0 && text.size <= VP_DOMAIN_FILE_MOST)
		vp_buffer_append(&text, piece, (size_t)got);
	if (is_xml)
		vp_domain_xml_parse(text.bytes, text.size, salt, ret);
	else
		vp_proxmox_conf_parse(text.bytes, text.size, ret);
	vp_buffer_deinit(&text);
}

static void owner_work(void *context, int channel)
{
	const struct candidates *all = context;
	struct vp_domain_file found = {0};
	unsigned long salt = (unsigned long)vp_seed_new() | 1;
	int fds[] = {channel, -1};
	bool is_xml = false;

	for (size_t i = 0; fds[1] < 0 && i < all->count; i++) {
		fds[1] = open_below(all->at[i].root, all->at[i].path);
		is_xml = all->at[i].is_xml;
	}
	if (fds[1] < 0)
		return;
	VP_AUTO_ERROR struct vp_error *error = vp_confine(fds, VP_ARRAY_SIZE(fds), 0, 0);
	if (error)
		return;
	parse_file(fds[1], is_xml, salt, &found);
	(void)!vp_write(fds[0], &found, sizeof(found));
}

/* False: there is no file, or it is unreadable, or reading takes too long. */
static bool read_confined(struct candidates *all, struct vp_domain_file *ret)
{
	struct vp_worker_process worker;
	VP_AUTO_ERROR struct vp_error *error =
	    vp_worker_process_start(SOCK_SEQPACKET, owner_work, all, &worker);

	if (error)
		return false;
	struct pollfd ready = {.fd = worker.channel, .events = POLLIN};
	bool ok = vp_poll(&ready, 1, PATIENCE_MS) > 0 &&
		  vp_read(worker.channel, ret, sizeof(*ret)) == sizeof(*ret);
	vp_worker_process_end(&worker);
	char *const texts[] = {ret->uuid, ret->id, ret->title, ret->project, ret->tenant};
	for (size_t i = 0; ok && i < VP_ARRAY_SIZE(texts); i++)
		texts[i][VP_DOMAIN_TEXT - 1] = 0;
	return ok;
}

static void vm_owner_set(char **field, const char *text)
{
	if (!text[0])
		return;
	free(*field);
	*field = vp_text_cleaned(text);
}

void vp_vm_owner_read(const char *root, const char *proc, struct vp_vm *vm)
{
	struct candidates all = candidates_of(root, proc, vm);
	struct vp_domain_file found;

	if (all.count && read_confined(&all, &found) &&
	    (!vm->uuid || !vm->uuid[0] || !strcasecmp(vm->uuid, found.uuid))) {
		vm_owner_set(&vm->uuid, found.id[0] ? found.id : found.uuid);
		vm_owner_set(&vm->title, found.title);
		vm_owner_set(&vm->project, found.project);
		vm_owner_set(&vm->tenant, found.tenant);
	}
	free_candidates(&all);
}
