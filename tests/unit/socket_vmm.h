/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A VMM whose guest's agent is reached through a unix socket: a process of the test's own. */
#ifndef VP_TESTS_SOCKET_VMM_H
#define VP_TESTS_SOCKET_VMM_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

/* One connection after another: the agent has got a request and answers; then it is closed. */
static inline void answer_connections(int listener, int count, void (*answer)(int fd, int number))
{
	for (int number = 0; number < count; number++) {
		char line[128];
		int fd = accept(listener, NULL, NULL);

		if (fd < 0 || read(fd, line, sizeof(line)) < 1 ||
		    vp_fd_write_all(fd, "OK 1\n", 5) || read(fd, line, sizeof(line)) < 1)
			_exit(1);
		answer(fd, number);
		close(fd);
	}
	_exit(0);
}

/* Its process; it ends after `count` connections, and with the test. */
static inline pid_t start_socket_vmm(const char *path, int count,
				     void (*answer)(int fd, int number))
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int ready[2];
	char byte;

	strcpy(address.sun_path, path);
	unlink(path);
	assert_false(pipe(ready));
	pid_t pid = fork();
	if (!pid) {
		int listener = socket(AF_UNIX, SOCK_STREAM, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
		    listen(listener, 4) || write(ready[1], "", 1) != 1)
			_exit(1);
		answer_connections(listener, count, answer);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

#endif
