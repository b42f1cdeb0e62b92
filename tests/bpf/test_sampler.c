/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampling programs on this machine's clock: what they record of this thread, what they lose.
 */
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/macros.h"
#include "bpf/guest_current_abi.h"
#include "bpf/sampler_abi.h"
#include "collect/programs/rings.h"
#include "collect/programs/sampler.h"
#include "collect/programs/trigger.h"
#include "kernel.h"
#include "schema/schema.h"

#include "sampler.skel.h"

enum { MS = 1000000, PATIENCE_S = 30, MIN_RING = 16 << 10, FEW = 300, STACK = 64 << 10 };

static uint32_t threads = FEW; /* or as many as the command line says */

/* What arrived. */
struct found {
	uint32_t tid; /* whom the last `task` of this thread's pCPU named */
	uint64_t samples, own, chains, process; /* process: of all threads of this one */
	bool named;
};

static void take_one(struct found *found, const union vp_any_record *record)
{
	switch (record->header.id) {
	case VP_ID_task:
		found->tid = record->task.tid;
		if (found->tid == vp_own_tid()) {
			found->named = true;
			assert_int_equal(record->task.pid, getpid());
			assert_string_equal(record->task.comm, "sampled");
		}
		break;
	case VP_ID_chain_frames:
		found->chains += record->chain_frames.tid == vp_own_tid();
		break;
	case VP_ID_host_sample:
		found->samples++;
		if (record->host_sample.pid != (uint32_t)getpid())
			break;
		/* Whose samples follow is said before. */
		assert_int_equal(found->tid, record->host_sample.tid);
		found->process++;
		if (record->host_sample.tid != vp_own_tid())
			break;
		found->own++;
		assert_true(record->host_sample.ip != 0);
		assert_true(record->host_sample.mode == VP_MODE_USER ||
			    record->host_sample.mode == VP_MODE_KERNEL);
		break;
	case VP_ID_vcpu_sample:
	case VP_ID_guest_sample:
		found->samples++;
	}
}

/* Whole records, one behind the other. */
static void take(void *context, uint32_t pcpu, char *records, size_t size)
{
	struct found *found = (struct found *)context + pcpu;

	for (size_t at = 0; at < size;) {
		union vp_any_record record = {0};
		struct vp_record_header header;
		memcpy(&header, records + at, sizeof(header));
		size_t length = vp_record_size(header.id);
		if (!length || length > size - at)
			fail_msg("record %u does not end in its piece", header.id);
		memcpy(&record, records + at, length);
		take_one(found, &record);
		at += length;
	}
}

struct scene {
	struct vp_trigger trigger;
	struct vp_sampler *sampler;
	struct found found[CPU_SETSIZE];
	uint32_t pcpu;
};

static void begin(struct scene *scene, size_t pages, uint64_t period, bool chains)
{
	const struct vp_trigger_options trigger = {.event = "cpu-clock", .period = period};
	struct vp_sampler_options options = {.trigger = &scene->trigger,
					     .buffer_pages = pages,
					     .with_chains = chains,
					     .take = take,
					     .context = scene->found};

	*scene = (struct scene){.pcpu = vp_stay_here()};
	expect_no_error(vp_trigger_open(&trigger, &scene->trigger));
	expect_no_error(vp_sampler_start(&options, &scene->sampler));
	expect_no_error(vp_trigger_enable(&scene->trigger, true));
}

static void end(struct scene *scene)
{
	vp_sampler_free(scene->sampler);
	vp_trigger_close(&scene->trigger);
}

static void wait_for_own(struct scene *scene, unsigned wanted)
{
	uint64_t until = vp_now() + PATIENCE_S * 1000ULL * MS;

	while (scene->found[scene->pcpu].own < wanted && vp_now() < until) {
		vp_burn(10 * MS);
		expect_no_error(vp_sampler_drain(scene->sampler));
	}
	assert_true(scene->found[scene->pcpu].own >= wanted);
}

static void test_own_samples(void **state)
{
	static struct scene scene;

	begin(&scene, 64, MS, true);
	wait_for_own(&scene, 20);
	assert_true(scene.found[scene.pcpu].named);
	assert_true(scene.found[scene.pcpu].chains >= 20);
	end(&scene);
}

/* A pCPU's event is over when it goes offline, and another one is opened when it is back. */
static void test_pcpu_comes_back(void **state)
{
	static struct scene scene;
	size_t place;

	begin(&scene, 64, MS, true);
	wait_for_own(&scene, 20);
	expect_no_error(vp_trigger_enable(&scene.trigger, false));
	expect_no_error(vp_sampler_drain(scene.sampler));
	unsigned before = scene.found[scene.pcpu].own;
	vp_burn(20 * MS);
	expect_no_error(vp_sampler_drain(scene.sampler));
	assert_int_equal(scene.found[scene.pcpu].own, before);
	expect_no_error(vp_trigger_add(&scene.trigger, (int)scene.pcpu, &place));
	assert_int_equal(scene.trigger.pcpus.at[place], scene.pcpu);
	expect_no_error(vp_sampler_add(scene.sampler, place));
	expect_no_error(vp_trigger_enable_one(&scene.trigger, place));
	wait_for_own(&scene, before + 20);
	end(&scene);
}

/* Nobody reads: what finds no room is counted, and what found some is good (take_one() looks). On a
 * busy pCPU that may be others' samples only. */
static void test_full_buffer(void **state)
{
	uint64_t until = vp_now() + PATIENCE_S * 1000ULL * MS;
	static struct scene scene;

	begin(&scene, 1, MS / 5, false);
	while (!vp_sampler_lost(scene.sampler, scene.pcpu) && vp_now() < until)
		vp_burn(10 * MS);
	expect_no_error(vp_trigger_enable(&scene.trigger, false));
	assert_true(vp_sampler_lost(scene.sampler, scene.pcpu) > 0);
	expect_no_error(vp_sampler_drain(scene.sampler));
	assert_true(scene.found[scene.pcpu].samples > 0);
	end(&scene);
}

/* What is known of VM `number`, of four vCPUs. */
static struct vp_error *identify(struct vp_sampler *sampler, uint32_t number, uint32_t pid)
{
	struct vp_guest_state state = {.pid = pid};
	struct vp_guest_finding finding = {.off_tid = 16, .off_tgid = 20, .off_comm = 32};

	vp_guest_memory_add(&state.memory, 0, 1 << 20, 0x70000000);
	for (uint32_t vcpu = 0; vcpu < 4; vcpu++)
		vp_vec_push(&finding.cpus,
			    ((struct vp_guest_current_address){vcpu, vcpu, 0x1000 + 8 * vcpu}));
	struct vp_error *error =
	    vp_identity_set(vp_sampler_identity(sampler), number, &state, &finding);
	vp_vec_deinit(&finding.cpus);
	vp_guest_memory_deinit(&state.memory);
	return error;
}

/* 1,000 VMs of four vCPUs; and those that come after others have gone. */
static void test_thousand_vms(void **state)
{
	enum { VMS = 1000, PID = 1 << 23, LATER = 50 };
	static struct scene scene;

	begin(&scene, 1, 100 * MS, false);
	for (uint32_t i = 0; i < VMS; i++)
		expect_no_error(identify(scene.sampler, i, PID + i));
	for (uint32_t i = 0; i < LATER; i++) {
		vp_identity_forget(vp_sampler_identity(scene.sampler), PID + i);
		expect_no_error(identify(scene.sampler, i, PID + VMS + i));
	}
	expect_error(identify(scene.sampler, VP_IDENTITY_VMS, PID - 1),
		     "no table entry left for another VM");
	end(&scene);
}

/* Records that the programs write into rings themselves, as they do where an interrupt is told. */
struct ring_scene {
	struct vp_trigger trigger;
	struct sampler_bpf *programs;
	struct vp_rings rings;
	struct found found[CPU_SETSIZE];
	uint32_t pcpu;
	int statistics;
};

static void load(struct ring_scene *scene, bool stacks)
{
	uint32_t pcpus = (uint32_t)libbpf_num_possible_cpus();

	libbpf_set_print(NULL);
	scene->programs = sampler_bpf__open();
	assert_non_null(scene->programs);
	scene->programs->rodata->seen_by = VP_SEEN_BY_IRQ;
	expect_no_error(vp_rings_plan(&scene->rings, pcpus, MIN_RING, stacks));
	scene->programs->rodata->ring_size = scene->rings.size;
	struct bpf_map *map = scene->programs->maps.rings;
	assert_int_equal(bpf_map__set_max_entries(map, pcpus), 0);
	assert_int_equal(bpf_map__set_value_size(map, (uint32_t)scene->rings.stride), 0);
	assert_int_equal(sampler_bpf__load(scene->programs), 0);
	expect_no_error(vp_rings_map(&scene->rings, bpf_map__fd(map)));
}

static void begin_rings(struct ring_scene *scene, const char *program)
{
	const struct vp_trigger_options trigger = {.event = "cpu-clock", .period = MS / 10};

	*scene = (struct ring_scene){.pcpu = vp_stay_here()};
	load(scene, !strcmp(program, "chains_into_ring"));
	scene->statistics = bpf_enable_stats(BPF_STATS_RUN_TIME);
	assert_true(scene->statistics >= 0);
	expect_no_error(vp_trigger_open(&trigger, &scene->trigger));
	const struct bpf_program *found =
	    bpf_object__find_program_by_name(scene->programs->obj, program);
	vp_vec_each (&scene->trigger.fds, fd)
		assert_int_equal(ioctl(*fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(found)), 0);
	expect_no_error(vp_trigger_enable(&scene->trigger, true));
}

static void end_rings(struct ring_scene *scene)
{
	close(scene->statistics);
	vp_trigger_close(&scene->trigger);
	vp_rings_unmap(&scene->rings);
	sampler_bpf__destroy(scene->programs);
}

static const struct vp_ring *ring_of(const struct ring_scene *scene, uint32_t pcpu)
{
	return (const void *)(scene->rings.memory + pcpu * scene->rings.stride);
}

static void drain(struct ring_scene *scene)
{
	vp_vec_each (&scene->trigger.pcpus, pcpu)
		vp_rings_drain(&scene->rings, (uint32_t)*pcpu, take, scene->found);
}

static uint64_t runs_of(const struct bpf_program *program)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size), 0);
	return info.run_cnt;
}

/* Each run of the program is a sample that arrived, or one that is counted as lost. */
static void expect_all(const struct ring_scene *scene, const struct bpf_program *program)
{
	uint64_t sum = 0;

	vp_vec_each (&scene->trigger.pcpus, pcpu)
		sum += scene->found[*pcpu].samples + vp_rings_lost(&scene->rings, (uint32_t)*pcpu);
	assert_int_equal(sum, runs_of(program));
}

/* Three times around the ring and more, by a reader that keeps up. */
static void test_laps(void **state)
{
	uint64_t until = vp_now() + PATIENCE_S * 1000ULL * MS;
	static struct ring_scene scene;

	begin_rings(&scene, "take_sample");
	while (ring_of(&scene, scene.pcpu)->head < 3 * scene.rings.size && vp_now() < until) {
		vp_burn(5 * MS);
		drain(&scene);
	}
	expect_no_error(vp_trigger_enable(&scene.trigger, false));
	drain(&scene);
	assert_true(ring_of(&scene, scene.pcpu)->head >= 3 * scene.rings.size);
	assert_true(scene.found[scene.pcpu].own >= 100);
	assert_true(scene.found[scene.pcpu].named);
	expect_all(&scene, scene.programs->progs.take_sample);
	end_rings(&scene);
}

static void test_full_rings(void **state)
{
	uint64_t until = vp_now() + PATIENCE_S * 1000ULL * MS;
	static struct ring_scene scene;

	begin_rings(&scene, "take_sample");
	while (vp_rings_lost(&scene.rings, scene.pcpu) < 100 && vp_now() < until)
		vp_burn(10 * MS);
	drain(&scene); /* what comes now finds room again */
	uint64_t before = scene.found[scene.pcpu].own;
	vp_burn(10 * MS);
	expect_no_error(vp_trigger_enable(&scene.trigger, false));
	drain(&scene);
	assert_true(vp_rings_lost(&scene.rings, scene.pcpu) >= 100);
	assert_true(scene.found[scene.pcpu].own > before);
	expect_all(&scene, scene.programs->progs.take_sample);
	end_rings(&scene);
}

static void test_chains_in_rings(void **state)
{
	uint64_t until = vp_now() + PATIENCE_S * 1000ULL * MS;
	static struct ring_scene scene;

	begin_rings(&scene, "chains_into_ring");
	while (scene.found[scene.pcpu].own < 100 && vp_now() < until) {
		vp_burn(MS);
		drain(&scene);
	}
	expect_no_error(vp_trigger_enable(&scene.trigger, false));
	drain(&scene);
	assert_true(scene.found[scene.pcpu].own >= 100);
	assert_true(scene.found[scene.pcpu].chains >= 100);
	expect_all(&scene, scene.programs->progs.chains_into_ring);
	end_rings(&scene);
}

/* A process that starts, and runs on this pCPU in several time slices. */
static void run_process(void)
{
	enum { SLICES = 10 };
	pid_t pid = fork();

	assert_true(pid >= 0);
	for (int i = 0; !pid && i < SLICES; i++) {
		vp_burn(3 * MS);
		vp_sleep_us(1000);
	}
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The process is sampled after its pCPU's ring was read, and before the call returns. */
static void take_and_run_process(void *context, uint32_t pcpu, char *records, size_t size)
{
	const struct ring_scene *scene = context;

	if (pcpu == scene->pcpu)
		run_process();
}

static int nothing_rung(void *context, void *data, size_t size)
{
	return 0;
}

/* A process that is sampled while the rings are read still wakes the reader. */
static void test_process_during_drain(void **state)
{
	static struct ring_scene scene;

	begin_rings(&scene, "take_sample");
	struct ring_buffer *doorbell =
	    ring_buffer__new(bpf_map__fd(scene.programs->maps.doorbell), nothing_rung, NULL, NULL);
	assert_non_null(doorbell);
	vp_burn(10 * MS);
	assert_int_equal(vp_rings_drain_all(&scene.rings, doorbell, scene.trigger.pcpus.at,
					    scene.trigger.pcpus.count, take_and_run_process,
					    &scene),
			 0);
	expect_no_error(vp_trigger_enable(&scene.trigger, false));
	struct pollfd rung = {.fd = ring_buffer__epoll_fd(doorbell), .events = POLLIN};
	assert_int_equal(vp_poll(&rung, 1, 0), 1);
	ring_buffer__free(doorbell);
	end_rings(&scene);
}

static int count_own(void *context, void *data, size_t size)
{
	uint32_t pid;

	if (size >= sizeof(pid)) {
		memcpy(&pid, data, sizeof(pid));
		*(unsigned *)context += pid == (uint32_t)getpid();
	}
	return 0;
}

static void take_nothing(void *context, uint32_t pcpu, char *records, size_t size)
{
}

/* Runs under its present name until the reader was woken for it; at most half a
 * second. */
static bool wakes_reader(struct ring_scene *scene, struct ring_buffer *doorbell, unsigned *rung)
{
	const unsigned before = *rung;

	for (unsigned i = 0; i < 50 && *rung == before; i++) {
		scene->programs->data->renames++;
		vp_burn(10 * MS);
		assert_int_equal(vp_rings_drain_all(&scene->rings, doorbell,
						    scene->trigger.pcpus.at,
						    scene->trigger.pcpus.count, take_nothing, NULL),
				 0);
	}
	return *rung > before;
}

/* A process that runs another program wakes the reader again, and under the same name it does not:
 * its mappings are other ones. */
static void test_process_with_other_name(void **state)
{
	static struct ring_scene scene;
	unsigned rung = 0;

	begin_rings(&scene, "take_sample");
	struct ring_buffer *doorbell =
	    ring_buffer__new(bpf_map__fd(scene.programs->maps.doorbell), count_own, &rung, NULL);
	assert_non_null(doorbell);
	assert_true(wakes_reader(&scene, doorbell, &rung));
	assert_false(wakes_reader(&scene, doorbell, &rung));
	assert_int_equal(prctl(PR_SET_NAME, "another"), 0);
	assert_true(wakes_reader(&scene, doorbell, &rung));
	expect_no_error(vp_trigger_enable(&scene.trigger, false));
	assert_int_equal(prctl(PR_SET_NAME, "sampled"), 0);
	ring_buffer__free(doorbell);
	end_rings(&scene);
}

/* None begins before all are there. */
static void *burn(void *context)
{
	pthread_barrier_t *all = context;

	pthread_barrier_wait(all);
	vp_burn(MS);
	return NULL;
}

static void test_many_threads(void **state)
{
	pthread_t *made = vp_alloc(threads * sizeof(*made));
	static struct ring_scene scene;
	pthread_attr_t attributes;
	pthread_barrier_t all;
	uint64_t process = 0;

	assert_int_equal(pthread_attr_init(&attributes), 0);
	assert_int_equal(pthread_attr_setstacksize(&attributes, STACK), 0);
	assert_int_equal(pthread_barrier_init(&all, NULL, threads + 1), 0);
	begin_rings(&scene, "take_sample");
	for (uint32_t i = 0; i < threads; i++)
		assert_int_equal(pthread_create(&made[i], &attributes, burn, &all), 0);
	pthread_barrier_wait(&all);
	for (uint32_t i = 0; i < threads; i++) {
		assert_int_equal(pthread_join(made[i], NULL), 0);
		drain(&scene);
	}
	expect_no_error(vp_trigger_enable(&scene.trigger, false));
	drain(&scene);
	expect_all(&scene, scene.programs->progs.take_sample);
	vp_vec_each (&scene.trigger.pcpus, pcpu)
		process += scene.found[*pcpu].process;
	assert_true(process > 0);
	print_message("%u threads: %" PRIu64 " samples of theirs\n", threads, process);
	end_rings(&scene);
	pthread_barrier_destroy(&all);
	pthread_attr_destroy(&attributes);
	free(made);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_own_samples),
	    cmocka_unit_test(test_full_buffer),
	    cmocka_unit_test(test_thousand_vms),
	    cmocka_unit_test(test_laps),
	    cmocka_unit_test(test_full_rings),
	    cmocka_unit_test(test_chains_in_rings),
	    cmocka_unit_test(test_many_threads),
	    cmocka_unit_test(test_pcpu_comes_back),
	    cmocka_unit_test(test_process_during_drain),
	    cmocka_unit_test(test_process_with_other_name),
	};

	if (argc > 1)
		threads = (uint32_t)strtoul(argv[1], NULL, 10);

	if (!vp_kernel_takes_programs("sampling"))
		return VP_SKIPPED;
	pthread_setname_np(pthread_self(), "sampled");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
