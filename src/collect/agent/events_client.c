/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/agent/events_client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/io.h"
#include "base/vec.h"
#include "base/worker_process.h"
#include "collect/agent/agent_client.h"
#include "collect/agent/agent_worker.h"
#include "schema/event_class.h"
#include "schema/ring_page.h"
#include "schema/tracepoint_format.h"

enum {
	LONGEST_LINE = 256,
	USUAL_MSG = 1 << 15, /* longer ones exceed it by at most a record */
	MSG_MAX = USUAL_MSG + UINT16_MAX,
	CLASSES_MAX = 64,
	IDS = 1 << 16, /* event numbers have 16 bits */
};

enum msg_kind {
	MSG_CONNECTED, /* with the connection itself */
	MSG_ABSENT,
	MSG_GONE,
	MSG_CLASSES,
	MSG_TASKS,
	MSG_CLOCK,
	MSG_TIME,
	MSG_RECORDS,
	MSG_LOST,
	MSG_MALFORMED,
	MSG_FLUSHED,
	MSG_END
};

/* Messages of the process that communicates with the agent, one packet each. */
struct msg {
	uint32_t kind; /* enum msg_kind */
	uint32_t vcpu;
	uint64_t number;
	char bytes[];
};

struct vp_agent_events {
	struct vp_worker_process worker;
	int connection; /* -1: not connected */
	enum vp_agent_events_state state;
	bool can_flush;
	unsigned flushes; /* requests without a reply so far */
	char *problem;
	struct msg *msg;
};

/* A tracepoint of the guest. */
struct tracepoint {
	vp_tracepoint_layout layout;
};

/* The process that communicates with the agent. */
struct events_worker {
	struct vp_agent_worker base;
	unsigned sets;
	struct vp_buffer payload, msg;
	struct vp_buffer records; /* preceded by space for the message's header */
	bool begun;
	uint32_t page_size;
	vp_event_classes classes;
	VP_VEC(struct tracepoint) tracepoints; /* of the classes */
	uint8_t *class_of_id;                  /* by the kernel's number: class + 1; 0: unknown */
	uint64_t malformed;
};

static struct events_worker *events_client_worker_of(struct vp_agent_worker *worker)
{
	return (struct events_worker *)worker;
}

static void events_client_send(struct events_worker *worker, const struct msg *head,
			       const void *bytes, size_t size)
{
	worker->msg.size = 0;
	vp_buffer_append(&worker->msg, head, sizeof(*head));
	vp_buffer_append(&worker->msg, bytes, size);
	vp_agent_worker_send(&worker->base, worker->msg.bytes, worker->msg.size);
}

static void events_client_send_error(struct vp_agent_worker *worker, bool is_gone,
				     struct vp_error *error)
{
	const struct msg head = {.kind = is_gone ? MSG_GONE : MSG_ABSENT};
	const char *message = vp_error_message(error);

	events_client_send(events_client_worker_of(worker), &head, message, strlen(message));
	vp_error_free(error);
}

static bool send_connection(const struct events_worker *worker)
{
	struct msg head = {.kind = MSG_CONNECTED};
	struct iovec part = {&head, sizeof(head)};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *fds = CMSG_FIRSTHDR(&message);

	fds->cmsg_level = SOL_SOCKET;
	fds->cmsg_type = SCM_RIGHTS;
	fds->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(fds), &worker->base.fd, sizeof(int));
	return vp_sendmsg(worker->base.channel, &message, MSG_NOSIGNAL) == sizeof(head);
}

/* Both processes keep the connection: this one sends flush and stop requests. */
static struct vp_error *events_client_prepare(struct vp_agent_worker *worker)
{
	events_client_worker_of(worker)->class_of_id = vp_alloc(IDS);
	if (!send_connection(events_client_worker_of(worker)))
		_exit(1);
	return NULL;
}

static struct vp_error *events_client_request(const struct events_worker *worker)
{
	struct vp_buffer line = {0};

	vp_events_request_write(worker->sets, &line);
	struct vp_error *error = vp_agent_worker_write(&worker->base, line.bytes, line.size);
	vp_buffer_deinit(&line);
	return error;
}

static struct vp_error *events_client_read_all(const struct events_worker *worker, void *bytes,
					       size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = vp_read(worker->base.fd, (char *)bytes + done, size - done);
		if (got == 0)
			return vp_error_new("the agent of %s has ended", worker->base.name);
		if (got < 0 && errno != EINTR)
			return vp_error_errno(errno, "the connection to the agent of %s broke",
					      worker->base.name);
		done += got > 0 ? (size_t)got : 0;
	}
	return NULL;
}

static struct vp_error *events_client_malformed(const struct events_worker *worker,
						const char *what)
{
	return vp_error_new("the agent of %s sent a malformed reply: %s", worker->base.name, what);
}

/* Its reply, or the reason for none. */
static struct vp_error *read_head(const struct events_worker *worker)
{
	char line[LONGEST_LINE] = "";
	size_t size = 0;

	while (size + 1 < sizeof(line) && (!size || line[size - 1] != '\n')) {
		VP_TRY(events_client_read_all(worker, line + size, 1));
		size++;
	}
	line[size] = 0;
	if (!strcmp(line, VP_EVENTS_HEAD))
		return NULL;
	if (strncmp(line, "error ", 6) != 0)
		return events_client_malformed(worker, "its first line");
	line[size - 1] = 0;
	return vp_error_new("the agent of %s refuses: %s", worker->base.name, line + 6);
}

static struct vp_error *take_format(struct events_worker *worker, struct vp_cursor *payload)
{
	struct vp_event_class *class;
	struct vp_slice name;
	uint32_t id;

	if (!vp_cursor_line(payload, &name) || !vp_events_is_allowed(name) ||
	    worker->classes.count == CLASSES_MAX)
		return events_client_malformed(worker, "an event that was not requested");
	struct vp_slice text = vp_cursor_rest(payload);
	if (!vp_tracepoint_format_id(text, &id) || id >= IDS)
		return events_client_malformed(worker, "an event without a number");
	if (worker->class_of_id[id])
		return events_client_malformed(worker, "two events of one number");
	worker->class_of_id[id] = (uint8_t)(worker->classes.count + 1);
	VP_AUTO_FREE char *copy = vp_strndup(name.bytes, name.size);
	VP_TRY(vp_event_classes_add(&worker->classes, copy, &class));
	struct tracepoint *tracepoint = vp_vec_push_slot(&worker->tracepoints);
	*tracepoint = (struct tracepoint){0};
	return vp_tracepoint_format_parse(copy, text.bytes, text.size, class, &tracepoint->layout);
}

static struct vp_error *take_begin(struct events_worker *worker, uint32_t can,
				   struct vp_cursor *payload)
{
	struct vp_buffer text = {0};
	struct vp_error *error = NULL;

	worker->page_size = vp_cursor_u32(payload);
	if (worker->page_size < 64 || worker->page_size > VP_EVENTS_PAGE_MAX)
		return events_client_malformed(worker, "the size of a page");
	vp_event_classes_write(&worker->classes, &text);
	if (text.size > MSG_MAX)
		error = events_client_malformed(worker, "events with too many fields");
	else
		events_client_send(worker, &(struct msg){.kind = MSG_CLASSES, .number = can},
				   text.bytes, text.size);
	vp_buffer_deinit(&text);
	worker->begun = true;
	return error;
}

static void events_client_send_records(struct events_worker *worker, uint32_t vcpu)
{
	const struct msg head = {.kind = MSG_RECORDS, .vcpu = vcpu};

	if (worker->records.size > sizeof(head)) {
		memcpy(worker->records.bytes, &head, sizeof(head));
		vp_agent_worker_send(&worker->base, worker->records.bytes, worker->records.size);
	}
	worker->records.size = sizeof(head);
}

/* An entry starts with the kernel's event number. */
static void events_client_take_entry(struct events_worker *worker, uint64_t time,
				     struct vp_slice entry)
{
	uint16_t id = 0;

	if (entry.size >= sizeof(id))
		memcpy(&id, entry.bytes, sizeof(id));
	size_t index = worker->class_of_id[id];
	if (!index || !vp_tracepoint_convert(&worker->classes.at[index - 1],
					     &worker->tracepoints.at[index - 1].layout, time, entry,
					     &worker->records))
		worker->malformed++;
}

static void take_page(struct events_worker *worker, uint32_t vcpu, struct vp_slice bytes)
{
	struct vp_ring_page page;
	struct vp_slice entry;
	uint64_t time;

	if (!vp_ring_page_open(bytes, &page)) {
		worker->malformed++;
		return;
	}
	while (vp_ring_page_next(&page, &time, &entry)) {
		events_client_take_entry(worker, time, entry);
		if (worker->records.size >= USUAL_MSG)
			events_client_send_records(worker, vcpu);
	}
	worker->malformed += page.malformed;
}

static void take_pages(struct events_worker *worker, uint32_t vcpu, struct vp_cursor *payload)
{
	uint64_t before = worker->malformed;

	if (!worker->records.size)
		vp_buffer_fill(&worker->records, 0, sizeof(struct msg));
	while (vp_cursor_left(payload)) {
		size_t left = vp_cursor_left(payload);
		size_t size = left < worker->page_size ? left : worker->page_size;
		take_page(worker, vcpu, vp_cursor_bytes(payload, size));
	}
	events_client_send_records(worker, vcpu);
	if (worker->malformed != before)
		events_client_send(
		    worker, &(struct msg){.kind = MSG_MALFORMED, .number = worker->malformed}, NULL,
		    0);
}

static void events_client_take_tasks(struct events_worker *worker, struct vp_cursor *payload)
{
	enum { MAX = USUAL_MSG / sizeof(struct vp_events_task) };

	for (size_t left; (left = vp_cursor_left(payload) / sizeof(struct vp_events_task));) {
		size_t size = (left < MAX ? left : MAX) * sizeof(struct vp_events_task);
		events_client_send(worker, &(struct msg){.kind = MSG_TASKS},
				   vp_cursor_bytes(payload, size).bytes, size);
	}
}

static struct vp_error *events_client_take_clock(struct events_worker *worker,
						 struct vp_cursor *payload)
{
	struct vp_slice clock = vp_cursor_bytes(payload, sizeof(struct vp_events_clock));

	if (!vp_cursor_ok(payload))
		return events_client_malformed(worker, "a clock");
	events_client_send(worker, &(struct msg){.kind = MSG_CLOCK}, clock.bytes, clock.size);
	return NULL;
}

static struct vp_error *take_time(struct events_worker *worker, uint32_t vcpu,
				  struct vp_cursor *payload)
{
	struct vp_slice time = vp_cursor_bytes(payload, sizeof(struct vp_events_time));

	if (!vp_cursor_ok(payload))
		return events_client_malformed(worker, "a time of Xen");
	events_client_send(worker, &(struct msg){.kind = MSG_TIME, .vcpu = vcpu}, time.bytes,
			   time.size);
	return NULL;
}

static struct vp_error *take_frame(struct events_worker *worker,
				   const struct vp_events_frame *frame, struct vp_cursor *payload)
{
	const struct msg lost = {.kind = MSG_LOST, .vcpu = frame->vcpu};
	struct msg numbered = lost;

	if (frame->vcpu >= VP_EVENTS_VCPUS_MAX)
		return events_client_malformed(worker, "the number of a vCPU");
	if ((frame->kind <= VP_EVENTS_BEGIN) == worker->begun)
		return events_client_malformed(worker, "a frame out of order");
	switch (frame->kind) {
	case VP_EVENTS_FORMAT:
		return take_format(worker, payload);
	case VP_EVENTS_BEGIN:
		return take_begin(worker, frame->can, payload);
	case VP_EVENTS_TASKS:
		events_client_take_tasks(worker, payload);
		return NULL;
	case VP_EVENTS_CLOCK:
		return events_client_take_clock(worker, payload);
	case VP_EVENTS_TIME:
		return take_time(worker, frame->vcpu, payload);
	case VP_EVENTS_PAGES:
		take_pages(worker, frame->vcpu, payload);
		return NULL;
	case VP_EVENTS_LOST:
		numbered.number = vp_cursor_u64(payload);
		events_client_send(worker, &numbered, NULL, 0);
		return NULL;
	case VP_EVENTS_FLUSHED:
		events_client_send(worker, &(struct msg){.kind = MSG_FLUSHED}, NULL, 0);
		return NULL;
	case VP_EVENTS_END:
		events_client_send(worker, &(struct msg){.kind = MSG_END}, NULL, 0);
		_exit(0);
	}
	return events_client_malformed(worker, "an unknown kind of frame");
}

static struct vp_error *events_client_run(struct vp_agent_worker *base)
{
	struct events_worker *worker = events_client_worker_of(base);

	VP_TRY(events_client_request(worker));
	VP_TRY(read_head(worker));
	for (;;) {
		struct vp_events_frame frame;
		VP_TRY(events_client_read_all(worker, &frame, sizeof(frame)));
		if (frame.size > VP_EVENTS_FRAME_MAX)
			return events_client_malformed(worker, "a frame that is too long");
		worker->payload.size = 0;
		VP_TRY(events_client_read_all(
		    worker, vp_buffer_extend(&worker->payload, frame.size), frame.size));
		struct vp_cursor payload = vp_cursor_of(worker->payload.bytes, frame.size);
		VP_TRY(take_frame(worker, &frame, &payload));
	}
}

static struct vp_error *events_client_start_worker(struct events_worker *worker,
						   struct vp_agent_events **ret)
{
	struct vp_worker_process process;

	worker->base.prepare = events_client_prepare;
	worker->base.run = events_client_run;
	worker->base.send_error = events_client_send_error;
	VP_TRY(vp_agent_worker_start(&worker->base, &process));
	struct vp_agent_events *events = vp_alloc(sizeof(*events));
	*events = (struct vp_agent_events){
	    .worker = process, .connection = -1, .msg = vp_alloc(sizeof(struct msg) + MSG_MAX)};
	*ret = events;
	return NULL;
}

struct vp_error *vp_agent_events_start(const struct vp_agent_address *address, unsigned sets,
				       struct vp_agent_events **ret)
{
	VP_AUTO_FREE char *name = vp_agent_address_name(address);
	struct events_worker worker = {.base = {.address = *address, .name = name, .fd = -1},
				       .sets = sets};

	return events_client_start_worker(&worker, ret);
}

struct vp_error *vp_agent_events_start_from(int fd, const char *name, unsigned sets,
					    struct vp_agent_events **ret)
{
	VP_AUTO_CLOSE int own = fd;
	struct events_worker worker = {.base = {.name = name, .fd = own}, .sets = sets};

	return events_client_start_worker(&worker, ret);
}

void vp_agent_events_free(struct vp_agent_events *events)
{
	if (!events)
		return;
	if (events->connection >= 0) {
		shutdown(events->connection, SHUT_RDWR);
		close(events->connection);
	}
	vp_worker_process_end(&events->worker);
	free(events->problem);
	free(events->msg);
	free(events);
}

int vp_agent_events_fd(const struct vp_agent_events *events)
{
	return events->worker.channel;
}

static void events_client_take_msg(struct vp_agent_events *events, size_t size,
				   const struct vp_agent_events_receiver *receiver)
{
	struct msg *msg = events->msg;
	size_t tasks = size / sizeof(struct vp_events_task);

	switch (msg->kind) {
	case MSG_ABSENT:
	case MSG_GONE:
		vp_agent_worker_reason(&events->problem, msg->bytes, size < 256 ? size : 256);
		events->state =
		    msg->kind == MSG_GONE ? VP_AGENT_EVENTS_GONE : VP_AGENT_EVENTS_ABSENT;
		break;
	case MSG_CLASSES:
		events->can_flush = msg->number & VP_EVENTS_CAN_FLUSH;
		receiver->classes(receiver->context, (struct vp_slice){msg->bytes, size});
		events->state = VP_AGENT_EVENTS_SENDING;
		break;
	case MSG_TASKS:
		receiver->tasks(receiver->context, (const void *)msg->bytes, tasks);
		break;
	case MSG_CLOCK:
		if (size >= sizeof(struct vp_events_clock))
			receiver->clock(receiver->context, (const void *)msg->bytes);
		break;
	case MSG_TIME:
		if (size >= sizeof(struct vp_events_time))
			receiver->time(receiver->context, msg->vcpu, (const void *)msg->bytes);
		break;
	case MSG_RECORDS:
		receiver->records(receiver->context, msg->vcpu, msg->bytes, size);
		break;
	case MSG_LOST:
		receiver->lost(receiver->context, msg->vcpu, msg->number);
		break;
	case MSG_MALFORMED:
		receiver->malformed(receiver->context, msg->number);
		break;
	case MSG_FLUSHED:
		events->flushes -= events->flushes > 0;
		break;
	case MSG_END:
		events->state = VP_AGENT_EVENTS_ENDED;
		break;
	}
}

/* The connection passed with the message; -1: none. */
static int connection_of(struct msghdr *message)
{
	const struct cmsghdr *fds = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (fds && fds->cmsg_level == SOL_SOCKET && fds->cmsg_type == SCM_RIGHTS &&
	    fds->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(fds), sizeof(fd));
	return fd;
}

/* Size of the next packet without its header; negative: damaged stream. */
static ssize_t events_client_receive(struct vp_agent_events *events)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {events->msg, sizeof(struct msg) + MSG_MAX};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control.bytes)};
	ssize_t got = vp_recvmsg(events->worker.channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -1;
	if (got < (ssize_t)sizeof(struct msg)) {
		vp_agent_worker_died(&events->problem);
		events->state = VP_AGENT_EVENTS_GONE;
		return -1;
	}
	int fd = connection_of(&message);
	if (fd >= 0 && events->connection >= 0)
		close(fd);
	else if (fd >= 0)
		events->connection = fd;
	return got - (ssize_t)sizeof(struct msg);
}

enum vp_agent_events_state vp_agent_events_receive(struct vp_agent_events *events, int timeout_ms,
						   size_t most,
						   const struct vp_agent_events_receiver *receiver)
{
	struct pollfd ready = {.fd = events->worker.channel, .events = POLLIN};

	for (size_t received = 0; events->state < VP_AGENT_EVENTS_ENDED && received < most;) {
		if (vp_poll(&ready, 1, received ? 0 : timeout_ms) <= 0)
			break;
		ssize_t size = events_client_receive(events);
		if (size < 0)
			break;
		received += sizeof(struct msg) + (size_t)size;
		events_client_take_msg(events, (size_t)size, receiver);
	}
	return events->state;
}

void vp_agent_events_flush(struct vp_agent_events *events)
{
	if (events->state == VP_AGENT_EVENTS_SENDING && events->can_flush &&
	    vp_send(events->connection, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		events->flushes++;
}

bool vp_agent_events_is_flushing(const struct vp_agent_events *events)
{
	return events->state == VP_AGENT_EVENTS_SENDING && events->flushes > 0;
}

void vp_agent_events_stop(struct vp_agent_events *events)
{
	if (events->connection >= 0)
		shutdown(events->connection, SHUT_WR);
}

const char *vp_agent_events_problem(const struct vp_agent_events *events)
{
	return events->problem ? events->problem : "no reply";
}
