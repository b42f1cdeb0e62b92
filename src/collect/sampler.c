/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/sampler_private.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/alloc.h"

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

static void take_from_slot(struct vp_sampler *sampler, int pcpu, struct vp_raw_record *record)
{
	struct comm *last = &sampler->rings.comms[pcpu];
	bool guest = record->flags & VP_RAW_GUEST;
	uint32_t mode = record->flags & VP_RAW_USER ? VP_MODE_USER : VP_MODE_KERNEL;

	if (record->flags & VP_RAW_NAMELESS)
		memcpy(record->comm, last->text, sizeof(record->comm));
	else if (record->kind == VP_RAW_SAMPLE)
		memcpy(last->text, record->comm, sizeof(record->comm));
	sampler->take(sampler->context, pcpu, guest ? VP_MODE_GUEST_KERNEL : mode,
		      guest ? record->guest_ip : record->host_ip, record);
}

static void drain_ring(struct vp_sampler *sampler, int pcpu)
{
	struct rings *rings = &sampler->rings;
	struct vp_ring *ring = &rings->states[pcpu];
	struct vp_raw_record *slots = rings->slots + (size_t)pcpu * rings->size;
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	for (uint64_t at = ring->tail; at != head; at++)
		take_from_slot(sampler, pcpu, &slots[at & (rings->size - 1)]);
	__atomic_store_n(&ring->tail, head, __ATOMIC_RELEASE);
}

/* The reader asks all rings anyhow: what comes through the doorbell only wakes it. */
static int hear_doorbell(void *context, void *data, size_t size)
{
	return 0;
}

/* Slots for buffers of about so many pages; the arrays together hold at most 2^31 of them. */
static size_t ring_size_of(size_t pages)
{
	size_t wanted = pages * (size_t)getpagesize() / sizeof(struct vp_raw_record), size = 64;

	while (2 * size <= wanted && size < (1U << 30))
		size *= 2;
	return size;
}

/* Sizes the maps before they are made. */
static int plan_rings(struct vp_sampler *sampler, const struct vp_trigger *trigger, size_t pages)
{
	struct rings *rings = &sampler->rings;

	rings->size = ring_size_of(pages);
	vp_vec_each (&trigger->pcpus, pcpu) {
		vp_vec_push(&rings->pcpus, *pcpu);
		if ((size_t)*pcpu >= rings->count)
			rings->count = (size_t)*pcpu + 1;
	}
	if (rings->count * rings->size > INT32_MAX)
		return -E2BIG;
	rings->comms = vp_alloc(rings->count * sizeof(*rings->comms));
	sampler->programs->rodata->ring_size = rings->size;
	int result =
	    bpf_map__set_max_entries(sampler->programs->maps.rings, (uint32_t)rings->count);
	if (!result)
		result = bpf_map__set_max_entries(sampler->programs->maps.slots,
						  (uint32_t)(rings->count * rings->size));
	return result;
}

static size_t mapped_size(size_t bytes)
{
	size_t page = (size_t)getpagesize();

	return (bytes + page - 1) / page * page;
}

static size_t states_size(const struct rings *rings)
{
	return mapped_size(rings->count * sizeof(*rings->states));
}

static size_t slots_size(const struct rings *rings)
{
	return mapped_size(rings->count * rings->size * sizeof(*rings->slots));
}

static void *map_of(const struct bpf_map *map, size_t size)
{
	void *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			   bpf_map__fd(map), 0);

	return place == MAP_FAILED ? NULL : place;
}

static struct vp_error *open_rings(struct vp_sampler *sampler, size_t pages)
{
	struct rings *rings = &sampler->rings;
	const struct sampler_bpf *programs = sampler->programs;

	rings->states = map_of(programs->maps.rings, states_size(rings));
	rings->slots = map_of(programs->maps.slots, slots_size(rings));
	if (rings->states && rings->slots)
		rings->doorbell = ring_buffer__new(bpf_map__fd(programs->maps.doorbell),
						   hear_doorbell, NULL, NULL);
	if (!rings->doorbell)
		return vp_error_errno(errno, "cannot set up the per-CPU rings of %zu pages", pages);
	return NULL;
}

static void close_rings(struct rings *rings)
{
	if (rings->states)
		munmap(rings->states, states_size(rings));
	if (rings->slots)
		munmap(rings->slots, slots_size(rings));
	ring_buffer__free(rings->doorbell);
	vp_vec_deinit(&rings->pcpus);
	free(rings->comms);
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

/* libbpf's own chatter is for who debugs vperf. */
static int keep_quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	if (getenv("VPERF_DEBUG"))
		return vfprintf(stderr, format, args);
	return 0;
}

void vp_sampler_quiet(void)
{
	libbpf_set_print(keep_quiet);
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

/* Perf's timers are interrupts; its hardware counters may interrupt by NMI, in a ring's middle. */
static enum vp_seen_by seen_by(const struct vp_trigger *trigger)
{
	bool by_irq = trigger->by_time && vp_sampler_vendor() == VP_VENDOR_AMD &&
		      kvm_says_whom_it_interrupts();

	return by_irq ? VP_SEEN_BY_IRQ : VP_SEEN_BY_PERF;
}

static struct vp_error *load(struct vp_sampler *sampler, const struct vp_trigger *trigger,
			     size_t pages)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return vp_error_errno(errno,
				      "cannot read '/sys/kernel/btf/vmlinux': the sampling "
				      "programs need a kernel with BTF (CONFIG_DEBUG_INFO_BTF)");
	vp_sampler_quiet();
	sampler->programs = sampler_bpf__open();
	if (!sampler->programs)
		return vp_error_errno(errno, "cannot open the sampling programs");
	sampler->programs->rodata->vendor = vp_sampler_vendor();
	sampler->programs->rodata->seen_by = sampler->seen_by;
	int result = sampler->seen_by == VP_SEEN_BY_IRQ ? plan_rings(sampler, trigger, pages) : 0;
	if (result)
		return vp_error_errno(-result,
				      "cannot make room for the per-CPU rings of %zu pages", pages);
	result = sampler_bpf__load(sampler->programs);
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
	sampler->seen_by = seen_by(trigger);
	struct vp_error *error = load(sampler, trigger, buffer_pages);
	if (!error && sampler->seen_by == VP_SEEN_BY_PERF)
		error = open_buffer(sampler, buffer_pages);
	else if (!error)
		error = open_rings(sampler, buffer_pages);
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
	int fd = sampler->buffer ? perf_buffer__epoll_fd(sampler->buffer)
				 : ring_buffer__epoll_fd(sampler->rings.doorbell);
	int result = epoll_wait(fd, events, 1, timeout_ms);

	return read_error(result < 0 ? -errno : 0);
}

struct vp_error *vp_sampler_drain(struct vp_sampler *sampler)
{
	if (sampler->buffer)
		return read_error(perf_buffer__consume(sampler->buffer));
	vp_vec_each (&sampler->rings.pcpus, pcpu)
		drain_ring(sampler, *pcpu);
	return read_error(ring_buffer__consume(sampler->rings.doorbell));
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
	close_rings(&sampler->rings);
	sampler_bpf__destroy(sampler->programs);
	free(sampler->lost_values);
	free(sampler);
}
