/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/memory_outcome.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/text.h"

void vp_memory_outcome_count(struct vp_memory_outcome *outcome, enum vp_memory_use use,
			     uint64_t first, uint64_t second)
{
	outcome->uses |= 1u << use;
	outcome->counts[use][0] = first;
	outcome->counts[use][1] = second;
}

static void memory_outcome_put_counts(const struct vp_memory_outcome *outcome,
				      struct vp_buffer *out)
{
	static const char *const texts[VP_MEMORY_USES][2] = {
	    [VP_MEMORY_SAMPLES] = {"samples named, ", " not"},
	    [VP_MEMORY_EXITS] = {"exits named, ", " not"},
	    [VP_MEMORY_SWITCHES] = {"guest switches observed, ", " to unreadable tasks"},
	    [VP_MEMORY_COUNTERS] = {"counters of ", " vCPUs"}};
	const char *separator = "";

	for (uint32_t use = 0; use < VP_MEMORY_USES; use++) {
		if (!(outcome->uses >> use & 1))
			continue;
		vp_buffer_printf(out, "%s%" PRIu64 " %s%" PRIu64 "%s", separator,
				 outcome->counts[use][0], texts[use][0], outcome->counts[use][1],
				 texts[use][1]);
		separator = ", ";
	}
	if (outcome->lost_ns)
		vp_buffer_printf(out, "; lost for %.1f s%s%s", (double)outcome->lost_ns / 1e9,
				 outcome->problem ? ": " : "",
				 outcome->problem ? outcome->problem : "");
}

static void memory_outcome_put_search(const struct vp_memory_outcome *outcome,
				      struct vp_buffer *out)
{
	vp_buffer_string(out, "the guest's kernel was not found before the recording ended");
	if (outcome->to_search)
		vp_buffer_printf(out,
				 ": %" PRIu64 " of %" PRIu64 " MiB of its memory were searched",
				 outcome->searched >> 20, outcome->to_search >> 20);
}

char *vp_memory_outcome_text(const struct vp_memory_outcome *outcome)
{
	struct vp_buffer out = {0};

	switch (outcome->status) {
	case VP_MEMORY_DERIVED:
		vp_buffer_string(&out, "the kernel has no BTF: tasks are known, process mappings "
				       "are not; ");
		memory_outcome_put_counts(outcome, &out);
		break;
	case VP_MEMORY_VM_ENDED:
		vp_buffer_string(&out,
				 "the VM ended: mappings date from when each process was first "
				 "seen; symbols of kernel modules and files are missing");
		break;
	case VP_MEMORY_SEARCHING:
		memory_outcome_put_search(outcome, &out);
		break;
	case VP_MEMORY_FAILED:
		vp_buffer_string(&out, outcome->problem ? outcome->problem : "no reason is known");
		break;
	case VP_MEMORY_SHARED:
		vp_buffer_string(&out, "several VMs share its process: their memory cannot be "
				       "distinguished");
		break;
	default:
		vp_buffer_printf(&out, "ok: kernel found by %s, %s; ",
				 outcome->scanned ? "memory scan" : "registers",
				 outcome->cached ? "cached kernel pack" : "symbols and BTF read");
		memory_outcome_put_counts(outcome, &out);
	}
	char *text = vp_strdup(vp_buffer_text(&out));
	vp_buffer_deinit(&out);
	return text;
}
