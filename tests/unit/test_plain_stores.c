/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where BPF has no atomic exchange, objects are loaded without: their exchanges become stores. */
#include "unit.h"

#include <elf.h>
#include <linux/bpf.h>

#include "collect/programs/plain_stores.h"

enum { WORDS = 6, ATOMIC = 0xdb, STORE = 0x7b, LOAD_IMMEDIATE = 0x18, EXCHANGE = 0xe1, ADD = 0 };

/* An object with the same words as code and as data. */
struct object {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];
	struct bpf_insn code[WORDS], data[WORDS];
};

static void make_object(struct object *object)
{
	const struct bpf_insn words[WORDS] = {
	    {.code = ATOMIC, .dst_reg = 1, .src_reg = 2, .off = 8, .imm = EXCHANGE},
	    {.code = LOAD_IMMEDIATE, .dst_reg = 3},
	    {.code = ATOMIC, .imm = EXCHANGE}, /* the second word of an immediate: never code */
	    {.code = ATOMIC, .dst_reg = 1, .src_reg = 2, .imm = ADD},
	    {.code = ATOMIC, .dst_reg = 4, .src_reg = 5, .off = -16, .imm = EXCHANGE},
	    {.code = BPF_JMP | BPF_EXIT},
	};

	*object = (struct object){.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
							 ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
					     .e_type = ET_REL,
					     .e_machine = EM_BPF,
					     .e_version = EV_CURRENT,
					     .e_shoff = offsetof(struct object, sections),
					     .e_ehsize = sizeof(Elf64_Ehdr),
					     .e_shentsize = sizeof(Elf64_Shdr),
					     .e_shnum = 3},
				  .sections = {[1] = {.sh_type = SHT_PROGBITS,
						      .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
						      .sh_offset = offsetof(struct object, code),
						      .sh_size = sizeof(object->code)},
					       [2] = {.sh_type = SHT_PROGBITS,
						      .sh_flags = SHF_ALLOC,
						      .sh_offset = offsetof(struct object, data),
						      .sh_size = sizeof(object->data)}}};
	memcpy(object->code, words, sizeof(words));
	memcpy(object->data, words, sizeof(words));
}

static void test_exchanges_become_stores(void **state)
{
	struct object object, before;

	make_object(&object);
	before = object;
	assert_int_equal(vp_plain_stores_replace(&object, sizeof(object)), 2);
	before.code[0].code = before.code[4].code = STORE;
	before.code[0].imm = before.code[4].imm = 0;
	assert_memory_equal(&object, &before, sizeof(object));
}

/* A section beyond the file, and a file that is no object. */
static void test_broken_objects(void **state)
{
	struct object object, before;

	make_object(&object);
	object.sections[1].sh_size = UINT64_MAX - 64;
	before = object;
	assert_int_equal(vp_plain_stores_replace(&object, sizeof(object)), 0);
	assert_memory_equal(&object, &before, sizeof(object));
	memset(&object, 'x', sizeof(object));
	assert_int_equal(vp_plain_stores_replace(&object, sizeof(object)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_exchanges_become_stores),
	    cmocka_unit_test(test_broken_objects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
