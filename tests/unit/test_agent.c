/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's direct map and answers, and the host's side of the transfer. */
#include "unit.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/sockios.h>
#include <linux/vm_sockets.h>

#include "base/file.h"
#include "bpf/intervals_abi.h"
#include "collect/agent/agent_client.h"
#include "collect/agent/counts_client.h"
#include "collect/programs/guest_counters.h"
#include "guest/agent.h"
#include "guest/direct_map.h"
#include "guest/lend_private.h"
#include "guest/tracker.h"
#include "maps/mapped.h"
#include "maps/maps.h"
#include "protocol/agent_protocol.h"
#include "protocol/lend_protocol.h"
#include "socket_vmm.h"

/* A little machine: physical memory, mapped at `base` by 1 GiB pages. */
struct machine {
	uint64_t base, pgd, table;
	unsigned levels;
};

static bool read_machine(void *context, uint64_t address, uint64_t *value)
{
	const struct machine *machine = context;
	uint64_t physical = address - machine->base;
	uint64_t page = physical & ~0xfffULL, index = (physical & 0xfff) / 8;

	if (address < machine->base || physical > (8ULL << 30))
		return false;
	*value = 0;
	if (page == machine->pgd)
		*value = (machine->pgd + 0x1000) | 0x63;
	else if (page == machine->pgd + 0x1000)
		*value = machine->levels == 5
			     ? ((machine->pgd + 0x2000) | 0x63)
			     : (((index - (machine->base >> 30 & 511)) << 30) | 0xe3);
	else if (page == machine->pgd + 0x2000)
		*value = ((index - (machine->base >> 30 & 511)) << 30) | 0xe3;
	return true;
}

static void test_direct_map(void **state)
{
	struct machine machines[] = {
	    {.base = 0xffff888000000000, .pgd = 0x1234000, .levels = 4},
	    {.base = 0xffff9a0cc0000000, .pgd = 0x123456000, .levels = 4},
	    {.base = 0xff11000000000000, .pgd = 0x1234000, .levels = 5},
	    {.base = 0xff2d4a3340000000, .pgd = 0x76543000, .levels = 5},
	};

#if !defined(__x86_64__)
	skip();
#endif
	for (size_t i = 0; i < VP_ARRAY_SIZE(machines); i++)
		assert_true(vp_direct_map_find(machines[i].base + machines[i].pgd, read_machine,
					       &machines[i]) == machines[i].base);
}

/* A guest that answers with `answer` and then closes, or hangs if `hang`. */
static pid_t play_guest(int fd, const char *answer, size_t repeat, bool hang)
{
	pid_t child = fork();

	if (child)
		return child;
	char request[VP_AGENT_MAX_REQUEST];
	ssize_t got = read(fd, request, sizeof(request));
	for (size_t i = 0; got > 0 && i < repeat; i++)
		if (vp_fd_write_all(fd, answer, strlen(answer)))
			_exit(1);
	if (hang)
		pause();
	_exit(0);
}

static struct vp_error *fetch_within(const struct vp_agent_limits *limits, const char *answer,
				     size_t repeat, bool hang, struct vp_agent_result *result)
{
	int fds[2];

	unlink("test_agent.maps");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	pid_t child = play_guest(fds[1], answer, repeat, hang);
	close(fds[1]);
	struct vp_error *error =
	    vp_agent_fetch_from(fds[0], "guest 'g'", "test_agent.maps", limits, result);
	close(fds[0]);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return error;
}

static struct vp_error *fetch(const char *answer, size_t repeat, bool hang,
			      struct vp_agent_result *result)
{
	const struct vp_agent_limits limits = {
	    .bytes = 1000, .seconds_idle = hang ? 1 : 60, .seconds_total = 60};

	return fetch_within(&limits, answer, repeat, hang, result);
}

static void check_stored(size_t size)
{
	struct vp_buffer buffer = {0};

	expect_no_error(vp_file_read("test_agent.maps", 10000, &buffer));
	assert_int_equal(buffer.size, size);
	vp_buffer_deinit(&buffer);
}

static void test_transfer(void **state)
{
	struct vp_agent_result result;

	expect_no_error(fetch("vperf-maps 1\nend 1\n", 1, false, &result));
	assert_int_equal(result.bytes, 19);
	assert_false(result.truncated);
	check_stored(19);
	expect_error(fetch("vperf-maps 1\nn x\n", 1, false, &result),
		     "the reply of the agent of guest 'g' was truncated after 17 bytes");
	assert_true(result.truncated);
	check_stored(17);
	expect_error(fetch("vperf-maps 1\n", 1, true, &result),
		     "sent nothing for 1 s (after 13 bytes");
	check_stored(13);
	/* The time for all of it ends it, too, however patient the other limit is. */
	const struct vp_agent_limits in_total = {
	    .bytes = 1000, .seconds_idle = 3000, .seconds_total = 1};
	expect_error(fetch_within(&in_total, "vperf-maps 1\n", 1, true, &result),
		     "did not finish within 1 s (13 bytes received)");
	expect_error(fetch("vperf-maps 1\n", 1000, false, &result), "sent more than 1000 bytes");
	check_stored(1000);
}

/* What has no names is no file: there is nothing that could be taken for names. */
static void test_refusals(void **state)
{
	const struct {
		const char *answer, *why;
	} refusals[] = {{"error too \033many\n", "refused: too many"},
			{"error too many\nend 1\n", "refused: too many"},
			{"vperf-map 1\nend 1\n", "not a symbol map"},
			{"vperf-", "was truncated after 6 bytes"},
			{"", "closed the connection without a reply"}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(refusals); i++) {
		struct vp_agent_result result;
		expect_error(fetch(refusals[i].answer, refusals[i].answer[0] != 0, false, &result),
			     refusals[i].why);
		assert_int_equal(result.bytes, 0);
		assert_int_equal(access("test_agent.maps", F_OK), -1);
	}
}

/* Any program of a guest can listen at a port above 1023. */
/* An agent on a busy machine: it closes the connection, then has too many others, then answers. */
static void answer_late(int fd, int number)
{
	static const char *const answers[] = {"", "error " VP_AGENT_TOO_MANY "\n",
					      "vperf-maps 1\nend 1\n"};

	if (vp_fd_write_all(fd, answers[number], strlen(answers[number])))
		_exit(1);
}

/* One that refuses for good is asked once. */
static void refuse_all(int fd, int number)
{
	static const char answer[] = "error not for you\n";

	if (vp_fd_write_all(fd, answer, sizeof(answer) - 1))
		_exit(1);
}

static void test_asked_again(void **state)
{
	static const char path[] = "test_agent.vsock";
	struct vp_agent_address address = {.path = path,
					   .pid = (uint32_t)start_socket_vmm(path, 3, answer_late)};
	struct vp_agent_result result;

	unlink("test_agent.maps");
	expect_no_error(vp_agent_fetch(&address, "test_agent.maps", NULL, &result));
	assert_int_equal(result.bytes, 19);
	check_stored(19);
	assert_int_equal(waitpid((pid_t)address.pid, NULL, 0), address.pid);
	address.pid = (uint32_t)start_socket_vmm(path, 1, refuse_all);
	expect_error(vp_agent_fetch(&address, "test_agent.maps", NULL, &result), "not for you");
	assert_int_equal(waitpid((pid_t)address.pid, NULL, 0), address.pid);
	/* Nobody is there any more: that is known at once. */
	expect_error(vp_agent_fetch(&address, "test_agent.maps", NULL, &result),
		     "cannot connect to the VMM's vsock");
}

static void test_ports(void **state)
{
	assert_int_equal(vp_agent_port_used(0), 733);
	assert_int_equal(vp_agent_port_used(9733), 9733);
	assert_int_equal(vp_agent_port_shown(9733, false), 9733);
	assert_int_equal(vp_agent_port_shown(0, false), 733);
	assert_int_equal(vp_agent_port_shown(9733, true), 0); /* a vchan has no port */
}

static bool parse_request(const char *line, struct vp_counts_request *request)
{
	return vp_counts_request_parse((struct vp_slice){line, strlen(line)}, request);
}

static void test_counts_request(void **state)
{
	const struct vp_counts_request all = {.marker = UINT64_MAX,
					      .events = (1U << VP_GUEST_COUNT) - 1};
	struct vp_counts_request request;
	struct vp_buffer line = {0};

	vp_counts_request_write(&all, &line);
	assert_true(line.size < VP_AGENT_MAX_REQUEST);
	line.bytes[--line.size] = 0;
	assert_true(parse_request(line.bytes, &request));
	assert_true(request.marker == all.marker && request.events == all.events);
	vp_buffer_deinit(&line);
	assert_true(parse_request("vperf-request 1 counts 1f guest:forks", &request));
	assert_true(request.marker == 0x1f && request.events == 1U << VP_GUEST_forks);
	static const char *const others[] = {"vperf-request 1 dump",
					     "vperf-request 1 counts",
					     "vperf-request 1 counts 1f",
					     "vperf-request 1 counts 0 guest:forks",
					     "vperf-request 1 counts 1f guest:knives",
					     "vperf-request 1 counts x guest:forks",
					     "vperf-request 1 countsx 1f guest:forks"};
	for (size_t i = 0; i < VP_ARRAY_SIZE(others); i++)
		assert_false(parse_request(others[i], &request));
}

static bool parse_lend(const char *line, struct vp_lend_request *request)
{
	return vp_lend_request_parse((struct vp_slice){line, strlen(line)}, request);
}

static void test_lend_request(void **state)
{
	struct vp_lend_request all = {.marker = UINT64_MAX, .n = VP_LENT_EVENTS}, request;
	struct vp_buffer line = {0};

	for (uint32_t i = 0; i < all.n; i++)
		memset(all.names[i], 'a' + (int)i, VP_LENT_NAME_SIZE - 1);
	vp_lend_request_write(&all, &line);
	assert_true(line.size < VP_AGENT_MAX_REQUEST);
	line.bytes[--line.size] = 0;
	assert_true(parse_lend(line.bytes, &request));
	assert_memory_equal(&request, &all, sizeof(all));
	vp_buffer_deinit(&line);
	assert_true(vp_lend_name_fits("cpu/event=0x3c,umask=1/u"));
	assert_false(vp_lend_name_fits("two words"));
	assert_false(vp_lend_name_fits(""));
	static const char *const others[] = {
	    "vperf-request 1 lend",
	    "vperf-request 1 lend 1f",
	    "vperf-request 1 lend 0 cycles",
	    "vperf-request 1 lend x cycles",
	    "vperf-request 1 lend 1f a b c d e f g h i",
	    "vperf-request 1 lend 1f "
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	    "vperf-request 1 lend 1f a\001b",
	};
	for (size_t i = 0; i < VP_ARRAY_SIZE(others); i++)
		assert_false(parse_lend(others[i], &request));
}

static struct vp_error *take_lend(uint64_t *lines, bool whole, const char *text,
				  struct vp_lend_line *line)
{
	return vp_lend_answer_take(lines, whole, (struct vp_slice){text, strlen(text)}, line);
}

static void test_lend_answer(void **state)
{
	struct vp_lend_line line;
	uint64_t lines = 0;

	expect_error(take_lend(&lines, false, "cell 0 1000", &line), "malformed reply: line 1");
	expect_error(take_lend(&lines, false, "vperf-lend 2", &line), "malformed reply: line 1");
	expect_error(take_lend(&lines, false, "error no such thing", &line),
		     "refuses: no such thing");
	expect_no_error(take_lend(&lines, false, "vperf-lend 1", &line));
	expect_no_error(take_lend(&lines, false, "cell 3 1f80", &line));
	assert_int_equal(line.kind, VP_LEND_CELL);
	assert_int_equal(line.vcpu, 3);
	assert_int_equal(line.number, 0x1f80);
	expect_error(take_lend(&lines, false, "cell 3", &line), "malformed reply: line 3");
	expect_error(take_lend(&lines, false, "end 3", &line), "malformed reply: line 3");
	expect_no_error(take_lend(&lines, false, "end 2", &line));
	expect_error(take_lend(&lines, true, "error timeout", &line), "stopped: timeout");
	while (lines < VP_LEND_MAX_CELLS + 2)
		expect_no_error(take_lend(&lines, false, "cell 3 1f80", &line));
	expect_error(take_lend(&lines, false, "cell 3 1f80", &line), "more than 512");
}

/* Hears of a guest that answers so; it is over when the guest has closed. */
static struct vp_agent_counts *hear_of(const char *answer, bool hang, pid_t *child)
{
	struct vp_agent_counts *counts;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	*child = play_guest(fds[1], answer, 1, hang);
	close(fds[1]);
	expect_no_error(vp_agent_counts_start_from(fds[0], "guest 'g'", 1, &counts));
	for (int tries = 0; tries < 1000; tries++) {
		enum vp_agent_counts_state now = vp_agent_counts_poll(counts, 60);
		if (now == VP_AGENT_GONE || (hang && now == VP_AGENT_COUNTING))
			break;
	}
	return counts;
}

static void expect_gone(const char *answer, const char *why)
{
	pid_t child;
	struct vp_agent_counts *counts = hear_of(answer, false, &child);

	if (!strstr(vp_agent_counts_problem(counts), why))
		fail_msg("'%s' does not say '%s'", vp_agent_counts_problem(counts), why);
	vp_agent_counts_free(counts);
	waitpid(child, NULL, 0);
}

#define HEAD "vperf-counts 1\nmarker 1000\n"

static void test_counts_answer(void **state)
{
	pid_t child;

	if (geteuid()) /* only root can give up all its rights */
		skip();
	struct vp_agent_counts *counts = hear_of(
	    HEAD "count 3 guest:forks 1008\nwithout guest:major-faults\nend 4\n", true, &child);
	const struct vp_agent_memory *places = vp_agent_counts_memory(counts);
	assert_int_equal(vp_agent_counts_poll(counts, 0), VP_AGENT_COUNTING);
	assert_true(places->marker && places->marker_gpa == 0x1000 && places->counts.count == 1);
	assert_true(places->counts.at[0].vcpu == 3 && places->counts.at[0].gpa == 0x1008);
	assert_int_equal(places->counts.at[0].event, VP_GUEST_forks);
	assert_int_equal(places->without, 1U << VP_GUEST_major_faults);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	while (vp_agent_counts_poll(counts, 1000) != VP_AGENT_GONE)
		;
	assert_non_null(strstr(vp_agent_counts_problem(counts), "the agent of guest 'g' "));
	vp_agent_counts_free(counts);
}

static void test_counts_of_liars(void **state)
{
	if (geteuid())
		skip();
	expect_gone("error too \033many\n", "refuses: too ?many");
	expect_gone(HEAD "end 2\nerror enough\n", "stopped: enough");
	expect_gone("marker 1000\n", "a malformed reply: line 1");
	expect_gone("vperf-counts 2\n", "a malformed reply: line 1");
	expect_gone(HEAD "vperf-counts 1\n", "malformed reply: line 3");
	expect_gone(HEAD "count 4294967295 guest:forks 0\n", "malformed reply: line 3");
	expect_gone(HEAD "count 4294967296 guest:forks 0\n", "malformed reply: line 3");
	expect_gone(HEAD "count 1 guest:forks 12345678123456781\n", "malformed reply: line 3");
	expect_gone(HEAD "end 3\n", "malformed reply: line 3");
	expect_gone(HEAD "end 2 x\n", "malformed reply: line 3");
	char endless[1000];
	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = 0;
	expect_gone(endless, "a line of more than");
	expect_gone("", "has ended");
}

static struct vp_guest_counters places_of(int map, uint32_t pid, uint32_t vcpu)
{
	uint64_t key = (uint64_t)pid << 32 | vcpu;
	struct vp_guest_counters places;

	assert_int_equal(bpf_map_lookup_elem(map, &key, &places), 0);
	return places;
}

/* The agent of process 7's guest counts these on vCPU 0, it says, and on one that there is not. */
static struct vp_error *agent_says(int map, uint64_t marker_gpa, uint64_t calls, uint64_t forks)
{
	struct vp_guest_state state = {.pid = 7};
	struct vp_agent_memory agent = {.marker = 99, .marker_gpa = marker_gpa};

	vp_guest_memory_add(&state.memory, 0x1000, 0x1000, 0x70001000);
	vp_vec_push(&state.vcpus, (struct vp_guest_registers){0});
	vp_vec_push(&agent.counts, ((struct vp_agent_count_cell){1, VP_GUEST_forks, 0x1010}));
	vp_vec_push(&agent.counts, ((struct vp_agent_count_cell){0, VP_GUEST_system_calls, calls}));
	vp_vec_push(&agent.counts, ((struct vp_agent_count_cell){0, VP_GUEST_forks, forks}));
	struct vp_error *error = vp_guest_counters_of_agent(map, &state, &agent);
	vp_vec_deinit(&agent.counts);
	vp_vec_deinit(&state.vcpus);
	vp_guest_memory_deinit(&state.memory);
	return error;
}

/* The kernel's own counter of forks is there. */
static void kernel_says(int map, uint64_t forks)
{
	struct vp_guest_state state = {.pid = 7};
	struct vp_guest_finding finding = {0};

	vp_guest_memory_add(&state.memory, 0x1000, 0x1000, 0x70001000);
	vp_vec_push(&finding.cpus, (struct vp_guest_current_address){0});
	vp_vec_push(&finding.counts,
		    ((struct vp_guest_count_address){0, VP_GUEST_forks, forks, true}));
	expect_no_error(vp_guest_counters_of_kernel(map, &state, &finding));
	vp_vec_deinit(&finding.cpus);
	vp_vec_deinit(&finding.counts);
	vp_guest_memory_deinit(&state.memory);
}

static void test_counts_places(void **state)
{
	const uint32_t forks = 1U << VP_GUEST_forks, calls = 1U << VP_GUEST_system_calls;
	int map = bpf_map_create(BPF_MAP_TYPE_HASH, "places", sizeof(uint64_t),
				 sizeof(struct vp_guest_counters), 16, NULL);

	if (map < 0) /* not permitted */
		skip();
	assert_int_equal(vp_guest_counters_known(map, 7), 0);
	/* Outside of the memory, or over its end; no good seal. */
	expect_no_error(agent_says(map, 0x1000, 0xff8, 0x1ff9));
	expect_no_error(agent_says(map, 0x2000, 0x1008, 0x1010));
	assert_int_equal(vp_guest_counters_known(map, 7), 0);
	kernel_says(map, 0x1100);
	assert_int_equal(vp_guest_counters_known(map, 7), forks);
	expect_no_error(agent_says(map, 0x1000, 0x1008, 0x1010));
	assert_int_equal(vp_guest_counters_known(map, 7), forks | calls);
	struct vp_guest_counters places = places_of(map, 7, 0);
	assert_true(places.hva[VP_GUEST_system_calls] == 0x70001008 && places.marker == 99 &&
		    places.marker_hva == 0x70001000 && places.marked == calls);
	assert_true(places.hva[VP_GUEST_forks] == 0x70001100 && places.narrow == forks);
	vp_guest_counters_drop(map, 7, false);
	assert_int_equal(vp_guest_counters_known(map, 7), calls);
	/* What is the agent's stays the agent's, until it is gone. */
	expect_no_error(agent_says(map, 0x1000, 0x1018, 0x1010));
	kernel_says(map, 0x1100);
	places = places_of(map, 7, 0);
	assert_true(places.hva[VP_GUEST_system_calls] == 0x70001008);
	assert_true(places.hva[VP_GUEST_forks] == 0x70001010 && !places.narrow);
	vp_guest_counters_drop(map, 7, true);
	assert_int_equal(vp_guest_counters_known(map, 7), 0);
	const uint64_t no_vcpu = 7ULL << 32 | 1;
	assert_int_not_equal(bpf_map_lookup_elem(map, &no_vcpu, &places), 0);
	close(map);
}

static uint32_t find_space(const struct vp_maps *maps, uint32_t tgid)
{
	for (uint32_t i = 0; i < maps->spaces.count; i++)
		if (maps->spaces.at[i].tgid == tgid && !maps->spaces.at[i].end_ns)
			return i;
	return UINT32_MAX;
}

bool __real_vp_mapped_write(struct vp_maps_writer *writer, struct vp_mapped *mapped, bool symbols);
bool __wrap_vp_mapped_write(struct vp_maps_writer *writer, struct vp_mapped *mapped, bool symbols);

/* Users' files are read where little can be done but that. */
bool __wrap_vp_mapped_write(struct vp_maps_writer *writer, struct vp_mapped *mapped, bool symbols)
{
	struct vp_buffer text = {0};

	expect_no_error(vp_file_read("/proc/self/status", 1 << 20, &text));
	if (!strstr(vp_buffer_text(&text), "\nSeccomp:\t2\n") ||
	    !strstr(vp_buffer_text(&text), "\nNoNewPrivs:\t1\n") ||
	    open("test_agent.forbidden", O_WRONLY | O_CREAT, 0600) >= 0)
		_exit(1);
	vp_buffer_deinit(&text);
	return __real_vp_mapped_write(writer, mapped, symbols);
}

/* Of this machine, with whatever rights the test has: its own process is there, with its mappings.
 */
static void test_dump(void **state)
{
	struct vp_agent agent;
	struct vp_maps maps;
	bool own_code = false, own_symbol = false;
	int fd = open("test_agent.maps", O_RDWR | O_CREAT | O_TRUNC, 0600);

	vp_agent_start(&agent);
	vp_agent_catch_up(&agent);
	assert_int_equal(vp_agent_dump(&agent, fd, true), 0);
	vp_agent_stop(&agent);
	close(fd);
	expect_no_error(vp_maps_load("test_agent.maps", &maps));
	assert_int_equal(maps.warning_count, 0);
	assert_true(maps.complete && maps.guest);
	assert_int_equal(maps.clocks.count, 2);
	assert_true(maps.clocks.at[0].mono_ns < maps.clocks.at[1].mono_ns);
	uint32_t own = find_space(&maps, (uint32_t)getpid());
	assert_int_not_equal(own, UINT32_MAX);
	vp_vec_each (&maps.mappings, mapping)
		own_code |= mapping->space == own && mapping->start <= (uintptr_t)test_dump &&
			    (uintptr_t)test_dump < mapping->end;
	vp_vec_each (&maps.symbols, symbol)
		own_symbol |= vp_slice_is(vp_maps_word(&maps, symbol->name), "test_dump");
	assert_true(own_code && own_symbol);
	vp_maps_deinit(&maps);
}

#define CLIENTS "test_agent.clients"
enum { SILENT = 40, MAX_SILENT = 32 };

static int listen_clients(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = CLIENTS};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	unlink(CLIENTS);
	assert_false(bind(listener, (struct sockaddr *)&address, sizeof(address)));
	assert_false(listen(listener, SILENT));
	return listener;
}

static int connect_client(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = CLIENTS};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_false(connect(fd, (struct sockaddr *)&address, sizeof(address)));
	return fd;
}

/* Clients that say nothing: a user has some of them, for a while. */
static void test_silent_clients(void **state)
{
	struct vp_lend lend = {.host = -1, .listener = listen_clients()};
	int fds[SILENT];
	char byte;

	for (int i = 0; i < SILENT; i++) {
		fds[i] = connect_client();
		vp_lend_client_accept(&lend, 1000 + (uint64_t)i);
	}
	assert_int_equal(lend.clients.count, MAX_SILENT);
	for (int i = 0; i < SILENT; i++) /* the oldest are gone */
		assert_int_equal(recv(fds[i], &byte, 1, MSG_DONTWAIT), i < 8 ? 0 : -1);
	lend.clients.at[0].is_attached = true;
	vp_lend_clients_expire(&lend, 3000);
	assert_int_equal(lend.clients.count, MAX_SILENT);
	vp_lend_clients_expire(&lend, 5000);
	assert_int_equal(lend.clients.count, 1);
	for (int i = 0; i < SILENT; i++)
		close(fds[i]);
	close(lend.clients.at[0].fd);
	vp_vec_deinit(&lend.clients);
	close(lend.listener);
}

/* Without a descriptor for a new client the listener is left alone for a moment: it would be ready
 * again and again. */
static void test_no_descriptors(void **state)
{
	struct vp_lend lend = {.host = -1, .listener = listen_clients()};
	struct rlimit before, none;
	int fd = connect_client(), next = dup(fd);

	assert_false(getrlimit(RLIMIT_NOFILE, &before));
	none = before;
	none.rlim_cur = (rlim_t)next;
	close(next);
	assert_false(setrlimit(RLIMIT_NOFILE, &none));
	vp_lend_client_accept(&lend, 1000);
	assert_false(setrlimit(RLIMIT_NOFILE, &before));
	assert_true(!lend.clients.count && lend.accept_after > 1000);
	lend.accept_after = 0;
	vp_lend_client_accept(&lend, 2000);
	assert_true(lend.clients.count == 1 && !lend.accept_after);
	vp_lend_client_accept(&lend, 3000); /* nobody is there */
	assert_false(lend.accept_after);
	close(lend.clients.at[0].fd);
	vp_vec_deinit(&lend.clients);
	close(lend.listener);
	close(fd);
}

#define VSOCK "/run/vsock" /* the socket in place of a vsock device's */

/* Who asks over vsock, as the kernel has it for the server; NULL: there is no device of the test's.
 */
static struct sockaddr_vm *vsock_peer;

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __real_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size);
int __real_getpeername(int fd, struct sockaddr *address, socklen_t *size);
int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *size);

int __wrap_socket(int domain, int type, int protocol)
{
	return __real_socket(vsock_peer && domain == AF_VSOCK ? AF_UNIX : domain, type, protocol);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size)
{
	const struct sockaddr_un there = {.sun_family = AF_UNIX, .sun_path = VSOCK};

	if (!vsock_peer || address->sa_family != AF_VSOCK)
		return __real_bind(fd, address, size);
	assert_int_equal(((const struct sockaddr_vm *)address)->svm_port, 9739);
	assert_int_equal(((const struct sockaddr_vm *)address)->svm_cid, VMADDR_CID_ANY);
	return __real_bind(fd, (const struct sockaddr *)&there, sizeof(there));
}

int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *size)
{
	if (!vsock_peer)
		return __real_getpeername(fd, address, size);
	memcpy(address, vsock_peer, sizeof(*vsock_peer));
	return vsock_peer->svm_family ? 0 : -1;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	for (int i = 0; connect(fd, (struct sockaddr *)&address, sizeof(address)); i++) {
		assert_in_range(i, 0, 3000);
		usleep(10000);
	}
	return fd;
}

static int connect_agent(void)
{
	return connect_to(VP_AGENT_SOCKET);
}

/* What the agent says at once. */
static void expect_reply(int fd, const char *begin)
{
	const struct timeval patience = {.tv_sec = 30};
	char reply[64] = "";

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_true(recv(fd, reply, strlen(begin), MSG_WAITALL) >= 0);
	assert_string_equal(reply, begin);
	close(fd);
}

/* Until the other side has read all that was written. */
static void wait_until_read(int fd)
{
	int unread = 1;

	for (int i = 0; unread; i++) {
		assert_in_range(i, 0, 3000);
		usleep(10000);
		assert_false(ioctl(fd, SIOCOUTQ, &unread));
	}
}

static const struct vp_agent_serve_options serve_options = {.port = 9739, .ring_kib = 64};

/* Over vsock only the host is answered, not programs of the guest itself, nor who is not known. */
static void expect_only_host(void)
{
	static const struct {
		sa_family_t family;
		unsigned cid;
	} others[] = {{AF_VSOCK, VMADDR_CID_LOCAL},
		      {AF_VSOCK, VMADDR_CID_HYPERVISOR},
		      {AF_VSOCK, 3},
		      {AF_UNIX, VMADDR_CID_HOST},
		      {0, VMADDR_CID_HOST}};
	const struct timeval patience = {.tv_sec = 10};
	char byte;

	for (size_t i = 0; i < VP_ARRAY_SIZE(others); i++) {
		vsock_peer->svm_family = others[i].family;
		vsock_peer->svm_cid = others[i].cid;
		int fd = connect_to(VSOCK);
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		assert_int_equal(recv(fd, &byte, 1, 0), 0);
		close(fd);
	}
	vsock_peer->svm_family = AF_VSOCK;
	vsock_peer->svm_cid = VMADDR_CID_HOST;
	int fd = connect_to(VSOCK);
	assert_int_equal(write(fd, "x\n", 2), 2);
	expect_reply(fd, "error expected 'vperf-request 1 dump");
}

/* In a /run of this process's own. It is the last test: that stays. */
static void test_server(void **state)
{
	struct stat about;
	int status;

	if (geteuid() != 0 || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/run", "tmpfs", 0, NULL))
		skip();
	vsock_peer = mmap(NULL, sizeof(*vsock_peer), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(vsock_peer != MAP_FAILED);
	pid_t server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(vp_agent_serve(&serve_options) != NULL);
	}
	close(connect_agent());
	expect_only_host();
	/* It tells kernel addresses. */
	assert_int_equal(stat(VP_AGENT_SOCKET, &about), 0);
	assert_int_equal(about.st_mode & 0777, 0600);
	/* A second one ends, and the first goes on. */
	pid_t second = fork();
	if (second == 0) {
		struct vp_error *error = vp_agent_serve(&serve_options);
		_exit(!error || !strstr(vp_error_message(error), "is already running"));
	}
	assert_int_equal(waitpid(second, &status, 0), second);
	assert_int_equal(status, 0);
	/* More than answer at the same time, one after the other. */
	for (int i = 0; i < 20; i++) {
		int fd = connect_agent();
		assert_int_equal(write(fd, "x\n", 2), 2);
		expect_reply(fd, "error expected 'vperf-request 1 dump");
		usleep(20000);
	}
	/* In pieces. */
	int fd = connect_agent();
	size_t size = strlen(VP_AGENT_REQUEST_NO_SYMBOLS);
	assert_int_equal(write(fd, VP_AGENT_REQUEST_NO_SYMBOLS, 5), 5);
	wait_until_read(fd);
	assert_int_equal(write(fd, VP_AGENT_REQUEST_NO_SYMBOLS + 5, size - 5), size - 5);
	expect_reply(fd, "vperf-maps ");
	assert_int_equal(kill(server, SIGTERM), 0);
	assert_int_equal(waitpid(server, &status, 0), server);
	assert_int_equal(status, 0);
	assert_int_equal(access(VP_AGENT_SOCKET, F_OK), -1);
	munmap(vsock_peer, sizeof(*vsock_peer));
	vsock_peer = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_direct_map),     cmocka_unit_test(test_transfer),
	    cmocka_unit_test(test_refusals),       cmocka_unit_test(test_asked_again),
	    cmocka_unit_test(test_ports),          cmocka_unit_test(test_counts_request),
	    cmocka_unit_test(test_lend_request),   cmocka_unit_test(test_lend_answer),
	    cmocka_unit_test(test_counts_answer),  cmocka_unit_test(test_counts_of_liars),
	    cmocka_unit_test(test_counts_places),  cmocka_unit_test(test_dump),
	    cmocka_unit_test(test_silent_clients), cmocka_unit_test(test_no_descriptors),
	    cmocka_unit_test(test_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
