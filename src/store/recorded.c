/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/recorded.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "maps/format.h"

static void put_numbers(const uint64_t *numbers, size_t count, struct vp_buffer *out)
{
	for (size_t i = 0; i < count; i++)
		vp_buffer_printf(out, " %" PRIu64, numbers[i]);
}

static void read_numbers(struct vp_cursor *line, uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		numbers[i] = vp_cursor_decimal(line);
}

void vp_recorded_put_cause(const struct vp_snapshot_cause *cause, struct vp_buffer *out)
{
	const uint64_t numbers[] = {cause->kind,   cause->condition, cause->limit_ns,
				    cause->vm,     cause->vcpu,      cause->tid,
				    cause->ns,     cause->pcpu,      cause->vendor,
				    cause->reason, cause->thief_tid, cause->thief_ns};

	put_numbers(numbers, cause->kind == VP_CAUSE_TRIGGER ? VP_ARRAY_SIZE(numbers) : 1, out);
	if (cause->kind != VP_CAUSE_TRIGGER)
		return;
	vp_buffer_string(out, " ");
	vp_maps_escape(cause->thief_comm, out);
}

void vp_recorded_read_cause(struct vp_cursor *line, struct vp_snapshot_cause *ret)
{
	uint64_t n[11];
	struct vp_buffer comm = {0};

	*ret = (struct vp_snapshot_cause){.kind = (uint32_t)vp_cursor_decimal(line)};
	if (ret->kind != VP_CAUSE_TRIGGER)
		return;
	read_numbers(line, n, VP_ARRAY_SIZE(n));
	*ret = (struct vp_snapshot_cause){.kind = VP_CAUSE_TRIGGER,
					  .condition = (uint32_t)n[0],
					  .limit_ns = n[1],
					  .vm = (uint32_t)n[2],
					  .vcpu = (uint32_t)n[3],
					  .tid = (uint32_t)n[4],
					  .ns = n[5],
					  .pcpu = (uint32_t)n[6],
					  .vendor = (uint32_t)n[7],
					  .reason = (uint32_t)n[8],
					  .thief_tid = (uint32_t)n[9],
					  .thief_ns = n[10]};
	vp_maps_unescape(vp_cursor_word(line), &comm);
	snprintf(ret->thief_comm, sizeof(ret->thief_comm), "%s", vp_buffer_text(&comm));
	vp_buffer_deinit(&comm);
}

void vp_recorded_put_sampling(const struct vp_guest_sampling *sampling, struct vp_buffer *out)
{
	const uint64_t numbers[] = {sampling->method,          sampling->exits,
				    sampling->period_ns,       sampling->duration_ns,
				    sampling->contexts,        sampling->pause_ns,
				    sampling->max_pause_ns,    sampling->unsampled_ns,
				    sampling->periods,         sampling->exit_periods,
				    sampling->unknown_periods, sampling->exit_samples,
				    sampling->pcpus,           sampling->own,
				    sampling->hypervisor};

	put_numbers(numbers, VP_ARRAY_SIZE(numbers), out);
}

void vp_recorded_read_sampling(struct vp_cursor *line, struct vp_guest_sampling *ret)
{
	uint64_t n[15];

	read_numbers(line, n, VP_ARRAY_SIZE(n));
	*ret = (struct vp_guest_sampling){.method = (uint32_t)n[0],
					  .exits = (uint32_t)n[1],
					  .period_ns = n[2],
					  .duration_ns = n[3],
					  .contexts = n[4],
					  .pause_ns = n[5],
					  .max_pause_ns = n[6],
					  .unsampled_ns = n[7],
					  .periods = n[8],
					  .exit_periods = n[9],
					  .unknown_periods = n[10],
					  .exit_samples = n[11],
					  .pcpus = n[12],
					  .own = n[13],
					  .hypervisor = n[14]};
}

/* An error message, to the end of the line. */
static void recorded_put_problem(const char *problem, struct vp_buffer *out)
{
	if (!problem)
		return;
	vp_buffer_string(out, " ");
	for (const char *at = problem; *at; at++)
		vp_buffer_append(out, *at == '\n' ? " " : at, 1);
}

static char *recorded_read_problem(struct vp_cursor *line)
{
	struct vp_slice problem = vp_cursor_rest(line);

	return problem.size ? vp_strndup(problem.bytes, problem.size) : NULL;
}

void vp_recorded_put_agent(const struct vp_agent_outcome *outcome, struct vp_buffer *out)
{
	const uint64_t numbers[] = {outcome->request, outcome->status,     outcome->port,
				    outcome->counted, outcome->missing_ns, outcome->events,
				    outcome->lost,    outcome->invalid,    outcome->error_ns};

	put_numbers(numbers, VP_ARRAY_SIZE(numbers), out);
	recorded_put_problem(outcome->problem, out);
}

bool vp_recorded_read_agent(struct vp_cursor *line, struct vp_agent_outcome *ret)
{
	uint64_t n[9];

	read_numbers(line, n, VP_ARRAY_SIZE(n));
	if (n[0] >= VP_AGENT_REQUESTS || n[1] >= VP_AGENT_STATUSES)
		return false;
	*ret = (struct vp_agent_outcome){.request = (uint32_t)n[0],
					 .status = (uint32_t)n[1],
					 .port = (uint32_t)n[2],
					 .counted = (uint32_t)n[3],
					 .missing_ns = n[4],
					 .events = n[5],
					 .lost = n[6],
					 .invalid = n[7],
					 .error_ns = n[8],
					 .problem = recorded_read_problem(line)};
	return true;
}

void vp_recorded_put_memory(const struct vp_memory_outcome *outcome, struct vp_buffer *out)
{
	const uint64_t numbers[] = {outcome->status,   outcome->scanned,   outcome->cached,
				    outcome->searched, outcome->to_search, outcome->lost_ns,
				    outcome->uses};

	put_numbers(numbers, VP_ARRAY_SIZE(numbers), out);
	for (uint32_t use = 0; use < VP_MEMORY_USES; use++)
		put_numbers(outcome->counts[use], 2, out);
	recorded_put_problem(outcome->problem, out);
}

bool vp_recorded_read_memory(struct vp_cursor *line, struct vp_memory_outcome *ret)
{
	uint64_t n[7];

	read_numbers(line, n, VP_ARRAY_SIZE(n));
	if (n[0] >= VP_MEMORY_STATUSES)
		return false;
	*ret = (struct vp_memory_outcome){.status = (uint32_t)n[0],
					  .scanned = n[1] != 0,
					  .cached = n[2] != 0,
					  .searched = n[3],
					  .to_search = n[4],
					  .lost_ns = n[5],
					  .uses = (uint32_t)n[6] & ((1u << VP_MEMORY_USES) - 1)};
	for (uint32_t use = 0; use < VP_MEMORY_USES; use++)
		read_numbers(line, ret->counts[use], 2);
	ret->problem = recorded_read_problem(line);
	return true;
}
