/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The socket by which a recorder is asked for a snapshot. Who asks is the test's to say. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "session/control.h"

#define NAME "test_control.rec"
#define SOCKET NAME "/control"

enum { THIS_USER = 1000, ANOTHER_USER = 1001 };

static int connect_errno;    /* 0: connections are made */
static int peer = THIS_USER; /* -1: it is not known */

int __real_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size);
uid_t __wrap_geteuid(void);

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	errno = connect_errno;
	return connect_errno ? -1 : __real_connect(fd, address, size);
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
	struct ucred *who = value;

	assert_int_equal(level, SOL_SOCKET);
	assert_int_equal(name, SO_PEERCRED);
	assert_int_equal(*size, sizeof(*who));
	/* A group of the same number is nobody that may ask. */
	*who = (struct ucred){.pid = THIS_USER, .uid = (uid_t)peer, .gid = 0};
	return peer < 0 ? -1 : 0;
}

uid_t __wrap_geteuid(void)
{
	return THIS_USER;
}

static void make_directory(void)
{
	assert_int_equal(system("rm -rf " NAME " && mkdir " NAME), 0);
}

static int begin(void)
{
	int listener = -1;

	make_directory();
	expect_no_error(vp_control_listen(NAME, &listener));
	return listener;
}

/* How many descriptors are open. */
static int open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static int connect_plainly(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(__real_connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void test_listen(void **state)
{
	int before = open_descriptors(), other = -1;
	struct stat status;
	int listener = begin();

	assert_int_equal(stat(SOCKET, &status), 0);
	assert_true(S_ISSOCK(status.st_mode));
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_true(fcntl(listener, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(listener, F_GETFD) & FD_CLOEXEC);
	/* There is one recorder for a directory. */
	int taken = open_descriptors();
	expect_error(vp_control_listen(NAME, &other), "cannot listen at '" SOCKET "'");
	expect_error(vp_control_listen("nowhere", &other), "cannot listen at 'nowhere/control'");
	assert_int_equal(other, -1);
	assert_int_equal(open_descriptors(), taken);
	vp_control_close(NAME, listener);
	assert_int_equal(stat(SOCKET, &status), -1);
	assert_int_equal(open_descriptors(), before);
}

/* A path that is longer than a socket's address can be. */
static void test_long_path(void **state)
{
	VP_AUTO_FREE char *longer = vp_format("%s/%0150d", NAME, 7);
	VP_AUTO_FREE char *file = vp_format("%s/control", longer);
	int listener = -1;

	make_directory();
	assert_int_equal(mkdir(longer, 0755), 0);
	expect_no_error(vp_control_listen(longer, &listener));
	assert_int_equal(access(file, F_OK), 0);
	vp_control_close(longer, listener);
	assert_int_equal(access(file, F_OK), -1);
}

/* What does not listen leaves the file as it is: it is another recorder's. */
static void test_close_of_nothing(void **state)
{
	make_directory();
	temporary_file(SOCKET, "", 0);
	vp_control_close(NAME, -1);
	assert_int_equal(access(SOCKET, F_OK), 0);
}

/* Root may ask, and who records. */
static void test_who_may_ask(void **state)
{
	int listener = begin();
	int none = open_descriptors();
	static const struct {
		int peer;
		bool may;
	} cases[] = {{0, true}, {THIS_USER, true}, {ANOTHER_USER, false}, {-1, false}, {0, true}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		char byte;
		int asks = connect_plainly(SOCKET);
		peer = cases[i].peer;
		int connection = vp_control_accept(listener);
		assert_int_equal(connection >= 0, cases[i].may);
		if (cases[i].may) {
			assert_true(fcntl(connection, F_GETFL) & O_NONBLOCK);
			assert_true(fcntl(connection, F_GETFD) & FD_CLOEXEC);
			close(connection);
		}
		/* Either way the connection has ended. */
		assert_int_equal(vp_recv(asks, &byte, 1, MSG_DONTWAIT), 0);
		close(asks);
		assert_int_equal(open_descriptors(), none);
	}
	peer = THIS_USER;
	assert_int_equal(vp_control_accept(listener), -1);
	vp_control_close(NAME, listener);
}

static void expect_answer(int listener, const char *path, struct vp_error *error,
			  const char *expected)
{
	char bytes[256];
	size_t size = 0;
	ssize_t got;
	int asks = connect_plainly(SOCKET), connection = vp_control_accept(listener);

	assert_true(connection >= 0);
	vp_control_answer(connection, path, error);
	vp_error_free(error);
	while ((got = vp_recv(asks, bytes + size, sizeof(bytes) - size, 0)) > 0)
		size += (size_t)got;
	assert_int_equal(got, 0);
	assert_int_equal(size, strlen(expected));
	assert_memory_equal(bytes, expected, size);
	close(asks);
}

static void test_answer(void **state)
{
	int listener = begin();

	expect_answer(listener, "/var/one", NULL, "ok /var/one\n");
	expect_answer(listener, "/var/one", vp_error_new("the disk is full"),
		      "error the disk is full\n");
	/* One who has gone ends nobody by a signal. */
	int asks = connect_plainly(SOCKET), connection = vp_control_accept(listener);
	close(asks);
	vp_control_answer(connection, "/var/one", NULL);
	vp_control_close(NAME, listener);
}

/* A recorder that sends these bytes, so often, and ends. */
static pid_t start_recorder(int listener, const char *bytes, size_t size, unsigned times)
{
	pid_t child = fork();

	if (child)
		return child;
	int connection = -1;
	while (connection < 0) {
		struct pollfd polled = {.fd = listener, .events = POLLIN};
		if (vp_poll(&polled, 1, 10000) != 1)
			_exit(1);
		connection = vp_accept(listener, SOCK_CLOEXEC);
	}
	for (; times; times--)
		if (vp_send(connection, bytes, size, MSG_NOSIGNAL) < 0)
			break;
	_exit(0);
}

/* Yields the path, or what the error says. */
static char *asked(int listener, const char *bytes, size_t size, unsigned times)
{
	pid_t child = start_recorder(listener, bytes, size, times);
	char *path = (char *)"not set";
	int before = open_descriptors(), status;
	struct vp_error *error = vp_control_ask(NAME, &path);

	assert_int_equal(open_descriptors(), before);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	if (!error)
		return path;
	assert_null(path);
	char *text = vp_format("! %s", vp_error_message(error));
	vp_error_free(error);
	return text;
}

static void expect_asked(int listener, const char *bytes, const char *expected)
{
	char *text = asked(listener, bytes, strlen(bytes), 1);

	assert_string_equal(text, expected);
	free(text);
}

static void test_ask(void **state)
{
	static const char early[] = "! the recorder of '" NAME "' ended before it replied";
	int listener = begin();
	char long_answer[2000];

	expect_asked(listener, "ok /var/a b\n", "/var/a b");
	expect_asked(listener, "ok /var/a\nok /var/b\n", "/var/a");
	expect_asked(listener, "ok \n", "");
	expect_asked(listener, "error no room\nfor it\n", "! no room");
	expect_asked(listener, "error %s\n", "! %s");
	expect_asked(listener, "okay\n", "! no answer");
	expect_asked(listener, "\n", "! no answer");
	expect_asked(listener, "ok /var/hal", early);
	expect_asked(listener, "", early);
	/* More than is read at once. */
	snprintf(long_answer, sizeof(long_answer), "ok /%01990d\n", 5);
	char *text = asked(listener, long_answer, strlen(long_answer), 1);
	assert_int_equal(strlen(text), 1991);
	assert_int_equal(text[1990], '5');
	free(text);
	/* One that never ends is not read for ever. */
	memset(long_answer, 'x', sizeof(long_answer));
	text = asked(listener, long_answer, sizeof(long_answer), UINT32_MAX);
	assert_string_equal(text, early);
	free(text);
	/* A path of 60 KiB is read whole. */
	static char large[60000];
	memset(large, '7', sizeof(large));
	memcpy(large, "ok ", 3);
	large[sizeof(large) - 1] = '\n';
	text = asked(listener, large, sizeof(large), 1);
	assert_int_equal(strlen(text), sizeof(large) - 4);
	free(text);
	vp_control_close(NAME, listener);
}

static void expect_no_recorder(const char *path, const char *expected)
{
	char *answer = (char *)"not set";
	int before = open_descriptors();
	struct vp_error *error = vp_control_ask(path, &answer);

	assert_non_null(error);
	assert_string_equal(vp_error_message(error), expected);
	assert_null(answer);
	assert_int_equal(open_descriptors(), before);
	vp_error_free(error);
}

static void test_no_recorder(void **state)
{
	static const char none[] = "no 'vperf record --flight' records to '" NAME "'";

	make_directory();
	expect_no_recorder(NAME, none);
	expect_no_recorder("nowhere", "no 'vperf record --flight' records to 'nowhere'");
	temporary_file(NAME "/file", "", 0);
	expect_no_recorder(NAME "/file", "no 'vperf record --flight' records to '" NAME "/file'");
	/* A killed recorder leaves its socket behind. */
	int listener = begin();
	close(listener);
	expect_no_recorder(NAME, none);
	connect_errno = EACCES;
	expect_no_recorder(NAME, "cannot contact the recorder of '" NAME
				 "' (try sudo): Permission denied");
	connect_errno = EPERM;
	expect_no_recorder(NAME, "cannot contact the recorder of '" NAME
				 "' (try sudo): Operation not permitted");
	connect_errno = EIO;
	expect_no_recorder(NAME, "cannot contact the recorder of '" NAME "': Input/output error");
	connect_errno = 0;
}

/* The directory of a process, by its descriptors. */
static void test_find(void **state)
{
	VP_AUTO_FREE char *not_one =
	    vp_format("process %d is not a 'vperf record --flight'", (int)getpid());
	char *path = (char *)"not set", *here = getcwd(NULL, 0);
	int before = open_descriptors();

	int listener = begin();
	/* A socket without its directory open is none. */
	expect_error(vp_control_find(getpid(), &path), not_one);
	assert_null(path);
	int directory = open(NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int file = open(NAME "/..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int after = open_descriptors();
	expect_no_error(vp_control_find(getpid(), &path));
	VP_AUTO_FREE char *expected = vp_format("%s/" NAME, here);
	assert_string_equal(path, expected);
	assert_int_equal(open_descriptors(), after);
	free(path);
	close(file);
	vp_control_close(NAME, listener);
	/* A file of that name is no socket. */
	temporary_file(SOCKET, "", 0);
	expect_error(vp_control_find(getpid(), &path), not_one);
	close(directory);
	free(here);
	assert_int_equal(open_descriptors(), before);
	/* A process that has ended, and was waited for, has left its number. */
	pid_t child = fork();
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	VP_AUTO_FREE char *gone = vp_format("there is no process %d", (int)child);
	path = (char *)"not set";
	expect_error(vp_control_find(child, &path), gone);
	assert_null(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_listen),           cmocka_unit_test(test_long_path),
	    cmocka_unit_test(test_close_of_nothing), cmocka_unit_test(test_who_may_ask),
	    cmocka_unit_test(test_answer),           cmocka_unit_test(test_ask),
	    cmocka_unit_test(test_no_recorder),      cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
