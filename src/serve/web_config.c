/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/web_config.h"

#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/text.h"

enum { FILE_LIMIT = 1 << 20, WORD_LIMIT = 200 };

/* A YAML document, and the name of its file for messages. */
struct source {
	const char *path;
	yaml_document_t document;
};

struct web_key {
	const char *name;
	struct vp_error *(*take)(struct source *source, const struct web_key *key,
				 yaml_node_t *value, struct vp_web_config *config);
	size_t offset; /* of a file in the configuration */
};

static size_t line_of(const yaml_node_t *node)
{
	return node->start_mark.line + 1;
}

/* A scalar, cleaned for messages. */
static char *web_config_shown(const yaml_node_t *node)
{
	struct vp_buffer clean = {0};

	if (node->type != YAML_SCALAR_NODE)
		return vp_strdup(node->type == YAML_SEQUENCE_NODE ? "a list" : "a mapping");
	size_t size = node->data.scalar.length;
	vp_text_clean((const char *)node->data.scalar.value, size < WORD_LIMIT ? size : WORD_LIMIT,
		      &clean);
	char *text = vp_format("'%s'", vp_buffer_text(&clean));
	vp_buffer_deinit(&clean);
	return text;
}

static struct vp_error *unexpected(const struct source *source, const char *key,
				   const char *expected, const yaml_node_t *value)
{
	VP_AUTO_FREE char *text = web_config_shown(value);

	return vp_error_new("%s:%zu: key '%s': expected %s, not %s", source->path, line_of(value),
			    key, expected, text);
}

static struct vp_slice scalar_of(const yaml_node_t *node)
{
	return (struct vp_slice){(const char *)node->data.scalar.value, node->data.scalar.length};
}

static bool is_scalar(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE &&
	       !memchr(node->data.scalar.value, 0, node->data.scalar.length);
}

static char *copy_scalar(const yaml_node_t *node)
{
	return vp_strndup((const char *)node->data.scalar.value, node->data.scalar.length);
}

/* Calls the function of each key of a mapping; a key may occur once. */
static struct vp_error *take_mapping(struct source *source, const char *name, yaml_node_t *mapping,
				     const struct web_key *keys, size_t n_keys,
				     struct vp_web_config *config)
{
	const yaml_node_pair_t *pair;
	unsigned seen = 0;

	if (mapping->type != YAML_MAPPING_NODE)
		return unexpected(source, name, "a mapping", mapping);
	for (pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top;
	     pair++) {
		yaml_node_t *key = yaml_document_get_node(&source->document, pair->key);
		yaml_node_t *value = yaml_document_get_node(&source->document, pair->value);
		VP_AUTO_FREE char *text = web_config_shown(key);
		struct vp_slice word = is_scalar(key) ? scalar_of(key) : (struct vp_slice){"", 0};
		struct vp_nearest nearest;
		size_t i = 0;
		vp_nearest_init(&nearest, word);
		for (; i < n_keys && !vp_slice_is(word, keys[i].name); i++)
			vp_nearest_add(&nearest, keys[i].name);
		if (i == n_keys) {
			VP_AUTO_FREE char *hint = vp_nearest_text(&nearest);
			return vp_error_new("%s:%zu: %s has no key %s%s", source->path,
					    line_of(key), name, text, hint);
		}
		if (seen & 1U << i)
			return vp_error_new("%s:%zu: key %s occurs twice", source->path,
					    line_of(key), text);
		seen |= 1U << i;
		VP_TRY(keys[i].take(source, &keys[i], value, config));
	}
	return NULL;
}

static struct vp_error *take_file(struct source *source, const struct web_key *key,
				  yaml_node_t *value, struct vp_web_config *config)
{
	struct vp_web_file *file = (struct vp_web_file *)((char *)config + key->offset);

	if (!is_scalar(value) || !value->data.scalar.length)
		return unexpected(source, key->name, "a file name", value);
	file->path = copy_scalar(value);
	return NULL;
}

static struct vp_error *take_clients(struct source *source, const struct web_key *key,
				     yaml_node_t *value, struct vp_web_config *config)
{
	static const char *const types[] = {[VP_WEB_NO_CLIENT_CERT] = "NoClientCert",
					    [VP_WEB_VERIFY_IF_GIVEN] = "VerifyClientCertIfGiven",
					    [VP_WEB_REQUIRE_AND_VERIFY] =
						"RequireAndVerifyClientCert"};

	for (size_t i = 0; is_scalar(value) && i < VP_ARRAY_SIZE(types); i++)
		if (vp_slice_is(scalar_of(value), types[i])) {
			config->clients = (enum vp_web_clients)i;
			return NULL;
		}
	return unexpected(source, key->name,
			  "NoClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert",
			  value);
}

static struct vp_error *take_version(struct source *source, const struct web_key *key,
				     yaml_node_t *value, struct vp_web_config *config)
{
	config->only_tls13 = is_scalar(value) && vp_slice_is(scalar_of(value), "TLS13");
	if (config->only_tls13 || (is_scalar(value) && vp_slice_is(scalar_of(value), "TLS12")))
		return NULL;
	return unexpected(source, key->name, "TLS12 or TLS13", value);
}

static struct vp_error *take_tls(struct source *source, const struct web_key *key,
				 yaml_node_t *value, struct vp_web_config *config)
{
	static const struct web_key keys[] = {
	    {"cert_file", take_file, offsetof(struct vp_web_config, certificate)},
	    {"key_file", take_file, offsetof(struct vp_web_config, key)},
	    {"client_ca_file", take_file, offsetof(struct vp_web_config, client_ca)},
	    {"client_auth_type", take_clients, 0},
	    {"min_version", take_version, 0},
	};

	VP_TRY(take_mapping(source, key->name, value, keys, VP_ARRAY_SIZE(keys), config));
	if (!config->certificate.path || !config->key.path)
		return vp_error_new("%s:%zu: %s: expected cert_file and key_file", source->path,
				    line_of(value), key->name);
	if (!config->client_ca.path != (config->clients == VP_WEB_NO_CLIENT_CERT))
		return vp_error_new("%s:%zu: %s: client_ca_file and a client_auth_type other than "
				    "NoClientCert are only valid together",
				    source->path, line_of(value), key->name);
	return NULL;
}

/* $2y$10$ and 53 characters. */
static bool is_bcrypt(const char *hash)
{
	unsigned cost = 0;

	if (strlen(hash) != VP_WEB_BCRYPT_SIZE || memcmp(hash, "$2", 2) != 0 ||
	    !strchr("aby", hash[2]) || hash[3] != '$' || hash[6] != '$')
		return false;
	for (int i = 4; i < 6; i++) {
		if (hash[i] < '0' || hash[i] > '9')
			return false;
		cost = 10 * cost + (unsigned)(hash[i] - '0');
	}
	for (const char *at = hash + 7; *at; at++)
		if (!strchr("./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
			    *at))
			return false;
	return cost >= 4 && cost <= VP_WEB_BCRYPT_MOST;
}

static struct vp_error *take_users(struct source *source, const struct web_key *key,
				   yaml_node_t *value, struct vp_web_config *config)
{
	const yaml_node_pair_t *pair;

	if (value->type != YAML_MAPPING_NODE)
		return unexpected(source, key->name, "a mapping of users to bcrypt hashes", value);
	for (pair = value->data.mapping.pairs.start; pair < value->data.mapping.pairs.top; pair++) {
		yaml_node_t *name = yaml_document_get_node(&source->document, pair->key);
		yaml_node_t *hash = yaml_document_get_node(&source->document, pair->value);
		if (!is_scalar(name) || !name->data.scalar.length ||
		    memchr(name->data.scalar.value, ':', name->data.scalar.length))
			return unexpected(source, key->name, "a user name without a colon", name);
		if (!is_scalar(hash))
			return unexpected(source, key->name, "a bcrypt hash", hash);
		vp_vec_push(&config->users,
			    ((struct vp_web_user){copy_scalar(name), copy_scalar(hash)}));
		if (is_bcrypt(config->users.at[config->users.count - 1].hash))
			continue;
		/* The value may be a password: it is not printed. */
		VP_AUTO_FREE char *text = web_config_shown(name);
		return vp_error_new("%s:%zu: user %s: expected a bcrypt hash with a cost of 4 to "
				    "%d, such as of htpasswd -nB",
				    source->path, line_of(hash), text, VP_WEB_BCRYPT_MOST);
	}
	return NULL;
}

static struct vp_error *take_document(struct source *source, struct vp_web_config *config)
{
	static const struct web_key keys[] = {{"tls_server_config", take_tls, 0},
					      {"basic_auth_users", take_users, 0}};
	yaml_node_t *root = yaml_document_get_root_node(&source->document);

	/* An empty file is valid: neither TLS nor users. */
	if (!root)
		return NULL;
	return take_mapping(source, "the web configuration", root, keys, VP_ARRAY_SIZE(keys),
			    config);
}

struct vp_error *vp_web_config_parse(const char *path, const char *text, size_t size,
				     struct vp_web_config *ret)
{
	struct source source = {.path = path};
	struct vp_error *error;
	yaml_parser_t parser;

	*ret = (struct vp_web_config){0};
	if (!yaml_parser_initialize(&parser))
		vp_alloc_failed();
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
	if (yaml_parser_load(&parser, &source.document)) {
		error = take_document(&source, ret);
		yaml_document_delete(&source.document);
	} else {
		error =
		    vp_error_new("%s:%zu: not valid YAML: %s", path, parser.problem_mark.line + 1,
				 parser.problem ? parser.problem : "unreadable");
	}
	yaml_parser_delete(&parser);
	if (error)
		vp_web_config_deinit(ret);
	return error;
}

static struct vp_error *read_file(const char *path, struct vp_web_file *file)
{
	struct vp_buffer text = {0};
	const char *slash = strrchr(path, '/');

	if (!file->path)
		return NULL;
	VP_AUTO_FREE char *name = file->path[0] == '/' || !slash
				      ? vp_strdup(file->path)
				      : vp_format("%.*s/%s", (int)(slash - path), path, file->path);
	struct vp_error *error = vp_file_read(name, FILE_LIMIT, &text);
	if (!error && (!text.size || memchr(text.bytes, 0, text.size)))
		error = vp_error_new("'%s': expected PEM", name);
	if (!error)
		file->text = vp_strdup(vp_buffer_text(&text));
	if (text.size)
		explicit_bzero(text.bytes, text.size);
	vp_buffer_deinit(&text);
	return error;
}

static gnutls_datum_t datum_of(const struct vp_web_file *file)
{
	return (gnutls_datum_t){(unsigned char *)file->text, (unsigned)strlen(file->text)};
}

/* The process that serves HTTP cannot report errors: certificates are checked before. */
static struct vp_error *check_certificates(const struct vp_web_config *config)
{
	gnutls_certificate_credentials_t credentials;
	int failed = 0, trusted = 1;

	if (!config->certificate.text)
		return NULL;
	if (gnutls_certificate_allocate_credentials(&credentials))
		vp_alloc_failed();
	gnutls_datum_t certificate = datum_of(&config->certificate), key = datum_of(&config->key);
	failed = gnutls_certificate_set_x509_key_mem(credentials, &certificate, &key,
						     GNUTLS_X509_FMT_PEM);
	if (!failed && config->client_ca.text) {
		gnutls_datum_t ca = datum_of(&config->client_ca);
		trusted =
		    gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM);
	}
	gnutls_certificate_free_credentials(credentials);
	if (failed)
		return vp_error_new("cert_file '%s' and key_file '%s' are not a pair in PEM: %s",
				    config->certificate.path, config->key.path,
				    gnutls_strerror(failed));
	return trusted > 0 ? NULL
			   : vp_error_new("client_ca_file '%s' has no certificate in PEM",
					  config->client_ca.path);
}

struct vp_error *vp_web_config_read(const char *path, struct vp_web_config *ret)
{
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read(path, FILE_LIMIT, &text);

	if (!error)
		error = vp_web_config_parse(path, text.bytes, text.size, ret);
	vp_buffer_deinit(&text);
	if (error)
		return error;
	error = read_file(path, &ret->certificate);
	if (!error)
		error = read_file(path, &ret->key);
	if (!error)
		error = read_file(path, &ret->client_ca);
	if (!error)
		error = check_certificates(ret);
	if (error)
		vp_web_config_deinit(ret);
	return error;
}

static void erase(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

static void forget_file(struct vp_web_file *file)
{
	free(file->path);
	erase(file->text);
}

void vp_web_config_deinit(struct vp_web_config *config)
{
	forget_file(&config->certificate);
	forget_file(&config->key);
	forget_file(&config->client_ca);
	vp_vec_each (&config->users, user) {
		free(user->name);
		erase(user->hash);
	}
	vp_vec_deinit(&config->users);
	*config = (struct vp_web_config){0};
}
