/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/trace_rings.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "bpf/trace_abi.h"
#include "collect/programs/plain_stores.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "trace.skel.h"

/* The reader is woken when a fourth of a ring is full. The side buffer is small. */
enum { PARTS = 4, ASIDE_BYTES = 64 << 10 };

struct vp_trace_source {
	uint32_t pcpu;
	struct vp_trace_cpu *cpu;
	struct vp_trace_page *pages; /* NULL: not mapped */
	uint32_t n_pages;
	uint64_t head;         /* at the start of this drain */
	size_t waited;         /* bytes of `late` from earlier drains */
	struct vp_buffer late; /* records of the side buffer that were not passed on yet */
};

static size_t whole_pages(size_t bytes)
{
	size_t page = (size_t)getpagesize();

	return (bytes + page - 1) / page * page;
}

static size_t cpus_size(const struct vp_trace_rings *rings)
{
	return whole_pages(rings->n_cpus * sizeof(*rings->cpus));
}

static size_t ring_size(const struct vp_trace_rings *rings)
{
	return whole_pages(rings->n_pages * sizeof(struct vp_trace_page));
}

static int make_pages(uint32_t n_pages)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "vperf_trace", sizeof(uint32_t),
			      sizeof(struct vp_trace_page), n_pages, &options);
}

int vp_trace_rings_plan(struct vp_trace_rings *rings, struct trace_bpf *programs, size_t bytes)
{
	struct bpf_map *sized[] = {programs->maps.cpus, programs->maps.rings,
				   programs->maps.asides};
	int result = 0;

	*rings = (struct vp_trace_rings){.programs = programs,
					 .n_cpus = (uint32_t)libbpf_num_possible_cpus(),
					 .n_pages = (uint32_t)(bytes / VP_TRACE_PAGE)};
	if (!rings->n_pages)
		rings->n_pages = 1;
	rings->pattern = make_pages(rings->n_pages);
	if (rings->pattern < 0)
		return -errno;
	programs->rodata->ring_pages = rings->n_pages;
	programs->rodata->ring_part = rings->n_pages < PARTS ? 1 : rings->n_pages / PARTS;
	for (size_t i = 0; !result && i < VP_ARRAY_SIZE(sized); i++)
		result = bpf_map__set_max_entries(sized[i], rings->n_cpus);
	return result ? result : bpf_map__set_inner_map_fd(programs->maps.rings, rings->pattern);
}

static void drop_pattern(struct vp_trace_rings *rings)
{
	if (rings->pattern > 0)
		close(rings->pattern);
	rings->pattern = -1;
}

struct vp_error *vp_trace_rings_map(struct vp_trace_rings *rings)
{
	void *cpus = mmap(NULL, cpus_size(rings), PROT_READ | PROT_WRITE, MAP_SHARED,
			  bpf_map__fd(rings->programs->maps.cpus), 0);

	if (cpus == MAP_FAILED)
		return vp_error_errno(errno, "cannot map the trace programs' per-CPU state");
	drop_pattern(rings);
	rings->cpus = cpus;
	for (uint32_t pcpu = 0; pcpu < rings->n_cpus; pcpu++)
		rings->cpus[pcpu].number = pcpu;
	return NULL;
}

static int keep_late(void *context, void *record, size_t size)
{
	struct vp_trace_source *source = context;

	vp_buffer_append(&source->late, record, size);
	return 0;
}

static struct vp_error *pass(const struct bpf_map *map, uint32_t pcpu, int value)
{
	return bpf_map_update_elem(bpf_map__fd(map), &pcpu, &value, BPF_ANY)
		   ? vp_error_errno(errno, "cannot pass the ring buffers to the trace programs")
		   : NULL;
}

static struct vp_error *use_aside(struct vp_trace_rings *rings, struct vp_trace_source *source,
				  int map)
{
	if (!rings->asides)
		rings->asides = ring_buffer__new(map, keep_late, source, NULL);
	else if (ring_buffer__add(rings->asides, map, keep_late, source))
		return vp_error_errno(errno, "cannot map a ring buffer");
	return rings->asides ? pass(rings->programs->maps.asides, source->pcpu, map)
			     : vp_error_errno(errno, "cannot map a ring buffer");
}

static struct vp_error *use_pages(struct vp_trace_rings *rings, struct vp_trace_source *source,
				  int map)
{
	void *pages =
	    mmap(NULL, ring_size(rings), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, map, 0);

	if (pages == MAP_FAILED)
		return vp_error_errno(errno, "cannot map a ring buffer");
	source->pages = pages;
	return pass(rings->programs->maps.rings, source->pcpu, map);
}

/* The descriptors are not needed once the programs have the maps. */
static struct vp_error *add_aside(struct vp_trace_rings *rings, struct vp_trace_source *source)
{
	int map = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "vperf_aside", 0, 0, ASIDE_BYTES, NULL);

	if (map < 0)
		return vp_error_errno(errno, "cannot create a ring buffer of %d bytes",
				      ASIDE_BYTES);
	struct vp_error *error = use_aside(rings, source, map);
	close(map);
	return error;
}

static struct vp_error *add_pages(struct vp_trace_rings *rings, struct vp_trace_source *source)
{
	int map = make_pages(rings->n_pages);

	if (map < 0)
		return vp_error_errno(errno, "cannot create a ring buffer of %zu bytes",
				      ring_size(rings));
	struct vp_error *error = use_pages(rings, source, map);
	close(map);
	return error;
}

struct vp_error *vp_trace_rings_add(struct vp_trace_rings *rings, uint32_t pcpu)
{
	struct vp_trace_source *source = vp_alloc(sizeof(*source));

	*source = (struct vp_trace_source){
	    .pcpu = pcpu, .cpu = &rings->cpus[pcpu], .n_pages = rings->n_pages};
	vp_vec_push(&rings->sources, source);
	VP_TRY(add_aside(rings, source));
	return add_pages(rings, source);
}

bool vp_trace_rings_has(const struct vp_trace_rings *rings, uint32_t pcpu)
{
	vp_vec_each (&rings->sources, source)
		if ((*source)->pcpu == pcpu)
			return true;
	return false;
}

/* State of a drain: its callback, and late records that were not passed on yet. */
struct draining {
	struct vp_trace_source *source;
	vp_records_fn take;
	void *context;
	size_t done; /* bytes of late records passed on */
};

static void trace_rings_emit(const struct draining *draining, char *records, size_t size)
{
	if (size)
		draining->take(draining->context, draining->source->pcpu, records, size);
}

static const struct vp_record_header *next_late(const struct draining *draining)
{
	const struct vp_buffer *late = &draining->source->late;

	return draining->done < late->size ? (const void *)(late->bytes + draining->done) : NULL;
}

static void emit_late(struct draining *draining)
{
	size_t size = vp_record_length(next_late(draining));

	trace_rings_emit(draining, draining->source->late.bytes + draining->done, size);
	draining->done += size;
}

/* Emits a run of a page, with late records inserted by time, up to the run's last. */
static void emit_run(struct draining *draining, char *records, size_t size)
{
	const struct vp_record_header *late = next_late(draining);
	size_t begun = 0;

	for (size_t at = 0; late && at < size;) {
		const struct vp_record_header *header = (const void *)(records + at);
		if (late->time < header->time) {
			trace_rings_emit(draining, records + begun, at - begun);
			begun = at;
			emit_late(draining);
			late = next_late(draining);
		} else {
			at += vp_record_length(header);
		}
	}
	trace_rings_emit(draining, records + begun, size - begun);
}

static void trace_rings_drain_pages(struct draining *draining)
{
	struct vp_trace_source *source = draining->source;
	uint64_t head = source->head;

	for (uint64_t at = source->cpu->tail; at < head;) {
		uint64_t number = at / VP_TRACE_PAGE, next = (number + 1) * VP_TRACE_PAGE;
		struct vp_trace_page *page = &source->pages[number % source->n_pages];
		size_t begin = at % VP_TRACE_PAGE;
		size_t end = head >= next ? page->end : head % VP_TRACE_PAGE;
		emit_run(draining, page->records + begin, end - begin);
		at = head >= next ? next : head;
		__atomic_store_n(&source->cpu->tail, at, __ATOMIC_RELEASE);
	}
}

/* Late records that were collected in earlier drains, or all, are emitted at the end if no later
 * record has arrived. */
static void drain_source(struct vp_trace_source *source, size_t waited, vp_records_fn take,
			 void *context)
{
	struct draining draining = {.source = source, .take = take, .context = context};

	trace_rings_drain_pages(&draining);
	while (next_late(&draining) && draining.done < waited)
		emit_late(&draining);
	source->late.size -= draining.done;
	if (draining.done)
		memmove(source->late.bytes, source->late.bytes + draining.done, source->late.size);
}

/* Late records precede the records after them in the pages: heads are read first. */
void vp_trace_rings_drain(struct vp_trace_rings *rings, bool all, vp_records_fn take, void *context)
{
	bool has_new = false;

	vp_vec_each (&rings->sources, source) {
		(*source)->waited = (*source)->late.size;
		(*source)->head = __atomic_load_n(&(*source)->cpu->head, __ATOMIC_ACQUIRE);
		has_new |= (*source)->head != (*source)->cpu->tail;
	}
	if (rings->plain_stores && has_new)
		vp_plain_stores_wait();
	if (rings->asides)
		ring_buffer__consume(rings->asides);
	vp_vec_each (&rings->sources, source)
		if ((*source)->pages)
			drain_source(*source, all ? SIZE_MAX : (*source)->waited, take, context);
}

uint64_t vp_trace_rings_lost(const struct vp_trace_rings *rings, uint32_t pcpu)
{
	return pcpu < rings->n_cpus ? __atomic_load_n(&rings->cpus[pcpu].lost, __ATOMIC_RELAXED)
				    : 0;
}

void vp_trace_rings_deinit(struct vp_trace_rings *rings)
{
	drop_pattern(rings);
	ring_buffer__free(rings->asides);
	vp_vec_each (&rings->sources, source) {
		if ((*source)->pages)
			munmap((*source)->pages, ring_size(rings));
		vp_buffer_deinit(&(*source)->late);
		free(*source);
	}
	vp_vec_deinit(&rings->sources);
	if (rings->cpus)
		munmap(rings->cpus, cpus_size(rings));
	*rings = (struct vp_trace_rings){0};
}
