/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest/serve_vchan.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "base/macros.h"
#include "protocol/agent_protocol.h"
#include "vchan/vchan.h"
#include "vchan/xenstore.h"

/* Delay after a failed offer. */
enum { AGAIN_S = 3 };

/* Outcome of an offer: a byte that its process sends to the server. */
enum outcome { OUTCOME_TAKEN = 1, OUTCOME_AGAIN, OUTCOME_FAILED };

bool vp_vchan_is_here(void)
{
	return !access(VP_XENSTORE_DEVICE, F_OK);
}

static int connect_agent(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = VP_AGENT_SOCKET};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || !vp_connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

static void serve_vchan_send_outcome(int server, enum outcome outcome)
{
	char byte = (char)outcome;
	ssize_t written = vp_write(server, &byte, 1);

	(void)written;
}

/* A connection outlives the server: the agent's last data must still be sent. */
static void serve_taken(struct vp_vchan_offer *offer)
{
	prctl(PR_SET_PDEATHSIG, 0);
	VP_AUTO_CLOSE int agent = connect_agent();
	if (agent >= 0)
		vp_vchan_serve(offer, agent);
}

/* Makes one offer and serves its connection. `is_quiet`: a failure was already reported. */
static VP_NORETURN void offer_once(unsigned port, bool is_quiet, int server)
{
	struct vp_vchan_offer offer;
	bool taken = false;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	struct vp_error *error = vp_vchan_offer(port, &offer);
	if (!error)
		error = vp_vchan_await(&offer, port, &taken);
	if (error && !is_quiet)
		fprintf(stderr, "vperf-agent: cannot offer a vchan to dom0: %s\n",
			vp_error_message(error));
	serve_vchan_send_outcome(server, error   ? OUTCOME_FAILED
					 : taken ? OUTCOME_TAKEN
						 : OUTCOME_AGAIN);
	close(server);
	if (taken)
		serve_taken(&offer);
	_exit(0);
}

/* Each offer is made by a process of its own, which frees its pages on exit. */
static enum outcome make_offer(unsigned port, bool is_quiet)
{
	char outcome = OUTCOME_FAILED;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return OUTCOME_FAILED;
	pid_t process = fork();
	if (process == 0) {
		close(ends[0]);
		offer_once(port, is_quiet, ends[1]);
	}
	close(ends[1]);
	if (process > 0 && vp_read(ends[0], &outcome, 1) != 1)
		outcome = OUTCOME_FAILED;
	close(ends[0]);
	return (enum outcome)outcome;
}

static VP_NORETURN void serve_offers(unsigned port)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* no zombies of connections */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	for (bool has_failed = false;;) {
		has_failed = make_offer(port, has_failed) == OUTCOME_FAILED;
		if (has_failed)
			vp_sleep_us(AGAIN_S * 1000000ULL);
	}
}

pid_t vp_vchan_server_start(unsigned port)
{
	if (!vp_vchan_is_here())
		return 0;
	pid_t server = fork();
	if (server == 0)
		serve_offers(port);
	return server > 0 ? server : 0;
}

void vp_vchan_server_end(pid_t server, unsigned port)
{
	if (!server)
		return;
	kill(server, SIGTERM);
	vp_waitpid(server, NULL, 0);
	vp_vchan_withdraw(port);
}
