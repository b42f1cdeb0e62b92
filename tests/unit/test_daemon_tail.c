/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account of recordings that are being written, as it comes, from one to the next. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "daemon/account_tail.h"
#include "make_recording.h"
#include "schema/records.h"

#define SECOND 1000000000ULL

struct sums {
	uint64_t guest, wall, records;
};

static void take(void *context, const struct vp_record_header *record)
{
	struct sums *sums = context;
	const struct vp_vcpu_account *times = (const void *)record;

	if (record->id != VP_ID_vcpu_account)
		return;
	sums->records++;
	sums->guest += times->guest;
	sums->wall += times->end - times->begin;
}

/* A second of vCPU 0 of vm0, up to second `end`, half of it in the guest. */
static void put_second(struct made *made, uint64_t end)
{
	struct vp_vcpu_account record = {.time = end * SECOND,
					 .id = VP_ID_vcpu_account,
					 .vm = 1000,
					 .begin = (end - 1) * SECOND,
					 .end = end * SECOND,
					 .guest = SECOND / 2,
					 .halted = SECOND / 2};

	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_ACCOUNT, VP_NO_PCPU},
			&record);
}

static void flush(struct made *made)
{
	vp_trace_flush(made->writer, (struct vp_stream_id){VP_STREAM_ACCOUNT, VP_NO_PCPU}, 0);
}

static void begin(struct made *made, const char *name, uint64_t start)
{
	made_begin(made, name, 1);
	made->about.start = start;
	expect_no_error(vp_recording_write(name, &made->about));
	expect_no_error(vp_vms_write(name, &made->vms));
}

static int lock(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	return fd;
}

static void test_follows(void **state)
{
	struct sums sums = {0};
	struct vp_account_tail tail = {.take = take, .context = &sums};
	struct made first, second;

	begin(&first, "test_tail.1", 10 * SECOND);
	int locked = lock("test_tail.1");
	vp_account_tail_read(&tail, 0);
	vp_account_tail_follow(&tail, "test_tail.1", 0);
	vp_account_tail_read(&tail, 0);
	assert_int_equal(sums.records, 0);
	put_second(&first, 11);
	flush(&first);
	vp_account_tail_read(&tail, 0);
	assert_int_equal(sums.records, 1);
	vp_account_tail_read(&tail, 0);
	assert_int_equal(sums.records, 1);
	put_second(&first, 12);
	flush(&first);
	vp_account_tail_read(&tail, 0);
	assert_int_equal(sums.records, 2);
	assert_string_equal(tail.vms.at[0].name, "vm0");
	/* The next one begins at 12.5 s; the first ends at 13 s: no time is lost or counted
	 * twice. */
	begin(&second, "test_tail.2", 12 * SECOND + SECOND / 2);
	put_second(&second, 13);
	put_second(&second, 14);
	flush(&second);
	vp_account_tail_follow(&tail, "test_tail.2", 0);
	vp_account_tail_read(&tail, SECOND);
	assert_int_equal(sums.records, 2);
	put_second(&first, 13);
	flush(&first);
	close(locked);
	vp_account_tail_read(&tail, 2 * SECOND);
	assert_int_equal(sums.wall, 4 * SECOND);
	assert_int_equal(sums.guest, 2 * SECOND);
	assert_int_equal(tail.reached, 14 * SECOND);
	assert_int_equal(tail.vms.count, 1);
	made_end(&first, 0);
	made_end(&second, 0);
	vp_account_tail_deinit(&tail);
}

/* A recorder that does not end does not hold up the next one for ever. */
static void test_patience(void **state)
{
	struct sums sums = {0};
	struct vp_account_tail tail = {.take = take, .context = &sums};
	struct made first, second;

	begin(&first, "test_tail.1", 10 * SECOND);
	begin(&second, "test_tail.2", 20 * SECOND);
	int locked = lock("test_tail.1");
	put_second(&second, 21);
	flush(&second);
	vp_account_tail_follow(&tail, "test_tail.1", 0);
	vp_account_tail_follow(&tail, "test_tail.2", SECOND);
	vp_account_tail_read(&tail, (1 + VP_TAIL_PATIENCE_S) * SECOND);
	assert_int_equal(sums.records, 0);
	vp_account_tail_read(&tail, (2 + VP_TAIL_PATIENCE_S) * SECOND);
	assert_int_equal(sums.records, 1);
	close(locked);
	made_end(&first, 0);
	made_end(&second, 0);
	vp_account_tail_deinit(&tail);
}

static bool keeps_none(void *context, uint32_t id)
{
	return false;
}

static bool keeps_all(void *context, uint32_t id)
{
	return true;
}

/* VMs that are gone are forgotten, unless somebody still wants them. */
static void test_forget(void **state)
{
	struct sums sums = {0};
	struct vp_account_tail tail = {.take = take, .context = &sums};
	struct made made;

	begin(&made, "test_tail.1", 10 * SECOND);
	vp_account_tail_follow(&tail, "test_tail.1", 0);
	vp_account_tail_read(&tail, 0);
	assert_int_equal(tail.vms.count, 1);
	assert_true(vp_account_tail_has(&tail, &tail.vms.at[0]));
	vp_account_tail_forget(&tail, keeps_none, NULL);
	assert_int_equal(tail.vms.count, 1);
	made.vms.at[0].end = 12 * SECOND;
	expect_no_error(vp_vms_write("test_tail.1", &made.vms));
	vp_account_tail_read(&tail, 0);
	assert_false(vp_account_tail_has(&tail, &tail.vms.at[0]));
	vp_account_tail_forget(&tail, keeps_all, NULL);
	assert_int_equal(tail.vms.count, 1);
	vp_account_tail_forget(&tail, keeps_none, NULL);
	assert_int_equal(tail.vms.count, 0);
	made_end(&made, 0);
	vp_account_tail_deinit(&tail);
}

/* A packet whose end is not written yet is read when it is. */
static void test_half_a_packet(void **state)
{
	struct made made;
	struct vp_buffer bytes = {0};
	struct vp_stream_reader *stream;

	begin(&made, "test_tail.1", 10 * SECOND);
	put_second(&made, 11);
	put_second(&made, 12);
	flush(&made);
	made_end(&made, 0);
	expect_no_error(vp_file_read("test_tail.1/host/account", 1 << 20, &bytes));
	for (size_t size = 0; size < bytes.size; size += 7) {
		mkdir("test_tail.3", 0700);
		expect_no_error(vp_file_publish("test_tail.3/account", "", 0));
		int fd = open("test_tail.3/account", O_WRONLY | O_APPEND | O_CLOEXEC);
		assert_int_equal(vp_fd_write_all(fd, bytes.bytes, size), 0);
		expect_no_error(vp_stream_open("test_tail.3/account", &stream));
		vp_stream_follow(stream);
		assert_null(vp_stream_next(stream));
		assert_int_equal(vp_fd_write_all(fd, bytes.bytes + size, bytes.size - size), 0);
		assert_non_null(vp_stream_next(stream));
		assert_non_null(vp_stream_next(stream));
		assert_null(vp_stream_next(stream));
		assert_int_equal(vp_stream_health(stream).damaged, 0);
		vp_stream_free(stream);
		close(fd);
	}
	vp_buffer_deinit(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_follows),
	    cmocka_unit_test(test_patience),
	    cmocka_unit_test(test_forget),
	    cmocka_unit_test(test_half_a_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
