/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace buffer of Xen's, and what is made of its records. */
#include "xen/states.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct vp_cursor cursor = vp_cursor_of(bytes, size);
	struct vp_xen_traced traced = {0};
	struct vp_xen_states states;

	vp_xen_states_init(&states, VP_VENDOR_AMD, true);
	while (vp_xen_record_read(&cursor, &traced.record)) {
		traced.pcpu = (uint32_t)(traced.record.tsc >> 62);
		traced.time = traced.record.tsc ? traced.record.tsc : traced.time;
		vp_xen_states_take(&states, &traced);
	}
	states.gone[0] = true;
	vp_xen_states_end_gone(&states, traced.time);
	vp_xen_states_deinit(&states);
	return 0;
}
