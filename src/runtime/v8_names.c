/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/v8_names.h"

#include "base/buffer.h"

static bool v8_identity(void *context, uint64_t shared, uint64_t *ret)
{
	return vp_v8_identity(context, shared, ret);
}

static bool v8_name(void *context, uint64_t shared, struct vp_buffer *name)
{
	return vp_v8_name(context, shared, name);
}

bool vp_v8_names_see(struct vp_code_names *names, struct vp_v8 *v8, uint64_t shared,
		     uint64_t time_ns)
{
	const struct vp_code_source source = {v8_identity, v8_name, v8};

	return vp_code_names_see(names, &source, shared, time_ns);
}
