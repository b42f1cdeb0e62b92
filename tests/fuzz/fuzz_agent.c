/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an agent may send, to the host's client. Each byte 0xff of the input ends one piece, so that
 * the pieces arrive by themselves.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collect/agent_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct vp_agent_limits limits = {.bytes = 4096, .seconds_idle = 1, .seconds_total = 1};
	struct vp_agent_result result;
	char path[] = "/tmp/vperf-fuzz-XXXXXX";
	int fds[2], file = mkstemp(path);

	if (file < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		abort();
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
