/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which thread is which vCPU, by folders as KVM's debugfs and /proc have them. */
#include "unit.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "host/vcpu_numbers.h"

#define PROC "test_vcpu_numbers.proc"
#define KVM "test_vcpu_numbers.kvm"

static void put(const char *folder, const char *file, const char *text)
{
	VP_AUTO_FREE char *make = vp_format("mkdir -p %s", folder);
	VP_AUTO_FREE char *path = vp_format("%s/%s", folder, file);

	assert_int_equal(system(make), 0);
	if (text)
		temporary_file(path, text, strlen(text));
}

static void begin(void)
{
	assert_int_equal(system("rm -rf " PROC " " KVM), 0);
	put(PROC "/77/task/77", "comm", "qemu-system-x86\n");
}

/* QEMU's thread of its CPU `index`. */
static void put_thread(unsigned index, unsigned tid)
{
	VP_AUTO_FREE char *folder = vp_format(PROC "/77/task/%u", tid);
	VP_AUTO_FREE char *name = vp_format("CPU %u/KVM\n", index);

	put(folder, "comm", name);
}

/* KVM's vCPU; tid 0: a kernel that does not say. */
static void put_vcpu(const char *vm, unsigned id, unsigned tid)
{
	VP_AUTO_FREE char *folder = vp_format(KVM "/%s/vcpu%u", vm, id);
	VP_AUTO_FREE char *text = vp_format("%u\n", tid);

	put(folder, "pid", tid ? text : NULL);
}

/* "?": its thread is guessed by the order of the threads' names. */
static void expect(bool alone, const char *expected)
{
	struct vp_vm vm = {.pid = 77, .fd = 12};
	struct vp_buffer found = {0};

	vp_vcpu_numbers_read(PROC, KVM, alone, &vm);
	vp_vec_each (&vm.vcpus, vcpu)
		vp_buffer_printf(&found, "%s%u:%u%s", found.size ? " " : "", vcpu->number,
				 vcpu->tid, vcpu->is_guessed ? "?" : "");
	assert_string_equal(vp_buffer_text(&found), expected);
	vp_buffer_deinit(&found);
	vp_vec_deinit(&vm.vcpus);
}

static const unsigned ids[] = {0, 1, 2, 4, 5, 6}; /* of -smp 6,sockets=2,cores=3 */

static void test_by_kvm(void **state)
{
	begin();
	for (unsigned i = 0; i < VP_ARRAY_SIZE(ids); i++) {
		put_thread(i, 100 + i);
		put_vcpu("77-12", ids[i], 100 + i);
	}
	put_vcpu("77-13", 0, 999); /* another VM of the process's */
	put_vcpu("78-12", 0, 999);
	expect(true, "0:100 1:101 2:102 4:103 5:104 6:105");
	expect(false, "0:100 1:101 2:102 4:103 5:104 6:105");
}

/* A descriptor that the VMM has duplicated; several VMs: it is not known which it is. */
static void test_by_another_descriptor(void **state)
{
	begin();
	put_vcpu("77-9", 3, 101);
	expect(true, "3:101");
	expect(false, "");
	put_vcpu("77-10", 3, 102);
	expect(true, "");
}

static void test_before_kvm_says_threads(void **state)
{
	begin();
	for (unsigned i = 0; i < VP_ARRAY_SIZE(ids); i++) {
		put_thread(i, 105 - i);
		put_vcpu("77-12", ids[i], 0);
	}
	expect(true, "0:105? 1:104? 2:103? 4:102? 5:101? 6:100?");
	expect(false, ""); /* whose threads these are is not known */
	put_vcpu("77-12", 7, 0);
	expect(true, ""); /* nor, which is which */
}

/* Without debugfs there are QEMU's numbers only. */
static void test_without_kvm(void **state)
{
	begin();
	put_thread(0, 100);
	put_thread(11, 101);
	expect(true, "0:100? 11:101?");
	expect(false, "");
}

/* A vCPU that never ran has no thread yet. */
static void test_not_run(void **state)
{
	begin();
	put_thread(0, 100);
	put_thread(1, 101);
	put_vcpu("77-12", 0, 100);
	put(KVM "/77-12/vcpu1", "pid", "0\n");
	put(KVM "/77-12/vcpux", "pid", "5\n");
	put(KVM "/77-12/vcpu1x", "pid", "5\n");
	expect(true, "0:100");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_by_kvm),
	    cmocka_unit_test(test_by_another_descriptor),
	    cmocka_unit_test(test_before_kvm_says_threads),
	    cmocka_unit_test(test_without_kvm),
	    cmocka_unit_test(test_not_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
