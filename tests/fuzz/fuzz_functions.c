/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of functions of stripped files: unwind tables, Go's and GHC's tables, packed symbols. */
#include <stdint.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "maps/eh_frame.h"
#include "maps/ghc_functions.h"
#include "maps/go_functions.h"
#include "maps/xz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { LIMIT = 1 << 20 };

/* The first byte is the size of the header, in fours; addresses are places in the input. */
static void read_unwind_tables(const uint8_t *bytes, size_t size)
{
	size_t header = size ? *bytes++ * 4UL : 0;
	vp_code_ranges ranges = {0};

	size -= size != 0;
	header = header < size ? header : size;
	const struct vp_eh_frame tables = {.header = {bytes, header, 0},
					   .frame = {bytes + header, size - header, header},
					   .is_64_bit = size % 2};
	vp_eh_frame_functions(&tables, &ranges);
	if (ranges.count > size)
		abort();
	vp_vec_deinit(&ranges);
}

/* Functions are in order, in the code, and do not overlap. The first byte makes the address. */
static void read_info_tables(const uint8_t *bytes, size_t size)
{
	const struct vp_section_bytes code = {bytes, size, size ? bytes[0] : 0};
	vp_code_ranges ranges = {0};
	uint64_t end = code.addr;

	vp_ghc_functions(&code, 0x10000, 0x20000, &ranges);
	vp_vec_each (&ranges, range) {
		if (range->start < end || range->start + range->size > code.addr + size)
			abort();
		end = range->start + range->size;
	}
	vp_vec_deinit(&ranges);
}

static void take_function(void *context, const struct vp_go_function *function)
{
	size_t *names = context;

	for (size_t i = 0; i < function->name.size; i++)
		*names += function->name.bytes[i] == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct vp_go_table table = {bytes, size, 0x1000};
	struct vp_buffer unpacked = {0};
	size_t zeros = 0;

	read_unwind_tables(bytes, size);
	read_info_tables(bytes, size);
	vp_go_functions(&table, take_function, &zeros);
	if (zeros)
		abort();
	if (vp_xz_unpack(bytes, size, LIMIT, &unpacked) && unpacked.size > LIMIT)
		abort();
	vp_buffer_deinit(&unpacked);
	return 0;
}
