/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/intervals_source.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/vec.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_state.h"
#include "collect/programs/counter_sets.h"
#include "collect/programs/guest_counters.h"
#include "collect/programs/load.h"
#include "collect/programs/multiplex.h"
#include "host/host.h"
#include "host/kernel_btf.h"
#include "host/source.h"
#include "intervals.skel.h"
#include "schema/interval.h"
#include "schema/records.h"

enum { MAX_SUBJECTS = 4096, TRIES = 1000 };

/* A pCPU's ring, with the context of libbpf's callback. */
struct source {
	struct vp_intervals *intervals;
	uint32_t pcpu;
	int map;
	int requests; /* ring with requests for sets; -1: no multiplexing */
	struct vp_buffer copy;
};

struct thread {
	uint32_t pid, tid, vcpu;
};

struct vp_intervals {
	struct vp_intervals_options options;
	struct intervals_bpf *programs;
	struct vp_counters counters;
	struct vp_pcpus pcpus;
	vp_links links;
	VP_VEC(int) triggers;
	VP_VEC(struct source *) sources; /* one per pCPU of `pcpus` */
	struct ring_buffer *rings;
	struct vp_multiplex *multiplex; /* NULL: sets are not multiplexed */
	VP_VEC(struct thread) watched;
	uint64_t begun; /* ns; 0: not started */
	char *missing;
};

#define COUNT(name) (1ULL << (name))
#define ALL_EXITS                                                                                  \
	(COUNT(VP_COUNT_exits) | COUNT(VP_COUNT_time_exits) |                                      \
	 (COUNT(VP_COUNTS) - COUNT(VP_COUNT_BY_CLASS)))
_Static_assert(VP_COUNTS < 64, "the counts of intervals are bits of a word");

/* Programs that only some recipes need, or that only some kernels can attach. */
static const struct vp_optional_program optional[] = {
    {"note_mmio", "MMIO accesses are counted as page faults"},
    {"note_inj_virq", "inject:interrupt is not counted"},
    {"note_inj_exception", "inject:exception and inject:page-fault are not counted"},
    {"note_exit", "VM exits are not counted"},
    {"note_entry", "VM entries are not counted"},
};

/* Counts that need each of them, as bits of enum vp_interval_count. */
static const uint64_t counts_of[] = {
    COUNT(VP_COUNT_BY_CLASS + VP_EXITS_mmio) | COUNT(VP_COUNT_TIME_BY_CLASS + VP_EXITS_mmio),
    COUNT(VP_COUNT_inject_interrupt),
    COUNT(VP_COUNT_inject_exception) | COUNT(VP_COUNT_inject_page_fault),
    ALL_EXITS | COUNT(VP_COUNT_time_guest),
    ALL_EXITS | COUNT(VP_COUNT_time_guest) | COUNT(VP_COUNT_entries),
};
_Static_assert(VP_ARRAY_SIZE(counts_of) == VP_ARRAY_SIZE(optional), "one for each program");

static bool wants_kvm(const struct vp_recipe *recipe)
{
	return recipe->per != VP_PER_TASK && !recipe->native;
}

/* Whether the accounting's programs report exits and entries. */
static bool joins_account(const struct vp_intervals_options *options)
{
	return options->exit_programs.exit && wants_kvm(options->recipe);
}

static bool wants_program(const struct vp_intervals_options *options, const char *name)
{
	bool kvm = false, joins = joins_account(options);

	for (size_t i = 0; i < VP_ARRAY_SIZE(optional); i++)
		kvm |= !strcmp(name, optional[i].name);
	if (!strcmp(name, "exit_of_account") || !strcmp(name, "entry_of_account"))
		return joins;
	if (joins && (!strcmp(name, "note_exit") || !strcmp(name, "note_entry")))
		return false;
	return kvm ? wants_kvm(options->recipe)
		   : strcmp(name, "note_fork") || options->recipe->per == VP_PER_TASK;
}

/* Its programs replace functions of the accounting's programs. */
static int join_account(struct vp_intervals *intervals)
{
	const struct vp_exit_programs *account = &intervals->options.exit_programs;
	struct intervals_bpf *programs = intervals->programs;

	if (!joins_account(&intervals->options))
		return 0;
	int result = bpf_program__set_attach_target(programs->progs.exit_of_account, account->exit,
						    "exit_hook");
	return result ? result
		      : bpf_program__set_attach_target(programs->progs.entry_of_account,
						       account->entry, "entry_hook");
}

static uint32_t guest_events(const struct vp_recipe *recipe)
{
	uint32_t bits = 0;

	vp_vec_each (&recipe->events, event)
		if (event->event.source == VP_FROM_GUEST)
			bits |= 1U << event->event.index;
	return bits;
}

/* Without multiplexing an interval has one part. */
static uint64_t part_width(const struct vp_intervals *intervals)
{
	const struct vp_recipe *recipe = intervals->options.recipe;

	return intervals->counters.multiplexed ? recipe->width / recipe->sub_intervals
					       : recipe->width;
}

/* All parts are equal: the remainder is dropped. */
static uint64_t whole_width(const struct vp_intervals *intervals)
{
	const struct vp_recipe *recipe = intervals->options.recipe;

	return part_width(intervals) *
	       (intervals->counters.multiplexed ? recipe->sub_intervals : 1);
}

static void set_parts(const struct vp_intervals *intervals, struct intervals_bpf__rodata *plan)
{
	const struct vp_recipe *recipe = intervals->options.recipe;

	plan->part_width = part_width(intervals);
	plan->width = whole_width(intervals);
	if (!intervals->counters.multiplexed)
		return;
	plan->parts = recipe->sub_intervals;
	plan->multiplexing = recipe->n_sets;
	/* A pCPU's counters also count while it is idle. */
	plan->ran_count = recipe->per == VP_PER_PCPU ? VP_COUNT_time : VP_COUNT_time_running;
	vp_vec_each (&intervals->counters.open, counter) {
		plan->sets_of_counters[counter->number] = (uint8_t)counter->set;
		if (counter->leads)
			plan->first_counters[counter->set - 1] = counter->number;
	}
}

/* The counter of the same event as the interval's; a multiplexed one is not usable. */
static uint32_t counter_of_trigger(const struct vp_intervals *intervals)
{
	const struct vp_recipe *recipe = intervals->options.recipe;
	uint32_t found = recipe->unit == VP_UNIT_EVENT && !intervals->counters.multiplexed
			     ? vp_recipe_find(recipe, recipe->unit_name)
			     : VP_EVENTS_MAX;

	return found < recipe->events.count &&
		       recipe->events.at[found].event.source == VP_FROM_COUNTER
		   ? recipe->events.at[found].event.index
		   : VP_COUNTERS_MAX;
}

static void set_plan(struct vp_intervals *intervals)
{
	const struct vp_recipe *recipe = intervals->options.recipe;
	struct intervals_bpf__rodata *plan = intervals->programs->rodata;

	plan->vendor = vp_host_vendor();
	plan->unit = recipe->unit;
	plan->per = recipe->per;
	plan->native = recipe->native;
	plan->n_counters = recipe->n_counters;
	plan->n_events = (uint32_t)recipe->events.count;
	plan->n_cpus = (uint32_t)libbpf_num_possible_cpus();
	plan->wants_guest = guest_events(recipe);
	plan->ring_half = intervals->options.ring_bytes / 2;
	plan->record_size =
	    sizeof(struct vp_interval) + recipe->events.count * sizeof(struct vp_interval_value);
	plan->trigger_counter = counter_of_trigger(intervals);
	plan->takes_new = recipe->per == VP_PER_VCPU && !intervals->options.only_watched;
	for (size_t i = 0; i < recipe->events.count; i++) {
		plan->events[i].source = (uint8_t)recipe->events.at[i].event.source;
		plan->events[i].index = (uint8_t)recipe->events.at[i].event.index;
	}
	set_parts(intervals, plan);
}

static int intervals_source_size_maps(struct vp_intervals *intervals)
{
	struct intervals_bpf *programs = intervals->programs;
	uint32_t cpus = (uint32_t)libbpf_num_possible_cpus();
	uint32_t counters = intervals->options.recipe->n_counters;
	uint32_t subjects = intervals->options.recipe->per == VP_PER_PCPU ? cpus : MAX_SUBJECTS;
	int result = bpf_map__set_max_entries(programs->maps.subjects, subjects);

	if (!result)
		result = bpf_map__set_max_entries(programs->maps.slots, subjects);
	if (!result)
		result = bpf_map__set_max_entries(programs->maps.free_slots, subjects);
	if (!result)
		result = bpf_map__set_max_entries(programs->maps.counters,
						  counters ? counters * cpus : 1);
	if (!result)
		result = bpf_map__set_max_entries(programs->maps.rings, cpus);
	if (!result)
		result = bpf_map__set_max_entries(programs->maps.requests, cpus);
	return result;
}

static int intervals_source_fill_slots(const struct vp_intervals *intervals)
{
	const struct bpf_map *map = intervals->programs->maps.free_slots;
	uint32_t count = bpf_map__max_entries(map);
	int result = 0;

	for (uint32_t slot = 1; !result && slot <= count; slot++)
		result = bpf_map_update_elem(bpf_map__fd(map), NULL, &slot, BPF_ANY);
	return result;
}

static uint32_t index_of_counter(uint32_t number, uint32_t pcpu)
{
	return number * (uint32_t)libbpf_num_possible_cpus() + pcpu;
}

static int fill_counters(const struct vp_intervals *intervals)
{
	int map = bpf_map__fd(intervals->programs->maps.counters);
	int result = 0;

	vp_vec_each (&intervals->counters.open, counter) {
		uint32_t index = index_of_counter(counter->number, (uint32_t)counter->pcpu);
		if (!result)
			result = bpf_map_update_elem(map, &index, &counter->fd, BPF_ANY);
	}
	return result;
}

static struct vp_error *open_programs(void *context, const struct bpf_object_open_opts *options,
				      struct bpf_object_skeleton **ret)
{
	struct vp_intervals *intervals = context;
	struct bpf_program *program;

	intervals->programs = intervals_bpf__open_opts(options);
	if (!intervals->programs)
		return vp_error_errno(errno, "cannot open the interval programs");
	*ret = intervals->programs->skeleton;
	set_plan(intervals);
	bpf_object__for_each_program (program, intervals->programs->obj) {
		bool wanted = wants_program(&intervals->options, bpf_program__name(program));
		bpf_program__set_autoload(program, wanted);
	}
	int result = intervals_source_size_maps(intervals);
	if (!result)
		result = join_account(intervals);
	return result ? vp_host_load_error(result, "interval") : NULL;
}

static void intervals_source_set_svm_data(void *context, bool is_known)
{
	const struct vp_intervals *intervals = context;

	intervals->programs->rodata->has_svm_data = is_known;
}

static void intervals_source_close(void *context)
{
	struct vp_intervals *intervals = context;

	intervals_bpf__destroy(intervals->programs);
	intervals->programs = NULL;
}

static struct vp_error *intervals_source_load(struct vp_intervals *intervals)
{
	struct vp_programs_load load = {.name = "interval",
					.kernel = intervals->options.kernel,
					.context = intervals,
					.open = open_programs,
					.set_svm_data = intervals_source_set_svm_data,
					.close = intervals_source_close};

	load.elf = intervals_bpf__elf_bytes(&load.elf_size);
	VP_TRY(vp_programs_load(&load));
	int result = intervals_source_fill_slots(intervals);
	if (!result)
		result = fill_counters(intervals);
	return result ? vp_host_load_error(result, "interval") : NULL;
}

static bool intervals_source_is_missed(void *context, size_t number)
{
	struct vp_intervals *intervals = context;

	intervals->programs->bss->uncounted |= counts_of[number];
	return true;
}

/* Programs for events and commands are not attached by name. */
static bool is_attached(const struct bpf_program *program)
{
	enum bpf_prog_type type = bpf_program__type(program);

	return type != BPF_PROG_TYPE_PERF_EVENT &&
	       strcmp(bpf_program__section_name(program), "raw_tp") != 0;
}

static struct vp_error *intervals_source_attach(struct vp_intervals *intervals)
{
	const struct vp_programs_attach attach = {.optional = optional,
						  .n_optional = VP_ARRAY_SIZE(optional),
						  .context = intervals,
						  .is_attached = is_attached,
						  .is_missed = intervals_source_is_missed};

	return vp_programs_attach(intervals->programs->obj, &attach, &intervals->links,
				  &intervals->missing);
}

/* The ring is read-only: the callback gets a copy that it may modify. */
static int intervals_source_take_record(void *context, void *bytes, size_t size)
{
	struct source *source = context;
	const struct vp_intervals_options *options = &source->intervals->options;

	source->copy.size = 0;
	vp_buffer_append(&source->copy, bytes, size);
	options->take(options->context, source->pcpu, source->copy.bytes, size);
	return 0;
}

/* Creates a pCPU's ring in an array of rings of the programs. */
static struct vp_error *make_ring(const struct bpf_map *array, uint32_t pcpu, size_t bytes,
				  int *ring)
{
	*ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "vperf_ring", 0, 0, (uint32_t)bytes, NULL);
	if (*ring < 0)
		return vp_error_errno(errno, "cannot create a ring buffer of %zu bytes", bytes);
	if (bpf_map_update_elem(bpf_map__fd(array), &pcpu, ring, BPF_ANY))
		return vp_error_errno(errno,
				      "cannot pass the ring buffers to the interval programs");
	return NULL;
}

static struct vp_error *open_ring(struct vp_intervals *intervals, struct source *source)
{
	VP_TRY(make_ring(intervals->programs->maps.rings, source->pcpu,
			 intervals->options.ring_bytes, &source->map));
	if (!intervals->rings)
		intervals->rings =
		    ring_buffer__new(source->map, intervals_source_take_record, source, NULL);
	else if (ring_buffer__add(intervals->rings, source->map, intervals_source_take_record,
				  source))
		return vp_error_errno(errno, "cannot map a ring buffer");
	return intervals->rings ? NULL : vp_error_errno(errno, "cannot map a ring buffer");
}

static struct vp_error *intervals_source_add_source(struct vp_intervals *intervals, uint32_t pcpu)
{
	struct source *source = vp_alloc(sizeof(*source));

	*source = (struct source){.intervals = intervals, .pcpu = pcpu, .map = -1, .requests = -1};
	vp_vec_push(&intervals->sources, source);
	return open_ring(intervals, source);
}

static struct vp_error *intervals_source_open_rings(struct vp_intervals *intervals)
{
	for (size_t i = 0; i < intervals->pcpus.count; i++)
		VP_TRY(intervals_source_add_source(intervals, (uint32_t)intervals->pcpus.at[i]));
	return NULL;
}

static struct vp_error *open_trigger(struct vp_intervals *intervals, int tid, int pcpu)
{
	const struct vp_recipe *recipe = intervals->options.recipe;
	const struct intervals_bpf *programs = intervals->programs;
	const struct bpf_program *program = recipe->unit == VP_UNIT_EVENT
						? programs->progs.close_on_overflow
						: programs->progs.close_on_tick;
	int fd;

	VP_TRY(vp_counter_trigger(recipe, part_width(intervals), tid, pcpu,
				  recipe->per == VP_PER_TASK, &fd));
	vp_vec_push(&intervals->triggers, fd);
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(program)))
		return vp_error_errno(errno, "cannot attach the interval program to event '%s'",
				      recipe->unit_name);
	if (intervals->begun && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return vp_error_errno(errno, "cannot enable event '%s'", recipe->unit_name);
	return NULL;
}

/* Opens the event that ends a pCPU's intervals; threads have their own. */
static struct vp_error *open_pcpu_trigger(struct vp_intervals *intervals, int pcpu)
{
	const struct vp_recipe *recipe = intervals->options.recipe;

	if (recipe->unit == VP_UNIT_EXITS ||
	    (recipe->unit == VP_UNIT_EVENT && recipe->per != VP_PER_PCPU))
		return NULL;
	return open_trigger(intervals, -1, pcpu);
}

static struct vp_error *open_triggers(struct vp_intervals *intervals)
{
	for (size_t i = 0; i < intervals->pcpus.count; i++)
		VP_TRY(open_pcpu_trigger(intervals, intervals->pcpus.at[i]));
	return NULL;
}

/* Runs a command on a pCPU, not concurrently with programs there. */
static struct vp_error *do_on(struct vp_intervals *intervals, enum vp_interval_command command,
			      uint32_t argument, uint32_t pcpu)
{
	uint64_t arguments[2] = {command, argument};
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = arguments,
		    .ctx_size_in = sizeof(arguments), .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = pcpu);
	int fd = bpf_program__fd(intervals->programs->progs.do_here);

	for (int tries = 0; tries < TRIES; tries++) {
		if (bpf_prog_test_run_opts(fd, &options))
			return vp_error_errno(
			    errno, "cannot start or stop the intervals on pCPU %u", pcpu);
		if (!options.retval)
			return NULL;
	}
	return vp_error_new(
	    "cannot start or stop the intervals on pCPU %u: its programs are always busy", pcpu);
}

/* Passes the switcher threads to each pCPU's programs. */
static struct vp_error *start_multiplex(struct vp_intervals *intervals)
{
	size_t count = intervals->pcpus.count;
	VP_AUTO_FREE int *rings = vp_alloc(count * sizeof(*rings));

	for (size_t i = 0; i < count; i++) {
		struct source *source = intervals->sources.at[i];
		VP_TRY(make_ring(intervals->programs->maps.requests, source->pcpu,
				 (size_t)getpagesize(), &source->requests));
		rings[i] = source->requests;
	}
	VP_TRY(vp_multiplex_start(&intervals->counters, &intervals->pcpus, rings,
				  &intervals->multiplex));
	for (size_t i = 0; i < count; i++)
		VP_TRY(do_on(intervals, VP_SWITCHES_HERE,
			     vp_multiplex_thread(intervals->multiplex, i),
			     intervals->sources.at[i]->pcpu));
	if (!vp_multiplex_delay(intervals->multiplex))
		return NULL;
	VP_AUTO_FREE char *sentence = vp_format(
	    "counter multiplexing may lag on a busy machine: cannot get real-time priority: %s",
	    strerror(vp_multiplex_delay(intervals->multiplex)));
	vp_missing_add(&intervals->missing, sentence);
	return NULL;
}

static struct vp_error *open_programs_and_counters(struct vp_intervals *intervals)
{
	const struct vp_recipe *recipe = intervals->options.recipe;

	VP_TRY(vp_pcpus_online(&intervals->pcpus));
	VP_TRY(vp_counters_open(recipe, &intervals->pcpus, &intervals->counters));
	vp_vec_each (&intervals->counters.missing, name) {
		VP_AUTO_FREE char *sentence = vp_format("this machine has no event '%s'", *name);
		vp_missing_add(&intervals->missing, sentence);
	}
	VP_TRY(intervals_source_load(intervals));
	VP_TRY(intervals_source_open_rings(intervals));
	if (intervals->counters.multiplexed)
		VP_TRY(start_multiplex(intervals));
	VP_TRY(intervals_source_attach(intervals));
	return open_triggers(intervals);
}

static struct vp_error *open_with(const struct vp_intervals_options *options,
				  struct vp_intervals **ret)
{
	struct vp_intervals *intervals = vp_alloc(sizeof(*intervals));

	intervals->options = *options;
	struct vp_error *error = open_programs_and_counters(intervals);
	if (error)
		vp_intervals_free(intervals);
	else
		*ret = intervals;
	return error;
}

/* Replacing a program's function is not always possible: on 64-bit Arm since Linux 6.0, and it
 * needs CAP_NET_ADMIN. */
struct vp_error *vp_intervals_open(const struct vp_intervals_options *options,
				   struct vp_intervals **ret)
{
	struct vp_intervals_options alone = *options;
	struct vp_error *error = open_with(options, ret);

	if (!error || !joins_account(options))
		return error;
	vp_error_free(error);
	alone.exit_programs = (struct vp_exit_programs){0};
	return open_with(&alone, ret);
}

static void source_free(struct source *source)
{
	if (source->requests >= 0)
		close(source->requests);
	if (source->map >= 0)
		close(source->map);
	vp_buffer_deinit(&source->copy);
	free(source);
}

void vp_intervals_free(struct vp_intervals *intervals)
{
	if (!intervals)
		return;
	vp_links_deinit(&intervals->links);
	vp_vec_each (&intervals->triggers, fd)
		close(*fd);
	vp_vec_deinit(&intervals->triggers);
	ring_buffer__free(intervals->rings);
	vp_multiplex_stop(intervals->multiplex);
	vp_vec_each (&intervals->sources, source)
		source_free(*source);
	vp_vec_deinit(&intervals->sources);
	intervals_bpf__destroy(intervals->programs);
	vp_counters_close(&intervals->counters);
	vp_vec_deinit(&intervals->pcpus);
	vp_vec_deinit(&intervals->watched);
	free(intervals->missing);
	free(intervals);
}

/* Whether the programs saw the thread before it was watched. */
static bool has_slot(const struct vp_intervals *intervals, uint32_t tid)
{
	uint32_t slot;

	return !bpf_map_lookup_elem(bpf_map__fd(intervals->programs->maps.slots), &tid, &slot);
}

/* Adds a thread's subject, in the state of a sleeping thread. */
static struct vp_error *add_subject(const struct vp_intervals *intervals,
				    const struct thread *thread)
{
	const struct intervals_bpf *programs = intervals->programs;
	uint64_t now = vp_clock_monotonic(), passed = now - intervals->begun;
	uint64_t width = whole_width(intervals), part = part_width(intervals);
	uint32_t slot = 0;
	struct vp_subject subject = {
	    .pid = thread->pid,
	    .tid = thread->tid,
	    .vcpu = thread->vcpu,
	    .begin = now,
	    .since = now,
	    .due_at = now + part - passed % part,
	    .ends_at = now + width - passed % width,
	    .exits_left = part,
	};

	if (bpf_map_lookup_and_delete_elem(bpf_map__fd(programs->maps.free_slots), NULL, &slot))
		return vp_error_new(
		    "no table entry left for the intervals of thread %u (at most %d threads)",
		    thread->tid, MAX_SUBJECTS);
	uint32_t index = slot - 1;
	if (bpf_map_update_elem(bpf_map__fd(programs->maps.subjects), &index, &subject, BPF_ANY) ||
	    bpf_map_update_elem(bpf_map__fd(programs->maps.slots), &thread->tid, &slot, BPF_ANY))
		return vp_error_errno(errno, "cannot start the intervals of thread %u",
				      thread->tid);
	return NULL;
}

bool vp_intervals_is_watched(const struct vp_intervals *intervals, uint32_t tid)
{
	vp_vec_each (&intervals->watched, thread)
		if (thread->tid == tid)
			return true;
	return false;
}

struct vp_error *vp_intervals_watch(struct vp_intervals *intervals, uint32_t pid, uint32_t tid,
				    uint32_t vcpu)
{
	const struct thread thread = {pid, tid, vcpu};

	vp_vec_push(&intervals->watched, thread);
	if (intervals->begun && !has_slot(intervals, tid))
		VP_TRY(add_subject(intervals, &thread));
	return intervals->options.recipe->unit == VP_UNIT_EVENT
		   ? open_trigger(intervals, (int)tid, -1)
		   : NULL;
}

uint32_t vp_intervals_guest_events(const struct vp_intervals *intervals)
{
	return guest_events(intervals->options.recipe);
}

static int slots_map(const struct vp_intervals *intervals)
{
	return bpf_map__fd(intervals->programs->maps.guest_counters);
}

struct vp_error *vp_intervals_identify(struct vp_intervals *intervals,
				       const struct vp_guest_state *state,
				       const struct vp_guest_finding *finding)
{
	return vp_guest_counters_of_kernel(slots_map(intervals), state, finding);
}

struct vp_error *vp_intervals_take_agent(struct vp_intervals *intervals,
					 const struct vp_guest_state *state,
					 const struct vp_agent_memory *agent)
{
	return vp_guest_counters_of_agent(slots_map(intervals), state, agent);
}

void vp_intervals_forget(struct vp_intervals *intervals, uint32_t pid)
{
	vp_guest_counters_drop(slots_map(intervals), pid, false);
}

void vp_intervals_forget_agent(struct vp_intervals *intervals, uint32_t pid)
{
	vp_guest_counters_drop(slots_map(intervals), pid, true);
}

uint32_t vp_intervals_unknown(const struct vp_intervals *intervals, uint32_t pid)
{
	return vp_intervals_guest_events(intervals) &
	       ~vp_guest_counters_known(slots_map(intervals), pid);
}

static struct vp_error *switch_triggers(struct vp_intervals *intervals, bool on)
{
	vp_vec_each (&intervals->triggers, fd)
		if (ioctl(*fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0))
			return vp_error_errno(errno, "cannot %s event '%s'",
					      on ? "enable" : "disable",
					      intervals->options.recipe->unit_name);
	return NULL;
}

struct vp_error *vp_intervals_begin(struct vp_intervals *intervals)
{
	intervals->begun = vp_clock_monotonic();
	intervals->programs->bss->origin = intervals->begun;
	vp_vec_each (&intervals->watched, thread)
		VP_TRY(add_subject(intervals, thread));
	intervals->programs->bss->enabled = 1;
	for (size_t i = 0; i < intervals->pcpus.count; i++)
		VP_TRY(do_on(intervals, VP_BEGIN_HERE, 0, (uint32_t)intervals->pcpus.at[i]));
	return switch_triggers(intervals, true);
}

static bool is_online(const struct vp_pcpus *online, int pcpu)
{
	vp_vec_each (online, each)
		if (*each == pcpu)
			return true;
	return false;
}

/* Resets the pCPU's counters in the programs, which then treat the next ones as new. */
static struct vp_error *forget_counters(struct vp_intervals *intervals, uint32_t pcpu)
{
	int map = bpf_map__fd(intervals->programs->maps.counters);

	for (uint32_t i = 0; i < intervals->options.recipe->n_counters; i++) {
		uint32_t index = index_of_counter(i, pcpu);
		if (bpf_map_delete_elem(map, &index) && errno != ENOENT)
			return vp_error_errno(errno, "cannot remove a counter from the programs");
	}
	return do_on(intervals, VP_FORGET_HERE, 0, pcpu);
}

struct vp_error *vp_intervals_add_pcpu(struct vp_intervals *intervals, uint32_t pcpu)
{
	bool is_new = !is_online(&intervals->pcpus, (int)pcpu);

	if (is_new) {
		VP_TRY(intervals_source_add_source(intervals, pcpu));
		vp_vec_push(&intervals->pcpus, (int)pcpu);
	}
	VP_TRY(forget_counters(intervals, pcpu));
	VP_TRY(vp_counters_add(intervals->options.recipe, (int)pcpu, &intervals->counters));
	int result = fill_counters(intervals);
	if (result)
		return vp_error_errno(-result, "cannot pass its counters to the programs");
	VP_TRY(open_pcpu_trigger(intervals, (int)pcpu));
	return is_new && intervals->begun ? do_on(intervals, VP_BEGIN_HERE, 0, pcpu) : NULL;
}

int vp_intervals_fd(const struct vp_intervals *intervals)
{
	return ring_buffer__epoll_fd(intervals->rings);
}

struct vp_error *vp_intervals_drain(struct vp_intervals *intervals)
{
	int result = ring_buffer__consume(intervals->rings);

	return result >= 0 || result == -EINTR
		   ? NULL
		   : vp_error_errno(-result,
				    "cannot read the ring buffers of the interval programs");
}

/* Closes intervals of threads without a pCPU: their counts are in the map. */
static struct vp_error *end_sleepers(struct vp_intervals *intervals)
{
	int map = bpf_map__fd(intervals->programs->maps.slots);
	uint32_t pcpu = (uint32_t)intervals->pcpus.at[0], key, *before = NULL, slot;

	while (!bpf_map_get_next_key(map, before, &key)) {
		if (!bpf_map_lookup_elem(map, &key, &slot))
			VP_TRY(do_on(intervals, VP_END_SUBJECT, slot, pcpu));
		before = &key;
	}
	return NULL;
}

/* Closes intervals of running threads. */
static struct vp_error *end_runners(struct vp_intervals *intervals)
{
	struct vp_pcpus online = {0};
	struct vp_error *error = vp_pcpus_online(&online);

	for (size_t i = 0; !error && i < intervals->pcpus.count; i++)
		if (is_online(&online, intervals->pcpus.at[i]))
			error = do_on(intervals, VP_END_HERE, 0, (uint32_t)intervals->pcpus.at[i]);
	vp_vec_deinit(&online);
	return error;
}

struct vp_error *vp_intervals_end(struct vp_intervals *intervals)
{
	VP_TRY(switch_triggers(intervals, false));
	VP_TRY(end_runners(intervals));
	VP_TRY(end_sleepers(intervals));
	intervals->programs->bss->enabled = 0;
	return NULL;
}

struct vp_intervals_lost vp_intervals_lost(const struct vp_intervals *intervals)
{
	const struct intervals_bpf__bss *bss = intervals->programs->bss;

	return (struct vp_intervals_lost){bss->lost.intervals, bss->lost.subjects};
}

bool vp_intervals_has_joined(const struct vp_intervals *intervals)
{
	return joins_account(&intervals->options);
}

char *vp_intervals_missing(const struct vp_intervals *intervals)
{
	return intervals->missing ? vp_strdup(intervals->missing) : NULL;
}

static void intervals_source_take_nothing(void *context, uint32_t pcpu, char *records, size_t size)
{
}

static bool probe_intervals(char *detail, size_t size)
{
	static const char text[] = "interval time 1s\ncount time exits";
	struct vp_intervals *intervals = NULL;
	struct vp_recipe recipe = {0};
	struct vp_error *error = vp_recipe_parse("", text, sizeof(text) - 1, &recipe);
	struct vp_intervals_options options = {.recipe = &recipe,
					       .ring_bytes = (size_t)getpagesize(),
					       .take = intervals_source_take_nothing};

	if (!error)
		error = vp_intervals_open(&options, &intervals);
	VP_AUTO_FREE char *missing = intervals ? vp_intervals_missing(intervals) : NULL;
	bool found = vp_probe_report_opened(error, missing, detail, size);
	vp_intervals_free(intervals);
	vp_recipe_deinit(&recipe);
	return found;
}

const struct vp_source *vp_source_intervals(void)
{
	static const struct vp_probe probe = {"interval programs",
					      "'vperf stat' and 'vperf record --stat' do not work",
					      false, probe_intervals};
	static const struct vp_source source = {&probe, 1};

	return &source;
}
