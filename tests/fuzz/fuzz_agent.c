/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an agent may send, to the host's client. Each byte 0xff of the input ends one piece, so that
 * the pieces arrive by themselves. And the same as what it says of where it counts, or may be
 * lent to, and as what it is asked for.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collect/agent/agent_client.h"
#include "protocol/counts_protocol.h"
#include "protocol/lend_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* What is understood can be said again, and means the same. */
static void ask_for_counts(struct vp_slice line)
{
	struct vp_counts_request request, again;
	struct vp_buffer text = {0};

	if (!vp_counts_request_parse(line, &request))
		return;
	vp_counts_request_write(&request, &text);
	if (!vp_counts_request_parse((struct vp_slice){text.bytes, text.size - 1}, &again) ||
	    again.marker != request.marker || again.events != request.events)
		abort();
	vp_buffer_deinit(&text);
}

static void ask_to_lend(struct vp_slice line)
{
	struct vp_lend_request request, again;
	struct vp_buffer text = {0};

	if (!vp_lend_request_parse(line, &request))
		return;
	vp_lend_request_write(&request, &text);
	if (!vp_lend_request_parse((struct vp_slice){text.bytes, text.size - 1}, &again) ||
	    memcmp(&again, &request, sizeof(again)) != 0)
		abort();
	vp_buffer_deinit(&text);
}

static void hear_of_cells(const uint8_t *bytes, size_t size)
{
	struct vp_cursor cursor = vp_cursor_of(bytes, size);
	struct vp_lend_line said = {.kind = VP_LEND_HEAD};
	struct vp_error *error = NULL;
	struct vp_slice line;
	uint64_t lines = 0;

	while (!error && vp_cursor_line(&cursor, &line)) {
		ask_to_lend(line);
		error = vp_lend_answer_take(&lines, said.kind == VP_LEND_END, line, &said);
	}
	vp_error_free(error);
}

static void hear_counts(const uint8_t *bytes, size_t size)
{
	struct vp_cursor cursor = vp_cursor_of(bytes, size);
	struct vp_counts_answer answer = {0};
	struct vp_error *error = NULL;
	struct vp_counts_line said;
	struct vp_slice line;

	while (!error && vp_cursor_line(&cursor, &line)) {
		ask_for_counts(line);
		error = vp_counts_answer_take(&answer, line, &said);
		if (!error && (said.event >= VP_GUEST_COUNT || said.kind > VP_COUNTS_END))
			abort();
	}
	vp_error_free(error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct vp_agent_limits limits = {.bytes = 4096, .seconds_idle = 1, .seconds_total = 1};
	struct vp_agent_result result;
	char path[] = "fuzz-agent.XXXXXX";
	int fds[2], file = mkstemp(path);

	if (file < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		abort();
	hear_counts(bytes, size);
	hear_of_cells(bytes, size);
	while (size) {
		const uint8_t *end = memchr(bytes, 0xff, size);
		size_t piece = end ? (size_t)(end - bytes) : size;
		if (piece)
			send(fds[1], bytes, piece, MSG_DONTWAIT | MSG_NOSIGNAL);
		piece += end != NULL;
		bytes += piece;
		size -= piece;
	}
	shutdown(fds[1], SHUT_WR);
	struct vp_error *error = vp_agent_fetch_from(fds[0], "g", path, &limits, &result);
	if (result.bytes > limits.bytes || (!error && !result.bytes))
		abort();
	vp_error_free(error);
	close(fds[0]);
	close(fds[1]);
	close(file);
	unlink(path);
	return 0;
}
