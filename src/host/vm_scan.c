/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/vm_scan.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/pcpus.h"
#include "base/vec.h"
#include "host/vcpu_numbers.h"
#include "host/vm_owner.h"
#include "host/vmm_command.h"
#include "host/vsock_path.h"
#include "maps/proc.h"

#define DEBUGFS "/sys/kernel/debug/kvm"

enum { CMDLINE_MAX = 4 * 1024 * 1024, PCPUS_MAX = 8192 };

typedef VP_VEC(uint32_t) descriptors;

/* Whether the descriptors refer to the same VM: some VMMs duplicate theirs. On kernels without
 * kcmp(2), a process is assumed to have one VM. */
static bool are_of_one_vm(uint32_t pid, uint32_t one, uint32_t other)
{
	return syscall(SYS_kcmp, (pid_t)pid, (pid_t)pid, KCMP_FILE, (unsigned long)one,
		       (unsigned long)other) <= 0;
}

static void add_descriptor(descriptors *found, uint32_t pid, uint32_t fd)
{
	vp_vec_each (found, other)
		if (are_of_one_vm(pid, *other, fd))
			return;
	vp_vec_push(found, fd);
}

/* Whether a descriptor is a VM, from its link. */
static bool is_vm(int folder, const char *link)
{
	char target[64];
	ssize_t size = readlinkat(folder, link, target, sizeof(target) - 1);

	if (size <= 0)
		return false;
	target[size] = 0;
	return !strcmp(target, "anon_inode:kvm-vm");
}

/* The process's file descriptors of KVM VMs, one per VM. */
static descriptors open_vms(uint32_t pid)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%u/fd", pid);
	DIR *directory = opendir(path);
	descriptors found = {0};

	if (!directory)
		return found;
	for (struct dirent *entry; (entry = readdir(directory));)
		if (is_vm(dirfd(directory), entry->d_name))
			add_descriptor(&found, pid, (uint32_t)strtoul(entry->d_name, NULL, 10));
	closedir(directory);
	return found;
}

static void read_command_line(struct vp_vm *vm)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%u/cmdline", vm->pid);
	struct vp_buffer text = {0};

	vp_error_free(vp_file_read(path, CMDLINE_MAX, &text));
	struct vp_vmm_command command = vp_vmm_command_read(text.bytes, text.size);
	vm->name = command.name ? VP_TAKE(command.name) : vp_format("vm-%u", vm->pid);
	if (command.uuid) {
		free(vm->uuid);
		vm->uuid = VP_TAKE(command.uuid);
	}
	vm->cid = command.cid;
	if (!vm->cid)
		vm->vsock = vp_vsock_path_find("/proc", vm->pid, &command);
	vp_vmm_command_deinit(&command);
	vp_buffer_deinit(&text);
}

/* Reads a number from the first file that matches the pattern; `only`: there must be no other
 * match. */
static bool read_number_of(const char *pattern, bool only, int64_t *ret)
{
	struct vp_buffer text = {0};
	bool found = false;
	glob_t paths;

	if (!glob(pattern, 0, NULL, &paths)) {
		struct vp_error *error = only && paths.gl_pathc > 1
					     ? vp_error_new("of several VMs")
					     : vp_file_read(paths.gl_pathv[0], 256, &text);
		found = !error;
		if (found)
			*ret = vp_buffer_text(&text)[0] == '-'
				   ? strtoll(text.bytes, NULL, 0)
				   : (int64_t)strtoull(text.bytes, NULL, 0);
		vp_error_free(error);
		globfree(&paths);
	}
	vp_buffer_deinit(&text);
	return found;
}

/* Reads a number from the vCPU's file in KVM's debugfs; false if it is missing. debugfs names
 * the VM's folder after the process and the file descriptor that created the VM. */
static bool read_debug_number(const struct vp_vm *vm, uint32_t vcpu, const char *file, int64_t *ret)
{
	VP_AUTO_FREE char *own = vp_format(DEBUGFS "/%u-%u/vcpu%u/%s", vm->pid, vm->fd, vcpu, file);
	VP_AUTO_FREE char *any = vp_format(DEBUGFS "/%u-*/vcpu%u/%s", vm->pid, vcpu, file);

	return read_number_of(own, false, ret) || read_number_of(any, true, ret);
}

/* The path of the unified hierarchy (0::/…); with cgroup v1, that of the cpu controller. */
static char *read_cgroup(uint32_t pid)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%u/cgroup", pid);
	struct vp_buffer text = {0};
	char *ret = NULL, *rest = NULL;

	vp_error_free(vp_file_read(path, CMDLINE_MAX, &text));
	VP_AUTO_FREE char *lines = vp_strdup(vp_buffer_text(&text));
	for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *controllers = strchr(line, ':');
		char *colon = controllers ? strchr(controllers + 1, ':') : NULL;
		bool unified = colon == controllers + 1;
		if (!colon ||
		    (!unified && !strstr(controllers, "cpu,") && !strstr(controllers, ":cpu:")))
			continue;
		/* The unified hierarchy may have no controllers. */
		if (!ret || (unified && colon[1] && colon[2])) {
			free(ret);
			ret = vp_strdup(colon + 1);
		}
	}
	vp_buffer_deinit(&text);
	return ret;
}

static char *vm_scan_list_of(const cpu_set_t *set, size_t size)
{
	struct vp_pcpus pcpus = {0};

	for (size_t cpu = 0; cpu < 8 * size; cpu++)
		if (CPU_ISSET_S(cpu, size, set))
			vp_vec_push(&pcpus, (int)cpu);
	char *list = vp_pcpus_format(&pcpus);
	vp_vec_deinit(&pcpus);
	return list;
}

static void vm_scan_read_pcpus(struct vp_vm *vm)
{
	size_t size = CPU_ALLOC_SIZE(PCPUS_MAX);
	cpu_set_t *set = vp_alloc(size);

	vp_vec_each (&vm->vcpus, vcpu) {
		if (!vcpu->tid || sched_getaffinity((pid_t)vcpu->tid, size, set))
			continue;
		free(vcpu->pcpus);
		vcpu->pcpus = vm_scan_list_of(set, size);
	}
	free(set);
}

void vp_vm_read_vcpus(struct vp_vm *vm)
{
	descriptors found = open_vms(vm->pid);

	vp_vcpu_numbers_read("/proc", DEBUGFS, found.count == 1, vm);
	vp_vec_deinit(&found);
}

static void vm_scan_add_vm(vp_vms *vms, uint32_t pid, uint32_t fd, bool alone, bool at_start)
{
	uint32_t nth = 0;

	vp_vec_each (vms, other)
		nth += other->pid == pid;
	struct vp_vm *vm = vp_vec_push_slot(vms);
	*vm = (struct vp_vm){.pid = pid,
			     .nth = nth,
			     .started = vp_proc_start_time(pid),
			     .fd = fd,
			     .start = vp_clock_monotonic(),
			     .at_start = at_start,
			     .uuid = vp_strdup(""),
			     .agent = vp_strdup(""),
			     .memory = vp_strdup("")};
	read_command_line(vm);
	vm->cgroup = read_cgroup(pid);
	vp_vm_owner_read("", "/proc", vm);
	vp_vcpu_numbers_read("/proc", DEBUGFS, alone, vm);
	vp_vm_read_tsc(vm);
	vm_scan_read_pcpus(vm);
}

/* Whether it is known and has not ended. */
static bool vm_scan_is_known(const vp_vms *vms, uint32_t pid, uint32_t fd)
{
	vp_vec_each (vms, vm)
		if (vm->pid == pid && vm->fd == fd && !vm->end)
			return true;
	return false;
}

struct vp_vm *vp_vm_scan_process(vp_vms *vms, uint32_t pid, bool at_start)
{
	descriptors found = open_vms(pid);
	size_t before = vms->count;

	vp_vec_each (&found, fd)
		if (!vm_scan_is_known(vms, pid, *fd))
			vm_scan_add_vm(vms, pid, *fd, found.count == 1, at_start);
	vp_vec_deinit(&found);
	return vms->count > before ? &vms->at[before] : NULL;
}

struct vp_error *vp_vm_scan(vp_vms *vms, bool at_start)
{
	DIR *directory = opendir("/proc");

	if (!directory)
		return vp_error_errno(errno, "cannot open '/proc'");
	for (struct dirent *entry; (entry = readdir(directory));) {
		char *end;
		unsigned long pid = strtoul(entry->d_name, &end, 10);
		if (isdigit((unsigned char)entry->d_name[0]) && !*end &&
		    !vp_vms_latest(vms, (uint32_t)pid))
			vp_vm_scan_process(vms, (uint32_t)pid, at_start);
	}
	closedir(directory);
	return NULL;
}

void vp_vm_scan_new(vp_vms *vms, bool at_start)
{
	DIR *directory = opendir(DEBUGFS);

	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		char *end;
		unsigned long pid = strtoul(entry->d_name, &end, 10);
		if (isdigit((unsigned char)entry->d_name[0]) && *end == '-' &&
		    !vp_vms_latest(vms, (uint32_t)pid))
			vp_vm_scan_process(vms, (uint32_t)pid, at_start);
	}
	if (directory)
		closedir(directory);
}

bool vp_vm_has_exited(const struct vp_vm *vm)
{
	return kill((pid_t)vm->pid, 0) && errno == ESRCH;
}

static bool has_open_vm(uint32_t pid)
{
	descriptors found = open_vms(pid);
	bool has = found.count;

	vp_vec_deinit(&found);
	return has;
}

bool vp_vm_is_gone(const struct vp_vm *vm)
{
	uint64_t started = vm->started ? vp_proc_start_time(vm->pid) : 0;

	if (vp_vm_has_exited(vm) || (started && started != vm->started))
		return true;
	if (!vm->fd)
		return !has_open_vm(vm->pid);
	VP_AUTO_FREE char *path = vp_format("/proc/%u/fd/%u", vm->pid, vm->fd);
	return !is_vm(AT_FDCWD, path);
}

uint64_t vp_vm_generation(void)
{
	struct stat folder; /* each VM has a folder in it; its mtime changes when one is created or
			       removed */

	if (stat(DEBUGFS, &folder))
		return 0;
	return (uint64_t)folder.st_ctim.tv_sec * 1000000000 + (uint64_t)folder.st_ctim.tv_nsec +
	       folder.st_nlink;
}

void vp_vm_read_tsc(struct vp_vm *vm)
{
	vp_vec_each (&vm->vcpus, vcpu) {
		int64_t ratio = 0, bits = 0;
		if (!read_debug_number(vm, vcpu->number, "tsc-offset", &vcpu->tsc_offset))
			continue;
		if (!read_debug_number(vm, vcpu->number, "tsc-scaling-ratio", &ratio) ||
		    !read_debug_number(vm, vcpu->number, "tsc-scaling-ratio-frac-bits", &bits))
			ratio = bits = 0;
		vcpu->tsc_ratio = (uint64_t)ratio;
		vcpu->tsc_frac_bits = (uint32_t)bits;
		vcpu->has_tsc = true;
	}
}

void vp_vms_read_pcpus(vp_vms *vms)
{
	vp_vec_each (vms, vm)
		if (!vm->end)
			vm_scan_read_pcpus(vm);
}
