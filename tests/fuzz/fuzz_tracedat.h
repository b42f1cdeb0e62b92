/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file of trace-cmd is read to its end, and each of its events converted. */
#ifndef FUZZ_TRACEDAT_H
#define FUZZ_TRACEDAT_H

#include "base/buffer.h"
#include "import/tracedat/tracedat.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The file begins with `head`; `bytes` follow. */
static inline void read_tracedat(struct vp_slice head, const uint8_t *bytes, size_t size)
{
	struct vp_buffer file = {0}, out = {0};
	struct vp_tracedat read;
	struct vp_slice raw;
	uint32_t class;
	uint64_t time;

	vp_buffer_append(&file, head.bytes, head.size);
	vp_buffer_append(&file, bytes, size);
	struct vp_error *error =
	    vp_tracedat_open("fuzz", (struct vp_slice){file.bytes, file.size}, &read);
	for (uint32_t cpu = 0; !error && cpu < read.cpus; cpu++) {
		struct vp_tracedat_walk walk = {.cpu = cpu};
		while (vp_tracedat_next(&read, &walk, &class, &time, &raw)) {
			out.size = 0;
			vp_tracepoint_convert(&read.classes.at[class], &read.layouts.at[class],
					      time, raw, &out);
		}
	}
	if (!error)
		vp_tracedat_close(&read);
	vp_error_free(error);
	vp_buffer_deinit(&out);
	vp_buffer_deinit(&file);
}

#endif
