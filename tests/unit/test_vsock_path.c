/* SPDX-License-Identifier: GPL-2.0-or-later */
/* VMMs whose vsock is a unix socket: which one it is, and agents behind it, honest and not. */
#include "unit.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/agent/events_client.h"
#include "host/vsock_path.h"

#define PROC "test_vsock_path.proc"
#define SOCKET "test_vsock_path.socket"

/* As Linux prints them: the API's, the vsock's, that of a connection, one of somebody else. */
static const char sockets[] =
    "Num       RefCount Protocol Flags    Type St Inode Path\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   101 /run/api.socket\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   102 /run/v.sock\n"
    "0000000000000000: 00000003 00000000 00000000 0001 03   103 /run/connected.sock\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   104 @abstract\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01 99999 /run/others.sock\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   105\n";

static void put_socket(int fd, int inode)
{
	char link[64], target[64];

	snprintf(link, sizeof(link), PROC "/77/fd/%d", fd);
	snprintf(target, sizeof(target), "socket:[%d]", inode);
	unlink(link);
	assert_int_equal(symlink(target, link), 0);
}

/* `expected`: where it is found, NULL: nowhere. */
static void expect_path(const char *cmdline, size_t size, const char *expected)
{
	struct vp_vmm_command command = vp_vmm_command_read(cmdline, size);
	VP_AUTO_FREE char *found = vp_vsock_path_find(PROC, 77, &command);

	if (expected && found)
		assert_string_equal(found, expected);
	assert_int_equal(!found, !expected);
	vp_vmm_command_deinit(&command);
}
#define EXPECT_PATH(cmdline, expected) expect_path(cmdline, sizeof(cmdline), expected)

static void test_which_socket(void **state)
{
	mkdir(PROC, 0755);
	mkdir(PROC "/77", 0755);
	mkdir(PROC "/77/fd", 0755);
	mkdir(PROC "/77/net", 0755);
	temporary_file(PROC "/77/net/unix", sockets, sizeof(sockets) - 1);
	for (int i = 0; i < 5; i++)
		put_socket(i, 101 + i);
	EXPECT_PATH("cloud-hypervisor\0--cpus\0boot=1\0--vsock\0cid=3,socket=/tmp/ch.vsock",
		    PROC "/77/root//tmp/ch.vsock");
	EXPECT_PATH("cloud-hypervisor\0--vsock=socket=ch.vsock,cid=3", PROC "/77/cwd/ch.vsock");
	EXPECT_PATH("cloud-hypervisor\0--vsock\0cid=3", NULL);
	EXPECT_PATH("cloud-hypervisor\0--vsock", NULL);
	EXPECT_PATH("/usr/bin/firecracker\0--api-sock\0/run/api.socket\0--id\0x",
		    PROC "/77/root//run/v.sock");
	/* Two: it is not known which. */
	EXPECT_PATH("firecracker\0--id\0x", NULL);
	/* QEMU listens at several, none of which is one. */
	EXPECT_PATH("qemu-system-x86_64\0--api-sock\0/run/api.socket", NULL);
	EXPECT_PATH("", NULL);
	/* What is a tenant's text is no option, and other VMMs have no such socket. */
	EXPECT_PATH("cloud-hypervisor\0--cmdline\0--vsock=socket=/tmp/ch.vsock", NULL);
	EXPECT_PATH("qemu-system-x86_64\0-append\0--vsock=socket=/tmp/ch.vsock", NULL);
}

/* A VMM, as whom this process listens: it takes one connection, and answers that with `ok`. Behind
 * it is a guest that answers whatever it is asked with `answer`. */
static pid_t play_vmm(int listener, const char *ok, const char *answer, size_t size)
{
	pid_t child = fork();
	char line[64] = "", request[256];

	if (child)
		return child;
	int fd = accept(listener, NULL, NULL);
	for (size_t at = 0; at < sizeof(line) - 1 && !strchr(line, '\n'); at++)
		if (read(fd, line + at, 1) != 1)
			_exit(1);
	if (strcmp(line, "CONNECT 733\n") != 0 || vp_fd_write_all(fd, ok, strlen(ok)))
		_exit(2);
	if (ok[0] == 'O' &&
	    (read(fd, request, sizeof(request)) < 1 || vp_fd_write_all(fd, answer, size)))
		_exit(3);
	_exit(0);
}

static int listen_here(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	unlink(SOCKET);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	return listener;
}

static void expect_unreachable(const char *ok, const char *why)
{
	int listener = listen_here(), fd = -1, status;
	pid_t child = play_vmm(listener, ok, "", 0);

	expect_error(vp_vsock_path_connect(SOCKET, (uint32_t)getpid(), 733, 5, &fd), why);
	close(listener);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_unreachable(void **state)
{
	int fd = -1, listener = listen_here();

	/* Nobody takes the connection. */
	expect_error(vp_vsock_path_connect(SOCKET, (uint32_t)getpid(), 733, 1, &fd),
		     "through '" SOCKET "' at vsock port 733: Connection timed out");
	expect_error(vp_vsock_path_connect(SOCKET, 1, 733, 1, &fd),
		     "is not a socket of the VMM's process 1");
	close(listener);
	expect_error(vp_vsock_path_connect(SOCKET, (uint32_t)getpid(), 733, 1, &fd),
		     "cannot connect to the VMM's vsock at '" SOCKET "': Connection refused");
	unlink(SOCKET);
	expect_error(vp_vsock_path_connect(SOCKET, (uint32_t)getpid(), 733, 1, &fd),
		     "No such file or directory");
	/* The VMM closes the connection if nobody listens in the guest. */
	expect_unreachable("", "at vsock port 733: Connection refused");
	expect_unreachable("NO 1\n", "does not reply with 'OK'");
	expect_unreachable("it talks and talks and does not come to an end", "Protocol error");
}

static void test_symbol_map(void **state)
{
	static const char answer[] = "vperf-maps 1\nend 1\n";
	const struct vp_agent_address address = {.path = SOCKET, .pid = (uint32_t)getpid()};
	int listener = listen_here();
	pid_t child = play_vmm(listener, "OK 1073741824\n", answer, sizeof(answer) - 1);
	struct vp_agent_result result;

	expect_no_error(vp_agent_fetch(&address, "test_vsock_path.maps", NULL, &result));
	assert_int_equal(result.bytes, sizeof(answer) - 1);
	close(listener);
	waitpid(child, NULL, 0);
}

static void take_classes(void *context, struct vp_slice text)
{
	vp_buffer_append(context, text.bytes, text.size);
}

static void test_events(void **state)
{
	static const char format[] = "sched:sched_switch\nID: 314\n"
				     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
	const struct vp_events_frame frames[] = {{VP_EVENTS_FORMAT, 0, sizeof(format) - 1, 0},
						 {VP_EVENTS_BEGIN, 0, 4, 0},
						 {VP_EVENTS_END, 0, 0, 0}};
	const struct vp_agent_address address = {.path = SOCKET, .pid = (uint32_t)getpid()};
	const uint32_t page_size = 4096;
	struct vp_buffer answer = {0}, classes = {0};
	const struct vp_agent_events_receiver taker = {.context = &classes,
						       .classes = take_classes};
	enum vp_agent_events_state now = VP_AGENT_EVENTS_ASKED;
	struct vp_agent_events *events;

	vp_buffer_string(&answer, VP_EVENTS_HEAD);
	vp_buffer_append(&answer, &frames[0], sizeof(frames[0]));
	vp_buffer_append(&answer, format, sizeof(format) - 1);
	vp_buffer_append(&answer, &frames[1], sizeof(frames[1]));
	vp_buffer_append(&answer, &page_size, sizeof(page_size));
	vp_buffer_append(&answer, &frames[2], sizeof(frames[2]));
	int listener = listen_here();
	pid_t child = play_vmm(listener, "OK 1\n", answer.bytes, answer.size);
	expect_no_error(vp_agent_events_start(&address, VP_EVENTS_SET_sched, &events));
	while (now < VP_AGENT_EVENTS_ENDED)
		now = vp_agent_events_receive(events, 1000, SIZE_MAX, &taker);
	assert_int_equal(now, VP_AGENT_EVENTS_ENDED);
	assert_non_null(strstr(vp_buffer_text(&classes), "sched:sched_switch"));
	vp_agent_events_free(events);
	close(listener);
	waitpid(child, NULL, 0);
	vp_buffer_deinit(&answer);
	vp_buffer_deinit(&classes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_which_socket),
	    cmocka_unit_test(test_unreachable),
	    cmocka_unit_test(test_symbol_map),
	    cmocka_unit_test(test_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
