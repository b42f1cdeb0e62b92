/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Build-ids of files in a perf.data, by their paths. */
#include "unit.h"

#include "base/buffer.h"
#include "base/macros.h"
#include "import/perfdata.h"

enum { HAS_SIZE = 1 << 15 };

static struct vp_buffer bytes;

/* As perf has it: `size` of the id if that is told, names end with at least one zero. */
static void put(uint16_t misc, uint8_t size, char first, const char *path)
{
	char id[24] = {first, 2, 3};
	size_t name = (strlen(path) + 8) / 8 * 8;
	const uint32_t type = 0x43, process = 0xffffffff;
	const uint16_t whole = (uint16_t)(8 + 4 + sizeof(id) + name);

	id[20] = (char)size;
	vp_buffer_append(&bytes, &type, sizeof(type));
	vp_buffer_append(&bytes, &misc, sizeof(misc));
	vp_buffer_append(&bytes, &whole, sizeof(whole));
	vp_buffer_append(&bytes, &process, sizeof(process));
	vp_buffer_append(&bytes, id, sizeof(id));
	size_t before = bytes.size;
	memset(vp_buffer_extend(&bytes, name), 0, name);
	memcpy(bytes.bytes + before, path, strlen(path));
}

static struct vp_build_id id_of(const char *path, size_t cut)
{
	const struct vp_perfdata file = {.build_ids = {bytes.bytes, bytes.size - cut}};

	return vp_perfdata_build_id(&file, path);
}

static void test_build_ids(void **state)
{
	put(0, 9, 'a', "/usr/bin/a");
	put(HAS_SIZE, 16, 'b', "/usr/bin/b");
	put(HAS_SIZE, 21, 'c', "/usr/bin/c");
	put(0, 0, 'd', "/usr/bin/a.so");
	assert_int_equal(id_of("/usr/bin/a", 0).size, 20);
	assert_int_equal(id_of("/usr/bin/a", 0).bytes[0], 'a');
	assert_int_equal(id_of("/usr/bin/b", 0).size, 16);
	assert_int_equal(id_of("/usr/bin/b", 0).bytes[0], 'b');
	/* More than an id has is none. */
	assert_int_equal(id_of("/usr/bin/c", 0).size, 0);
	assert_int_equal(id_of("/usr/bin/a.so", 0).bytes[0], 'd');
	/* One that is not there has none. */
	assert_int_equal(id_of("/usr/bin", 0).size, 0);
	assert_int_equal(id_of("/usr/bin/d", 0).size, 0);
	assert_int_equal(id_of("", 0).size, 0);
	/* The last one is cut. */
	assert_int_equal(id_of("/usr/bin/a.so", 1).size, 0);
	assert_int_equal(id_of("/usr/bin/b", 1).size, 16);
	vp_buffer_deinit(&bytes);
	bytes = (struct vp_buffer){0};
	assert_int_equal(id_of("/usr/bin/a", 0).size, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_build_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
