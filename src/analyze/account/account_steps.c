/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account_steps.h"

#include "base/alloc.h"
#include "schema/records.h"
#include "store/packet.h"
#include "store/trace_reader.h"

static void steps_add(vp_account_steps *steps, uint64_t time)
{
	if (time > steps->at[steps->count - 1])
		vp_vec_push(steps, time);
}

struct vp_error *vp_account_steps_read(const char *directory, uint64_t start, vp_account_steps *ret)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", directory);
	const struct vp_record_header *record;
	vp_stream_readers streams = {0};

	*ret = (vp_account_steps){0};
	VP_TRY(vp_trace_open(host, VP_STREAMS(VP_STREAM_ACCOUNT), &streams));
	vp_vec_push(ret, start);
	vp_vec_each (&streams, stream)
		while ((record = vp_stream_next(*stream)))
			if (record->id == VP_ID_vcpu_account)
				steps_add(ret, record->time);
	vp_trace_close(&streams);
	return NULL;
}

struct vp_window vp_account_steps_around(const vp_account_steps *steps,
					 const struct vp_window *window)
{
	struct vp_window ret = {steps->at[0], steps->at[steps->count - 1]};

	vp_vec_each (steps, step) {
		if (*step <= window->from)
			ret.from = *step;
		if (*step >= window->to) {
			ret.to = *step;
			break;
		}
	}
	return ret;
}

static uint64_t steps_distance(uint64_t one, uint64_t other)
{
	return one > other ? one - other : other - one;
}

bool vp_account_steps_seam(const vp_account_steps *first, const vp_account_steps *second,
			   uint64_t *end, uint64_t *begin)
{
	size_t i = 0, k = 0;
	bool found = false;

	if (second->at[0] > first->at[first->count - 1])
		return false;
	while (i < first->count && k < second->count) {
		uint64_t one = first->at[i], other = second->at[k];
		if (!found || steps_distance(one, other) < steps_distance(*end, *begin)) {
			*end = one;
			*begin = other;
		}
		found = true;
		if (one < other)
			i++;
		else
			k++;
	}
	return true;
}
