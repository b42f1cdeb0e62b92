/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/python_names.h"

#include "base/buffer.h"
#include "base/intern.h"

/* Size of the address range of a code object's name; the struct is larger. */
enum { CODE_BYTES = 16 };
/* Maximum age of a name before the code's identity is compared again: the address may have been
 * reused. */
#define COMPARE_NS 100000000ULL

bool vp_python_names_lately(struct vp_code_names *names, uint64_t code, uint64_t time_ns)
{
	struct vp_code_birth *birth = vp_code_names_at(names, code);

	if (!birth || time_ns >= birth->checked_ns + COMPARE_NS || time_ns < birth->from_ns)
		return false;
	vp_code_names_again(names, birth, time_ns);
	return true;
}

bool vp_python_names_see(struct vp_code_names *names, struct vp_python *python, uint64_t code,
			 uint64_t time_ns)
{
	struct vp_code_birth birth = {.addr = code,
				      .size = CODE_BYTES,
				      .from_ns = time_ns,
				      .last_ns = time_ns,
				      .checked_ns = time_ns};
	struct vp_buffer name = {0};

	if (vp_python_names_lately(names, code, time_ns))
		return true;
	if (!vp_python_code_identity(python, code, &birth.identity)) {
		names->failed++;
		return false;
	}
	struct vp_code_birth *known = vp_code_names_known(names, code, birth.identity);
	if (known) {
		vp_code_names_again(names, known, time_ns);
		known->checked_ns = time_ns > known->checked_ns ? time_ns : known->checked_ns;
		return true;
	}
	bool done = vp_code_names_add_named(
	    names, &birth, vp_python_code_name(python, code, &name) ? vp_buffer_text(&name) : NULL);

	vp_buffer_deinit(&name);
	return done;
}
