/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's program for x86-64, in real mode without paging. KVM provides interrupt controllers,
 * so that HLT exits to KVM; the local APIC's timer ends the halt.
 */
#ifdef __x86_64__
#include "base/error.h"
#include "base/macros.h"
#include "selftest/guest.h"
#include "selftest/guest_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/alloc.h"

enum {
	CODE = 0x1000,
	PARAMETERS = 0x600,
	STACK = 0xf000,
	VECTOR = 0x40,
	DEVICE = 0x40000, /* no memory there: segment 0x4000 */
	TEST_PORT = 0x80,
	BUSY_PORT = 0xf5,
	END_PORT = 0xf4,
	INTERRUPTS_ON = 1 << 9,
	X2APIC = 0xc00, /* value of IA32_APIC_BASE: enabled, x2APIC mode */
	MAX_CPUIDS = 256,
};

/* Parameters and results at PARAMETERS, at the offsets that the program uses. */
struct parameters {
	uint32_t wants_busy;            /* 00 */
	volatile uint32_t stop;         /* 04 */
	uint32_t counts;                /* 08 */
	uint32_t period;                /* 0c: period of the timer, ns */
	uint64_t loops;                 /* 10: loops of the cold function */
	uint64_t rounds;                /* 18 */
	uint64_t before, after;         /* 20, 28: the counter at both ends */
	uint32_t exits[VP_GUEST_EXITS]; /* 30 */
};

/*
 * Both functions have the same instructions at the same offset in a cache line. Rounds have random
 * lengths: a strictly periodic program may run in lockstep with the sampling.
 */
__asm__(".pushsection .rodata\n"
	".code16\n"
	"	.balign 64\n"
	"vp_tiny_begin:\n"
	"	movl $1, %esi\n"
	"	cmpl $0, 0x600\n"
	"	je 4f\n"
	"	cmpl $0, 0x608\n"
	"	je 2f\n"
	"	xorl %ecx, %ecx\n"
	"	rdpmc\n"
	"	movl %eax, 0x620\n"
	"	movl %edx, 0x624\n"
	"2:	imull $1664525, %esi, %esi\n"
	"	addl $1013904223, %esi\n"
	"	movl %esi, %ebx\n"
	"	shrl $22, %ebx\n"
	"	addl $512, %ebx\n" /* 512 to 1535 loops */
	"	leal (,%ebx,4), %ecx\n"
	"	call vp_tiny_hot\n"
	"	movl %ebx, %ecx\n"
	"	call vp_tiny_cold\n"
	"	addl %ebx, 0x610\n"
	"	adcl $0, 0x614\n"
	"	addl $1, 0x618\n"
	"	adcl $0, 0x61c\n"
	"	cmpl $0, 0x604\n"
	"	je 2b\n" /* end of a round */
	"	cmpl $0, 0x608\n"
	"	je 3f\n"
	"	xorl %ecx, %ecx\n"
	"	rdpmc\n"
	"	movl %eax, 0x628\n"
	"	movl %edx, 0x62c\n"
	"3:	outb %al, $0xf5\n"
	"4:	call vp_tiny_cpuid\n"
	"	call vp_tiny_port\n"
	"	call vp_tiny_mmio\n"
	"	call vp_tiny_msr\n"
	"	cmpl $0, 0x644\n"
	"	je 5f\n"
	"	movl $0x80f, %ecx\n" /* spurious interrupt vector register: enables the APIC */
	"	movl $0x1ff, %eax\n"
	"	xorl %edx, %edx\n"
	"	wrmsr\n"
	"	movl $0x83e, %ecx\n" /* timer divide configuration: 1 */
	"	movl $0xb, %eax\n"
	"	wrmsr\n"
	"	movl $0x832, %ecx\n" /* LVT timer: periodic, VECTOR */
	"	movl $0x20040, %eax\n"
	"	wrmsr\n"
	"	movl $0x838, %ecx\n" /* the initial count starts the timer */
	"	movl 0x60c, %eax\n"
	"	wrmsr\n"
	"	call vp_tiny_halt\n"
	"	movl $0x838, %ecx\n"
	"	xorl %eax, %eax\n"
	"	xorl %edx, %edx\n"
	"	wrmsr\n"
	"5:	outb %al, $0xf4\n"
	"	jmp 5b\n"
	"	.balign 64\n"
	"vp_tiny_hot:\n"
	"1:	imull %eax, %eax\n"
	"	imull %eax, %eax\n"
	"	imull %eax, %eax\n"
	"	imull %eax, %eax\n"
	"	decl %ecx\n"
	"	jnz 1b\n"
	"	ret\n"
	"	.balign 64\n"
	"vp_tiny_cold:\n"
	"1:	imull %eax, %eax\n"
	"	imull %eax, %eax\n"
	"	imull %eax, %eax\n"
	"	imull %eax, %eax\n"
	"	decl %ecx\n"
	"	jnz 1b\n"
	"	ret\n"
	"	.balign 64\n"
	"vp_tiny_cpuid:\n"
	"	movl 0x630, %esi\n"
	"1:	testl %esi, %esi\n"
	"	jz 2f\n"
	"	xorl %eax, %eax\n"
	"	cpuid\n"
	"	decl %esi\n"
	"	jmp 1b\n"
	"2:	ret\n"
	"	.balign 64\n"
	"vp_tiny_port:\n"
	"	movl 0x634, %esi\n"
	"1:	testl %esi, %esi\n"
	"	jz 2f\n"
	"	outb %al, $0x80\n"
	"	decl %esi\n"
	"	jmp 1b\n"
	"2:	ret\n"
	"	.balign 64\n"
	"vp_tiny_mmio:\n"
	"	movl 0x638, %esi\n"
	"1:	testl %esi, %esi\n"
	"	jz 2f\n"
	"	movb %fs:0, %al\n"
	"	decl %esi\n"
	"	jmp 1b\n"
	"2:	ret\n"
	"	.balign 64\n"
	"vp_tiny_msr:\n"
	"	movl 0x63c, %esi\n"
	"1:	testl %esi, %esi\n"
	"	jz 2f\n"
	"	movl $0x1b, %ecx\n" /* IA32_APIC_BASE */
	"	rdmsr\n"
	"	decl %esi\n"
	"	jmp 1b\n"
	"2:	ret\n"
	"	.balign 64\n"
	"vp_tiny_halt:\n"
	"	movl 0x644, %esi\n"
	"1:	testl %esi, %esi\n"
	"	jz 2f\n"
	"	sti\n"
	"	hlt\n"
	"	decl %esi\n"
	"	jmp 1b\n"
	"2:	ret\n"
	"	.balign 64\n"
	"vp_tiny_interrupt:\n"
	"	pushl %eax\n"
	"	pushl %ecx\n"
	"	pushl %edx\n"
	"	movl $0x80b, %ecx\n" /* end of interrupt (EOI) */
	"	xorl %eax, %eax\n"
	"	xorl %edx, %edx\n"
	"	wrmsr\n"
	"	popl %edx\n"
	"	popl %ecx\n"
	"	popl %eax\n"
	"	iret\n"
	"vp_tiny_end:\n"
	".code64\n"
	"	.popsection\n");

/* Instructions per round outside of loops: 15, and the returns of the two functions. */
enum { ROUND = 17 };

extern const char vp_tiny_begin[] __attribute__((visibility("hidden")));
extern const char vp_tiny_hot[] __attribute__((visibility("hidden")));
extern const char vp_tiny_cold[] __attribute__((visibility("hidden")));
extern const char vp_tiny_cpuid[] __attribute__((visibility("hidden")));
extern const char vp_tiny_port[] __attribute__((visibility("hidden")));
extern const char vp_tiny_mmio[] __attribute__((visibility("hidden")));
extern const char vp_tiny_msr[] __attribute__((visibility("hidden")));
extern const char vp_tiny_halt[] __attribute__((visibility("hidden")));
extern const char vp_tiny_interrupt[] __attribute__((visibility("hidden")));
extern const char vp_tiny_end[] __attribute__((visibility("hidden")));

const struct vp_guest_exit_kind *vp_guest_exit_kind(enum vp_guest_exit exit)
{
	/* The busy time ends with a port write. Accesses to missing memory are NPF exits; timers
	 * are programmed by MSR writes. */
	static const struct vp_guest_exit_kind kinds[VP_GUEST_EXITS] = {
	    [VP_GUEST_CPUID] = {"exits: CPUID", "selftest_cpuid", {"CPUID"}, 0},
	    [VP_GUEST_PORT] = {"exits: port writes",
			       "selftest_port",
			       {"IOIO", "IO_INSTRUCTION"},
			       1},
	    [VP_GUEST_MMIO] = {"exits: MMIO reads",
			       "selftest_mmio",
			       {"NPF", "EPT_VIOLATION", "EPT_MISCONFIG"},
			       VP_GUEST_OTHERS_UNKNOWN},
	    [VP_GUEST_MSR] = {"exits: MSR reads",
			      "selftest_msr",
			      {"MSR", "MSR_READ"},
			      VP_GUEST_OTHERS_UNKNOWN},
	    [VP_GUEST_HALT] = {"exits: halts", "selftest_halt", {"HLT"}, 0},
	};

	return &kinds[exit];
}

const struct vp_guest_symbol *vp_guest_symbol(size_t number, struct vp_guest_symbol *ret)
{
	const struct {
		const char *name, *at;
	} symbols[] = {{"selftest_main", vp_tiny_begin},
		       {VP_GUEST_HOT, vp_tiny_hot},
		       {VP_GUEST_COLD, vp_tiny_cold},
		       {"selftest_cpuid", vp_tiny_cpuid},
		       {"selftest_port", vp_tiny_port},
		       {"selftest_mmio", vp_tiny_mmio},
		       {"selftest_msr", vp_tiny_msr},
		       {"selftest_halt", vp_tiny_halt},
		       {"selftest_interrupt", vp_tiny_interrupt}};

	if (number >= VP_ARRAY_SIZE(symbols))
		return NULL;
	*ret = (struct vp_guest_symbol){symbols[number].name,
					CODE + (uint64_t)(symbols[number].at - vp_tiny_begin)};
	return ret;
}

bool vp_guest_has_rip(void)
{
	return true;
}

const char *vp_guest_no_counter(void)
{
	return "KVM gives the guest no PMU; lent counters need a Linux guest with vperf-agent";
}

static struct parameters *parameters_of(char *memory)
{
	return (struct parameters *)(void *)(memory + PARAMETERS);
}

void vp_guest_stop_busy(char *memory)
{
	parameters_of(memory)->stop = 1;
}

/* Gives the vCPU all CPUID features that KVM supports; x2APIC requires it. */
static struct vp_error *set_cpuid(const struct vp_guest *guest)
{
	VP_AUTO_FREE struct kvm_cpuid2 *cpuid =
	    vp_alloc(sizeof(*cpuid) + MAX_CPUIDS * sizeof(cpuid->entries[0]));

	memset(cpuid, 0, sizeof(*cpuid));
	cpuid->nent = MAX_CPUIDS;
	if (ioctl(guest->kvm, KVM_GET_SUPPORTED_CPUID, cpuid) ||
	    ioctl(guest->vcpu, KVM_SET_CPUID2, cpuid))
		return vp_error_errno(errno, "KVM cannot set the CPUID of a vCPU");
	return NULL;
}

struct vp_error *vp_guest_make(struct vp_guest *guest)
{
	struct kvm_userspace_memory_region region = {.memory_size = VP_GUEST_MEMORY_SIZE,
						     .userspace_addr = (uintptr_t)guest->memory};

	/* Intel processors without unrestricted guest need pages for emulating real mode. */
	if (ioctl(guest->vm, KVM_SET_TSS_ADDR, 0xfffbd000UL) && errno != EINVAL)
		return vp_error_errno(errno, "KVM cannot place its own pages (KVM_SET_TSS_ADDR)");
	if (ioctl(guest->vm, KVM_SET_USER_MEMORY_REGION, &region))
		return vp_error_errno(errno, "KVM rejects the guest's memory");
	if (ioctl(guest->vm, KVM_CREATE_IRQCHIP, 0))
		return vp_error_errno(errno, "KVM cannot create interrupt controllers for a guest");
	guest->vcpu = ioctl(guest->vm, KVM_CREATE_VCPU, 0UL);
	if (guest->vcpu < 0)
		return vp_error_errno(errno, "KVM cannot create a vCPU");
	return set_cpuid(guest);
}

/* Sets an MSR; false: KVM does not support it or ignores the value. */
static bool set_msr(const struct vp_guest *guest, uint32_t number, uint64_t value)
{
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry;
	} msrs = {{.nmsrs = 1}, {.index = number, .data = value}};

	if (ioctl(guest->vcpu, KVM_SET_MSRS, &msrs) != 1)
		return false;
	msrs.entry.data = 0;
	return ioctl(guest->vcpu, KVM_GET_MSRS, &msrs) == 1 && msrs.entry.data == value;
}

/* Programs the guest's first counter to count instructions; the event code is the same on AMD and
 * Intel. */
static bool start_counter(const struct vp_guest *guest)
{
	enum {
		INTEL_EVENT = 0x186,
		INTEL_GLOBAL = 0x38f,
		AMD_EVENT = 0xc0010200u,
		AMD_OLD_EVENT = 0xc0010000u
	};
	const uint64_t instructions = 0x4300c0; /* event select: instructions, all modes, enabled */

	if (set_msr(guest, INTEL_EVENT, instructions)) {
		(void)set_msr(guest, INTEL_GLOBAL, 1);
		return true;
	}
	return set_msr(guest, AMD_EVENT, instructions) ||
	       set_msr(guest, AMD_OLD_EVENT, instructions);
}

static struct vp_error *set_registers(const struct vp_guest *guest)
{
	struct kvm_sregs system;
	/* Interrupts must be on: some emulators of a processor also delay the host's interrupts
	 * while the guest's are off (docs/lab.md). */
	struct kvm_regs registers = {.rip = CODE, .rsp = STACK, .rflags = INTERRUPTS_ON | 2};
	struct kvm_mp_state runnable = {.mp_state = KVM_MP_STATE_RUNNABLE};

	if (ioctl(guest->vcpu, KVM_GET_SREGS, &system))
		return vp_error_errno(errno, "KVM cannot read a vCPU's registers");
	system.cs.base = system.cs.selector = 0;
	system.ds.base = system.ds.selector = system.ss.base = system.ss.selector = 0;
	system.fs.base = DEVICE;
	system.fs.selector = DEVICE >> 4;
	system.apic_base |= X2APIC;
	if (ioctl(guest->vcpu, KVM_SET_SREGS, &system) ||
	    ioctl(guest->vcpu, KVM_SET_REGS, &registers) ||
	    ioctl(guest->vcpu, KVM_SET_MP_STATE, &runnable))
		return vp_error_errno(errno, "KVM cannot set a vCPU's registers");
	return NULL;
}

struct vp_error *vp_guest_prepare(struct vp_guest *guest, const struct vp_guest_work *work,
				  struct vp_guest_done *done)
{
	struct parameters *parameters = parameters_of(guest->memory);
	uint16_t handler = (uint16_t)(CODE + (vp_tiny_interrupt - vp_tiny_begin));

	memset(guest->memory, 0, CODE);
	memcpy(guest->memory + CODE, vp_tiny_begin, (size_t)(vp_tiny_end - vp_tiny_begin));
	memcpy(guest->memory + 4 * VECTOR, &handler, sizeof(handler)); /* interrupt vector table */
	parameters->wants_busy = work->busy_ns != 0;
	parameters->period = work->halt_us * 1000;
	memcpy(parameters->exits, work->exits, sizeof(parameters->exits));
	VP_TRY(set_registers(guest));
	done->has_counter = work->counts && start_counter(guest);
	parameters->counts = done->has_counter;
	return NULL;
}

enum vp_guest_request vp_guest_take(struct vp_guest *guest, struct vp_guest_done *done)
{
	const struct kvm_run *run = guest->run;

	if (run->exit_reason == KVM_EXIT_MMIO && run->mmio.phys_addr == DEVICE)
		done->handled[VP_GUEST_MMIO]++;
	else if (run->exit_reason != KVM_EXIT_IO)
		return VP_GUEST_IS_LOST;
	else if (run->io.port == TEST_PORT)
		done->handled[VP_GUEST_PORT]++;
	else
		return run->io.port == BUSY_PORT  ? VP_GUEST_WAS_BUSY
		       : run->io.port == END_PORT ? VP_GUEST_ENDS
						  : VP_GUEST_IS_LOST;
	return VP_GUEST_GOES_ON;
}

void vp_guest_finish(const struct vp_guest *guest, const struct vp_guest_work *work,
		     struct vp_guest_done *done)
{
	const struct parameters *parameters = parameters_of(guest->memory);

	done->loops = parameters->loops * VP_GUEST_LOOPS_OF_ROUND;
	done->rounds = parameters->rounds;
	done->instructions = done->loops * VP_GUEST_LOOP + done->rounds * ROUND;
	done->counted = parameters->after - parameters->before;
}
#endif
