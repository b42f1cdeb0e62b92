/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/conditions.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "collect/programs/condition_thief.h"
#include "collect/programs/load.h"
#include "conditions.skel.h"
#include "host/host.h"
#include "host/kernel_btf.h"
#include "host/source.h"

_Static_assert((int)VP_CONDITION_STEAL == (int)VP_FIRED_STEAL &&
		   (int)VP_CONDITION_WAKEUP == (int)VP_FIRED_WAKEUP &&
		   (int)VP_CONDITION_EXIT == (int)VP_FIRED_EXIT &&
		   (int)VP_CONDITION_THROTTLED == (int)VP_FIRED_THROTTLED,
	       "the programs number the conditions alike");

struct vp_condition_watch {
	struct conditions_bpf *programs;
	vp_links links;
	const struct vp_conditions *conditions; /* while they are loaded */
	bool every_vm;
	struct ring_buffer *ring;
	struct vp_fired fired; /* the first trigger since arming */
	bool is_armed, has_fired;
};

/* Checks that the kernel's BTF has the types that the programs need. */
static struct vp_error *check_kernel(const struct vp_conditions *conditions)
{
	VP_TRY(vp_host_expect_btf("condition"));
	if (!vp_kernel_btf_has_member(NULL, "kvm", "task_struct", "preempt_notifiers"))
		return vp_error_new(
		    "option --snapshot-on: no KVM on this kernel: there are no vCPUs to watch");
	if (conditions->wanted[VP_CONDITION_THROTTLED] &&
	    !vp_kernel_btf_has_member(NULL, "kvm", "cfs_rq", "throttle_count") &&
	    !vp_kernel_btf_has_member(NULL, "kvm", "task_struct", "throttled"))
		return vp_error_new("option --snapshot-on: throttled is not available: this kernel "
				    "has no CPU quotas (CONFIG_CFS_BANDWIDTH)");
	return NULL;
}

static struct vp_error *open_programs(void *context, const struct bpf_object_open_opts *options,
				      struct bpf_object_skeleton **ret)
{
	struct vp_condition_watch *watch = context;
	const struct vp_conditions *conditions = watch->conditions;
	struct conditions_bpf *programs = conditions_bpf__open_opts(options);

	watch->programs = programs;
	if (!programs)
		return vp_error_errno(errno, "cannot open the condition programs");
	*ret = programs->skeleton;
	programs->rodata->vendor = vp_host_vendor();
	programs->rodata->every_vm = watch->every_vm;
	for (int i = 0; i < VP_CONDITIONS; i++)
		programs->rodata->limits[i] =
		    conditions->wanted[i] ? conditions->ns[i] : UINT64_MAX;
	bool wants_exit = conditions->wanted[VP_CONDITION_EXIT];
	bpf_program__set_autoload(programs->progs.start_exit, wants_exit);
	bpf_program__set_autoload(programs->progs.end_exit, wants_exit);
	int result =
	    bpf_map__set_max_entries(programs->maps.cpus, (uint32_t)libbpf_num_possible_cpus());
	return result ? vp_host_load_error(result, "condition") : NULL;
}

static struct vp_error *conditions_load(struct vp_condition_watch *watch,
					const struct vp_conditions *conditions, bool every_vm)
{
	struct vp_programs_load load = {
	    .name = "condition", .context = watch, .open = open_programs};

	load.elf = conditions_bpf__elf_bytes(&load.elf_size);
	watch->conditions = conditions;
	watch->every_vm = every_vm;
	return vp_programs_load(&load);
}

static struct vp_error *conditions_attach(struct vp_condition_watch *watch)
{
	const struct vp_programs_attach attach = {.n_optional = 0};
	char *missing = NULL;
	VP_AUTO_ERROR struct vp_error *error =
	    vp_programs_attach(watch->programs->obj, &attach, &watch->links, &missing);

	return error ? vp_error_new("option --snapshot-on: this kernel does not allow it: %s",
				    vp_error_message(error))
		     : NULL;
}

static int conditions_on_fired(void *context, void *bytes, size_t size)
{
	struct vp_condition_watch *watch = context;

	const struct vp_condition_notice *notice = bytes;

	if (watch->is_armed && size >= sizeof(*notice)) {
		watch->fired = notice->fired;
		vp_condition_find_thief(&notice->cpu, &watch->fired);
		watch->has_fired = true;
		watch->is_armed = false;
	}
	return 0;
}

static struct vp_error *conditions_open_all(struct vp_condition_watch *watch,
					    const struct vp_conditions *conditions, bool every_vm)
{
	VP_TRY(check_kernel(conditions));
	VP_TRY(conditions_load(watch, conditions, every_vm));
	watch->ring = ring_buffer__new(bpf_map__fd(watch->programs->maps.fired),
				       conditions_on_fired, watch, NULL);
	if (!watch->ring)
		return vp_error_errno(errno, "cannot map the conditions' ring buffer");
	return conditions_attach(watch);
}

struct vp_error *vp_condition_watch_open(const struct vp_conditions *conditions, bool every_vm,
					 struct vp_condition_watch **ret)
{
	struct vp_condition_watch *watch = vp_alloc(sizeof(*watch));
	struct vp_error *error = conditions_open_all(watch, conditions, every_vm);

	if (error)
		vp_condition_watch_free(watch);
	else
		*ret = watch;
	return error;
}

void vp_condition_watch_add(struct vp_condition_watch *watch, uint32_t pid)
{
	uint8_t one = 1;

	(void)bpf_map_update_elem(bpf_map__fd(watch->programs->maps.vms), &pid, &one, BPF_ANY);
}

void vp_condition_watch_arm(struct vp_condition_watch *watch)
{
	(void)ring_buffer__consume(watch->ring); /* notifications before arming */
	watch->is_armed = true;
	watch->programs->bss->armed = 1;
	watch->programs->bss->enabled = 1;
}

int vp_condition_watch_fd(const struct vp_condition_watch *watch)
{
	return ring_buffer__epoll_fd(watch->ring);
}

bool vp_condition_watch_take(struct vp_condition_watch *watch, struct vp_fired *ret)
{
	(void)ring_buffer__consume(watch->ring);
	if (!watch->has_fired)
		return false;
	watch->has_fired = false;
	*ret = watch->fired;
	return true;
}

uint64_t vp_condition_watch_dropped(const struct vp_condition_watch *watch)
{
	uint64_t sum = 0;

	for (int i = 0; i < VP_CONDITIONS; i++)
		sum += __atomic_load_n(&watch->programs->bss->dropped[i], __ATOMIC_RELAXED);
	return sum;
}

void vp_condition_watch_free(struct vp_condition_watch *watch)
{
	if (!watch)
		return;
	vp_links_deinit(&watch->links);
	ring_buffer__free(watch->ring);
	conditions_bpf__destroy(watch->programs);
	free(watch);
}

static bool probe_conditions(char *detail, size_t size)
{
	const struct vp_conditions all = {.wanted = {true, true, true, true}};
	struct vp_condition_watch *watch = NULL;
	struct vp_error *error = vp_condition_watch_open(&all, true, &watch);

	vp_condition_watch_free(watch);
	return vp_probe_report_opened(error, NULL, detail, size);
}

const struct vp_source *vp_source_conditions(void)
{
	static const struct vp_probe probe = {"condition programs",
					      "'vperf record --snapshot-on' does not work", false,
					      probe_conditions};
	static const struct vp_source source = {&probe, 1};

	return &source;
}
