/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The web configuration: files, users, and errors that say where and what. */
#include "unit.h"

#include <string.h>

#include "serve/web_config.h"

#define HASH "$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"

static struct vp_error *parse(const char *text, struct vp_web_config *ret)
{
	return vp_web_config_parse("web.yml", text, strlen(text), ret);
}

static void expect_wrong(const char *text, const char *part)
{
	struct vp_web_config config;

	expect_error(parse(text, &config), part);
}

static void test_empty(void **state)
{
	struct vp_web_config config;

	expect_no_error(parse("", &config));
	assert_null(config.certificate.path);
	assert_int_equal(config.users.count, 0);
	vp_web_config_deinit(&config);
	expect_no_error(parse("{}\n", &config));
	vp_web_config_deinit(&config);
}

static void test_all_keys(void **state)
{
	struct vp_web_config config;

	expect_no_error(parse("tls_server_config:\n"
			      "  cert_file: 'my cert.pem'\n  key_file: /etc/key.pem\n"
			      "  client_auth_type: RequireAndVerifyClientCert\n"
			      "  client_ca_file: ca.pem\n  min_version: TLS13\n"
			      "basic_auth_users:\n  alice: " HASH "\n  bob: \"" HASH "\"\n",
			      &config));
	assert_string_equal(config.certificate.path, "my cert.pem");
	assert_string_equal(config.key.path, "/etc/key.pem");
	assert_string_equal(config.client_ca.path, "ca.pem");
	assert_int_equal(config.clients, VP_WEB_REQUIRE_AND_VERIFY);
	assert_true(config.only_tls13);
	assert_int_equal(config.users.count, 2);
	assert_string_equal(config.users.at[1].name, "bob");
	assert_string_equal(config.users.at[1].hash, HASH);
	vp_web_config_deinit(&config);
}

static void test_mistyped(void **state)
{
	expect_wrong("tls_server_confg: {}\n", "web.yml:1: the web configuration has no key "
					       "'tls_server_confg' (did you mean "
					       "tls_server_config?)");
	expect_wrong("tls_server_config:\n  cert_file: a\n  keyfile: b\n",
		     "web.yml:3: tls_server_config has no key 'keyfile' (did you mean key_file or "
		     "cert_file?)");
	expect_wrong("rate_limit: {burst: 3}\n", "has no key 'rate_limit'");
	expect_wrong("basic_auth_users: {}\nbasic_auth_users: {}\n", "web.yml:2: key "
								     "'basic_auth_users' occurs "
								     "twice");
	expect_wrong("a: [\n", "web.yml:2: not valid YAML");
	expect_wrong("- a\n", "expected a mapping, not a list");
	expect_wrong("tls_server_config: x\n", "expected a mapping, not 'x'");
}

static void test_values(void **state)
{
	expect_wrong("tls_server_config:\n  cert_file: a\n",
		     "web.yml:2: tls_server_config: expected cert_file and key_file");
	expect_wrong("tls_server_config:\n  cert_file: []\n", "web.yml:2: key 'cert_file': "
							      "expected a file name, not a list");
	expect_wrong("tls_server_config:\n  min_version: TLS10\n",
		     "web.yml:2: key 'min_version': expected TLS12 or TLS13, not 'TLS10'");
	expect_wrong("tls_server_config:\n  client_auth_type: RequireAnyClientCert\n",
		     "expected NoClientCert, VerifyClientCertIfGiven or "
		     "RequireAndVerifyClientCert, not 'RequireAnyClientCert'");
	expect_wrong("tls_server_config: {cert_file: a, key_file: b, client_ca_file: c}\n",
		     "only valid together");
	expect_wrong("tls_server_config: {cert_file: a, key_file: b, "
		     "client_auth_type: VerifyClientCertIfGiven}\n",
		     "only valid together");
}

/* A password in the place of a hash is not printed. */
static void test_users(void **state)
{
	struct vp_web_config config;

	expect_wrong("basic_auth_users:\n  alice: secret\n",
		     "web.yml:2: user 'alice': expected a bcrypt hash with a cost of 4 to 14");
	struct vp_error *error = parse("basic_auth_users:\n  alice: secret\n", &config);
	assert_null(strstr(vp_error_message(error), "secret"));
	vp_error_free(error);
	expect_wrong("basic_auth_users:\n  a: $2y$15$CCCCCCCCCCCCCCCCCCCCC."
		     "E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\n",
		     "a cost of 4 to 14");
	expect_wrong("basic_auth_users:\n  a: $2y$05$CCCCCCCCCCCCCCCCCCCCC*"
		     "E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\n",
		     "expected a bcrypt hash");
	expect_wrong("basic_auth_users:\n  'a:b': " HASH "\n", "a user name without a colon");
	expect_wrong("basic_auth_users:\n  \"a\\0\": " HASH "\n", "a user name without a colon");
	expect_wrong("basic_auth_users: [a]\n", "expected a mapping of users");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_empty), cmocka_unit_test(test_all_keys),
	    cmocka_unit_test(test_mistyped), cmocka_unit_test(test_values),
	    cmocka_unit_test(test_users)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
