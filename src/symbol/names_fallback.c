/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names from two symbol maps of the same machine: the first one has precedence, the second one
 * adds missing names. */
#include "maps/maps.h"
#include "symbol/names.h"
#include "symbol/names_private.h"

#include <string.h>

void vp_names_set_fallback(struct vp_names *names, struct vp_names *second)
{
	vp_names_free(names->second);
	names->second = second;
}

const struct vp_names *vp_names_fallback(const struct vp_names *names)
{
	return names->second;
}

/* Numbers of its address spaces follow the first map's. */
uint32_t vp_names_from_fallback(const struct vp_names *names, uint32_t space)
{
	uint64_t number = (uint64_t)names->spaces.count + space;

	return space == VP_NAMES_NO_SPACE || number >= VP_NAMES_NO_SPACE ? VP_NAMES_NO_SPACE
									 : (uint32_t)number;
}

uint32_t vp_names_in_fallback(const struct vp_names *names, uint32_t space)
{
	return space == VP_NAMES_NO_SPACE ? space : space - (uint32_t)names->spaces.count;
}

static bool is_process(const struct vp_names *names, uint32_t space, uint32_t pid)
{
	return space < names->spaces.count && names->maps.spaces.at[space].tgid == pid;
}

/* The second map's number of an address space of the first; a vfork shares its parent's page
 * tables. */
static uint32_t same_space(const struct vp_names *names, uint32_t space, uint64_t host_ns)
{
	const struct vp_maps_space *life = &names->maps.spaces.at[space];
	uint32_t same = vp_names_space_by_root(names->second, life->root, host_ns);

	if (is_process(names->second, same, life->tgid))
		return same;
	return vp_names_space_by_pid(names->second, life->tgid, host_ns);
}

/* Whether two results are consistent: not if they have different files at that address. */
static bool agrees(const struct vp_name *first, const struct vp_name *second)
{
	return !first->module || (second->module && !strcmp(first->module, second->module));
}

void vp_names_find_fallback(struct vp_names *names, uint32_t space, bool kernel, uint64_t addr,
			    uint64_t host_ns, struct vp_name *name)
{
	bool known = space < names->spaces.count;
	uint32_t theirs = kernel  ? VP_NAMES_NO_SPACE
			  : known ? same_space(names, space, host_ns)
				  : vp_names_in_fallback(names, space);
	struct vp_name answer;

	vp_names_find(names->second, theirs, kernel, addr, host_ns, &answer);
	name->varies |= answer.varies;
	if (!kernel && !agrees(name, &answer))
		return;
	if (known) { /* the process is taken from the first map */
		answer.comm = name->comm;
		answer.pid = name->pid;
	}
	bool better = answer.function && (!answer.nameless || !name->function);
	if (better || !name->module) {
		bool varies = name->varies;
		*name = answer;
		name->varies = varies;
	}
}
