/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/sampler.h"
#include "base/vec.h"
#include "bpf/sampler_abi.h"
#include "collect/programs/sampler_private.h"
#include "host/kernel_btf.h"
#include "schema/schema.h"
#include "schema/user_stack.h"
#include "schema/weighting.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/pcpus.h"
#include "collect/programs/convert.h"
#include "collect/programs/load.h"
#include "collect/programs/plain_stores.h"
#include "collect/programs/stack_sizes.h"
#include "host/host.h"
#include "host/kernel_function.h"
#include "host/source.h"

/* Layout of records of bpf_perf_event_output() with PERF_SAMPLE_IP | PERF_SAMPLE_RAW. */
struct output_event {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t raw_size;
	char raw[];
} __attribute__((packed));

/* Writes the thread, if it differs from the pCPU's previous one. */
static void make_task(struct sample_batch *batch, const struct vp_raw_record *raw)
{
	union vp_any_record record;

	if (batch->tid == raw->tid && !memcmp(batch->comm, raw->comm, sizeof(batch->comm)))
		return;
	batch->tid = raw->tid;
	memcpy(batch->comm, raw->comm, sizeof(batch->comm));
	vp_convert_task(raw, &record);
	vp_buffer_append(&batch->records, &record, sizeof(record.task));
}

/* For a guest sample the host stack is useless: it always ends in KVM. Stacks of a lost sample have
 * another time and are dropped. */
static void sampler_put_chains(struct sample_batch *batch, bool hit_guest, uint64_t time)
{
	for (size_t at = 0; at < batch->chains.size;) {
		const struct vp_chain_frames *record = (const void *)(batch->chains.bytes + at);
		size_t size = vp_record_length((const void *)record);
		if (!size || size > batch->chains.size - at)
			break;
		if (record->time == time && (!hit_guest || record->id != VP_ID_chain_frames ||
					     vp_mode_is_guest(record->mode)))
			vp_buffer_append(&batch->records, record, size);
		at += size;
	}
	batch->chains.size = 0;
}

/* The method replaces the program counter if the sample hit an interpreter. */
static void put_method(const struct vp_sampler *sampler, const struct vp_raw_record *raw,
		       union vp_any_record *record)
{
	struct vp_guest_sample *sample = &record->guest_sample;

	if (!raw->method || record->header.id != VP_ID_guest_sample ||
	    sample->mode != VP_MODE_GUEST_USER ||
	    !vp_identity_interprets(&sampler->identity, raw->pid, raw->guest_pid, sample->ip))
		return;
	sample->ip = raw->method;
	sample->flags |= VP_AT_METHOD;
}

static void make_records(const struct vp_sampler *sampler, struct sample_batch *batch,
			 uint32_t mode, uint64_t ip, const struct vp_raw_record *raw)
{
	uint32_t vendor = sampler->vendor;
	union vp_any_record record;

	if (raw->kind == VP_RAW_SAMPLE) {
		bool hit_guest =
		    !sampler->hits_no_guests && vp_convert_hit_guest(raw, mode, vendor);
		if (vp_mode_is_guest(mode) && !hit_guest) {
			mode = sampler->hits_no_guests ? vp_convert_mode(raw) : VP_MODE_KERNEL;
			ip = raw->host_ip;
		}
		make_task(batch, raw);
		/* The program sends the name once, also with a sample that hit the host. */
		if (raw->flags & VP_RAW_NEW_TASK) {
			vp_convert_guest_task(raw, &record);
			vp_buffer_append(&batch->records, &record, sizeof(record.guest_task));
		}
		if (sampler->trigger->weighting == VP_WEIGHTING_EVENTS &&
		    raw->events != sampler->trigger->events) {
			vp_convert_period(raw, raw->events, &record);
			vp_buffer_append(&batch->records, &record, sizeof(record.sample_period));
		}
		if (sampler->trigger->weighting == VP_WEIGHTING_TIME) {
			uint64_t ns = vp_busy_before(&batch->busy, raw->time, raw->events,
						     sampler->trigger->period_ns);
			vp_convert_period(raw, ns, &record);
			if (ns)
				vp_buffer_append(&batch->records, &record,
						 sizeof(record.sample_period));
		}
		sampler_put_chains(batch, hit_guest, raw->time);
		vp_convert_sample(raw, mode, ip, vendor, &record);
		put_method(sampler, raw, &record);
	} else {
		vp_convert_switch(raw, vendor, &record);
	}
	vp_buffer_append(&batch->records, &record, vp_record_size(record.header.id));
}

static void take_chains(struct sample_batch *batch, const struct output_event *event)
{
	struct vp_raw_chain raw;

	memcpy(&raw, event->raw, sizeof(raw));
	batch->chains.size = 0;
	if (raw.kind == VP_RAW_CHAIN && raw.used <= event->raw_size - sizeof(raw))
		vp_buffer_append(&batch->chains, event->raw + sizeof(raw), raw.used);
}

static enum bpf_perf_event_ret sampler_take_event(void *context, int pcpu,
						  struct perf_event_header *header)
{
	struct vp_sampler *sampler = context;
	const struct output_event *event = (const void *)header;
	struct vp_raw_record raw = {0};

	/* PERF_RECORD_LOST duplicates the program's own counter. */
	if (header->type != PERF_RECORD_SAMPLE || event->raw_size < sizeof(struct vp_raw_chain))
		return LIBBPF_PERF_EVENT_CONT;
	memcpy(&raw, event->raw, event->raw_size < sizeof(raw) ? event->raw_size : sizeof(raw));
	while (sampler->batches.count <= (size_t)pcpu)
		vp_vec_push(&sampler->batches, ((struct sample_batch){.tid = UINT32_MAX}));
	struct sample_batch *batch = &sampler->batches.at[pcpu];
	if (raw.kind == VP_RAW_CHAIN)
		take_chains(batch, event);
	else if (event->raw_size >= sizeof(raw))
		make_records(sampler, batch, header->misc & PERF_RECORD_MISC_CPUMODE_MASK,
			     event->ip, &raw);
	return LIBBPF_PERF_EVENT_CONT;
}

static int sampler_drain_buffer(struct vp_sampler *sampler)
{
	int result = perf_buffer__consume(sampler->buffer);

	vp_vec_each (&sampler->batches, batch) {
		if (batch->records.size)
			sampler->take(sampler->context, (uint32_t)(batch - sampler->batches.at),
				      batch->records.bytes, batch->records.size);
		batch->records.size = 0;
	}
	return result;
}

/* The reader checks all rings anyway: doorbell messages only wake it. */
static int sampler_on_doorbell(void *context, void *data, size_t size)
{
	return 0;
}

/* Sets the sizes of rings before they are created, including pCPUs that may come online. */
static struct vp_error *plan_rings(struct vp_sampler *sampler, size_t pages)
{
	bool used = sampler->seen_by != VP_SEEN_BY_PERF;
	struct bpf_map *map = sampler->programs->maps.rings;
	uint32_t count;

	VP_TRY(vp_pcpus_present(&count));
	VP_TRY(vp_rings_plan(&sampler->rings, count, used ? pages * (size_t)getpagesize() : 0,
			     sampler->with_chains));
	if (used)
		sampler->programs->rodata->ring_size = sampler->rings.size;
	int result = bpf_map__set_max_entries(map, count);
	if (!result)
		result = bpf_map__set_value_size(map, (uint32_t)sampler->rings.stride);
	if (result)
		return vp_error_errno(-result, "cannot allocate per-CPU ring buffers of %zu pages",
				      pages);
	return NULL;
}

static struct vp_error *sampler_open_rings(struct vp_sampler *sampler)
{
	VP_TRY(vp_rings_map(&sampler->rings, bpf_map__fd(sampler->programs->maps.rings)));
	if (sampler->seen_by == VP_SEEN_BY_PERF)
		return NULL;
	sampler->doorbell = ring_buffer__new(bpf_map__fd(sampler->programs->maps.doorbell),
					     sampler_on_doorbell, NULL, NULL);
	if (!sampler->doorbell)
		return vp_error_errno(errno, "cannot open the wake-up event of the ring buffers");
	return NULL;
}

/* Opens it for the online pCPUs. */
static struct vp_error *open_buffer(struct vp_sampler *sampler)
{
	size_t pages = sampler->buffer_pages;
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
					       &attr, sampler_take_event, sampler, NULL);
	if (!sampler->buffer)
		return vp_error_errno(errno, "cannot set up the per-CPU buffers of %zu pages",
				      pages);
	return NULL;
}

static struct bpf_program *sampling_program(const struct vp_sampler *sampler)
{
	struct sampler_bpf *programs = sampler->programs;

	if (sampler->seen_by == VP_SEEN_BY_PERF)
		return sampler->with_chains ? programs->progs.chains_by_perf
					    : programs->progs.take_sample_by_perf;
	return sampler->with_chains ? programs->progs.chains_into_ring
				    : programs->progs.take_sample;
}

static struct bpf_program *switch_program(const struct vp_sampler *sampler)
{
	return sampler->seen_by == VP_SEEN_BY_PERF
		   ? sampler->programs->progs.note_vcpu_switch_by_perf
		   : sampler->programs->progs.note_vcpu_switch;
}

/* Loads only the programs that are used. */
static void choose_programs(const struct vp_sampler *sampler)
{
	struct bpf_program *all[] = {sampler->programs->progs.take_sample,
				     sampler->programs->progs.take_sample_by_perf,
				     sampler->programs->progs.chains_into_ring,
				     sampler->programs->progs.chains_by_perf,
				     sampler->programs->progs.note_vcpu_switch,
				     sampler->programs->progs.note_vcpu_switch_by_perf};

	for (size_t i = 0; i < VP_ARRAY_SIZE(all); i++)
		bpf_program__set_autoload(all[i], all[i] == sampling_program(sampler) ||
						      all[i] == switch_program(sampler));
}

/* Not by a libbpf link, which would enable the event at once. */
static struct vp_error *attach_to(const struct vp_sampler *sampler, int event)
{
	return ioctl(event, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(sampling_program(sampler)))
		   ? vp_error_errno(errno, "cannot attach the sampling program to event '%s'",
				    sampler->trigger->name)
		   : NULL;
}

static struct vp_error *sampler_attach(struct vp_sampler *sampler)
{
	sampler->switch_link = bpf_program__attach(switch_program(sampler));
	if (!sampler->switch_link)
		return vp_error_errno(errno, "cannot attach to tracepoint sched_switch");
	sampler->rename_link = bpf_program__attach(sampler->programs->progs.note_rename);
	if (!sampler->rename_link)
		return vp_error_errno(errno, "cannot attach to tracepoint task_rename");
	vp_vec_each (&sampler->trigger->fds, fd)
		VP_TRY(attach_to(sampler, *fd));
	return NULL;
}

/* Whether the counters belong to the processor's cores, which interrupt by NMI. */
static bool counts_in_core(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ||
	       attr->type == PERF_TYPE_RAW;
}

/* Whether counters on 64-bit Arm interrupt by NMI: an option of the kernel's command line. */
static bool has_pseudo_nmi(void)
{
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read("/proc/cmdline", 65536, &text);
	bool found = error || strstr(vp_buffer_text(&text), "irqchip.gicv3_pseudo_nmi=1");

	vp_error_free(error);
	vp_buffer_deinit(&text);
	return found;
}

/*
 * Arm: perf attributes all interrupts while a vCPU is loaded to the guest. KVM receives those that
 * ended the guest's run at one place, is_after_guest(), in the function whose addresses are *run.
 * Pseudo-NMIs are not received there.
 */
static bool has_place(const struct vp_sampler_options *options, struct vp_kernel_function *run)
{
	return !options->hits_no_guests && (options->trigger->by_time || !has_pseudo_nmi()) &&
	       vp_kernel_function_find("/proc/kallsyms", "kvm_arch_vcpu_ioctl_run", run);
}

/* Since v5.17, which has this function, only those are received there. Earlier KVM receives all at
 * the place that follows the run: samples are still perf's, without those at other places. In v5.17
 * itself, BPF lacks the atomic exchange that the ring of samples needs: they are perf's. */
static enum vp_seen_by seen_by_place(const struct vp_sampler_options *options,
				     struct vp_kernel_function *run)
{
	struct vp_kernel_function enter;

	if (!has_place(options, run) ||
	    !vp_kernel_function_find("/proc/kallsyms", "kvm_arm_vcpu_enter_exit", &enter))
		return VP_SEEN_BY_PERF;
	if (!vp_plain_stores_needed() &&
	    libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_get_current_task_btf,
				    NULL) == 1)
		return VP_SEEN_BY_IRQ;
	*run = (struct vp_kernel_function){0};
	return VP_SEEN_BY_PERF;
}

/* Perf's timers are interrupts. On Intel, samples from NMIs use perf; the other method is not
 * tested there. */
static enum vp_seen_by seen_by(const struct vp_sampler_options *options,
			       struct vp_kernel_function *run)
{
	const struct vp_trigger *trigger = options->trigger;
	enum vp_vendor vendor = vp_host_vendor();

	if (vendor == VP_VENDOR_ARM)
		return seen_by_place(options, run);
	if (!vp_kernel_btf_has_member(options->kernel, "kvm", "kvm_vcpu_arch",
				      "handling_intr_from_guest"))
		return VP_SEEN_BY_PERF;
	if (vendor == VP_VENDOR_AMD && counts_in_core(trigger->attr) && !options->hits_no_guests)
		return VP_SEEN_BY_NMI;
	return trigger->by_time && (vendor == VP_VENDOR_AMD ||
				    (vendor == VP_VENDOR_INTEL && options->exit_event))
		   ? VP_SEEN_BY_IRQ
		   : VP_SEEN_BY_PERF;
}

static struct vp_error *open_programs(void *context, const struct bpf_object_open_opts *options,
				      struct bpf_object_skeleton **ret)
{
	struct vp_sampler *sampler = context;

	sampler->programs = sampler_bpf__open_opts(options);
	if (!sampler->programs)
		return vp_error_errno(errno, "cannot open the sampling programs");
	*ret = sampler->programs->skeleton;
	sampler->programs->rodata->vendor = sampler->vendor;
	sampler->programs->rodata->nested_paging = vp_host_has_nested_paging();
	sampler->programs->rodata->seen_by = sampler->seen_by;
	sampler->programs->rodata->run_begin = sampler->run.begin;
	sampler->programs->rodata->run_end = sampler->run.end;
	sampler->programs->rodata->by_memory = sampler->by_memory;
	sampler->programs->rodata->copies_user_stacks = !sampler->by_frame_pointers;
	sampler->programs->rodata->by_count =
	    !sampler->trigger->by_time && sampler->trigger->frequency;
	sampler->programs->rodata->weighting = sampler->trigger->weighting;
	sampler->programs->rodata->usual_events = sampler->trigger->events;
	sampler->programs->rodata->usual_ns = sampler->trigger->period_ns;
	choose_programs(sampler);
	return plan_rings(sampler, sampler->buffer_pages);
}

static void sampler_set_svm_data(void *context, bool is_known)
{
	struct vp_sampler *sampler = context;

	sampler->programs->rodata->has_svm_data = is_known;
}

static void sampler_close(void *context)
{
	struct vp_sampler *sampler = context;

	sampler_bpf__destroy(sampler->programs);
	sampler->programs = NULL;
}

static struct vp_error *sampler_load(struct vp_sampler *sampler,
				     const struct vp_sampler_options *options)
{
	struct vp_programs_load load = {.name = "sampling",
					.kernel = options->kernel,
					.exit_event = options->exit_event,
					.context = sampler,
					.open = open_programs,
					.set_svm_data = sampler_set_svm_data,
					.close = sampler_close};

	load.elf = sampler_bpf__elf_bytes(&load.elf_size);
	VP_TRY(vp_programs_load(&load));
	vp_identity_init(&sampler->identity, sampler->programs->obj);
	return NULL;
}

struct vp_identity *vp_sampler_identity(struct vp_sampler *sampler)
{
	return &sampler->identity;
}

struct vp_error *vp_sampler_start(const struct vp_sampler_options *options, struct vp_sampler **ret)
{
	struct vp_sampler *sampler = vp_alloc(sizeof(*sampler));

	sampler->trigger = options->trigger;
	sampler->hits_no_guests = options->hits_no_guests;
	sampler->buffer_pages = options->buffer_pages;
	sampler->take = options->take;
	sampler->context = options->context;
	sampler->with_chains = options->with_chains;
	sampler->by_frame_pointers = options->by_frame_pointers;
	sampler->by_memory = options->by_memory;
	sampler->vendor = vp_host_vendor();
	sampler->seen_by = seen_by(options, &sampler->run);
	struct vp_error *error = sampler_load(sampler, options);
	if (!error)
		error = sampler_open_rings(sampler);
	if (!error && sampler->seen_by == VP_SEEN_BY_PERF)
		error = open_buffer(sampler);
	if (!error)
		error = sampler_attach(sampler);
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

int vp_sampler_fd(const struct vp_sampler *sampler)
{
	if (sampler->seen_by != VP_SEEN_BY_PERF)
		return ring_buffer__epoll_fd(sampler->doorbell);
	return sampler->buffer ? perf_buffer__epoll_fd(sampler->buffer) : -1;
}

struct vp_error *vp_sampler_drain(struct vp_sampler *sampler)
{
	if (sampler->seen_by == VP_SEEN_BY_PERF)
		return sampler->buffer ? read_error(sampler_drain_buffer(sampler)) : NULL;
	return read_error(
	    vp_rings_drain_all(&sampler->rings, sampler->doorbell, sampler->trigger->pcpus.at,
			       sampler->trigger->pcpus.count, sampler->take, sampler->context));
}

/* If a pCPU goes offline, its perf buffer ends permanently, and libbpf cannot add one. The programs
 * count the records lost meanwhile. */
static struct vp_error *open_buffer_again(struct vp_sampler *sampler)
{
	vp_vec_each (&sampler->trigger->pcpus, pcpu)
		bpf_map_delete_elem(bpf_map__fd(sampler->programs->maps.records), pcpu);
	VP_TRY(read_error(sampler_drain_buffer(sampler)));
	perf_buffer__free(sampler->buffer);
	sampler->buffer = NULL;
	return open_buffer(sampler);
}

struct vp_error *vp_sampler_add(struct vp_sampler *sampler, size_t index)
{
	if (sampler->seen_by == VP_SEEN_BY_PERF)
		VP_TRY(open_buffer_again(sampler));
	return attach_to(sampler, sampler->trigger->fds.at[index]);
}

uint64_t vp_sampler_lost(const struct vp_sampler *sampler, uint32_t pcpu)
{
	return vp_rings_lost(&sampler->rings, pcpu);
}

void vp_sampler_note_stack(struct vp_sampler *sampler, uint64_t as_root, uint32_t needed)
{
	vp_stack_sizes_take(&sampler->stack_sizes, sampler->programs->bss->stack_sizes, as_root,
			    needed);
}

void vp_sampler_free(struct vp_sampler *sampler)
{
	if (!sampler)
		return;
	bpf_link__destroy(sampler->switch_link);
	bpf_link__destroy(sampler->rename_link);
	perf_buffer__free(sampler->buffer);
	ring_buffer__free(sampler->doorbell);
	vp_rings_unmap(&sampler->rings);
	sampler_bpf__destroy(sampler->programs);
	vp_vec_each (&sampler->batches, batch) {
		vp_buffer_deinit(&batch->records);
		vp_buffer_deinit(&batch->chains);
	}
	vp_vec_deinit(&sampler->batches);
	vp_identity_deinit(&sampler->identity);
	free(sampler);
}

/* The limitation of this mode; NULL: none. */
static const char *limit_of(const struct vp_sampler *sampler)
{
	if (sampler->with_chains && sampler->vendor == VP_VENDOR_INTEL)
		return "loaded and attached; of guest kernels only the innermost function, since "
		       "RSP is in the VMCS";
	return !sampler->with_chains && sampler->seen_by == VP_SEEN_BY_PERF
		   ? "loaded and attached; samples go through perf's buffers, which costs more"
		   : NULL;
}

static bool probe_sampler(bool with_chains, char *detail, size_t size)
{
	struct vp_trigger_options options = {.event = "cpu-clock", .frequency = 1000};
	struct vp_trigger trigger = {0};
	struct vp_exit_event *exit_event = vp_exit_event_open();
	struct vp_sampler_options sampling = {.trigger = &trigger,
					      .buffer_pages = 8,
					      .with_chains = with_chains,
					      .exit_event = exit_event};
	struct vp_sampler *sampler = NULL;
	struct vp_error *error = vp_trigger_open(&options, &trigger);

	if (!error)
		error = vp_sampler_start(&sampling, &sampler);
	const char *missing = sampler ? limit_of(sampler) : NULL;
	vp_sampler_free(sampler);
	vp_trigger_close(&trigger);
	vp_exit_event_close(exit_event);
	return vp_probe_report_opened(error, missing, detail, size);
}

static bool probe_samples(char *detail, size_t size)
{
	return probe_sampler(false, detail, size);
}

static bool probe_chains(char *detail, size_t size)
{
	return probe_sampler(true, detail, size);
}

const struct vp_source *vp_source_sampler(void)
{
	static const struct vp_probe probes[] = {
	    {"sampling programs", "nothing can be recorded", true, probe_samples},
	    {"call chains", "'record -g' does not work", false, probe_chains},
	};
	static const struct vp_source source = {probes, VP_ARRAY_SIZE(probes)};

	return &source;
}
