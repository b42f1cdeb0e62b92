/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/agent/counts_client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/io.h"
#include "base/worker_process.h"
#include "collect/agent/agent_client.h"
#include "collect/agent/agent_worker.h"

enum { LONGEST_LINE = 256, LEND_TRIES = 40 };

enum msg_kind { MSG_ABSENT, MSG_MARKER, MSG_ADDRESS, MSG_CELL, MSG_WITHOUT, MSG_WHOLE, MSG_GONE };

/* Messages of the process that communicates with the agent, one packet each. */
struct msg {
	uint32_t kind; /* enum msg_kind */
	uint32_t vcpu, event;
	uint64_t gpa;
	char text[232]; /* why the agent is absent or gone; possibly the guest's text */
};

struct vp_agent_counts {
	struct vp_worker_process worker;
	enum vp_agent_counts_state state;
	struct vp_agent_memory memory;
	char *problem;
};

/* The process that communicates with the agent. */
struct counts_worker {
	struct vp_agent_worker base;
	struct vp_counts_request request;
	struct vp_lend_request lend; /* without events: not requested */
	struct vp_buffer inbuf;      /* the start of a line */
	struct vp_counts_answer answer;
};

static struct counts_worker *counts_client_worker_of(struct vp_agent_worker *worker)
{
	return (struct counts_worker *)worker;
}

static void counts_client_send(const struct counts_worker *worker, const struct msg *msg)
{
	vp_agent_worker_send(&worker->base, msg, sizeof(*msg));
}

static void counts_client_send_error(struct vp_agent_worker *worker, bool is_gone,
				     struct vp_error *error)
{
	struct msg msg = {.kind = is_gone ? MSG_GONE : MSG_ABSENT};

	strncpy(msg.text, vp_error_message(error), sizeof(msg.text) - 1);
	vp_error_free(error);
	counts_client_send(counts_client_worker_of(worker), &msg);
}

/* Confined, it can wait only in read(). */
static struct vp_error *prepare_waiting(struct vp_agent_worker *worker)
{
	const struct timeval keep = {.tv_sec = VP_COUNTS_KEEP_S};

	if (setsockopt(worker->fd, SOL_SOCKET, SO_RCVTIMEO, &keep, sizeof(keep)) ||
	    setsockopt(worker->fd, SOL_SOCKET, SO_SNDTIMEO, &keep, sizeof(keep)))
		return vp_error_errno(errno, "cannot set the timeout for the agent of %s",
				      worker->name);
	return NULL;
}

static struct vp_error *counts_client_request(const struct counts_worker *worker)
{
	struct vp_buffer line = {0};

	if (worker->lend.n)
		vp_lend_request_write(&worker->lend, &line);
	else
		vp_counts_request_write(&worker->request, &line);
	struct vp_error *error = vp_agent_worker_write(&worker->base, line.bytes, line.size);
	vp_buffer_deinit(&line);
	return error;
}

static struct vp_error *take_answer_line(struct counts_worker *worker, struct vp_slice text)
{
	static const uint32_t kinds[] = {[VP_COUNTS_MARKER] = MSG_MARKER,
					 [VP_COUNTS_ADDRESS] = MSG_ADDRESS,
					 [VP_COUNTS_WITHOUT] = MSG_WITHOUT,
					 [VP_COUNTS_END] = MSG_WHOLE};
	struct vp_counts_line line;
	VP_AUTO_ERROR struct vp_error *error = vp_counts_answer_take(&worker->answer, text, &line);

	if (error)
		return vp_error_new("the agent of %s %s", worker->base.name,
				    vp_error_message(error));
	if (line.kind != VP_COUNTS_HEAD)
		counts_client_send(worker, &(struct msg){.kind = kinds[line.kind],
							 .vcpu = line.vcpu,
							 .event = line.event,
							 .gpa = line.number});
	return NULL;
}

/* The same for the reply to a lend request. */
static struct vp_error *take_lend_line(struct counts_worker *worker, struct vp_slice text)
{
	struct vp_lend_line line;
	VP_AUTO_ERROR struct vp_error *error =
	    vp_lend_answer_take(&worker->answer.lines, worker->answer.whole, text, &line);

	if (error)
		return vp_error_new("the agent of %s %s", worker->base.name,
				    vp_error_message(error));
	worker->answer.whole = line.kind == VP_LEND_END;
	if (line.kind != VP_LEND_HEAD)
		counts_client_send(
		    worker, &(struct msg){.kind = line.kind == VP_LEND_CELL ? MSG_CELL : MSG_WHOLE,
					  .vcpu = line.vcpu,
					  .gpa = line.number});
	return NULL;
}

static struct vp_error *counts_client_take_lines(struct counts_worker *worker)
{
	struct vp_buffer *inbuf = &worker->inbuf;
	struct vp_cursor cursor = vp_cursor_of(inbuf->bytes, inbuf->size);
	struct vp_slice line;

	while (memchr(cursor.next, '\n', vp_cursor_left(&cursor)) && vp_cursor_line(&cursor, &line))
		VP_TRY(worker->lend.n ? take_lend_line(worker, line)
				      : take_answer_line(worker, line));
	size_t left = vp_cursor_left(&cursor);
	if (left > LONGEST_LINE)
		return vp_error_new(
		    "malformed reply from the agent of %s: a line of more than %d bytes",
		    worker->base.name, LONGEST_LINE);
	memmove(inbuf->bytes, cursor.next, left);
	inbuf->size = left;
	return NULL;
}

/* Passes on the agent's messages and renews its lease, until either side ends it. */
static struct vp_error *counts_client_run(struct vp_agent_worker *base)
{
	enum { PIECE = 4096 };
	struct counts_worker *worker = counts_client_worker_of(base);

	VP_TRY(counts_client_request(worker));
	for (;;) {
		char *room = vp_buffer_extend(&worker->inbuf, PIECE);
		ssize_t got = vp_read(worker->base.fd, room, PIECE);
		worker->inbuf.size -= PIECE - (size_t)(got > 0 ? got : 0);
		if (got > 0) {
			VP_TRY(counts_client_take_lines(worker));
		} else if (got < 0 && errno == EAGAIN && worker->answer.whole) {
			VP_TRY(vp_agent_worker_write(&worker->base, VP_COUNTS_KEEP,
						     sizeof(VP_COUNTS_KEEP) - 1));
		} else if (got < 0 && errno == EAGAIN) {
			return vp_error_new("the agent of %s sent nothing for %d s",
					    worker->base.name, VP_COUNTS_KEEP_S);
		} else if (got == 0) {
			return vp_error_new("the agent of %s has ended", worker->base.name);
		} else {
			return vp_error_errno(errno, "the connection to the agent of %s broke",
					      worker->base.name);
		}
	}
}

static struct vp_error *counts_client_start_worker(struct counts_worker *worker,
						   struct vp_agent_counts **ret)
{
	struct vp_worker_process process;

	worker->base.prepare = prepare_waiting;
	worker->base.run = counts_client_run;
	worker->base.send_error = counts_client_send_error;
	/* The caller waits for clients, so the absence of an agent is reported. */
	worker->base.tries = worker->lend.n ? LEND_TRIES : 0;
	if (getrandom(&worker->request.marker, sizeof(worker->request.marker), 0) !=
	    sizeof(worker->request.marker))
		return vp_error_errno(errno, "cannot read a random number");
	worker->request.marker |= 1; /* 0 marks an invalidated cell */
	worker->lend.marker = worker->request.marker;
	VP_TRY(vp_agent_worker_start(&worker->base, &process));
	struct vp_agent_counts *counts = vp_alloc(sizeof(*counts));
	*counts = (struct vp_agent_counts){.worker = process,
					   .memory = {.marker = worker->request.marker}};
	*ret = counts;
	return NULL;
}

struct vp_error *vp_agent_counts_start(const struct vp_agent_address *address, uint32_t events,
				       struct vp_agent_counts **ret)
{
	VP_AUTO_FREE char *name = vp_agent_address_name(address);
	struct counts_worker worker = {.base = {.address = *address, .name = name, .fd = -1},
				       .request = {.events = events}};

	return counts_client_start_worker(&worker, ret);
}

struct vp_error *vp_agent_lend_start(const struct vp_agent_address *address,
				     const struct vp_lend_request *request,
				     struct vp_agent_counts **ret)
{
	VP_AUTO_FREE char *name = vp_agent_address_name(address);
	struct counts_worker worker = {.base = {.address = *address, .name = name, .fd = -1},
				       .lend = *request};

	return counts_client_start_worker(&worker, ret);
}

struct vp_error *vp_agent_counts_start_from(int fd, const char *name, uint32_t events,
					    struct vp_agent_counts **ret)
{
	VP_AUTO_CLOSE int own = fd;
	struct counts_worker worker = {.base = {.name = name, .fd = own},
				       .request = {.events = events}};

	return counts_client_start_worker(&worker, ret);
}

void vp_agent_counts_free(struct vp_agent_counts *counts)
{
	if (!counts)
		return;
	vp_worker_process_end(&counts->worker);
	vp_vec_deinit(&counts->memory.counts);
	vp_vec_deinit(&counts->memory.cells);
	free(counts->problem);
	free(counts);
}

static void counts_client_take_msg(struct vp_agent_counts *counts, const struct msg *msg)
{
	struct vp_agent_memory *memory = &counts->memory;

	switch (msg->kind) {
	case MSG_ABSENT:
	case MSG_GONE:
		vp_agent_worker_reason(&counts->problem, msg->text, sizeof(msg->text));
		counts->state = msg->kind == MSG_GONE ? VP_AGENT_GONE : VP_AGENT_ABSENT;
		break;
	case MSG_MARKER:
		memory->marker_gpa = msg->gpa;
		break;
	case MSG_ADDRESS:
		if (msg->event < VP_GUEST_COUNT && memory->counts.count < VP_COUNTS_MAX_ADDRESSES)
			vp_vec_push(&memory->counts,
				    ((struct vp_agent_count_cell){
					msg->vcpu, (enum vp_guest_count)msg->event, msg->gpa}));
		break;
	case MSG_CELL:
		if (memory->cells.count < VP_LEND_MAX_CELLS)
			vp_vec_push(&memory->cells, ((struct vp_agent_cell){msg->vcpu, msg->gpa}));
		break;
	case MSG_WITHOUT:
		if (msg->event < VP_GUEST_COUNT)
			memory->without |= 1U << msg->event;
		break;
	default:
		counts->state = VP_AGENT_COUNTING;
	}
}

enum vp_agent_counts_state vp_agent_counts_poll(struct vp_agent_counts *counts, int timeout_ms)
{
	enum vp_agent_counts_state before = counts->state;
	struct pollfd ready = {.fd = counts->worker.channel, .events = POLLIN};
	struct msg msg;

	while (counts->state != VP_AGENT_GONE &&
	       vp_poll(&ready, 1, counts->state == before ? timeout_ms : 0) > 0) {
		ssize_t got = vp_recv(counts->worker.channel, &msg, sizeof(msg), MSG_DONTWAIT);
		if (got == sizeof(msg)) {
			counts_client_take_msg(counts, &msg);
		} else if (got >= 0 || errno != EAGAIN) {
			vp_agent_worker_died(&counts->problem);
			counts->state = VP_AGENT_GONE;
		}
	}
	return counts->state;
}

const struct vp_agent_memory *vp_agent_counts_memory(const struct vp_agent_counts *counts)
{
	return &counts->memory;
}

const char *vp_agent_counts_problem(const struct vp_agent_counts *counts)
{
	return counts->problem ? counts->problem : "no reply";
}
