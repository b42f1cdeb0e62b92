/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file of trace-cmd of version 7, from behind that word: offsets in it are those of whole files.
 */
#include "fuzz_tracedat.h"

static const char head[] = "\x17\x08\x44tracing7";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	read_tracedat((struct vp_slice){head, sizeof(head)}, bytes, size);
	return 0;
}
