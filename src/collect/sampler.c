/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/sampler.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "sampler.skel.h"

struct vp_sampler {
	struct sampler_bpf *programs;
	struct perf_buffer *buffer;
	struct bpf_link *switch_link;
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

static struct vp_error *load(struct vp_sampler *sampler)
{
	libbpf_set_print(keep_quiet);
	sampler->programs = sampler_bpf__open();
	if (!sampler->programs)
		return vp_error_errno(errno, "cannot open the sampling programs");
	sampler->programs->rodata->vendor = vp_sampler_vendor();
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
	struct vp_error *error = load(sampler);
	if (!error)
		error = open_buffer(sampler, buffer_pages);
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
	int result = epoll_wait(perf_buffer__epoll_fd(sampler->buffer), events, 1, timeout_ms);

	return read_error(result < 0 ? -errno : 0);
}

struct vp_error *vp_sampler_drain(struct vp_sampler *sampler)
{
	return read_error(perf_buffer__consume(sampler->buffer));
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
	perf_buffer__free(sampler->buffer);
	sampler_bpf__destroy(sampler->programs);
	free(sampler->lost_values);
	free(sampler);
}
