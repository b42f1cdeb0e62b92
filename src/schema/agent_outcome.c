/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/agent_outcome.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "schema/interval.h"

enum { FIRST_UNPRIVILEGED_PORT = 1024 };

void vp_agent_outcome_deinit(struct vp_agent_outcome *outcome)
{
	free(outcome->problem);
	outcome->problem = NULL;
}

static bool agent_outcome_is_of_root(const struct vp_agent_outcome *outcome)
{
	return outcome->port < FIRST_UNPRIVILEGED_PORT;
}

static void agent_outcome_put_port(const struct vp_agent_outcome *outcome, struct vp_buffer *out)
{
	bool of_root = agent_outcome_is_of_root(outcome);

	if (!outcome->port) {
		vp_buffer_string(out, "over a vchan, which only root of the guest can offer");
		return;
	}
	vp_buffer_printf(out, "from %svsock port %" PRIu32 ", where %s of the guest can listen",
			 of_root ? "" : "unprivileged ", outcome->port,
			 of_root ? "only root" : "any program");
}

static void agent_outcome_put_map(const struct vp_agent_outcome *outcome, struct vp_buffer *out)
{
	if (outcome->status == VP_AGENT_TRUNCATED)
		vp_buffer_printf(out, "%s; the part received is ",
				 outcome->problem ? outcome->problem : "no reply");
	else
		vp_buffer_string(out, "ok: ");
	agent_outcome_put_port(outcome, out);
}

static void agent_outcome_put_counts(const struct vp_agent_outcome *outcome, struct vp_buffer *out)
{
#define GUEST(id, name, text) name,
	static const char *const names[] = {VP_GUEST_COUNTS(GUEST)};
#undef GUEST
	const char *separator = "ok: it counted ";

	for (uint32_t i = 0; i < VP_GUEST_COUNT; i++)
		if (outcome->counted >> i & 1) {
			vp_buffer_printf(out, "%s%s", separator, names[i]);
			separator = ", ";
		}
	if (!agent_outcome_is_of_root(outcome)) {
		vp_buffer_string(out, ", ");
		agent_outcome_put_port(outcome, out);
	}
	if (outcome->missing_ns)
		vp_buffer_printf(out, "; not for %.1f s", (double)outcome->missing_ns / 1e9);
	if (outcome->problem)
		vp_buffer_printf(out, "; %s", outcome->problem);
}

static void agent_outcome_put_events(const struct vp_agent_outcome *outcome, struct vp_buffer *out)
{
	vp_buffer_printf(out, "ok: it sent %" PRIu64 " events, %" PRIu64 " lost", outcome->events,
			 outcome->lost);
	if (outcome->invalid)
		vp_buffer_printf(out, ", %" PRIu64 " invalid entries", outcome->invalid);
	vp_buffer_printf(out, "; their times are accurate to %" PRIu64 " ns%s", outcome->error_ns,
			 agent_outcome_is_of_root(outcome) ? ""
							   : ", from an unprivileged vsock port");
	if (outcome->missing_ns)
		vp_buffer_printf(out, "; none of %.1f s", (double)outcome->missing_ns / 1e9);
	if (outcome->problem)
		vp_buffer_printf(out, "%s%s", outcome->missing_ns ? ": " : "; ", outcome->problem);
}

char *vp_agent_outcome_text(const struct vp_agent_outcome *outcome)
{
	struct vp_buffer out = {0};

	if (outcome->status == VP_AGENT_NOT_SELECTED)
		vp_buffer_string(&out, "not asked: not selected by --vm");
	else if (outcome->status == VP_AGENT_FAILED)
		vp_buffer_printf(&out, "%s%s",
				 outcome->request == VP_AGENT_EVENTS ? "events: " : "",
				 outcome->problem ? outcome->problem : "no reply");
	else if (outcome->request == VP_AGENT_COUNTS)
		agent_outcome_put_counts(outcome, &out);
	else if (outcome->request == VP_AGENT_EVENTS)
		agent_outcome_put_events(outcome, &out);
	else
		agent_outcome_put_map(outcome, &out);
	char *text = vp_strdup(vp_buffer_text(&out));
	vp_buffer_deinit(&out);
	return text;
}
