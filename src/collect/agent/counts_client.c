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
#include "base/confine.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/io.h"
#include "collect/agent/agent_client.h"
#include "host/worker_process.h"

enum { LONGEST_LINE = 256, LEND_TRIES = 40 };

enum news_kind {
	NEWS_ABSENT,
	NEWS_MARKER,
	NEWS_PLACE,
	NEWS_CELL,
	NEWS_WITHOUT,
	NEWS_WHOLE,
	NEWS_GONE
};

/* Messages of the process that talks to the agent, one packet each. */
struct news {
	uint32_t kind; /* enum news_kind */
	uint32_t vcpu, event;
	uint64_t gpa;
	char text[232]; /* why the agent is absent or gone; may be the guest's own words */
};

struct vp_agent_counts {
	struct vp_worker_process worker;
	enum vp_agent_counts_state state;
	struct vp_agent_places places;
	char *problem;
};

/* The process that talks to the agent, and its confinement. */
struct talker {
	struct vp_agent_address address;
	struct vp_counts_request request;
	struct vp_lend_request lend; /* of no events: it is not asked for */
	const char *name;            /* of the guest */
	int fd, channel;
	struct vp_buffer heard; /* the start of a line */
	struct vp_counts_answer answer;
};

static void counts_client_tell(const struct talker *talker, const struct news *news)
{
	if (vp_write(talker->channel, news, sizeof(*news)) != sizeof(*news))
		_exit(1);
}

static void counts_client_tell_error(const struct talker *talker, enum news_kind kind,
				     struct vp_error *error)
{
	struct news news = {.kind = kind};

	strncpy(news.text, vp_error_message(error), sizeof(news.text) - 1);
	vp_error_free(error);
	counts_client_tell(talker, &news);
}

static void counts_client_tell_absent(void *talker, struct vp_error *error)
{
	counts_client_tell_error(talker, NEWS_ABSENT, error);
}

/* Until there is an agent, or no use in waiting for one; unless the connection was given. */
static void counts_client_connect_agent(struct talker *talker)
{
	if (talker->fd >= 0)
		return;
	/* Somebody waits for what is lent, and wants to know that there is nobody to lend it to. */
	unsigned tries = talker->lend.n ? LEND_TRIES : 0;
	struct vp_error *error =
	    vp_agent_await(&talker->address, tries, counts_client_tell_absent, talker, &talker->fd);

	if (!error)
		return;
	counts_client_tell_error(talker, NEWS_GONE, error);
	_exit(0);
}

/* Confined, it cannot wait but in read(). */
static struct vp_error *prepare_waiting(const struct talker *talker)
{
	const struct timeval keep = {.tv_sec = VP_COUNTS_KEEP_S};

	if (setsockopt(talker->fd, SOL_SOCKET, SO_RCVTIMEO, &keep, sizeof(keep)) ||
	    setsockopt(talker->fd, SOL_SOCKET, SO_SNDTIMEO, &keep, sizeof(keep)))
		return vp_error_errno(errno, "cannot set the timeout for the agent of %s",
				      talker->name);
	return NULL;
}

static struct vp_error *counts_client_say(const struct talker *talker, const char *text,
					  size_t size)
{
	int result = vp_fd_write_all(talker->fd, text, size);

	return result ? vp_error_errno(-result, "the agent of %s does not respond", talker->name)
		      : NULL;
}

static struct vp_error *counts_client_ask(const struct talker *talker)
{
	struct vp_buffer line = {0};

	if (talker->lend.n)
		vp_lend_request_write(&talker->lend, &line);
	else
		vp_counts_request_write(&talker->request, &line);
	struct vp_error *error = counts_client_say(talker, line.bytes, line.size);
	vp_buffer_deinit(&line);
	return error;
}

static struct vp_error *take_answer_line(struct talker *talker, struct vp_slice text)
{
	static const uint32_t kinds[] = {[VP_COUNTS_MARKER] = NEWS_MARKER,
					 [VP_COUNTS_PLACE] = NEWS_PLACE,
					 [VP_COUNTS_WITHOUT] = NEWS_WITHOUT,
					 [VP_COUNTS_END] = NEWS_WHOLE};
	struct vp_counts_line line;
	VP_AUTO_ERROR struct vp_error *error = vp_counts_answer_take(&talker->answer, text, &line);

	if (error)
		return vp_error_new("the agent of %s %s", talker->name, vp_error_message(error));
	if (line.kind != VP_COUNTS_HEAD)
		counts_client_tell(talker, &(struct news){.kind = kinds[line.kind],
							  .vcpu = line.vcpu,
							  .event = line.event,
							  .gpa = line.number});
	return NULL;
}

/* The same of an answer to a request to lend. */
static struct vp_error *take_lend_line(struct talker *talker, struct vp_slice text)
{
	struct vp_lend_line line;
	VP_AUTO_ERROR struct vp_error *error =
	    vp_lend_answer_take(&talker->answer.lines, talker->answer.whole, text, &line);

	if (error)
		return vp_error_new("the agent of %s %s", talker->name, vp_error_message(error));
	talker->answer.whole = line.kind == VP_LEND_END;
	if (line.kind != VP_LEND_HEAD)
		counts_client_tell(
		    talker,
		    &(struct news){.kind = line.kind == VP_LEND_CELL ? NEWS_CELL : NEWS_WHOLE,
				   .vcpu = line.vcpu,
				   .gpa = line.number});
	return NULL;
}

static struct vp_error *counts_client_take_lines(struct talker *talker)
{
	struct vp_buffer *heard = &talker->heard;
	struct vp_cursor cursor = vp_cursor_of(heard->bytes, heard->size);
	struct vp_slice line;

	while (memchr(cursor.next, '\n', vp_cursor_left(&cursor)) && vp_cursor_line(&cursor, &line))
		VP_TRY(talker->lend.n ? take_lend_line(talker, line)
				      : take_answer_line(talker, line));
	size_t left = vp_cursor_left(&cursor);
	if (left > LONGEST_LINE)
		return vp_error_new(
		    "malformed reply from the agent of %s: a line of more than %d bytes",
		    talker->name, LONGEST_LINE);
	memmove(heard->bytes, cursor.next, left);
	heard->size = left;
	return NULL;
}

/* Hands over what the agent says and renews its lease, until either of them has enough. */
static struct vp_error *counts_client_listen_to(struct talker *talker)
{
	enum { PIECE = 4096 };

	VP_TRY(counts_client_ask(talker));
	for (;;) {
		char *room = vp_buffer_extend(&talker->heard, PIECE);
		ssize_t got = vp_read(talker->fd, room, PIECE);
		talker->heard.size -= PIECE - (size_t)(got > 0 ? got : 0);
		if (got > 0) {
			VP_TRY(counts_client_take_lines(talker));
		} else if (got < 0 && errno == EAGAIN && talker->answer.whole) {
			VP_TRY(
			    counts_client_say(talker, VP_COUNTS_KEEP, sizeof(VP_COUNTS_KEEP) - 1));
		} else if (got < 0 && errno == EAGAIN) {
			return vp_error_new("the agent of %s sent nothing for %d s", talker->name,
					    VP_COUNTS_KEEP_S);
		} else if (got == 0) {
			return vp_error_new("the agent of %s has ended", talker->name);
		} else {
			return vp_error_errno(errno, "the connection to the agent of %s broke",
					      talker->name);
		}
	}
}

static void counts_client_talk(void *context, int channel)
{
	struct talker *talker = context;

	talker->channel = channel;
	counts_client_connect_agent(talker);
	struct vp_error *error = prepare_waiting(talker);
	if (!error) {
		int keep[] = {talker->fd, talker->channel};
		error = vp_confine(keep, VP_ARRAY_SIZE(keep), 0, 0);
		talker->fd = keep[0];
		talker->channel = keep[1];
		if (!error)
			error = counts_client_listen_to(talker);
	}
	counts_client_tell_error(talker, NEWS_GONE, error);
}

static struct vp_error *counts_client_start_talker(struct talker *talker,
						   struct vp_agent_counts **ret)
{
	struct vp_worker_process worker;

	if (getrandom(&talker->request.marker, sizeof(talker->request.marker), 0) !=
	    sizeof(talker->request.marker))
		return vp_error_errno(errno, "cannot get a random number");
	talker->request.marker |= 1; /* 0 is what a broken one is */
	talker->lend.marker = talker->request.marker;
	VP_TRY(vp_worker_process_start(SOCK_SEQPACKET, counts_client_talk, talker, &worker));
	struct vp_agent_counts *counts = vp_alloc(sizeof(*counts));
	*counts = (struct vp_agent_counts){.worker = worker,
					   .places = {.marker = talker->request.marker}};
	*ret = counts;
	return NULL;
}

struct vp_error *vp_agent_counts_start(const struct vp_agent_address *address, uint32_t events,
				       struct vp_agent_counts **ret)
{
	VP_AUTO_FREE char *name = vp_agent_address_name(address);
	struct talker talker = {
	    .address = *address, .request = {.events = events}, .name = name, .fd = -1};

	return counts_client_start_talker(&talker, ret);
}

struct vp_error *vp_agent_lend_start(const struct vp_agent_address *address,
				     const struct vp_lend_request *request,
				     struct vp_agent_counts **ret)
{
	VP_AUTO_FREE char *name = vp_agent_address_name(address);
	struct talker talker = {.address = *address, .lend = *request, .name = name, .fd = -1};

	return counts_client_start_talker(&talker, ret);
}

struct vp_error *vp_agent_counts_start_from(int fd, const char *name, uint32_t events,
					    struct vp_agent_counts **ret)
{
	VP_AUTO_CLOSE int own = fd;
	struct talker talker = {.request = {.events = events}, .name = name, .fd = own};

	return counts_client_start_talker(&talker, ret);
}

void vp_agent_counts_free(struct vp_agent_counts *counts)
{
	if (!counts)
		return;
	vp_worker_process_end(&counts->worker);
	vp_vec_deinit(&counts->places.counts);
	vp_vec_deinit(&counts->places.cells);
	free(counts->problem);
	free(counts);
}

static void counts_client_take_problem(struct vp_agent_counts *counts, const char *text,
				       size_t room)
{
	free(counts->problem);
	counts->problem = vp_strndup(text, strnlen(text, room));
	for (char *c = counts->problem; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

static void counts_client_take_news(struct vp_agent_counts *counts, const struct news *news)
{
	struct vp_agent_places *places = &counts->places;

	switch (news->kind) {
	case NEWS_ABSENT:
	case NEWS_GONE:
		counts_client_take_problem(counts, news->text, sizeof(news->text));
		counts->state = news->kind == NEWS_GONE ? VP_AGENT_GONE : VP_AGENT_ABSENT;
		break;
	case NEWS_MARKER:
		places->marker_gpa = news->gpa;
		break;
	case NEWS_PLACE:
		if (news->event < VP_GUEST_COUNT && places->counts.count < VP_COUNTS_MOST_PLACES)
			vp_vec_push(&places->counts,
				    ((struct vp_agent_place){
					news->vcpu, (enum vp_guest_count)news->event, news->gpa}));
		break;
	case NEWS_CELL:
		if (places->cells.count < VP_LEND_MOST_CELLS)
			vp_vec_push(&places->cells,
				    ((struct vp_agent_cell){news->vcpu, news->gpa}));
		break;
	case NEWS_WITHOUT:
		if (news->event < VP_GUEST_COUNT)
			places->without |= 1U << news->event;
		break;
	default:
		counts->state = VP_AGENT_COUNTING;
	}
}

enum vp_agent_counts_state vp_agent_counts_hear(struct vp_agent_counts *counts, int timeout_ms)
{
	enum vp_agent_counts_state before = counts->state;
	struct pollfd ready = {.fd = counts->worker.channel, .events = POLLIN};
	static const char died[] = "the agent client process has died";
	struct news news;

	while (counts->state != VP_AGENT_GONE &&
	       vp_poll(&ready, 1, counts->state == before ? timeout_ms : 0) > 0) {
		ssize_t got = vp_recv(counts->worker.channel, &news, sizeof(news), MSG_DONTWAIT);
		if (got == sizeof(news)) {
			counts_client_take_news(counts, &news);
		} else if (got >= 0 || errno != EAGAIN) {
			counts_client_take_problem(counts, died, sizeof(died));
			counts->state = VP_AGENT_GONE;
		}
	}
	return counts->state;
}

const struct vp_agent_places *vp_agent_counts_places(const struct vp_agent_counts *counts)
{
	return &counts->places;
}

const char *vp_agent_counts_problem(const struct vp_agent_counts *counts)
{
	return counts->problem ? counts->problem : "no reply";
}
