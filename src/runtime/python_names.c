/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/python_names.h"

#include "base/buffer.h"

static bool python_identity(void *context, uint64_t code, uint64_t *ret)
{
	return vp_python_code_identity(context, code, ret);
}

static bool python_name(void *context, uint64_t code, struct vp_buffer *name)
{
	return vp_python_code_name(context, code, name);
}

bool vp_python_names_see(struct vp_code_names *names, struct vp_python *python, uint64_t code,
			 uint64_t time_ns)
{
	const struct vp_code_source source = {python_identity, python_name, python};

	return vp_code_names_see(names, &source, code, time_ns);
}
