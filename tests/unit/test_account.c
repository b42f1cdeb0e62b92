/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account's arithmetic: buckets, quantiles, sums over intervals, checks; tables made of them.
 */
#include "unit.h"

#include <json-c/json.h>

#include "analyze/account/account_tables.h"
#include "analyze/account/irq_storm.h"
#include "make_recording.h"
#include "render/render_account.h"
#include "render/render_table.h"
#include "schema/schema.h"

#define NAME "test_account.rec"

static void test_buckets(void **state)
{
	for (uint32_t bucket = 0; bucket + 1 < VP_BUCKETS; bucket++) {
		uint64_t begin = vp_bucket_begin(bucket), end = vp_bucket_begin(bucket + 1);
		assert_true(begin < end);
		assert_int_equal(vp_bucket_of(begin), bucket);
		assert_int_equal(vp_bucket_of(end - 1), bucket);
		/* Never wider than a quarter of where it begins. */
		assert_true(bucket < 4 || end - begin <= begin / 4);
	}
	assert_int_equal(vp_bucket_of(UINT64_MAX), VP_BUCKETS - 1);
}

static void test_quantiles(void **state)
{
	struct vp_account_cost cost = {0};

	assert_int_equal(vp_account_quantile(&cost, 0.5), 0);
	/* 1000 exits of 1 to 1000 us. */
	for (uint64_t us = 1; us <= 1000; us++) {
		cost.buckets[vp_bucket_of(1000 * us)]++;
		cost.max = 1000 * us;
	}
	for (double share = 0.1; share < 1; share += 0.1) {
		double exact = share * 1e6, found = (double)vp_account_quantile(&cost, share);
		assert_true(found > 0.97 * exact && found < 1.03 * exact);
	}
	assert_true(vp_account_quantile(&cost, 1) <= 1000000);
	/* All in the last bucket, which has no end of its own. */
	struct vp_account_cost longest = {.max = 1ULL << 41};
	longest.buckets[VP_BUCKETS - 1] = 1;
	assert_int_equal(vp_account_quantile(&longest, 1), 1ULL << 41);
}

static void add(struct vp_account *account, uint32_t id, void *record)
{
	struct vp_record_header *header = record;

	header->id = id;
	vp_account_take(account, header);
}

/* A second of vCPU 0 of process 1000: 600 ms in the guest, 100 ms of each of four others. */
static void add_second(struct vp_account *account, uint64_t begin)
{
	struct vp_vcpu_account times = {.vm = 1000,
					.tid = 1001,
					.begin = begin,
					.end = begin + 1000000000,
					.guest = 600000000,
					.kernel = 100000000,
					.halted = 100000000,
					.preempted = 100000000,
					.irq = 100000000,
					.exits = 2,
					.wakeups = 7};
	struct vp_exit_account cost = {.vm = 1000,
				       .reason = MADE_HLT,
				       .vendor = VP_VENDOR_AMD,
				       .count = 2,
				       .total = 600,
				       .max = 400,
				       .kernel = 100,
				       .blocked = 500};
	struct vp_exit_bucket bucket = {.vm = 1000,
					.reason = MADE_HLT,
					.vendor = VP_VENDOR_AMD,
					.bucket = vp_bucket_of(300),
					.count = 2};
	struct vp_thief thief = {.vm = 1000,
				 .state = VP_STATE_PREEMPTED,
				 .kind = VP_BY_TASK,
				 .number = 77,
				 .thief_pid = 77,
				 .ns = 90000000,
				 .count = 3,
				 .comm = "burner"};

	add(account, VP_ID_vcpu_account, &times);
	add(account, VP_ID_exit_account, &cost);
	add(account, VP_ID_exit_bucket, &bucket);
	add(account, VP_ID_thief, &thief);
}

static void test_sums(void **state)
{
	vp_vms vms = {0};
	struct vp_account account;
	struct vp_account_checks checks;

	vp_account_init(&account, &vms);
	add_second(&account, 5);
	add_second(&account, 1000000005);
	assert_int_equal(account.times.count, 1);
	assert_int_equal(account.times.at[0].wall, 2000000000);
	assert_int_equal(account.times.at[0].states[VP_STATE_GUEST], 1200000000);
	assert_int_equal(account.times.at[0].wakeups, 14);
	assert_int_equal(account.costs.at[0].count, 4);
	assert_int_equal(account.costs.at[0].max, 400);
	assert_int_equal(account.thefts.at[0].preempted, 180000000);
	assert_string_equal(vms.at[0].name, "pid-1000");

	vp_account_check(&account, 0, 0, &checks);
	assert_true(checks.closes && checks.exits_agree && checks.parts_sum && !checks.sampled);
	/* Time that no state has. */
	account.times.at[0].states[VP_STATE_GUEST] -= 10000000;
	vp_account_check(&account, 0, 0, &checks);
	assert_false(checks.closes);
	assert_true(checks.worst_gap > 0.49 && checks.worst_gap < 0.51);
	/* A part that is missing, an exit without reason. */
	account.costs.at[0].kernel--;
	account.times.at[0].exits += 100;
	vp_account_check(&account, 0, 0, &checks);
	assert_false(checks.parts_sum || checks.exits_agree);
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
}

/* A vCPU without an account would look asleep. */
static void test_lost_vcpu_is_not_ok(void **state)
{
	struct vp_account_loss loss = {.id = VP_ID_account_loss, .vcpus = 3};
	vp_vms vms = {0};
	struct vp_account account;
	struct vp_account_checks checks;
	struct vp_buffer out = {0};

	vp_account_init(&account, &vms);
	add_second(&account, 5);
	vp_account_check(&account, 0, 0, &checks);
	assert_true(checks.all_counted);
	vp_render_checks(&checks, &out);
	assert_null(strstr(vp_buffer_text(&out), "NOT OK"));
	vp_account_take(&account, (const void *)&loss);
	vp_account_check(&account, 0, 0, &checks);
	assert_false(checks.all_counted);
	out.size = 0;
	vp_render_checks(&checks, &out);
	assert_non_null(strstr(vp_buffer_text(&out), "without an account: 3: NOT OK"));
	vp_buffer_deinit(&out);
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
}

static void test_samples(void **state)
{
	vp_vms vms = {0};
	struct vp_account account;
	struct vp_account_checks checks;
	struct vp_guest_sample sample = {.vm = 1000};

	vp_account_init(&account, &vms);
	add_second(&account, 5);
	/* 60 % of 1000 samples; 10 points of interrupts, 10 of the kernel may look like the guest.
	 */
	for (int i = 0; i < 600; i++)
		add(&account, VP_ID_guest_sample, &sample);
	vp_account_check(&account, 1000000, 0, &checks);
	assert_true(checks.sampled && checks.samples_agree && checks.worst_sample == 0);
	for (int i = 0; i < 200; i++)
		add(&account, VP_ID_guest_sample, &sample);
	vp_account_check(&account, 1000000, 0, &checks);
	assert_true(checks.samples_agree && checks.worst_sample < 0.001);
	for (int i = 0; i < 60; i++)
		add(&account, VP_ID_guest_sample, &sample);
	vp_account_check(&account, 1000000, 0, &checks);
	assert_false(checks.samples_agree);
	assert_true(checks.worst_sample > 5.9 && checks.worst_sample < 6.1);
	vp_account_check(&account, 1000000, 0.02, &checks);
	assert_true(checks.samples_agree);
	vms.at[0].has_domain = true; /* the host itself: not sampled as a guest */
	vp_account_check(&account, 1000000, 0, &checks);
	assert_true(checks.samples_agree && !checks.sampled);
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
}

static size_t storms_told(const struct vp_account *account, uint64_t period_ns, char **last)
{
	vp_sentences told = {0};

	vp_irq_storm_notes(account, period_ns, &told);
	size_t count = told.count;
	*last = count ? vp_strdup(told.at[count - 1]) : NULL;
	vp_vec_each (&told, sentence)
		free(*sentence);
	vp_vec_deinit(&told);
	return count;
}

/* The vCPU of add_second() has a pCPU for 800 ms of each second, 100 ms of them in interrupts. */
static void test_storm(void **state)
{
	struct vp_thief timer = {.vm = 1000,
				 .state = VP_STATE_IRQ,
				 .kind = VP_BY_VECTOR,
				 .number = 236,
				 .ns = 100000000,
				 .count = 15999, /* just below 20,000 a second */
				 .comm = "local_timer"};
	struct vp_guest_sample sample = {.vm = 1000};
	struct vp_account account;
	struct vp_irq_storm storm;
	vp_vms vms = {0};
	char *text;

	vp_account_init(&account, &vms);
	add_second(&account, 5);
	assert_false(vp_irq_storm_find(&account, &account.times.at[0], &storm));
	add(&account, VP_ID_thief, &timer);
	assert_int_equal(storms_told(&account, 1000000, &text), 0);
	timer.count = 1;
	timer.ns = 0;
	add(&account, VP_ID_thief, &timer);
	assert_true(vp_irq_storm_find(&account, &account.times.at[0], &storm));
	assert_string_equal(storm.source, "local_timer");
	assert_true(storm.per_s == 20000 && storm.percent == 10);
	for (int i = 0; i < 900; i++)
		add(&account, VP_ID_guest_sample, &sample);
	assert_int_equal(storms_told(&account, 1000000, &text), 1);
	assert_string_equal(
	    text, "VM 'pid-1000': interrupt storm on vCPU 0: 20000 per second (local_timer) while "
		  "it had a pCPU, 10.0% of its time; 2 exits per second, 100.0% of them HLT; "
		  "samples put 90.0% of its time in the guest, accounting says 60.0%: sampling is "
		  "biased during an interrupt storm, use 'vperf account'");
	free(text);
	assert_int_equal(storms_told(&account, 0, &text), 1);
	assert_null(strstr(text, "samples"));
	free(text);
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
}

/* So short a time says nothing of a rate. */
static void test_no_storm_of_a_moment(void **state)
{
	struct vp_vcpu_account times = {
	    .vm = 1000, .begin = 5, .end = 9000005, .guest = 8000000, .irq = 1000000};
	struct vp_thief timer = {
	    .vm = 1000, .state = VP_STATE_IRQ, .kind = VP_BY_VECTOR, .ns = 1000000, .count = 2000};
	struct vp_account account;
	struct vp_irq_storm storm;
	vp_vms vms = {0};

	vp_account_init(&account, &vms);
	add(&account, VP_ID_vcpu_account, &times);
	add(&account, VP_ID_thief, &timer);
	assert_false(vp_irq_storm_find(&account, &account.times.at[0], &storm));
	times.begin = times.end;
	times.end = 18000005;
	add(&account, VP_ID_vcpu_account, &times);
	assert_true(vp_irq_storm_find(&account, &account.times.at[0], &storm));
	assert_string_equal(storm.source, "irq 0");
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
}

static void test_tables(void **state)
{
	vp_vms vms = {0};
	struct vp_account account;
	struct vp_account_view view;
	struct vp_table steal = {0}, exits = {0};
	struct vp_buffer out = {0};

	vp_account_init(&account, &vms);
	add_second(&account, 5);
	expect_no_error(vp_account_view_init(&view, &account, "pid-1000"));
	view.seconds = 1;
	vp_account_steal_table(&view, &steal);
	vp_render_table_csv(&steal, false, &out);
	assert_string_equal(vp_buffer_text(&out),
			    "pid-1000,0,unfinished,unfinished or unknown"
			    ",,110000000,0,110000000,11,,110000000\npid-1000,0,"
			    "task,burner/77,,90000000,0,90000000,9,3,90000000\n");
	out.size = 0;
	vp_account_exits_table(&view, &exits);
	vp_render_table_csv(&exits, false, &out);
	assert_string_equal(vp_buffer_text(&out),
			    "pid-1000,HLT,2,2,100,50,100,0,0,500,0,0,600,300,288,319,400,500,0\n");
	out.size = 0;
	struct vp_json json = vp_json_to(&out);
	vp_render_table_json(&exits, NULL, &json);
	struct json_object *rows = json_tokener_parse(vp_buffer_text(&out));
	assert_int_equal(json_object_array_length(rows), 1);
	struct json_object *blocked = NULL;
	assert_true(
	    json_object_object_get_ex(json_object_array_get_idx(rows, 0), "blocked_ns", &blocked));
	assert_int_equal(json_object_get_int64(blocked), 500);
	json_object_put(rows);
	vp_buffer_deinit(&out);
	vp_table_deinit(&steal);
	vp_table_deinit(&exits);
	vp_account_view_deinit(&view);
	struct vp_error *error = vp_account_view_init(&view, &account, "none");
	assert_non_null(error);
	vp_error_free(error);
	vp_account_view_deinit(&view);
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
}

/* 30 exits to memory in all, of which 4 are told nowhere; two functions write to one register. */
static void add_addresses(struct vp_account *account)
{
	static const struct {
		uint64_t ip, address, count, ns;
		uint32_t kind;
	} sites[] = {{0x1000, 0x38000001004, 5, 900, VP_DETAIL_MMIO_WRITE},
		     {0x2000, 0x38000001004, 1, 100, VP_DETAIL_MMIO_WRITE},
		     {0x1000, 0x38000001004, 3, 90, VP_DETAIL_MMIO_READ},
		     {0x1000, 0x200000, 16, 800, VP_DETAIL_MEMORY_WRITE},
		     {0x3000, VP_NO_ADDRESS, 1, 10, VP_DETAIL_MEMORY_WRITE}};
	struct vp_exit_account all = {
	    .vm = 1000, .reason = MADE_NPF, .vendor = VP_VENDOR_AMD, .count = 30, .total = 2000};

	add(account, VP_ID_exit_account, &all);
	for (size_t i = 0; i < VP_ARRAY_SIZE(sites); i++) {
		struct vp_exit_site_address site = {.flags = VP_SITE_KNOWN,
						    .vm = 1000,
						    .reason = MADE_NPF,
						    .vendor = VP_VENDOR_AMD,
						    .ip = sites[i].ip,
						    .count = sites[i].count,
						    .ns = sites[i].ns,
						    .detail_kind = sites[i].kind,
						    .address = sites[i].address};
		add(account, VP_ID_exit_site_address, &site);
	}
}

/* Exits that are not to memory have no row; what has no address shares one. */
static void test_addresses(void **state)
{
	static const struct vp_naming nothing;
	vp_vms vms = {0};
	struct vp_account account;
	struct vp_account_view view;
	struct vp_table addresses = {0}, functions = {0};
	struct vp_buffer out = {0};

	vp_account_init(&account, &vms);
	add_second(&account, 5);
	add_addresses(&account);
	expect_no_error(vp_account_view_init(&view, &account, "pid-1000"));
	vp_account_addresses_table(&view, &addresses);
	vp_render_table_csv(&addresses, false, &out);
	assert_string_equal(vp_buffer_text(&out),
			    "pid-1000,0x38000001004,device,write,NPF,6,1000,166,0,0,1000,166,0\n"
			    "pid-1000,0x200000-0x3fffff,memory,write,NPF,16,800,50,0,0,800,50,0\n"
			    "pid-1000,,,,NPF,5,110,22,0,0,110,22,0\n"
			    "pid-1000,0x38000001004,device,read,NPF,3,90,30,0,0,90,30,0\n");
	out.size = 0;
	vp_account_sites_table(&view, &nothing, VP_EXITS_BY_FUNCTION, &functions);
	vp_render_table_csv(&functions, false, &out);
	assert_non_null(strstr(vp_buffer_text(&out), ",NPF,MMIO write 0x38000001004,5,900,"));
	assert_non_null(strstr(vp_buffer_text(&out), ",NPF,memory write,16,800,"));
	vp_buffer_deinit(&out);
	vp_table_deinit(&addresses);
	vp_table_deinit(&functions);
	vp_account_view_deinit(&view);
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
}

/* From the disk: a recording without an account says so; control groups have their paths. */
static void test_book(void **state)
{
	struct vp_account_recording rec;
	struct made made;
	vp_cgroups cgroups = {0};

	made_begin(&made, NAME, 1);
	made_guest(&made, 0, 0, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_end(&made, 1);
	struct vp_error *error = vp_account_recording_open(NAME, NULL, &rec);
	assert_non_null(error);
	assert_non_null(strstr(vp_error_message(error), "has no vCPU accounting"));
	vp_error_free(error);

	made_begin(&made, NAME, 1);
	struct vp_vcpu_account times = {.time = MADE_START,
					.id = VP_ID_vcpu_account,
					.vm = 1000,
					.begin = 1,
					.end = 11,
					.guest = 10};
	vp_trace_append(made.writer, vp_stream_of_pcpu(0), &times);
	made.pcpus = 1;
	made_end(&made, 1);
	vp_cgroups_note(&cgroups, 7);
	vp_cgroups_note(&cgroups, 7);
	assert_int_equal(cgroups.count, 1);
	cgroups.at[0].path = vp_strdup("/machine.slice/a b");
	expect_no_error(vp_cgroups_write(NAME, &cgroups));
	vp_cgroups_deinit(&cgroups);
	expect_no_error(vp_account_recording_open(NAME, NULL, &rec));
	assert_string_equal(vp_cgroups_path(&rec.cgroups, 7), "/machine.slice/a b");
	assert_null(vp_cgroups_path(&rec.cgroups, 8));
	assert_true(rec.checks.closes);
	vp_account_recording_close(&rec);
	temporary_file(NAME "/cgroups", "seven /a\n", 9);
	error = vp_account_recording_open(NAME, NULL, &rec);
	assert_non_null(error);
	vp_error_free(error);
}

/* What a guest or a command line called itself is shown, and does nothing. */
static void test_names_are_harmless(void **state)
{
	static const char name[] = "vm\x1b[2J\n\xff\xc3\xa9";
	struct vp_buffer out = {0};
	struct vp_table table = {0};

	vp_table_column_add(&table, "vm", "VM", "", VP_CELL_TEXT);
	vp_table_column_add(&table, "pid", "PID", "", VP_CELL_COUNT);
	vp_table_text(&table, name);
	vp_table_count(&table, 1);
	vp_render_table_text(&table, false, &out);
	assert_string_equal(vp_buffer_text(&out), "VM         PID\n"
						  "vm?[2J??\xc3\xa9    1\n");
	out.size = 0;
	vp_render_table_csv(&table, false, &out);
	assert_string_equal(vp_buffer_text(&out), "vm?[2J??\xc3\xa9,1\n");
	out.size = 0;
	struct vp_json json = vp_json_to(&out);
	vp_render_table_json(&table, NULL, &json);
	assert_non_null(strstr(vp_buffer_text(&out), "\"vm?[2J??\xc3\xa9\""));
	vp_buffer_deinit(&out);
	vp_table_deinit(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_buckets),
	    cmocka_unit_test(test_quantiles),
	    cmocka_unit_test(test_sums),
	    cmocka_unit_test(test_lost_vcpu_is_not_ok),
	    cmocka_unit_test(test_samples),
	    cmocka_unit_test(test_storm),
	    cmocka_unit_test(test_no_storm_of_a_moment),
	    cmocka_unit_test(test_tables),
	    cmocka_unit_test(test_addresses),
	    cmocka_unit_test(test_book),
	    cmocka_unit_test(test_names_are_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
