/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>

#include <linux/perf_event.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/vec.h"
#include "guest/tracker.h"
#include "guest/watch.h"
#include "maps/format.h"

enum { RING_BYTES = 512 * 1024 }; /* per CPU, a power of two */

/* linux/perf_event.h of Linux 5.12; a build machine's headers may be older. */
#ifndef PERF_RECORD_MISC_MMAP_BUILD_ID
#define PERF_RECORD_MISC_MMAP_BUILD_ID (1 << 14)
#endif

struct ring {
	struct perf_event_mmap_page *page;
	char *data;
};

struct vp_perf_watch {
	VP_VEC(int) fds;
	VP_VEC(struct ring) rings;
	size_t page_size;
	bool lives;
	uint64_t lost;
	struct vp_tracker *tracker; /* while draining */
};

static int perf_open_event(int cpu, bool lives, bool build_id)
{
	struct perf_event_attr attr = {
	    .type = PERF_TYPE_SOFTWARE,
	    .size = sizeof(attr),
	    .config = PERF_COUNT_SW_DUMMY,
	    .sample_type = PERF_SAMPLE_TIME,
	    .sample_id_all = 1,
	    .mmap = 1, /* executable mappings only (no mmap_data) */
	    .mmap2 = 1,
	    .comm = 1,
	    .comm_exec = 1,
	    .task = lives,
	    .use_clockid = 1,
	    .clockid = CLOCK_MONOTONIC,
	    .watermark = 1,
	    .wakeup_watermark = RING_BYTES / 2,
	    .build_id = build_id,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static struct vp_error *open_cpu(struct vp_perf_watch *watch, int cpu)
{
	int fd = perf_open_event(cpu, watch->lives, true);

	if (fd < 0 && errno == EINVAL) /* Linux before 5.12 */
		fd = perf_open_event(cpu, watch->lives, false);
	if (fd < 0 && errno == ENODEV) /* offline */
		return NULL;
	if (fd < 0)
		return vp_error_errno(errno, "cannot open a perf event on CPU %d", cpu);
	vp_vec_push(&watch->fds, fd);
	void *memory =
	    mmap(NULL, watch->page_size + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return vp_error_errno(errno, "cannot map the perf buffer of CPU %d", cpu);
	vp_vec_push(&watch->rings, ((struct ring){memory, (char *)memory + watch->page_size}));
	return NULL;
}

struct vp_error *vp_perf_open(bool lives, struct vp_perf_watch **watch)
{
	struct vp_perf_watch *opened = vp_alloc(sizeof(*opened));
	struct vp_error *error = NULL;

	opened->page_size = (size_t)sysconf(_SC_PAGESIZE);
	opened->lives = lives;
	for (int cpu = 0; !error && cpu < get_nprocs_conf(); cpu++)
		error = open_cpu(opened, cpu);
	if (error) {
		vp_perf_close(opened);
		return error;
	}
	*watch = opened;
	return NULL;
}

void vp_perf_close(struct vp_perf_watch *watch)
{
	if (!watch)
		return;
	vp_vec_each (&watch->rings, ring)
		munmap(ring->page, watch->page_size + RING_BYTES);
	vp_vec_each (&watch->fds, fd)
		close(*fd);
	vp_vec_deinit(&watch->rings);
	vp_vec_deinit(&watch->fds);
	free(watch);
}

/* Reads the time that sample_id_all puts at the end of the record's body. */
static uint64_t take_time(struct vp_cursor *body)
{
	struct vp_cursor last = *body;
	size_t left = vp_cursor_left(body);

	if (left < 8) {
		body->failed = true;
		return 0;
	}
	vp_cursor_bytes(&last, left - 8);
	body->end -= 8;
	return vp_cursor_u64(&last);
}

static void take_record_text(struct vp_cursor *body, char *name, size_t room)
{
	struct vp_slice text = vp_cursor_rest(body);
	size_t size = strnlen(text.bytes, text.size);

	if (size >= room)
		size = room - 1;
	memcpy(name, text.bytes, size);
	name[size] = 0;
}

static void on_mmap(struct vp_perf_watch *watch, struct vp_cursor *body, unsigned misc)
{
	struct vp_tracker_event event = {.kind = VP_TRACKER_MAP, .time_ns = take_time(body)};
	struct vp_build_id id = {0};
	char path[4096];

	event.tgid = vp_cursor_u32(body);
	vp_cursor_u32(body); /* tid */
	event.start = vp_cursor_u64(body);
	event.end = event.start + vp_cursor_u64(body);
	event.pgoff = vp_cursor_u64(body);
	struct vp_slice file = vp_cursor_bytes(body, 24);
	vp_cursor_u64(body); /* protection and flags */
	take_record_text(body, path, sizeof(path));
	/* The kernel's own mappings (modules) have pid -1. */
	if (!vp_cursor_ok(body) || event.tgid == UINT32_MAX || event.end <= event.start)
		return;
	if ((misc & PERF_RECORD_MISC_MMAP_BUILD_ID) && (unsigned char)file.bytes[0] <= 20)
		id = vp_build_id_of(file.bytes + 4, (unsigned char)file.bytes[0]);
	event.image = vp_tracker_image(watch->tracker, &id, path);
	vp_tracker_add(watch->tracker, &event);
}

static void perf_on_comm(struct vp_perf_watch *watch, struct vp_cursor *body, unsigned misc)
{
	struct vp_tracker_event event = {.time_ns = take_time(body)};

	event.kind = misc & PERF_RECORD_MISC_COMM_EXEC ? VP_TRACKER_EXEC_BEGIN : VP_TRACKER_COMM;
	event.tgid = vp_cursor_u32(body);
	uint32_t tid = vp_cursor_u32(body);
	take_record_text(body, event.comm, sizeof(event.comm));
	/* Names of threads other than the main thread are not the process's. */
	if (!vp_cursor_ok(body) || (event.kind == VP_TRACKER_COMM && tid != event.tgid))
		return;
	vp_tracker_add(watch->tracker, &event);
	/* Without the BPF program, only this record shows the end. */
	if (watch->lives && event.kind == VP_TRACKER_EXEC_BEGIN) {
		event.kind = VP_TRACKER_EXEC_DONE;
		vp_tracker_add(watch->tracker, &event);
	}
}

static void on_task(struct vp_perf_watch *watch, struct vp_cursor *body, bool exits)
{
	struct vp_tracker_event event = {.kind = exits ? VP_TRACKER_EXIT : VP_TRACKER_FORK,
					 .time_ns = take_time(body)};

	event.tgid = vp_cursor_u32(body);
	event.parent = vp_cursor_u32(body);
	uint32_t tid = vp_cursor_u32(body);
	/* A process is assumed to end with its main thread. */
	if (vp_cursor_ok(body) && watch->lives && tid == event.tgid)
		vp_tracker_add(watch->tracker, &event);
}

static void perf_on_record(struct vp_perf_watch *watch, const struct perf_event_header *header)
{
	struct vp_cursor body = vp_cursor_of(header + 1, header->size - sizeof(*header));

	switch (header->type) {
	case PERF_RECORD_MMAP2:
		on_mmap(watch, &body, header->misc);
		break;
	case PERF_RECORD_COMM:
		perf_on_comm(watch, &body, header->misc);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		on_task(watch, &body, header->type == PERF_RECORD_EXIT);
		break;
	case PERF_RECORD_LOST:
		vp_cursor_u64(&body);
		watch->lost += vp_cursor_u64(&body);
		break;
	}
}

static void drain_ring(struct vp_perf_watch *watch, struct ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;
	_Alignas(8) char copy[UINT16_MAX + 1]; /* a record may wrap around; its size has 16 bits */

	while (tail < head) {
		const struct perf_event_header *header =
		    (const void *)(ring->data +
				   tail % RING_BYTES); /* the header never wraps: 8-byte aligned */
		size_t size = header->size, first = RING_BYTES - tail % RING_BYTES;
		if (size < sizeof(*header))
			break;
		memcpy(copy, header, size < first ? size : first);
		if (size > first)
			memcpy(copy + first, ring->data, size - first);
		perf_on_record(watch, (const struct perf_event_header *)copy);
		tail += size;
	}
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

void vp_perf_drain(struct vp_perf_watch *watch, struct vp_tracker *tracker)
{
	watch->tracker = tracker;
	vp_vec_each (&watch->rings, ring)
		drain_ring(watch, ring);
	watch->tracker = NULL;
}

unsigned vp_perf_fds(const struct vp_perf_watch *watch, const int **fds)
{
	*fds = watch->fds.at;
	return (unsigned)watch->fds.count;
}

uint64_t vp_perf_lost(const struct vp_perf_watch *watch)
{
	return watch->lost;
}
