/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The screen of 'vperf top': what its keys do, and what it shows, on known accounts. */
#include "unit.h"

#include <locale.h>
#include <stdio.h>
#include <wchar.h>

#include "make_recording.h"
#include "render/top.h"

#define MS 1000000ULL

struct fixture {
	vp_vms vms;
	struct vp_account account;
	struct vp_account_view view;
	struct vp_live live;
	struct vp_top top;
	struct vp_table exits, thieves;
	struct vp_buffer out;
};

static void take(struct vp_account *account, uint32_t id, void *record)
{
	struct vp_record_header *header = record;

	header->id = id;
	vp_account_take(account, header);
}

/* A second of a vCPU; what is left of it, it was halted. */
static void add_vcpu(struct fixture *fixture, uint32_t vm, uint32_t vcpu, uint64_t guest_ms,
		     uint64_t steal_ms, uint64_t exits)
{
	struct vp_vcpu_account times = {.vm = vm,
					.vcpu = vcpu,
					.tid = vm + 1 + vcpu,
					.begin = 5,
					.end = 5 + 1000 * MS,
					.guest = guest_ms * MS,
					.preempted = steal_ms * MS,
					.halted = (1000 - guest_ms - steal_ms) * MS,
					.exits = exits};

	take(&fixture->account, VP_ID_vcpu_account, &times);
}

static void name_vm(struct fixture *fixture, size_t vm, const char *name)
{
	free(fixture->vms.at[vm].name);
	fixture->vms.at[vm].name = vp_strdup(name);
}

static void name_vms(struct fixture *fixture)
{
	static const char *const names[] = {"web", "database", "batch"};

	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++)
		name_vm(fixture, i, names[i]);
}

static void make_tables(struct fixture *fixture)
{
	vp_table_deinit(&fixture->exits);
	vp_table_deinit(&fixture->thieves);
	vp_account_view_deinit(&fixture->view);
	expect_no_error(vp_account_view_init(&fixture->view, &fixture->account, NULL));
	fixture->view.seconds = 1;
	vp_account_exits_table(&fixture->view, &fixture->exits);
	vp_account_steal_table(&fixture->view, &fixture->thieves);
}

/* web: two vCPUs; database steals nothing and is stolen from most; batch makes most exits. */
static void add_update(struct fixture *fixture, uint64_t web_guest_ms)
{
	vp_account_deinit(&fixture->account);
	vp_account_init(&fixture->account, &fixture->vms);
	add_vcpu(fixture, 1000, 0, web_guest_ms, 0, 10);
	add_vcpu(fixture, 1000, 1, 100, 20, 20);
	add_vcpu(fixture, 2000, 0, 400, 600, 300);
	add_vcpu(fixture, 3000, 0, 900, 10, 40000);
	name_vms(fixture);
	make_tables(fixture);
	vp_live_take(&fixture->live, &fixture->view);
}

static void begin(struct fixture *fixture)
{
	*fixture = (struct fixture){.top.order.sort = VP_LIVE_STEAL};
	add_update(fixture, 500);
}

static void end(struct fixture *fixture)
{
	vp_account_view_deinit(&fixture->view);
	vp_account_deinit(&fixture->account);
	vp_live_deinit(&fixture->live);
	vp_table_deinit(&fixture->exits);
	vp_table_deinit(&fixture->thieves);
	vp_buffer_deinit(&fixture->out);
	vp_vms_deinit(&fixture->vms);
}

static void press(struct fixture *fixture, const char *keys)
{
	for (; *keys; keys++)
		vp_top_key(&fixture->top, *keys, &fixture->live);
}

static const char *drawn(struct fixture *fixture, uint32_t width, uint32_t height, bool colour)
{
	const struct vp_top_screen screen = {.width = width,
					     .height = height,
					     .colour = colour,
					     .utf8 = true,
					     .keys = true,
					     .seconds = 1,
					     .live = &fixture->live,
					     .vms = &fixture->vms,
					     .exits = &fixture->exits,
					     .thieves = &fixture->thieves};

	fixture->out.size = 0;
	vp_top_draw(&fixture->top, &screen, &fixture->out);
	return vp_buffer_text(&fixture->out);
}

/* Names of the VMs of the rows, and their vCPUs, in their order. */
static void expect_rows(struct fixture *fixture, const char *const *expected)
{
	const char *line = strchr(drawn(fixture, 80, 24, false), '\n') + 1;

	assert_memory_equal(line, "VM  ", 4);
	for (; *expected; expected++) {
		char vm[17], number[8], row[64];
		line = strchr(line, '\n') + 1;
		assert_int_equal(sscanf(line, "%16s %7s", vm, number), 2);
		snprintf(row, sizeof(row), "%s %s", vm, number);
		assert_string_equal(row, *expected);
	}
	line = strchr(line, '\n') + 1;
	assert_true(*line == '\n' || !*line);
}

#define EXPECT_ROWS(fixture, ...) expect_rows(fixture, (const char *const[]){__VA_ARGS__, NULL})

static void test_sort(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	EXPECT_ROWS(&fixture, "database 0", "web 1", "batch 0", "web 0");
	press(&fixture, "g");
	EXPECT_ROWS(&fixture, "batch 0", "web 0", "database 0", "web 1");
	press(&fixture, "x");
	EXPECT_ROWS(&fixture, "batch 0", "database 0", "web 1", "web 0");
	press(&fixture, "i");
	EXPECT_ROWS(&fixture, "web 1", "web 0", "batch 0", "database 0");
	press(&fixture, "n");
	EXPECT_ROWS(&fixture, "web 0", "web 1", "database 0", "batch 0");
	/* Behind the last comes the first, and back. */
	press(&fixture, ">");
	assert_int_equal(fixture.top.order.sort, VP_LIVE_GUEST);
	press(&fixture, "<<");
	assert_int_equal(fixture.top.order.sort, VP_LIVE_EXITS);
	press(&fixture, "oz");
	assert_int_equal(fixture.top.order.sort, VP_LIVE_HOST);
	press(&fixture, "t");
	assert_int_equal(fixture.top.order.sort, VP_LIVE_STEAL);
	end(&fixture);
}

static void test_vms(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	press(&fixture, "nv");
	EXPECT_ROWS(&fixture, "web 0", "web 1");
	press(&fixture, "v");
	EXPECT_ROWS(&fixture, "database 0");
	assert_non_null(strstr(drawn(&fixture, 80, 24, false), "VM database"));
	press(&fixture, "V");
	EXPECT_ROWS(&fixture, "web 0", "web 1");
	press(&fixture, "V");
	EXPECT_ROWS(&fixture, "web 0", "web 1", "database 0", "batch 0");
	press(&fixture, "V");
	EXPECT_ROWS(&fixture, "batch 0");
	press(&fixture, "a");
	EXPECT_ROWS(&fixture, "web 0", "web 1", "database 0", "batch 0");
	/* Rows of VMs: how many vCPUs, means, sums. */
	press(&fixture, "c");
	EXPECT_ROWS(&fixture, "web 2", "database 1", "batch 1");
	assert_non_null(strstr(drawn(&fixture, 80, 24, false),
			       "web                  2  30.00   0.00   69.00   1.00         30"));
	end(&fixture);
}

static void test_modes(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	assert_null(strstr(drawn(&fixture, 80, 24, false), "FROZEN"));
	press(&fixture, "f");
	assert_true(fixture.top.frozen);
	assert_non_null(strstr(drawn(&fixture, 80, 24, false), "FROZEN"));
	press(&fixture, " ");
	assert_false(fixture.top.frozen);
	for (const char *key = "h?"; *key; key++) {
		vp_top_key(&fixture.top, *key, &fixture.live);
		assert_true(fixture.top.help);
		assert_non_null(strstr(drawn(&fixture, 80, 24, false), "Ctrl-C   quit\n"));
		assert_null(strstr(drawn(&fixture, 80, 24, false), "database"));
		vp_top_key(&fixture.top, *key, &fixture.live);
		assert_false(fixture.top.help);
	}
	press(&fixture, "h\033");
	assert_false(fixture.top.help || fixture.top.quit);
	press(&fixture, "q");
	assert_true(fixture.top.quit);
	end(&fixture);
}

/* Keys of several bytes, also cut off and unknown: their letters are no keys of their own. */
static void test_scrolling(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	press(&fixture, "\033[B\033OBj");
	assert_int_equal(fixture.top.first, 3);
	press(&fixture, "k\033[A");
	assert_int_equal(fixture.top.first, 1);
	press(&fixture, "\033[6~\033[6~");
	assert_int_equal(fixture.top.first, 4); /* as many as there are rows */
	press(&fixture, "\033[H");
	assert_int_equal(fixture.top.first, 0);
	press(&fixture, "\033[6~\033[5~k");
	assert_int_equal(fixture.top.first, 0);
	press(&fixture, "\033[1;5q\033[9999999999q\033Oq\033[200~");
	assert_false(fixture.top.quit);
	press(&fixture, "\033[\033q");
	assert_true(fixture.top.quit);
	/* Of four rows, in a window for two, the last. */
	fixture.top.order.sort = VP_LIVE_VALUES;
	press(&fixture, "jjjj");
	const char *text = drawn(&fixture, 80, 4, false);
	assert_null(strstr(text, "web"));
	assert_non_null(strstr(text, "\ndatabase "));
	assert_non_null(strstr(text, "\nbatch "));
	end(&fixture);
}

static void test_history(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	press(&fixture, "g");
	add_update(&fixture, 0);
	vp_live_miss(&fixture.live);
	add_update(&fixture, 999);
	/* 50 %, 0 %, not looked at, 99.9 %. */
	assert_non_null(strstr(drawn(&fixture, 80, 24, false), " \u2585\u2581 \u2588\n"));
	/* Exits: parts of the most. */
	press(&fixture, "x");
	assert_non_null(strstr(drawn(&fixture, 80, 24, false), " \u2588\u2588 \u2588\n"));
	const struct vp_live_row *row = &fixture.live.rows.at[0];
	assert_float_equal(vp_live_value(&fixture.live, row, VP_LIVE_GUEST, 0), 99.9, 0.001);
	assert_float_equal(vp_live_value(&fixture.live, row, VP_LIVE_GUEST, 3), 50, 0.001);
	assert_true(vp_live_value(&fixture.live, row, VP_LIVE_GUEST, 1) !=
		    vp_live_value(&fixture.live, row, VP_LIVE_GUEST, 1)); /* NaN */
	/* A VM that is gone has no row, and history is not longer than it is. */
	for (unsigned i = 0; i < 2 * VP_LIVE_HISTORY; i++)
		add_update(&fixture, 250);
	assert_float_equal(vp_live_value(&fixture.live, row, VP_LIVE_GUEST, VP_LIVE_HISTORY - 1),
			   25, 0.001);
	assert_true(vp_live_value(&fixture.live, row, VP_LIVE_GUEST, VP_LIVE_HISTORY) !=
		    vp_live_value(&fixture.live, row, VP_LIVE_GUEST, VP_LIVE_HISTORY));
	end(&fixture);
}

static void add_costs(struct fixture *fixture)
{
	struct vp_exit_account cost = {.vm = 3000,
				       .reason = MADE_HLT,
				       .vendor = VP_VENDOR_AMD,
				       .count = 40000,
				       .total = 8000000,
				       .max = 4000,
				       .kernel = 2000000,
				       .blocked = 6000000};
	struct vp_thief thief = {.vm = 2000,
				 .state = VP_STATE_PREEMPTED,
				 .kind = VP_BY_TASK,
				 .number = 77,
				 .thief_pid = 77,
				 .ns = 600 * MS,
				 .count = 3,
				 .comm = "burner"};

	take(&fixture->account, VP_ID_exit_account, &cost);
	take(&fixture->account, VP_ID_thief, &thief);
	make_tables(fixture);
}

/* Lines at most `width` wide, at most `height` of them; escapes have no width. */
static void expect_fits(const char *text, uint32_t width, uint32_t height)
{
	uint32_t lines = 0;

	while (*text) {
		uint32_t used = 0;
		for (; *text != '\n';) {
			wchar_t character;
			if (*text == '\033') {
				text = strchr(text, 'm') + 1;
				continue;
			}
			int size = mbtowc(&character, text, MB_CUR_MAX);
			assert_true(size > 0);
			used += (uint32_t)wcwidth(character);
			text += size;
		}
		text++;
		lines++;
		assert_true(used <= width);
	}
	assert_true(lines <= height);
}

static void test_sizes(void **state)
{
	static const struct {
		uint32_t width, height;
	} sizes[] = {{80, 24}, {80, 3}, {1, 1}, {40, 12}, {132, 50}, {500, 10}, {20, 200}};
	struct fixture fixture;

	begin(&fixture);
	add_costs(&fixture);
	for (size_t i = 0; i < VP_ARRAY_SIZE(sizes); i++)
		for (unsigned help = 0; help < 2; help++) {
			uint32_t width = sizes[i].width, height = sizes[i].height;
			fixture.top.help = help;
			expect_fits(drawn(&fixture, width, height, false), width, height);
			expect_fits(drawn(&fixture, width, height, true), width, height);
		}
	fixture.top.help = false;
	/* In 80 columns, everything that costs is there, whole. */
	const char *text = drawn(&fixture, 80, 24, false);
	assert_non_null(strstr(text,
			       "\nbatch            HLT                        40000   2.00 ms   "
			       "6.00 ms         0\n"));
	assert_non_null(strstr(
	    text,
	    "\ndatabase             0 burner/77                            600 ms    60.00\n"));
	assert_null(strstr(text, "\033"));
	assert_non_null(strstr(drawn(&fixture, 80, 24, true), "\033[31mdatabase"));
	/* In a small window the vCPUs are. */
	text = drawn(&fixture, 80, 8, false);
	assert_null(strstr(text, "burner"));
	assert_non_null(strstr(text, "\ndatabase "));
	end(&fixture);
}

static void test_names(void **state)
{
	static const char *const names[] = {
	    "\033[2J\x9b", "\u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16\u754c\u4e16",
	    "e\u0301\u202e", "a name that is far too long for its column"};
	struct fixture fixture;

	begin(&fixture);
	press(&fixture, "nv");
	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++) {
		name_vm(&fixture, 0, names[i]);
		make_tables(&fixture);
		const char *text = drawn(&fixture, 80, 24, false);
		expect_fits(text, 80, 24);
		assert_null(strstr(text, "\033"));
		assert_null(strstr(text, "\u202e"));
		/* The columns behind are where they are. */
		assert_non_null(strstr(text, "     0  50.00   0.00   50.00   0.00         10  "));
	}
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sort),    cmocka_unit_test(test_vms),
	    cmocka_unit_test(test_modes),   cmocka_unit_test(test_scrolling),
	    cmocka_unit_test(test_history), cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_names),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
