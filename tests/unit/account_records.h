/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of the vCPUs' account for tests: VMs of processes 1000 and 2000 with two vCPUs each. */
#ifndef VP_TESTS_ACCOUNT_RECORDS_H
#define VP_TESTS_ACCOUNT_RECORDS_H

#include "analyze/account/account_tables.h"
#include "render/render_table.h"
#include "unit.h"

enum { FIRST_VM = 1000, SECOND_VM = 2000 };

static inline void take_record(struct vp_account *account, uint32_t id, void *record)
{
	((struct vp_record_header *)record)->id = (uint16_t)id;
	vp_account_take(account, record);
}

#define TAKE(account, name, ...)                                                                   \
	take_record(account, VP_ID_##name, &(struct vp_##name){__VA_ARGS__})

/* "alpha" (1000) and "beta" (2000), threads 1001, 1002, 2001, 2002. */
static inline void two_vms(vp_vms *vms)
{
	static const char *const names[] = {"alpha", "beta"};

	for (uint32_t i = 0; i < 2; i++) {
		struct vp_vm vm = vp_vm_of_id(1000 * (i + 1));
		vm.name = vp_strdup(names[i]);
		vm.uuid = vp_strdup("");
		vm.agent = vp_strdup("");
		for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
			vp_vm_vcpu(&vm, vcpu)->tid = vm.pid + vcpu + 1;
		vp_vec_push(vms, vm);
	}
}

static inline void expect_csv(struct vp_table *table, bool with_keys, const char *expected)
{
	struct vp_buffer out = {0};

	vp_render_table_csv(table, with_keys, &out);
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
	vp_table_deinit(table);
	*table = (struct vp_table){0};
}

#endif
