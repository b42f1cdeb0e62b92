/*
 * tinyvm [--loops N] [--hvc N] [--mmio N] [--rounds N] [--spread N] [--wait S] [--protected 1]
 *
 * For the host: a guest of a few instructions at EL1, straight on /dev/kvm, that in each round
 * executes N loops of six instructions, so many HVCs (asking PSCI's version, which KVM answers) and
 * reads of an address without memory, which go to this program. So every exit is known, and why,
 * and how many instructions the guest retires. Waits S seconds before and behind, so that a
 * recording can begin and end meanwhile. --spread: before each exit, 0 to N - 1 loops of two
 * instructions at random (N: a power of two); otherwise all exits are alike, and regular samples
 * hit the same instructions again and again. --protected: a VM of pKVM, whose memory the host
 * cannot read.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY_SIZE 0x10000
#define MEMORY_ADDRESS 0x40000000
#define DEVICE_ADDRESS 0x10000000 /* no memory there … */
#define END_ADDRESS 0x10000008    /* … and a write here is the end */
#define PROTECTED_VM (1UL << 31)  /* type of a VM, since Linux 7.0 */

/*
 * The guest: x19 loops, x20 hvc, x21 mmio, x22 rounds (at least 1), x23 DEVICE_ADDRESS. HVC changes
 * x0 to x3. With --spread, x25 is N - 1, x26 the random number, x27 its factor.
 */
__asm__(".macro spread_out\n"
	"	mul x26, x26, x27\n"
	"	lsr x28, x26, #40\n"
	"	and x28, x28, x25\n"
	"	cbz x28, 9f\n"
	"8:	subs x28, x28, #1\n"
	"	b.ne 8b\n"
	"9:\n"
	".endm\n"
	".macro guest spreads\n"
	"1:	mov x24, x19\n"
	"	cbz x24, 3f\n"
	"2:	nop\n"
	"	nop\n"
	"	nop\n"
	"	nop\n"
	"	subs x24, x24, #1\n"
	"	b.ne 2b\n"
	"3:	mov x24, x20\n"
	"4:	cbz x24, 5f\n"
	"	.if \\spreads\n"
	"	spread_out\n"
	"	.endif\n"
	"	mov w0, #0x84000000\n"
	"	hvc #0\n"
	"	sub x24, x24, #1\n"
	"	b 4b\n"
	"5:	mov x24, x21\n"
	"6:	cbz x24, 7f\n"
	"	.if \\spreads\n"
	"	spread_out\n"
	"	.endif\n"
	"	ldr w0, [x23]\n"
	"	sub x24, x24, #1\n"
	"	b 6b\n"
	"7:	subs x22, x22, #1\n"
	"	b.ne 1b\n"
	"	str w0, [x23, #8]\n"
	"	b .\n"
	".endm\n"
	".pushsection .rodata\n"
	"	.balign 4\n"
	"guest_begin:\n"
	"	guest 0\n"
	"guest_end:\n"
	"spread_guest_begin:\n"
	"	guest 1\n"
	"spread_guest_end:\n"
	"	.popsection\n");

#define ADDRESS_OF(symbol)                                                                         \
	({                                                                                         \
		const char *address_;                                                              \
		__asm__("adrp %0, " symbol "\n"                                                    \
			"add %0, %0, :lo12:" symbol                                                \
			: "=r"(address_));                                                         \
		address_;                                                                          \
	})
#define SEED 0x9e3779b97f4a7c15
#define FACTOR 0x5851f42d4c957f2d

enum part { PART_LOOPS, PART_HVC, PART_MMIO, PART_ROUNDS, PARTS };

static const char *const options[PARTS] = {"--loops", "--hvc", "--mmio", "--rounds"};

static void fail(const char *what)
{
	work_usage("%s: %s", what, strerror(errno));
}

static void *map_memory(size_t size, int fd)
{
	int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (memory == MAP_FAILED)
		fail("mapping memory");
	return memory;
}

/* Puts the guest's code at the begin of its memory. */
static void copy_guest(char *memory, bool spreads)
{
	const char *begin = spreads ? ADDRESS_OF("spread_guest_begin") : ADDRESS_OF("guest_begin");
	const char *end = spreads ? ADDRESS_OF("spread_guest_end") : ADDRESS_OF("guest_end");

	memcpy(memory, begin, (size_t)(end - begin));
}

/* Loops of that many exits in the guest that spreads them. */
static uint64_t spread_loops(uint64_t exits, uint64_t spread)
{
	uint64_t random = SEED, sum = 0;

	for (uint64_t i = 0; spread && i < exits; i++) {
		random *= FACTOR;
		sum += random >> 40 & (spread - 1);
	}
	return sum;
}

static int make_vm(int kvm, unsigned long type, bool spreads, struct kvm_run **run)
{
	int vm = ioctl(kvm, KVM_CREATE_VM, type);
	char *memory = map_memory(MEMORY_SIZE, -1);
	struct kvm_userspace_memory_region region = {.guest_phys_addr = MEMORY_ADDRESS,
						     .memory_size = MEMORY_SIZE,
						     .userspace_addr = (uintptr_t)memory};
	struct kvm_vcpu_init model = {0};

	copy_guest(memory, spreads);
	if (vm < 0 || ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) ||
	    ioctl(vm, KVM_ARM_PREFERRED_TARGET, &model))
		fail("making a VM");
	int vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	model.features[0] |= 1U << KVM_ARM_VCPU_PSCI_0_2;
	if (vcpu < 0 || size < 0 || ioctl(vcpu, KVM_ARM_VCPU_INIT, &model))
		fail("making a vCPU");
	*run = map_memory((size_t)size, vcpu);
	return vcpu;
}

/* `place` is the offset in struct kvm_regs. */
static void set_register(int vcpu, size_t place, uint64_t value)
{
	struct kvm_one_reg one = {.id = KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE |
					place / sizeof(uint32_t),
				  .addr = (uintptr_t)&value};

	if (ioctl(vcpu, KVM_SET_ONE_REG, &one))
		fail("setting registers");
}

static void set_registers(int vcpu, const uint64_t counts[PARTS], uint64_t spread)
{
	const uint64_t random[] = {spread - 1, SEED, FACTOR};

	for (size_t i = 0; i < PARTS; i++)
		set_register(vcpu, offsetof(struct kvm_regs, regs.regs[19 + i]), counts[i]);
	set_register(vcpu, offsetof(struct kvm_regs, regs.regs[19 + PARTS]), DEVICE_ADDRESS);
	for (size_t i = 0; i < 3; i++)
		set_register(vcpu, offsetof(struct kvm_regs, regs.regs[25 + i]), random[i]);
	set_register(vcpu, offsetof(struct kvm_regs, regs.pc), MEMORY_ADDRESS);
}

/* Returns the reads that came here. */
static uint64_t run_guest(int vcpu, struct kvm_run *run)
{
	for (uint64_t reads = 0;;) {
		if (ioctl(vcpu, KVM_RUN, 0)) {
			if (errno != EINTR)
				fail("running the guest");
			continue;
		}
		if (run->exit_reason != KVM_EXIT_MMIO)
			work_usage("unexpected exit %u", run->exit_reason);
		if (run->mmio.is_write && run->mmio.phys_addr == END_ADDRESS)
			return reads;
		reads++;
	}
}

int main(int argc, char **argv)
{
	uint64_t counts[PARTS] = {[PART_ROUNDS] = 1};
	double wait = 0;
	unsigned long type = 0;
	uint64_t spread = 0;
	struct kvm_run *run;

	work_init("tinyvm");
	for (int i = 1; i < argc; i += 2) {
		size_t part = 0;
		double value = work_number(argv[i], argv[i + 1]);
		while (part < PARTS && strcmp(argv[i], options[part]))
			part++;
		if (part < PARTS)
			counts[part] = (uint64_t)value;
		else if (!strcmp(argv[i], "--spread"))
			spread = (uint64_t)value;
		else if (!strcmp(argv[i], "--wait"))
			wait = value;
		else if (!strcmp(argv[i], "--protected"))
			type = value > 0 ? PROTECTED_VM : 0;
		else
			work_usage("unknown option '%s'", argv[i]);
	}
	if (!counts[PART_ROUNDS])
		work_usage("'--rounds' needs at least 1");
	if (spread & (spread - 1))
		work_usage("'--spread' needs a power of two");
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (kvm < 0)
		fail("/dev/kvm");
	int vcpu = make_vm(kvm, type, spread, &run);
	set_registers(vcpu, counts, spread);
	work_sleep(wait);
	uint64_t start = work_now(), reads = run_guest(vcpu, run), ns = work_now() - start;
	work_sleep(wait);
	uint64_t exits = (counts[PART_HVC] + counts[PART_MMIO]) * counts[PART_ROUNDS];
	printf("tinyvm: loops=%llu hvc=%llu mmio=%llu spread=%llu run_s=%.9f\n",
	       (unsigned long long)(counts[PART_LOOPS] * counts[PART_ROUNDS]),
	       (unsigned long long)(counts[PART_HVC] * counts[PART_ROUNDS]),
	       (unsigned long long)reads, (unsigned long long)spread_loops(exits, spread),
	       (double)ns / 1e9);
	work_summary();
	return 0;
}
