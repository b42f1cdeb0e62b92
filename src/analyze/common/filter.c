/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/filter.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/vec.h"

/* Selects the VMs with that name, or else with that pid; false if there is no match. */
static bool filter_choose(const vp_vms *vms, const char *word, bool *chosen)
{
	bool any = false;

	for (size_t i = 0; i < vms->count; i++)
		if (!strcmp(vms->at[i].name, word))
			chosen[i] = any = true;
	for (size_t i = 0; i < vms->count && !any; i++) {
		char pid[16];
		snprintf(pid, sizeof(pid), "%u", vms->at[i].pid);
		if (!strcmp(pid, word))
			chosen[i] = any = true;
	}
	return any;
}

static struct vp_error *no_such_vm(const vp_vms *vms, const char *word)
{
	struct vp_buffer known = {0};
	struct vp_error *error;

	vp_vec_each (vms, vm)
		vp_buffer_printf(&known, "%s%s (%u)", known.size ? ", " : "", vm->name, vm->pid);
	error = known.size ? vp_error_new("there is no VM '%s'; the VMs are %s", word,
					  vp_buffer_text(&known))
			   : vp_error_new("there is no VM '%s', nor any other VM", word);
	vp_buffer_deinit(&known);
	return error;
}

struct vp_error *vp_filter_choose_vms(const vp_vms *vms, const char *vm, bool **ret)
{
	bool *chosen = vp_alloc(vms->count + 1);
	VP_AUTO_FREE char *words = vp_strdup(vm ? vm : "");
	struct vp_error *error = NULL;
	char *rest = words;

	for (size_t i = 0; i < vms->count; i++)
		chosen[i] = !vm;
	for (char *word; vm && !error && (word = strsep(&rest, "\n"));)
		if (!filter_choose(vms, word, chosen))
			error = no_such_vm(vms, word);
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
