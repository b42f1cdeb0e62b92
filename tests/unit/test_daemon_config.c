/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The configuration of vperfd: defaults, values with units, and errors that say where and what. */
#include "unit.h"

#include "base/alloc.h"
#include "base/macros.h"
#include "daemon/daemon_config.h"

#define SECOND 1000000000ULL

static struct vp_error *parse(const char *text, struct vp_daemon_config *ret)
{
	return vp_daemon_config_parse("x.conf", text, strlen(text), ret);
}

static void expect_wrong(const char *text, const char *part)
{
	struct vp_daemon_config config;

	expect_error(parse(text, &config), part);
}

static void test_defaults(void **state)
{
	struct vp_daemon_config config;

	expect_no_error(parse("", &config));
	assert_int_equal(config.frequency, 19);
	assert_int_equal(config.keep_ns, 7 * 86400 * SECOND);
	assert_int_equal(config.flight_bytes, 0);
	assert_string_equal(config.listen, "127.0.0.1:9757");
	vp_daemon_config_deinit(&config);
}

static void test_values(void **state)
{
	struct vp_daemon_config config;

	expect_no_error(parse("# a comment\r\n\n[store]\ndirectory = /srv/x y\n"
			      "rotate-every=90 s\n  keep-size =\t3G\n keep-for = off\n"
			      "[ rules ]\n; another\nevery = off\nleast=25\n[flight]\n"
			      "size = 64M\n[record]\naccount = exact\nfrequency = off",
			      &config));
	assert_string_equal(config.directory, "/srv/x y");
	assert_int_equal(config.rotate_ns, 90 * SECOND);
	assert_int_equal(config.keep_bytes, 3ULL << 30);
	assert_int_equal(config.keep_ns, 0);
	assert_int_equal(config.rules_ns, 0);
	assert_int_equal(config.least, 25);
	assert_int_equal(config.flight_bytes, 64 << 20);
	assert_string_equal(config.account, "exact");
	assert_int_equal(config.frequency, 0);
	vp_daemon_config_deinit(&config);
}

/* As Windows' editors write it, before a section or a comment. */
static void test_byte_order_mark(void **state)
{
	struct vp_daemon_config config;

	expect_no_error(parse("\xef\xbb\xbf[record]\r\nfrequency = 20\r\n", &config));
	assert_int_equal(config.frequency, 20);
	vp_daemon_config_deinit(&config);
	expect_wrong("\xef\xbb\xbf\xef\xbb\xbf[record]\n", "x.conf:1: ");
}

static void test_mistyped(void **state)
{
	expect_wrong(
	    "[store]\n\nkep-for = 7d\n",
	    "x.conf:3: section [store] has no key 'kep-for' (did you mean keep-for or keep-free?)");
	expect_wrong("[stroe]\n", "x.conf:1: there is no section [stroe] (did you mean store?)");
	expect_wrong("[record]\nkeep-for = 7d\n",
		     "x.conf:2: key 'keep-for' is of section [store], not [record]");
	expect_wrong("frequency = 19\n", "x.conf:1: key 'frequency' before the first [SECTION]");
	expect_wrong("[store\n", "x.conf:1: expected [SECTION], not '[store'");
	expect_wrong("[store]\nkeep-for 7d\n", "x.conf:2: expected KEY = VALUE, not 'keep-for 7d'");
}

static void test_wrong_values(void **state)
{
	expect_wrong("[store]\nkeep-for = 7 days\n",
		     "x.conf:2: key 'keep-for' in [store]: expected a time such as 30s, 10m, 1h or "
		     "7d, 1m to 3660d, or off, not '7 days'");
	expect_wrong("[store]\nrotate-every = off\n", "10s to 7d, not 'off'");
	expect_wrong("[store]\nkeep-size = 10\n",
		     "expected a size such as 512M or 10G, 2M to 1024T");
	expect_wrong("[record]\nfrequency = 0\n", "expected a number, 1 to 10000, or off, not '0'");
	expect_wrong("[record]\nfrequency = 99999999999999999999\n", "not '99999999999999999999'");
	expect_wrong("[record]\nfrequency = 10001\n", "not '10001'");
	expect_wrong("[record]\nfrequency =\n", "not ''");
	expect_wrong("[rules]\nevery = 18446744073709551615d\n", "key 'every' in [rules]");
	expect_wrong("[record]\naccount = exakt\n", "expected exact, sampled or states");
	expect_wrong("[store]\ndirectory = a/b\n", "expected an absolute path, not 'a/b'");
	expect_wrong("[store]\ndirectory = /a\033[2J\n", "characters that are not text");
	expect_wrong("[store]\nkeep-size = 100M\nrotate-size = 51M\n",
		     "expected at most half of keep-size");
	expect_wrong("[record]\naccount = states\nfrequency = off\n", "needs samples");
}

static void test_read(void **state)
{
	struct vp_daemon_config config;

	expect_error(vp_daemon_config_read("/nonexistent/x.conf", &config), "/nonexistent/x.conf");
}

/* Each mistake is reported with its line, and the nearest right word. */
static void test_texts(void **state)
{
	struct vp_daemon_config config;

	expect_wrong("[store]\nkeep-for = 7d\n\nkeep-for = 8d\n",
		     "x.conf:4: key 'keep-for' in [store] is given twice, before in line 2");
	expect_wrong("[store]\ndirectory = srv\n",
		     "x.conf:2: key 'directory' in [store]: expected");
	expect_wrong("[store]\ndirectory =\n", "x.conf:2: key 'directory' in [store]: expected");
	expect_wrong("[store]\nkeep-size = 1G\n#\nrotate-size = 1G\n",
		     "x.conf:4: key 'rotate-size'");
	expect_wrong("\n[store]\nkeep-size = 1G\n", "x.conf:3: key 'rotate-size'");
	expect_wrong("[record]\naccount = exat\n",
		     "x.conf:2: key 'account' in [record]: expected exact, sampled or states, not "
		     "'exat' (did you mean exact?)");
	expect_wrong("[record]\naccount = states\nfrequency = off\n",
		     "x.conf:3: 'account = states'");
	expect_wrong("[flight]\nevents = schd\n", "x.conf:2: key 'events' in [flight]: ");
	expect_wrong(
	    "[rules]\nignore = steal-task overcomit\n",
	    "x.conf:2: key 'ignore' in [rules]: there is no rule 'overcomit' (did you mean "
	    "overcommit?)");
	expect_wrong("[profiles]\nformat = pyroscop\n", "(did you mean pyroscope?)");
	expect_wrong("[profiles]\nheader-file = h\n",
		     "x.conf:2: key 'header-file' in [profiles]: expected");
	static const char *const wrong[] = {"127.0.0.1:99999", "::1:9757", "localhost:9757", "9757",
					    "127.0.0.1:",      "1.2.3:1",  "[127.0.0.1]:1",  "a:1",
					    "127.0.0.1:-1"};
	for (size_t i = 0; i < VP_ARRAY_SIZE(wrong); i++) {
		VP_AUTO_FREE char *text = vp_format("[http]\nlisten = %s\n", wrong[i]);
		expect_wrong(text, "x.conf:2: key 'listen' in [http]: expected a numeric address");
	}
	static const char *const right[] = {"127.0.0.1:0", "[::1]:65535", ":9757", "off"};
	for (size_t i = 0; i < VP_ARRAY_SIZE(right); i++) {
		VP_AUTO_FREE char *text = vp_format("[http]\nlisten = %s\n", right[i]);
		expect_no_error(parse(text, &config));
		vp_daemon_config_deinit(&config);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_texts),
	    cmocka_unit_test(test_mistyped),
	    cmocka_unit_test(test_byte_order_mark),
	    cmocka_unit_test(test_wrong_values),
	    cmocka_unit_test(test_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
