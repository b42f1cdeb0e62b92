/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/snapshot_cause.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/text.h"
#include "base/vec.h"
#include "schema/exit_reason.h"
#include "schema/records.h"

/* On Xen the vCPU with that substitute for a tid. */
static bool put_vcpu(const vp_vms *vms, uint32_t tid, struct vp_buffer *out)
{
	vp_vec_each (vms, vm)
		vp_vec_each (&vm->vcpus, vcpu)
			if (vm->has_domain && vcpu->tid == tid) {
				vp_buffer_printf(out, "vCPU %u of VM '%s'", vcpu->number, vm->name);
				return true;
			}
	return false;
}

static void put_thief(const struct vp_snapshot_cause *cause, const vp_vms *vms, bool is_domain,
		      struct vp_buffer *out)
{
	char duration[VP_DURATION_SIZE];

	if (is_domain && cause->thief_tid) {
		vp_buffer_string(out, "; of this, ");
		if (!put_vcpu(vms, cause->thief_tid, out))
			vp_buffer_string(out, "a vCPU of another domain");
		vp_buffer_printf(out, " had pCPU %u for %s", cause->pcpu,
				 vp_text_duration(cause->thief_ns, duration));
	} else if (is_domain) {
		vp_buffer_printf(out, "; no vCPU had pCPU %u", cause->pcpu);
	} else if (cause->thief_tid) {
		vp_buffer_printf(out, "; of this, '%s' (thread %u) had pCPU %u for %s",
				 cause->thief_comm, cause->thief_tid, cause->pcpu,
				 vp_text_duration(cause->thief_ns, duration));
	} else {
		vp_buffer_printf(out, "; the thread on pCPU %u is unknown", cause->pcpu);
	}
}

static void put_event(const struct vp_snapshot_cause *cause, const vp_vms *vms, bool is_domain,
		      struct vp_buffer *out)
{
	char text[VP_DURATION_SIZE], reason[VP_EXIT_NAME_SIZE];
	const char *duration = vp_text_duration(cause->ns, text);

	switch ((enum vp_condition)cause->condition) {
	case VP_CONDITION_STEAL:
		vp_buffer_printf(out, "was runnable for %s without a pCPU", duration);
		put_thief(cause, vms, is_domain, out);
		break;
	case VP_CONDITION_WAKEUP:
		vp_buffer_printf(out, "got a pCPU %s after it was woken", duration);
		put_thief(cause, vms, is_domain, out);
		break;
	case VP_CONDITION_EXIT:
		vp_buffer_printf(
		    out, "was outside the guest for %s after a VM exit of reason %s", duration,
		    vp_exit_reason_name((enum vp_vendor)cause->vendor, cause->reason, reason));
		break;
	case VP_CONDITION_THROTTLED:
		vp_buffer_string(
		    out, is_domain ? "was throttled: the cap of its domain was used up"
				   : "was throttled: the CPU quota of its cgroup was used up");
		break;
	case VP_CONDITIONS:
		break;
	}
}

static char *trigger_text(const struct vp_snapshot_cause *cause, const vp_vms *vms)
{
	struct vp_conditions conditions = {0};
	const struct vp_vm *vm = vp_vms_find(vms, cause->vm);
	struct vp_buffer out = {0};

	if (cause->condition >= VP_CONDITIONS)
		return vp_strdup("a trigger of a newer vperf");
	conditions.ns[cause->condition] = cause->limit_ns;
	VP_AUTO_FREE char *name =
	    vp_condition_text(&conditions, (enum vp_condition)cause->condition);
	vp_buffer_printf(&out, "%s: vCPU ", name);
	if (cause->vcpu == VP_VCPU_UNKNOWN)
		vp_buffer_string(&out, "?");
	else
		vp_buffer_printf(&out, "%u", cause->vcpu);
	vp_buffer_printf(&out, " of VM '%s' ", vm ? vm->name : "?");
	const bool is_domain = vm && vm->has_domain;
	if (!is_domain)
		vp_buffer_printf(&out, "(thread %u) ", cause->tid);
	put_event(cause, vms, is_domain, &out);
	char *text = vp_strdup(vp_buffer_text(&out));
	vp_buffer_deinit(&out);
	return text;
}

char *vp_snapshot_cause_text(const struct vp_snapshot_cause *cause, const vp_vms *vms)
{
	static const char *const texts[VP_CAUSE_KINDS] = {[VP_CAUSE_NONE] = "",
							  [VP_CAUSE_MANUAL] = "manual snapshot",
							  [VP_CAUSE_SIGNAL] =
							      "manual snapshot (SIGUSR2)",
							  [VP_CAUSE_END] = "end of the recording"};

	if (cause->kind == VP_CAUSE_TRIGGER)
		return trigger_text(cause, vms);
	return vp_strdup(cause->kind < VP_CAUSE_KINDS ? texts[cause->kind]
						      : "a cause of a newer vperf");
}
