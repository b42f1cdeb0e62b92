/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of a query API, queries with tenants' names in them, and the tables made of answers. */
#include "unit.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "fleet/fleet_answer.h"
#include "fleet/fleet_query.h"
#include "fleet/fleet_tables.h"

static struct vp_error *parse(const char *text, struct vp_fleet_answer *ret)
{
	return vp_fleet_answer_parse(text, strlen(text), ret);
}

static void test_answers(void **state)
{
	struct vp_fleet_answer answer;

	expect_no_error(parse(
	    "{\"status\":\"success\",\"stats\":{\"x\":1},\"warnings\":[\"w\\u001b\"],\"data\":{"
	    "\"resultType\":\"vector\",\"result\":["
	    "{\"metric\":{\"instance\":\"h:1\",\"vm\":\"a\\u001b[2J\",\"new\":\"x\"},\"value\":["
	    "1.5,\"0.25\"]},"
	    "{\"metric\":{},\"value\":[1,\"NaN\"]},{\"metric\":{},\"value\":[1,\"+Inf\"]},"
	    "{\"metric\":{},\"value\":[1,2]},{\"metric\":7},7,null,"
	    "{\"metric\":{\"vm\":8},\"value\":[1,\"1e1\"]}]}}",
	    &answer));
	assert_int_equal(answer.series.count, 2);
	assert_string_equal(answer.series.at[0].labels[VP_FLEET_INSTANCE], "h:1");
	assert_string_equal(answer.series.at[0].labels[VP_FLEET_VM], "a?[2J");
	assert_string_equal(answer.series.at[0].labels[VP_FLEET_THIEF], "");
	assert_true(answer.series.at[0].value == 0.25 && answer.series.at[1].value == 10);
	assert_string_equal(answer.series.at[1].labels[VP_FLEET_VM], "");
	assert_int_equal(answer.warnings.count, 1);
	assert_string_equal(answer.warnings.at[0], "w?");
	vp_fleet_answer_deinit(&answer);
}

static void test_no_answers(void **state)
{
	static const char *const texts[] = {"",
					    "<html>",
					    "[]",
					    "{}",
					    "{\"data\":[]}",
					    "{\"status\":\"success\",\"data\":{\"result\":[]}}",
					    "{\"data\":{\"resultType\":\"matrix\",\"result\":[]}}",
					    "{\"data\":{\"resultType\":\"vec"};
	struct vp_fleet_answer answer;

	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++)
		expect_error(parse(texts[i], &answer), "expected the answer");
	char deep[400];
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = 0;
	expect_error(parse(deep, &answer), "expected the answer");
	expect_error(
	    parse("{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"no\"}", &answer),
	    "bad_data: no");
}

static void expect_query(enum vp_fleet_query query, const char *match, const vp_fleet_texts *names,
			 const char *expected)
{
	const struct vp_fleet_options options = {match, 300, 10};
	struct vp_buffer text = {0};

	vp_fleet_query_put(&options, query, names, NULL, &text);
	assert_string_equal(vp_buffer_text(&text), expected);
	vp_buffer_deinit(&text);
}

/* A VM's name ends neither its string nor its expression. */
static void test_queries(void **state)
{
	char *hostile[] = {(char *)"a\"} or x{b=\"", (char *)"c.*|d\\"};
	vp_fleet_texts names = {.at = hostile, .count = 2};

	expect_query(VP_FLEET_QUERY_INFO, "dc=\"1\"", &names,
		     "vperf_vm_info{vm=~\"a\\\"\\\\} or x\\\\{b=\\\"|c\\\\.\\\\*\\\\|d\\\\\\\\\","
		     "dc=\"1\"}");
	expect_query(VP_FLEET_QUERY_VCPUS, "", NULL,
		     "topk(10, sum by (instance, vm, vcpu) "
		     "(rate(vperf_vcpu_stolen_seconds_total{}[300s])) > 0)");
	expect_query(VP_FLEET_QUERY_BETTER, "dc=\"1\"", NULL,
		     "bottomk(10, sum by (vm) "
		     "(rate(vperf_vcpu_stolen_seconds_total{dc=\"1\"}[300s])) - sum by (vm) "
		     "(rate(vperf_vcpu_stolen_seconds_total{dc=\"1\"}[300s] offset 1d)))");
}

/* An engine that has these answers. */
struct engine {
	const char *failing;
	unsigned asked;
};

#define ITEM(labels, value) "{\"metric\":{" labels "},\"value\":[1,\"" value "\"]}"
#define ON(host, vm) "\"instance\":\"" host ":9757\",\"vm\":\"" vm "\""

/* By a part of the query. "db" is on two hosts, "db" of another namespace has its uuid, too. */
static const struct {
	const char *part, *series;
} engine_answers[] = {
    {"topk(10, sum by (instance, vm, vcpu)",
     ITEM(ON("old", "db") ",\"vcpu\":\"1\"",
	  "0.3") "," ITEM(ON("new", "db") ",\"vcpu\":\"1\"",
			  "0.4") "," ITEM(ON("far", "db") ",\"vcpu\":\"0\"", "0.1")},
    {"vperf_vm_info{vm=~\"db\"",
     ITEM(ON("old", "db") ",\"uuid\":\"u\"",
	  "1") "," ITEM(ON("new", "db") ",\"uuid\":\"u\"",
			"1") "," ITEM(ON("far", "db") ",\"uuid\":\"u\",\"namespace\":\"n\"", "1")},
    {"topk(10, sum by (instance, vm, thief)", ITEM(ON("old", "db") ",\"thief\":\"web\"", "0.2")},
    {"vm=~\"web\",thief=~\"db\"", ITEM(ON("old", "web") ",\"thief\":\"db\"", "0.05")},
    {"topk(10, sum by (instance) (", ITEM("\"instance\":\"old:9757\"", "1.5")},
    {"vperf_vm_finding_ratio", ITEM("\"instance\":\"old:9757\"", "0.25")},
    {"count by (instance)", ITEM("\"instance\":\"old:9757\"", "3")},
    {"topk(10, sum by (vm)", ITEM("\"vm\":\"db\"", "0.25") "," ITEM("\"vm\":\"idle\"", "0")},
    {"bottomk(10, sum by (vm)", ITEM("\"vm\":\"mail\"", "-0.5")},
    {"vm=~\"db|idle|mail\"", ITEM("\"vm\":\"db\"", "0.75") "," ITEM("\"vm\":\"mail\"", "0.25")},
    {"vperf_recording_info",
     ITEM("\"instance\":\"old:9757\",\"recording\":\"20261126T055305Z\"", "1")},
};

static struct vp_error *engine_ask(void *context, const char *query, struct vp_fleet_answer *ret)
{
	struct engine *engine = context;

	engine->asked++;
	if (engine->failing && strstr(query, engine->failing))
		return vp_error_new("the engine is away");
	for (size_t i = 0; i < VP_ARRAY_SIZE(engine_answers); i++)
		if (strstr(query, engine_answers[i].part)) {
			VP_AUTO_FREE char *text =
			    vp_format("{\"data\":{\"resultType\":\"vector\",\"result\":[%s]}}",
				      engine_answers[i].series);
			return parse(text, ret);
		}
	fail_msg("nobody expects the query %s", query);
	return NULL;
}

static const union vp_cell *cell(const struct vp_fleet *fleet, enum vp_fleet_table which,
				 size_t row, const char *key)
{
	const struct vp_table *table = &fleet->tables[which];
	size_t column = vp_table_column_of(table, key);

	assert_true(column < table->columns.count && row < vp_table_rows(table));
	return &table->cells.at[row * table->columns.count + column];
}

static void expect_number(double found, double expected)
{
	assert_true(found > expected - 1e-9 && found < expected + 1e-9);
}

static void test_tables(void **state)
{
	struct engine engine = {0};
	const struct vp_fleet_engine asks = {engine_ask, &engine};
	const struct vp_fleet_options options = {"", 300, 10};
	struct vp_fleet fleet;

	expect_no_error(vp_fleet_make(&asks, &options, &fleet));
	assert_int_equal(engine.asked, VP_FLEET_QUERIES);
	/* The worst first; a migration shows the VM on two hosts. */
	assert_int_equal(vp_table_rows(&fleet.tables[VP_FLEET_VCPUS]), 3);
	assert_string_equal(cell(&fleet, VP_FLEET_VCPUS, 0, "instance")->text, "new");
	expect_number(cell(&fleet, VP_FLEET_VCPUS, 0, "steal")->percent, 40);
	assert_string_equal(cell(&fleet, VP_FLEET_VCPUS, 0, "also_on")->text, "old");
	assert_null(cell(&fleet, VP_FLEET_VCPUS, 0, "recording")->text);
	assert_string_equal(cell(&fleet, VP_FLEET_VCPUS, 1, "recording")->text, "20261126T055305Z");
	assert_string_equal(cell(&fleet, VP_FLEET_VCPUS, 1, "also_on")->text, "new");
	assert_null(cell(&fleet, VP_FLEET_VCPUS, 2, "also_on")->text);
	expect_number(cell(&fleet, VP_FLEET_PAIRS, 0, "steal")->percent, 20);
	expect_number(cell(&fleet, VP_FLEET_PAIRS, 0, "back")->percent, 5);
	expect_number(cell(&fleet, VP_FLEET_HOSTS, 0, "overcommit")->percent, 25);
	assert_int_equal(cell(&fleet, VP_FLEET_HOSTS, 0, "vms")->count, 3);
	assert_int_equal(vp_table_rows(&fleet.tables[VP_FLEET_CHANGES]), 2);
	expect_number(cell(&fleet, VP_FLEET_CHANGES, 0, "day_before")->percent, 50);
	assert_string_equal(cell(&fleet, VP_FLEET_CHANGES, 1, "vm")->text, "mail");
	expect_number(cell(&fleet, VP_FLEET_CHANGES, 1, "day_before")->percent, 75);
	vp_fleet_deinit(&fleet);
}

static void test_failures(void **state)
{
	static const char *const parts[] = {"vcpu)", "vperf_vm_info{vm=~", "bottomk"};
	const struct vp_fleet_options options = {"", 300, 10};
	struct vp_fleet fleet;

	for (size_t i = 0; i < VP_ARRAY_SIZE(parts); i++) {
		struct engine engine = {.failing = parts[i]};
		const struct vp_fleet_engine asks = {engine_ask, &engine};
		expect_error(vp_fleet_make(&asks, &options, &fleet), "the engine is away");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_answers), cmocka_unit_test(test_no_answers),
	    cmocka_unit_test(test_queries), cmocka_unit_test(test_tables),
	    cmocka_unit_test(test_failures)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
