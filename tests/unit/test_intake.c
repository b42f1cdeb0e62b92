/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the programs' rings to the stream on disk: pieces of a ring, long and short runs, ticks that
 * came late, clocks that were read in between, VMs that were not asked for.
 */
#include "unit.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/programs/rings.h"
#include "schema/trace_event.h"
#include "session/instrument_profile_private.h"
#include "session/instrument_trace.h"
#include "session/session_private.h"
#include "store/trace_reader.h"

#define NAME "test_intake.rec"

enum {
	PERIOD = 1000,
	START = 1000000,
	GUEST = 1000 /* VMM's pid; its vCPU's thread is the next */
};

/* A profile as far as records are concerned: no programs, one VM, a clock as trigger. */
static struct vp_profile_instrument *profile_make(void)
{
	static const uint8_t uuid[16];
	const struct vp_ctf_trace trace = {.uuid = uuid, .hostname = "h", .machine = "host"};
	const struct vp_session_options options = {.directory = NAME};
	const struct vp_instrument_profile_options none = {.buffer_pages = 0};
	struct vp_session *session = vp_session_new(&options);
	struct vp_instrument *instrument = vp_instrument_profile(&none);
	struct vp_profile_instrument *profile = (struct vp_profile_instrument *)instrument;
	struct vp_vm vm = {.pid = GUEST, .name = vp_strdup("g"), .uuid = vp_strdup("")};

	vp_session_add(session, instrument);
	vm.agent = vp_strdup("");
	vm.memory = vp_strdup("");
	vp_vm_vcpu(&vm, 3)->tid = GUEST + 1;
	vp_vec_push(&session->vms, vm);
	unlink(NAME "/cpu0");
	expect_no_error(vp_trace_writer_create(NAME, &trace, &session->trace));
	profile->trigger.by_time = true;
	profile->trigger.period_ns = PERIOD;
	vp_profile_stream(profile, 0)->late_from = START + 2 * PERIOD;
	vp_profile_stream(profile, 0)->may_fill = true;
	return profile;
}

/* Flushes, and reads the records back, the first `most` of them; the session ends here. */
static size_t read_back(struct vp_profile_instrument *profile, size_t most,
			union vp_any_record *records)
{
	struct vp_stream_reader *reader;
	const struct vp_record_header *record;
	uint64_t last = 0;
	size_t count = 0;

	vp_trace_flush(profile->base.session->trace, vp_stream_of_pcpu(0), 0);
	expect_no_error(vp_stream_open(NAME "/cpu0", &reader));
	while ((record = vp_stream_next(reader))) {
		assert_true(record->time >= last);
		last = record->time;
		if (count < most)
			memcpy(&records[count], record, vp_record_size(record->id));
		count++;
	}
	assert_int_equal(vp_stream_health(reader).damaged, 0);
	vp_stream_free(reader);
	vp_session_free(profile->base.session);
	return count;
}

static struct vp_guest_sample guest_at(uint64_t time)
{
	return (struct vp_guest_sample){.time = time,
					.id = VP_ID_guest_sample,
					.vm = GUEST,
					.tid = GUEST + 1,
					.vcpu = VP_VCPU_UNKNOWN,
					.mode = VP_MODE_GUEST_USER,
					.flags = VP_HAS_AS_ROOT,
					.ip = 0x400000,
					.as_root = 0x1000};
}

static void test_late_ticks(void **state)
{
	struct vp_profile_instrument *profile = profile_make();
	struct {
		struct vp_guest_sample first;
		struct vp_task task;
		struct vp_guest_sample late;
	} __attribute__((packed)) in = {
	    .first = guest_at(START + PERIOD + 10),
	    .task = {.time = START + 5 * PERIOD + 20, .id = VP_ID_task, .tid = GUEST + 1},
	    .late = guest_at(START + 5 * PERIOD + 20),
	};
	union vp_any_record out[8];

	vp_profile_ingest(profile, 0, (char *)&in, sizeof(in));
	assert_int_equal(profile->samples, 5);
	assert_int_equal(profile->late, 3);
	assert_int_equal(read_back(profile, 8, out), 6);
	assert_int_equal(out[0].guest_sample.vcpu, 3); /* as its thread's name said */
	assert_int_equal(out[1].header.id, VP_ID_task);
	assert_int_equal(out[1].header.time, START + 2 * PERIOD + 20);
	for (unsigned i = 2; i < 5; i++) {
		assert_int_equal(out[i].header.time, START + i * PERIOD + 20);
		assert_int_equal(out[i].guest_sample.flags, VP_HAS_AS_ROOT | VP_LATE);
		assert_int_equal(out[i].guest_sample.ip, 0x400000);
	}
	assert_int_equal(out[5].header.time, START + 5 * PERIOD + 20);
	assert_int_equal(out[5].guest_sample.flags, VP_HAS_AS_ROOT);
}

/* Samples of VMs, ticks that were missed before them included, are in the account by mode. */
static void test_counts_by_mode(void **state)
{
	struct vp_profile_instrument *profile = profile_make();
	struct vp_session *session = profile->base.session;
	struct vp_sample_counts *counts = vp_session_sample_counts(session);
	struct {
		struct vp_guest_sample user;
		struct vp_guest_sample late;
		struct vp_vcpu_sample inside;
		struct vp_host_sample outside;
	} __attribute__((packed)) in = {
	    .user = guest_at(START + PERIOD + 10),
	    .late = guest_at(START + 5 * PERIOD + 20),
	    .inside = {.time = START + 5 * PERIOD + 30,
		       .id = VP_ID_vcpu_sample,
		       .vm = GUEST,
		       .tid = GUEST + 1,
		       .vcpu = 3,
		       .mode = VP_MODE_KERNEL},
	    .outside = {.time = START + 5 * PERIOD + 40,
			.id = VP_ID_host_sample,
			.pid = GUEST,
			.tid = GUEST,
			.mode = VP_MODE_USER},
	};
	const struct vp_record_header *record;
	struct vp_stream_reader *reader;

	in.late.mode = VP_MODE_GUEST_KERNEL;
	unlink(NAME "/account");
	vp_profile_ingest(profile, 0, (char *)&in, sizeof(in));
	assert_int_equal(counts->vms.count, 1);
	vp_sample_counts_write(counts, START + 6 * PERIOD, session->trace);
	assert_int_equal(counts->vms.count, 0);
	vp_sample_counts_write(counts, START + 7 * PERIOD, session->trace);
	vp_trace_flush(session->trace, (struct vp_stream_id){VP_STREAM_ACCOUNT, VP_NO_PCPU}, 0);
	expect_no_error(vp_stream_open(NAME "/account", &reader));
	record = vp_stream_next(reader);
	assert_non_null(record);
	const struct vp_vm_samples *samples = (const void *)record;
	assert_int_equal(samples->id, VP_ID_vm_samples);
	assert_int_equal(samples->time, START + 6 * PERIOD);
	assert_int_equal(samples->vm, GUEST);
	assert_int_equal(samples->guest_user, 1);
	assert_int_equal(samples->guest_kernel, 4);
	assert_int_equal(samples->host, 1);
	assert_null(vp_stream_next(reader));
	vp_stream_free(reader);
	vp_session_free(session);
}

/* A busy pCPU whose counter's period was too long: ticks up to the sample, none before the record
 * that precedes it. */
static void test_busy_gap(void **state)
{
	struct vp_profile_instrument *profile = profile_make();
	struct {
		struct vp_guest_sample first;
		struct vp_sample_period period;
		struct vp_guest_sample second;
		struct vp_sample_period longer;
		struct vp_guest_sample third;
	} in = {
	    .first = guest_at(START),
	    .period = {.time = START + 10 * PERIOD,
		       .id = VP_ID_sample_period,
		       .events = 4 * PERIOD},
	    .second = guest_at(START + 10 * PERIOD),
	    .longer = {.time = START + 12 * PERIOD,
		       .id = VP_ID_sample_period,
		       .events = 9 * PERIOD},
	    .third = guest_at(START + 12 * PERIOD),
	};
	static const unsigned times[] = {0, 6, 6, 7, 8, 9, 10, 11, 11, 12};
	union vp_any_record out[16];

	profile->trigger.by_time = false;
	profile->trigger.weighting = VP_WEIGHTING_TIME;
	vp_profile_stream(profile, 0)->late_from = UINT64_MAX;
	vp_profile_ingest(profile, 0, (char *)&in, sizeof(in));
	assert_int_equal(profile->samples, 8);
	assert_int_equal(read_back(profile, 16, out), VP_ARRAY_SIZE(times));
	for (size_t i = 0; i < VP_ARRAY_SIZE(times); i++)
		assert_int_equal(out[i].header.time, START + times[i] * PERIOD);
	assert_int_equal(out[5].guest_sample.flags, VP_HAS_AS_ROOT | VP_LATE);
	assert_int_equal(out[6].guest_sample.flags, VP_HAS_AS_ROOT);
}

/* A gap is no lateness where records were lost, or where it is too long. */
static void test_gaps(void **state)
{
	struct vp_guest_sample sample = guest_at(START + 5 * PERIOD);
	struct vp_profile_instrument *profile = profile_make();
	union vp_any_record out[4];

	vp_profile_stream(profile, 0)->may_fill = false;
	vp_profile_ingest(profile, 0, (char *)&sample, sizeof(sample));
	vp_profile_stream(profile, 0)->may_fill = true;
	sample.time += PERIOD;
	vp_profile_ingest(profile, 0, (char *)&sample, sizeof(sample));
	sample.time += 3600000000000;
	vp_profile_ingest(profile, 0, (char *)&sample, sizeof(sample));
	assert_int_equal(profile->late, 0);
	assert_int_equal(read_back(profile, 4, out), 3);
}

/* What was appended between two drains has a later time than the records drained after it. */
static void test_clock_in_between(void **state)
{
	enum { SAMPLES = 400 /* more than are copied */ };
	struct vp_profile_instrument *profile = profile_make();
	struct vp_clock_sync clock = {.time = START + 2 * PERIOD + 500, .id = VP_ID_clock_sync};
	static struct vp_guest_sample in[SAMPLES];
	static union vp_any_record out[SAMPLES + 1];

	for (unsigned i = 0; i < SAMPLES; i++)
		in[i] = guest_at(START + (i + 1) * PERIOD);
	vp_trace_append(profile->base.session->trace, vp_stream_of_pcpu(0), &clock);
	vp_profile_ingest(profile, 0, (char *)in, sizeof(in));
	assert_int_equal(vp_trace_written(profile->base.session->trace, VP_STREAMS_ALL),
			 SAMPLES + 1);
	assert_int_equal(read_back(profile, SAMPLES + 1, out), SAMPLES + 1);
	assert_int_equal(out[0].header.id, VP_ID_clock_sync);
	assert_int_equal(out[1].header.time, clock.time);
	assert_int_equal(out[2].header.time, clock.time);
	assert_int_equal(out[3].header.time, START + 3 * PERIOD);
}

/* The process of a second VM, and the thread of its vCPU 3. */
enum { OTHER = 2000, OTHER_THREAD = 2001 };

static void add_other(struct vp_session *session)
{
	struct vp_vm vm = {.pid = OTHER, .name = vp_strdup("other"), .uuid = vp_strdup("")};

	vm.agent = vp_strdup("");
	vm.memory = vp_strdup("");
	vp_vm_vcpu(&vm, 3)->tid = OTHER_THREAD;
	vp_vec_push(&session->vms, vm);
}

/* Of a VM that was not asked for, that it ran is all that is recorded; of the one that was, all. */
static void test_unchosen_vm(void **state)
{
	static const char *const names[] = {"other"};
	struct vp_guest_sample in[] = {guest_at(START + PERIOD), guest_at(START + PERIOD + 1)};
	struct vp_profile_instrument *profile = profile_make();
	union vp_any_record out[2];

	profile->base.session->options.vm_names = names;
	profile->base.session->options.n_vm_names = 1;
	add_other(profile->base.session);
	for (int i = 0; i < 2; i++) {
		in[i].guest_pid = 44;
		in[i].guest_tid = 45;
		in[i].exit_reason = 0x78;
		in[i].flags |= VP_BY_MEMORY | VP_HAS_EXIT_REASON;
	}
	in[1].vm = OTHER;
	in[1].tid = OTHER_THREAD;
	vp_profile_ingest(profile, 0, (char *)in, sizeof(in));
	assert_int_equal(read_back(profile, 2, out), 2);
	struct vp_guest_sample hidden = out[0].guest_sample, whole = out[1].guest_sample;
	assert_int_equal(hidden.ip, 0);
	assert_int_equal(hidden.as_root, 0);
	assert_int_equal(hidden.guest_pid, 0);
	assert_int_equal(hidden.guest_tid, 0);
	assert_int_equal(hidden.flags, VP_HIDDEN | VP_HAS_EXIT_REASON);
	assert_int_equal(hidden.vm, GUEST);
	assert_int_equal(hidden.tid, GUEST + 1);
	assert_int_equal(hidden.vcpu, 3);
	assert_int_equal(hidden.exit_reason, 0x78);
	in[1].vcpu = 3; /* as its thread's name said */
	assert_memory_equal(&whole, &in[1], sizeof(whole));
}

/* With -p and -t, samples of one of the processes or threads, host's and VMs', and no others. */
static void test_targets(void **state)
{
	static const struct {
		uint32_t pid, tid; /* 0: none */
		bool host, guest;
	} cases[] = {
	    {77, 0, true, false},    {0, 78, true, false},        {77, GUEST + 1, true, true},
	    {GUEST, 0, false, true}, {0, GUEST + 1, false, true}, {GUEST, 78, true, true},
	    {78, 77, false, false},  {0, 0, true, true},          {GUEST + 1, GUEST, false, false}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		uint32_t pid = cases[i].pid, tid = cases[i].tid;
		const struct vp_profile_targets targets = {.pids = {&pid, pid != 0, 1},
							   .tids = {&tid, tid != 0, 1}};
		struct vp_profile_instrument *profile = profile_make();
		struct {
			struct vp_host_sample host;
			struct vp_guest_sample guest;
		} __attribute__((packed)) in = {
		    .host = {.time = START, .id = VP_ID_host_sample, .pid = 77, .tid = 78},
		    .guest = guest_at(START + 1),
		};
		union vp_any_record out[2] = {0};
		profile->options.targets = &targets;
		vp_profile_ingest(profile, 0, (char *)&in, sizeof(in));
		assert_int_equal(profile->samples, cases[i].host + cases[i].guest);
		assert_int_equal(read_back(profile, 2, out), cases[i].host + cases[i].guest);
		if (cases[i].host)
			assert_int_equal(out[0].header.id, VP_ID_host_sample);
		if (cases[i].guest)
			assert_int_equal(out[cases[i].host].header.id, VP_ID_guest_sample);
	}
}

static void test_unchosen_chain(void **state)
{
	static const char *const names[] = {"other"};
	struct vp_guest_regs in[2] = {{.time = START,
				       .id = VP_ID_guest_regs,
				       .vm = GUEST,
				       .tid = GUEST + 1,
				       .flags = VP_HAS_AS_ROOT | VP_HAS_STACK | VP_BY_MEMORY,
				       .guest_pid = 44,
				       .guest_tid = 45,
				       .ip = 1,
				       .sp = 2,
				       .bp = 3,
				       .as_root = 4}};
	struct vp_profile_instrument *profile = profile_make();
	union vp_any_record out[2];

	profile->base.session->options.vm_names = names;
	profile->base.session->options.n_vm_names = 1;
	add_other(profile->base.session);
	in[1] = in[0];
	in[1].vm = OTHER;
	in[1].tid = OTHER_THREAD;
	vp_profile_ingest(profile, 0, (char *)in, sizeof(in));
	assert_int_equal(read_back(profile, 2, out), 2);
	struct vp_guest_regs hidden = out[0].guest_regs, whole = out[1].guest_regs;
	assert_int_equal(hidden.ip | hidden.sp | hidden.bp | hidden.as_root, 0);
	assert_int_equal(hidden.guest_pid | hidden.guest_tid, 0);
	assert_int_equal(hidden.flags, VP_HIDDEN);
	assert_int_equal(hidden.vm, GUEST);
	assert_memory_equal(&whole, &in[1], sizeof(whole));
}

/* Samples of two VMs on one pCPU, by turns: each vCPU's number is of its own VM, and so are threads
 * that a record tells. */
static void test_vcpus_of_two_vms(void **state)
{
	struct vp_profile_instrument *profile = profile_make();
	struct vp_session *session = profile->base.session;
	struct vp_guest_sample in[6];
	union vp_any_record out[6];

	add_other(session);
	for (unsigned i = 0; i < 6; i++) {
		bool other = i % 2;
		in[i] = guest_at(START + i);
		in[i].vm = other ? OTHER : GUEST;
		in[i].tid = in[i].vm + 1 + i / 2;
		/* The kernel tells the number of the second ones; the third are not known. */
		in[i].vcpu = (uint16_t)(i / 2 == 1 ? 5U + other : VP_VCPU_UNKNOWN);
	}
	vp_profile_ingest(profile, 0, (char *)in, sizeof(in));
	assert_int_equal(session->vms.count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct vp_vm *vm = &session->vms.at[i];
		assert_int_equal(vm->vcpus.count, 2);
		assert_int_equal(vm->vcpus.at[1].number, 5 + i);
		assert_int_equal(vm->vcpus.at[1].tid, vm->pid + 2);
	}
	assert_int_equal(read_back(profile, 6, out), 6);
	for (unsigned i = 0; i < 6; i++) {
		static const uint16_t numbers[] = {3, 3, 5, 6, VP_VCPU_UNKNOWN, VP_VCPU_UNKNOWN};
		assert_int_equal(out[i].guest_sample.vm, i % 2 ? OTHER : GUEST);
		assert_int_equal(out[i].guest_sample.vcpu, numbers[i]);
	}
}

/* One thread may run several vCPUs by turns, and then another VM's: each is noted. */
static void test_vcpus_of_one_thread(void **state)
{
	static const uint32_t vms[] = {GUEST, GUEST, OTHER, GUEST, OTHER};
	static const uint16_t numbers[] = {5, 7, 7, 5, 8};
	struct vp_profile_instrument *profile = profile_make();
	struct vp_session *session = profile->base.session;
	union vp_any_record out[1];

	add_other(session);
	for (unsigned i = 0; i < VP_ARRAY_SIZE(vms); i++) {
		struct vp_guest_sample sample = guest_at(START + i);
		sample.vm = vms[i];
		sample.tid = 77;
		sample.vcpu = numbers[i];
		vp_profile_ingest(profile, 0, (char *)&sample, sizeof(sample));
	}
	for (size_t i = 0; i < 2; i++) {
		static const uint32_t seen[][2] = {{5, 7}, {7, 8}};
		const struct vp_vm *vm = &session->vms.at[i];
		assert_int_equal(vm->vcpus.count, 3); /* and the one that was known */
		for (size_t j = 0; j < 2; j++) {
			assert_int_equal(vm->vcpus.at[1 + j].number, seen[i][j]);
			assert_int_equal(vm->vcpus.at[1 + j].tid, 77);
		}
	}
	assert_int_equal(read_back(profile, 1, out), VP_ARRAY_SIZE(vms));
}

/* Two VMs of one process: the vCPU's thread tells which one a record is about. */
static void test_vms_of_one_process(void **state)
{
	struct vp_profile_instrument *profile = profile_make();
	struct vp_session *session = profile->base.session;
	struct vp_vm second = vp_vm_of_id(GUEST | 1 << VP_PID_BITS);
	struct {
		struct vp_guest_sample first, second, unknown;
		struct vp_host_sample host;
	} __attribute__((packed))
	in = {.first = guest_at(START), .second = guest_at(START), .unknown = guest_at(START)};
	union vp_any_record out[4];

	second.name = vp_strdup("g");
	second.uuid = vp_strdup("");
	second.agent = vp_strdup("");
	second.memory = vp_strdup("");
	vp_vm_vcpu(&second, 3)->tid = GUEST + 9;
	vp_vec_push(&session->vms, second);
	vp_session_take_vms(session, 0);
	assert_int_equal(session->varying.count, 1);
	in.second.tid = GUEST + 9;
	in.unknown.tid = GUEST + 10; /* of a vCPU that was not seen yet */
	in.unknown.vcpu = 4;
	in.host = (struct vp_host_sample){
	    .time = START, .id = VP_ID_host_sample, .pid = GUEST, .tid = GUEST, .mode = 2};
	vp_profile_ingest(profile, 0, (char *)&in, sizeof(in));
	assert_int_equal(vp_vms_of_thread(&session->vms, GUEST, GUEST + 10)->nth, 1);
	assert_int_equal(read_back(profile, 4, out), 4);
	assert_int_equal(out[0].guest_sample.vm, GUEST);
	assert_int_equal(out[0].guest_sample.vcpu, 3);
	assert_int_equal(out[1].guest_sample.vm, GUEST | 1 << VP_PID_BITS);
	assert_int_equal(out[1].guest_sample.vcpu, 3);
	assert_int_equal(out[2].guest_sample.vm, GUEST | 1 << VP_PID_BITS);
	assert_int_equal(out[3].host_sample.pid, GUEST); /* a process, not a VM */
}

/* Of a process's VMs one that runs is meant, even if one that ended had the thread. */
static void test_vm_of_thread(void **state)
{
	struct vp_vm ended = {.pid = GUEST, .end = 5}, runs = {.pid = GUEST};
	vp_vms vms = {0};

	vp_vm_vcpu(&ended, 0)->tid = GUEST + 1;
	vp_vm_vcpu(&runs, 0)->tid = GUEST + 2;
	vp_vec_push(&vms, ended);
	vp_vec_push(&vms, runs);
	assert_ptr_equal(vp_vms_of_thread(&vms, GUEST, GUEST + 1), &vms.at[1]);
	assert_ptr_equal(vp_vms_of_thread(&vms, GUEST, GUEST + 3), &vms.at[1]);
	vms.at[1].end = 9;
	assert_ptr_equal(vp_vms_of_thread(&vms, GUEST, GUEST + 1), &vms.at[0]);
	assert_ptr_equal(vp_vms_of_thread(&vms, GUEST, GUEST + 3), &vms.at[1]);
	assert_null(vp_vms_of_thread(&vms, GUEST + 1, GUEST + 1));
	vp_vms_deinit(&vms);
}

/* The ticks that a late sample stands for have its call chain: it is before them. */
static void test_late_chain(void **state)
{
	struct vp_profile_instrument *profile = profile_make();
	struct {
		struct vp_chain_frames frames;
		struct vp_guest_sample late;
	} in = {
	    .frames = {.time = START + 4 * PERIOD + 20, .id = VP_ID_chain_frames, .tid = GUEST + 1},
	    .late = guest_at(START + 4 * PERIOD + 20),
	};
	union vp_any_record out[8];

	vp_profile_ingest(profile, 0, (char *)&in, sizeof(in));
	assert_int_equal(profile->late, 3);
	assert_int_equal(read_back(profile, 8, out), 5);
	assert_int_equal(out[0].header.id, VP_ID_chain_frames);
	assert_int_equal(out[1].guest_sample.flags & VP_LATE, VP_LATE);
	assert_int_equal(out[4].guest_sample.flags & VP_LATE, 0);
}

/* What the programs in the kernel do. */
static void ring_put(struct vp_rings *rings, uint32_t pcpu, const struct vp_task *record)
{
	struct vp_ring *ring = (void *)(rings->memory + pcpu * rings->stride);
	uint64_t offset = ring->head & (rings->size - 1), end = offset + sizeof(*record);

	memcpy((char *)(ring + 1) + offset, record, sizeof(*record));
	ring->head += sizeof(*record);
	if (end >= rings->size) {
		ring->lap_end = end;
		ring->head = ring->head - end + rings->size;
	}
}

struct taken {
	uint32_t next; /* tid that is expected */
	unsigned pieces;
};

static void take_tasks(void *context, uint32_t pcpu, char *records, size_t size)
{
	struct taken *taken = context;
	const struct vp_task *tasks = (const void *)records;

	assert_int_equal(pcpu, 1);
	assert_int_equal(size % sizeof(*tasks), 0);
	for (size_t i = 0; i < size / sizeof(*tasks); i++)
		assert_int_equal(tasks[i].tid, taken->next++);
	taken->pieces++;
}

/* However many are in the ring at a time, over many laps: each comes once, in order. */
static void test_ring_laps(void **state)
{
	struct taken taken = {0};
	struct vp_rings rings;
	uint32_t next = 0;
	int fd = memfd_create("rings", MFD_CLOEXEC);

	expect_no_error(vp_rings_plan(&rings, 2, 1, false));
	assert_int_equal(ftruncate(fd, (off_t)(2 * rings.stride + 4096)), 0);
	expect_no_error(vp_rings_map(&rings, fd));
	unsigned most = (unsigned)(rings.size / sizeof(struct vp_task)) - 8;
	for (unsigned round = 0; round < 500; round++) {
		for (unsigned i = 0; i < 1 + round * 7 % most; i++, next++)
			ring_put(&rings, 1, &(struct vp_task){.id = VP_ID_task, .tid = next});
		vp_rings_drain(&rings, 1, take_tasks, &taken);
		assert_int_equal(taken.next, next);
	}
	assert_true(taken.pieces > 500);
	vp_rings_drain(&rings, 0, take_tasks, &taken);
	assert_int_equal(vp_rings_lost(&rings, 1), 0);
	vp_rings_unmap(&rings);
	close(fd);
}

static void take_exit(struct vp_instrument *trace, uint64_t time, uint32_t pid)
{
	struct vp_trace_kvm_exit exit = {.time = time,
					 .id = VP_TRACE_ID_kvm_exit,
					 .size = VP_TRACE_SIZE_kvm_exit,
					 .tid = pid + 1,
					 .guest_rip = 0x1234,
					 .vm = pid,
					 .reason = 0x78};

	vp_instrument_trace_ingest(trace, 0, (char *)&exit, sizeof(exit));
}

static void add_vm(struct vp_session *session, uint32_t pid, uint32_t nth, const char *name)
{
	struct vp_vm vm = {.pid = pid, .nth = nth, .name = vp_strdup(name), .uuid = vp_strdup("")};

	vm.agent = vp_strdup("");
	vm.memory = vp_strdup("");
	vp_vm_vcpu(&vm, 0)->tid = pid + 1;
	vp_vec_push(&session->vms, vm);
}

/* Events of a VM get its number in the recording; where its guest was is told of those asked for,
 * and of no others. */
static void test_events_of_vms(void **state)
{
	static const char *const asked[] = {"asked"};
	static const uint8_t uuid[16];
	const struct vp_ctf_trace of = {.uuid = uuid, .hostname = "h", .machine = "host"};
	const struct vp_session_options options = {
	    .directory = NAME, .vm_names = asked, .n_vm_names = 1};
	struct vp_session *session = vp_session_new(&options);
	struct vp_instrument *trace = vp_instrument_trace(&(struct vp_instrument_trace_options){0});
	const struct vp_record_header *record;
	struct vp_stream_reader *reader;
	struct vp_trace_kvm_exit exits[3] = {0};
	size_t count = 0;

	vp_session_add(session, trace);
	add_vm(session, GUEST, 0, "gone");
	session->vms.at[0].end = 1;
	add_vm(session, GUEST, 1, "asked");
	add_vm(session, 2 * GUEST, 0, "other");
	vp_session_take_vms(session, 0);
	unlink(NAME "/trace-cpu0");
	expect_no_error(vp_trace_writer_create(NAME, &of, &session->trace));
	take_exit(trace, 10, GUEST);
	take_exit(trace, 20, 2 * GUEST);
	take_exit(trace, 15, GUEST); /* what interrupted it was first */
	vp_trace_flush(session->trace, (struct vp_stream_id){VP_STREAM_TRACE, 0}, 0);
	expect_no_error(vp_stream_open(NAME "/trace-cpu0", &reader));
	for (; (record = vp_stream_next(reader)) && count < 3; count++)
		memcpy(&exits[count], record, sizeof(exits[count]));
	assert_int_equal(count, 3);
	assert_int_equal(exits[0].vm, GUEST + (1 << VP_PID_BITS));
	assert_int_equal(exits[0].guest_rip, 0x1234);
	assert_int_equal(exits[1].vm, 2 * GUEST);
	assert_int_equal(exits[1].guest_rip, 0);
	assert_int_equal(exits[1].reason, 0x78);
	assert_int_equal(exits[2].time, 20);
	vp_stream_free(reader);
	vp_session_free(session);
}

/* More than a packet holds at once, some of them earlier than the one before, as where an
 * interrupt's program was first to write: none is lost, and none goes back in time. */
static void test_events_in_a_row(void **state)
{
	enum { MANY = 25000 };
	static const uint8_t uuid[16];
	const struct vp_ctf_trace of = {.uuid = uuid, .hostname = "h", .machine = "host"};
	const struct vp_session_options options = {.directory = NAME};
	struct vp_session *session = vp_session_new(&options);
	struct vp_instrument *trace = vp_instrument_trace(&(struct vp_instrument_trace_options){0});
	struct vp_buffer records = {0};
	struct vp_stream_reader *reader;

	vp_session_add(session, trace);
	unlink(NAME "/trace-cpu0");
	expect_no_error(vp_trace_writer_create(NAME, &of, &session->trace));
	for (uint32_t i = 0; i < MANY; i++) {
		const struct vp_trace_sched_switch change = {.time = 1000 + i - 3 * (i % 5 == 1),
							     .id = VP_TRACE_ID_sched_switch,
							     .size = VP_TRACE_SIZE_sched_switch,
							     .next_tid = i};
		vp_buffer_append(&records, &change, VP_TRACE_SIZE_sched_switch);
	}
	vp_instrument_trace_ingest(trace, 0, records.bytes, records.size);
	vp_trace_flush(session->trace, (struct vp_stream_id){VP_STREAM_TRACE, 0}, 0);
	expect_no_error(vp_stream_open(NAME "/trace-cpu0", &reader));
	for (uint32_t i = 0; i < MANY; i++) {
		const struct vp_trace_sched_switch *change = (const void *)vp_stream_next(reader);
		assert_non_null(change);
		assert_int_equal(change->next_tid, i);
		assert_int_equal(change->time, 1000 + i - (i % 5 == 1));
	}
	assert_null(vp_stream_next(reader));
	assert_int_equal(vp_trace_written(session->trace, VP_STREAMS(VP_STREAM_TRACE)), MANY);
	vp_stream_free(reader);
	vp_buffer_deinit(&records);
	vp_session_free(session);
}

/* So do the threads of its guest, and their names. */
static void test_guests_of_vms(void **state)
{
	static const uint8_t uuid[16];
	const struct vp_ctf_trace of = {.uuid = uuid, .hostname = "h", .machine = "host"};
	const struct vp_session_options options = {.directory = NAME};
	struct vp_session *session = vp_session_new(&options);
	struct vp_instrument *trace = vp_instrument_trace(&(struct vp_instrument_trace_options){0});
	struct vp_guest_task name = {
	    .time = 10, .id = VP_ID_guest_task, .vm = GUEST, .guest_tid = 7, .comm = "worker"};
	struct vp_trace_guest_switch change = {.time = 10,
					       .id = VP_TRACE_ID_guest_switch,
					       .size = VP_TRACE_SIZE_guest_switch,
					       .tid = GUEST + 1,
					       .vm = GUEST,
					       .guest_tid = 7,
					       .switches = 3};
	struct vp_stream_reader *reader;

	vp_session_add(session, trace);
	add_vm(session, GUEST, 0, "gone");
	session->vms.at[0].end = 1;
	add_vm(session, GUEST, 1, "there");
	vp_session_take_vms(session, 0);
	unlink(NAME "/trace-cpu0");
	expect_no_error(vp_trace_writer_create(NAME, &of, &session->trace));
	vp_instrument_trace_ingest(trace, 0, (char *)&name, sizeof(name));
	vp_instrument_trace_ingest(trace, 0, (char *)&change, VP_TRACE_SIZE_guest_switch);
	vp_trace_flush(session->trace, (struct vp_stream_id){VP_STREAM_TRACE, 0}, 0);
	expect_no_error(vp_stream_open(NAME "/trace-cpu0", &reader));
	const struct vp_guest_task *named = (const void *)vp_stream_next(reader);
	assert_int_equal(named->id, VP_ID_guest_task);
	assert_int_equal(named->vm, GUEST + (1 << VP_PID_BITS));
	const struct vp_trace_guest_switch *changed = (const void *)vp_stream_next(reader);
	assert_int_equal(changed->id, VP_TRACE_ID_guest_switch);
	assert_int_equal(changed->vm, GUEST + (1 << VP_PID_BITS));
	assert_int_equal(changed->guest_tid, 7);
	assert_int_equal(changed->switches, 3);
	assert_null(vp_stream_next(reader));
	vp_stream_free(reader);
	vp_session_free(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_counts_by_mode),
	    cmocka_unit_test(test_late_ticks),
	    cmocka_unit_test(test_gaps),
	    cmocka_unit_test(test_busy_gap),
	    cmocka_unit_test(test_clock_in_between),
	    cmocka_unit_test(test_unchosen_vm),
	    cmocka_unit_test(test_unchosen_chain),
	    cmocka_unit_test(test_targets),
	    cmocka_unit_test(test_vcpus_of_two_vms),
	    cmocka_unit_test(test_vcpus_of_one_thread),
	    cmocka_unit_test(test_late_chain),
	    cmocka_unit_test(test_vms_of_one_process),
	    cmocka_unit_test(test_ring_laps),
	    cmocka_unit_test(test_events_of_vms),
	    cmocka_unit_test(test_guests_of_vms),
	    cmocka_unit_test(test_events_in_a_row),
	    cmocka_unit_test(test_vm_of_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
