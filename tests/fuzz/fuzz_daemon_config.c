/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A configuration of vperfd from anybody: values within their limits, or a sentence that is text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/daemon_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_text(const char *text)
{
	if (!text || !vp_text_is_clean(text))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct vp_daemon_config config;
	struct vp_error *error =
	    vp_daemon_config_parse("x.conf", (const char *)bytes, size, &config);

	if (error) {
		check_text(vp_error_message(error));
		if (strncmp(vp_error_message(error), "x.conf:", 7) != 0)
			abort();
		vp_error_free(error);
		return 0;
	}
	check_text(config.directory);
	check_text(config.account);
	check_text(config.flight_events);
	check_text(config.ignore);
	check_text(config.listen);
	if (config.directory[0] != '/' || config.frequency > 10000 || !config.rotate_ns ||
	    (config.keep_bytes && config.rotate_bytes > config.keep_bytes / 2) ||
	    config.least < 1 || config.least > 100 || config.compression > 22)
		abort();
	vp_daemon_config_deinit(&config);
	return 0;
}
