/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guests whose memory is kept from the host, by KVM's structs; and the program that lists guests.
 */
#include "unit.h"

#include <unistd.h>

#include "bpf/guest_state_abi.h"
#include "collect/guests/guest_state.h"
#include "fake_vcpu.h"
#include "kernel.h"
#include "schema/records.h"

#include "guest_protection.skel.h"

/* What the programs say now; `of_vcpu` if it is not NULL. */
static uint32_t ask(const struct guest_protection_bpf *programs, const struct fake_vcpu *fake,
		    uint32_t *of_vcpu)
{
	vp_run(programs->progs.ask, fake->kvm_address, fake->address, 0);
	if (of_vcpu)
		*of_vcpu = programs->bss->of_vcpu;
	return programs->bss->of_vm;
}

static void test_protection(void **state)
{
	static const uint32_t by_type[] = {VP_NOT_PROTECTED, VP_PROTECTED_BY_KVM,
					   VP_PROTECTED_SEV, VP_PROTECTED_SEV_ES,
					   VP_PROTECTED_SNP, VP_PROTECTED_TDX};
	struct fake_vcpu fake;
	uint32_t of_vcpu;

	if (!fake_vcpu_make(&fake)) {
		print_message("skipped: this kernel does not describe KVM\n");
		return;
	}
	struct guest_protection_bpf *programs = guest_protection_bpf__open();
	assert_non_null(programs);
	programs->rodata->vendor = VP_VENDOR_AMD;
	assert_int_equal(guest_protection_bpf__load(programs), 0);
	assert_int_equal(ask(programs, &fake, &of_vcpu), VP_NOT_PROTECTED);
	assert_int_equal(of_vcpu, VP_NOT_PROTECTED);
	for (uint32_t i = 0; i < VP_ARRAY_SIZE(by_type) && fake.vm_type; i++) {
		fake.vm_type[0] = (char)i;
		assert_int_equal(ask(programs, &fake, NULL), by_type[i]);
	}
	if (fake.vm_type)
		fake.vm_type[0] = 0;
	if (fake.sev_info) {
		fake.sev_info[0] = 1; /* active; es_active */
		assert_int_equal(ask(programs, &fake, NULL), VP_PROTECTED_SEV);
		fake.sev_info[1] = 1;
		assert_int_equal(ask(programs, &fake, NULL), VP_PROTECTED_SEV_ES);
	}
	if (fake.is_protected) {
		*fake.is_protected = 1;
		ask(programs, &fake, &of_vcpu);
		assert_int_equal(of_vcpu, VP_PROTECTED_REGISTERS);
	}
	assert_true(fake.vm_type || fake.sev_info || fake.is_protected);
	guest_protection_bpf__destroy(programs);
	fake_vcpu_free(&fake);
}

/* This process is no VM's: there is nothing to list, and the kernel takes the program. */
static void test_lister(void **state)
{
	struct vp_guest_lister *lister;
	vp_guest_states states = {0};

	expect_no_error(vp_guest_lister_new(&lister));
	expect_error(vp_guest_lister_read_one(lister, (uint32_t)getpid(), &states),
		     "does not expose KVM's memory slots");
	vp_guest_states_deinit(&states);
	vp_guest_lister_free(lister);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_protection),
	    cmocka_unit_test(test_lister),
	};

	if (!vp_kernel_takes_programs("protected guests"))
		return VP_SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
