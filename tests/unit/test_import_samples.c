/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of another program as vperf's own records, of a host with two VMs. */
#include "unit.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/file.h"
#include "import/common/import_channel.h"
#include "import/recording/import_samples.h"
#include "make_recording.h"
#include "schema/chain_end.h"
#include "schema/chain_frames.h"
#include "store/trace_reader.h"

#define NAME "test_import_samples.rec"

static struct vp_buffer given;

static void give(struct vp_import_sample sample)
{
	vp_buffer_append(&given, &sample, sizeof(sample));
	for (uint64_t i = 0; i < (uint64_t)sample.kernel + sample.user; i++)
		vp_buffer_append(&given, &i, sizeof(i));
}

/* One that is not as expected is refused at once. */
static bool take_into(struct made *made, struct vp_import_samples *samples, uint32_t cpu)
{
	bool good = vp_import_samples_take(samples, made->writer, cpu,
					   (struct vp_slice){given.bytes, given.size});

	given.size = 0;
	return good;
}

/* A line for each record of pCPU 3. */
static void expect_records(const char *expected)
{
	const struct vp_record_header *record;
	struct vp_stream_reader *reader;
	struct vp_buffer text = {0};

	expect_no_error(vp_stream_open(NAME "/host/cpu3", &reader));
	while ((record = vp_stream_next(reader))) {
		union vp_any_record any = {0};
		memcpy(&any, record, vp_record_size(record->id));
		vp_buffer_printf(&text, "%llu ", (unsigned long long)any.header.time);
		if (record->id == VP_ID_task)
			vp_buffer_printf(&text, "task %u/%u %.16s\n", any.task.pid, any.task.tid,
					 any.task.comm);
		else if (record->id == VP_ID_chain_frames)
			vp_buffer_printf(
			    &text, "frames %u of %u: %u from %llu, end %u\n", any.chain_frames.mode,
			    any.chain_frames.tid, any.chain_frames.count,
			    (unsigned long long)any.chain_frames.ips[0], any.chain_frames.end);
		else if (record->id == VP_ID_sample_period)
			vp_buffer_printf(&text, "period %llu\n",
					 (unsigned long long)any.sample_period.events);
		else if (record->id == VP_ID_host_sample)
			vp_buffer_printf(&text, "host %u/%u mode %u at %llx\n", any.host_sample.pid,
					 any.host_sample.tid, any.host_sample.mode,
					 (unsigned long long)any.host_sample.ip);
		else if (record->id == VP_ID_vcpu_sample)
			vp_buffer_printf(&text, "vcpu %u/%u thread %u mode %u at %llx\n",
					 any.vcpu_sample.vm, any.vcpu_sample.vcpu,
					 any.vcpu_sample.tid, any.vcpu_sample.mode,
					 (unsigned long long)any.vcpu_sample.ip);
		else
			vp_buffer_printf(&text, "guest %u/%u thread %u mode %u at %llx: %u/%u%s\n",
					 any.guest_sample.vm, any.guest_sample.vcpu,
					 any.guest_sample.tid, any.guest_sample.mode,
					 (unsigned long long)any.guest_sample.ip,
					 any.guest_sample.guest_pid, any.guest_sample.guest_tid,
					 any.guest_sample.flags & VP_BY_MEMORY ? " told" : "");
	}
	assert_string_equal(vp_buffer_text(&text), expected);
	vp_buffer_deinit(&text);
	vp_stream_free(reader);
}

static void begin(struct made *made, struct vp_import_samples *samples)
{
	made_begin(made, NAME, 2);
	*samples = (struct vp_import_samples){0};
	vp_import_samples_begin(samples, NAME, &made->vms);
}

static void end(struct made *made, struct vp_import_samples *samples)
{
	vp_import_samples_deinit(samples);
	made->pcpus = 4;
	made_end(made, 10);
	vp_buffer_deinit(&given);
	given = (struct vp_buffer){0};
}

static void test_samples(void **state)
{
	struct vp_import_samples samples;
	struct made made;

	begin(&made, &samples);
	samples.by_period = true;
	give((struct vp_import_sample){.time = 1,
				       .ip = 0x10,
				       .period = 7,
				       .pid = 50,
				       .tid = 51,
				       .mode = VP_MODE_USER,
				       .comm = "make"});
	/* vm1's vCPU 1, in the host's kernel and in its guest. */
	give((struct vp_import_sample){.time = 2,
				       .ip = 0x20,
				       .period = 8,
				       .pid = 2000,
				       .tid = 2002,
				       .mode = VP_MODE_KERNEL,
				       .comm = "CPU 1/KVM"});
	give((struct vp_import_sample){.time = 3,
				       .ip = 0x30,
				       .period = 9,
				       .pid = 2000,
				       .tid = 2002,
				       .mode = VP_MODE_GUEST_KERNEL,
				       .comm = "CPU 1/KVM"});
	/* Told of a guest's own thread. */
	give((struct vp_import_sample){.time = 4,
				       .ip = 0x40,
				       .period = 6,
				       .pid = 70,
				       .tid = 71,
				       .machine = 2000,
				       .vcpu = 1,
				       .mode = VP_MODE_GUEST_USER,
				       .comm = "worker"});
	assert_true(take_into(&made, &samples, 3));
	assert_int_equal(samples.strange, 0);
	/* Of no VM that is known: a thread that is no vCPU's, a machine, a machine outside. */
	give((struct vp_import_sample){.time = 5, .tid = 51, .mode = VP_MODE_GUEST_USER});
	give((struct vp_import_sample){.time = 6, .machine = 3000, .mode = VP_MODE_GUEST_USER});
	give((struct vp_import_sample){.time = 7, .machine = 2000, .mode = VP_MODE_USER});
	assert_true(take_into(&made, &samples, 3));
	assert_int_equal(samples.strange, 3);
	end(&made, &samples);
	expect_records("1 task 50/51 make\n"
		       "1 period 7\n"
		       "1 host 50/51 mode 2 at 10\n"
		       "2 task 2000/2002 CPU 1/KVM\n"
		       "2 period 8\n"
		       "2 vcpu 2000/1 thread 2002 mode 1 at 20\n"
		       "3 period 9\n"
		       "3 guest 2000/1 thread 2002 mode 4 at 30: 0/0\n"
		       "4 period 6\n"
		       "4 guest 2000/1 thread 2002 mode 5 at 40: 70/71 told\n");
}

/* A thread's name when it is new or another one, by pCPU; none is no name. */
static void test_names(void **state)
{
	static const char *const names[] = {"one", "one", "", "two", "two", "one"};
	struct vp_import_samples samples;
	struct made made;

	begin(&made, &samples);
	for (uint64_t i = 0; i < VP_ARRAY_SIZE(names); i++) {
		struct vp_import_sample sample = {
		    .time = i + 1, .pid = 5, .tid = 5, .mode = VP_MODE_KERNEL};
		memcpy(sample.comm, names[i], strlen(names[i]));
		give(sample);
	}
	assert_true(take_into(&made, &samples, 3));
	give((struct vp_import_sample){
	    .time = 9, .pid = 5, .tid = 5, .mode = VP_MODE_KERNEL, .comm = "one"});
	assert_true(take_into(&made, &samples, 2));
	end(&made, &samples);
	expect_records("1 task 5/5 one\n1 host 5/5 mode 1 at 0\n2 host 5/5 mode 1 at 0\n"
		       "3 host 5/5 mode 1 at 0\n4 task 5/5 two\n4 host 5/5 mode 1 at 0\n"
		       "5 host 5/5 mode 1 at 0\n6 task 5/5 one\n6 host 5/5 mode 1 at 0\n");
	/* Another pCPU's stream needs the name, too. */
	struct vp_buffer bytes = {0};
	expect_no_error(vp_file_read(NAME "/host/cpu2", 1 << 20, &bytes));
	assert_int_equal(bytes.size, sizeof(struct vp_packet_header) + sizeof(struct vp_task) +
					 sizeof(struct vp_host_sample));
	vp_buffer_deinit(&bytes);
}

/* Frames in records of eight, of each side; more than there is room for are cut, and said to be. */
static void test_frames(void **state)
{
	struct vp_import_samples samples;
	struct made made;

	begin(&made, &samples);
	give((struct vp_import_sample){
	    .time = 1, .tid = 5, .mode = VP_MODE_KERNEL, .kernel = 8, .user = 9});
	give((struct vp_import_sample){.time = 2, .tid = 5, .mode = VP_MODE_USER, .user = 1});
	give((struct vp_import_sample){
	    .time = 3, .tid = 5, .mode = VP_MODE_USER, .user = VP_CHAIN_FRAMES});
	give((struct vp_import_sample){
	    .time = 4, .tid = 5, .mode = VP_MODE_USER, .user = VP_CHAIN_FRAMES + 1});
	assert_true(take_into(&made, &samples, 3));
	end(&made, &samples);
	struct vp_buffer text = {0};
	vp_buffer_string(&text, "1 frames 1 of 5: 8 from 0, end 0\n"
				"1 frames 2 of 5: 8 from 8, end 255\n"
				"1 frames 2 of 5: 1 from 16, end 0\n"
				"1 host 0/5 mode 1 at 0\n"
				"2 frames 2 of 5: 1 from 0, end 0\n"
				"2 host 0/5 mode 2 at 0\n");
	for (unsigned sample = 3; sample < 5; sample++) {
		for (unsigned i = 0; i < 8; i++)
			vp_buffer_printf(&text, "%u frames 2 of 5: 8 from %u, end %u\n", sample,
					 8 * i,
					 i < 7         ? VP_CHAIN_GOES_ON
					 : sample == 3 ? VP_CHAIN_WHOLE
						       : VP_CHAIN_TOO_DEEP);
		vp_buffer_printf(&text, "%u host 0/5 mode 2 at 0\n", sample);
	}
	expect_records(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
}

/* Another process says what there is. */
static void test_damaged(void **state)
{
	struct vp_import_samples samples;
	struct made made;

	begin(&made, &samples);
	give((struct vp_import_sample){.time = 1, .mode = VP_MODE_USER, .user = 2});
	given.size--;
	assert_false(take_into(&made, &samples, 3));
	give((struct vp_import_sample){.time = 1, .mode = VP_MODE_USER});
	given.size--;
	assert_false(take_into(&made, &samples, 3));
	give((struct vp_import_sample){.time = 1, .mode = 0});
	assert_false(take_into(&made, &samples, 3));
	give((struct vp_import_sample){.time = 1, .mode = VP_MODE_GUEST_USER + 1});
	assert_false(take_into(&made, &samples, 3));
	assert_true(take_into(&made, &samples, 3));
	give((struct vp_import_sample){.time = 1, .mode = VP_MODE_USER});
	assert_true(take_into(&made, &samples, 3));
	end(&made, &samples);
	expect_records("1 host 0/0 mode 2 at 0\n");
}

/* Pieces of symbol maps, each behind the ones before it, in its own machine's file. */
static void test_maps(void **state)
{
	struct vp_import_samples samples;
	struct vp_buffer text = {0};
	struct made made;

	begin(&made, &samples);
	expect_no_error(vp_import_samples_map(&samples, 0, (struct vp_slice){"a\n", 2}));
	expect_no_error(vp_import_samples_map(&samples, 2000, (struct vp_slice){"g\n", 2}));
	expect_no_error(vp_import_samples_map(&samples, 0, (struct vp_slice){"b\n", 2}));
	expect_no_error(vp_import_samples_map(&samples, 3000, (struct vp_slice){"x\n", 2}));
	expect_no_error(vp_file_read(NAME "/host.maps", 100, &text));
	assert_string_equal(vp_buffer_text(&text), "a\nb\n");
	text.size = 0;
	expect_no_error(vp_file_read(NAME "/guest-vm1.maps", 100, &text));
	assert_string_equal(vp_buffer_text(&text), "g\n");
	vp_buffer_deinit(&text);
	end(&made, &samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_samples), cmocka_unit_test(test_names),
	    cmocka_unit_test(test_frames),  cmocka_unit_test(test_damaged),
	    cmocka_unit_test(test_maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
