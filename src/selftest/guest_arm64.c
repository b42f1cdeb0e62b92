/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's program for 64-bit Arm, at EL1 with the MMU off. It uses no memory for data, because
 * its accesses would bypass the caches: parameters are in registers, and results are writes to a
 * device.
 */
#ifdef __aarch64__
#include "base/error.h"
#include "base/macros.h"
#include "selftest/guest.h"
#include "selftest/guest_private.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

enum {
	MEMORY = 0x40000000,
	DEVICE = 0x10000000, /* no memory there */
	LOOPS_AT = DEVICE + 16,
	ROUNDS_AT = DEVICE + 24,
	BUSY_AT = DEVICE + 32,
	END_AT = DEVICE + 40,
	FIRST_PARAMETER = 19, /* x19 */
};

/*
 * x19: ticks of the busy time; x20, x21, x22: number of hypercalls, MMIO reads, halts; x23: DEVICE;
 * x24: ticks of a halt.
 *
 * Both functions have the same instructions at the same offset in a cache line. Rounds have random
 * lengths: a strictly periodic program may run in lockstep with the sampling.
 */
__asm__(".pushsection .rodata\n"
	"	.balign 64\n"
	"vp_tiny_begin:\n"
	"	nop\n"
	"	mov x9, #1\n"
	"	mov x10, #0\n"
	"	mov x11, #0\n"
	"	cbz x19, 4f\n"
	"	mrs x12, cntvct_el0\n"
	"	add x12, x12, x19\n"
	"2:	mov w13, #0x660d\n"
	"	movk w13, #0x19, lsl #16\n"
	"	mul w9, w9, w13\n"
	"	mov w13, #0xf35f\n"
	"	movk w13, #0x3c6e, lsl #16\n"
	"	add w9, w9, w13\n"
	"	lsr w14, w9, #22\n"
	"	add w14, w14, #512\n" /* 512 to 1535 loops */
	"	lsl w15, w14, #2\n"
	"	bl vp_tiny_hot\n"
	"	mov w15, w14\n"
	"	bl vp_tiny_cold\n"
	"	add x10, x10, x14\n"
	"	add x11, x11, #1\n"
	"	mrs x13, cntvct_el0\n"
	"	cmp x13, x12\n"
	"	b.lo 2b\n" /* end of a round */
	"	str x10, [x23, #16]\n"
	"	str x11, [x23, #24]\n"
	"	str x11, [x23, #32]\n"
	"4:	bl vp_tiny_hypercall\n"
	"	bl vp_tiny_mmio\n"
	"	bl vp_tiny_halt\n"
	"5:	str x11, [x23, #40]\n"
	"	b 5b\n"
	"	.balign 64\n"
	"vp_tiny_hot:\n"
	"1:	mul x0, x0, x0\n"
	"	mul x0, x0, x0\n"
	"	mul x0, x0, x0\n"
	"	mul x0, x0, x0\n"
	"	subs w15, w15, #1\n"
	"	b.ne 1b\n"
	"	ret\n"
	"	.balign 64\n"
	"vp_tiny_cold:\n"
	"1:	mul x0, x0, x0\n"
	"	mul x0, x0, x0\n"
	"	mul x0, x0, x0\n"
	"	mul x0, x0, x0\n"
	"	subs w15, w15, #1\n"
	"	b.ne 1b\n"
	"	ret\n"
	"	.balign 64\n"
	"vp_tiny_hypercall:\n"
	"1:	cbz x20, 2f\n"
	"	mov w0, #0x84000000\n" /* PSCI_VERSION, which KVM handles */
	"	hvc #0\n"
	"	sub x20, x20, #1\n"
	"	b 1b\n"
	"2:	ret\n"
	"	.balign 64\n"
	"vp_tiny_mmio:\n"
	"1:	cbz x21, 2f\n"
	"	ldr w0, [x23]\n"
	"	sub x21, x21, #1\n"
	"	b 1b\n"
	"2:	ret\n"
	"	.balign 64\n"
	"vp_tiny_halt:\n"
	"1:	cbz x22, 2f\n"
	"	msr cntv_tval_el0, x24\n"
	"	mov x0, #1\n"
	"	msr cntv_ctl_el0, x0\n"
	"	isb\n"
	"	wfi\n" /* until the timer fires; its interrupt stays masked */
	"	msr cntv_ctl_el0, xzr\n"
	"	isb\n"
	"	sub x22, x22, #1\n"
	"	b 1b\n"
	"2:	ret\n"
	"vp_tiny_end:\n"
	"	.popsection\n");

/* Instructions per round outside of loops: 17, and the returns of the two functions. */
enum { ROUND = 19 };

extern const char vp_tiny_begin[] __attribute__((visibility("hidden")));
extern const char vp_tiny_hot[] __attribute__((visibility("hidden")));
extern const char vp_tiny_cold[] __attribute__((visibility("hidden")));
extern const char vp_tiny_hypercall[] __attribute__((visibility("hidden")));
extern const char vp_tiny_mmio[] __attribute__((visibility("hidden")));
extern const char vp_tiny_halt[] __attribute__((visibility("hidden")));
extern const char vp_tiny_end[] __attribute__((visibility("hidden")));

const struct vp_guest_exit_kind *vp_guest_exit_kind(enum vp_guest_exit exit)
{
	/* Three writes to the device before the last one are the results. */
	static const struct vp_guest_exit_kind kinds[VP_GUEST_EXITS] = {
	    [VP_GUEST_HYPERCALL] = {"exits: hypercalls", "selftest_hypercall", {"HVC64"}, 0},
	    [VP_GUEST_MMIO] = {"exits: MMIO", "selftest_mmio", {"DABT_LOW"}, 3},
	    [VP_GUEST_HALT] = {"exits: halts", "selftest_halt", {"WFX"}, 0},
	};

	return &kinds[exit];
}

const struct vp_guest_symbol *vp_guest_symbol(size_t number, struct vp_guest_symbol *ret)
{
	const struct {
		const char *name, *at;
	} symbols[] = {{"selftest_main", vp_tiny_begin}, {VP_GUEST_HOT, vp_tiny_hot},
		       {VP_GUEST_COLD, vp_tiny_cold},    {"selftest_hypercall", vp_tiny_hypercall},
		       {"selftest_mmio", vp_tiny_mmio},  {"selftest_halt", vp_tiny_halt}};

	if (number >= VP_ARRAY_SIZE(symbols))
		return NULL;
	*ret = (struct vp_guest_symbol){symbols[number].name,
					MEMORY + (uint64_t)(symbols[number].at - vp_tiny_begin)};
	return ret;
}

bool vp_guest_has_rip(void)
{
	return false;
}

const char *vp_guest_no_counter(void)
{
	return "the guest's own PMU is not tested on 64-bit Arm";
}

/* Not needed: the guest reads the clock itself. */
void vp_guest_stop_busy(char *memory)
{
}

struct vp_error *vp_guest_make(struct vp_guest *guest)
{
	struct kvm_userspace_memory_region region = {.guest_phys_addr = MEMORY,
						     .memory_size = VP_GUEST_MEMORY_SIZE,
						     .userspace_addr = (uintptr_t)guest->memory};
	struct kvm_vcpu_init model = {0};

	/* Copied before the first stage-2 fault: afterwards, the guest's uncached accesses may not
	 * see writes of the host. */
	memcpy(guest->memory, vp_tiny_begin, (size_t)(vp_tiny_end - vp_tiny_begin));
	if (ioctl(guest->vm, KVM_SET_USER_MEMORY_REGION, &region))
		return vp_error_errno(errno, "KVM rejects the guest's memory");
	if (ioctl(guest->vm, KVM_ARM_PREFERRED_TARGET, &model))
		return vp_error_errno(errno, "KVM does not return the model of a vCPU");
	model.features[0] |= 1U << KVM_ARM_VCPU_PSCI_0_2;
	guest->vcpu = ioctl(guest->vm, KVM_CREATE_VCPU, 0UL);
	if (guest->vcpu < 0 || ioctl(guest->vcpu, KVM_ARM_VCPU_INIT, &model))
		return vp_error_errno(errno, "KVM cannot create a vCPU");
	return NULL;
}

/* `offset`: in struct kvm_regs. */
static struct vp_error *set_register(const struct vp_guest *guest, size_t offset, uint64_t value)
{
	struct kvm_one_reg one = {.id = KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE |
					offset / sizeof(uint32_t),
				  .addr = (uintptr_t)&value};

	if (ioctl(guest->vcpu, KVM_SET_ONE_REG, &one))
		return vp_error_errno(errno, "KVM cannot set a vCPU's registers");
	return NULL;
}

static uint64_t ticks_of(uint64_t ns)
{
	uint64_t hz;

	__asm__("mrs %0, cntfrq_el0" : "=r"(hz));
	return (uint64_t)((double)ns * (double)hz / 1e9);
}

struct vp_error *vp_guest_prepare(struct vp_guest *guest, const struct vp_guest_work *work,
				  struct vp_guest_done *done)
{
	const uint64_t parameters[] = {ticks_of(work->busy_ns),
				       work->exits[VP_GUEST_HYPERCALL],
				       work->exits[VP_GUEST_MMIO],
				       work->exits[VP_GUEST_HALT],
				       DEVICE,
				       ticks_of(1000ULL * work->halt_us)};

	/* The next KVM_RUN completes the last MMIO write, which would change the new state. */
	if (guest->run->exit_reason == KVM_EXIT_MMIO) {
		guest->run->immediate_exit = 1;
		(void)!ioctl(guest->vcpu, KVM_RUN, 0);
		guest->run->immediate_exit = 0;
	}
	for (size_t i = 0; i < VP_ARRAY_SIZE(parameters); i++)
		VP_TRY(set_register(guest,
				    offsetof(struct kvm_regs, regs.regs[FIRST_PARAMETER + i]),
				    parameters[i]));
	return set_register(guest, offsetof(struct kvm_regs, regs.pc), MEMORY);
}

enum vp_guest_request vp_guest_take(struct vp_guest *guest, struct vp_guest_done *done)
{
	const struct kvm_run *run = guest->run;
	uint64_t value;

	if (run->exit_reason != KVM_EXIT_MMIO)
		return VP_GUEST_IS_LOST;
	memcpy(&value, run->mmio.data, sizeof(value));
	switch (run->mmio.phys_addr) {
	case DEVICE:
		done->handled[VP_GUEST_MMIO]++;
		return VP_GUEST_GOES_ON;
	case LOOPS_AT:
		done->loops = value;
		return VP_GUEST_GOES_ON;
	case ROUNDS_AT:
		done->rounds = value;
		return VP_GUEST_GOES_ON;
	case BUSY_AT:
		return VP_GUEST_WAS_BUSY;
	case END_AT:
		return VP_GUEST_ENDS;
	default:
		return VP_GUEST_IS_LOST;
	}
}

void vp_guest_finish(const struct vp_guest *guest, const struct vp_guest_work *work,
		     struct vp_guest_done *done)
{
	done->loops *= VP_GUEST_LOOPS_OF_ROUND;
	done->instructions = done->loops * VP_GUEST_LOOP + done->rounds * ROUND;
}
#endif
