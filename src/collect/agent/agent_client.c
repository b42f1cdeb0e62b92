/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/agent/agent_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/vm_sockets.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/io.h"
#include "host/vsock_path.h"
#include "protocol/agent_protocol.h"
#include "vchan/vchan.h"

/* Time limit for an agent to appear. */
enum { QUICK_TRIES = 20, RETRY_S = 3, LONGEST_RETRY_S = 60, CONNECT_S = 5 };
/* Retries for an agent that closed the connection without a map. */
enum { AGAIN_S = 1 };

struct transfer {
	int fd, out;
	const char *name;
	struct vp_agent_limits limits;
	uint64_t deadline_ms;
	size_t bytes;
	char head[16];  /* the first bytes */
	char tail[128]; /* the last bytes: an end line, or all of a refusal */
	size_t tail_size;
};

static uint64_t agent_client_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits until the socket is ready; the error names the exceeded limit. */
static struct vp_error *wait_ready(const struct transfer *transfer, short events)
{
	struct pollfd ready = {.fd = transfer->fd, .events = events};
	uint64_t now = agent_client_now_ms(), idle = 1000ULL * transfer->limits.seconds_idle;
	uint64_t left = transfer->deadline_ms > now ? transfer->deadline_ms - now : 0;
	uint64_t wait = left < idle ? left : idle;
	int result;

	result = vp_poll(&ready, 1, (int)(wait < 3600000 ? wait : 3600000));
	if (result > 0)
		return NULL;
	if (result < 0)
		return vp_error_errno(errno, "cannot wait for the agent of %s", transfer->name);
	if (left <= idle)
		return vp_error_new(
		    "the agent of %s did not finish within %u s (%zu bytes received)",
		    transfer->name, transfer->limits.seconds_total, transfer->bytes);
	return vp_error_new("the agent of %s sent nothing for %u s (after %zu bytes)",
			    transfer->name, transfer->limits.seconds_idle, transfer->bytes);
}

static struct vp_error *agent_client_send_request(struct transfer *transfer)
{
	const char *next =
	    transfer->limits.no_symbols ? VP_AGENT_REQUEST_NO_SYMBOLS : VP_AGENT_REQUEST;
	size_t left = strlen(next);

	while (left) {
		VP_TRY(wait_ready(transfer, POLLOUT));
		ssize_t sent = vp_send(transfer->fd, next, left, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno != EINTR && errno != EAGAIN)
			return vp_error_errno(errno, "cannot send a request to the agent of %s",
					      transfer->name);
		if (sent > 0) {
			next += sent;
			left -= (size_t)sent;
		}
	}
	return NULL;
}

static void keep_tail(struct transfer *transfer, const char *bytes, size_t size)
{
	size_t room = sizeof(transfer->tail);

	if (size >= room) {
		memcpy(transfer->tail, bytes + size - room, room);
		transfer->tail_size = room;
		return;
	}
	size_t keep = transfer->tail_size < room - size ? transfer->tail_size : room - size;
	memmove(transfer->tail, transfer->tail + transfer->tail_size - keep, keep);
	memcpy(transfer->tail + keep, bytes, size);
	transfer->tail_size = keep + size;
}

/* Whether the last line is an end line; the parser checks its contents. */
static bool has_end_line(const struct transfer *transfer)
{
	const char *tail = transfer->tail;
	size_t size = transfer->tail_size;

	if (size < 2 || tail[size - 1] != '\n')
		return false;
	const char *before = memrchr(tail, '\n', size - 1);
	return before && tail + size - before > 5 && !memcmp(before + 1, "end ", 4);
}

/* Whether it starts like a symbol map; a refusal is not stored. */
static bool is_map_text(const struct transfer *transfer)
{
	static const char begin[] = "vperf-maps ";

	return transfer->bytes >= sizeof(begin) - 1 &&
	       !memcmp(transfer->head, begin, sizeof(begin) - 1);
}

/* The agent's message, cleaned, if the reply is only a refusal. */
static char *refusal(const struct transfer *transfer)
{
	static const char begin[] = "error ";
	size_t skip = sizeof(begin) - 1;

	if (transfer->bytes != transfer->tail_size || transfer->bytes <= skip ||
	    memcmp(transfer->tail, begin, skip) != 0)
		return NULL;
	char *words = vp_alloc(transfer->tail_size - skip + 1), *next = words;
	for (size_t i = skip; i < transfer->tail_size; i++)
		if (transfer->tail[i] >= ' ' && transfer->tail[i] <= '~')
			*next++ = transfer->tail[i];
	return words;
}

static struct vp_error *store(struct transfer *transfer, const char *bytes, size_t size)
{
	size_t room = transfer->limits.bytes - transfer->bytes;
	size_t taken = size < room ? size : room;
	int result = vp_fd_write_all(transfer->out, bytes, taken);

	if (result)
		return vp_error_errno(-result, "cannot store the reply of the agent of %s",
				      transfer->name);
	for (size_t i = 0; i < taken && transfer->bytes + i < sizeof(transfer->head); i++)
		transfer->head[transfer->bytes + i] = bytes[i];
	transfer->bytes += taken;
	keep_tail(transfer, bytes, taken);
	if (taken < size)
		return vp_error_new("the agent of %s sent more than %zu bytes, the rest is ignored",
				    transfer->name, transfer->limits.bytes);
	return NULL;
}

static struct vp_error *agent_client_receive(struct transfer *transfer)
{
	char piece[64 * 1024];

	for (;;) {
		VP_TRY(wait_ready(transfer, POLLIN));
		ssize_t got = vp_recv(transfer->fd, piece, sizeof(piece), MSG_DONTWAIT);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0)
			return vp_error_errno(
			    errno, "the connection to the agent of %s broke after %zu bytes",
			    transfer->name, transfer->bytes);
		if (got == 0)
			break;
		VP_TRY(store(transfer, piece, (size_t)got));
	}
	if (!transfer->bytes)
		return vp_error_new("the agent of %s closed the connection without a reply",
				    transfer->name);
	VP_AUTO_FREE char *words = refusal(transfer);
	if (words)
		return vp_error_new("the agent of %s refused: %s", transfer->name, words);
	if (!has_end_line(transfer))
		return vp_error_new("the reply of the agent of %s was truncated after %zu bytes",
				    transfer->name, transfer->bytes);
	return NULL;
}

static struct vp_agent_limits usual_limits(const struct vp_agent_limits *limits)
{
	struct vp_agent_limits usual = limits ? *limits : (struct vp_agent_limits){0};

	if (!usual.bytes)
		usual.bytes = (size_t)1 << 30;
	if (!usual.seconds_idle)
		usual.seconds_idle = 10;
	if (!usual.seconds_total)
		usual.seconds_total = 120;
	return usual;
}

/* Stores the reply if it is a map, complete or truncated; `error`: why it was truncated. */
static struct vp_error *store_result(const struct transfer *transfer, struct vp_new_file *out,
				     const char *path, struct vp_error *error,
				     struct vp_agent_result *result)
{
	result->truncated = error != NULL;
	if (!is_map_text(transfer))
		return error
			   ? error
			   : vp_error_new("malformed reply from the agent of %s: not a symbol map",
					  transfer->name);
	int failure = vp_new_file_publish(out);
	if (failure) {
		vp_error_free(error);
		return vp_error_errno(-failure, "cannot write '%s'", path);
	}
	result->bytes = transfer->bytes;
	return error;
}

static struct vp_error *open_transfer(struct transfer *transfer, const char *path,
				      const struct vp_agent_limits *limits, struct vp_new_file *out)
{
	int failure = vp_new_file_create(out, path, 0644);

	transfer->limits = usual_limits(limits);
	transfer->deadline_ms = agent_client_now_ms() + 1000ULL * transfer->limits.seconds_total;
	transfer->out = out->fd;
	return failure ? vp_error_errno(-failure, "cannot create a file next to '%s'", path) : NULL;
}

static struct vp_error *converse(struct transfer *transfer)
{
	VP_TRY(agent_client_send_request(transfer));
	return agent_client_receive(transfer);
}

struct vp_error *vp_agent_fetch_from(int fd, const char *name, const char *path_out,
				     const struct vp_agent_limits *limits,
				     struct vp_agent_result *result)
{
	struct transfer transfer = {.fd = fd, .name = name};
	VP_AUTO_NEW_FILE struct vp_new_file out;

	*result = (struct vp_agent_result){0};
	VP_TRY(open_transfer(&transfer, path_out, limits, &out));
	return store_result(&transfer, &out, path_out, converse(&transfer), result);
}

unsigned vp_agent_port_used(unsigned port)
{
	return port ? port : VP_AGENT_PORT;
}

uint32_t vp_agent_port_shown(unsigned port, bool is_vchan)
{
	return is_vchan ? 0 : vp_agent_port_used(port);
}

struct vp_agent_address vp_agent_address_of(const struct vp_vm *vm, unsigned port)
{
	return (struct vp_agent_address){.cid = vm->cid,
					 .path = vm->vsock,
					 .domain = vm->has_domain ? vm->domain : 0,
					 .pid = vm->pid,
					 .port = port};
}

bool vp_agent_is_addressed(const struct vp_agent_address *address)
{
	return address->cid || address->path || address->domain;
}

char *vp_agent_address_name(const struct vp_agent_address *address)
{
	return address->cid      ? vp_format("guest CID %u", address->cid)
	       : address->domain ? vp_format("domain %u", address->domain)
				 : vp_format("the guest of process %u", address->pid);
}

static unsigned port_of(const struct vp_agent_address *address)
{
	return vp_agent_port_used(address->port);
}

/* Non-blocking: a paused guest does not reply. */
static struct vp_error *connect_guest(int fd, unsigned cid, unsigned port, const char *name,
				      unsigned seconds)
{
	struct sockaddr_vm address = {.svm_family = AF_VSOCK, .svm_cid = cid, .svm_port = port};
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	int errnum = 0, result = vp_connect(fd, (struct sockaddr *)&address, sizeof(address));
	socklen_t size = sizeof(errnum);

	if (!result)
		return NULL;
	if (errno != EINPROGRESS)
		return vp_error_errno(errno, "no agent reachable in %s at vsock port %u", name,
				      port);
	result = vp_poll(&ready, 1, 1000 * (int)seconds);
	if (result == 0)
		errnum = ETIMEDOUT;
	else if (result < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &size))
		errnum = errno;
	if (errnum)
		return vp_error_errno(errnum, "no agent reachable in %s at vsock port %u", name,
				      port);
	return NULL;
}

static struct vp_error *connect_vsock(const struct vp_agent_address *address, unsigned seconds,
				      int *ret)
{
	VP_AUTO_FREE char *name = vp_agent_address_name(address);
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return vp_error_errno(errno, "cannot open a vsock socket");
	struct vp_error *error = connect_guest(fd, address->cid, port_of(address), name, seconds);
	if (!error && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK))
		error = vp_error_errno(errno, "cannot wait for the agent of %s", name);
	if (error)
		close(fd);
	else
		*ret = fd;
	return error;
}

static struct vp_error *connect_vchan(const struct vp_agent_address *address, unsigned seconds,
				      int *ret)
{
	VP_AUTO_ERROR struct vp_error *error =
	    vp_vchan_connect(address->domain, port_of(address), seconds, ret);

	return error ? vp_error_new("no agent reachable in domain %u: %s", address->domain,
				    vp_error_message(error))
		     : NULL;
}

/* Connects to the agent within the time limit. *ret is a blocking socket. */
static struct vp_error *agent_client_connect(const struct vp_agent_address *address,
					     unsigned seconds, int *ret)
{
	if (address->cid)
		return connect_vsock(address, seconds, ret);
	return address->domain ? connect_vchan(address, seconds, ret)
			       : vp_vsock_path_connect(address->path, address->pid,
						       port_of(address), seconds, ret);
}

struct vp_error *vp_agent_await(const struct vp_agent_address *address, unsigned tries,
				void (*absent)(void *context, struct vp_error *error),
				void *context, int *ret)
{
	unsigned pause = RETRY_S;

	for (unsigned done = 1;; done++) {
		struct vp_error *error = agent_client_connect(address, CONNECT_S, ret);
		if (!error || done == tries)
			return error;
		absent(context, error);
		vp_sleep_us(pause * 1000000ULL);
		if (done >= QUICK_TRIES)
			pause = 2 * pause < LONGEST_RETRY_S ? 2 * pause : LONGEST_RETRY_S;
	}
}

/* Whether the reply is only that it is busy. */
static bool is_busy(const struct transfer *transfer)
{
	VP_AUTO_FREE char *words = refusal(transfer);

	return words && !strcmp(words, VP_AGENT_TOO_MANY);
}

/* One connection with the agent's whole reply. *again: the agent is running and may reply next
 * time. */
static struct vp_error *try_once(struct transfer *transfer, const struct vp_agent_address *address,
				 bool *again)
{
	uint64_t now = agent_client_now_ms();
	uint64_t left = transfer->deadline_ms > now ? (transfer->deadline_ms - now) / 1000 + 1 : 1;
	unsigned idle = transfer->limits.seconds_idle;
	VP_AUTO_CLOSE int fd = -1;

	VP_TRY(agent_client_connect(address, left < idle ? (unsigned)left : idle, &fd));
	transfer->fd = fd;
	struct vp_error *error = converse(transfer);
	transfer->fd = -1;
	*again = error && (!transfer->bytes || is_busy(transfer));
	return error;
}

/* Until the deadline; discards the data so far. */
static bool may_try_again(struct transfer *transfer)
{
	if (agent_client_now_ms() + 1000ULL * AGAIN_S >= transfer->deadline_ms ||
	    ftruncate(transfer->out, 0) || lseek(transfer->out, 0, SEEK_SET))
		return false;
	transfer->bytes = transfer->tail_size = 0;
	vp_sleep_us(AGAIN_S * 1000000ULL);
	return true;
}

/* The file is created before the connection: an agent does not wait long for a request, and on a
 * slow file system it would already have closed the connection. */
struct vp_error *vp_agent_fetch(const struct vp_agent_address *address, const char *path_out,
				const struct vp_agent_limits *limits,
				struct vp_agent_result *result)
{
	VP_AUTO_FREE char *name = vp_agent_address_name(address);
	struct transfer transfer = {.fd = -1, .name = name};
	VP_AUTO_NEW_FILE struct vp_new_file out;
	bool again = false;

	*result = (struct vp_agent_result){0};
	VP_TRY(open_transfer(&transfer, path_out, limits, &out));
	struct vp_error *error = try_once(&transfer, address, &again);
	while (error && again && may_try_again(&transfer)) {
		vp_error_free(error);
		error = try_once(&transfer, address, &again);
	}
	return store_result(&transfer, &out, path_out, error, result);
}
