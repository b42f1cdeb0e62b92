/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pCPUs of a session: those online at the start, and those that come online later. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/pcpus.h"
#include "base/vec.h"
#include "host/cpu_hotplug.h"
#include "session/instrument.h"
#include "session/session_private.h"

struct vp_error *vp_session_find_pcpus(struct vp_session *session)
{
	struct vp_pcpus pcpus = {0};

	session->cpu_hotplug = vp_cpu_hotplug_open();
	if (session->cpu_hotplug < 0)
		VP_NOTICE(session,
			  "pCPUs that come online later are not sampled: cannot open a netlink "
			  "socket of the kernel's uevents: %s",
			  strerror(errno));
	VP_TRY(vp_pcpus_online(&pcpus));
	for (size_t i = 0; i < pcpus.count; i++)
		vp_vec_push(&session->pcpus, pcpus.at[i]);
	vp_vec_deinit(&pcpus);
	return NULL;
}

static bool was_online(const struct vp_session *session, uint32_t pcpu)
{
	vp_vec_each (&session->pcpus, known)
		if ((uint32_t)*known == pcpu)
			return true;
	return false;
}

void vp_session_add_pcpu(struct vp_session *session, uint32_t pcpu, unsigned classes)
{
	if (was_online(session, pcpu))
		return;
	vp_vec_each (&session->late_pcpus, late) {
		if (late->pcpu == pcpu) {
			late->classes |= classes;
			return;
		}
	}
	vp_vec_push(&session->late_pcpus, ((struct vp_late_pcpu){pcpu, classes}));
	VP_NOTICE(session, "pCPU %u came online during the recording", pcpu);
}

static void add_to_all(struct vp_session *session, uint32_t pcpu)
{
	if (was_online(session, pcpu))
		VP_NOTICE(session, "pCPU %u came back online", pcpu);
	vp_vec_each (&session->instruments, instrument) {
		const struct vp_instrument_ops *ops = (*instrument)->ops;
		struct vp_error *error = ops->add_pcpu ? ops->add_pcpu(*instrument, pcpu) : NULL;
		if (error)
			VP_NOTICE(session, "%s: pCPU %u, which came online, is not recorded: %s",
				  ops->name, pcpu, vp_error_message(error));
		vp_error_free(error);
	}
}

static void session_pcpus_on_event(void *context, uint32_t pcpu, bool online)
{
	struct vp_session *session = context;

	if (online)
		add_to_all(session, pcpu);
	else
		VP_NOTICE(session, "pCPU %u went offline", pcpu);
}

void vp_session_watch_pcpus(struct vp_session *session)
{
	if (session->cpu_hotplug >= 0 &&
	    !vp_cpu_hotplug_read(session->cpu_hotplug, session_pcpus_on_event, session))
		VP_NOTICE(session, "the kernel dropped uevents: pCPUs that came online may not be "
				   "sampled");
}
