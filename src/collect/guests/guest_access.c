/* SPDX-License-Identifier: GPL-2.0-or-later */
/* KVM: access to guest memory through the VMM process. */
#include "collect/guests/guest_access.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/macros.h"
#include "guestmem/memory/memory.h"

static struct vp_error *guest_access_open_lister(void **lister)
{
	return vp_guest_lister_new((struct vp_guest_lister **)lister);
}

static void guest_access_close_lister(void *lister)
{
	vp_guest_lister_free(lister);
}

static struct vp_error *guest_access_list(void *lister, uint32_t pid, struct vp_guest_state *ret)
{
	vp_guest_states states = {0};

	VP_TRY(vp_guest_lister_read_one(lister, pid, &states));
	*ret = states.at[0];
	states.count = 0; /* ownership was moved; the lister was called for one VM */
	vp_guest_states_deinit(&states);
	return NULL;
}

static bool guest_access_runs(uint32_t pid)
{
	return !kill((pid_t)pid, 0) || errno != ESRCH;
}

static struct vp_error *guest_access_open_memory(const struct vp_guest_state *state,
						 int fds[VP_GUEST_ACCESS_FDS])
{
	VP_AUTO_FREE char *path = vp_format("/proc/%u/mem", state->pid);
	VP_AUTO_FREE char *pagemap_path = vp_format("/proc/%u/pagemap", state->pid);

	if (!state->memory.slots.count)
		return vp_error_new("KVM has no memory slots for the VM of process %u", state->pid);
	fds[0] = open(path, O_RDONLY | O_CLOEXEC);
	if (fds[0] < 0)
		return vp_error_errno(errno, "cannot open '%s'", path);
	/* Without it, only a kernel found by registers is possible. */
	fds[1] = open(pagemap_path, O_RDONLY | O_CLOEXEC);
	return NULL;
}

static void guest_access_read_by(const struct vp_guest_state *state, void *prepared,
				 const int fds[VP_GUEST_ACCESS_FDS], struct vp_guest_memory *memory)
{
	_Static_assert(sizeof(struct vp_guest_files) == VP_GUEST_ACCESS_FDS * sizeof(int),
		       "they are these descriptors");
	vp_guest_memory_by_files(memory, (const struct vp_guest_files *)(const void *)fds);
}

const struct vp_guest_access *vp_guest_access_kvm(void)
{
	static const struct vp_guest_access access = {
	    .open = guest_access_open_lister,
	    .close = guest_access_close_lister,
	    .list = guest_access_list,
	    .expect_same = vp_guest_state_expect_same,
	    .runs = guest_access_runs,
	    .open_memory = guest_access_open_memory,
	    .read_by = guest_access_read_by,
	};

	return &access;
}
