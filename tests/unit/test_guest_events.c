/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of ftrace's rings, and agents that send them: good ones, and those that do not. */
#include "unit.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "collect/agent/clock_line.h"
#include "collect/agent/events_client.h"
#include "schema/event_class.h"
#include "schema/ring_page.h"
#include "session/guest_events.h"
#include "socket_vmm.h"
#include "xen/xen_counters.h"

uint64_t __real_vp_clock_monotonic(void);
uint64_t __wrap_vp_clock_monotonic(void);

/* Those who wait see a time that is this later than the clock's. */
static uint64_t shift;

uint64_t __wrap_vp_clock_monotonic(void)
{
	return __real_vp_clock_monotonic() + shift;
}

/* Little endian, as all kernels that there are pages of. */
static void put(struct vp_buffer *out, uint64_t value, size_t size)
{
	vp_buffer_append(out, &value, size);
}

/* Entries from `begin` on are all of the page. */
static void begin_page(struct vp_buffer *out, uint64_t time)
{
	put(out, time, 8);
	put(out, 0, 8);
}

static void end_page(struct vp_buffer *out, uint64_t flags)
{
	uint64_t commit = (out->size - 16) | flags;

	memcpy(out->bytes + 8, &commit, sizeof(commit));
}

static void put_word(struct vp_buffer *out, unsigned type, uint64_t delta)
{
	put(out, type | (delta & 0x7ffffff) << 5, 4);
}

static void test_ring_page(void **state)
{
	struct vp_buffer bytes = {0};
	struct vp_ring_page page;
	struct vp_slice entry;
	uint64_t time;

	begin_page(&bytes, 1000);
	put_word(&bytes, 2, 5); /* eight bytes */
	vp_buffer_string(&bytes, "12345678");
	put_word(&bytes, 30, 3); /* the time goes on by 1 << 27 | 3 */
	put(&bytes, 1, 4);
	put_word(&bytes, 29, 1); /* an entry that was taken back, of four bytes behind its length */
	put(&bytes, 8, 4);
	vp_buffer_string(&bytes, "none");
	put_word(&bytes, 0, 0); /* its length in a word, which counts itself; padded to eight */
	put(&bytes, 10, 4);
	vp_buffer_string(&bytes, "abcdef__");
	put_word(&bytes, 31, 7); /* the time is 1 << 27 | 7 */
	put(&bytes, 1, 4);
	put_word(&bytes, 1, 1);
	vp_buffer_string(&bytes, "last");
	put_word(&bytes, 29, 0); /* the rest is nothing */
	vp_buffer_string(&bytes, "????");
	end_page(&bytes, 1ULL << 31);

	assert_true(vp_ring_page_open((struct vp_slice){bytes.bytes, bytes.size}, &page));
	assert_true(page.missed);
	assert_true(vp_ring_page_next(&page, &time, &entry));
	assert_true(time == 1005 && vp_slice_is(entry, "12345678"));
	assert_true(vp_ring_page_next(&page, &time, &entry));
	assert_true(time == 1005 + (1 << 27) + 3 + 1 && vp_slice_is(entry, "abcdef"));
	assert_true(vp_ring_page_next(&page, &time, &entry));
	assert_true(time == (1 << 27) + 7 + 1 && vp_slice_is(entry, "last"));
	assert_false(vp_ring_page_next(&page, &time, &entry));
	assert_false(page.malformed);
	/* However it is cut, nothing behind it is read. */
	for (size_t size = 0; size < bytes.size; size++)
		assert_false(vp_ring_page_open((struct vp_slice){bytes.bytes, size}, &page));
	vp_buffer_deinit(&bytes);
}

static void expect_malformed(unsigned type, uint32_t length)
{
	struct vp_buffer bytes = {0};
	struct vp_ring_page page;
	struct vp_slice entry;
	uint64_t time;

	begin_page(&bytes, 0);
	put_word(&bytes, type, 1);
	put(&bytes, length, 4);
	end_page(&bytes, 0);
	assert_true(vp_ring_page_open((struct vp_slice){bytes.bytes, bytes.size}, &page));
	assert_false(vp_ring_page_next(&page, &time, &entry));
	assert_true(page.malformed);
	vp_buffer_deinit(&bytes);
}

static void test_malformed_pages(void **state)
{
	expect_malformed(0, 3);          /* shorter than the word that says so */
	expect_malformed(0, 5);          /* longer than the page */
	expect_malformed(0, UINT32_MAX); /* and so that sums overflow */
	expect_malformed(2, 0);
	expect_malformed(28, 0);
	expect_malformed(29, 9);
}

static bool parse_request(const char *line, unsigned *sets)
{
	return vp_events_request_parse((struct vp_slice){line, strlen(line)}, sets);
}

static void test_requests(void **state)
{
	struct vp_buffer line = {0};
	unsigned sets;

	vp_events_request_write(VP_EVENTS_SET_sched | VP_EVENTS_SET_timer, &line);
	assert_string_equal(vp_buffer_text(&line), "vperf-request 1 events sched timer\n");
	assert_true(parse_request("vperf-request 1 events timer sched", &sets));
	assert_int_equal(sets, VP_EVENTS_SET_sched | VP_EVENTS_SET_timer);
	assert_false(parse_request("vperf-request 1 events", &sets));
	assert_false(parse_request("vperf-request 1 events kprobes", &sets));
	assert_false(parse_request("vperf-request 1 events sched kprobes:x", &sets));
	assert_false(vp_events_is_allowed((struct vp_slice){"kvm:kvm_exit", 12}));
	assert_true(vp_events_is_allowed((struct vp_slice){"sched:sched_switch", 18}));
	vp_buffer_deinit(&line);
}

static void put_frame(struct vp_buffer *out, uint32_t kind, uint32_t vcpu, const void *bytes,
		      size_t size)
{
	const struct vp_events_frame frame = {.kind = kind, .vcpu = vcpu, .size = (uint32_t)size};

	vp_buffer_append(out, &frame, sizeof(frame));
	vp_buffer_append(out, bytes, size);
}

static void put_format(struct vp_buffer *out, const char *name)
{
	struct vp_buffer text = {0};

	vp_buffer_printf(&text,
			 "%s\nname: x\nID: 314\nformat:\n"
			 "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
			 "\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n",
			 name);
	put_frame(out, VP_EVENTS_FORMAT, 0, text.bytes, text.size);
	vp_buffer_deinit(&text);
}

/* Two events of number 314 and one that nobody knows. */
static void put_pages_of(struct vp_buffer *out, uint32_t cpu)
{
	struct vp_buffer page = {0};

	begin_page(&page, 5000);
	for (uint32_t i = 0; i < 3; i++) {
		put_word(&page, 3, 10);
		put(&page, 314 + (i == 2), 4);
		put(&page, 7, 4);
		put(&page, 100 + i, 4);
	}
	end_page(&page, 0);
	put_frame(out, VP_EVENTS_PAGES, cpu, page.bytes, page.size);
	vp_buffer_deinit(&page);
}

static void put_pages(struct vp_buffer *out)
{
	put_pages_of(out, 1);
}

static void put_good(struct vp_buffer *out)
{
	const struct vp_events_task task = {.pid = 7, .tid = 7, .comm = "seven"};
	const uint32_t page_size = 4096;
	const struct vp_events_clock clock = {.ns = 4000, .counter = 777, .error_ns = 3};
	const uint64_t lost = 12;

	vp_buffer_string(out, VP_EVENTS_HEAD);
	put_format(out, "sched:sched_switch");
	put_frame(out, VP_EVENTS_BEGIN, 0, &page_size, sizeof(page_size));
	put_frame(out, VP_EVENTS_TASKS, 0, &task, sizeof(task));
	put_frame(out, VP_EVENTS_CLOCK, 0, &clock, sizeof(clock));
	put_pages(out);
	put_frame(out, VP_EVENTS_LOST, 1, &lost, sizeof(lost));
}

/* What was handed over. */
struct heard {
	struct vp_buffer classes, records;
	uint32_t vcpu;
	size_t tasks;
	uint64_t lost, malformed;
	struct vp_events_clock clock;
};

static void take_classes(void *context, struct vp_slice text)
{
	vp_buffer_append(&((struct heard *)context)->classes, text.bytes, text.size);
}

static void take_tasks(void *context, const struct vp_events_task *tasks, size_t count)
{
	assert_string_equal(tasks[0].comm, "seven");
	((struct heard *)context)->tasks += count;
}

static void take_clock(void *context, const struct vp_events_clock *clock)
{
	((struct heard *)context)->clock = *clock;
}

static void take_records(void *context, uint32_t vcpu, char *bytes, size_t size)
{
	((struct heard *)context)->vcpu = vcpu;
	vp_buffer_append(&((struct heard *)context)->records, bytes, size);
}

static void take_lost(void *context, uint32_t vcpu, uint64_t count)
{
	((struct heard *)context)->lost = count;
}

static void take_malformed(void *context, uint64_t count)
{
	((struct heard *)context)->malformed = count;
}

/* Hears out an agent that says that, whatever it is asked, and goes. */
static enum vp_agent_events_state hear(const struct vp_buffer *said, struct heard *heard,
				       const char *why)
{
	const struct vp_agent_events_receiver taker = {.context = heard,
						       .classes = take_classes,
						       .tasks = take_tasks,
						       .clock = take_clock,
						       .records = take_records,
						       .lost = take_lost,
						       .malformed = take_malformed};
	enum vp_agent_events_state state = VP_AGENT_EVENTS_ASKED;
	struct vp_agent_events *events;
	int fds[2];

	assert_false(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	pid_t child = fork();
	if (!child) {
		char request[64];
		ssize_t got = read(fds[1], request, sizeof(request));
		_exit(got < 1 || vp_fd_write_all(fds[1], said->bytes, said->size));
	}
	close(fds[1]);
	*heard = (struct heard){0};
	expect_no_error(
	    vp_agent_events_start_from(fds[0], "guest 'g'", VP_EVENTS_SET_sched, &events));
	while (state < VP_AGENT_EVENTS_ENDED)
		state = vp_agent_events_receive(events, 1000, SIZE_MAX, &taker);
	if (why && !strstr(vp_agent_events_problem(events), why))
		fail_msg("'%s' does not say '%s'", vp_agent_events_problem(events), why);
	vp_agent_events_free(events);
	waitpid(child, NULL, 0);
	return state;
}

static void heard_deinit(struct heard *heard)
{
	vp_buffer_deinit(&heard->classes);
	vp_buffer_deinit(&heard->records);
}

static void expect_events(const struct heard *heard)
{
	vp_event_classes classes = {0};
	const struct vp_defined_record *first = (const void *)heard->records.bytes;

	expect_no_error(
	    vp_event_classes_parse("said", heard->classes.bytes, heard->classes.size, &classes));
	assert_int_equal(classes.count, 1);
	assert_string_equal(classes.at[0].name, "sched:sched_switch");
	assert_int_equal(heard->records.size, 2 * (sizeof(*first) + 8));
	assert_true(first->time == 5010 && first->id == classes.at[0].id);
	struct vp_cursor fields = vp_event_fields(first);
	assert_int_equal(vp_cursor_u32(&fields), 7);
	assert_int_equal(vp_cursor_u32(&fields), 100);
	assert_true(heard->vcpu == 1 && heard->tasks == 1);
	assert_true(heard->lost == 12 && heard->malformed == 1);
	assert_true(heard->clock.ns == 4000 && heard->clock.counter == 777);
	vp_event_classes_deinit(&classes);
}

static void test_agent(void **state)
{
	struct vp_buffer said = {0};
	struct heard heard;

	put_good(&said);
	put_frame(&said, VP_EVENTS_END, 0, NULL, 0);
	assert_int_equal(hear(&said, &heard, NULL), VP_AGENT_EVENTS_ENDED);
	expect_events(&heard);
	heard_deinit(&heard);
	vp_buffer_deinit(&said);
}

/* Whatever comes after it, what was good before stays. */
static void expect_gone(const void *more, size_t size, const char *why)
{
	struct vp_buffer said = {0};
	struct heard heard;

	put_good(&said);
	vp_buffer_append(&said, more, size);
	assert_int_equal(hear(&said, &heard, why), VP_AGENT_EVENTS_GONE);
	expect_events(&heard);
	heard_deinit(&heard);
	vp_buffer_deinit(&said);
}

static void test_agents_that_go_wrong(void **state)
{
	const struct vp_events_frame too_long = {VP_EVENTS_PAGES, 0, VP_EVENTS_FRAME_MAX + 1, 0};
	const struct vp_events_frame no_vcpu = {VP_EVENTS_PAGES, VP_EVENTS_VCPUS_MAX, 0, 0};
	const struct vp_events_frame late = {VP_EVENTS_FORMAT, 0, 0, 0};
	const struct vp_events_frame unknown = {77, 0, 0, 0};
	const struct vp_events_frame cut = {VP_EVENTS_PAGES, 0, 100, 0};
	const struct vp_events_frame no_clock = {VP_EVENTS_CLOCK, 0, 0, 0};
	const struct vp_events_frame no_time = {VP_EVENTS_TIME, 0, 0, 0};

	expect_gone("", 0, "has ended");
	expect_gone(&cut, sizeof(cut), "has ended");
	expect_gone(&too_long, sizeof(too_long), "a frame that is too long");
	expect_gone(&no_vcpu, sizeof(no_vcpu), "the number of a vCPU");
	expect_gone(&late, sizeof(late), "a frame out of order");
	expect_gone(&unknown, sizeof(unknown), "an unknown kind");
	expect_gone(&no_clock, sizeof(no_clock), "a clock");
	expect_gone(&no_time, sizeof(no_time), "a time of Xen");
}

static void expect_refused(const char *text, const char *event, const char *why)
{
	struct vp_buffer said = {0};
	struct heard heard;

	vp_buffer_string(&said, text);
	if (event)
		put_format(&said, event);
	assert_int_equal(hear(&said, &heard, why), VP_AGENT_EVENTS_GONE);
	assert_int_equal(heard.classes.size, 0);
	heard_deinit(&heard);
	vp_buffer_deinit(&said);
}

static void test_refusals(void **state)
{
	expect_refused("error \033[31mno tracefs\n", NULL, "refuses: ?[31mno tracefs");
	expect_refused("vperf-events 2\n", NULL, "malformed reply: its first line");
	expect_refused("", NULL, "has ended");
	expect_refused(VP_EVENTS_HEAD, "kvm:kvm_exit", "an event that was not requested");
}

static void add_point(struct vp_clock_line *line, uint64_t from, uint64_t to, uint64_t error_ns)
{
	const struct vp_clock_point point = {from, to, from, error_ns};

	vp_clock_line_add(line, &point);
}

/* From nanoseconds to a counter of 50 MHz, by pairs that are 40 ms apart. */
static void test_clock_line(void **state)
{
	struct vp_clock_line line = {0};

	add_point(&line, 1000000000, 5000000, 100);
	assert_int_equal(vp_clock_line_at(&line, 2000000000), 5000000);
	add_point(&line, 1001000000, 5050000, 100); /* makes way for the next one … */
	assert_int_equal(vp_clock_line_at(&line, 1000500000), 5025000);
	add_point(&line, 1002000000, 5100000, 100); /* … which is within 20 ms of the first, too */
	assert_int_equal(line.points.count, 2);
	line.error_ns = 0;
	add_point(&line, 1040000000, 7000000, 100);
	add_point(&line, 1080000000, 9000000, 200);
	assert_int_equal(line.points.count, 4);
	assert_int_equal(vp_clock_line_at(&line, 1060000000), 8000000);
	/* Of both pairs, of 40 ms, and of a count that is 20 ns. */
	assert_int_equal(line.error_ns, 100 + 200 + 40 + 2 + 20 + 1);
	/* Outside it goes on as straight, and is less sure. */
	assert_int_equal(vp_clock_line_at(&line, 1100000000), 10000000);
	assert_int_equal(line.error_ns, 300 + 150 + 40 + 2 + 20 + 1);
	assert_int_equal(vp_clock_line_at(&line, 999000000), 4950000);
	/* What is not later is none. */
	add_point(&line, 1070000000, 9500000, 0);
	add_point(&line, 1090000000, 8900000, 0);
	assert_int_equal(line.points.count, 4);
	for (uint64_t i = 0; i < 10000; i++)
		add_point(&line, 2000000000 + i * 40000000, 60000000 + i * 2000000, 1);
	assert_true(line.points.count < 4097);
	assert_int_equal(vp_clock_line_at(&line, 2000000000 + 9999 * 40000000ULL - 20),
			 60000000 + 9999 * 2000000ULL - 1);
	vp_clock_line_deinit(&line);
}

/* Numbers of an agent's own making end somewhere. */
static void test_absurd_clock(void **state)
{
	struct vp_clock_line line = {0};

	add_point(&line, 0, 0, UINT64_MAX);
	add_point(&line, 1, UINT64_MAX, UINT64_MAX);
	add_point(&line, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	vp_clock_line_at(&line, UINT64_MAX);
	vp_clock_line_at(&line, 0);
	assert_int_equal(line.error_ns, UINT32_MAX);
	vp_clock_line_deinit(&line);
}

#define VSOCK "test_guest_events.vsock"
#define RECORDING "test_guest_events.dir"

/* The same event, but its kernel has a field more. */
static void put_changed(struct vp_buffer *out)
{
	static const char format[] = "sched:sched_switch\nname: x\nID: 314\nformat:\n"
				     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
				     "\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n"
				     "\tfield:short y;\toffset:8;\tsize:2;\tsigned:1;\n";
	const uint32_t page_size = 4096;
	const uint64_t lost = 12;

	vp_buffer_string(out, VP_EVENTS_HEAD);
	put_frame(out, VP_EVENTS_FORMAT, 0, format, sizeof(format) - 1);
	put_frame(out, VP_EVENTS_BEGIN, 0, &page_size, sizeof(page_size));
	put_pages(out);
	put_frame(out, VP_EVENTS_LOST, 1, &lost, sizeof(lost));
}

/* The agent of a guest that reboots after each answer, the third time with another kernel. */
static void answer_reboots(int fd, int boot)
{
	struct vp_buffer said = {0};

	if (boot < 2)
		put_good(&said);
	else
		put_changed(&said);
	if (vp_fd_write_all(fd, said.bytes, said.size))
		_exit(1);
	vp_buffer_deinit(&said);
}

static void expect_classes(size_t count)
{
	vp_event_classes classes = {0};
	struct vp_buffer text = {0};

	expect_no_error(vp_file_read(RECORDING "/guest-g.events", 1 << 20, &text));
	expect_no_error(vp_event_classes_parse("file", text.bytes, text.size, &classes));
	assert_int_equal(classes.count, count);
	vp_event_classes_deinit(&classes);
	vp_buffer_deinit(&text);
}

/* All boots' events are recorded, each by its own kernel's formats, and losses add up. */
static void test_reboots(void **state)
{
	vp_notices notices = {0};
	struct vp_guest_clock clock = {0};
	const struct vp_guest_events_options options = {.directory = RECORDING,
							.sets = VP_EVENTS_SET_sched,
							.max_bytes = 1 << 20,
							.notices = &notices,
							.clock = &clock};
	struct vp_vm vm = {.pid = (uint32_t)start_socket_vmm(VSOCK, 4, answer_reboots),
			   .name = "g",
			   .vsock = VSOCK};

	assert_int_equal(system("rm -rf " RECORDING " && mkdir " RECORDING), 0);
	vp_guest_clock_read(&clock);
	vp_vm_vcpu(&vm, 1)->has_tsc = true;
	struct vp_guest_events *events = vp_guest_events_new(&options, &vm, "guest-g");
	vp_guest_events_begin(events, 0);
	for (uint64_t boot = 1; boot <= 4; boot++) {
		while (vp_guest_events_receive(events, 1000))
			;
		assert_int_equal(vp_guest_events_count(events), 2 * boot);
		assert_int_equal(vp_guest_events_lost(events), 12 * boot);
		assert_int_equal(vp_guest_events_fd(events), -1);
		expect_classes(boot < 3 ? 1 : 2);
		/* Not at once. */
		assert_false(vp_guest_events_again(events, &vm, vp_clock_monotonic()));
		shift += 4000000000;
		if (boot < 4)
			assert_true(vp_guest_events_again(events, &vm, vp_clock_monotonic()));
	}
	struct vp_agent_outcome end = vp_guest_events_outcome(events);
	VP_AUTO_FREE char *outcome = vp_agent_outcome_text(&end);
	vp_agent_outcome_deinit(&end);
	assert_non_null(strstr(outcome, "ok: it sent 8 events, 48 lost"));
	assert_non_null(strstr(outcome, "none of 1")); /* of 16 s and more, with what it took */
	assert_int_equal(waitpid((pid_t)vm.pid, NULL, 0), vm.pid);
	vp_guest_events_free(events);
	vp_guest_clock_deinit(&clock);
	vp_vec_deinit(&vm.vcpus);
	vp_notices_deinit(&notices);
}

/* A guest with one agent, which says `good` once. */
struct guest {
	struct vp_vm vm;
	struct vp_guest_clock clock;
	vp_notices notices;
	struct vp_guest_events_options options;
	struct vp_guest_events *events;
};

static void answer_once(int fd, int boot)
{
	answer_reboots(fd, 0);
}

/* With events of one vCPU more. */
static void answer_of_two(int fd, int boot)
{
	struct vp_buffer said = {0};

	put_good(&said);
	put_pages_of(&said, 2);
	if (vp_fd_write_all(fd, said.bytes, said.size))
		_exit(1);
	vp_buffer_deinit(&said);
}

static void put_time(struct vp_buffer *out, uint32_t vcpu, uint64_t tsc, uint32_t mul)
{
	const struct vp_events_time time = {.tsc = tsc, .ns = 1000, .mul = mul, .shift = 1};

	put_frame(out, VP_EVENTS_TIME, vcpu, &time, sizeof(time));
}

/* A guest of Xen with three vCPUs, whose counters are each others': the second one's time comes
 * after its events. The times of a vCPU that there is not and one without a speed are no times. The
 * first vCPU's counter is set anew, 500 ns later. */
static void answer_of_xen(int fd, int boot)
{
	const uint32_t page_size = 4096;
	struct vp_buffer said = {0};

	vp_buffer_string(&said, VP_EVENTS_HEAD);
	put_format(&said, "sched:sched_switch");
	put_frame(&said, VP_EVENTS_BEGIN, 0, &page_size, sizeof(page_size));
	put_time(&said, 1, 5000, 1U << 31);
	put_pages_of(&said, 1);
	put_pages_of(&said, 2);
	put_time(&said, 2, 6000, 1U << 31);
	put_time(&said, 9, 5000, 1U << 31);
	put_time(&said, 1, 5000, 0);
	put_time(&said, 1, 4500, 1U << 31);
	if (vp_fd_write_all(fd, said.bytes, said.size))
		_exit(1);
	vp_buffer_deinit(&said);
}

/* dom0's time. */
uint64_t __wrap_vp_xen_counters_update(struct vp_xen_counters *counters,
				       const struct vp_xen_time *guest, struct vp_vcpu *vcpu);
uint64_t __wrap_vp_xen_counters_update(struct vp_xen_counters *counters,
				       const struct vp_xen_time *guest, struct vp_vcpu *vcpu)
{
	const struct vp_xen_time own = {.tsc = 100000, .ns = 1000, .mul = 1U << 31, .shift = 1};

	assert_non_null(counters);
	return vp_xen_counters_relate(&own, 1, guest, vcpu);
}

static void guest_begin_with(struct guest *guest, const struct vp_guest_events_options *options,
			     void (*answer)(int fd, int boot))
{
	*guest = (struct guest){.options = *options};
	guest->options.directory = RECORDING;
	guest->options.sets = VP_EVENTS_SET_sched;
	guest->options.notices = &guest->notices;
	guest->options.clock = &guest->clock;
	guest->vm = (struct vp_vm){.pid = (uint32_t)start_socket_vmm(VSOCK, 1, answer),
				   .nth = 2,
				   .name = (char *)"g",
				   .vsock = (char *)VSOCK};
	assert_int_equal(system("rm -rf " RECORDING " && mkdir " RECORDING), 0);
	vp_guest_clock_read(&guest->clock);
	vp_vm_vcpu(&guest->vm, 0)->has_tsc = true;
}

static void guest_begin(struct guest *guest, const struct vp_guest_events_options *options)
{
	guest_begin_with(guest, options, answer_once);
}

static void guest_hear(struct guest *guest)
{
	guest->events = vp_guest_events_new(&guest->options, &guest->vm, "guest-g");
	assert_true(vp_guest_events_is_open(guest->events));
	assert_true(vp_guest_events_is_asking(guest->events));
	assert_true(vp_guest_events_fd(guest->events) >= 0);
	vp_guest_events_begin(guest->events, 0);
	while (vp_guest_events_receive(guest->events, 1000))
		;
	assert_false(vp_guest_events_is_open(guest->events));
	assert_false(vp_guest_events_is_asking(guest->events));
}

static void expect_outcome(const struct guest *guest, const char *begin)
{
	struct vp_agent_outcome end = vp_guest_events_outcome(guest->events);
	VP_AUTO_FREE char *outcome = vp_agent_outcome_text(&end);
	vp_agent_outcome_deinit(&end);

	if (strncmp(outcome, begin, strlen(begin)))
		fail_msg("'%s' does not begin with '%s'", outcome, begin);
}

static void guest_end(struct guest *guest)
{
	assert_int_equal(waitpid((pid_t)guest->vm.pid, NULL, 0), guest->vm.pid);
	vp_guest_events_free(guest->events);
	vp_guest_clock_deinit(&guest->clock);
	vp_vec_deinit(&guest->vm.vcpus);
	vp_notices_deinit(&guest->notices);
}

/* Events of a vCPU that was plugged in wait until KVM tells its counter. */
static void test_new_vcpu(void **state)
{
	const struct vp_guest_events_options options = {.max_bytes = 1 << 20};
	struct guest guest;

	guest_begin(&guest, &options);
	guest_hear(&guest);
	assert_int_equal(vp_guest_events_vm(guest.events), vp_vm_id(&guest.vm));
	assert_int_equal(vp_guest_events_count(guest.events), 0);
	assert_int_equal(vp_guest_events_lost(guest.events), 0);
	/* One of the agent's own, and what waits. */
	expect_outcome(&guest, "ok: it sent 0 events, 0 lost, 2 invalid entries;");
	vp_vm_vcpu(&guest.vm, 1);
	vp_guest_events_update_vcpu(guest.events, &guest.vm);
	assert_int_equal(vp_guest_events_count(guest.events), 0);
	vp_vm_vcpu(&guest.vm, 1)->has_tsc = true;
	vp_guest_events_update_vcpu(guest.events, &guest.vm);
	assert_int_equal(vp_guest_events_count(guest.events), 2);
	assert_int_equal(vp_guest_events_lost(guest.events), 12);
	expect_outcome(&guest, "ok: it sent 2 events, 12 lost, 1 invalid entries;");
	vp_guest_events_update_vcpu(guest.events, &guest.vm);
	assert_int_equal(vp_guest_events_count(guest.events), 2);
	guest_end(&guest);
}

/* Each vCPU that KVM does not have counts. */
static void test_unknown_vcpus(void **state)
{
	const struct vp_guest_events_options options = {.max_bytes = 1 << 20};
	struct guest guest;

	guest_begin_with(&guest, &options, answer_of_two);
	guest_hear(&guest);
	expect_outcome(&guest, "ok: it sent 0 events, 0 lost, 4 invalid entries;");
	vp_vm_vcpu(&guest.vm, 2)->has_tsc = true;
	vp_guest_events_update_vcpu(guest.events, &guest.vm);
	assert_int_equal(vp_guest_events_count(guest.events), 2);
	expect_outcome(&guest, "ok: it sent 2 events, 0 lost, 3 invalid entries;");
	guest_end(&guest);
}

/* An agent that sends more than it may: what is not written is lost. */
static void test_limit(void **state)
{
	const struct vp_guest_events_options options = {.max_bytes =
							    sizeof(struct vp_defined_record) + 8};
	struct guest guest;

	guest_begin(&guest, &options);
	vp_vm_vcpu(&guest.vm, 1)->has_tsc = true;
	guest_hear(&guest);
	assert_int_equal(vp_guest_events_count(guest.events), 1);
	assert_int_equal(vp_guest_events_lost(guest.events), 1);
	size_t said = 0;
	vp_vec_each (&guest.notices, notice)
		said += strstr(*notice, "VM 'g': its agent sent more than 0 MiB") != NULL;
	assert_int_equal(said, 1);
	guest_end(&guest);
}

/* What is not in the recording's time is neither written nor lost. */
static void test_before_the_begin(void **state)
{
	const struct vp_guest_events_options options = {.max_bytes = 1 << 20};
	struct guest guest;

	guest_begin(&guest, &options);
	vp_vm_vcpu(&guest.vm, 1)->has_tsc = true;
	guest.events = vp_guest_events_new(&guest.options, &guest.vm, "guest-g");
	while (vp_guest_events_receive(guest.events, 1000))
		;
	assert_int_equal(vp_guest_events_count(guest.events), 0);
	assert_int_equal(vp_guest_events_lost(guest.events), 12); /* by its own word */
	guest_end(&guest);
}

static void expect_file(const char *path, bool there)
{
	assert_int_equal(access(path, F_OK), there ? 0 : -1);
}

/* A flight recorder writes a guest's events when there is a snapshot, until they are older than
 * all that it remembers. */
static void test_flight(void **state)
{
	const struct vp_guest_events_options options = {.flight_bytes = 1 << 20};
	struct guest guest;

	guest_begin(&guest, &options);
	vp_vm_vcpu(&guest.vm, 1)->has_tsc = true;
	guest_hear(&guest);
	assert_int_equal(vp_guest_events_count(guest.events), 2);
	vp_guest_events_flush(guest.events);
	expect_no_error(vp_guest_events_snapshot(guest.events, RECORDING "/snapshot", 0));
	expect_file(RECORDING "/snapshot", true);
	vp_guest_events_forget(guest.events, 0);
	expect_outcome(&guest, "ok: it sent 2 events, 12 lost");
	vp_guest_events_forget(guest.events, UINT64_MAX);
	expect_outcome(&guest, "events: ");
	expect_no_error(vp_guest_events_snapshot(guest.events, RECORDING "/none", 0));
	expect_file(RECORDING "/none", false);
	guest_end(&guest);
}

/* Counters of Xen's guests are related by what their agents send. */
static void test_times_of_xen(void **state)
{
	const struct vp_guest_events_options options = {.max_bytes = 1 << 20,
							.counters = (void *)&options};
	struct guest guest;

	guest_begin_with(&guest, &options, answer_of_xen);
	vp_vm_vcpu(&guest.vm, 1);
	vp_vm_vcpu(&guest.vm, 2);
	guest_hear(&guest);
	assert_int_equal(vp_guest_events_count(guest.events), 4);
	struct vp_agent_outcome end = vp_guest_events_outcome(guest.events);
	assert_int_equal(end.port, 0);
	/* Two entries of unknown numbers, and two times. */
	assert_int_equal(end.invalid, 4);
	assert_true(end.error_ns >= 500 && end.error_ns < 1000000);
	vp_agent_outcome_deinit(&end);
	guest_end(&guest);
}

/* Without a way to the agent, or to the host's time, there are no events. */
static void test_no_way(void **state)
{
	vp_notices notices = {0};
	struct vp_guest_clock clock = {0};
	const struct vp_guest_events_options options = {.directory = RECORDING,
							.sets = VP_EVENTS_SET_sched,
							.notices = &notices,
							.clock = &clock};
	struct vp_vm vm = {.pid = 7, .name = (char *)"g"};

	vp_vm_vcpu(&vm, 0);
	for (int i = 0; i < 2; i++) {
		struct vp_guest_events *events = vp_guest_events_new(&options, &vm, "guest-g");
		const char *why =
		    i ? "KVM does not report the offsets of its vCPUs' time-stamp counters"
		      : "the VM has no vsock device";
		struct vp_agent_outcome end = vp_guest_events_outcome(events);
		VP_AUTO_FREE char *outcome = vp_agent_outcome_text(&end);
		vp_agent_outcome_deinit(&end);
		assert_int_equal(strncmp(outcome, "events: ", 8), 0);
		assert_non_null(strstr(outcome, why));
		assert_int_equal(notices.count, i + 1);
		assert_non_null(strstr(notices.at[i], "VM 'g': guest events are not"));
		assert_non_null(strstr(notices.at[i], why));
		assert_false(vp_guest_events_is_open(events));
		assert_false(vp_guest_events_receive(events, 0));
		assert_false(vp_guest_events_flush_pending(events));
		assert_int_equal(vp_guest_events_fd(events), -1);
		vp_guest_events_free(events);
		vm.vsock = (char *)VSOCK;
	}
	vp_vec_deinit(&vm.vcpus);
	vp_notices_deinit(&notices);
}

/* One that has not answered yet is not waited for. */
static void test_not_waited_for(void **state)
{
	const struct vp_guest_events_options options = {.max_bytes = 1 << 20};

	for (int i = 0; i < 2; i++) {
		struct guest guest;
		guest_begin(&guest, &options);
		guest.events = vp_guest_events_new(&guest.options, &guest.vm, "guest-g");
		assert_true(vp_guest_events_is_asking(guest.events));
		if (i)
			vp_guest_events_give_up(guest.events);
		else
			vp_guest_events_stop(guest.events, vp_clock_monotonic());
		assert_false(vp_guest_events_is_open(guest.events));
		expect_outcome(&guest, "events: no reply");
		assert_false(
		    !i && vp_guest_events_again(guest.events, &guest.vm, UINT64_MAX)); /* stopped */
		kill((pid_t)guest.vm.pid, SIGKILL);
		guest_end(&guest);
	}
}

/* Times from before the first pair of clocks, and such that have not come yet, are not known: they
 * are taken for the nearest that is, and counted. */
static void test_times_outside(void **state)
{
	struct vp_guest_clock clock = {0};
	const struct vp_vcpu vcpu = {.has_tsc = true, .tsc_offset = 100};
	struct vp_clock_point point = {.from = 1000, .to = 500000000, .ns = 500000000};

	vp_clock_line_add(&clock.line, &point);
	point.from += 100;
	point.to = point.ns += 100000000;
	vp_clock_line_add(&clock.line, &point);
	assert_int_equal(vp_guest_clock_at(&clock, &vcpu, 1150), 550000000);
	assert_int_equal(clock.past, 0);
	assert_int_equal(vp_guest_clock_at(&clock, &vcpu, 1099), 500000000);
	assert_int_equal(vp_guest_clock_at(&clock, &vcpu, 900), 500000000);
	assert_int_equal(clock.past, 2);
	assert_int_equal(vp_guest_clock_at(&clock, &vcpu, 1200), 600000000);
	assert_int_equal(clock.past, 2);
	assert_int_equal(clock.future, 0);
	uint64_t now = vp_guest_clock_at(&clock, &vcpu, UINT64_MAX);
	assert_int_equal(now, clock.line.points.at[clock.line.points.count - 1].to);
	assert_int_equal(clock.future, 1);
	assert_int_equal(clock.past, 2);
	vp_guest_clock_deinit(&clock);
}

/* A stamp has all but a time's highest bits; what is padded was taken back; a long entry
 * has its length in a word, which counts itself. */
static void test_ring_page_times(void **state)
{
	const uint64_t begin = (3ULL << 59) + 1000;
	const uint32_t words[] = {
	    1 | 5 << 5,      0xa,                      /* an entry of a word, 5 ns later */
	    31 | 0x123 << 5, 7,                        /* a stamp: 7 << 27 | 0x123 */
	    2 | 0 << 5,      0xb, 0xc, 29 | 3 << 5, 4, /* taken back: nothing in it */
	    0 | 1 << 5,      12,  0xd, 0xe,         30 | 2 << 5, 1, /* a time that is long */
	    1 | 1 << 5,      0xf};
	const uint64_t commit = sizeof(words);
	char bytes[16 + sizeof(words)];
	struct vp_ring_page page;
	struct vp_slice entry;
	uint64_t time;

	memcpy(bytes, &begin, 8);
	memcpy(bytes + 8, &commit, 8);
	memcpy(bytes + 16, words, sizeof(words));
	assert_true(vp_ring_page_open((struct vp_slice){bytes, sizeof(bytes)}, &page));
	assert_true(vp_ring_page_next(&page, &time, &entry));
	assert_int_equal(time, begin + 5);
	assert_int_equal(entry.size, 4);
	const uint64_t stamp = (3ULL << 59) + (7ULL << 27 | 0x123);
	assert_true(vp_ring_page_next(&page, &time, &entry));
	assert_true(time == stamp);
	assert_int_equal(entry.size, 8);
	assert_true(vp_ring_page_next(&page, &time, &entry));
	assert_true(time == stamp + 3 + 1);
	assert_int_equal(entry.size, 8);
	assert_memory_equal(entry.bytes, "\x0d\0\0\0\x0e\0\0\0", 8);
	assert_true(vp_ring_page_next(&page, &time, &entry));
	assert_true(time == stamp + 4 + (1ULL << 27 | 2) + 1);
	assert_memory_equal(entry.bytes, "\x0f\0\0\0", 4);
	assert_false(vp_ring_page_next(&page, &time, &entry));
	assert_false(page.malformed || page.missed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ring_page),
	    cmocka_unit_test(test_malformed_pages),
	    cmocka_unit_test(test_requests),
	    cmocka_unit_test(test_agent),
	    cmocka_unit_test(test_agents_that_go_wrong),
	    cmocka_unit_test(test_refusals),
	    cmocka_unit_test(test_clock_line),
	    cmocka_unit_test(test_absurd_clock),
	    cmocka_unit_test(test_times_outside),
	    cmocka_unit_test(test_reboots),
	    cmocka_unit_test(test_ring_page_times),
	    cmocka_unit_test(test_new_vcpu),
	    cmocka_unit_test(test_unknown_vcpus),
	    cmocka_unit_test(test_limit),
	    cmocka_unit_test(test_before_the_begin),
	    cmocka_unit_test(test_flight),
	    cmocka_unit_test(test_times_of_xen),
	    cmocka_unit_test(test_no_way),
	    cmocka_unit_test(test_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
