/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Host-provided counters for threads of this guest: see protocol/lent.h and
 * protocol/lend_protocol.h. One process per lending host; when it exits, a BPF program
 * invalidates the cells' markers (guest_lend.bpf.c), so that the host stops writing and clients
 * get an error. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/vec.h"
#include "guest/agent.h"
#include "guest/lend_private.h"
#include "guest/physical.h"
#include "protocol/counts_protocol.h"
#include "protocol/lend_protocol.h"
#include "protocol/lent.h"

enum { ENDING_TRIES = 100, ENDING_WAIT_US = 20000, ACCEPT_PAUSE_MS = 100 };

static bool is_lent(const struct sockaddr_un *address)
{
	VP_AUTO_CLOSE int other = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	return other >= 0 && !vp_connect(other, (const struct sockaddr *)address, sizeof(*address));
}

/* Any user may connect; only one host at a time may lend. The process of a host that has just
 * disconnected may not have noticed yet. */
static struct vp_error *listen_clients(struct vp_lend *lend)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = VP_LENT_SOCKET};

	for (int tries = 0; is_lent(&address); tries++) {
		if (tries == ENDING_TRIES)
			return vp_error_new("another host program lends to this guest");
		vp_sleep_us(ENDING_WAIT_US);
	}
	unlink(VP_LENT_SOCKET); /* left by a killed agent */
	lend->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0111);
	bool good = lend->listener >= 0 &&
		    !bind(lend->listener, (struct sockaddr *)&address, sizeof(address)) &&
		    !listen(lend->listener, SOMAXCONN);
	umask(mask);
	return good ? NULL : vp_error_errno(errno, "cannot listen on '%s'", VP_LENT_SOCKET);
}

struct placing {
	struct vp_lend *lend;
	struct vp_buffer *answer;
	uint64_t lines;
	int pagemap;
};

static struct vp_error *agent_lend_put_cell(void *context, uint32_t cpu, uint32_t vcpu)
{
	struct placing *placing = context;
	struct vp_lend_line line = {.kind = VP_LEND_CELL, .vcpu = vcpu};

	if (cpu >= placing->lend->n_cells)
		return NULL;
	VP_TRY(vp_guest_physical(&placing->lend->cells[cpu], placing->pagemap, &line.number));
	vp_lend_line_write(&line, placing->answer);
	placing->lines++;
	return NULL;
}

static struct vp_error *agent_lend_make_answer(struct vp_lend *lend, struct vp_buffer *answer)
{
	VP_AUTO_CLOSE int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	struct placing placing = {lend, answer, 1, pagemap};

	if (pagemap < 0)
		return vp_error_errno(errno, "cannot open '/proc/self/pagemap'");
	vp_lend_line_write(&(struct vp_lend_line){VP_LEND_HEAD, .number = 1}, answer);
	VP_TRY(vp_guest_cpus(agent_lend_put_cell, &placing));
	vp_lend_line_write(&(struct vp_lend_line){VP_LEND_END, .number = placing.lines}, answer);
	return NULL;
}

static struct vp_error *agent_lend_begin(struct vp_lend *lend, struct vp_buffer *answer)
{
	VP_TRY(listen_clients(lend));
	VP_TRY(vp_lend_load(lend));
	return agent_lend_make_answer(lend, answer);
}

/* The host sends keep-alive lines; false: it disconnected, or the lease expired. */
static bool receive_from_host(struct vp_lend *lend, short events)
{
	static const char too_long[] = "error timeout: no request from the host\n";
	char bytes[64];
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	if (events) {
		ssize_t got = vp_recv(lend->host, bytes, sizeof(bytes), MSG_DONTWAIT);
		lend->last_contact = now.tv_sec;
		return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
	}
	if (now.tv_sec - lend->last_contact < VP_COUNTS_LEASE_S)
		return true;
	int ignored = vp_fd_write_all(lend->host, too_long, sizeof(too_long) - 1);
	(void)ignored;
	return false;
}

static uint64_t agent_lend_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Serves until the host disconnects. */
static void serve_clients(struct vp_lend *lend)
{
	VP_VEC(struct pollfd) fds = {0};
	bool goes_on = true;

	receive_from_host(lend, POLLIN);
	while (goes_on) {
		bool receives = agent_lend_now_ms() >= lend->accept_after;
		int new_clients = receives ? lend->listener : -1;
		fds.count = 0;
		vp_vec_push(&fds, ((struct pollfd){.fd = lend->host, .events = POLLIN}));
		vp_vec_push(&fds, ((struct pollfd){.fd = new_clients, .events = POLLIN}));
		vp_vec_each (&lend->clients, client)
			vp_vec_push(&fds, ((struct pollfd){.fd = client->fd, .events = POLLIN}));
		if (vp_poll(fds.at, fds.count, receives ? 1000 : ACCEPT_PAUSE_MS) < 0 &&
		    errno != EINTR)
			break;
		goes_on = receive_from_host(lend, fds.at[0].revents);
		for (size_t i = fds.count; i-- > 2;)
			if (fds.at[i].revents)
				vp_lend_client_receive(lend, i - 2);
		vp_lend_clients_expire(lend, agent_lend_now_ms());
		if (fds.at[1].revents)
			vp_lend_client_accept(lend, agent_lend_now_ms());
	}
	vp_vec_deinit(&fds);
}

/* Exiting ends the programs, and one of them invalidates the markers: there is no other clean-up
 * path. */
int vp_lend_serve(int fd, const struct vp_lend_request *request)
{
	struct vp_lend lend = {.request = request, .host = fd, .listener = -1};
	struct vp_buffer answer = {0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct vp_error *error = agent_lend_begin(&lend, &answer);
	if (error) {
		answer.size = 0;
		vp_buffer_printf(&answer, "error %s\n", vp_error_message(error));
	}
	int result = vp_fd_write_all(fd, answer.bytes, answer.size);
	if (!error && !result) {
		serve_clients(&lend);
		unlink(VP_LENT_SOCKET);
	}
	vp_error_free(error);
	vp_buffer_deinit(&answer);
	return result;
}
