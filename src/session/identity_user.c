/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/identity_user.h"

#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_state.h"
#include "schema/memory_outcome.h"

static struct vp_error *identity_user_identify(void *context, uint32_t number,
					       const struct vp_guest_state *state,
					       const struct vp_guest_finding *finding)
{
	return vp_identity_set(context, number, state, finding);
}

static void identity_user_forget(void *context, uint32_t pid)
{
	vp_identity_forget(context, pid);
}

static uint64_t identity_user_count_nowhere(void *context, uint32_t pid,
					    const struct vp_guest_finding *finding)
{
	return vp_identity_counts(context, pid, finding).nowhere;
}

static struct vp_error *identity_user_change_memory(void *context, uint32_t number,
						    const struct vp_guest_state *state,
						    const struct vp_guest_finding *finding)
{
	return vp_identity_set_memory(context, number, state, finding);
}

static void identity_user_follow(void *context, uint32_t pid, const vp_guest_runtime_list *now)
{
	vp_identity_follow(context, pid, now);
}

struct vp_guest_watch_client vp_identity_client(
    struct vp_identity *identity, const char *name,
    void (*outcome)(void *context, uint32_t pid, const struct vp_guest_finding *finding,
		    struct vp_memory_outcome *ret))
{
	return (struct vp_guest_watch_client){.context = identity,
					      .name = name,
					      .check_s = 1,
					      .identify = identity_user_identify,
					      .forget = identity_user_forget,
					      .count_nowhere = identity_user_count_nowhere,
					      .change_memory = identity_user_change_memory,
					      .follow = identity_user_follow,
					      .outcome = outcome};
}
