/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/guest_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "collect/confine.h"
#include "collect/sampler.h"
#include "guestmem/worker.h"

enum {
	MOST_ANSWER = 64 << 20,
	MOST_CPUS = 8192,
	MOST_PROCESSES = 1 << 17,
};

struct vp_guest_reader {
	pid_t process;
	int channel;
	struct vp_buffer answer;
};

/* In the new process: gives up everything, then reads until nobody asks any more. */
static VP_NORETURN void run_worker(const struct vp_guest_state *state, int memory, int channel,
				   const struct vp_buffer *packs, size_t n_packs, int dump)
{
	struct vp_guest_memory guest = state->memory;
	int keep[] = {memory, channel, dump};
	struct vp_guest_worker_options options = {.memory = &guest,
						  .vcpus = state->vcpus.at,
						  .n_vcpus = state->vcpus.count,
						  .packs = packs,
						  .n_packs = n_packs,
						  .dump = dump};

	/* What ends a recording from the terminal goes to all; this one ends with its parent. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (getrandom(&options.seed, sizeof(options.seed), 0) != sizeof(options.seed) ||
	    !vp_confine(keep, VP_ARRAY_SIZE(keep)))
		_exit(1);
	vp_guest_memory_by_fd(&guest, keep[0]);
	options.channel = keep[1];
	options.dump = keep[2];
	vp_guest_worker_run(&options);
	_exit(0);
}

struct vp_error *vp_guest_reader_start(const struct vp_guest_state *state,
				       const struct vp_buffer *packs, size_t n_packs, int dump,
				       struct vp_guest_reader **ret)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%u/mem", state->pid);
	int channels[2];

	if (vp_sampler_vendor() == VP_VENDOR_ARM)
		return vp_error_new("the memory of Arm's guests is not understood yet");
	if (!state->memory.slots.count)
		return vp_error_new("KVM has no memory slots for the VM of process %u", state->pid);
	VP_AUTO_CLOSE int memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		return vp_error_errno(errno, "cannot open '%s'", path);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channels))
		return vp_error_errno(errno, "cannot make a socket pair");
	pid_t process = fork();
	if (process == 0)
		run_worker(state, memory, channels[1], packs, n_packs, dump);
	close(channels[1]);
	if (process < 0) {
		close(channels[0]);
		return vp_error_errno(errno, "cannot start a process");
	}
	struct vp_guest_reader *reader = vp_alloc(sizeof(*reader));
	*reader = (struct vp_guest_reader){.process = process, .channel = channels[0]};
	*ret = reader;
	return NULL;
}

void vp_guest_reader_free(struct vp_guest_reader *reader)
{
	if (!reader)
		return;
	close(reader->channel);
	kill(reader->process, SIGKILL);
	while (waitpid(reader->process, NULL, 0) < 0 && errno == EINTR)
		;
	vp_buffer_deinit(&reader->answer);
	free(reader);
}

/* A reader that has died must not end this program; one that is stuck must not hold it. */
static struct vp_error *send_request(struct vp_guest_reader *reader, const char *text, size_t size)
{
	ssize_t sent = send(reader->channel, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);

	return sent == (ssize_t)size
		   ? NULL
		   : vp_error_new("the reader of the guest's memory does not listen");
}

bool vp_guest_reader_listens(const struct vp_guest_reader *reader, int timeout_ms)
{
	struct pollfd room = {.fd = reader->channel, .events = POLLOUT};

	return poll(&room, 1, timeout_ms) > 0;
}

struct vp_error *vp_guest_reader_ask(struct vp_guest_reader *reader, const char *format, ...)
{
	char text[128];
	va_list args;

	va_start(args, format);
	int length = vsnprintf(text, sizeof(text) - 1, format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= sizeof(text) - 1)
		return vp_error_new("a request to the reader of the guest's memory is too long");
	text[length++] = '\n';
	reader->answer.size = 0;
	return send_request(reader, text, (size_t)length);
}

struct vp_error *vp_guest_reader_see(struct vp_guest_reader *reader, uint64_t task, uint32_t tgid,
				     uint64_t time)
{
	char text[128];
	int length =
	    snprintf(text, sizeof(text), "see %" PRIx64 " %x %" PRIx64 "\n", task, tgid, time);

	return send_request(reader, text, (size_t)length);
}

struct vp_error *vp_guest_reader_memory(struct vp_guest_reader *reader,
					const struct vp_guest_memory *memory)
{
	struct vp_buffer text = {0};

	vp_buffer_string(&text, "memory\n");
	vp_vec_each (&memory->slots, slot)
		vp_buffer_printf(&text, "memory %" PRIx64 " %" PRIx64 " %" PRIx64 "\n", slot->gpa,
				 slot->size, slot->hva);
	struct vp_error *error = send_request(reader, text.bytes, text.size);
	vp_buffer_deinit(&text);
	return error;
}

/* Whether the last line of the answer is there. */
static bool is_whole(const struct vp_buffer *answer)
{
	size_t size = answer->size;

	return size >= 2 && !memcmp(answer->bytes + size - 2, ".\n", 2) &&
	       (size == 2 || answer->bytes[size - 3] == '\n');
}

static struct vp_error *said_error(struct vp_slice answer)
{
	struct vp_cursor cursor = vp_cursor_of(answer.bytes, answer.size);
	struct vp_slice line = {0};

	while (vp_cursor_line(&cursor, &line)) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		if (!vp_slice_is(vp_cursor_word(&words), "error"))
			continue;
		struct vp_buffer text = {0};
		vp_maps_unescape(vp_cursor_rest(&words), &text);
		struct vp_error *error = vp_error_new("%s", vp_buffer_text(&text));
		vp_buffer_deinit(&text);
		return error;
	}
	return NULL;
}

struct vp_error *vp_guest_reader_wait(struct vp_guest_reader *reader, int timeout_ms, bool *done,
				      struct vp_slice *answer)
{
	struct pollfd ready = {.fd = reader->channel, .events = POLLIN};

	*done = is_whole(&reader->answer);
	while (!*done && poll(&ready, 1, timeout_ms) > 0) {
		char *room = vp_buffer_extend(&reader->answer, 65536);
		ssize_t got = recv(reader->channel, room, 65536, MSG_DONTWAIT);
		reader->answer.size -= 65536 - (size_t)(got > 0 ? got : 0);
		if (got <= 0 && errno != EAGAIN && errno != EINTR)
			return vp_error_new("the reader of the guest's memory has died");
		if (reader->answer.size > MOST_ANSWER)
			return vp_error_new("the reader of the guest's memory says too much");
		*done = is_whole(&reader->answer);
	}
	if (!*done)
		return NULL;
	*answer = (struct vp_slice){reader->answer.bytes, reader->answer.size - 2};
	return said_error(*answer);
}

static char *rest_of(struct vp_cursor *words)
{
	struct vp_buffer text = {0};

	vp_maps_unescape(vp_cursor_rest(words), &text);
	char *copy = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	return copy;
}

static bool take_kernel(struct vp_cursor *words, struct vp_guest_finding *finding)
{
	finding->text = vp_cursor_hex(words);
	finding->gpa = vp_cursor_hex(words);
	finding->size = vp_cursor_hex(words);
	finding->direct_map = vp_cursor_hex(words);
	finding->levels = (uint32_t)vp_cursor_hex(words);
	finding->cached = vp_cursor_hex(words);
	finding->scanned = vp_cursor_hex(words);
	finding->derived = vp_cursor_hex(words);
	bool known = vp_build_id_parse(vp_cursor_word(words), &finding->build_id);
	free(finding->banner);
	finding->banner = rest_of(words);
	return known && vp_cursor_ok(words);
}

static bool take_count(struct vp_cursor *words, struct vp_guest_finding *finding)
{
	struct vp_guest_count_place place = {.vcpu = (uint32_t)vp_cursor_hex(words)};
	uint64_t count = vp_cursor_hex(words);

	place.count = (enum vp_guest_count)count;
	place.gpa = vp_cursor_hex(words);
	place.narrow = vp_cursor_hex(words) != 0;
	if (!vp_cursor_ok(words) || count >= VP_GUEST_COUNT ||
	    finding->counts.count == MOST_CPUS * VP_GUEST_COUNT)
		return false;
	vp_vec_push(&finding->counts, place);
	return true;
}

static bool take_finding(struct vp_slice line, struct vp_guest_finding *finding)
{
	struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
	struct vp_slice what = vp_cursor_word(&words);

	if (vp_slice_is(what, "kernel"))
		return take_kernel(&words, finding);
	const struct {
		const char *name;
		char **text;
	} texts[] = {
	    {"pack", &finding->pack}, {"lacks", &finding->lacks}, {"dropped", &finding->dropped}};
	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++)
		if (vp_slice_is(what, texts[i].name)) {
			free(*texts[i].text);
			*texts[i].text = rest_of(&words);
			return true;
		}
	if (vp_slice_is(what, "count"))
		return take_count(&words, finding);
	if (vp_slice_is(what, "at")) {
		finding->at_tid = (uint32_t)vp_cursor_hex(&words);
		finding->at_tgid = (uint32_t)vp_cursor_hex(&words);
		finding->at_comm = (uint32_t)vp_cursor_hex(&words);
		finding->at_stack = (uint32_t)vp_cursor_hex(&words);
		return vp_cursor_ok(&words);
	}
	struct vp_guest_place cpu = {.vcpu = (uint32_t)vp_cursor_hex(&words)};
	cpu.cpu = (uint32_t)vp_cursor_hex(&words);
	cpu.current_gpa = vp_cursor_hex(&words);
	if (!vp_slice_is(what, "cpu") || !vp_cursor_ok(&words) || finding->cpus.count == MOST_CPUS)
		return false;
	vp_vec_push(&finding->cpus, cpu);
	return true;
}

struct vp_error *vp_guest_finding_parse(struct vp_slice answer, struct vp_guest_finding *ret)
{
	struct vp_cursor cursor = vp_cursor_of(answer.bytes, answer.size);
	struct vp_slice line = {0};

	*ret = (struct vp_guest_finding){0};
	while (vp_cursor_line(&cursor, &line))
		if (!take_finding(line, ret)) {
			vp_guest_finding_deinit(ret);
			return vp_error_new("the reader of the guest's memory gave an answer that "
					    "is none");
		}
	return ret->banner ? NULL : vp_error_new("the reader of the guest's memory gave no answer");
}

void vp_guest_finding_deinit(struct vp_guest_finding *finding)
{
	free(finding->banner);
	free(finding->pack);
	free(finding->lacks);
	free(finding->dropped);
	vp_vec_deinit(&finding->cpus);
	vp_vec_deinit(&finding->counts);
	*finding = (struct vp_guest_finding){0};
}

struct vp_error *vp_guest_processes_parse(struct vp_slice answer, vp_guest_processes *processes,
					  bool *damaged)
{
	struct vp_cursor cursor = vp_cursor_of(answer.bytes, answer.size);
	struct vp_slice line = {0};

	*damaged = false;
	while (vp_cursor_line(&cursor, &line) && processes->count < MOST_PROCESSES) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		struct vp_slice what = vp_cursor_word(&words);
		if (vp_slice_is(what, "damaged")) {
			*damaged = true;
			continue;
		}
		struct vp_guest_process process = {.tgid = (uint32_t)vp_cursor_hex(&words)};
		process.root = vp_cursor_hex(&words);
		if (!vp_slice_is(what, "task") || !vp_cursor_ok(&words))
			return vp_error_new("the reader of the guest's memory gave an answer that "
					    "is none");
		process.comm = rest_of(&words);
		vp_vec_push(processes, process);
	}
	return NULL;
}

void vp_guest_processes_deinit(vp_guest_processes *processes)
{
	vp_vec_each (processes, process)
		free(process->comm);
	vp_vec_deinit(processes);
}
