/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A kernel's symbol table in its memory, in each of its layouts, and damaged. */
#include "opened_guest.h"

struct counted {
	unsigned count;
	uint64_t entry, current;
	bool current_is_percpu;
	size_t longest;
};

static bool count_symbol(void *context, const struct vp_kallsyms_symbol *symbol)
{
	struct counted *counted = context;

	counted->count++;
	if (strlen(symbol->name) > counted->longest)
		counted->longest = strlen(symbol->name);
	if (!strcmp(symbol->name, "entry_SYSCALL_64"))
		counted->entry = symbol->addr;
	if (!strcmp(symbol->name, "current_task")) {
		counted->current = symbol->addr;
		counted->current_is_percpu = symbol->percpu;
	}
	return true;
}

static void test_kallsyms_layouts(void **state)
{
	for (int layout = BUILT_OLD; layout <= BUILT_PLACE; layout++) {
		struct counted counted = {0};
		struct vp_kallsyms tables;
		built_kernel(&guest, (enum built_layout)layout);
		expect_no_error(
		    vp_kallsyms_find(guest.image, sizeof(guest.image), BUILT_TEXT, &tables));
		assert_int_equal(tables.count, BUILT_SYMBOLS);
		assert_true(vp_kallsyms_each(&tables, guest.image, sizeof(guest.image),
					     count_symbol, &counted));
		assert_int_equal(counted.count, BUILT_SYMBOLS);
		assert_int_equal(counted.longest, BUILT_LONG_NAME);
		assert_int_equal(counted.entry, BUILT_TEXT + AT_ENTRY);
		assert_int_equal(counted.current_is_percpu, layout == BUILT_OLD);
		assert_int_equal(counted.current, layout == BUILT_OLD
						      ? PERCPU_CURRENT
						      : BUILT_TEXT + AT_END + PERCPU_CURRENT);
	}
}

/* Symbols are in the order of their addresses: what is in another order are no offsets of them. */
static void test_kallsyms_out_of_order(void **state)
{
	struct vp_kallsyms tables;
	char *at;

	built_kernel(&guest, BUILT_NEW);
	expect_no_error(vp_kallsyms_find(guest.image, sizeof(guest.image), BUILT_TEXT, &tables));
	at = guest.image + tables.offsets + 4 * (BUILT_SYMBOLS / 2);
	put32(at, AT_ENTRY);
	expect_error(vp_kallsyms_find(guest.image, sizeof(guest.image), BUILT_TEXT, &tables),
		     "unknown layout");
}

/* One byte that is not as it was: the tables are not found, or still hold together. */
static void test_kallsyms_damaged(void **state)
{
	for (int layout = BUILT_OLD; layout <= BUILT_PLACE; layout++) {
		built_kernel(&guest, (enum built_layout)layout);
		for (size_t at = AT_KALLSYMS; at < guest.kallsyms_end; at += 97) {
			struct counted counted = {0};
			struct vp_kallsyms tables;
			char kept = guest.image[at];
			guest.image[at] = (char)~kept;
			struct vp_error *error =
			    vp_kallsyms_find(guest.image, sizeof(guest.image), BUILT_TEXT, &tables);
			if (!error)
				vp_kallsyms_each(&tables, guest.image, sizeof(guest.image),
						 count_symbol, &counted);
			assert_true(counted.count <= BUILT_SYMBOLS);
			vp_error_free(error);
			guest.image[at] = kept;
		}
	}
	struct vp_kallsyms tables;
	memset(guest.image, 0, sizeof(guest.image));
	expect_error(vp_kallsyms_find(guest.image, sizeof(guest.image), 0, &tables), "CONFIG_KALL");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_kallsyms_layouts),
	    cmocka_unit_test(test_kallsyms_out_of_order),
	    cmocka_unit_test(test_kallsyms_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
