/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/code_names.h"

/* Size of the address range of a function's name; the data at the address is larger. */
enum { FUNCTION_BYTES = 16 };
/* Maximum age of a name before the function's identity is compared again: the address may have been
 * reused. */
#define COMPARE_NS 100000000ULL

void vp_code_names_deinit(struct vp_code_names *names)
{
	vp_vec_deinit(&names->births);
	vp_map_deinit(&names->latest);
	vp_intern_deinit(&names->texts);
}

static struct vp_code_birth *code_names_at(struct vp_code_names *names, uint64_t addr)
{
	const uint32_t *latest = vp_map_find(&names->latest, addr);

	return latest ? &names->births.at[*latest] : NULL;
}

struct vp_code_birth *vp_code_names_known(struct vp_code_names *names, uint64_t addr,
					  uint64_t identity)
{
	struct vp_code_birth *birth = code_names_at(names, addr);

	return birth && birth->identity == identity ? birth : NULL;
}

/* The lifetime starts after the last sample of the previous code at the address. */
void vp_code_names_again(struct vp_code_names *names, struct vp_code_birth *birth, uint64_t time_ns)
{
	uint64_t least = birth->before ? names->births.at[birth->before - 1].last_ns + 1 : 0;

	if (time_ns < birth->from_ns)
		birth->from_ns = time_ns > least ? time_ns : least;
	if (time_ns > birth->last_ns)
		birth->last_ns = time_ns;
}

bool vp_code_names_add(struct vp_code_names *names, const struct vp_code_birth *birth)
{
	bool is_new;

	if (names->births.count == VP_CODE_MAX_NAMES)
		return false;
	uint32_t number = (uint32_t)names->births.count;
	uint32_t *latest = vp_map_insert(&names->latest, birth->addr, number, &is_new);
	vp_vec_push(&names->births, *birth);
	if (!is_new)
		names->births.at[number].before = *latest + 1;
	*latest = number;
	return true;
}

/* The same with its name; counts a failure, also if the name is unknown (NULL). */
static bool code_names_add_named(struct vp_code_names *names, struct vp_code_birth *birth,
				 const char *name)
{
	if (name)
		birth->name = vp_intern_string(&names->texts, name);
	bool added = name && vp_code_names_add(names, birth);

	names->failed += !added;
	return added;
}

bool vp_code_names_lately(struct vp_code_names *names, uint64_t addr, uint64_t time_ns)
{
	struct vp_code_birth *birth = code_names_at(names, addr);

	if (!birth || time_ns >= birth->checked_ns + COMPARE_NS || time_ns < birth->from_ns)
		return false;
	vp_code_names_again(names, birth, time_ns);
	return true;
}

bool vp_code_names_see(struct vp_code_names *names, const struct vp_code_source *source,
		       uint64_t addr, uint64_t time_ns)
{
	struct vp_code_birth birth = {.addr = addr,
				      .size = FUNCTION_BYTES,
				      .from_ns = time_ns,
				      .last_ns = time_ns,
				      .checked_ns = time_ns};
	struct vp_buffer name = {0};

	if (vp_code_names_lately(names, addr, time_ns))
		return true;
	if (!source->identity(source->context, addr, &birth.identity)) {
		names->failed++;
		return false;
	}
	struct vp_code_birth *known = vp_code_names_known(names, addr, birth.identity);
	if (known) {
		vp_code_names_again(names, known, time_ns);
		known->checked_ns = time_ns > known->checked_ns ? time_ns : known->checked_ns;
		return true;
	}
	bool done = code_names_add_named(
	    names, &birth,
	    source->name(source->context, addr, &name) ? vp_buffer_text(&name) : NULL);

	vp_buffer_deinit(&name);
	return done;
}
