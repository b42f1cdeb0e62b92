/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/tracer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "base/pcpus.h"
#include "base/vec.h"
#include "bpf/trace_abi.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_state.h"
#include "collect/programs/load.h"
#include "collect/programs/plain_stores.h"
#include "collect/programs/trace_rings.h"
#include "host/host.h"
#include "host/kernel_btf.h"
#include "host/source.h"
#include "schema/records.h"
#include "trace.skel.h"

struct vp_tracer {
	struct vp_tracer_options options;
	struct trace_bpf *programs;
	vp_links links;
	struct vp_trace_rings rings; /* one per pCPU that is or was online */
	bool plain_stores;           /* in place of atomic exchanges, which this kernel lacks */
	bool lacks_ring;             /* a pCPU without a ring came online */
	bool ended;
	struct ring_buffer *doorbell;
	struct vp_identity identity;
	char *missing;
};

static const struct vp_optional_program optional[] = {
    {"kvm_entry", "VM entries are not recorded"},
    {"kvm_exit", "VM exits are not recorded"},
    {"kvm_inj_virq", "injected interrupts are not recorded"},
    {"local_timer_entry", "timer interrupts are not recorded"},
    {"local_timer_exit", "ends of timer interrupts are not recorded"},
};

static int tracer_size_maps(struct vp_tracer *tracer)
{
	const struct trace_bpf *programs = tracer->programs;

	vp_trace_rings_deinit(&tracer->rings);
	int result =
	    vp_trace_rings_plan(&tracer->rings, tracer->programs, tracer->options.ring_bytes);
	if (result || tracer->options.sets & VP_TRACE_SET_guest)
		return result;
	result = vp_identity_shrink(programs->obj);
	return result ? result : bpf_map__set_max_entries(programs->maps.guest_runs, 1);
}

/* Opens the programs without atomic exchanges. NULL: see errno. */
static struct trace_bpf *open_with_plain_stores(const struct bpf_object_open_opts *options)
{
	struct trace_bpf *programs = vp_alloc(sizeof(*programs));
	int result = trace_bpf__create_skeleton(programs);
	void *elf = NULL;

	if (!result) {
		size_t size = programs->skeleton->data_sz;
		elf = memcpy(vp_alloc(size), programs->skeleton->data, size);
		vp_plain_stores_replace(elf, size);
		programs->skeleton->data = elf;
		result = bpf_object__open_skeleton(programs->skeleton, options);
	}
	free(elf);
	if (!result)
		return programs;
	trace_bpf__destroy(programs);
	errno = -result;
	return NULL;
}

static struct vp_error *open_programs(void *context, const struct bpf_object_open_opts *options,
				      struct bpf_object_skeleton **ret)
{
	struct vp_tracer *tracer = context;
	struct bpf_program *program;

	tracer->programs =
	    tracer->plain_stores ? open_with_plain_stores(options) : trace_bpf__open_opts(options);
	if (!tracer->programs)
		return vp_error_errno(errno, "cannot open the trace programs");
	*ret = tracer->programs->skeleton;
	tracer->programs->rodata->vendor = vp_host_vendor();
	tracer->programs->rodata->sees_guests = (tracer->options.sets & VP_TRACE_SET_guest) != 0;
	bpf_object__for_each_program (program, tracer->programs->obj) {
		unsigned set = vp_trace_set_of(bpf_program__name(program));
		bpf_program__set_autoload(program, set & tracer->options.sets);
	}
	int result = tracer_size_maps(tracer);
	return result ? vp_host_load_error(result, "trace") : NULL;
}

static void tracer_set_svm_data(void *context, bool is_known)
{
	const struct vp_tracer *tracer = context;

	tracer->programs->rodata->has_svm_data = is_known;
}

static void tracer_close(void *context)
{
	struct vp_tracer *tracer = context;

	trace_bpf__destroy(tracer->programs);
	tracer->programs = NULL;
}

static struct vp_error *tracer_load(struct vp_tracer *tracer)
{
	struct vp_programs_load load = {.name = "trace",
					.kernel = tracer->options.kernel,
					.exit_event = tracer->options.exit_event,
					.context = tracer,
					.open = open_programs,
					.set_svm_data = tracer_set_svm_data,
					.close = tracer_close};

	load.elf = trace_bpf__elf_bytes(&load.elf_size);
	tracer->plain_stores = vp_host_vendor() == VP_VENDOR_ARM && vp_plain_stores_needed();
	if (tracer->plain_stores)
		VP_TRY(vp_plain_stores_check());
	VP_TRY(vp_programs_load(&load));
	vp_identity_init(&tracer->identity, tracer->programs->obj);
	return NULL;
}

/* Doorbell messages only wake the reader; 0 is from a pCPU without a ring. */
static int tracer_on_doorbell(void *context, void *data, size_t size)
{
	struct vp_tracer *tracer = context;
	uint64_t word = 1;

	memcpy(&word, data, size < sizeof(word) ? size : sizeof(word));
	tracer->lacks_ring |= !word;
	return 0;
}

/* Adds rings for pCPUs that came online. A failure is final: their events are lost. */
static void add_rings(struct vp_tracer *tracer)
{
	tracer->lacks_ring = false;
	for (uint32_t pcpu = 0; pcpu < tracer->rings.n_cpus; pcpu++)
		if (vp_tracer_lost(tracer, pcpu) && !vp_trace_rings_has(&tracer->rings, pcpu))
			vp_error_free(vp_trace_rings_add(&tracer->rings, pcpu));
}

static struct vp_error *tracer_open_rings(struct vp_tracer *tracer)
{
	const struct trace_bpf *programs = tracer->programs;
	struct vp_pcpus pcpus = {0};

	tracer->rings.plain_stores = tracer->plain_stores;
	VP_TRY(vp_trace_rings_map(&tracer->rings));
	struct vp_error *error = vp_pcpus_online(&pcpus);
	for (size_t i = 0; !error && i < pcpus.count; i++)
		error = vp_trace_rings_add(&tracer->rings, (uint32_t)pcpus.at[i]);
	vp_vec_deinit(&pcpus);
	VP_TRY(error);
	tracer->doorbell = ring_buffer__new(bpf_map__fd(programs->maps.doorbell),
					    tracer_on_doorbell, tracer, NULL);
	if (!tracer->doorbell)
		return vp_error_errno(errno, "cannot open the wake-up event of the ring buffers");
	return NULL;
}

static struct vp_error *tracer_attach(struct vp_tracer *tracer)
{
	const struct vp_programs_attach attach = {.optional = optional,
						  .n_optional = VP_ARRAY_SIZE(optional)};

	return vp_programs_attach(tracer->programs->obj, &attach, &tracer->links, &tracer->missing);
}

static struct vp_error *tracer_open_all(struct vp_tracer *tracer)
{
	VP_TRY(tracer_load(tracer));
	VP_TRY(tracer_open_rings(tracer));
	return tracer_attach(tracer);
}

struct vp_error *vp_tracer_open(const struct vp_tracer_options *options, struct vp_tracer **ret)
{
	struct vp_tracer *tracer = vp_alloc(sizeof(*tracer));

	tracer->options = *options;
	struct vp_error *error = tracer_open_all(tracer);
	if (error)
		vp_tracer_free(tracer);
	else
		*ret = tracer;
	return error;
}

void vp_tracer_free(struct vp_tracer *tracer)
{
	if (!tracer)
		return;
	vp_links_deinit(&tracer->links);
	ring_buffer__free(tracer->doorbell);
	vp_trace_rings_deinit(&tracer->rings);
	trace_bpf__destroy(tracer->programs);
	vp_identity_deinit(&tracer->identity);
	free(tracer->missing);
	free(tracer);
}

void vp_tracer_begin(struct vp_tracer *tracer)
{
	tracer->programs->bss->enabled = 1;
}

void vp_tracer_end(struct vp_tracer *tracer)
{
	tracer->programs->bss->enabled = 0;
	tracer->ended = true;
}

int vp_tracer_fd(const struct vp_tracer *tracer)
{
	return ring_buffer__epoll_fd(tracer->doorbell);
}

struct vp_error *vp_tracer_drain(struct vp_tracer *tracer)
{
	int rung = ring_buffer__consume(tracer->doorbell);
	if (tracer->lacks_ring)
		add_rings(tracer);
	vp_trace_rings_drain(&tracer->rings, tracer->ended, tracer->options.take,
			     tracer->options.context);
	return rung >= 0 || rung == -EINTR
		   ? NULL
		   : vp_error_errno(-rung, "cannot read the ring buffers of the trace programs");
}

static uint64_t gpa_of_switches(const struct vp_guest_finding *finding, uint32_t vcpu)
{
	vp_vec_each (&finding->counts, index)
		if (index->vcpu == vcpu && index->count == VP_GUEST_switches)
			return index->gpa;
	return 0;
}

bool vp_tracer_can_see(const struct vp_guest_finding *finding)
{
	vp_vec_each (&finding->cpus, cpu)
		if (!cpu->chosen_gpa || !gpa_of_switches(finding, cpu->vcpu))
			return false;
	return finding->cpus.count != 0;
}

/* Before the programs know the vCPU: resets the state of the index's previous user. */
static struct vp_error *tracer_put_run(struct vp_tracer *tracer, const struct vp_guest_state *state,
				       const struct vp_guest_finding *finding,
				       const struct vp_guest_current_address *cpu)
{
	const struct vp_guest_run run = {
	    .count_hva = vp_guest_state_hva(state, gpa_of_switches(finding, cpu->vcpu)),
	    .chosen_hva = vp_guest_state_hva(state, cpu->chosen_gpa)};
	uint32_t index;

	VP_TRY(vp_identity_index(&tracer->identity, state->pid, cpu->vcpu, &index));
	return bpf_map_update_elem(bpf_map__fd(tracer->programs->maps.guest_runs), &index, &run,
				   BPF_ANY)
		   ? vp_error_errno(errno, "no table entry left for vCPU %u", cpu->vcpu)
		   : NULL;
}

struct vp_error *vp_tracer_identify(struct vp_tracer *tracer, uint32_t number,
				    const struct vp_guest_state *state,
				    const struct vp_guest_finding *finding)
{
	vp_vec_each (&finding->cpus, cpu)
		VP_TRY(tracer_put_run(tracer, state, finding, cpu));
	return vp_identity_set(&tracer->identity, number, state, finding);
}

static void make_blind(struct vp_tracer *tracer, uint32_t index)
{
	int map = bpf_map__fd(tracer->programs->maps.guest_runs);
	struct vp_guest_run run;

	if (bpf_map_lookup_elem(map, &index, &run))
		return;
	run.count_hva = run.chosen_hva = 0;
	bpf_map_update_elem(map, &index, &run, BPF_ANY);
}

/* At the vCPUs' next exits the programs record the guest thread as unknown. */
void vp_tracer_forget(struct vp_tracer *tracer, uint32_t pid)
{
	uint64_t key, *before = NULL;
	uint32_t index;

	if (kill((pid_t)pid, 0) && errno == ESRCH) {
		vp_identity_forget(&tracer->identity, pid);
		return;
	}
	while (!bpf_map_get_next_key(tracer->identity.indices, before, &key)) {
		if (key >> 32 == pid &&
		    !bpf_map_lookup_elem(tracer->identity.indices, &key, &index))
			make_blind(tracer, index);
		before = &key;
	}
}

struct vp_identity *vp_tracer_identity(struct vp_tracer *tracer)
{
	return &tracer->identity;
}

uint64_t vp_tracer_lost(const struct vp_tracer *tracer, uint32_t pcpu)
{
	return vp_trace_rings_lost(&tracer->rings, pcpu);
}

uint64_t vp_tracer_missed(const struct vp_tracer *tracer)
{
	struct bpf_program *program;
	uint64_t sum = 0;

	bpf_object__for_each_program (program, tracer->programs->obj) {
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);
		int fd = bpf_program__fd(program);
		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size))
			sum += info.recursion_misses;
	}
	return sum;
}

const char *vp_tracer_missing(const struct vp_tracer *tracer)
{
	return tracer->missing;
}

static void tracer_take_nothing(void *context, uint32_t pcpu, char *records, size_t size)
{
}

static bool tracer_probe_trace(char *detail, size_t size)
{
	const struct vp_tracer_options options = {.sets = VP_TRACE_SETS_ALL,
						  .ring_bytes = (size_t)getpagesize(),
						  .take = tracer_take_nothing};
	struct vp_tracer *tracer = NULL;
	struct vp_error *error = vp_tracer_open(&options, &tracer);
	bool found =
	    vp_probe_report_opened(error, tracer ? vp_tracer_missing(tracer) : NULL, detail, size);

	vp_tracer_free(tracer);
	return found;
}

const struct vp_source *vp_source_trace(void)
{
	static const struct vp_probe probe = {
	    "trace programs", "'vperf record --trace' does not work", false, tracer_probe_trace};
	static const struct vp_source source = {&probe, 1};

	return &source;
}
