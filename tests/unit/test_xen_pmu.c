/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Xen's PMU: whom the counters are for, in files like those of dom0's kernel, and whose a place is.
 */
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "xen/xen_pmu.h"
#include "xen/xen_pmu_mode.h"

static void expect_file(const char *path, const char *text)
{
	struct vp_buffer buffer = {0};

	assert_null(vp_file_read(path, 100, &buffer));
	assert_string_equal(vp_buffer_text(&buffer), text);
	vp_buffer_deinit(&buffer);
}

static void test_mode(void **state)
{
	const char *path = temporary_file("pmu_mode", "self\n", 5);
	struct vp_xen_pmu_mode mode = {.folder = "."};

	assert_null(vp_xen_pmu_mode_read(&mode));
	assert_string_equal(mode.before, "self");
	assert_null(vp_xen_pmu_mode_restore(&mode)); /* it was not changed */
	expect_file(path, "self\n");
	assert_null(vp_xen_pmu_mode_take(&mode));
	expect_file(path, "all\n\n"); /* the kernel's has no rest of what was there */
	assert_null(vp_xen_pmu_mode_restore(&mode));
	expect_file(path, "self\n");
	assert_null(vp_xen_pmu_mode_take(&mode));
	unlink(path);
	expect_error(vp_xen_pmu_mode_restore(&mode), "cannot restore 'self'");
	expect_error(vp_xen_pmu_mode_read(&mode), "no driver for Xen's PMU");
}

/* That it is there does not mean that it may be had. */
static void test_mode_is_refused(void **state)
{
	const char *path = temporary_file("pmu_mode", "off\n", 4);
	struct vp_xen_pmu_mode mode = {.folder = "."};

	expect_error(vp_xen_pmu_mode_read(&mode), "is 'off'");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0); /* opens, and cannot be read */
	expect_error(vp_xen_pmu_mode_read(&mode), "cannot read");
	rmdir(path);
}

/* A try leaves what was there; what cannot be written is an error. */
static void test_mode_is_tried(void **state)
{
	const char *path = temporary_file("pmu_mode", "self\n", 5);
	struct vp_xen_pmu_mode mode = {.folder = "."};

	assert_null(vp_xen_pmu_mode_try(&mode));
	assert_false(mode.changed);
	expect_file(path, "self\n");
	unlink(path);
	assert_int_equal(symlink("/dev/full", path), 0); /* reads without an end, refuses all */
	mode.folder = ".";
	expect_error(vp_xen_pmu_mode_try(&mode), "cannot write 'all'");
	unlink(path);
}

/* What was so before stays so. */
static void test_mode_of_others(void **state)
{
	const char *path = temporary_file("pmu_mode", "all\n", 4);
	struct vp_xen_pmu_mode mode = {.folder = "."};

	assert_null(vp_xen_pmu_mode_read(&mode));
	assert_null(vp_xen_pmu_mode_take(&mode));
	assert_false(mode.changed);
	unlink(path);
	assert_null(vp_xen_pmu_mode_restore(&mode));
}

static void test_whose(void **state)
{
	const struct {
		uint32_t domain;
		enum vp_xen_pmu_owner whose;
	} cases[] = {
	    {0, VP_XEN_PMU_DOM0},      {1, VP_XEN_PMU_GUEST},    {0x7fef, VP_XEN_PMU_GUEST},
	    {0x7ff0, VP_XEN_PMU_DOM0}, {0x7ff2, VP_XEN_PMU_XEN}, /* DOMID_SELF, DOMID_XEN */
	    {0x7fff, VP_XEN_PMU_XEN},                            /* its idle vCPUs */
	};

	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		const struct vp_xen_pmu_sample place = {.domain = cases[i].domain};
		assert_int_equal(vp_xen_pmu_owner(&place), cases[i].whose);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_mode),          cmocka_unit_test(test_mode_is_refused),
	    cmocka_unit_test(test_mode_is_tried), cmocka_unit_test(test_mode_of_others),
	    cmocka_unit_test(test_whose),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
