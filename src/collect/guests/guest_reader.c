/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/guests/guest_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/confine.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "base/vec.h"
#include "base/worker_process.h"
#include "collect/guests/guest_state.h"
#include "guestmem/memory/memory.h"
#include "guestreader/stack_job.h"
#include "guestreader/worker.h"
#include "maps/format.h"

struct vp_guest_reader {
	struct vp_worker_process worker;
	struct vp_buffer answer;
	struct vp_stack_jobs *jobs; /* shared with the process */
	uint64_t asked;             /* sequence number of unwind requests */
	uint32_t n_jobs;            /* jobs in the next one */
};

struct work {
	const struct vp_guest_access *access;
	const struct vp_guest_state *state;
	const int *fds; /* VP_GUEST_ACCESS_FDS */
	const struct vp_buffer *packs;
	size_t n_packs;
	int dump;
	uint64_t max_dump;
	struct vp_stack_jobs *jobs;
};

enum { CHANNEL = VP_GUEST_ACCESS_FDS, DUMP, KEPT };

/* Sent as the reply to the first request. */
static VP_NORETURN void guest_reader_refuse(int channel, const struct vp_error *error)
{
	struct vp_buffer answer = {0};

	vp_buffer_string(&answer, "error ");
	vp_maps_escape(vp_error_message(error), &answer);
	vp_buffer_string(&answer, "\n.\n");
	_exit(vp_fd_write_all(channel, answer.bytes, answer.size) != 0);
}

/* In the child process: drops all privileges, then serves requests until the channel is closed. */
static void guest_reader_read_guest(void *context, int channel)
{
	const struct work *work = context;
	struct vp_guest_memory guest = work->state->memory;
	int keep[KEPT] = {[CHANNEL] = channel, [DUMP] = work->dump};
	struct vp_guest_worker_options options = {.memory = &guest,
						  .vcpus = work->state->vcpus.at,
						  .n_vcpus = work->state->vcpus.count,
						  .packs = work->packs,
						  .n_packs = work->n_packs,
						  .jobs = work->jobs};

	void *prepared = NULL;
	struct vp_error *error =
	    work->access->prepare ? work->access->prepare(work->state, &prepared) : NULL;
	if (error)
		guest_reader_refuse(channel, error);
	memcpy(keep, work->fds, VP_GUEST_ACCESS_FDS * sizeof(*keep));
	if (getrandom(&options.seed, sizeof(options.seed), 0) != sizeof(options.seed))
		_exit(1);
	error = vp_confine_to_receiving(keep, VP_ARRAY_SIZE(keep), work->access->request,
					work->max_dump);
	if (error)
		guest_reader_refuse(keep[CHANNEL], error);
	work->access->read_by(work->state, prepared, keep, &guest);
	options.channel = keep[CHANNEL];
	options.dump = keep[DUMP];
	vp_guest_worker_run(&options);
}

struct vp_error *vp_guest_reader_start(const struct vp_guest_access *access,
				       const struct vp_guest_state *state,
				       const struct vp_buffer *packs, size_t n_packs, int dump,
				       uint64_t max_dump, struct vp_guest_reader **ret)
{
	int fds[VP_GUEST_ACCESS_FDS] = {-1, -1};
	struct vp_stack_jobs *jobs =
	    mmap(NULL, sizeof(*jobs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct work work = {access, state, fds, packs, n_packs, dump, max_dump, jobs};
	struct vp_worker_process worker;

	if (jobs == MAP_FAILED)
		return vp_error_errno(errno, "cannot allocate memory for guest stacks");
	struct vp_error *error = vp_guest_state_expect_open(state);
	if (!error)
		error = access->open_memory(state, fds);
	if (!error)
		error =
		    vp_worker_process_start(SOCK_STREAM, guest_reader_read_guest, &work, &worker);
	for (size_t i = 0; i < VP_GUEST_ACCESS_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (error) {
		munmap(jobs, sizeof(*jobs));
		return error;
	}
	struct vp_guest_reader *reader = vp_alloc(sizeof(*reader));
	*reader = (struct vp_guest_reader){.worker = worker, .jobs = jobs};
	*ret = reader;
	return NULL;
}

void vp_guest_reader_free(struct vp_guest_reader *reader)
{
	if (!reader)
		return;
	vp_worker_process_end(&reader->worker);
	munmap(reader->jobs, sizeof(*reader->jobs));
	vp_buffer_deinit(&reader->answer);
	free(reader);
}

/* A dead reader must not end this program; a blocked one must not block it. */
static struct vp_error *guest_reader_send_request(struct vp_guest_reader *reader, const char *text,
						  size_t size)
{
	ssize_t sent = vp_send(reader->worker.channel, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);

	return sent == (ssize_t)size ? NULL
				     : vp_error_new("the guest memory reader does not respond");
}

bool vp_guest_reader_listens(const struct vp_guest_reader *reader, int timeout_ms)
{
	struct pollfd room = {.fd = reader->worker.channel, .events = POLLOUT};

	return vp_poll(&room, 1, timeout_ms) > 0;
}

int vp_guest_reader_fd(const struct vp_guest_reader *reader)
{
	return reader->worker.channel;
}

struct vp_error *vp_guest_reader_request(struct vp_guest_reader *reader, const char *format, ...)
{
	char text[128];
	va_list args;

	va_start(args, format);
	int length = vsnprintf(text, sizeof(text) - 1, format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= sizeof(text) - 1)
		return vp_error_new("the request to the guest memory reader is too long");
	text[length++] = '\n';
	reader->answer.size = 0;
	return guest_reader_send_request(reader, text, (size_t)length);
}

struct vp_error *vp_guest_reader_request_process(struct vp_guest_reader *reader, uint64_t task,
						 uint32_t tgid, uint64_t time)
{
	char text[128];
	int length =
	    snprintf(text, sizeof(text), "see %" PRIx64 " %x %" PRIx64 "\n", task, tgid, time);

	return guest_reader_send_request(reader, text, (size_t)length);
}

struct vp_error *vp_guest_reader_hits(struct vp_guest_reader *reader, const char *requests,
				      size_t size)
{
	return guest_reader_send_request(reader, requests, size);
}

bool vp_guest_reader_pass_file(struct vp_guest_reader *reader, const struct vp_build_id *build_id,
			       int fd)
{
	struct vp_buffer text = {0};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};

	vp_buffer_string(&text, "file ");
	vp_build_id_put(build_id, &text);
	vp_buffer_string(&text, "\n");
	struct iovec part = {text.bytes, text.size};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	bool is_passed =
	    vp_guest_reader_listens(reader, 0) &&
	    vp_sendmsg(reader->worker.channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
	vp_buffer_deinit(&text);
	return is_passed;
}

bool vp_guest_reader_unwound(const struct vp_guest_reader *reader)
{
	return __atomic_load_n(&reader->jobs->done, __ATOMIC_ACQUIRE) == reader->asked;
}

struct vp_stack_job *vp_guest_reader_job(struct vp_guest_reader *reader)
{
	if (reader->n_jobs == VP_STACK_JOBS || !vp_guest_reader_unwound(reader))
		return NULL;
	return &reader->jobs->at[reader->n_jobs++];
}

bool vp_guest_reader_unwind(struct vp_guest_reader *reader)
{
	char text[64];
	int length = snprintf(text, sizeof(text), "unwind %" PRIx64 " %x\n", reader->asked + 1,
			      reader->n_jobs);
	bool any = reader->n_jobs > 0;

	reader->n_jobs = 0;
	if (!any)
		return false;
	struct vp_error *error = guest_reader_send_request(reader, text, (size_t)length);
	reader->asked += !error;
	any = !error;
	vp_error_free(error);
	return any;
}

struct vp_error *vp_guest_reader_memory(struct vp_guest_reader *reader,
					const struct vp_guest_memory *memory)
{
	struct vp_buffer text = {0};

	vp_buffer_string(&text, "memory\n");
	vp_vec_each (&memory->slots, slot)
		vp_buffer_printf(&text, "memory %" PRIx64 " %" PRIx64 " %" PRIx64 "\n", slot->gpa,
				 slot->size, slot->hva);
	struct vp_error *error = guest_reader_send_request(reader, text.bytes, text.size);
	vp_buffer_deinit(&text);
	return error;
}

struct vp_error *vp_guest_reader_wait(struct vp_guest_reader *reader, int timeout_ms, bool *done,
				      struct vp_slice *answer)
{
	return vp_guest_answer_take(reader->worker.channel, timeout_ms, &reader->answer, done,
				    answer);
}
