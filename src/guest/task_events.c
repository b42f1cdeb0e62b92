/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/io.h"
#include "guest/direct_map.h"
#include "guest/task_events.h"
#include "guest/task_events.skel.h"
#include "guest/tracker.h"
#include "guest/watch.h"

struct vp_task_watch {
	struct vp_task_events *skeleton;
	struct ring_buffer *ring;
	uint64_t direct_map;        /* virtual address of physical address 0; 0: unknown */
	struct vp_tracker *tracker; /* while draining */
};

static int discard_output(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static void add_task_event(struct vp_task_watch *watch, const struct vp_task_event *task_event)
{
	static const enum vp_tracker_kind kinds[] = {
	    [VP_TASK_EXISTING] = VP_TRACKER_EXISTING,
	    [VP_TASK_FORK] = VP_TRACKER_FORK,
	    [VP_TASK_EXEC] = VP_TRACKER_EXEC_DONE,
	    [VP_TASK_EXIT] = VP_TRACKER_EXIT,
	};
	struct vp_tracker_event event = {.time_ns = task_event->time_ns,
					 .kind = kinds[task_event->kind],
					 .tgid = task_event->tgid,
					 .parent = task_event->parent,
					 .shared = task_event->shared};

	if (watch->direct_map && task_event->pgd > watch->direct_map)
		event.root = task_event->pgd - watch->direct_map;
	memcpy(event.comm, task_event->comm, sizeof(event.comm));
	event.comm[sizeof(event.comm) - 1] = 0;
	vp_tracker_add(watch->tracker, &event);
}

static int task_events_on_record(void *context, void *data, size_t size)
{
	const struct vp_task_event *task_event = data;

	if (size >= sizeof(*task_event) && task_event->kind >= VP_TASK_EXISTING &&
	    task_event->kind <= VP_TASK_EXIT)
		add_task_event(context, task_event);
	return 0;
}

/* Runs an iterator program; calls `each` (may be NULL) for every struct vp_task_event of its
 * output. */
static int run_iterator(struct bpf_program *program, int (*each)(void *, void *, size_t),
			void *context)
{
	struct bpf_link *link = bpf_program__attach_iter(program, NULL);
	if (!link)
		return -errno;
	int fd = bpf_iter_create(bpf_link__fd(link)), result = fd < 0 ? -errno : 0;
	struct vp_task_event task_events[64];
	size_t filled = 0;

	while (fd >= 0) {
		ssize_t got =
		    vp_read(fd, (char *)task_events + filled, sizeof(task_events) - filled);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		result = got < 0 ? -errno : 0;
		if (got <= 0)
			break;
		filled += (size_t)got;
		size_t whole = filled / sizeof(task_events[0]);
		for (size_t i = 0; each && i < whole; i++)
			each(context, &task_events[i], sizeof(task_events[i]));
		filled -= whole * sizeof(task_events[0]);
		memmove(task_events, task_events + whole, filled);
	}
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return result;
}

static bool task_events_read_kernel(void *context, uint64_t address, uint64_t *value)
{
	struct vp_task_watch *watch = context;
	struct vp_task_events__bss *shared = watch->skeleton->bss;

	shared->kernel_address = address;
	shared->kernel_error = -1;
	if (run_iterator(watch->skeleton->progs.read_kernel, NULL, NULL) || shared->kernel_error)
		return false;
	*value = shared->kernel_value;
	return true;
}

static int keep_pgd(void *context, void *data, size_t size)
{
	const struct vp_task_event *task_event = data;
	uint64_t *pgd = context;

	if (size >= sizeof(*task_event) && !*pgd)
		*pgd = task_event->pgd;
	return 0;
}

static void find_direct_map(struct vp_task_watch *watch)
{
	uint64_t pgd = 0;

	if (!run_iterator(watch->skeleton->progs.each_task, keep_pgd, &pgd) && pgd)
		watch->direct_map = vp_direct_map_find(pgd, task_events_read_kernel, watch);
}

static struct vp_error *task_events_start(struct vp_task_watch *watch)
{
	int result;

	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return vp_error_errno(errno, "the kernel has no BTF in '/sys/kernel/btf/vmlinux'");
	watch->skeleton = vp_task_events__open();
	if (!watch->skeleton)
		return vp_error_errno(errno, "cannot open the BPF programs");
	/* Iterators are run on demand. */
	bpf_program__set_autoattach(watch->skeleton->progs.each_task, false);
	bpf_program__set_autoattach(watch->skeleton->progs.read_kernel, false);
	result = vp_task_events__load(watch->skeleton);
	if (result)
		return vp_error_errno(-result, "cannot load the BPF programs");
	find_direct_map(watch);
	result = vp_task_events__attach(watch->skeleton);
	if (result)
		return vp_error_errno(-result, "cannot attach the BPF programs");
	watch->ring = ring_buffer__new(bpf_map__fd(watch->skeleton->maps.task_events),
				       task_events_on_record, watch, NULL);
	if (!watch->ring)
		return vp_error_errno(errno, "cannot read the BPF ring buffer");
	return NULL;
}

struct vp_error *vp_task_watch_open(struct vp_task_watch **watch)
{
	struct vp_task_watch *opened = vp_alloc(sizeof(*opened));

	libbpf_set_print(discard_output);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	struct vp_error *error = task_events_start(opened);
	if (error) {
		vp_task_watch_close(opened);
		return error;
	}
	*watch = opened;
	return NULL;
}

void vp_task_watch_close(struct vp_task_watch *watch)
{
	if (!watch)
		return;
	ring_buffer__free(watch->ring);
	vp_task_events__destroy(watch->skeleton);
	free(watch);
}

struct vp_error *vp_task_watch_scan(struct vp_task_watch *watch, struct vp_tracker *tracker)
{
	watch->tracker = tracker;
	int result = run_iterator(watch->skeleton->progs.each_task, task_events_on_record, watch);
	watch->tracker = NULL;
	return result ? vp_error_errno(-result, "cannot list the processes by BPF") : NULL;
}

void vp_task_watch_drain(struct vp_task_watch *watch, struct vp_tracker *tracker)
{
	watch->tracker = tracker;
	ring_buffer__consume(watch->ring);
	watch->tracker = NULL;
}

int vp_task_watch_fd(const struct vp_task_watch *watch)
{
	return ring_buffer__epoll_fd(watch->ring);
}

uint64_t vp_task_watch_lost(const struct vp_task_watch *watch)
{
	return watch->skeleton->bss->lost;
}

bool vp_task_watch_has_roots(const struct vp_task_watch *watch)
{
	return watch->direct_map != 0;
}
