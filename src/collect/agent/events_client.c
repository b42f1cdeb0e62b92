/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/agent/events_client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/confine.h"
#include "base/file.h"
#include "base/io.h"
#include "base/vec.h"
#include "collect/agent/agent_client.h"
#include "collect/tracefs/ring_page.h"
#include "collect/tracefs/tracepoint_format.h"
#include "host/worker_process.h"
#include "schema/event_class.h"

enum {
	LONGEST_LINE = 256,
	USUAL_NEWS = 1 << 15, /* a longer one is that by a record at most */
	NEWS_MAX = USUAL_NEWS + UINT16_MAX,
	CLASSES_MAX = 64,
	IDS = 1 << 16, /* the number has 16 bits in an event */
};

enum news_kind {
	NEWS_CONNECTED, /* with the connection itself */
	NEWS_ABSENT,
	NEWS_GONE,
	NEWS_CLASSES,
	NEWS_TASKS,
	NEWS_CLOCK,
	NEWS_RECORDS,
	NEWS_LOST,
	NEWS_MALFORMED,
	NEWS_FLUSHED,
	NEWS_END
};

/* Messages of the process that talks to the agent, one packet each. */
struct news {
	uint32_t kind; /* enum news_kind */
	uint32_t vcpu;
	uint64_t number;
	char bytes[];
};

struct vp_agent_events {
	struct vp_worker_process worker;
	int connection; /* -1: not connected */
	enum vp_agent_events_state state;
	bool can_flush;
	unsigned flushes; /* asked for and not answered yet */
	char *problem;
	struct news *news;
};

/* A tracepoint of the guest. */
struct tracepoint {
	vp_tracepoint_places places;
};

/* The process that talks to the agent, and its confinement. */
struct talker {
	struct vp_agent_address address;
	unsigned sets;
	const char *name; /* of the guest */
	int fd, channel;
	struct vp_buffer payload, news;
	struct vp_buffer records; /* and before them room for their head */
	bool begun;
	uint32_t page_size;
	vp_event_classes classes;
	VP_VEC(struct tracepoint) tracepoints; /* the classes' */
	uint8_t *class_of_id;                  /* by the kernel's number: + 1; 0 if there is none */
	uint64_t malformed;
};

/* A stream of packets: each is taken whole or not at all. */
static void send_packet(const struct talker *talker, const struct vp_buffer *packet)
{
	if (vp_write(talker->channel, packet->bytes, packet->size) != (ssize_t)packet->size)
		_exit(1);
}

static void events_client_tell(struct talker *talker, const struct news *head, const void *bytes,
			       size_t size)
{
	talker->news.size = 0;
	vp_buffer_append(&talker->news, head, sizeof(*head));
	vp_buffer_append(&talker->news, bytes, size);
	send_packet(talker, &talker->news);
}

static void events_client_tell_error(struct talker *talker, enum news_kind kind,
				     struct vp_error *error)
{
	const char *message = vp_error_message(error);

	events_client_tell(talker, &(struct news){.kind = kind}, message, strlen(message));
	vp_error_free(error);
}

static bool tell_connection(const struct talker *talker)
{
	struct news head = {.kind = NEWS_CONNECTED};
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
	memcpy(CMSG_DATA(fds), &talker->fd, sizeof(int));
	return vp_sendmsg(talker->channel, &message, MSG_NOSIGNAL) == sizeof(head);
}

static void events_client_tell_absent(void *talker, struct vp_error *error)
{
	events_client_tell_error(talker, NEWS_ABSENT, error);
}

/* Until there is an agent, or no use in waiting for one; unless the connection was given. */
static void events_client_connect_agent(struct talker *talker)
{
	if (talker->fd >= 0)
		return;
	struct vp_error *error =
	    vp_agent_await(&talker->address, 0, events_client_tell_absent, talker, &talker->fd);

	if (!error)
		return;
	events_client_tell_error(talker, NEWS_GONE, error);
	_exit(0);
}

static struct vp_error *events_client_ask(const struct talker *talker)
{
	struct vp_buffer line = {0};

	vp_events_request_write(talker->sets, &line);
	int result = vp_fd_write_all(talker->fd, line.bytes, line.size);
	vp_buffer_deinit(&line);
	return result ? vp_error_errno(-result, "the agent of %s does not respond", talker->name)
		      : NULL;
}

static struct vp_error *events_client_read_all(const struct talker *talker, void *bytes,
					       size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = vp_read(talker->fd, (char *)bytes + done, size - done);
		if (got == 0)
			return vp_error_new("the agent of %s has ended", talker->name);
		if (got < 0 && errno != EINTR)
			return vp_error_errno(errno, "the connection to the agent of %s broke",
					      talker->name);
		done += got > 0 ? (size_t)got : 0;
	}
	return NULL;
}

static struct vp_error *events_client_malformed(const struct talker *talker, const char *what)
{
	return vp_error_new("the agent of %s sent a malformed reply: %s", talker->name, what);
}

/* Its reply, or the reason for none. */
static struct vp_error *read_head(const struct talker *talker)
{
	char line[LONGEST_LINE] = "";
	size_t size = 0;

	while (size + 1 < sizeof(line) && (!size || line[size - 1] != '\n')) {
		VP_TRY(events_client_read_all(talker, line + size, 1));
		size++;
	}
	line[size] = 0;
	if (!strcmp(line, VP_EVENTS_HEAD))
		return NULL;
	if (strncmp(line, "error ", 6) != 0)
		return events_client_malformed(talker, "its first line");
	line[size - 1] = 0;
	return vp_error_new("the agent of %s refuses: %s", talker->name, line + 6);
}

static struct vp_error *take_format(struct talker *talker, struct vp_cursor *payload)
{
	struct vp_event_class *class;
	struct vp_slice name;
	uint32_t id;

	if (!vp_cursor_line(payload, &name) || !vp_events_is_allowed(name) ||
	    talker->classes.count == CLASSES_MAX)
		return events_client_malformed(talker, "an event that was not asked for");
	struct vp_slice text = vp_cursor_rest(payload);
	if (!vp_tracepoint_format_id(text, &id) || id >= IDS)
		return events_client_malformed(talker, "an event without a number");
	if (talker->class_of_id[id])
		return events_client_malformed(talker, "two events of one number");
	talker->class_of_id[id] = (uint8_t)(talker->classes.count + 1);
	VP_AUTO_FREE char *copy = vp_strndup(name.bytes, name.size);
	VP_TRY(vp_event_classes_add(&talker->classes, copy, &class));
	struct tracepoint *tracepoint = vp_vec_push_slot(&talker->tracepoints);
	*tracepoint = (struct tracepoint){0};
	return vp_tracepoint_format_parse(copy, text.bytes, text.size, class, &tracepoint->places);
}

static struct vp_error *take_begin(struct talker *talker, uint32_t can, struct vp_cursor *payload)
{
	struct vp_buffer text = {0};
	struct vp_error *error = NULL;

	talker->page_size = vp_cursor_u32(payload);
	if (talker->page_size < 64 || talker->page_size > VP_EVENTS_PAGE_MAX)
		return events_client_malformed(talker, "the size of a page");
	vp_event_classes_write(&talker->classes, &text);
	if (text.size > NEWS_MAX)
		error = events_client_malformed(talker, "events with too many fields");
	else
		events_client_tell(talker, &(struct news){.kind = NEWS_CLASSES, .number = can},
				   text.bytes, text.size);
	vp_buffer_deinit(&text);
	talker->begun = true;
	return error;
}

static void events_client_tell_records(struct talker *talker, uint32_t vcpu)
{
	const struct news head = {.kind = NEWS_RECORDS, .vcpu = vcpu};

	if (talker->records.size > sizeof(head)) {
		memcpy(talker->records.bytes, &head, sizeof(head));
		send_packet(talker, &talker->records);
	}
	talker->records.size = sizeof(head);
}

/* An entry begins with the kernel's number of its event. */
static void events_client_take_entry(struct talker *talker, uint64_t time, struct vp_slice entry)
{
	uint16_t id = 0;

	if (entry.size >= sizeof(id))
		memcpy(&id, entry.bytes, sizeof(id));
	size_t place = talker->class_of_id[id];
	if (!place || !vp_tracepoint_convert(&talker->classes.at[place - 1],
					     &talker->tracepoints.at[place - 1].places, time, entry,
					     &talker->records))
		talker->malformed++;
}

static void take_page(struct talker *talker, uint32_t vcpu, struct vp_slice bytes)
{
	struct vp_ring_page page;
	struct vp_slice entry;
	uint64_t time;

	if (!vp_ring_page_open(bytes, &page)) {
		talker->malformed++;
		return;
	}
	while (vp_ring_page_next(&page, &time, &entry)) {
		events_client_take_entry(talker, time, entry);
		if (talker->records.size >= USUAL_NEWS)
			events_client_tell_records(talker, vcpu);
	}
	talker->malformed += page.malformed;
}

static void take_pages(struct talker *talker, uint32_t vcpu, struct vp_cursor *payload)
{
	uint64_t before = talker->malformed;

	if (!talker->records.size)
		vp_buffer_fill(&talker->records, 0, sizeof(struct news));
	while (vp_cursor_left(payload)) {
		size_t left = vp_cursor_left(payload);
		size_t size = left < talker->page_size ? left : talker->page_size;
		take_page(talker, vcpu, vp_cursor_bytes(payload, size));
	}
	events_client_tell_records(talker, vcpu);
	if (talker->malformed != before)
		events_client_tell(
		    talker, &(struct news){.kind = NEWS_MALFORMED, .number = talker->malformed},
		    NULL, 0);
}

static void events_client_take_tasks(struct talker *talker, struct vp_cursor *payload)
{
	enum { MOST = USUAL_NEWS / sizeof(struct vp_events_task) };

	for (size_t left; (left = vp_cursor_left(payload) / sizeof(struct vp_events_task));) {
		size_t size = (left < MOST ? left : MOST) * sizeof(struct vp_events_task);
		events_client_tell(talker, &(struct news){.kind = NEWS_TASKS},
				   vp_cursor_bytes(payload, size).bytes, size);
	}
}

static struct vp_error *events_client_take_clock(struct talker *talker, struct vp_cursor *payload)
{
	struct vp_slice clock = vp_cursor_bytes(payload, sizeof(struct vp_events_clock));

	if (!vp_cursor_ok(payload))
		return events_client_malformed(talker, "a clock");
	events_client_tell(talker, &(struct news){.kind = NEWS_CLOCK}, clock.bytes, clock.size);
	return NULL;
}

static struct vp_error *take_frame(struct talker *talker, const struct vp_events_frame *frame,
				   struct vp_cursor *payload)
{
	const struct news lost = {.kind = NEWS_LOST, .vcpu = frame->vcpu};
	struct news numbered = lost;

	if (frame->vcpu >= VP_EVENTS_VCPUS_MAX)
		return events_client_malformed(talker, "the number of a vCPU");
	if ((frame->kind <= VP_EVENTS_BEGIN) == talker->begun)
		return events_client_malformed(talker, "a frame out of order");
	switch (frame->kind) {
	case VP_EVENTS_FORMAT:
		return take_format(talker, payload);
	case VP_EVENTS_BEGIN:
		return take_begin(talker, frame->can, payload);
	case VP_EVENTS_TASKS:
		events_client_take_tasks(talker, payload);
		return NULL;
	case VP_EVENTS_CLOCK:
		return events_client_take_clock(talker, payload);
	case VP_EVENTS_PAGES:
		take_pages(talker, frame->vcpu, payload);
		return NULL;
	case VP_EVENTS_LOST:
		numbered.number = vp_cursor_u64(payload);
		events_client_tell(talker, &numbered, NULL, 0);
		return NULL;
	case VP_EVENTS_FLUSHED:
		events_client_tell(talker, &(struct news){.kind = NEWS_FLUSHED}, NULL, 0);
		return NULL;
	case VP_EVENTS_END:
		events_client_tell(talker, &(struct news){.kind = NEWS_END}, NULL, 0);
		_exit(0);
	}
	return events_client_malformed(talker, "a frame of no known kind");
}

static struct vp_error *events_client_listen_to(struct talker *talker)
{
	VP_TRY(events_client_ask(talker));
	VP_TRY(read_head(talker));
	for (;;) {
		struct vp_events_frame frame;
		VP_TRY(events_client_read_all(talker, &frame, sizeof(frame)));
		if (frame.size > VP_EVENTS_FRAME_MAX)
			return events_client_malformed(talker, "a frame that is too long");
		talker->payload.size = 0;
		VP_TRY(events_client_read_all(
		    talker, vp_buffer_extend(&talker->payload, frame.size), frame.size));
		struct vp_cursor payload = vp_cursor_of(talker->payload.bytes, frame.size);
		VP_TRY(take_frame(talker, &frame, &payload));
	}
}

static void events_client_talk(void *context, int channel)
{
	struct talker *talker = context;

	talker->channel = channel;
	talker->class_of_id = vp_alloc(IDS);
	events_client_connect_agent(talker);
	int keep[] = {talker->fd, talker->channel};
	if (!tell_connection(talker))
		_exit(1);
	struct vp_error *error = vp_confine(keep, VP_ARRAY_SIZE(keep), 0, 0);
	talker->fd = keep[0];
	talker->channel = keep[1];
	events_client_tell_error(talker, NEWS_GONE,
				 error ? error : events_client_listen_to(talker));
}

static struct vp_error *events_client_start_talker(struct talker *talker,
						   struct vp_agent_events **ret)
{
	struct vp_worker_process worker;

	VP_TRY(vp_worker_process_start(SOCK_SEQPACKET, events_client_talk, talker, &worker));
	struct vp_agent_events *events = vp_alloc(sizeof(*events));
	*events = (struct vp_agent_events){
	    .worker = worker, .connection = -1, .news = vp_alloc(sizeof(struct news) + NEWS_MAX)};
	*ret = events;
	return NULL;
}

struct vp_error *vp_agent_events_start(const struct vp_agent_address *address, unsigned sets,
				       struct vp_agent_events **ret)
{
	VP_AUTO_FREE char *name = vp_agent_address_name(address);
	struct talker talker = {.address = *address, .sets = sets, .name = name, .fd = -1};

	return events_client_start_talker(&talker, ret);
}

struct vp_error *vp_agent_events_start_from(int fd, const char *name, unsigned sets,
					    struct vp_agent_events **ret)
{
	VP_AUTO_CLOSE int own = fd;
	struct talker talker = {.sets = sets, .name = name, .fd = own};

	return events_client_start_talker(&talker, ret);
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
	free(events->news);
	free(events);
}

int vp_agent_events_fd(const struct vp_agent_events *events)
{
	return events->worker.channel;
}

static void events_client_take_problem(struct vp_agent_events *events, const char *text,
				       size_t size)
{
	free(events->problem);
	events->problem = vp_strndup(text, strnlen(text, size < 256 ? size : 256));
	for (char *c = events->problem; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

static void events_client_take_news(struct vp_agent_events *events, size_t size,
				    const struct vp_agent_events_taker *taker)
{
	struct news *news = events->news;
	size_t tasks = size / sizeof(struct vp_events_task);

	switch (news->kind) {
	case NEWS_ABSENT:
	case NEWS_GONE:
		events_client_take_problem(events, news->bytes, size);
		events->state =
		    news->kind == NEWS_GONE ? VP_AGENT_EVENTS_GONE : VP_AGENT_EVENTS_ABSENT;
		break;
	case NEWS_CLASSES:
		events->can_flush = news->number & VP_EVENTS_CAN_FLUSH;
		taker->classes(taker->context, (struct vp_slice){news->bytes, size});
		events->state = VP_AGENT_EVENTS_SENDING;
		break;
	case NEWS_TASKS:
		taker->tasks(taker->context, (const void *)news->bytes, tasks);
		break;
	case NEWS_CLOCK:
		if (size >= sizeof(struct vp_events_clock))
			taker->clock(taker->context, (const void *)news->bytes);
		break;
	case NEWS_RECORDS:
		taker->records(taker->context, news->vcpu, news->bytes, size);
		break;
	case NEWS_LOST:
		taker->lost(taker->context, news->vcpu, news->number);
		break;
	case NEWS_MALFORMED:
		taker->malformed(taker->context, news->number);
		break;
	case NEWS_FLUSHED:
		events->flushes -= events->flushes > 0;
		break;
	case NEWS_END:
		events->state = VP_AGENT_EVENTS_ENDED;
		break;
	}
}

/* The connection that may come with it; -1: none did. */
static int connection_of(struct msghdr *message)
{
	const struct cmsghdr *fds = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (fds && fds->cmsg_level == SOL_SOCKET && fds->cmsg_type == SCM_RIGHTS &&
	    fds->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(fds), sizeof(fd));
	return fd;
}

/* Bytes of the next packet after its head; negative if there is none. */
static ssize_t events_client_receive(struct vp_agent_events *events)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {events->news, sizeof(struct news) + NEWS_MAX};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control.bytes)};
	ssize_t got = vp_recvmsg(events->worker.channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -1;
	if (got < (ssize_t)sizeof(struct news)) {
		static const char died[] = "the agent client process has died";
		events_client_take_problem(events, died, sizeof(died));
		events->state = VP_AGENT_EVENTS_GONE;
		return -1;
	}
	int fd = connection_of(&message);
	if (fd >= 0 && events->connection >= 0)
		close(fd);
	else if (fd >= 0)
		events->connection = fd;
	return got - (ssize_t)sizeof(struct news);
}

enum vp_agent_events_state vp_agent_events_hear(struct vp_agent_events *events, int timeout_ms,
						size_t most,
						const struct vp_agent_events_taker *taker)
{
	struct pollfd ready = {.fd = events->worker.channel, .events = POLLIN};

	for (size_t heard = 0; events->state < VP_AGENT_EVENTS_ENDED && heard < most;) {
		if (vp_poll(&ready, 1, heard ? 0 : timeout_ms) <= 0)
			break;
		ssize_t size = events_client_receive(events);
		if (size < 0)
			break;
		heard += sizeof(struct news) + (size_t)size;
		events_client_take_news(events, (size_t)size, taker);
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
