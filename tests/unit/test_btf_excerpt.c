/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Of a made-up kernel's types and its module's, those that a program's need, as they were. */
#include "unit.h"

#include <string.h>

#include <bpf/btf.h>

#include "base/macros.h"
#include "host/btf_excerpt.h"

static struct btf *kernel, *module, *program, *made;

/* struct inner { int a, b; }; struct stranger { int x; };
 * struct outer { struct inner in[3]; struct stranger *far; union { long wide; counter_t small; };
 * };
 */
static void make_kernel(void)
{
	kernel = btf__new_empty();
	int number = btf__add_int(kernel, "int", 4, BTF_INT_SIGNED);
	int wide = btf__add_int(kernel, "long", 8, BTF_INT_SIGNED);
	int inner = btf__add_struct(kernel, "inner", 8);
	btf__add_field(kernel, "a", number, 0, 0);
	btf__add_field(kernel, "b", number, 32, 0);
	int stranger = btf__add_struct(kernel, "stranger", 4);
	btf__add_field(kernel, "x", number, 0, 0);
	int far = btf__add_ptr(kernel, stranger), three = btf__add_array(kernel, wide, inner, 3);
	int counter = btf__add_typedef(kernel, "counter_t", number);
	int either = btf__add_union(kernel, NULL, 8);
	btf__add_field(kernel, "wide", wide, 0, 0);
	btf__add_field(kernel, "small", counter, 0, 0);
	btf__add_struct(kernel, "outer", 40);
	btf__add_field(kernel, "in", three, 0, 0);
	btf__add_field(kernel, "far", far, 192, 0);
	btf__add_field(kernel, NULL, either, 256, 0);
	btf__add_enum(kernel, "mode", 4);
	btf__add_enum_value(kernel, "MODE_ON", 7);
}

/* In the module: struct vcpu { struct outer out; int last; }; and an enum of the kernel's name. */
static void make_module(void)
{
	module = btf__new_empty_split(kernel);
	int outer = btf__find_by_name_kind(module, "outer", BTF_KIND_STRUCT);
	btf__add_struct(module, "vcpu", 48);
	btf__add_field(module, "out", outer, 0, 0);
	btf__add_field(module, "last", btf__find_by_name_kind(module, "int", BTF_KIND_INT), 320, 0);
}

static const struct btf_type *type_of(const char *name, uint32_t kind)
{
	int id = btf__find_by_name_kind(made, name, kind);

	return id > 0 ? btf__type_by_id(made, (uint32_t)id) : NULL;
}

/* How many types have the name: libbpf asks each of them. */
static uint32_t count(const char *name)
{
	uint32_t found = 0;

	for (uint32_t id = 1; id < btf__type_cnt(made); id++)
		found +=
		    !strcmp(btf__name_by_offset(made, btf__type_by_id(made, id)->name_off), name);
	return found;
}

static void make_excerpt(const char *name)
{
	const struct btf *from[] = {kernel, NULL, module};

	program = btf__new_empty();
	btf__add_struct(program, name, 0);
	made = vp_btf_excerpt(from, VP_ARRAY_SIZE(from), program);
	assert_non_null(made);
}

static void end_excerpt(void)
{
	btf__free(made);
	btf__free(program);
}

static void expect_outer(const struct btf_type *outer)
{
	assert_non_null(outer);
	assert_int_equal(outer->size, 40);
	assert_int_equal(btf_vlen(outer), 3);
	const struct btf_member *members = btf_members(outer);
	assert_int_equal(members[1].offset, 192);
	assert_int_equal(members[2].offset, 256);
	assert_int_equal(btf__resolve_size(made, members[0].type), 24);
	assert_int_equal(btf__resolve_size(made, members[2].type), 8);
	const struct btf_type *far = btf__type_by_id(made, members[1].type);
	assert_true(btf_is_ptr(far));
	assert_int_equal(far->type, 0);
	const struct btf_type *either = btf__type_by_id(made, members[2].type);
	assert_true(btf_is_union(either));
	assert_string_equal(btf__name_by_offset(made, btf_members(either)[1].name_off), "small");
	assert_int_equal(btf__resolve_size(made, btf_members(either)[1].type), 4);
	const struct btf_type *inner = type_of("inner", BTF_KIND_STRUCT);
	assert_int_equal(btf_members(inner)[1].offset, 32);
}

static void test_kernel(void **state)
{
	make_excerpt("outer___old");
	expect_outer(type_of("outer", BTF_KIND_STRUCT));
	assert_int_equal(count("stranger") + count("vcpu") + count("mode"), 0);
	end_excerpt();
}

static void test_module(void **state)
{
	make_excerpt("vcpu");
	const struct btf_type *vcpu = type_of("vcpu", BTF_KIND_STRUCT);
	assert_non_null(vcpu);
	assert_int_equal(vcpu->size, 48);
	assert_int_equal(btf_members(vcpu)[1].offset, 320);
	expect_outer(btf__type_by_id(made, btf_members(vcpu)[0].type));
	assert_int_equal(count("int"), 1);
	end_excerpt();
}

static void test_others(void **state)
{
	make_excerpt("mode"); /* a struct of that name: libbpf asks for the same kind itself */
	const struct btf_type *mode = type_of("mode", BTF_KIND_ENUM);
	assert_non_null(mode);
	assert_int_equal(btf_enum(mode)[0].val, 7);
	end_excerpt();
	make_excerpt("nothing");
	assert_int_equal(btf__type_cnt(made), 1);
	end_excerpt();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_kernel),
	    cmocka_unit_test(test_module),
	    cmocka_unit_test(test_others),
	};

	make_kernel();
	make_module();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	btf__free(module);
	btf__free(kernel);
	return failed;
}
