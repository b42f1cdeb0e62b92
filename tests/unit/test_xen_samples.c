/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of Xen's guests: contexts as Xen writes them, when a sample is due, and whose it is. */
#include "unit.h"

#include <errno.h>
#include <sys/mman.h>

#include "xen/guest_samples.h"
#include "xen/xen_sampler.h"

static void put_word(unsigned char *bytes, size_t place, uint64_t word)
{
	memcpy(bytes + place, &word, sizeof(word));
}

/* Places of struct vcpu_guest_context: those that a compiler gives it with Xen's own headers. */
static void test_context(void **state)
{
	static unsigned char bytes[VP_XEN_CONTEXT_SIZE];
	struct vp_xen_context context;
	struct vp_guest_registers registers = {0};

	memset(bytes, 0xee, sizeof(bytes));
	put_word(bytes, 512, 0); /* flags */
	put_word(bytes, 552, 0xb9);
	put_word(bytes, 648, 0x401000);
	put_word(bytes, 656, 0xeeeeeeee00000033); /* CS, and what is behind it */
	put_word(bytes, 672, 0x7ffd0000);
	put_word(bytes, 5008, 0x12345000);         /* CR3 */
	put_word(bytes, 5016, 0x20);               /* CR4 */
	put_word(bytes, 5128, 0xffffffff81c01000); /* where system calls go */
	put_word(bytes, 5152, 0xffff88800b600000); /* the kernel's GS */
	vp_xen_context_parse(bytes, true, &context);
	assert_int_equal(context.ip, 0x401000);
	assert_int_equal(context.sp, 0x7ffd0000);
	assert_int_equal(context.bp, 0xb9);
	assert_int_equal(context.root, 0x12345000);
	assert_true(context.user);
	put_word(bytes, 656, 0x10);
	vp_xen_context_parse(bytes, true, &context);
	assert_false(context.user);

	/* A PV guest's kernel has the privilege level of user space: the flags tell. */
	put_word(bytes, 656, 0xe033);
	vp_xen_context_parse(bytes, false, &context);
	assert_true(context.user);
	put_word(bytes, 512, 4);
	vp_xen_context_parse(bytes, false, &context);
	assert_false(context.user);

	vp_xen_registers_parse_pv(bytes, &registers);
	assert_int_equal(registers.cr3, 0x12345000);
	assert_int_equal(registers.cr4, 0x20);
	assert_int_equal(registers.lstar, 0xffffffff81c01000);
	assert_int_equal(registers.kernel_gs_base, 0xffff88800b600000);
	put_word(bytes, 5128, 0); /* not told: where page faults go */
	put_word(bytes, 720 + 14 * 16 + 8, 0xffffffff81c00b00);
	vp_xen_registers_parse_pv(bytes, &registers);
	assert_int_equal(registers.lstar, 0xffffffff81c00b00);
}

static void test_periods(void **state)
{
	uint64_t accounted = 1000;

	assert_int_equal(vp_xen_periods_due(1040, 100, &accounted), 0);
	assert_int_equal(vp_xen_periods_due(1050, 100, &accounted), 1); /* from the half on */
	assert_int_equal(accounted, 1100);
	assert_int_equal(vp_xen_periods_due(1050, 100, &accounted), 0); /* ahead of it */
	assert_int_equal(vp_xen_periods_due(1149, 100, &accounted), 0);
	assert_int_equal(vp_xen_periods_due(1449, 100, &accounted), 3);
	assert_int_equal(accounted, 1400);
	assert_int_equal(vp_xen_periods_due(0, 100, &accounted), 0); /* no clock goes back */
	/* Whatever the looks are: so many samples as periods of CPU time. */
	uint64_t sum = 0, cpu_time = accounted;
	for (unsigned look = 0; look < 1000; look++) {
		cpu_time += look * 7919 % 263;
		sum += vp_xen_periods_due(cpu_time, 100, &accounted);
	}
	assert_int_equal(sum, (cpu_time - 1400 + 50) / 100);
}

struct taken {
	unsigned count;
	uint64_t periods;
	struct vp_guest_sample samples[8];
	uint64_t weights[8];
};

static void take_weighed(void *context, const struct vp_guest_sample *sample, uint64_t periods)
{
	struct taken *taken = context;

	taken->samples[taken->count] = *sample;
	taken->weights[taken->count++] = periods;
	taken->periods += periods;
}

static struct vp_guest_sample context_of(uint64_t time, uint32_t pid)
{
	return (struct vp_guest_sample){.time = time,
					.flags = VP_HAS_CPL | VP_HAS_AS_ROOT | VP_BY_MEMORY,
					.vm = 2,
					.as_root = 0x1000 * pid,
					.guest_pid = pid,
					.guest_tid = pid,
					.mode = VP_MODE_GUEST_KERNEL};
}

/* Exits for interrupts between contexts: all samples together stand for the vCPU's CPU time. */
static void test_weights(void **state)
{
	struct vp_xen_weights weights = {0};
	struct taken taken = {0};
	const struct vp_xen_weighed out = {take_weighed, &taken};
	struct vp_guest_sample context = context_of(1000, 7);
	const uint64_t kernel = 0xffffffff81000000;

	vp_xen_weights_exit(&weights, 100, 900, 90, 0x401000);
	vp_xen_weights_exit(&weights, 100, 910, 100, 0x402000); /* none is due */
	assert_int_equal(taken.count, 0);
	vp_xen_weights_context(&weights, 100, (struct vp_xen_ran){190, 0}, &context, out);
	assert_int_equal(taken.count, 2);
	/* Whose the first one is nobody knows: there was no context before it. */
	assert_int_equal(taken.samples[0].time, 900);
	assert_int_equal(taken.samples[0].ip, 0x401000);
	assert_int_equal(taken.samples[0].flags, VP_HAS_CPL | VP_AT_INTERRUPT);
	assert_int_equal(taken.samples[0].mode, VP_MODE_GUEST_USER);
	assert_int_equal(taken.samples[0].cpl, 3);
	assert_int_equal(taken.samples[0].guest_pid, 0);
	assert_int_equal(taken.samples[0].as_root, 0);
	assert_int_equal(taken.samples[1].time, 1000);
	assert_int_equal(taken.samples[1].guest_pid, 7);

	/* Between two contexts of one process. The exit at which the vCPU still is, is the second
	 * one, and a context that nothing is left for is no sample. */
	taken.count = 0;
	vp_xen_weights_exit(&weights, 100, 1100, 500, kernel);
	vp_xen_weights_exit(&weights, 100, 1200, 600, 0x403000);
	context.time = 1300;
	vp_xen_weights_context(&weights, 100, (struct vp_xen_ran){610, 1200}, &context, out);
	assert_int_equal(taken.count, 2);
	assert_int_equal(taken.weights[0], 3);
	assert_int_equal(taken.samples[0].mode, VP_MODE_GUEST_KERNEL);
	assert_int_equal(taken.samples[0].cpl, 0);
	assert_int_equal(taken.samples[0].guest_pid, 7);
	assert_int_equal(taken.weights[1], 1);
	assert_int_equal(taken.samples[1].time, 1300);
	assert_false(taken.samples[1].flags & VP_AT_INTERRUPT);

	/* Between two processes. */
	taken.count = 0;
	context = context_of(1500, 8);
	vp_xen_weights_exit(&weights, 100, 1400, 700, 0x404000);
	vp_xen_weights_context(&weights, 100, (struct vp_xen_ran){710, 0}, &context, out);
	assert_int_equal(taken.count, 1);
	assert_int_equal(taken.samples[0].guest_pid, 0);

	/* Between two address spaces of one process: it has executed another program. */
	taken.count = 0;
	context.time = 1600;
	context.as_root += 0x1000;
	vp_xen_weights_exit(&weights, 100, 1550, 800, 0x404000);
	vp_xen_weights_context(&weights, 100, (struct vp_xen_ran){810, 0}, &context, out);
	assert_int_equal(taken.count, 1);
	assert_int_equal(taken.samples[0].guest_pid, 0);
	assert_int_equal(taken.samples[0].as_root, 0);

	/* No context any more. */
	taken.count = 0;
	vp_xen_weights_exit(&weights, 100, 1700, 1000, 0x405000);
	vp_xen_weights_flush(&weights, &context, out);
	assert_int_equal(taken.count, 1);
	assert_int_equal(taken.weights[0], 2);
	assert_int_equal(taken.samples[0].guest_pid, 0);
	assert_int_equal(taken.samples[0].vm, 2);
	assert_int_equal(taken.periods, 10);
	vp_xen_weights_deinit(&weights);
}

enum { PAGES = 8, PAGE = 4096 };
#define DIRECT_MAP 0xffff888000000000ULL
#define IMAGE 0xffffffff81000000ULL

struct guest {
	unsigned char memory[PAGES * PAGE];
	struct vp_xen_kernel kernel;
};

static bool read_guest(void *context, uint64_t address, void *bytes, size_t size)
{
	const struct guest *guest = context;

	if (address > sizeof(guest->memory) || size > sizeof(guest->memory) - address)
		return false;
	memcpy(bytes, guest->memory + address, size);
	return true;
}

/* The current task's pointer is at 0x100, the task in the direct map, its mm and pgd behind it. */
static struct guest *new_guest(void)
{
	const struct vp_guest_finding finding = {.text = IMAGE,
						 .gpa = 0x4000,
						 .size = 0x2000,
						 .direct_map = DIRECT_MAP,
						 .off_tid = 0x40,
						 .off_tgid = 0x44,
						 .off_comm = 0x80,
						 .off_mm = 0x60,
						 .off_pgd = 0x18};
	struct guest *guest = calloc(1, sizeof(*guest));

	expect_no_error(vp_xen_kernel_init(&finding, &guest->kernel));
	put_word(guest->memory, 0x100, DIRECT_MAP + 0x1000);
	put_word(guest->memory, 0x1040, 12ULL << 32 | 13);
	put_word(guest->memory, 0x1060, DIRECT_MAP + 0x2000);
	memcpy(guest->memory + 0x1080, "shares", 7);
	put_word(guest->memory, 0x2018, DIRECT_MAP + 0x6000);
	return guest;
}

static void test_task(void **state)
{
	struct guest *guest = new_guest();
	const struct vp_xen_memory memory = {read_guest, guest};
	struct vp_xen_task task;

	assert_true(vp_xen_task_read(&guest->kernel, &memory, 0x100, 0x6000, true, &task));
	assert_int_equal(task.pid, 12);
	assert_int_equal(task.tid, 13);
	assert_string_equal(task.comm, "shares");
	assert_int_equal(task.address, DIRECT_MAP + 0x1000);
	/* The other one of two tables, and what CR3 has beside it. */
	assert_true(
	    vp_xen_task_read(&guest->kernel, &memory, 0x100, 1ULL << 63 | 0x7803, true, &task));
	/* The vCPU has gone on to another task. */
	assert_false(vp_xen_task_read(&guest->kernel, &memory, 0x100, 0x8000, true, &task));
	/* A kernel thread, whose task is in the image, has no address space of its own. */
	put_word(guest->memory, 0x100, IMAGE + 0x1000);
	put_word(guest->memory, 0x5040, 0);
	memcpy(guest->memory + 0x5080, "swapper/0", 10);
	assert_true(vp_xen_task_read(&guest->kernel, &memory, 0x100, 0x8000, false, &task));
	assert_string_equal(task.comm, "swapper/0");
	assert_false(vp_xen_task_read(&guest->kernel, &memory, 0x100, 0x8000, true, &task));
	/* Where the guest has nothing. */
	put_word(guest->memory, 0x100, DIRECT_MAP + sizeof(guest->memory) - 4);
	assert_false(vp_xen_task_read(&guest->kernel, &memory, 0x100, 0x6000, true, &task));
	assert_false(vp_xen_task_read(&guest->kernel, &memory, 1ULL << 60, 0x6000, true, &task));
	free(guest);
}

static void test_layout_is_not_believed(void **state)
{
	struct vp_guest_finding finding = {.off_tid = 0x40, .off_tgid = 0x48};
	struct vp_xen_kernel kernel;

	expect_error(vp_xen_kernel_init(&finding, &kernel), "unknown layout");
	finding.off_tgid = 0x44;
	finding.off_comm = 1 << 20;
	expect_error(vp_xen_kernel_init(&finding, &kernel), "unknown layout");
}

/* Without a word about the guest's kernel, a sample has its place and its address space. */
static void test_sample_of_unknown_guest(void **state)
{
	struct vp_xen_reported told = {0};
	struct vp_xen_last last = {0};
	const struct vp_xen_raw_sample place = {
	    .time = 77,
	    .domain = 5,
	    .vcpu = 1,
	    .periods = 1,
	    .context = {.ip = 0x401000, .root = 0x3000, .user = true}};
	union vp_any_record task, sample;

	vp_xen_sample_make(&told, &place, &last, &task, &sample);
	assert_int_equal(task.header.id, 0);
	assert_int_equal(sample.header.id, VP_ID_guest_sample);
	assert_int_equal(sample.header.time, 77);
	assert_int_equal(sample.guest_sample.vm, 6);
	assert_int_equal(sample.guest_sample.vcpu, 1);
	assert_int_equal(sample.guest_sample.mode, VP_MODE_GUEST_USER);
	assert_int_equal(sample.guest_sample.flags, VP_HAS_AS_ROOT | VP_HAS_CPL);
	assert_int_equal(sample.guest_sample.cpl, 3);
	assert_int_equal(told.counts.unnamed, 0);
}

/* The frames of a machine, some of which are there no more. */
enum { FRAMES = 16, SHARED_INFO = 1, TOP_TABLE = 2, TABLE = 6, FIRST_OWN = 7 };

struct machine {
	unsigned char frames[FRAMES][PAGE];
	bool gone[FRAMES];
	unsigned maps;
};

static char *map_machine(void *context, const uint64_t *frames, size_t pages, int *errors)
{
	struct machine *machine = context;
	char *at = mmap(NULL, (pages + 1) * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	mprotect(at + pages * PAGE, PAGE, PROT_NONE); /* a read beyond the pages is noticed */
	machine->maps++;
	for (size_t i = 0; i < pages; i++) {
		bool there = frames[i] < FRAMES && !machine->gone[frames[i]];
		errors[i] = there ? 0 : -EINVAL;
		if (there)
			memcpy(at + i * PAGE, machine->frames[frames[i]], PAGE);
		mprotect(at + i * PAGE, PAGE, there ? PROT_READ : PROT_NONE);
	}
	return at;
}

/* A PV guest's: what it shares with Xen leads to page tables, these to the table of its frames. */
static struct machine *new_machine(void)
{
	static const uint64_t own[] = {FIRST_OWN, FIRST_OWN + 1, 1ULL << 62 | 9, 1ULL << 50};
	struct machine *machine = calloc(1, sizeof(*machine));

	put_word(machine->frames[SHARED_INFO], 3088, 4); /* how many frames it has */
	put_word(machine->frames[SHARED_INFO], 3112, TOP_TABLE * PAGE);
	put_word(machine->frames[SHARED_INFO], 3120, 0x1000); /* where it has their table */
	for (unsigned level = 0; level < 3; level++)
		put_word(machine->frames[TOP_TABLE + level], 0, (TOP_TABLE + 1 + level) * PAGE | 1);
	put_word(machine->frames[TOP_TABLE + 3], 8, TABLE * PAGE | 1);
	memcpy(machine->frames[TABLE], own, sizeof(own));
	put_word(machine->frames[FIRST_OWN + 1], 8, 0xabcd);
	return machine;
}

static void test_foreign_frames(void **state)
{
	static const unsigned char expected[] = {1, 1, 0, 0, 0, 0};
	struct machine *machine = new_machine();
	struct vp_xen_foreign *foreign = vp_xen_foreign_new_by(map_machine, machine);
	unsigned char backed[sizeof(expected)];
	uint64_t word = 0;

	assert_false(vp_xen_foreign_is_pv(foreign, 99));
	assert_true(vp_xen_foreign_is_pv(foreign, SHARED_INFO));
	assert_true(vp_xen_foreign_read(foreign, PAGE + 8, &word, sizeof(word)));
	assert_int_equal(word, 0xabcd);
	unsigned maps = machine->maps;
	assert_true(vp_xen_foreign_read(foreign, PAGE + 16, &word, sizeof(word)));
	assert_int_equal(machine->maps, maps); /* stays mapped for a while */
	vp_xen_foreign_backed(foreign, 0, sizeof(backed), backed);
	assert_memory_equal(backed, expected, sizeof(backed));
	assert_false(vp_xen_foreign_read(foreign, 2 * PAGE, &word, sizeof(word)));
	assert_false(vp_xen_foreign_read(foreign, 2 * PAGE - 4, &word, sizeof(word)));
	machine->gone[FIRST_OWN + 1] = true;
	vp_xen_foreign_drop(foreign);
	assert_false(vp_xen_foreign_read(foreign, PAGE + 8, &word, sizeof(word)));
	assert_true(vp_xen_foreign_read(foreign, 8, &word, sizeof(word)));
	vp_xen_foreign_free(foreign);
	free(machine);
}

/* Its page tables lead nowhere, or to themselves. */
static void test_foreign_lies(void **state)
{
	struct machine *machine = new_machine();
	uint64_t word;

	put_word(machine->frames[TOP_TABLE + 1], 0, 99 * PAGE | 1);
	struct vp_xen_foreign *foreign = vp_xen_foreign_new_by(map_machine, machine);
	assert_true(vp_xen_foreign_is_pv(foreign, SHARED_INFO));
	assert_false(vp_xen_foreign_read(foreign, PAGE, &word, sizeof(word)));
	vp_xen_foreign_free(foreign);

	put_word(machine->frames[TOP_TABLE], 0, TOP_TABLE * PAGE | 1);
	put_word(machine->frames[TOP_TABLE], 8, TOP_TABLE * PAGE); /* not present */
	foreign = vp_xen_foreign_new_by(map_machine, machine);
	assert_true(vp_xen_foreign_is_pv(foreign, SHARED_INFO));
	assert_false(vp_xen_foreign_read(foreign, PAGE, &word, sizeof(word)));
	vp_xen_foreign_free(foreign);
	free(machine);
}

/* A word of its table of frames would continue on the next page. */
static void test_foreign_table_is_not_aligned(void **state)
{
	struct machine *machine = new_machine();
	uint64_t word;

	put_word(machine->frames[SHARED_INFO], 3120, 0x1000 + PAGE - 4);
	struct vp_xen_foreign *foreign = vp_xen_foreign_new_by(map_machine, machine);
	assert_true(vp_xen_foreign_is_pv(foreign, SHARED_INFO));
	assert_false(vp_xen_foreign_read(foreign, 0, &word, sizeof(word)));
	vp_xen_foreign_free(foreign);
	free(machine);
}

static char *map_guest(void *context, const uint64_t *frames, size_t pages, int *errors)
{
	const struct guest *guest = context;
	char *at =
	    mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	for (size_t i = 0; i < pages; i++) {
		errors[i] = frames[i] < PAGES ? 0 : -EINVAL;
		if (!errors[i])
			memcpy(at + i * PAGE, guest->memory + frames[i] * PAGE, PAGE);
	}
	return at;
}

/* The task's name is recorded before its first sample, and again only if it changes. */
static void test_samples_with_names(void **state)
{
	struct guest *guest = new_guest();
	struct vp_xen_reported told = {.known = true,
				       .kernel = guest->kernel,
				       .fd = -1,
				       .foreign = vp_xen_foreign_new_by(map_guest, guest)};
	struct vp_xen_last last = {0};
	struct vp_xen_raw_sample place = {
	    .time = 77,
	    .domain = 5,
	    .vcpu = 1,
	    .periods = 3,
	    .context = {.ip = 0x401000, .root = 0x6000, .user = true}};
	union vp_any_record task, sample;

	vp_vec_push(&told.cpus,
		    ((struct vp_guest_current_address){.cpu = 1, .current_gpa = 0x100}));
	vp_xen_sample_make(&told, &place, &last, &task, &sample);
	assert_int_equal(sample.guest_sample.flags, VP_HAS_AS_ROOT | VP_HAS_CPL | VP_BY_MEMORY);
	assert_int_equal(sample.guest_sample.guest_pid, 12);
	assert_int_equal(sample.guest_sample.guest_tid, 13);
	assert_int_equal(task.header.id, VP_ID_guest_task);
	assert_int_equal(task.guest_task.guest_tid, 13);
	assert_int_equal(task.guest_task.flags, VP_IN_USER);
	assert_string_equal(task.guest_task.comm, "shares");
	assert_int_equal(told.counts.named, 3);
	assert_int_equal(told.counts.unnamed, 0);
	vp_xen_sample_make(&told, &place, &last, &task, &sample);
	assert_int_equal(task.header.id, 0);
	assert_int_equal(sample.guest_sample.guest_pid, 12);
	place.context.user = false;
	vp_xen_sample_make(&told, &place, &last, &task, &sample);
	assert_int_equal(task.header.id, VP_ID_guest_task);
	assert_int_equal(told.counts.named, 9);
	/* The vCPU has gone on to another address space. */
	place.context.root = 0x4000;
	vp_xen_sample_make(&told, &place, &last, &task, &sample);
	assert_int_equal(task.header.id, 0);
	assert_int_equal(sample.guest_sample.guest_pid, 0);
	assert_false(sample.guest_sample.flags & VP_BY_MEMORY);
	assert_int_equal(told.counts.named, 9);
	assert_int_equal(told.counts.unnamed, 3);
	vp_xen_foreign_free(told.foreign);
	vp_vec_deinit(&told.cpus);
	free(guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_context),
	    cmocka_unit_test(test_periods),
	    cmocka_unit_test(test_weights),
	    cmocka_unit_test(test_task),
	    cmocka_unit_test(test_layout_is_not_believed),
	    cmocka_unit_test(test_sample_of_unknown_guest),
	    cmocka_unit_test(test_samples_with_names),
	    cmocka_unit_test(test_foreign_frames),
	    cmocka_unit_test(test_foreign_lies),
	    cmocka_unit_test(test_foreign_table_is_not_aligned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
