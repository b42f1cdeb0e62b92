/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Agents of several guests are asked at once at the end of a session. */
#include "unit.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_private.h"

#define NAME "test_session_agents"

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(address.sun_path, path);
	unlink(path);
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 4) ? -1 : fd;
}

static int accept_agent(int listener)
{
	char request[64];
	int fd = accept(listener, NULL, NULL);

	return read(fd, request, sizeof(request)) > 0 && write(fd, "OK 1\n", 5) == 5 ? fd : -1;
}

static bool answer(int fd)
{
	char request[64];

	return read(fd, request, sizeof(request)) > 0 && write(fd, "no map\n", 7) == 7;
}

/* A VMM of two guests, of which the first says nothing before the second is asked, too. */
static VP_NORETURN void answer_both(int ready)
{
	int first = listen_at(NAME ".a"), second = listen_at(NAME ".b");

	if (first < 0 || second < 0 || write(ready, "", 1) != 1)
		_exit(1);
	int a = accept_agent(first), b = accept_agent(second);
	_exit(!answer(b) || !answer(a));
}

static struct vp_vm vm_with_agent(pid_t pid, const char *name, const char *path)
{
	return (struct vp_vm){.pid = (uint32_t)pid,
			      .nth = name[0] == 'b',
			      .name = vp_strdup(name),
			      .uuid = vp_strdup(""),
			      .agent = vp_strdup(""),
			      .memory = vp_strdup(""),
			      .vsock = vp_strdup(path)};
}

/* No guest's agent waits for another's: each has its time, and all have the same. */
static void test_agents_are_asked_at_once(void **state)
{
	const struct vp_session_options options = {.directory = NAME,
						   .ask_agents = true,
						   .agent_port = 9733,
						   .agent_seconds = 10,
						   .agent_bytes = 1 << 20};
	struct vp_session *session = vp_session_new(&options);
	int ready[2], status;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t vmm = fork();
	if (vmm == 0)
		answer_both(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	session->dir.now = vp_strdup(".");
	vp_vec_push(&session->vms, vm_with_agent(vmm, "a", NAME ".a"));
	vp_vec_push(&session->vms, vm_with_agent(vmm, "b", NAME ".b"));
	vp_session_ask_agents(session);
	assert_int_equal(waitpid(vmm, &status, 0), vmm);
	assert_int_equal(status, 0);
	vp_vec_each (&session->vms, vm) {
		if (!strstr(vm->agent, "truncated after 7 bytes"))
			fail_msg("'%s' says '%s'", vm->name, vm->agent);
		assert_int_equal(vm->agent_outcomes.count, 1);
		assert_int_equal(vm->agent_outcomes.at[0].request, VP_AGENT_SYMBOL_MAP);
		assert_int_equal(vm->agent_outcomes.at[0].status, VP_AGENT_FAILED);
		assert_int_equal(vm->agent_outcomes.at[0].port, 9733);
	}
	vp_session_free(session);
	unlink(NAME ".a");
	unlink(NAME ".b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_agents_are_asked_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
