/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ticks that are counted by classes, stream by stream, make the same profile as ticks that are
 * taken one by one in order of time, as call chains need them: with threads and guests' threads
 * that get other names, vCPUs that move, begin, change their threads and end with their VM,
 * processes that begin and end, weights, and VMs that are in no list.
 *
 *   test_classes NUMBER DIR      writes the recording of that number, for tests/recordings/compare
 */
#include "unit.h"

#include <string.h>

#include "analyze/report/report_make.h"
#include "base/file.h"
#include "make_recording.h"
#include "maps/writer.h"

#define NAME "classes.data"
enum { TICKS = 3000, PCPUS = 3, VMS = 3, RECORDINGS = 12, FUNCTIONS = 6 };
#define USER 0x400000ULL
#define KERNEL 0xffffffff81000000ULL

static uint64_t random_state;

static uint32_t any(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % below;
}

static uint64_t at_tick(uint64_t tick)
{
	return MADE_START + tick * MADE_PERIOD;
}

static void put(struct made *made, uint32_t pcpu, uint64_t tick, void *record)
{
	((struct vp_record_header *)record)->time = at_tick(tick) + made->offset;
	vp_trace_append(made->writer, vp_stream_of_pcpu(pcpu), record);
}

/* Two processes have page table 0x1000, one after the other; a third one lives from some time on.
 */
static void write_maps(const char *path)
{
	struct vp_maps_writer writer;
	struct vp_build_id id = {0};

	vp_maps_writer_init(&writer, -1);
	vp_maps_write_machine(&writer, true, "vm0");
	vp_maps_write_paging(&writer, 4, false);
	vp_maps_write_space(&writer, 1, 7, 0x1000, 0, at_tick(TICKS / 3), "alpha");
	vp_maps_write_space(&writer, 2, 8, 0x1000, at_tick(TICKS / 3), 0, "beta");
	vp_maps_write_space(&writer, 3, 9, 0x3000, at_tick(TICKS / 2), 0, "gamma");
	for (uint64_t space = 1; space <= 3; space++)
		vp_maps_write_mapping(&writer, space, USER, USER + 0x1000 * space, 0, 0, &id,
				      "/bin/program");
	vp_maps_write_image(&writer, &id, "/bin/program");
	for (uint64_t i = 0; i < FUNCTIONS; i++) {
		VP_AUTO_FREE char *name = vp_format("function_%u", (unsigned)i);
		vp_maps_write_symbol(&writer, i * 0x180, i % 3 ? 0x180 : 0x30, name);
		vp_maps_write_kernel_symbol(&writer, KERNEL + i * 0x100, 0x100, 'T', name, NULL);
	}
	assert_int_equal(vp_maps_writer_finish(&writer), 0);
	expect_no_error(vp_file_publish(path, writer.buffer.bytes, writer.buffer.size));
	vp_maps_writer_deinit(&writer);
}

static void put_guest(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu)
{
	bool kernel = !any(3), memory = !any(4), interrupt = !any(12);
	struct vp_guest_sample sample = {
	    .id = VP_ID_guest_sample,
	    .vm = 1000 * (vm + 1),
	    .tid = 1000 * (vm + 1) + vcpu + 1,
	    .mode = kernel ? VP_MODE_GUEST_KERNEL : VP_MODE_GUEST_USER,
	    .ip = (kernel ? KERNEL : USER) + 0x20 * any(80),
	    .as_root = 0x1000 * (1 + any(3)),
	    .vcpu = vcpu,
	    .exit_reason = any(4) ? MADE_INTR : MADE_HLT,
	    .vendor = VP_VENDOR_AMD,
	    .guest_pid = memory ? 7 + any(3) : 0,
	    .guest_tid = memory ? 7 + any(3) : 0,
	    .cpl = kernel ? 0 : 3,
	    .flags = VP_HAS_AS_ROOT | VP_HAS_CPL | (any(8) ? VP_HAS_EXIT_REASON : 0) |
		     (any(9) ? 0 : VP_LATE) | (memory ? VP_BY_MEMORY : 0) |
		     (interrupt ? VP_AT_INTERRUPT : 0)};

	put(made, pcpu, tick, &sample);
}

/* What no other stream's samples depend on. */
static void put_usual(struct made *made, uint32_t pcpu, uint64_t tick, unsigned vm, unsigned vcpu)
{
	switch (any(12)) {
	case 0:
		made_host(made, pcpu, tick, 50 + any(2), any(2) ? VP_MODE_USER : VP_MODE_KERNEL);
		break;
	case 1:
		made_idle(made, pcpu, tick);
		break;
	case 2:
		made_in_vmm(made, pcpu, tick, vm, vcpu);
		break;
	case 3:
	case 4:
		made_in_kvm(made, pcpu, tick, vm, vcpu,
			    any(3)   ? MADE_NPF
			    : any(2) ? MADE_HLT
				     : MADE_UNKNOWN);
		break;
	case 5:
		made_host(made, pcpu, tick, 1000 * (vm + 1), VP_MODE_USER);
		break;
	default:
		put_guest(made, pcpu, tick, vm, vcpu);
	}
}

static void put_event(struct made *made, uint32_t pcpu, uint64_t tick)
{
	static const char *const names[] = {"alpha", "beta", "gamma"};
	unsigned vm = any(VMS + 1), vcpu = any(3); /* one VM is in no list, nor one vCPU of each */
	struct vp_vcpu_in other = {.id = VP_ID_vcpu_in,
				   .vm = 1000 * (vm + 1),
				   .tid = 1000 * (vm + 1) + 10 + any(2),
				   .vcpu = vcpu};

	switch (any(8)) {
	case 0:
		made_task(made, pcpu, tick, 50, 50 + any(2), names[any(3)]);
		break;
	case 1:
		made_in(made, pcpu, tick, vm, vcpu, any(2) ? MADE_HLT : MADE_UNKNOWN);
		break;
	case 2:
		made_out(made, pcpu, tick, vm, vcpu, any(2) ? MADE_HLT : MADE_UNKNOWN, any(2));
		break;
	case 3:
		put_guest(made, pcpu, tick, vm, vcpu);
		break;
	case 4:
		made_guest_thread(made, pcpu, tick, vm, 7 + any(3), 7 + any(3), names[any(3)],
				  0x1000, USER);
		break;
	case 5: /* the vCPU has another thread from now on */
		put(made, pcpu, tick, &other);
		break;
	case 6: /* nobody knows yet that it is a vCPU's thread */
		made_in_vmm(made, pcpu, tick, vm, vcpu);
		put_guest(made, pcpu, tick, vm, vcpu);
		break;
	default:
		made_in_kvm(made, pcpu, tick, vm, vcpu, MADE_NPF);
	}
}

/* How many records there are to one that changes something for others: none to many. */
static uint32_t rarity_of(uint32_t number)
{
	static const uint32_t rarities[] = {3, 300, 3000};

	return rarities[number % 3];
}

static void make_recording(const char *name, uint32_t number)
{
	bool events = number / 3 % 2, ends = number / 6 % 2;
	struct made made;

	random_state = 0x9e3779b97f4a7c15ULL * (number + 1);
	made_begin(&made, name, VMS);
	made.pcpus = made.about.pcpus = PCPUS;
	made.about.weighting = events ? VP_WEIGHTING_EVENTS : VP_WEIGHTING_TICKS;
	made.about.events = 3;
	made.about.chains = true; /* that there may be some: see expect_same_by() */
	if (ends) {
		made.vms.at[0].end = at_tick(TICKS / 2) + 7;
		made.vms.at[1].end = at_tick(TICKS / 4) + 7;
	}
	for (uint64_t tick = 1; tick < TICKS; tick++)
		for (uint32_t pcpu = 0; pcpu < PCPUS; pcpu++) {
			/* Sometimes at the same time as others. */
			made.offset = any(4) ? any(MADE_PERIOD / 2) : 0;
			if (events && any(3))
				made_period(&made, pcpu, tick, 1 + any(1000));
			if (!any(rarity_of(number)))
				put_event(&made, pcpu, tick);
			put_usual(&made, pcpu, tick, (unsigned)(pcpu + tick / 40) % VMS, pcpu % 2);
			/* Many packets, some of which only continue the previous one. */
			if (!any(150))
				vp_trace_flush(made.writer, vp_stream_of_pcpu(pcpu), 0);
		}
	VP_AUTO_FREE char *maps = vp_recording_maps_path(name, &made.vms, &made.vms.at[0]);
	write_maps(maps);
	made_end(&made, TICKS);
}

static void expect_same_text(const struct vp_profile *a, uint32_t x, const struct vp_profile *b,
			     uint32_t y)
{
	const char *left = vp_profile_text(a, x), *right = vp_profile_text(b, y);

	assert_string_equal(left ? left : "-", right ? right : "-");
}

static void expect_same_row(const struct vp_profile *a, const struct vp_profile_row *x,
			    const struct vp_profile *b, const struct vp_profile_row *y)
{
	expect_same_text(a, x->function, b, y->function);
	expect_same_text(a, x->module, b, y->module);
	expect_same_text(a, x->process, b, y->process);
	assert_int_equal(x->samples, y->samples);
	assert_int_equal(x->kind, y->kind);
	assert_int_equal(x->pid, y->pid);
	assert_int_equal(x->vm, y->vm);
	if (a->columns & VP_COLUMN_VCPU) /* it is nothing else's */
		assert_int_equal(x->vcpu, y->vcpu);
	assert_int_equal(x->reasons, y->reasons);
	for (uint32_t i = 0; i < x->reasons; i++) {
		const struct vp_profile_reason *of_x = &a->reasons.at[x->first_reason + i];
		const struct vp_profile_reason *of_y = &b->reasons.at[y->first_reason + i];
		assert_int_equal(of_x->count, of_y->count);
		assert_int_equal(of_x->exit.reason, of_y->exit.reason);
		assert_int_equal(of_x->exit.known, of_y->exit.known);
	}
}

static void expect_same_parts(const struct vp_profile *a, const struct vp_profile *b)
{
	assert_int_equal(a->parts.count, b->parts.count);
	for (size_t i = 0; i < a->parts.count; i++) {
		const struct vp_profile_part *x = &a->parts.at[i], *y = &b->parts.at[i];
		assert_int_equal(x->vm, y->vm);
		assert_int_equal(x->vcpu, y->vcpu);
		assert_int_equal(x->samples, y->samples);
		assert_memory_equal(x->kinds, y->kinds, sizeof(x->kinds));
		assert_int_equal(x->rows, y->rows);
		const struct vp_profile_row *rows_x = vp_profile_rows(a, x);
		const struct vp_profile_row *rows_y = vp_profile_rows(b, y);
		for (size_t row = 0; row < x->rows; row++)
			expect_same_row(a, &rows_x[row], b, &rows_y[row]);
	}
}

static void expect_same(const struct vp_profile *a, const struct vp_profile *b)
{
	expect_same_parts(a, b);
	assert_memory_equal(a->routes, b->routes, sizeof(a->routes));
	assert_int_equal(a->unattributed, b->unattributed);
	assert_memory_equal(&a->counts, &b->counts, sizeof(a->counts));
	assert_int_equal(a->first, b->first);
	assert_int_equal(a->last, b->last);
}

static void expect_same_by(struct vp_profile_options options, uint32_t jobs)
{
	struct vp_naming_options naming = {.directory = NAME};
	struct vp_report by_ticks, by_classes;

	/* With call chains, of which there are none, each tick is taken by itself. */
	options.chains = true;
	options.jobs = 1;
	expect_no_error(vp_report_make(&naming, &options, &by_ticks));
	assert_true(by_ticks.profile.nodes.count || !by_ticks.profile.rows.count);
	options.chains = false;
	for (options.jobs = 1; options.jobs <= jobs; options.jobs++) {
		expect_no_error(vp_report_make(&naming, &options, &by_classes));
		expect_same(&by_ticks.profile, &by_classes.profile);
		assert_int_equal(by_classes.profile.jobs, options.jobs);
		vp_report_deinit(&by_classes);
	}
	vp_report_deinit(&by_ticks);
}

static void test_classes(void **state)
{
	for (uint32_t number = 0; number < RECORDINGS; number++) {
		make_recording(NAME, number);
		for (enum vp_view view = 0; view < VP_VIEWS; view++) {
			const char *vm = view == VP_VIEW_GUEST ? "vm0" : NULL;
			struct vp_profile_options options[] = {
			    {.view = view, .vm = vm},
			    {.view = view, .vm = vm, .per_vcpu = true, .per_process = true},
			    {.view = view, .vm = "vm1", .has_vcpu = true, .vcpu = 1},
			    {.view = view, .vm = vm, .comm = "alpha"},
			    {.view = view, .vm = vm, .pid = 8},
			    {.view = view,
			     .vm = vm,
			     .from = at_tick(TICKS / 5) + 100,
			     .to = at_tick(TICKS / 3 * 2)},
			    {.view = view, .vm = vm, .columns = VP_COLUMN_PROCESS}};
			for (size_t i = 0; i < VP_ARRAY_SIZE(options); i++)
				expect_same_by(options[i], i ? 1 : 2);
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_classes)};

	if (argc == 3) {
		make_recording(argv[2], (uint32_t)strtoul(argv[1], NULL, 10));
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
