/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets in memory: bounded, the oldest go first, what they said that still holds stays. */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/control.h"
#include "session/session.h"
#include "store/recording.h"
#include "store/stream_state.h"
#include "store/trace_reader.h"
#include "store/trace_writer.h"

#define NAME "test_flight.rec"

enum { ROOM = VP_PACKET_STORE_MIN };

static const struct vp_stream_id ACCOUNT = {VP_STREAM_ACCOUNT, VP_NO_PCPU};

/* What the store said: the number of each packet is its first time. */
struct told {
	uint64_t overwritten, next, bytes, count;
};

static void take_overwritten(void *context, const struct vp_stored_packet *packet)
{
	struct told *told = context;

	assert_int_equal(packet->first, told->overwritten);
	told->overwritten++;
}

static void take_kept(void *context, const struct vp_stored_packet *packet)
{
	struct told *told = context;

	assert_int_equal(packet->first, told->next);
	for (size_t i = 0; i < packet->size; i++)
		assert_int_equal(packet->bytes[i], (char)packet->first);
	told->next++;
	told->bytes += packet->size;
	told->count++;
}

static void expect_text(char *text, const char *part)
{
	assert_non_null(text);
	if (!strstr(text, part))
		fail_msg("'%s' does not say '%s'", text, part);
	free(text);
}

/* Bytes of address space of this process. */
static size_t mapped(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file && fscanf(file, "%lu", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * (size_t)getpagesize();
}

/* Readers are forked while a flight recorder records: what is overwritten then is not in memory
 * once more for each of them. */
static void test_store_is_not_inherited(void **state)
{
	struct vp_packet_store *store;
	size_t bytes = 16 * ROOM, before = mapped();
	int status;

	expect_no_error(vp_packet_store_new(bytes, take_overwritten, NULL, &store));
	assert_true(mapped() >= before + bytes);
	pid_t child = fork();
	if (child == 0)
		_exit(mapped() >= before + bytes);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	vp_packet_store_free(store);
}

/* All sizes, again and again around the room: what is left is the newest, in order, whole. */
static void test_store(void **state)
{
	struct vp_packet_store *store;
	struct told told = {0};
	static char bytes[VP_PACKET_MAX];

	expect_no_error(vp_packet_store_new(ROOM, take_overwritten, &told, &store));
	for (uint64_t i = 0; i < 3000; i++) {
		size_t size = i % 7 == 3 ? sizeof(bytes) : (i * 7919) % 30000;
		memset(bytes, (char)i, size);
		const struct vp_stored_packet packet = {.stream = vp_stream_of_pcpu(i % 3),
							.n = 1,
							.first = i,
							.last = i,
							.size = size,
							.bytes = bytes};
		vp_packet_store_put(store, &packet);
		if (i % 50 && i < 2990)
			continue;
		told.next = told.overwritten;
		told.bytes = told.count = 0;
		vp_packet_store_each(store, take_kept, &told);
		assert_int_equal(told.next, i + 1);
		assert_true(told.count > 0 && told.bytes <= ROOM);
		/* What is not used is at most what the largest packet did not find behind the last
		 * one, twice. */
		assert_true(i < 100 || told.bytes > ROOM / 4);
	}
	vp_packet_store_free(store);
}

static void test_store_too_small(void **state)
{
	struct vp_packet_store *store;
	struct vp_error *error = vp_packet_store_new(ROOM - 1, take_overwritten, NULL, &store);

	assert_non_null(strstr(vp_error_message(error), "at least"));
	vp_error_free(error);
}

static struct vp_trace_writer *begin_writer(void)
{
	static const uint8_t uuid[16] = {1, 2, 3};
	const struct vp_ctf_trace trace = {uuid, "made", "host", 0};
	struct vp_trace_writer *writer;

	assert_int_equal(system("rm -rf " NAME " && mkdir " NAME), 0);
	expect_no_error(vp_trace_writer_create(NAME "/host", &trace, &writer));
	expect_no_error(vp_trace_writer_keep(writer, ROOM));
	return writer;
}

static void put_sample(struct vp_trace_writer *writer, uint32_t pcpu, uint64_t time, uint64_t ip)
{
	struct vp_host_sample sample = {
	    .time = time, .id = VP_ID_host_sample, .mode = VP_MODE_KERNEL, .ip = ip};

	vp_trace_append(writer, vp_stream_of_pcpu(pcpu), &sample);
}

static void put_task(struct vp_trace_writer *writer, uint64_t time, uint32_t tid, const char *comm)
{
	struct vp_task task = {.time = time, .id = VP_ID_task, .pid = tid, .tid = tid};

	strcpy(task.comm, comm);
	vp_trace_append(writer, vp_stream_of_pcpu(0), &task);
}

struct found {
	uint64_t samples, first, last, records, lost;
	char names[8][VP_COMM_SIZE]; /* by tid */
	uint64_t name_times[8];
	uint32_t last_tid;
	uint64_t loss;
};

static void take_record(struct found *found, const struct vp_record_header *record)
{
	const struct vp_task *task = (const void *)record;

	assert_true(record->time >= found->last);
	found->last = record->time;
	if (!found->records++)
		found->first = record->time;
	found->samples += record->id == VP_ID_host_sample;
	if (record->id == VP_ID_task) {
		memcpy(found->names[task->tid], task->comm, VP_COMM_SIZE);
		found->name_times[task->tid] = task->time;
		if (!found->samples)
			found->last_tid = task->tid;
	}
	if (record->id == VP_ID_account_loss)
		found->loss = ((const struct vp_account_loss *)record)->sites;
}

static struct found read_stream(const char *path, struct vp_stream_id id)
{
	vp_stream_readers streams = {0};
	const struct vp_record_header *record;
	struct found found = {0};

	expect_no_error(vp_trace_open(path, VP_STREAMS(id.kind), &streams));
	vp_vec_each (&streams, stream) {
		while ((record = vp_stream_next(*stream)))
			if (vp_stream_cpu(*stream) == id.pcpu)
				take_record(&found, record);
		assert_int_equal(vp_stream_health(*stream).damaged, 0);
		if (vp_stream_cpu(*stream) == id.pcpu)
			found.lost = vp_stream_health(*stream).lost;
	}
	vp_trace_close(&streams);
	return found;
}

/* Names given at the begin and never again are there after all else was overwritten. */
static void test_state_survives(void **state)
{
	struct vp_trace_writer *writer = begin_writer();
	struct vp_trace_counts counts;
	uint64_t time = 10;

	put_task(writer, time, 1, "one");
	put_task(writer, time, 2, "two before");
	put_task(writer, time, 2, "two");
	put_task(writer, time, 3, "three");
	for (int second = 0; second < 100; second++) {
		for (int i = 0; i < 1000; i++)
			put_sample(writer, 0, ++time, (uint64_t)second);
		put_sample(writer, 1, time, 0);
		vp_trace_flush(writer, vp_stream_of_pcpu(0), 40);
		vp_trace_flush(writer, vp_stream_of_pcpu(1), second < 99 ? 0 : 5);
	}
	uint64_t reach = vp_trace_writer_reach(writer);
	assert_true(reach > 10 && reach < time);
	expect_no_error(vp_trace_writer_snapshot(writer, NAME "/host.part", reach + 1, &counts));
	struct found found = read_stream(NAME "/host.part", vp_stream_of_pcpu(0));
	assert_string_equal(found.names[1], "one");
	assert_string_equal(found.names[2], "two");
	assert_string_equal(found.names[3], "three");
	assert_int_equal(found.name_times[1], reach + 1);
	assert_int_equal(found.last_tid, 3);
	assert_int_equal(found.first, reach + 1);
	assert_int_equal(found.last, time);
	/* One sample each time: none is missing, none is from before. */
	assert_int_equal(found.samples, time - reach);
	/* 40 were lost before what is left. */
	assert_int_equal(found.lost, 0);
	struct found other = read_stream(NAME "/host.part", vp_stream_of_pcpu(1));
	assert_int_equal(other.lost, 5);
	assert_int_equal(counts.lost[VP_STREAM_PCPU], 5);
	assert_int_equal(counts.records[VP_STREAM_PCPU], found.records + other.records);
	vp_trace_writer_free(writer);
}

/* Nothing was overwritten: a snapshot from any time on has all since, and names from before. */
static void test_cut(void **state)
{
	struct vp_trace_writer *writer = begin_writer();
	struct vp_account_loss loss = {.time = 500, .id = VP_ID_account_loss, .sites = 7};
	struct vp_trace_counts counts;

	vp_trace_flush(writer, vp_stream_of_pcpu(0), 0); /* opens it */
	put_task(writer, 100, 1, "one");
	for (uint64_t time = 101; time <= 1000; time++)
		put_sample(writer, 0, time, 0);
	put_task(writer, 1000, 2, "two");
	vp_trace_append(writer, ACCOUNT, &loss);
	loss.time = 900;
	vp_trace_append(writer, ACCOUNT, &loss);
	loss.time = 1000;
	loss.sites = 9;
	vp_trace_append(writer, ACCOUNT, &loss);
	vp_trace_flush(writer, vp_stream_of_pcpu(0), 3);
	vp_trace_flush(writer, vp_stream_of_pcpu(2), 0); /* empty */
	vp_trace_flush(writer, ACCOUNT, 0);
	assert_int_equal(vp_trace_writer_reach(writer), 0);
	expect_no_error(vp_trace_writer_snapshot(writer, NAME "/host.part", 900, &counts));
	struct found found = read_stream(NAME "/host.part", vp_stream_of_pcpu(0));
	assert_int_equal(found.samples, 101);
	assert_int_equal(found.first, 900);
	assert_int_equal(found.name_times[1], 900);
	assert_int_equal(found.name_times[2], 1000);
	assert_int_equal(found.lost, 3);
	/* The account of 900 is of the time before it. */
	struct found account = read_stream(NAME "/host.part", ACCOUNT);
	assert_int_equal(account.records, 2);
	assert_int_equal(account.first, 900);
	assert_int_equal(account.loss, 9);
	/* A stream without records has its file, too. */
	assert_int_equal(access(NAME "/host.part/cpu2", F_OK), 0);
	assert_int_equal(access(NAME "/host.part/metadata", F_OK), 0);
	/* Written once more, to where the writer is. */
	expect_no_error(vp_trace_writer_snapshot(writer, NAME "/host", 0, &counts));
	assert_int_equal(read_stream(NAME "/host", vp_stream_of_pcpu(0)).samples, 900);
	vp_trace_writer_free(writer);
}

/* Only losses are new: they are in the snapshot. */
static void test_losses_alone(void **state)
{
	struct vp_trace_writer *writer = begin_writer();
	struct vp_trace_counts counts;

	put_sample(writer, 0, 100, 0);
	vp_trace_flush(writer, vp_stream_of_pcpu(0), 0);
	vp_trace_flush(writer, vp_stream_of_pcpu(0), 12);
	expect_no_error(vp_trace_writer_snapshot(writer, NAME "/host.part", 90, &counts));
	assert_int_equal(read_stream(NAME "/host.part", vp_stream_of_pcpu(0)).lost, 12);
	assert_int_equal(counts.lost[VP_STREAM_PCPU], 12);
	vp_trace_writer_free(writer);
}

/* A child asks, as another process would. */
static void test_control(void **state)
{
	int listener = -1, status;
	char *path;

	assert_int_equal(system("rm -rf " NAME " && mkdir " NAME), 0);
	struct vp_error *error = vp_control_ask(NAME, &path);
	assert_string_equal(vp_error_message(error),
			    "no 'vperf record --flight' records to '" NAME "'");
	vp_error_free(error);
	expect_no_error(vp_control_listen(NAME, &listener));
	assert_int_equal(vp_control_accept(listener), -1);
	for (int fails = 0; fails < 2; fails++) {
		pid_t child = fork();
		if (!child) {
			error = vp_control_ask(NAME, &path);
			_exit(fails ? error && !strcmp(vp_error_message(error), "no room")
				    : !error && !strcmp(path, "here it is"));
		}
		int connection;
		while ((connection = vp_control_accept(listener)) < 0)
			usleep(1000);
		error = fails ? vp_error_new("no room") : NULL;
		vp_control_answer(connection, "here it is", error);
		vp_error_free(error);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(WEXITSTATUS(status), 1);
	}
	/* A recorder has its directory open. */
	VP_AUTO_CLOSE int directory = open(NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	expect_no_error(vp_control_find(getpid(), &path));
	assert_non_null(strstr(path, "/" NAME));
	free(path);
	struct stat info;
	assert_int_equal(stat(NAME "/control", &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	vp_control_close(NAME, listener);
	assert_int_equal(access(NAME "/control", F_OK), -1);
	error = vp_control_find(getpid(), &path);
	assert_non_null(error);
	vp_error_free(error);
}

/* Conditions may hold for weeks: what is written of them is limited. */
static void test_snapshot_limits(void **state)
{
	struct vp_snapshot_limits limits = {.count = 3, .bytes = 1 << 20, .free_bytes = 0};
	struct vp_snapshots taken = {0};
	static char bytes[300000];

	memset(bytes, 1, sizeof(bytes));
	mkdir(NAME ".one", 0700);
	temporary_file(NAME ".one/file", bytes, sizeof(bytes));
	assert_null(vp_snapshots_used_up(&taken, &limits));
	assert_null(vp_snapshots_no_room(&taken, &limits, "."));
	vp_snapshots_add(&taken, NAME ".one");
	assert_in_range(taken.bytes, sizeof(bytes), sizeof(bytes) + 65536);
	assert_null(vp_snapshots_used_up(&taken, &limits));
	vp_snapshots_add(&taken, NAME ".one");
	assert_null(vp_snapshots_used_up(&taken, &limits));
	vp_snapshots_add(&taken, NAME ".one"); /* the fourth would be more than 1 MiB, too */
	expect_text(vp_snapshots_used_up(&taken, &limits), "3 were taken (--snapshot-max)");
	limits.count = 100;
	expect_text(vp_snapshots_used_up(&taken, &limits), "--snapshot-size");
	limits.bytes = 2 << 20;
	assert_null(vp_snapshots_used_up(&taken, &limits));
	limits.free_bytes = 1ULL << 60;
	expect_text(vp_snapshots_no_room(&taken, &limits, "."), "(--snapshot-free)");
	unlink(NAME ".one/file");
	rmdir(NAME ".one");
}

/* Names of guests' threads: each VM has its own numbers. Two may share a place, by chance. */
static void test_names_of_guests_are_kept(void **state)
{
	struct vp_stream_state kept = {0};
	struct vp_buffer out = {0};

	for (uint32_t i = 0; i < 8; i++) {
		const struct vp_guest_task task = {.time = i,
						   .id = VP_ID_guest_task,
						   .vm = 100 + i / 4,
						   .guest_pid = 7,
						   .guest_tid = 7 + i % 4};
		vp_stream_state_see(&kept, (const void *)&task);
	}
	uint64_t n = vp_stream_state_put(&kept, 50, &out);
	assert_in_range(n, 6, 8);
	assert_int_equal(out.size, n * sizeof(struct vp_guest_task));
	assert_int_equal(((const struct vp_guest_task *)(const void *)out.bytes)->time, 50);
	vp_buffer_deinit(&out);
	vp_stream_state_deinit(&kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_store),
	    cmocka_unit_test(test_snapshot_limits),
	    cmocka_unit_test(test_store_is_not_inherited),
	    cmocka_unit_test(test_store_too_small),
	    cmocka_unit_test(test_state_survives),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_losses_alone),
	    cmocka_unit_test(test_control),
	    cmocka_unit_test(test_names_of_guests_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
