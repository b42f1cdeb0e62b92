/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Places of struct members by BTF that a guest wrote. */
#include "opened_guest.h"

static void test_btf(void **state)
{
	struct vp_guest_btf btf;
	struct vp_guest_member member;

	built_kernel(&guest, BUILT_OLD);
	expect_no_error(vp_guest_btf_init(guest.image + AT_BTF, guest.btf_size, &btf));
	assert_true(vp_guest_btf_member(&btf, "file", "f_path.dentry", &member));
	assert_int_equal(member.offset, guest.pack.at.file_dentry);
	assert_false(vp_guest_btf_member(&btf, "file", "f_path.nothing", &member));
	assert_false(vp_guest_btf_member(&btf, "nothing", "pid", &member));
	assert_int_equal(vp_guest_btf_size(&btf, "page"), BUILT_PAGE_SIZE_OF);
	vp_guest_btf_deinit(&btf);
	expect_error(vp_guest_btf_init(guest.image + AT_BTF, 10, &btf), "too short");
	expect_error(vp_guest_btf_init(guest.image + AT_BTF, guest.btf_size - 1, &btf), "damaged");
	guest.image[AT_BTF] ^= 1;
	expect_error(vp_guest_btf_init(guest.image + AT_BTF, guest.btf_size, &btf), "bad header");
}

/* A struct whose unnamed members are itself: the search ends. */
static void test_btf_recursion(void **state)
{
	struct btf_builder built = {.strings_size = 1};
	struct btf_member members[16];
	struct vp_guest_btf btf;
	struct vp_guest_member member;
	char bytes[1024];

	for (size_t i = 0; i < VP_ARRAY_SIZE(members); i++)
		members[i] = (struct btf_member){.type = 1};
	btf_struct(&built, "loop", 8, members, VP_ARRAY_SIZE(members));
	struct btf_header header = {.magic = BTF_MAGIC,
				    .hdr_len = sizeof(header),
				    .type_len = (uint32_t)built.types_size,
				    .str_off = (uint32_t)built.types_size,
				    .str_len = (uint32_t)built.strings_size};
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), built.types, built.types_size);
	memcpy(bytes + sizeof(header) + built.types_size, built.strings, built.strings_size);
	expect_no_error(
	    vp_guest_btf_init(bytes, sizeof(header) + built.types_size + built.strings_size, &btf));
	assert_false(vp_guest_btf_member(&btf, "loop", "nothing", &member));
	vp_guest_btf_deinit(&btf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_btf),
	    cmocka_unit_test(test_btf_recursion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
