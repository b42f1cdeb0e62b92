/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/filter.h"

#include <string.h>

#include "base/buffer.h"

struct vp_error *vp_filter_choose_vms(const vp_vms *vms, const char *vm, bool **ret)
{
	bool *chosen = vp_alloc(vms->count + 1);
	struct vp_buffer known = {0};
	bool any = false;

	for (size_t i = 0; i < vms->count; i++) {
		char pid[16];
		snprintf(pid, sizeof(pid), "%u", vms->at[i].pid);
		chosen[i] = !vm || !strcmp(vms->at[i].name, vm);
		any |= chosen[i];
		vp_buffer_printf(&known, "%s%s (%s)", known.size ? ", " : "", vms->at[i].name, pid);
	}
	for (size_t i = 0; i < vms->count && vm && !any; i++) {
		char pid[16];
		snprintf(pid, sizeof(pid), "%u", vms->at[i].pid);
		chosen[i] = !strcmp(pid, vm);
		any |= chosen[i];
	}
	struct vp_error *error = NULL;
	if (vm && !any)
		error = known.size ? vp_error_new("there is no VM '%s'; the VMs are %s", vm,
						  vp_buffer_text(&known))
				   : vp_error_new("there is no VM '%s', nor any other VM", vm);
	vp_buffer_deinit(&known);
	if (error)
		free(chosen);
	else
		*ret = chosen;
	return error;
}

struct vp_error *vp_filter_init(struct vp_filter *filter, const vp_vms *vms, const char *vm)
{
	*filter = (struct vp_filter){.all_vms = !vm, .n_chosen = vms->count};
	return vp_filter_choose_vms(vms, vm, &filter->chosen);
}

void vp_filter_deinit(struct vp_filter *filter)
{
	free(filter->chosen);
	filter->chosen = NULL;
}

bool vp_filter_has_vm(const struct vp_filter *filter, uint32_t vm)
{
	return filter->all_vms || (vm < filter->n_chosen && filter->chosen[vm]);
}

bool vp_filter_has_vcpu(const struct vp_filter *filter, uint32_t vcpu)
{
	return !filter->has_vcpu || filter->vcpu == vcpu;
}

bool vp_filter_is_of_process(const struct vp_filter *filter)
{
	return filter->comm || filter->pid;
}

bool vp_filter_hides_any(const struct vp_filter *filter)
{
	return !filter->all_vms || filter->has_vcpu || vp_filter_is_of_process(filter);
}
