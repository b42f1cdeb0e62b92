/* SPDX-License-Identifier: GPL-2.0-or-later */
/* VMs of a process, by its descriptors; this process stands for a VMM. */
#include "unit.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "host/vm_scan.h"
#include "maps/proc.h"

ssize_t __real_readlinkat(int folder, const char *path, char *text, size_t size);
ssize_t __wrap_readlinkat(int folder, const char *path, char *text, size_t size);
int __wrap_sched_getaffinity(pid_t tid, size_t size, cpu_set_t *set);

/* The descriptor that is a VM; -1: none. */
static int vm_fd = -1;

ssize_t __wrap_readlinkat(int folder, const char *path, char *text, size_t size)
{
	static const char vm[] = "anon_inode:kvm-vm";
	const char *name = strrchr(path, '/');

	if (vm_fd < 0 || atoi(name ? name + 1 : path) != vm_fd)
		return __real_readlinkat(folder, path, text, size);
	memcpy(text, vm, sizeof(vm) - 1);
	return sizeof(vm) - 1;
}

/* pCPUs that a thread may use. */
static const unsigned *allowed;
static size_t n_allowed;

int __wrap_sched_getaffinity(pid_t tid, size_t size, cpu_set_t *set)
{
	if (tid != 77)
		return -1;
	CPU_ZERO_S(size, set);
	for (size_t i = 0; i < n_allowed; i++)
		CPU_SET_S(allowed[i], size, set);
	return 0;
}

static void test_look_at(void **state)
{
	uint32_t pid = (uint32_t)getpid();
	vp_vms vms = {0};

	assert_null(vp_vm_scan_process(&vms, pid, true));
	vm_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct vp_vm *vm = vp_vm_scan_process(&vms, pid, true);
	assert_non_null(vm);
	assert_int_equal(vms.count, 1);
	assert_int_equal(vm->pid, pid);
	assert_int_equal(vm->fd, vm_fd);
	assert_int_equal(vm->nth, 0);
	assert_true(vm->at_start);
	assert_true(vm->started && vm->started == vp_proc_start_time(pid));
	assert_false(vp_vm_is_gone(vm));
	/* It is known. */
	assert_null(vp_vm_scan_process(&vms, pid, false));
	assert_int_equal(vms.count, 1);
	/* It has ended: a VM with that descriptor is another one. */
	vms.at[0].end = 5;
	vm = vp_vm_scan_process(&vms, pid, false);
	assert_non_null(vm);
	assert_int_equal(vms.count, 2);
	assert_int_equal(vm->nth, 1);
	assert_false(vm->at_start);
	/* Closed, or of another process with that number. */
	int fd = vm_fd;
	vm_fd = -1;
	assert_true(vp_vm_is_gone(vm));
	assert_false(vp_vm_has_exited(vm));
	vm_fd = fd;
	assert_false(vp_vm_is_gone(vm));
	vm->started++;
	assert_true(vp_vm_is_gone(vm));
	vm->started = 0; /* not known */
	assert_false(vp_vm_is_gone(vm));
	vm->fd = 0;
	assert_false(vp_vm_is_gone(vm));
	vm_fd = -1;
	assert_true(vp_vm_is_gone(vm));
	close(fd);
	vp_vms_deinit(&vms);
	/* A process that has ended. */
	pid_t child = fork();
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	const struct vp_vm gone = {.pid = (uint32_t)child};
	assert_true(vp_vm_has_exited(&gone));
	assert_true(vp_vm_is_gone(&gone));
}

static void expect_pcpus(vp_vms *vms, const unsigned *set, size_t count, const char *expected)
{
	allowed = set;
	n_allowed = count;
	vp_vms_read_pcpus(vms);
	assert_string_equal(vms->at[0].vcpus.at[0].pcpus, expected);
}

#define EXPECT_PCPUS(vms, expected, ...)                                                           \
	expect_pcpus(vms, (const unsigned[]){__VA_ARGS__},                                         \
		     VP_ARRAY_SIZE(((const unsigned[]){__VA_ARGS__})), expected)

static void test_pcpus(void **state)
{
	vp_vms vms = {0};

	vp_vec_push(&vms, vp_vm_of_id(1000));
	struct vp_vm *vm = &vms.at[0];
	vp_vm_vcpu(vm, 0)->tid = 77;
	vp_vm_vcpu(vm, 1)->tid = 78; /* of which the kernel says nothing */
	EXPECT_PCPUS(&vms, "0-2,5,7-8", 0, 1, 2, 5, 7, 8);
	EXPECT_PCPUS(&vms, "3", 3);
	EXPECT_PCPUS(&vms, "0,2,4", 0, 2, 4);
	EXPECT_PCPUS(&vms, "0,8190-8191", 0, 8190, 8191);
	assert_null(vm->vcpus.at[1].pcpus);
	/* A vCPU whose thread is not known, and one of a VM that has ended, keep what was known. */
	vm->vcpus.at[0].tid = 0;
	EXPECT_PCPUS(&vms, "0,8190-8191", 1);
	vm->vcpus.at[0].tid = 77;
	vm->end = 5;
	EXPECT_PCPUS(&vms, "0,8190-8191", 1);
	vm->end = 0;
	EXPECT_PCPUS(&vms, "1", 1);
	vp_vms_deinit(&vms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_look_at),
	    cmocka_unit_test(test_pcpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
