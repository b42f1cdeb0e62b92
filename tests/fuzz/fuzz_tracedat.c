/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file of trace-cmd, from behind what every one begins with. */
#include "fuzz_tracedat.h"

static const char head[] = "\x17\x08\x44tracing6\0\0\x08\x40\0\0\0"
			   "header_page\0\0\0\0\0\0\0\0\0"
			   "header_event\0\0\0\0\0\0\0\0";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	read_tracedat((struct vp_slice){head, sizeof(head)}, bytes, size);
	return 0;
}
