/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames and totals: what is told apart, what is counted where, and what is left after a merge. */
#include "unit.h"

#include "analyze/common/filter.h"
#include "analyze/profile/call_tree.h"
#include "analyze/profile/totals.h"
#include "analyze/profile/view.h"
#include "schema/schema.h"

static void test_keys(void **state)
{
	static const uint64_t keys[] = {7, 8, 1ULL << 63, 0};
	struct vp_key_set set = {.key_size = sizeof(uint64_t)};
	bool inserted;

	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < VP_ARRAY_SIZE(keys); i++) {
			assert_int_equal(vp_key_set_add(&set, &keys[i], &inserted), i);
			assert_int_equal(inserted, !round);
			assert_memory_equal(vp_key_set_key(&set, i), &keys[i], sizeof(keys[i]));
		}
	assert_int_equal(set.count, VP_ARRAY_SIZE(keys));
	vp_key_set_deinit(&set);
	assert_int_equal(set.count, 0);
}

/* Keys whose hashes are the same are still different keys. */
static void test_keys_of_one_hash(void **state)
{
	struct vp_key_set set = {.key_size = sizeof(uint32_t)};
	bool inserted;

	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(vp_key_set_add(&set, &i, &inserted), i);
	/* As if the second and the third had the first one's. */
	for (size_t i = 0; i < set.first.mask + 1; i++)
		if (set.first.slots[i].used)
			set.first.slots[i].value = 0;
	set.next.at[0] = 1;
	set.next.at[1] = 2;
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(vp_key_set_add(&set, &i, &inserted), i);
		assert_false(inserted);
	}
	const uint32_t other = 0;
	memset(set.keys.bytes, 0x11, sizeof(other)); /* so that it is a fourth one of that hash */
	assert_int_equal(vp_key_set_add(&set, &other, &inserted), 3);
	assert_true(inserted);
	assert_int_equal(set.next.at[2], 3);
	assert_int_equal(vp_key_set_add(&set, &other, &inserted), 3);
	assert_false(inserted);
	vp_key_set_deinit(&set);
}

static const struct vp_frame whole = {.part = 1,
				      .kind = VP_KIND_USER,
				      .function = 2,
				      .module = 3,
				      .process = 4,
				      .pid = 5,
				      .vm = 6,
				      .vcpu = 7};

static uint32_t *field_of(struct vp_frame *frame, size_t field)
{
	uint32_t *fields[] = {&frame->part,    &frame->kind, &frame->function, &frame->module,
			      &frame->process, &frame->pid,  &frame->vm,       &frame->vcpu};

	return fields[field];
}

enum { PART, KIND, FUNCTION, MODULE, PROCESS, PID, VM, VCPU, FIELDS };

/* Frames that differ in a column are told apart by it, and else are one, of which that column is
 * not known. Parts always differ. */
static void expect_columns(unsigned columns, uint32_t kind, unsigned told_apart)
{
	for (size_t field = 0; field < FIELDS; field++) {
		struct vp_frames frames;
		struct vp_frame one = whole, other;
		one.kind = kind;
		other = one;
		*field_of(&other, field) = field == KIND ? VP_KIND_KERNEL : 99;
		vp_frames_init(&frames, columns);
		assert_int_equal(vp_frames_add(&frames, &one), 0);
		bool apart = told_apart >> field & 1;
		assert_int_equal(vp_frames_add(&frames, &other), apart);
		assert_int_equal(vp_frames_add(&frames, &one), 0);
		assert_int_equal(frames.at.count, 1 + apart);
		for (size_t i = 0; i < FIELDS; i++)
			assert_int_equal(*field_of(&frames.at.at[0], i),
					 i == field && !apart ? VP_NONE : *field_of(&one, i));
		vp_frames_deinit(&frames);
	}
}

static void test_columns(void **state)
{
	const unsigned part = 1 << PART, kind = 1 << KIND, function = 1 << FUNCTION;

	expect_columns(0, VP_KIND_USER, part);
	expect_columns(VP_COLUMN_FUNCTION, VP_KIND_USER, part | kind | function);
	expect_columns(VP_COLUMN_MODULE, VP_KIND_USER, part | kind | 1 << MODULE);
	expect_columns(VP_COLUMN_PROCESS, VP_KIND_USER, part | 1 << PROCESS);
	expect_columns(VP_COLUMN_PID, VP_KIND_USER, part | 1 << PID);
	expect_columns(VP_COLUMN_VM, VP_KIND_USER, part | 1 << VM);
	expect_columns(VP_COLUMN_VCPU, VP_KIND_USER, part | 1 << VCPU);
	expect_columns(VP_COLUMNS_ALL, VP_KIND_USER, (1 << FIELDS) - 1);
	/* What has a label instead of a function is told apart by it. */
	expect_columns(VP_COLUMN_PROCESS, VP_KIND_STEAL, part | kind | function | 1 << PROCESS);
	expect_columns(VP_COLUMN_VM, VP_KIND_IDLE, part | kind | function | 1 << VM);
	expect_columns(0, VP_KIND_VM, part | kind | function);
}

static void test_kinds(void **state)
{
	static const char *const names[] = {"kernel", "user", "idle", "steal", "vm"};

	for (uint32_t kind = 0; kind < VP_KINDS; kind++)
		assert_string_equal(vp_kind_name(kind), names[kind]);
	assert_null(vp_kind_name(VP_KINDS));
	assert_null(vp_kind_name(VP_NONE));
	assert_string_equal(vp_route_name(VP_ROUTE_NONE), "none");
	assert_string_equal(vp_route_name(VP_ROUTE_CR3), "cr3");
	assert_string_equal(vp_route_name(VP_ROUTE_KERNEL), "kernel-symbols");
	assert_string_equal(vp_route_name(VP_ROUTE_MEMORY), "memory");
	assert_string_equal(vp_route_name(VP_ROUTE_ADDRESS), "address");
}

static void test_views_by_name(void **state)
{
	static const struct {
		const char *name;
		bool of_one_vm, hosts_only;
		unsigned columns;
	} views[VP_VIEWS] = {
	    [VP_VIEW_HOST] = {"host", false, true,
			      VP_COLUMN_FUNCTION | VP_COLUMN_MODULE | VP_COLUMN_PROCESS},
	    [VP_VIEW_GUEST] = {"guest", true, false,
			       VP_COLUMN_FUNCTION | VP_COLUMN_MODULE | VP_COLUMN_PROCESS},
	    [VP_VIEW_UNIFIED] = {"unified", false, false,
				 VP_COLUMN_FUNCTION | VP_COLUMN_MODULE | VP_COLUMN_PROCESS |
				     VP_COLUMN_VM}};

	for (enum vp_view view = 0; view < VP_VIEWS; view++) {
		const struct vp_view_ops *ops = vp_view_of(view);
		assert_string_equal(ops->name, views[view].name);
		assert_int_equal(ops->of_one_vm, views[view].of_one_vm);
		assert_int_equal(ops->hosts_only, views[view].hosts_only);
		assert_int_equal(ops->columns, views[view].columns);
		assert_int_equal(vp_view_named(views[view].name), view);
	}
	assert_int_equal(vp_view_named("hosts"), VP_VIEWS);
}

/* Columns that are asked for, and those that other options need. */
static void test_columns_of_options(void **state)
{
	struct vp_profile_options options = {.view = VP_VIEW_HOST};
	const unsigned usual = VP_COLUMN_FUNCTION | VP_COLUMN_MODULE | VP_COLUMN_PROCESS;

	assert_int_equal(vp_pass_columns(&options), usual);
	options.per_process = true;
	assert_int_equal(vp_pass_columns(&options), usual | VP_COLUMN_PID);
	options.columns = VP_COLUMN_FUNCTION;
	assert_int_equal(vp_pass_columns(&options),
			 VP_COLUMN_FUNCTION | VP_COLUMN_PROCESS | VP_COLUMN_PID);
	options.per_process = false;
	options.per_vcpu = true;
	assert_int_equal(vp_pass_columns(&options),
			 VP_COLUMN_FUNCTION | VP_COLUMN_VM | VP_COLUMN_VCPU);
	options.view = VP_VIEW_GUEST; /* vCPUs are its parts */
	assert_int_equal(vp_pass_columns(&options), VP_COLUMN_FUNCTION);
}

/* The other's frames, with its parts' and texts' numbers here; columns in which they differ are not
 * known afterwards. */
static void test_merged_frames(void **state)
{
	static const uint32_t parts[] = {9, 8}, texts[] = {50, 51, 52, 53, 54, 55};
	struct vp_frames frames, others;
	struct vp_frame same = whole, expected = whole;

	vp_frames_init(&frames, VP_COLUMN_FUNCTION);
	vp_frames_init(&others, VP_COLUMN_FUNCTION);
	expected.part = 8;
	expected.function = 52;
	expected.module = 53;
	expected.process = 54;
	expected.pid = 77;
	assert_int_equal(vp_frames_add(&frames, &(struct vp_frame){.part = 8}), 0);
	assert_int_equal(vp_frames_add(&frames, &expected), 1);
	vp_frames_add(&others, &(struct vp_frame){.part = 0, .function = 5, .module = VP_NONE});
	vp_frames_add(&others, &same);
	same.vm = 1; /* not told apart: not known */
	assert_int_equal(vp_frames_add(&others, &same), 1);
	VP_AUTO_FREE uint32_t *numbers =
	    vp_frames_merge(&frames, &others, &(struct vp_frame_numbers){parts, texts, NULL});
	assert_int_equal(frames.at.count, 3);
	assert_int_equal(numbers[0], 2);
	assert_int_equal(numbers[1], 1);
	assert_int_equal(frames.at.at[2].part, 9);
	assert_int_equal(frames.at.at[2].function, 55);
	assert_int_equal(frames.at.at[2].module, VP_NONE);
	assert_int_equal(frames.at.at[2].process, 50);
	expected.pid = expected.vm = VP_NONE;
	assert_memory_equal(&frames.at.at[1], &expected, sizeof(expected));
	vp_frames_deinit(&frames);
	vp_frames_deinit(&others);
}

static void test_samples(void **state)
{
	static const struct vp_resolved samples[] = {
	    {.weight = 5, .frame = 2, .route = VP_ROUTE_CR3, .named = true, .guest = true},
	    {.weight = 7, .frame = 0, .route = VP_ROUTE_MEMORY, .named = false, .guest = true},
	    {.weight = 11,
	     .frame = VP_NONE,
	     .route = VP_ROUTE_MEMORY,
	     .named = true,
	     .guest = true},
	    {.weight = 13, .frame = 2, .route = VP_ROUTE_NONE, .named = false, .guest = false},
	    {.weight = 100, .frame = 9}};
	struct vp_totals totals;

	vp_totals_init(&totals);
	vp_totals_take(&totals, samples, 4, true);
	assert_int_equal(totals.samples.count, 3);
	assert_int_equal(totals.samples.at[0], 7);
	assert_int_equal(totals.samples.at[1], 0);
	assert_int_equal(totals.samples.at[2], 18);
	assert_int_equal(totals.unattributed, 20);
	assert_int_equal(totals.routes[VP_ROUTE_CR3], 5);
	assert_int_equal(totals.routes[VP_ROUTE_MEMORY], 18);
	assert_int_equal(totals.routes[VP_ROUTE_NONE], 0);
	vp_totals_take(&totals, samples, 2, false); /* who gets them one by one counts no frames */
	assert_int_equal(totals.samples.at[0], 7);
	assert_int_equal(totals.unattributed, 27);
	assert_int_equal(totals.routes[VP_ROUTE_CR3], 10);
	vp_totals_deinit(&totals);
}

static void expect_node(const struct vp_totals *totals, uint32_t node, uint32_t parent,
			uint32_t frame, uint64_t samples)
{
	struct vp_profile_node found = vp_totals_node(totals, node);

	assert_int_equal(found.parent, parent);
	assert_int_equal(found.row, frame);
	assert_int_equal(found.samples, samples);
}

#define ADD(totals, weight, ...)                                                                   \
	vp_totals_add_stack(totals, (const uint32_t[]){__VA_ARGS__},                               \
			    sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), weight)

/* A frame that is twice in a stack counts it once; each stack anew. */
static void test_stacks(void **state)
{
	struct vp_totals totals;

	vp_totals_init(&totals);
	ADD(&totals, 3, 1, 2, 1, 4);
	ADD(&totals, 10, 1, 2);
	ADD(&totals, 100, 2);
	ADD(&totals, 3, 1, 2, 1, 4);
	vp_totals_add_stack(&totals, NULL, 0, 1000);
	assert_int_equal(totals.ended.count, 5);
	expect_node(&totals, 0, VP_NONE, 1, 0);
	expect_node(&totals, 1, 0, 2, 10);
	expect_node(&totals, 2, 1, 1, 0);
	expect_node(&totals, 3, 2, 4, 6);
	expect_node(&totals, 4, VP_NONE, 2, 100);
	assert_int_equal(totals.within.count, 5);
	static const uint64_t within[] = {0, 16, 116, 0, 6};
	assert_memory_equal(totals.within.at, within, sizeof(within));
	assert_int_equal(totals.stacks, 5);
	vp_totals_deinit(&totals);
}

/* What frames have beyond their stacks is a stack of each of them. */
static void test_closed_stacks(void **state)
{
	struct vp_totals totals;

	vp_totals_init(&totals);
	ADD(&totals, 3, 1, 2);
	ADD(&totals, 4, 2);
	ADD(&totals, 5, 3);
	ADD(&totals, 6, 7); /* a frame without samples of its own */
	vp_totals_add(&totals, 1, 10);
	vp_totals_add(&totals, 2, 27);
	vp_totals_add(&totals, 3, 5);
	vp_totals_close_stacks(&totals);
	expect_node(&totals, 0, VP_NONE, 1, 10);
	expect_node(&totals, 1, 0, 2, 3);
	expect_node(&totals, 2, VP_NONE, 2, 24);
	expect_node(&totals, 3, VP_NONE, 3, 5);
	expect_node(&totals, 4, VP_NONE, 7, 6);
	assert_int_equal(totals.ended.count, 5);
	assert_int_equal(totals.within.at[1], 13);
	assert_int_equal(totals.within.at[2], 27);
	assert_int_equal(totals.within.at[3], 5);
	vp_totals_deinit(&totals);
}

/* By frame, vendor and number; an exit that is not known is one of its own. */
static void test_reasons(void **state)
{
	static const struct vp_exit exits[] = {
	    {VP_VENDOR_AMD, 0x60, true},   {VP_VENDOR_INTEL, 0x60, true},
	    {VP_VENDOR_AMD, 0x61, true},   {VP_VENDOR_UNKNOWN, 0, true},
	    {VP_VENDOR_UNKNOWN, 0, false}, {VP_VENDOR_ARM, 0, true}};
	struct vp_totals totals;

	vp_totals_init(&totals);
	for (int round = 0; round < 2; round++)
		for (uint32_t frame = 0; frame < 2; frame++)
			for (uint32_t i = 0; i < VP_ARRAY_SIZE(exits); i++)
				assert_int_equal(vp_totals_reason(&totals, frame, &exits[i]),
						 frame * VP_ARRAY_SIZE(exits) + i);
	assert_int_equal(totals.reasons.at[7].row, 1);
	assert_int_equal(totals.reasons.at[7].exit.vendor, VP_VENDOR_INTEL);
	assert_int_equal(totals.reasons.at[7].exit.reason, 0x60);
	assert_true(totals.reasons.at[7].exit.known);
	assert_false(totals.reasons.at[4].exit.known);
	/* Whatever is in one that is not known. */
	assert_int_equal(
	    vp_totals_reason(&totals, 0, &(struct vp_exit){VP_VENDOR_AMD, 0x60, false}), 4);
	vp_totals_deinit(&totals);
}

static void count_reason(struct vp_totals *totals, uint32_t frame, const struct vp_exit *exit,
			 uint64_t count)
{
	uint32_t number = vp_totals_reason(totals, frame, exit);

	totals->reasons.at[number].count += count;
}

static void test_merge(void **state)
{
	static const uint32_t parts[] = {1, 0}, frames[] = {3, 2, 0};
	static const struct vp_exit exit = {VP_VENDOR_AMD, 0x60, true}, none;
	struct vp_totals totals, others;

	vp_totals_init(&totals);
	vp_totals_init(&others);
	for (uint64_t i = 0; i < 2; i++) {
		vp_vec_push(&totals.parts, ((struct vp_profile_part){.samples = 10 + i}));
		vp_vec_push(&others.parts, ((struct vp_profile_part){.samples = 100 * (i + 1)}));
		for (uint64_t kind = 0; kind < VP_KINDS; kind++) {
			totals.parts.at[i].kinds[kind] = kind + 1;
			others.parts.at[i].kinds[kind] = 10 * (i + 1) * (kind + 1);
		}
	}
	vp_totals_add(&totals, 3, 5);
	vp_totals_add(&others, 0, 7);
	vp_totals_add(&others, 2, 8);
	count_reason(&totals, 3, &exit, 2);
	count_reason(&others, 1, &none, 30);
	count_reason(&others, 0, &exit, 40);
	for (uint64_t route = 0; route < VP_ROUTES; route++) {
		totals.routes[route] = route;
		others.routes[route] = 10 * route;
	}
	totals.unattributed = 3;
	others.unattributed = 4;
	ADD(&totals, 1, 3, 2);
	ADD(&totals, 2, 3);
	ADD(&others, 100, 0, 1, 2);
	ADD(&others, 200, 0, 1);
	ADD(&others, 400, 1);
	vp_totals_merge(&totals, &others, parts, frames);
	assert_int_equal(totals.parts.at[0].samples, 10 + 200);
	assert_int_equal(totals.parts.at[1].samples, 11 + 100);
	for (uint64_t kind = 0; kind < VP_KINDS; kind++) {
		assert_int_equal(totals.parts.at[0].kinds[kind], 21 * (kind + 1));
		assert_int_equal(totals.parts.at[1].kinds[kind], 11 * (kind + 1));
	}
	static const uint64_t samples[] = {8, 0, 0, 12};
	assert_int_equal(totals.samples.count, 4);
	assert_memory_equal(totals.samples.at, samples, sizeof(samples));
	assert_int_equal(totals.reasons.count, 2);
	assert_int_equal(totals.reasons.at[0].count, 42);
	assert_int_equal(totals.reasons.at[1].row, 2);
	assert_int_equal(totals.reasons.at[1].count, 30);
	for (uint64_t route = 0; route < VP_ROUTES; route++)
		assert_int_equal(totals.routes[route], 11 * route);
	assert_int_equal(totals.unattributed, 7);
	expect_node(&totals, 0, VP_NONE, 3, 2);
	expect_node(&totals, 1, 0, 2, 201);
	expect_node(&totals, 2, 1, 0, 100);
	expect_node(&totals, 3, VP_NONE, 2, 400);
	static const uint64_t within[] = {100, 0, 701, 303};
	assert_int_equal(totals.within.count, 4);
	assert_memory_equal(totals.within.at, within, sizeof(within));
	assert_int_equal(totals.stacks, 5);
	/* The next stack is a new one to all frames. */
	ADD(&totals, 1, 3);
	assert_int_equal(totals.within.at[3], 304);
	vp_totals_deinit(&totals);
	vp_totals_deinit(&others);
}

static void put_node(struct vp_profile *profile, uint32_t parent, uint32_t row, uint64_t samples)
{
	vp_vec_push(&profile->nodes, ((struct vp_profile_node){parent, row, samples}));
}

/* Rows: 0 main, 1 parse, 2 read, 3 write, 4 idle. */
static void make_nodes(struct vp_profile *profile)
{
	*profile = (struct vp_profile){0};
	put_node(profile, VP_NONE, 0, 1); /* main */
	put_node(profile, 0, 1, 2);       /* main parse */
	put_node(profile, 1, 2, 10);      /* main parse read */
	put_node(profile, 1, 3, 20);      /* main parse write */
	put_node(profile, 0, 2, 5);       /* main read */
	put_node(profile, 4, 1, 3);       /* main read parse */
	put_node(profile, 5, 2, 7);       /* main read parse read */
	put_node(profile, VP_NONE, 2, 4); /* read */
	put_node(profile, VP_NONE, 4, 9); /* idle */
	put_node(profile, 8, 0, 0);       /* no stack ends there */
}

static void test_paths(void **state)
{
	static const uint32_t expected[] = {0, 2, 1, 2}, inner[] = {2, 1, 2};
	struct vp_profile profile;
	uint32_t rows[VP_CALL_PATH_MAX];

	make_nodes(&profile);
	assert_int_equal(vp_call_path(&profile, 6, rows, VP_CALL_PATH_MAX), 4);
	assert_memory_equal(rows, expected, sizeof(expected));
	assert_int_equal(vp_call_path(&profile, 6, rows, 3), 3);
	assert_memory_equal(rows, inner, sizeof(inner));
	assert_int_equal(vp_call_path(&profile, 0, rows, VP_CALL_PATH_MAX), 1);
	assert_int_equal(rows[0], 0);
	vp_vec_deinit(&profile.nodes);
}

static void put_call(const struct vp_call_tree *tree, uint32_t call, struct vp_buffer *out)
{
	const struct vp_call *at = &tree->calls.at[call];

	vp_buffer_printf(out, "%u:%llu", at->row, (unsigned long long)at->samples);
	if (at->first == VP_NONE)
		return;
	vp_buffer_string(out, "(");
	for (uint32_t branch = at->first; branch != VP_NONE; branch = tree->calls.at[branch].next) {
		put_call(tree, branch, out);
		if (tree->calls.at[branch].next != VP_NONE)
			vp_buffer_string(out, " ");
	}
	vp_buffer_string(out, ")");
}

static void expect_tree(const struct vp_profile *profile, uint32_t row, enum vp_call_order order,
			uint64_t least, const char *expected)
{
	struct vp_buffer out = {0};
	struct vp_call_tree tree;

	vp_call_tree_make(profile, row, order, least, &tree);
	if (tree.calls.count)
		put_call(&tree, 0, &out);
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
	vp_call_tree_deinit(&tree);
}

/* Most samples first; branches of just as many as asked for are there. */
static void test_call_trees(void **state)
{
	struct vp_profile profile;

	make_nodes(&profile);
	expect_tree(&profile, 2, VP_CALL_CALLEE, 0, "2:26(1:17(0:10 2:7(0:7)) 0:5)");
	expect_tree(&profile, 2, VP_CALL_CALLEE, 7, "2:26(1:17(0:10 2:7(0:7)))");
	expect_tree(&profile, 2, VP_CALL_CALLEE, 8, "2:26(1:17(0:10))");
	expect_tree(&profile, 2, VP_CALL_CALLER, 0, "2:29(1:10(2:7))");
	expect_tree(&profile, 0, VP_CALL_CALLER, 0, "0:48(1:32(3:20 2:10) 2:15(1:10(2:7)))");
	expect_tree(&profile, 1, VP_CALL_CALLER, 0, "1:42(3:20 2:17)");
	expect_tree(&profile, 4, VP_CALL_CALLER, 0, "4:9");
	expect_tree(&profile, 4, VP_CALL_CALLEE, 100, "4:9");
	expect_tree(&profile, 0, VP_CALL_CALLEE, 0, "0:1");
	expect_tree(&profile, 5, VP_CALL_CALLER, 0, "");
	expect_tree(&profile, 5, VP_CALL_CALLEE, 0, "");
	vp_vec_deinit(&profile.nodes);
}

static void test_filters(void **state)
{
	static const char *const names[] = {"alpha", "2000", "alpha", "gamma"};
	struct vp_filter filter;
	vp_vms vms = {0};

	for (uint32_t i = 0; i < VP_ARRAY_SIZE(names); i++)
		vp_vec_push(&vms,
			    ((struct vp_vm){.pid = 1000 * (i + 1), .name = vp_strdup(names[i])}));
	expect_no_error(vp_filter_init(&filter, &vms, NULL));
	assert_true(filter.all_vms && vp_filter_has_vm(&filter, 0) &&
		    vp_filter_has_vm(&filter, 7) && vp_filter_has_vm(&filter, VP_NONE));
	assert_false(vp_filter_hides_any(&filter) || vp_filter_is_of_process(&filter));
	assert_true(vp_filter_has_vcpu(&filter, 5) && vp_filter_has_vcpu(&filter, VP_NONE));
	filter.has_vcpu = true;
	filter.vcpu = 5;
	assert_true(vp_filter_hides_any(&filter) && vp_filter_has_vcpu(&filter, 5));
	assert_false(vp_filter_has_vcpu(&filter, 4) || vp_filter_has_vcpu(&filter, VP_NONE));
	filter.has_vcpu = false;
	filter.comm = "x";
	assert_true(vp_filter_hides_any(&filter) && vp_filter_is_of_process(&filter));
	filter.comm = NULL;
	filter.pid = 3;
	assert_true(vp_filter_hides_any(&filter) && vp_filter_is_of_process(&filter));
	vp_filter_deinit(&filter);
	assert_null(filter.chosen);

	/* All of that name; a name goes before a number; a number is the process's. */
	static const struct {
		const char *word;
		unsigned vms;
	} words[] = {{"alpha", 1 | 4}, {"2000", 2}, {"1000", 1}, {"4000", 8}, {"gamma", 8}};
	for (size_t i = 0; i < VP_ARRAY_SIZE(words); i++) {
		expect_no_error(vp_filter_init(&filter, &vms, words[i].word));
		for (uint32_t vm = 0; vm < VP_ARRAY_SIZE(names); vm++)
			assert_int_equal(vp_filter_has_vm(&filter, vm), words[i].vms >> vm & 1);
		assert_true(vp_filter_hides_any(&filter));
		assert_false(vp_filter_has_vm(&filter, VP_ARRAY_SIZE(names)));
		assert_false(vp_filter_has_vm(&filter, VP_NONE));
		vp_filter_deinit(&filter);
	}
	expect_error(vp_filter_init(&filter, &vms, "5000"),
		     "'5000'; the VMs are alpha (1000), 2000 (2000), alpha (3000), gamma (4000)");
	vp_vms_deinit(&vms);
	expect_error(vp_filter_init(&filter, &(vp_vms){0}, "x"), "no VM 'x', nor any other");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_keys),          cmocka_unit_test(test_keys_of_one_hash),
	    cmocka_unit_test(test_columns),       cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_views_by_name), cmocka_unit_test(test_columns_of_options),
	    cmocka_unit_test(test_merged_frames), cmocka_unit_test(test_samples),
	    cmocka_unit_test(test_stacks),        cmocka_unit_test(test_closed_stacks),
	    cmocka_unit_test(test_reasons),       cmocka_unit_test(test_merge),
	    cmocka_unit_test(test_paths),         cmocka_unit_test(test_call_trees),
	    cmocka_unit_test(test_filters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
