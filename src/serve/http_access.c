/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/http_access.h"

#include <crypt.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/vec.h"

#define SECOND 1000000000ULL

/* A hash of no password: an unknown user takes as much time as a wrong password. */
static const char no_hash[] = "$2b$10$C6UzMDM.H6dfI/f/IKcEeO7ZIPeQ0WZgQbNcTbNbCxTMWmJ3BQz1W";

static bool is_same_text(const char *a, const char *b)
{
	size_t size = strlen(a);

	return strlen(b) == size && gnutls_memcmp(a, b, size) == 0;
}

static bool matches(const char *password, const char *hash)
{
	struct crypt_data *data = vp_alloc(sizeof(*data));
	const char *found = crypt_r(password, hash, data);
	bool ret = found && is_same_text(found, hash);

	explicit_bzero(data, sizeof(*data));
	free(data);
	return ret;
}

static void digest_of(const char *user, const char *hash, const char *password,
		      unsigned char ret[VP_HTTP_DIGEST])
{
	struct vp_buffer text = {0};

	/* With the zero bytes, which separate the parts. */
	vp_buffer_append(&text, user, strlen(user) + 1);
	vp_buffer_append(&text, hash, strlen(hash) + 1);
	vp_buffer_append(&text, password, strlen(password) + 1);
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text.bytes, text.size, ret))
		vp_alloc_failed();
	explicit_bzero(text.bytes, text.size);
	vp_buffer_deinit(&text);
}

static bool is_known(const struct vp_http_access *access, const unsigned char *digest)
{
	bool ret = false;

	for (unsigned i = 0; i < access->n_known; i++)
		ret |= !gnutls_memcmp(access->known[i], digest, VP_HTTP_DIGEST);
	return ret;
}

static void remember(struct vp_http_access *access, const unsigned char *digest)
{
	memcpy(access->known[access->next_known], digest, VP_HTTP_DIGEST);
	access->next_known = (access->next_known + 1) % VP_HTTP_KNOWN;
	if (access->n_known < VP_HTTP_KNOWN)
		access->n_known++;
}

static enum vp_http_grant check_password(struct vp_http_access *access, const char *user,
					 const char *password, uint64_t now)
{
	unsigned char digest[VP_HTTP_DIGEST];
	const char *hash = NULL;

	vp_vec_each (&access->config->users, known)
		if (is_same_text(known->name, user))
			hash = known->hash;
	digest_of(user, hash ? hash : no_hash, password, digest);
	if (hash && is_known(access, digest))
		return VP_HTTP_GRANTED;
	if (now - access->second >= SECOND) {
		access->second = now;
		access->wrong = 0;
	}
	if (access->wrong >= VP_HTTP_WRONG_PER_SECOND)
		return VP_HTTP_TOO_MANY_WRONG;
	if (matches(password, hash ? hash : no_hash) && hash) {
		remember(access, digest);
		return VP_HTTP_GRANTED;
	}
	access->wrong++;
	return VP_HTTP_NO_USER;
}

static enum vp_http_grant check_user(struct vp_http_access *access,
				     struct MHD_Connection *connection, uint64_t now)
{
	char *password = NULL;
	char *user = MHD_basic_auth_get_username_password(connection, &password);
	enum vp_http_grant ret = VP_HTTP_NO_USER;

	if (user && password)
		ret = check_password(access, user, password, now);
	if (password)
		explicit_bzero(password, strlen(password));
	MHD_free(password);
	MHD_free(user);
	return ret;
}

/* Whether the client has a certificate for clients, signed by the CA. */
static bool has_valid_certificate(gnutls_session_t session)
{
	gnutls_typed_vdata_st purpose = {GNUTLS_DT_KEY_PURPOSE_OID,
					 (void *)GNUTLS_KP_TLS_WWW_CLIENT, 0};
	unsigned status = 0;

	return gnutls_certificate_verify_peers(session, &purpose, 1, &status) == GNUTLS_E_SUCCESS &&
	       status == 0;
}

static bool has_certificate_access(const struct vp_web_config *config,
				   struct MHD_Connection *connection)
{
	unsigned count = 0;

	if (config->clients == VP_WEB_NO_CLIENT_CERT)
		return true;
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	if (!info || !info->tls_session)
		return false;
	if (!gnutls_certificate_get_peers(info->tls_session, &count) || !count)
		return config->clients == VP_WEB_VERIFY_IF_GIVEN;
	return has_valid_certificate(info->tls_session);
}

enum vp_http_grant vp_http_access_check(struct vp_http_access *access,
					struct MHD_Connection *connection, uint64_t now)
{
	if (!access->config)
		return VP_HTTP_GRANTED;
	if (!has_certificate_access(access->config, connection))
		return VP_HTTP_NO_CERTIFICATE;
	return access->config->users.count ? check_user(access, connection, now) : VP_HTTP_GRANTED;
}
