/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbol names from anywhere. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "symbol/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct vp_buffer name = {0}, clean = {0};
	char *symbol = vp_alloc(size + 3);

	symbol[0] = '_';
	symbol[1] = size && (bytes[0] & 1) ? 'R' : 'Z';
	if (size)
		memcpy(symbol + 2, bytes + 1, size - 1);
	vp_demangle(symbol, &name);
	vp_text_clean(name.bytes, name.size, &clean);
	if (clean.size > name.size)
		abort();
	vp_buffer_deinit(&name);
	vp_buffer_deinit(&clean);
	free(symbol);
	return 0;
}
