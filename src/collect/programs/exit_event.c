/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/exit_event.h"

#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "exit_event.skel.h"
#include "host/host.h"
#include "schema/records.h"

struct vp_exit_event {
	struct exit_event_bpf *programs;
};

struct vp_exit_event *vp_exit_event_open(void)
{
	enum vp_vendor vendor = vp_host_vendor();

	if (vendor != VP_VENDOR_INTEL && vendor != VP_VENDOR_ARM)
		return NULL;
	struct exit_event_bpf *programs = exit_event_bpf__open();
	if (programs && vendor == VP_VENDOR_ARM)
		bpf_program__set_autoload(programs->progs.note_last_exit, false);
	if (!programs ||
	    bpf_map__set_max_entries(programs->maps.last_exit,
				     (uint32_t)libbpf_num_possible_cpus()) ||
	    exit_event_bpf__load(programs) || exit_event_bpf__attach(programs)) {
		exit_event_bpf__destroy(programs);
		return NULL;
	}
	struct vp_exit_event *event = vp_alloc(sizeof(*event));
	event->programs = programs;
	return event;
}

void vp_exit_event_close(struct vp_exit_event *event)
{
	if (!event)
		return;
	exit_event_bpf__destroy(event->programs);
	free(event);
}

bool vp_exit_event_suffices(const struct vp_exit_event *event)
{
	return event || vp_host_vendor() != VP_VENDOR_INTEL;
}

int vp_exit_event_share(const struct vp_exit_event *event, struct bpf_map *map)
{
	return event ? bpf_map__reuse_fd(map, bpf_map__fd(event->programs->maps.last_exit)) : 0;
}
