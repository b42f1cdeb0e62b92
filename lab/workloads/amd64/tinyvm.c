/*
 * tinyvm [--cpuid N] [--out N] [--mmio N] [--hlt N] [--msr N] [--loops N] [--wait S]
 *
 * A guest of a few instructions in real mode, straight on /dev/kvm, that executes so many CPUIDs,
 * writes to port 0x80, reads of an address without memory, HLTs (which the VMM just goes on behind:
 * there is no interrupt controller), reads of a model-specific register and loops of two
 * instructions. So every exit is known, and why; and with loops, how many instructions the guest
 * executes. Waits S seconds before and behind, so that a recording can begin and end meanwhile.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY_SIZE 0x10000
#define DEVICE_ADDRESS 0x20000 /* in real mode: segment 0x2000 */

/*
 * Each part: mov ecx, N; jecxz over; loop body; dec ecx; jnz. Counts are put in at the places that
 * `counts` names. CPUID destroys ecx: esi counts.
 */
static const uint8_t code[] = {
    0x66, 0xbe, 0,    0, 0, 0, /* 00 mov esi, N (cpuid) */
    0x66, 0x85, 0xf6,          /* 06 test esi, esi */
    0x74, 0x0a,                /* 09 jz 15 */
    0x66, 0x31, 0xc0,          /* 0b xor eax, eax */
    0x0f, 0xa2,                /* 0e cpuid */
    0x66, 0x4e,                /* 10 dec esi */
    0x75, 0xf7,                /* 12 jnz 0b */
    0x90,                      /* 14 nop */
    0x66, 0xbe, 0,    0, 0, 0, /* 15 mov esi, N (out) */
    0x66, 0x85, 0xf6,          /* 1b test esi, esi */
    0x74, 0x06,                /* 1e jz 26 */
    0xe6, 0x80,                /* 20 out 0x80, al */
    0x66, 0x4e,                /* 22 dec esi */
    0x75, 0xfa,                /* 24 jnz 20 */
    0x66, 0xbe, 0,    0, 0, 0, /* 26 mov esi, N (mmio) */
    0x66, 0x85, 0xf6,          /* 2c test esi, esi */
    0x74, 0x07,                /* 2f jz 38 */
    0xa0, 0x00, 0x00,          /* 31 mov al, [ds:0] */
    0x66, 0x4e,                /* 34 dec esi */
    0x75, 0xf9,                /* 36 jnz 31 */
    0x66, 0xbe, 0,    0, 0, 0, /* 38 mov esi, N (hlt) */
    0x66, 0x85, 0xf6,          /* 3e test esi, esi */
    0x74, 0x05,                /* 41 jz 48 */
    0xf4,                      /* 43 hlt */
    0x66, 0x4e,                /* 44 dec esi */
    0x75, 0xfb,                /* 46 jnz 43 */
    0x66, 0xbe, 0,    0, 0, 0, /* 48 mov esi, N (msr) */
    0x66, 0x85, 0xf6,          /* 4e test esi, esi */
    0x74, 0x0c,                /* 51 jz 5f */
    0x66, 0xb9, 0x1b, 0, 0, 0, /* 53 mov ecx, 0x1b: that of the APIC's address */
    0x0f, 0x32,                /* 59 rdmsr */
    0x66, 0x4e,                /* 5b dec esi */
    0x75, 0xfa,                /* 5d jnz 59 */
    0x66, 0xbe, 0,    0, 0, 0, /* 5f mov esi, N (loops) */
    0x66, 0x85, 0xf6,          /* 65 test esi, esi */
    0x74, 0x04,                /* 68 jz 6e */
    0x66, 0x4e,                /* 6a dec esi */
    0x75, 0xfc,                /* 6c jnz 6a */
    0xb0, 0x01,                /* 6e mov al, 1 */
    0xe6, 0xf4,                /* 70 out 0xf4, al: the end */
};

enum part { PART_CPUID, PART_OUT, PART_MMIO, PART_HLT, PART_MSR, PART_LOOPS, PARTS };

static const struct {
	const char *option;
	size_t place; /* of the count in `code` */
} parts[PARTS] = {{"--cpuid", 0x02}, {"--out", 0x17}, {"--mmio", 0x28},
		  {"--hlt", 0x3a},   {"--msr", 0x4a}, {"--loops", 0x61}};

enum { END_PORT = 0xf4, INTERRUPTS_ON = 1 << 9 };

static void fail(const char *what)
{
	work_usage("%s: %s", what, strerror(errno));
}

static int make_vm(int kvm, const uint32_t counts[PARTS], struct kvm_run **run)
{
	int vm = ioctl(kvm, KVM_CREATE_VM, 0);
	uint8_t *memory =
	    mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kvm_userspace_memory_region region = {.memory_size = MEMORY_SIZE,
						     .userspace_addr = (uintptr_t)memory};

	if (vm < 0 || memory == MAP_FAILED || ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region))
		fail("making a VM");
	memcpy(memory, code, sizeof(code));
	for (size_t i = 0; i < PARTS; i++)
		memcpy(memory + parts[i].place, &counts[i], sizeof(counts[i]));
	int vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (vcpu < 0 || size < 0)
		fail("making a vCPU");
	*run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
	if (*run == MAP_FAILED)
		fail("mapping the vCPU");
	return vcpu;
}

static void set_registers(int vcpu)
{
	struct kvm_sregs system;
	/* Nothing interrupts the guest itself, but Bochs holds back the host's interrupts, too,
	 * while a guest has its own off: see docs/lab.md. */
	struct kvm_regs registers = {.rip = 0, .rflags = INTERRUPTS_ON | 2};

	if (ioctl(vcpu, KVM_GET_SREGS, &system))
		fail("reading registers");
	system.cs.base = system.cs.selector = 0;
	system.ds.base = DEVICE_ADDRESS;
	system.ds.selector = DEVICE_ADDRESS >> 4;
	if (ioctl(vcpu, KVM_SET_SREGS, &system) || ioctl(vcpu, KVM_SET_REGS, &registers))
		fail("setting registers");
}

static void run_guest(int vcpu, struct kvm_run *run, uint64_t seen[PARTS])
{
	for (;;) {
		if (ioctl(vcpu, KVM_RUN, 0)) {
			if (errno != EINTR)
				fail("running the guest");
			continue;
		}
		switch (run->exit_reason) {
		case KVM_EXIT_IO:
			if (run->io.port == END_PORT)
				return;
			seen[PART_OUT]++;
			break;
		case KVM_EXIT_MMIO:
			seen[PART_MMIO]++;
			break;
		case KVM_EXIT_HLT:
			seen[PART_HLT]++;
			break;
		default:
			fprintf(stderr, "tinyvm: unexpected exit %u\n", run->exit_reason);
			_exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	uint32_t counts[PARTS] = {0};
	uint64_t seen[PARTS] = {0};
	double wait = 0;
	struct kvm_run *run;

	work_init("tinyvm");
	for (int i = 1; i < argc; i += 2) {
		size_t part = 0;
		double value = work_number(argv[i], argv[i + 1]);
		while (part < PARTS && strcmp(argv[i], parts[part].option))
			part++;
		if (part < PARTS)
			counts[part] = (uint32_t)value;
		else if (!strcmp(argv[i], "--wait"))
			wait = value;
		else
			work_usage("unknown option '%s'", argv[i]);
	}
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (kvm < 0)
		fail("/dev/kvm");
	int vcpu = make_vm(kvm, counts, &run);
	set_registers(vcpu);
	work_sleep(wait);
	run_guest(vcpu, run, seen);
	work_sleep(wait);
	printf("tinyvm: cpuid=%u out=%llu mmio=%llu hlt=%llu\n", counts[PART_CPUID],
	       (unsigned long long)seen[PART_OUT], (unsigned long long)seen[PART_MMIO],
	       (unsigned long long)seen[PART_HLT]);
	work_summary();
	return 0;
}
