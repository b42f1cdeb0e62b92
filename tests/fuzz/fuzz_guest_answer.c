/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a reader of a guest's memory may answer. Each byte 0xff of the input ends one piece, so that
 * the pieces arrive by themselves.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collect/guests/guest_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void find(struct vp_slice answer)
{
	struct vp_guest_finding finding;
	struct vp_error *error = vp_guest_finding_parse(answer, &finding);

	if (!error && !finding.banner && !finding.searching)
		abort();
	if (error && (finding.banner || finding.pack || finding.cpus.at))
		abort();
	vp_vec_each (&finding.counts, count)
		if (count->count >= VP_GUEST_COUNT)
			abort();
	vp_error_free(error);
	vp_guest_finding_deinit(&finding);
}

static void list(struct vp_slice answer)
{
	vp_guest_processes processes = {0};
	bool damaged;

	vp_error_free(vp_guest_processes_parse(answer, &processes, &damaged));
	vp_vec_each (&processes, process)
		if (!process->comm)
			abort();
	vp_guest_processes_deinit(&processes);
}

/* A whole answer does not become another one by being asked for again. */
static void hear(int channel, struct vp_buffer *heard, bool is_dead)
{
	struct vp_slice answer = {0}, again = {0};
	bool done, done_again;
	struct vp_error *error = vp_guest_answer_take(channel, 0, heard, &done, &answer);

	if (is_dead && !error && !done)
		abort();
	if (!error && done) {
		if (vp_guest_answer_take(-1, 0, heard, &done_again, &again) || !done_again ||
		    again.size != answer.size)
			abort();
		find(answer);
		list(answer);
	}
	vp_error_free(error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct vp_slice whole = {(const char *)bytes, size};
	struct vp_buffer heard = {0};
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		abort();
	find(whole);
	list(whole);
	while (size) {
		const uint8_t *end = memchr(bytes, 0xff, size);
		size_t piece = end ? (size_t)(end - bytes) : size;
		if (piece)
			send(ends[1], bytes, piece, MSG_DONTWAIT | MSG_NOSIGNAL);
		hear(ends[0], &heard, false);
		piece += end != NULL;
		bytes += piece;
		size -= piece;
	}
	close(ends[1]);
	errno = EAGAIN; /* of an earlier call */
	hear(ends[0], &heard, true);
	close(ends[0]);
	vp_buffer_deinit(&heard);
	return 0;
}
