/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the worker that reads a guest's memory may be asked, in any order, of a guest that it finds.
 * It answers and ends.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit/guest_builder.h"
#include "guestreader/worker.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { LONGEST = 4096, MAX_REQUESTS = 16, ROOM = 64 << 20 };

/* Each takes time: a few make all orders there are. */
static size_t shorten(const uint8_t *bytes, size_t size)
{
	size_t lines = 0, at = 0;

	while (at < size && at < LONGEST && lines < MAX_REQUESTS)
		lines += bytes[at++] == '\n';
	return at;
}

/* Nobody reads while the worker writes: what finds no room ends it. */
static void make_room(int channel)
{
	const int room = ROOM;

	setsockopt(channel, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
}

static void serve(struct vp_guest_snapshot *snapshot, const uint8_t *bytes, size_t size)
{
	struct vp_guest_worker_options options = {.memory = &snapshot->memory,
						  .vcpus = snapshot->vcpus.at,
						  .n_vcpus = snapshot->vcpus.count,
						  .seed = 1,
						  .dump = -1};
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends))
		abort();
	make_room(ends[1]);
	if (send(ends[0], bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
		abort();
	shutdown(ends[0], SHUT_WR);
	options.channel = ends[1];
	vp_guest_worker_run(&options);
	close(ends[0]);
	close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct guest_builder guest;
	static struct vp_buffer text;
	struct vp_guest_snapshot snapshot;

	size = shorten(bytes, size);
	if (!size)
		return 0;
	if (!text.size) {
		built_kernel(&guest, BUILT_NEW);
		built_snapshot(&guest, &text);
	}
	if (vp_guest_snapshot_init(text.bytes, text.size, &snapshot))
		abort();
	serve(&snapshot, bytes, size);
	vp_guest_snapshot_deinit(&snapshot);
	return 0;
}
