/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A web configuration from anybody: files and users that are valid, or a sentence that is text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "serve/web_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct vp_web_config config;
	struct vp_error *error = vp_web_config_parse("x.yml", (const char *)bytes, size, &config);

	if (error) {
		if (!vp_text_is_clean(vp_error_message(error)) ||
		    strncmp(vp_error_message(error), "x.yml:", 6) != 0)
			abort();
		vp_error_free(error);
		return 0;
	}
	if (!config.certificate.path != !config.key.path ||
	    (config.clients && !config.client_ca.path))
		abort();
	vp_vec_each (&config.users, user)
		if (strlen(user->hash) != VP_WEB_BCRYPT_SIZE || strchr(user->name, ':'))
			abort();
	vp_web_config_deinit(&config);
	return 0;
}
