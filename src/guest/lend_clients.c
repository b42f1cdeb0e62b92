/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clients: threads of this guest with host-provided counters. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/io.h"
#include "base/vec.h"
#include "guest/lend.skel.h"
#include "guest/lend_command.h"
#include "guest/lend_private.h"
#include "protocol/lent.h"

enum {
	MAX_CLIENTS = 2 * VP_LENT_THREADS,
	MAX_OF_USER = VP_LENT_THREADS / 4,
	/* Maximum number of a user's clients without a request, and their time limit. */
	MAX_SILENT = 32,
	SILENT_MS = 3000,
	/* Pause of accepting clients while this process has no free file descriptor. */
	PAUSE_MS = 200,
};

static void detach(struct vp_lend *lend)
{
	for (int i = 0; i < VP_LEND_LINKS; i++) {
		bpf_link__destroy(lend->links[i]);
		lend->links[i] = NULL;
	}
}

/* Starts the cost of lending with the first client: the host writes to cells with a valid
 * marker. */
static int start_lending(struct vp_lend *lend)
{
	struct bpf_program *programs[VP_LEND_LINKS] = {lend->programs->progs.on_switch,
						       lend->programs->progs.on_exec,
						       lend->programs->progs.on_fork};

	if (lend->links[0])
		return 0;
	for (int i = 0; i < VP_LEND_LINKS; i++) {
		lend->links[i] = bpf_program__attach(programs[i]);
		if (!lend->links[i]) {
			int errnum = errno;
			detach(lend);
			return -errnum;
		}
	}
	return vp_lend_command(lend, VP_LEND_MARK, lend->request->marker);
}

static void stop_lending(struct vp_lend *lend)
{
	if (!lend->links[0])
		return;
	vp_vec_each (&lend->clients, client)
		if (client->is_attached)
			return;
	int ignored = vp_lend_command(lend, VP_LEND_MARK, 0);
	(void)ignored;
	detach(lend);
}

static const struct vp_lend_client *other_set(const struct vp_lend *lend,
					      const struct vp_lend_client *of)
{
	vp_vec_each (&lend->clients, client)
		if (client != of && client->is_attached && client->tid == of->tid)
			return client;
	return NULL;
}

static bool is_taken(const struct vp_lend *lend, uint32_t slot)
{
	vp_vec_each (&lend->clients, client)
		if (client->is_attached && client->slot == slot)
			return true;
	return false;
}

/* A thread with several sets has one slot. */
static int assign_slot(struct vp_lend *lend, struct vp_lend_client *client)
{
	const struct vp_lend_client *same = other_set(lend, client);
	uint32_t of_user = 0;

	if (same) {
		client->slot = same->slot;
		return 0;
	}
	vp_vec_each (&lend->clients, other)
		of_user += other->is_attached && other->uid == client->uid;
	for (client->slot = 0; is_taken(lend, client->slot);)
		client->slot++;
	if (client->slot >= VP_LENT_THREADS || (client->uid && of_user >= MAX_OF_USER))
		return -ENOSPC;
	int result = vp_lend_command(lend, VP_LEND_CLEAR, client->slot);
	if (result)
		return result;
	return bpf_map_update_elem(bpf_map__fd(lend->programs->maps.indices), &client->tid,
				   &client->slot, BPF_ANY);
}

/* Whether thread ids are the same in both pid namespaces. */
static bool is_same_namespace(pid_t pid)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return !stat("/proc/self/ns/pid", &ours) && !stat(path, &theirs) &&
	       ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

/* Whether the thread belongs to the client's process or user. */
static bool may_count(const struct vp_lend_client *client, uint32_t tid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct stat thread;
	char path[64];

	if (getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.pid <= 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task/%u", peer.pid, tid);
	if (!access(path, F_OK))
		return true;
	snprintf(path, sizeof(path), "/proc/%u", tid);
	return is_same_namespace(peer.pid) && !stat(path, &thread) &&
	       (!peer.uid || thread.st_uid == peer.uid);
}

/* A socket on which each packet runs the BPF program that causes a VM exit; *ours: its other
 * end. */
static int make_force_socket(const struct vp_lend *lend, int *ours)
{
	int program = bpf_program__fd(lend->programs->progs.on_packet), ends[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	if (setsockopt(ends[0], SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof(program))) {
		int errnum = errno;
		close(ends[0]);
		close(ends[1]);
		return -errnum;
	}
	*ours = ends[0];
	return ends[1];
}

static void send_reply(const struct vp_lend_client *client, struct vp_lent_reply *reply,
		       const int *fds, size_t n)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int[VP_LENT_FDS]))];
	} control = {0};
	struct iovec part = {reply, sizeof(*reply)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (n) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(n * sizeof(*fds));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(n * sizeof(*fds));
		memcpy(CMSG_DATA(&control.header), fds, n * sizeof(*fds));
	}
	ssize_t ignored = vp_sendmsg(client->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)ignored;
}

static void lend_clients_refuse(const struct vp_lend_client *client, int errnum, const char *why)
{
	struct vp_lent_reply reply = {.version = VP_LENT_VERSION, .status = errnum};

	snprintf(reply.text, sizeof(reply.text), "%s", why);
	send_reply(client, &reply, NULL, 0);
}

static void lend_clients_send_maps(const struct vp_lend *lend, struct vp_lend_client *client)
{
	struct vp_lent_reply reply = {.version = VP_LENT_VERSION,
				      .thread = client->slot,
				      .cells = lend->n_cells + 1,
				      .events = lend->request->n,
				      .marker = lend->request->marker};
	int force = make_force_socket(lend, &client->force);
	int fds[VP_LENT_FDS] = {
	    [VP_LENT_FD_CELLS] = bpf_map__fd(lend->programs->maps.cells),
	    [VP_LENT_FD_THREADS] = bpf_map__fd(lend->programs->maps.threads),
	    [VP_LENT_FD_FORCE] = force,
	};

	if (force < 0)
		return lend_clients_refuse(client, -force,
					   "the agent cannot create a socket for it");
	memcpy(reply.names, lend->request->names, sizeof(reply.names));
	send_reply(client, &reply, fds, VP_LENT_FDS);
	close(force);
}

static void lend_clients_attach(struct vp_lend *lend, struct vp_lend_client *client,
				const struct vp_lent_request *request)
{
	client->tid = request->tid;
	if (request->version != VP_LENT_VERSION)
		return lend_clients_refuse(client, EPROTO, "it has a different version");
	if (!may_count(client, client->tid))
		return lend_clients_refuse(client, ESRCH,
					   "the thread belongs to another user or PID namespace");
	int result = start_lending(lend);
	if (result)
		return lend_clients_refuse(client, -result, "cannot attach to sched_switch");
	result = assign_slot(lend, client);
	if (result)
		return lend_clients_refuse(client, -result,
					   "too many threads already use host-provided counters");
	if (request->flags & VP_LENT_INHERIT)
		result = vp_lend_command(lend, VP_LEND_INHERIT, client->slot);
	if (result)
		return lend_clients_refuse(client, -result, "cannot follow child threads");
	client->is_attached = true;
	lend_clients_send_maps(lend, client);
}

static void lend_clients_forget(struct vp_lend *lend, size_t i)
{
	struct vp_lend_client client = lend->clients.at[i];

	lend->clients.at[i] = lend->clients.at[--lend->clients.count];
	close(client.fd);
	if (client.force >= 0)
		close(client.force);
	if (client.is_attached && !is_taken(lend, client.slot)) {
		bpf_map_delete_elem(bpf_map__fd(lend->programs->maps.indices), &client.tid);
		/* Its children are no longer counted. */
		int ignored = vp_lend_command(lend, VP_LEND_CLEAR, client.slot);
		(void)ignored;
	}
	stop_lending(lend);
}

/* Drops the oldest of a user's clients without a request for a new one. */
static void limit_silent(struct vp_lend *lend, uint32_t uid)
{
	size_t count = 0, oldest = 0;

	for (size_t i = 0; i < lend->clients.count; i++) {
		const struct vp_lend_client *client = &lend->clients.at[i];
		if (client->is_attached || client->uid != uid)
			continue;
		if (!count++ || client->since < lend->clients.at[oldest].since)
			oldest = i;
	}
	if (count >= MAX_SILENT)
		lend_clients_forget(lend, oldest);
}

void vp_lend_clients_expire(struct vp_lend *lend, uint64_t now_ms)
{
	for (size_t i = lend->clients.count; i-- > 0;) {
		const struct vp_lend_client *client = &lend->clients.at[i];
		if (!client->is_attached && now_ms - client->since > SILENT_MS)
			lend_clients_forget(lend, i);
	}
}

void vp_lend_client_accept(struct vp_lend *lend, uint64_t now_ms)
{
	int fd = vp_accept(lend->listener, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (fd < 0) {
		/* The pending connection would wake this process again at once. */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			lend->accept_after = now_ms + PAUSE_MS;
		return;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) {
		close(fd);
		return;
	}
	limit_silent(lend, peer.uid);
	if (lend->clients.count >= MAX_CLIENTS) {
		close(fd);
		return;
	}
	vp_vec_push(&lend->clients, ((struct vp_lend_client){
					.fd = fd, .force = -1, .uid = peer.uid, .since = now_ms}));
}

void vp_lend_client_receive(struct vp_lend *lend, size_t i)
{
	struct vp_lend_client *client = &lend->clients.at[i];
	struct vp_lent_request request = {0};
	ssize_t got = vp_recv(client->fd, &request, sizeof(request), MSG_DONTWAIT);

	/* A request of another version may be shorter. */
	if (got >= (ssize_t)sizeof(request.version) && !client->is_attached)
		lend_clients_attach(lend, client, &request);
	else if (got >= 0 || errno != EAGAIN)
		lend_clients_forget(lend, i);
}
