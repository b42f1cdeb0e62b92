/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/sampler.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "sampler.skel.h"

/* A ring's size is a power of two in 32 bits, the kernel adds its own to it. */
enum { MOST_RING_BYTES = 1 << 30 };

/* What the ring of a pCPU calls back with. */
struct ring {
	struct vp_sampler *sampler;
	int pcpu, fd;
	char comm[sizeof(((struct vp_raw_record *)0)->comm)]; /* of the last sample */
};

/* Either `buffer` or `rings`, by `seen_by`. */
struct vp_sampler {
	struct sampler_bpf *programs;
	enum vp_seen_by seen_by;
	struct perf_buffer *buffer;
	struct ring_buffer *rings;
	VP_VEC(struct ring *) ring_contexts;
	int ring_events; /* epoll: a ring is half full */
	struct bpf_link *switch_link, *rename_link;
	vp_raw_taker take;
	void *context;
	uint64_t *lost_values; /* one per possible pCPU: what a per-CPU map look-up fills */
	int n_possible;
};

/* What the kernel writes for bpf_perf_event_output() with PERF_SAMPLE_IP | PERF_SAMPLE_RAW. */
struct output_event {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t raw_size;
	char raw[];
} __attribute__((packed));

enum vp_vendor vp_sampler_vendor(void)
{
	if (!access("/sys/module/kvm_amd", F_OK))
		return VP_VENDOR_AMD;
	if (!access("/sys/module/kvm_intel", F_OK))
		return VP_VENDOR_INTEL;
	return VP_VENDOR_UNKNOWN;
}

static enum bpf_perf_event_ret take_event(void *context, int pcpu, struct perf_event_header *header)
{
	struct vp_sampler *sampler = context;
	const struct output_event *event = (const void *)header;
	struct vp_raw_record record;

	/* PERF_RECORD_LOST says what the program's own counter says already. */
	if (header->type != PERF_RECORD_SAMPLE || event->raw_size < sizeof(record))
		return LIBBPF_PERF_EVENT_CONT;
	memcpy(&record, event->raw, sizeof(record));
	sampler->take(sampler->context, pcpu, header->misc & PERF_RECORD_MISC_CPUMODE_MASK,
		      event->ip, &record);
	return LIBBPF_PERF_EVENT_CONT;
}

static int take_from_ring(void *context, void *data, size_t size)
{
	struct ring *ring = context;
	struct vp_raw_record record;
	uint32_t mode;

	if (size < sizeof(record))
		return 0;
	memcpy(&record, data, sizeof(record));
	if (record.flags & VP_RAW_NAMELESS)
		memcpy(record.comm, ring->comm, sizeof(record.comm));
	else if (record.kind == VP_RAW_SAMPLE)
		memcpy(ring->comm, record.comm, sizeof(record.comm));
	if (record.flags & VP_RAW_GUEST)
		mode = VP_MODE_GUEST_KERNEL;
	else
		mode = record.flags & VP_RAW_USER ? VP_MODE_USER : VP_MODE_KERNEL;
	ring->sampler->take(ring->sampler->context, ring->pcpu, mode,
			    record.flags & VP_RAW_GUEST ? record.guest_ip : record.host_ip,
			    &record);
	return 0;
}

static int add_ring(struct vp_sampler *sampler, int pcpu, size_t bytes)
{
	uint32_t key = (uint32_t)pcpu;
	struct ring *ring = vp_alloc(sizeof(*ring));
	/* Edges: what lies in the ring before it is half full must not wake. */
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	*ring = (struct ring){.sampler = sampler, .pcpu = pcpu, .fd = -1};
	vp_vec_push(&sampler->ring_contexts, ring);
	if (bytes > MOST_RING_BYTES)
		return -E2BIG;
	ring->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, (uint32_t)bytes, NULL);
	if (ring->fd < 0)
		return -errno;
	if (bpf_map_update_elem(bpf_map__fd(sampler->programs->maps.rings), &key, &ring->fd, 0) ||
	    epoll_ctl(sampler->ring_events, EPOLL_CTL_ADD, ring->fd, &event))
		return -errno;
	if (sampler->rings)
		return ring_buffer__add(sampler->rings, ring->fd, take_from_ring, ring);
	sampler->rings = ring_buffer__new(ring->fd, take_from_ring, ring, NULL);
	return sampler->rings ? 0 : -errno;
}

static struct vp_error *open_rings(struct vp_sampler *sampler, const struct vp_trigger *trigger,
				   size_t pages)
{
	sampler->ring_events = epoll_create1(EPOLL_CLOEXEC);
	int result = sampler->ring_events < 0 ? -errno : 0;

	for (size_t i = 0; !result && i < trigger->pcpus.count; i++)
		result = add_ring(sampler, trigger->pcpus.at[i], pages * (size_t)getpagesize());
	if (result)
		return vp_error_errno(-result, "cannot set up the per-CPU rings of %zu pages",
				      pages);
	return NULL;
}

static struct vp_error *open_buffer(struct vp_sampler *sampler, size_t pages)
{
	struct perf_event_attr attr = {
	    .size = sizeof(attr),
	    .type = PERF_TYPE_SOFTWARE,
	    .config = PERF_COUNT_SW_BPF_OUTPUT,
	    .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_RAW,
	    .sample_period = 1,
	    .watermark = 1,
	    .wakeup_watermark = (uint32_t)(pages * (size_t)getpagesize() / 2),
	};

	sampler->buffer = perf_buffer__new_raw(bpf_map__fd(sampler->programs->maps.records), pages,
					       &attr, take_event, sampler, NULL);
	if (!sampler->buffer)
		return vp_error_errno(errno, "cannot set up the per-CPU buffers of %zu pages",
				      pages);
	return NULL;
}

static struct vp_error *attach(struct vp_sampler *sampler, const struct vp_trigger *trigger)
{
	int program = bpf_program__fd(sampler->programs->progs.take_sample);

	sampler->switch_link = bpf_program__attach(sampler->programs->progs.note_vcpu_switch);
	if (!sampler->switch_link)
		return vp_error_errno(errno, "cannot attach to tracepoint sched_switch");
	sampler->rename_link = bpf_program__attach(sampler->programs->progs.note_rename);
	if (!sampler->rename_link)
		return vp_error_errno(errno, "cannot attach to tracepoint task_rename");
	/* Not by a link of libbpf's: that would start the event at once. */
	vp_vec_each (&trigger->fds, fd)
		if (ioctl(*fd, PERF_EVENT_IOC_SET_BPF, program))
			return vp_error_errno(errno,
					      "cannot attach the sampling program to event '%s'",
					      trigger->name);
	return NULL;
}

/* libbpf's own chatter is the user's business only when something fails; keep the last line. */
static int keep_quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	if (getenv("VPERF_DEBUG"))
		return vfprintf(stderr, format, args);
	return 0;
}

static bool kvm_says_whom_it_interrupts(void)
{
	struct btf *kernel = btf__load_vmlinux_btf();
	struct btf *kvm = kernel ? btf__load_module_btf("kvm", kernel) : NULL;
	struct btf *described = kvm ? kvm : kernel;
	int id =
	    described ? btf__find_by_name_kind(described, "kvm_vcpu_arch", BTF_KIND_STRUCT) : 0;
	const struct btf_type *type = id > 0 ? btf__type_by_id(described, (uint32_t)id) : NULL;
	bool found = false;

	for (int i = 0; type && i < btf_vlen(type); i++) {
		const char *name = btf__name_by_offset(described, btf_members(type)[i].name_off);
		found |= name && !strcmp(name, "handling_intr_from_guest");
	}
	btf__free(kvm);
	btf__free(kernel);
	return found;
}

/* Perf's timers are interrupts, its hardware counters interrupt by NMI. */
static enum vp_seen_by seen_by(const struct vp_trigger *trigger)
{
	if (vp_sampler_vendor() != VP_VENDOR_AMD || !kvm_says_whom_it_interrupts())
		return VP_SEEN_BY_PERF;
	return trigger->by_time ? VP_SEEN_BY_IRQ : VP_SEEN_BY_NMI;
}

static struct vp_error *load(struct vp_sampler *sampler, size_t pages)
{
	libbpf_set_print(keep_quiet);
	sampler->programs = sampler_bpf__open();
	if (!sampler->programs)
		return vp_error_errno(errno, "cannot open the sampling programs");
	sampler->programs->rodata->vendor = vp_sampler_vendor();
	sampler->programs->rodata->seen_by = sampler->seen_by;
	sampler->programs->rodata->wakeup_bytes = pages * (size_t)getpagesize() / 2;
	if (bpf_map__set_max_entries(sampler->programs->maps.rings, (uint32_t)sampler->n_possible))
		return vp_error_errno(errno, "cannot make room for the per-CPU rings");
	int result = sampler_bpf__load(sampler->programs);
	if (result == -EPERM || result == -EACCES)
		return vp_error_new("cannot load programs into the kernel: root (or CAP_BPF and "
				    "CAP_PERFMON) is needed");
	if (result)
		return vp_error_errno(-result, "cannot load the sampling programs into this kernel "
					       "('vperf check' says what is missing)");
	return NULL;
}

struct vp_error *vp_sampler_start(const struct vp_trigger *trigger, size_t buffer_pages,
				  vp_raw_taker take, void *context, struct vp_sampler **ret)
{
	struct vp_sampler *sampler = vp_alloc(sizeof(*sampler));

	sampler->take = take;
	sampler->context = context;
	sampler->n_possible = libbpf_num_possible_cpus();
	sampler->lost_values = vp_alloc((size_t)sampler->n_possible * sizeof(uint64_t));
	sampler->ring_events = -1;
	sampler->seen_by = seen_by(trigger);
	struct vp_error *error = load(sampler, buffer_pages);
	if (!error && sampler->seen_by == VP_SEEN_BY_PERF)
		error = open_buffer(sampler, buffer_pages);
	else if (!error)
		error = open_rings(sampler, trigger, buffer_pages);
	if (!error)
		error = attach(sampler, trigger);
	if (error)
		vp_sampler_free(sampler);
	else
		*ret = sampler;
	return error;
}

static struct vp_error *read_error(int result)
{
	if (result >= 0 || result == -EINTR)
		return NULL;
	return vp_error_errno(-result, "cannot read the per-CPU buffers");
}

struct vp_error *vp_sampler_wait(struct vp_sampler *sampler, int timeout_ms)
{
	struct epoll_event events[1];
	int fd = sampler->buffer ? perf_buffer__epoll_fd(sampler->buffer) : sampler->ring_events;
	int result = epoll_wait(fd, events, 1, timeout_ms);

	return read_error(result < 0 ? -errno : 0);
}

struct vp_error *vp_sampler_drain(struct vp_sampler *sampler)
{
	return read_error(sampler->buffer ? perf_buffer__consume(sampler->buffer)
					  : ring_buffer__consume(sampler->rings));
}

void vp_sampler_read_lost(struct vp_sampler *sampler)
{
	uint32_t zero = 0;

	bpf_map_lookup_elem(bpf_map__fd(sampler->programs->maps.lost), &zero, sampler->lost_values);
}

uint64_t vp_sampler_lost(const struct vp_sampler *sampler, int pcpu)
{
	return pcpu < sampler->n_possible ? sampler->lost_values[pcpu] : 0;
}

void vp_sampler_free(struct vp_sampler *sampler)
{
	if (!sampler)
		return;
	bpf_link__destroy(sampler->switch_link);
	bpf_link__destroy(sampler->rename_link);
	perf_buffer__free(sampler->buffer);
	ring_buffer__free(sampler->rings);
	vp_vec_each (&sampler->ring_contexts, ring) {
		if ((*ring)->fd >= 0)
			close((*ring)->fd);
		free(*ring);
	}
	vp_vec_deinit(&sampler->ring_contexts);
	if (sampler->ring_events >= 0)
		close(sampler->ring_events);
	sampler_bpf__destroy(sampler->programs);
	free(sampler->lost_values);
	free(sampler);
}
