/*
 * tinyvm [--cpuid N] [--out N] [--mmio N] [--hlt N] [--msr N] [--pause N] [--loops N] [--vcpus N]
 *        [--invalid N] [--wait S] [--vms N [--close 1]]
 * tinyvm [--ipi N] [--tick N [--period US]] [--handler N] [--wait S]
 *
 * A guest of a few instructions in real mode, straight on /dev/kvm, that executes so many CPUIDs,
 * writes to port 0x80, reads of an address without memory, HLTs (which the VMM just goes on behind:
 * there is no interrupt controller), reads of a model-specific register, PAUSEs and loops of two
 * instructions (on each of its vCPUs). So every exit is known, and why; and with loops, how many
 * instructions the guest executes. At its end, each vCPU can get a state that the processor refuses
 * to enter, and is entered so many times (--invalid). Waits S seconds before and behind, so that a
 * recording can begin and end meanwhile. It does all that in so many VMs one after another (--vms),
 * each in a thread of its own; those that have run stay open, or are closed (--close 1).
 *
 * With --ipi and --tick it has KVM's interrupt controllers, in x2APIC mode: it sends so many
 * interrupts to a second vCPU, which halts between them; then it halts so many times, until the
 * next interrupt of its own timer. How many interrupts both handled is printed. With --handler,
 * each interrupt handler executes N loops of two instructions, with interrupts masked.
 *
 * Also printed is what the scheduler counted of the vCPUs, but not of that second one: how often
 * they blocked, and how many nanoseconds they waited for a pCPU.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MEMORY_SIZE 0x10000
#define DEVICE_ADDRESS 0x20000 /* in real mode: segment 0x2000 */

/*
 * Each part: mov esi, N; jump over it if that is 0; loop body; dec esi; jnz. Counts are put in at
 * the places that `parts` has. CPUID destroys ecx: esi counts.
 */
static const uint8_t code[] = {
    0x66, 0xbe, 0, 0, 0, 0,       /* 00 mov esi, N (cpuid) */
    0x66, 0x85, 0xf6,             /* 06 test esi, esi */
    0x74, 0x0a,                   /* 09 jz 15 */
    0x66, 0x31, 0xc0,             /* 0b xor eax, eax */
    0x0f, 0xa2,                   /* 0e cpuid */
    0x66, 0x4e,                   /* 10 dec esi */
    0x75, 0xf7,                   /* 12 jnz 0b */
    0x90,                         /* 14 nop */
    0x66, 0xbe, 0, 0, 0, 0,       /* 15 mov esi, N (out) */
    0x66, 0x85, 0xf6,             /* 1b test esi, esi */
    0x74, 0x06,                   /* 1e jz 26 */
    0xe6, 0x80,                   /* 20 out 0x80, al */
    0x66, 0x4e,                   /* 22 dec esi */
    0x75, 0xfa,                   /* 24 jnz 20 */
    0x66, 0xbe, 0, 0, 0, 0,       /* 26 mov esi, N (mmio) */
    0x66, 0x85, 0xf6,             /* 2c test esi, esi */
    0x74, 0x07,                   /* 2f jz 38 */
    0xa0, 0x00, 0x00,             /* 31 mov al, [ds:0] */
    0x66, 0x4e,                   /* 34 dec esi */
    0x75, 0xf9,                   /* 36 jnz 31 */
    0x66, 0xbe, 0, 0, 0, 0,       /* 38 mov esi, N (hlt) */
    0x66, 0x85, 0xf6,             /* 3e test esi, esi */
    0x74, 0x05,                   /* 41 jz 48 */
    0xf4,                         /* 43 hlt */
    0x66, 0x4e,                   /* 44 dec esi */
    0x75, 0xfb,                   /* 46 jnz 43 */
    0x66, 0xbe, 0, 0, 0, 0,       /* 48 mov esi, N (msr) */
    0x66, 0x85, 0xf6,             /* 4e test esi, esi */
    0x74, 0x0c,                   /* 51 jz 5f */
    0x66, 0xb9, 0x1b, 0, 0, 0,    /* 53 mov ecx, 0x1b: that of the APIC's address */
    0x0f, 0x32,                   /* 59 rdmsr */
    0x66, 0x4e,                   /* 5b dec esi */
    0x75, 0xfa,                   /* 5d jnz 59 */
    0x66, 0xbe, 0, 0, 0, 0,       /* 5f mov esi, N (pause) */
    0x66, 0x85, 0xf6,             /* 65 test esi, esi */
    0x74, 0x06,                   /* 68 jz 70 */
    0xf3, 0x90,                   /* 6a pause */
    0x66, 0x4e,                   /* 6c dec esi */
    0x75, 0xfa,                   /* 6e jnz 6a */
    0x66, 0xbe, 0, 0, 0, 0,       /* 70 mov esi, N (ipi) */
    0x66, 0x85, 0xf6,             /* 76 test esi, esi */
    0x74, 0x18,                   /* 79 jz 93 */
    0x66, 0xb9, 0x30, 8, 0, 0,    /* 7b mov ecx, 0x830: the interrupt command */
    0x66, 0xb8, 0x40, 0x40, 0, 0, /* 81 mov eax, 0x4040: VECTOR, fixed, assert */
    0x66, 0xba, 1, 0, 0, 0,       /* 87 mov edx, 1: the second vCPU */
    0x0f, 0x30,                   /* 8d wrmsr */
    0x66, 0x4e,                   /* 8f dec esi */
    0x75, 0xfa,                   /* 91 jnz 8d */
    0x66, 0xbe, 0, 0, 0, 0,       /* 93 mov esi, N (tick) */
    0x66, 0x85, 0xf6,             /* 99 test esi, esi */
    0x74, 0x07,                   /* 9c jz a5 */
    0xfb,                         /* 9e sti */
    0xf4,                         /* 9f hlt */
    0x66, 0x4e,                   /* a0 dec esi */
    0x75, 0xfb,                   /* a2 jnz 9f */
    0xfa,                         /* a4 cli */
    0x66, 0xbe, 0, 0, 0, 0,       /* a5 mov esi, N (loops) */
    0x66, 0x85, 0xf6,             /* ab test esi, esi */
    0x74, 0x04,                   /* ae jz b4 */
    0x66, 0x4e,                   /* b0 dec esi */
    0x75, 0xfc,                   /* b2 jnz b0 */
    0xb0, 0x01,                   /* b4 mov al, 1 */
    0xe6, 0xf4,                   /* b6 out 0xf4, al: the end */
    0xfb,                         /* b8 sti: the second vCPU begins here */
    0xf4,                         /* b9 hlt */
    0xeb, 0xfd,                   /* ba jmp b9 */
    /* The interrupts' handler: it counts (es:[HANDLED]), and says that it is over. */
    0x26, 0x66, 0xff, 0x06, 0x10, 0x01, /* bc inc dword [es:0x110] */
    0x66, 0xbb, 0, 0, 0, 0,             /* c2 mov ebx, N (handler) */
    0x66, 0x43,                         /* c8 inc ebx */
    0x66, 0x4b,                         /* ca dec ebx */
    0x75, 0xfc,                         /* cc jnz ca */
    0x66, 0xb9, 0x0b, 8, 0, 0,          /* ce mov ecx, 0x80b: the end of an interrupt */
    0x66, 0x31, 0xc0,                   /* d4 xor eax, eax */
    0x66, 0x31, 0xd2,                   /* d7 xor edx, edx */
    0x0f, 0x30,                         /* da wrmsr */
    0xcf,                               /* dc iret */
};

enum {
	RECEIVER = 0xb8,
	HANDLER = 0xbc,
	VECTOR = 0x40,
	HANDLED = 0x110,
	STACKS = 0xf000,
	STACK_SIZE = 0x100
};

enum part {
	PART_CPUID,
	PART_OUT,
	PART_MMIO,
	PART_HLT,
	PART_MSR,
	PART_PAUSE,
	PART_IPI,
	PART_TICK,
	PART_LOOPS,
	PART_HANDLER,
	PARTS
};

static const struct {
	const char *option;
	size_t place; /* of the count in `code` */
} parts[PARTS] = {{"--cpuid", 0x02}, {"--out", 0x17},    {"--mmio", 0x28}, {"--hlt", 0x3a},
		  {"--msr", 0x4a},   {"--pause", 0x61},  {"--ipi", 0x72},  {"--tick", 0x95},
		  {"--loops", 0xa7}, {"--handler", 0xc4}};

/* Registers of an APIC's (Intel SDM 3A, 11.4.1), as KVM_GET_LAPIC has them. */
enum {
	APIC_SPURIOUS = 0xf0,
	APIC_TIMER = 0x320,
	APIC_INITIAL_COUNT = 0x380,
	APIC_CURRENT_COUNT = 0x390,
	APIC_DIVISOR = 0x3e0,
	APIC_ENABLED = 0x1ff,
	APIC_PERIODIC = 1 << 17,
	APIC_BY_ONE = 0xb,
	APIC_BASE_X2APIC = 0xc00 /* of its MSR: enabled, as x2APIC */
};

enum { INTERRUPTS_ON = 1 << 9, END_PORT = 0xf4, MOST_VCPUS = 8, MOST_CPUIDS = 256 };

struct vm {
	int kvm, fd;
	uint8_t *memory;
	bool has_apics;
	double period_us;
	unsigned invalid_entries; /* of each vCPU */
};

struct vcpu {
	int fd;
	struct kvm_run *run;
	uint64_t seen[PARTS];
	unsigned invalid_entries;
	uint64_t waits, delay; /* of its thread, by the scheduler's books: how often, ns */
};

static void fail(const char *what)
{
	work_usage("%s: %s", what, strerror(errno));
}

static void make_vm(const uint32_t counts[PARTS], struct vm *vm)
{
	vm->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (vm->kvm < 0)
		fail("/dev/kvm");
	vm->fd = ioctl(vm->kvm, KVM_CREATE_VM, 0);
	vm->memory =
	    mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kvm_userspace_memory_region region = {.memory_size = MEMORY_SIZE,
						     .userspace_addr = (uintptr_t)vm->memory};

	if (vm->fd < 0 || vm->memory == MAP_FAILED ||
	    ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &region))
		fail("making a VM");
	if (vm->has_apics && ioctl(vm->fd, KVM_CREATE_IRQCHIP, 0))
		fail("making its interrupt controllers");
	memcpy(vm->memory, code, sizeof(code));
	vm->memory[4 * VECTOR] = HANDLER; /* in the table of real mode, in segment 0 */
	for (size_t i = 0; i < PARTS; i++)
		memcpy(vm->memory + parts[i].place, &counts[i], sizeof(counts[i]));
}

static void set_registers(const struct vm *vm, int vcpu, unsigned number)
{
	struct kvm_sregs system;
	/* Without APICs nothing interrupts the guest itself, but Bochs holds back the host's
	 * interrupts, too, while a guest has its own off: see docs/lab.md. */
	struct kvm_regs registers = {.rip = vm->has_apics && number ? RECEIVER : 0,
				     .rsp = STACKS - number * STACK_SIZE,
				     .rflags = vm->has_apics ? 2 : INTERRUPTS_ON | 2};

	if (ioctl(vcpu, KVM_GET_SREGS, &system))
		fail("reading registers");
	system.cs.base = system.cs.selector = 0;
	system.ds.base = DEVICE_ADDRESS;
	system.ds.selector = DEVICE_ADDRESS >> 4;
	if (vm->has_apics)
		system.apic_base |= APIC_BASE_X2APIC;
	if (ioctl(vcpu, KVM_SET_SREGS, &system) || ioctl(vcpu, KVM_SET_REGS, &registers))
		fail("setting registers");
}

/* All that KVM can do: without x2APIC in it, there is none. */
static void set_cpuid(const struct vm *vm, int vcpu)
{
	struct kvm_cpuid2 *cpuid =
	    calloc(1, sizeof(*cpuid) + MOST_CPUIDS * sizeof(cpuid->entries[0]));

	cpuid->nent = MOST_CPUIDS;
	if (ioctl(vm->kvm, KVM_GET_SUPPORTED_CPUID, cpuid) || ioctl(vcpu, KVM_SET_CPUID2, cpuid))
		fail("setting what CPUID says");
	free(cpuid);
}

static void set_apic_register(struct kvm_lapic_state *apic, unsigned at, uint32_t value)
{
	memcpy(apic->regs + at, &value, sizeof(value));
}

/* KVM's timer counts nanoseconds. */
static void start_apic(const struct vm *vm, int vcpu, bool ticks)
{
	struct kvm_mp_state runnable = {.mp_state = KVM_MP_STATE_RUNNABLE};
	struct kvm_lapic_state apic;
	uint32_t period = (uint32_t)(vm->period_us * 1e3);

	if (ioctl(vcpu, KVM_SET_MP_STATE, &runnable) || ioctl(vcpu, KVM_GET_LAPIC, &apic))
		fail("reading an APIC");
	set_apic_register(&apic, APIC_SPURIOUS, APIC_ENABLED);
	if (ticks) {
		set_apic_register(&apic, APIC_TIMER, APIC_PERIODIC | VECTOR);
		set_apic_register(&apic, APIC_DIVISOR, APIC_BY_ONE);
		set_apic_register(&apic, APIC_INITIAL_COUNT, period);
		set_apic_register(&apic, APIC_CURRENT_COUNT, period);
	}
	if (ioctl(vcpu, KVM_SET_LAPIC, &apic))
		fail("setting an APIC");
}

static void make_vcpu(const struct vm *vm, unsigned number, struct vcpu *vcpu)
{
	vcpu->fd = ioctl(vm->fd, KVM_CREATE_VCPU, (unsigned long)number);
	int size = ioctl(vm->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (vcpu->fd < 0 || size < 0)
		fail("making a vCPU");
	vcpu->run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu->fd, 0);
	if (vcpu->run == MAP_FAILED)
		fail("mapping the vCPU");
	if (vm->has_apics)
		set_cpuid(vm, vcpu->fd);
	vcpu->invalid_entries = vm->invalid_entries;
	set_registers(vm, vcpu->fd, number);
	if (vm->has_apics)
		start_apic(vm, vcpu->fd, !number && vm->period_us > 0);
}

static void run_guest(struct vcpu *vcpu)
{
	for (;;) {
		if (ioctl(vcpu->fd, KVM_RUN, 0)) {
			if (errno != EINTR)
				fail("running the guest");
			continue;
		}
		switch (vcpu->run->exit_reason) {
		case KVM_EXIT_IO:
			if (vcpu->run->io.port == END_PORT)
				return;
			vcpu->seen[PART_OUT]++;
			break;
		case KVM_EXIT_MMIO:
			vcpu->seen[PART_MMIO]++;
			break;
		case KVM_EXIT_HLT:
			vcpu->seen[PART_HLT]++;
			break;
		default:
			fprintf(stderr, "tinyvm: unexpected exit %u\n", vcpu->run->exit_reason);
			_exit(1);
		}
	}
}

/* A code segment of 64 and of 32 bits at once (AMD APM 2, 15.5.1; Intel SDM 3C, 26.3.1.2). */
static void enter_invalid(struct vcpu *vcpu, unsigned times)
{
	enum { CR0_PE = 1, CR4_PAE = 1 << 5, EFER_LME = 1 << 8, EFER_LMA = 1 << 10 };
	struct kvm_sregs system;

	if (!times)
		return;
	if (ioctl(vcpu->fd, KVM_GET_SREGS, &system))
		fail("reading registers");
	system.cr0 |= CR0_PE | 1U << 31; /* paging */
	system.cr4 |= CR4_PAE;
	system.efer |= EFER_LME | EFER_LMA;
	system.cs.l = system.cs.db = 1;
	if (ioctl(vcpu->fd, KVM_SET_SREGS, &system))
		fail("setting registers that are invalid");
	while (times--)
		if (ioctl(vcpu->fd, KVM_RUN, 0) || vcpu->run->exit_reason != KVM_EXIT_FAIL_ENTRY) {
			fprintf(stderr, "tinyvm: the entry was to fail: exit %u\n",
				vcpu->run->exit_reason);
			_exit(1);
		}
}

static void *run_vcpu(void *of)
{
	struct vcpu *vcpu = of;
	struct rusage before, after;

	getrusage(RUSAGE_THREAD, &before);
	vcpu->delay = work_schedstat(gettid()).delay;
	run_guest(vcpu);
	enter_invalid(vcpu, vcpu->invalid_entries);
	vcpu->delay = work_schedstat(gettid()).delay - vcpu->delay;
	getrusage(RUSAGE_THREAD, &after);
	vcpu->waits = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw);
	return NULL;
}

/* The first vCPU is this thread's. One that receives interrupts ends with the process. */
static void run_vcpus(const struct vm *vm, struct vcpu *vcpus, unsigned count)
{
	pthread_t threads[MOST_VCPUS];

	for (unsigned i = 1; i < count; i++)
		if (pthread_create(&threads[i], NULL, run_vcpu, &vcpus[i]))
			fail("starting a vCPU's thread");
	run_vcpu(&vcpus[0]);
	for (unsigned i = 1; i < count && !vm->has_apics; i++)
		pthread_join(threads[i], NULL);
}

static void print_done(const struct vm *vm, const uint32_t counts[PARTS], const struct vcpu *vcpus,
		       unsigned count)
{
	uint64_t seen[PARTS] = {0}, waits = 0, delay = 0;
	uint32_t handled;

	for (unsigned i = 0; i < count; i++) {
		for (size_t part = 0; part < PARTS; part++)
			seen[part] += vcpus[i].seen[part];
		waits += vcpus[i].waits;
		delay += vcpus[i].delay;
	}
	memcpy(&handled, vm->memory + HANDLED, sizeof(handled));
	printf("tinyvm: cpuid=%u out=%llu mmio=%llu hlt=%llu pause=%u ipi=%u tick=%u handled=%u "
	       "waits=%llu delay=%llu\n",
	       counts[PART_CPUID] * count, (unsigned long long)seen[PART_OUT],
	       (unsigned long long)seen[PART_MMIO], (unsigned long long)seen[PART_HLT],
	       counts[PART_PAUSE] * count, counts[PART_IPI], counts[PART_TICK], handled,
	       (unsigned long long)waits, (unsigned long long)delay);
	work_summary();
}

/* What one VM is made of, and for how long there is nothing before and behind its run. */
struct plan {
	uint32_t counts[PARTS];
	struct vm vm;
	unsigned n_vcpus;
	double wait;
	bool closes;
};

static void close_vm(const struct vm *vm, const struct vcpu *vcpus, unsigned count)
{
	int size = ioctl(vm->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);

	for (unsigned i = 0; i < count; i++) { /* the mapping holds the vCPU, and that its VM */
		munmap(vcpus[i].run, (size_t)size);
		close(vcpus[i].fd);
	}
	munmap(vm->memory, MEMORY_SIZE);
	close(vm->fd);
	close(vm->kvm);
}

static void *run_vm(void *of)
{
	const struct plan *plan = of;
	struct vcpu vcpus[MOST_VCPUS] = {0};
	struct vm vm = plan->vm;

	make_vm(plan->counts, &vm);
	for (unsigned i = 0; i < plan->n_vcpus; i++)
		make_vcpu(&vm, i, &vcpus[i]);
	work_sleep(plan->wait);
	run_vcpus(&vm, vcpus, plan->n_vcpus);
	work_sleep(plan->wait);
	print_done(&vm, plan->counts, vcpus, plan->n_vcpus);
	if (plan->closes) {
		close_vm(&vm, vcpus, plan->n_vcpus);
		work_sleep(plan->wait);
	}
	return NULL;
}

static void run_vms(struct plan *plan, unsigned count)
{
	pthread_t thread;

	if (count == 1)
		run_vm(plan);
	for (unsigned i = 0; count > 1 && i < count; i++)
		if (pthread_create(&thread, NULL, run_vm, plan) || pthread_join(thread, NULL))
			fail("starting a VM's thread");
}

int main(int argc, char **argv)
{
	struct plan plan = {.n_vcpus = 1};
	unsigned n_vms = 1;
	double period_us = 200;

	work_init("tinyvm");
	for (int i = 1; i < argc; i += 2) {
		size_t part = 0;
		double value = work_number(argv[i], argv[i + 1]);
		while (part < PARTS && strcmp(argv[i], parts[part].option))
			part++;
		if (part < PARTS)
			plan.counts[part] = (uint32_t)value;
		else if (!strcmp(argv[i], "--invalid"))
			plan.vm.invalid_entries = (unsigned)value;
		else if (!strcmp(argv[i], "--wait"))
			plan.wait = value;
		else if (!strcmp(argv[i], "--vms") && value >= 1)
			n_vms = (unsigned)value;
		else if (!strcmp(argv[i], "--close"))
			plan.closes = value != 0;
		else if (!strcmp(argv[i], "--period"))
			period_us = value;
		else if (!strcmp(argv[i], "--vcpus") && value >= 1 && value <= MOST_VCPUS)
			plan.n_vcpus = (unsigned)value;
		else
			work_usage("unknown option '%s', or not 1 to %d vCPUs", argv[i],
				   MOST_VCPUS);
	}
	plan.vm.has_apics = plan.counts[PART_IPI] || plan.counts[PART_TICK];
	plan.vm.period_us = plan.counts[PART_TICK] ? period_us : 0;
	if (plan.vm.has_apics && (plan.counts[PART_HLT] || plan.n_vcpus > 1 || n_vms > 1))
		work_usage("--ipi and --tick go with none of --hlt, --vcpus and --vms");
	if (plan.counts[PART_IPI])
		plan.n_vcpus = 2;
	run_vms(&plan, n_vms);
	return 0;
}
