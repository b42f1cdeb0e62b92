/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/buffers.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/io.h"
#include "base/vec.h"
#include "xen/xen_order.h"

enum {
	PAGES = 256,         /* per buffer: 45,000 exits or more */
	READINGS = 16,       /* kept pairs of clocks */
	LATE_NS = 1000000,   /* maximum delay of an event into its buffer */
	POLL_NS = 250000000, /* time to watch for another reader; xentrace reads every 100 ms */
	INFO_PAGES = 1024,   /* maximum pages of struct t_info */
	/* Xen drops a record if there is no space for it, a record of the loss and a wrap. */
	FULL_BYTES = 256,
};

/* struct t_buf of Xen's public/trace.h; records follow. Both offsets wrap at twice the buffer's
 * size. */
struct head {
	_Atomic uint32_t consumed, produced;
};

struct ring {
	struct head *head;
	size_t size;       /* bytes of records */
	uint32_t consumed; /* as last written by this program */
	uint64_t last_tsc;
};

struct vp_xen_buffers {
	struct vp_xen *xen;
	const uint16_t *info; /* struct t_info */
	size_t info_pages, ring_pages;
	bool tracing, losing;
	uint64_t started; /* TSC: earlier losses belong to other readers */
	uint64_t lost;
	VP_VEC(struct ring) rings;                  /* by pCPU */
	struct vp_clock_reading readings[READINGS]; /* newest last */
	size_t n_readings;
	VP_VEC(char) bytes;                   /* copy of a ring's records */
	VP_VEC(struct vp_xen_traced) pending; /* not emitted yet; times are TSC values */
	VP_VEC(struct vp_xen_traced) later;   /* those of them that stay pending */
	struct vp_xen_order order;            /* order of the pending ones */
};

static void note_clocks(struct vp_xen_buffers *buffers)
{
	if (buffers->n_readings == READINGS) {
		memmove(buffers->readings, buffers->readings + 1,
			(READINGS - 1) * sizeof(*buffers->readings));
		buffers->n_readings--;
	}
	buffers->readings[buffers->n_readings++] = vp_clock_read();
}

/* By interpolation between the two nearest clock pairs. *at: index of the second one for an
 * earlier time, at least 1. */
static uint64_t buffers_time_of(const struct vp_xen_buffers *buffers, uint64_t tsc, size_t *at)
{
	const struct vp_clock_reading *readings = buffers->readings;

	while (*at + 1 < buffers->n_readings && readings[*at].tsc < tsc)
		++*at;
	const struct vp_clock_reading *a = &readings[*at - 1], *b = &readings[*at];
	double slope =
	    b->tsc > a->tsc ? (double)(b->monotonic - a->monotonic) / (double)(b->tsc - a->tsc) : 1;
	return (uint64_t)((int64_t)a->monotonic +
			  (int64_t)(slope * (double)(int64_t)(tsc - a->tsc)));
}

static struct vp_error *map_rings(struct vp_xen_buffers *buffers)
{
	const struct vp_xen *xen = buffers->xen;
	/* A list offset per pCPU of Xen, followed by the lists. */
	size_t pcpus = buffers->info[1] * sizeof(uint32_t) / sizeof(uint16_t);

	for (size_t i = 0; i + 1 < pcpus && buffers->info[1 + i]; i++) {
		const uint32_t *list = (const uint32_t *)buffers->info + buffers->info[1 + i];
		uint64_t frames[UINT16_MAX];
		if ((const char *)(list + buffers->ring_pages) >
		    (const char *)buffers->info +
			(size_t)sysconf(_SC_PAGESIZE) * buffers->info_pages)
			return vp_error_new("Xen's list of trace buffers ends beyond its pages");
		for (size_t page = 0; page < buffers->ring_pages; page++)
			frames[page] = list[page];
		struct ring ring = {.head = xen->call.memory_map(
					xen->memory, VP_XEN_DOMID_XEN, PROT_READ | PROT_WRITE,
					buffers->ring_pages, frames, NULL)};
		if (!ring.head)
			return vp_error_errno(errno, "cannot map the trace buffer of pCPU %zu", i);
		ring.size =
		    buffers->ring_pages * (size_t)sysconf(_SC_PAGESIZE) - sizeof(struct head);
		vp_vec_push(&buffers->rings, ring);
	}
	return NULL;
}

static struct vp_error *map_info(struct vp_xen_buffers *buffers, unsigned long frame,
				 unsigned long bytes)
{
	const struct vp_xen *xen = buffers->xen;
	uint64_t frames[INFO_PAGES];

	buffers->info_pages =
	    (bytes + (size_t)sysconf(_SC_PAGESIZE) - 1) / (size_t)sysconf(_SC_PAGESIZE);
	if (!buffers->info_pages || buffers->info_pages > INFO_PAGES)
		return vp_error_new(
		    "Xen's list of trace buffers has %lu bytes, which is unexpected", bytes);
	for (size_t i = 0; i < buffers->info_pages; i++)
		frames[i] = frame + i;
	buffers->info = xen->call.memory_map(xen->memory, VP_XEN_DOMID_XEN, PROT_READ,
					     buffers->info_pages, frames, NULL);
	if (!buffers->info)
		return vp_error_errno(errno, "cannot map Xen's list of trace buffers");
	buffers->ring_pages = buffers->info[0];
	return buffers->ring_pages ? map_rings(buffers)
				   : vp_error_new("Xen's trace buffers have no pages");
}

/* Whether another reader consumes records now. */
static bool others_read(const struct vp_xen_buffers *buffers)
{
	VP_VEC(uint32_t) before = {0};
	bool found = false;

	vp_vec_each (&buffers->rings, ring)
		vp_vec_push(&before, atomic_load(&ring->head->consumed));
	vp_sleep_ns(POLL_NS);
	for (size_t i = 0; i < buffers->rings.count; i++)
		found |= atomic_load(&buffers->rings.at[i].head->consumed) != before.at[i];
	vp_vec_deinit(&before);
	return found;
}

/* Whether another reader has consumed records. */
static bool were_read(const struct vp_xen_buffers *buffers)
{
	vp_vec_each (&buffers->rings, ring)
		if (atomic_load(&ring->head->consumed))
			return true;
	return false;
}

/* Skips records from before the start. */
static void skip_old(struct vp_xen_buffers *buffers)
{
	vp_vec_each (&buffers->rings, ring) {
		ring->consumed = atomic_load(&ring->head->produced);
		atomic_store(&ring->head->consumed, ring->consumed);
	}
}

static struct vp_error *open_buffers(struct vp_xen_buffers *buffers)
{
	const struct vp_xen *xen = buffers->xen;
	unsigned long frame = 0, bytes = 0;

	/* The event mask is set only if there is no other reader. */
	if (xen->call.tbuf_enable(xen->control, PAGES, &frame, &bytes))
		return vp_error_errno(errno, "Xen's trace buffers cannot be enabled");
	VP_TRY(map_info(buffers, frame, bytes));
	if (were_read(buffers) && others_read(buffers))
		return vp_error_new("Xen's trace buffers are in use: end the program that reads "
				    "them, such as xentrace");
	buffers->tracing = true;
	/* Tracing stays off until everything else is ready. */
	if (xen->call.tbuf_set_evt_mask(xen->control, 0))
		return vp_error_errno(errno, "Xen rejects the event mask");
	return NULL;
}

struct vp_error *vp_xen_buffers_start(struct vp_xen_buffers *buffers, uint32_t mask)
{
	const struct vp_xen *xen = buffers->xen;

	skip_old(buffers);
	note_clocks(buffers);
	buffers->started = buffers->readings[buffers->n_readings - 1].tsc;
	if (xen->call.tbuf_set_evt_mask(xen->control, mask))
		return vp_error_errno(errno, "Xen rejects the event mask");
	return NULL;
}

struct vp_error *vp_xen_buffers_open(struct vp_xen *xen, struct vp_xen_buffers **ret)
{
	struct vp_xen_buffers *buffers = vp_alloc(sizeof(*buffers));

	buffers->xen = xen;
	struct vp_error *error = open_buffers(buffers);
	if (error)
		vp_xen_buffers_close(buffers);
	else
		*ret = buffers;
	return error;
}

void vp_xen_buffers_stop(struct vp_xen_buffers *buffers)
{
	const struct vp_xen *xen = buffers->xen;

	if (!buffers->tracing)
		return;
	buffers->tracing = false;
	xen->call.tbuf_disable(xen->control);
	/* Restores the default mask: the next reader may not set one. */
	xen->call.tbuf_set_evt_mask(xen->control, VP_XEN_TRACE_ALL);
}

void vp_xen_buffers_close(struct vp_xen_buffers *buffers)
{
	const struct vp_xen *xen = buffers->xen;

	vp_xen_buffers_stop(buffers);
	vp_vec_each (&buffers->rings, ring)
		xen->call.memory_unmap(xen->memory, ring->head, buffers->ring_pages);
	if (buffers->info)
		xen->call.memory_unmap(xen->memory, (void *)buffers->info, buffers->info_pages);
	vp_vec_deinit(&buffers->rings);
	vp_vec_deinit(&buffers->bytes);
	vp_vec_deinit(&buffers->pending);
	vp_vec_deinit(&buffers->later);
	vp_xen_order_deinit(&buffers->order);
	free(buffers);
}

/* Queues the records in these bytes until their time. */
static void take_bytes(struct vp_xen_buffers *buffers, struct ring *ring, size_t size)
{
	struct vp_cursor cursor = vp_cursor_of(buffers->bytes.at, size);

	for (;;) {
		struct vp_xen_traced *traced = vp_vec_push_slot(&buffers->pending);
		if (!vp_xen_record_read(&cursor, &traced->record))
			break;
		/* Some records have no time. */
		if (traced->record.tsc)
			ring->last_tsc = traced->record.tsc;
		traced->time = ring->last_tsc;
		traced->pcpu = (uint32_t)(ring - buffers->rings.at);
		if (traced->record.event == VP_XEN_LOST && traced->record.since >= buffers->started)
			buffers->lost += traced->record.count;
	}
	buffers->pending.count--;
	buffers->lost += !vp_cursor_ok(&cursor);
}

/* Number of unread bytes in the ring. */
static size_t unread(struct vp_xen_buffers *buffers, struct ring *ring, uint32_t produced)
{
	uint32_t consumed = atomic_load(&ring->head->consumed);
	size_t twice = 2 * ring->size;

	if (consumed != ring->consumed) { /* another reader */
		buffers->lost++;
		ring->consumed = consumed;
	}
	if (consumed >= twice || produced >= twice)
		return 0;
	size_t size = (produced + twice - consumed) % twice;
	return size <= ring->size ? size : 0; /* invalid */
}

static void buffers_empty(struct vp_xen_buffers *buffers, struct ring *ring)
{
	uint32_t produced = atomic_load_explicit(&ring->head->produced, memory_order_acquire);
	const char *records = (const char *)(ring->head + 1);
	size_t size = unread(buffers, ring, produced);

	if (!size)
		return;
	buffers->losing |= size + FULL_BYTES > ring->size;
	size_t begin = ring->consumed % ring->size;
	size_t first = size < ring->size - begin ? size : ring->size - begin;
	if (buffers->bytes.room < size) {
		buffers->bytes.at = vp_realloc_array(buffers->bytes.at, ring->size, 1);
		buffers->bytes.room = ring->size;
	}
	memcpy(buffers->bytes.at, records + begin, first);
	memcpy(buffers->bytes.at + first, records, size - first);
	ring->consumed = produced;
	atomic_store_explicit(&ring->head->consumed, produced, memory_order_release);
	take_bytes(buffers, ring, size);
}

/* Keeps records from the n-th on pending, in order. */
static void keep_later(struct vp_xen_buffers *buffers, size_t n)
{
	buffers->later.count = 0;
	for (size_t i = n; i < buffers->pending.count; i++)
		vp_vec_push(&buffers->later, buffers->pending.at[buffers->order.indices.at[i]]);
	buffers->pending.count -= n;
	if (buffers->later.count)
		memcpy(buffers->pending.at, buffers->later.at,
		       buffers->later.count * sizeof(*buffers->later.at));
}

uint64_t vp_xen_buffers_drain(struct vp_xen_buffers *buffers,
			      void (*take)(void *context, const struct vp_xen_traced *traced),
			      void *context)
{
	const uint64_t lost = buffers->lost;
	size_t done = 0, reading = 1;

	buffers->losing = false;
	note_clocks(buffers);
	const struct vp_clock_reading *now = &buffers->readings[buffers->n_readings - 1];
	vp_vec_each (&buffers->rings, ring)
		buffers_empty(buffers, ring);
	buffers->losing |= buffers->lost > lost;
	vp_xen_order_find(&buffers->order, buffers->pending.at, buffers->pending.count);
	uint64_t known = buffers->tracing ? now->monotonic - LATE_NS : now->monotonic;
	for (; done < buffers->pending.count; done++) {
		struct vp_xen_traced *traced =
		    &buffers->pending.at[buffers->order.indices.at[done]];
		uint64_t time = buffers_time_of(buffers, traced->time, &reading);
		if (time > known && buffers->tracing)
			break;
		traced->time = time;
		take(context, traced);
	}
	keep_later(buffers, done);
	return known;
}

bool vp_xen_buffers_is_losing(const struct vp_xen_buffers *buffers)
{
	return buffers->losing;
}

uint64_t vp_xen_buffers_lost(const struct vp_xen_buffers *buffers)
{
	return buffers->lost;
}
