/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/stagger.h"

#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"

enum { NAME_SIZE = 256 };

uint64_t vp_stagger_of(const char *identity, const char *purpose, uint64_t period)
{
	XXH64_hash_t seed = XXH64(purpose, strlen(purpose), 0);

	return period ? XXH64(identity, strlen(identity), seed) % period : 0;
}

uint64_t vp_stagger_here(const char *purpose, uint64_t period)
{
	struct vp_buffer text = {0};
	char name[NAME_SIZE] = "";
	VP_AUTO_ERROR struct vp_error *error = vp_file_read("/etc/machine-id", NAME_SIZE, &text);
	const char *identity = error ? "" : vp_buffer_text(&text);

	if (!*identity && !gethostname(name, sizeof(name) - 1))
		identity = name;
	uint64_t offset = vp_stagger_of(identity, purpose, period);
	vp_buffer_deinit(&text);
	return offset;
}

uint64_t vp_stagger_wait(uint64_t now, uint64_t period, uint64_t offset)
{
	return (offset % period + period - now % period) % period;
}
