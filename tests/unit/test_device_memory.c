/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of a VMM's mappings are devices' memory, by /proc/PID/maps. */
#include "unit.h"

#include <unistd.h>

#include "host/device_memory.h"

static const char maps[] =
    "7f0000000000-7f0040000000 rw-p 00000000 00:00 0 \n"
    "7f0040000000-7f0080000000 rw-s 00000000 00:0f 33                         "
    "/dev/hugepages/libvirt/qemu/1-web/ram (deleted)\n"
    "7f0080000000-7f00c0000000 rw-s 00000000 00:05 34 /memfd:memory-backend-memfd (deleted)\n"
    "7f00c0000000-7f00c1000000 rw-s 00000000 00:1a 35 /dev/shm/ram\n"
    "7f00c1000000-7f00c2000000 rw-s 00000000 00:06 36 /dev/dax0.0\n"
    "7f1000000000-7f1000001000 rw-s 20000000000 00:0e 1027 anon_inode:[vfio-device]\n"
    "7f1000003000-7f1000004000 rw-s 20000000000 00:0e 1027 /dev/vfio/devices/vfio0\n"
    "7f2000000000-7f2010000000 rw-s 100000000 00:06 700 /dev/dri/renderD128\n"
    "7f3000000000-7f3000001000 rw-s 00000000 00:15 900 "
    "/sys/devices/pci0000:00/0000:00:02.0/resource0\n"
    "malformed\n"
    "7f4000000000 rw-s 00000000 00:0e 1027 anon_inode:[vfio-device]\n"
    "7f4000000000-7f4000000000 rw-s 00000000 00:0e 1027 anon_inode:[vfio-device]\n"
    "7f4000000000-zz rw-s 00000000 00:0e 1027 anon_inode:[vfio-device]\n"
    "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]\n";

static void test_devices(void **state)
{
	vp_device_ranges found = vp_device_memory_parse((struct vp_slice){maps, sizeof(maps) - 1});

	assert_int_equal(found.count, 4);
	assert_int_equal(found.at[0].start, 0x7f1000000000);
	assert_int_equal(found.at[1].end, 0x7f1000004000);
	assert_false(vp_device_memory_has(&found, 0x7f0000000000, 0xc2000000));
	assert_true(vp_device_memory_has(&found, 0x7f1000000000, 4096));
	assert_true(vp_device_memory_has(&found, 0x7f1000000fff, 4096));
	assert_false(vp_device_memory_has(&found, 0x7f1000001000, 0x2000));
	assert_true(vp_device_memory_has(&found, 0x7f1000001000, 0x2001));
	assert_true(vp_device_memory_has(&found, 0, UINT64_MAX));
	assert_false(vp_device_memory_has(&found, 0x7ffc00000000, 4096));
	vp_vec_deinit(&found);
}

static void test_process(void **state)
{
	vp_device_ranges own = vp_device_memory_of((uint32_t)getpid());
	vp_device_ranges none = vp_device_memory_of(1U << 30);

	assert_int_equal(own.count, 0);
	assert_int_equal(none.count, 0);
	vp_vec_deinit(&own);
	vp_vec_deinit(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_devices),
	    cmocka_unit_test(test_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
