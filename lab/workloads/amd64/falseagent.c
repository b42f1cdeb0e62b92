/*
 * falseagent garbage|flood|cut PORT
 *
 * A hostile agent for guests. It listens at a vsock port and answers a request for events as
 * vperf-agent would (src/protocol/events_protocol.h), one host after another. It sends ten good
 * events, then random pages (garbage), good pages without a pause (flood), or half a page before
 * it closes the connection (cut).
 */
#include "common.h"

#include <linux/vm_sockets.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <x86intrin.h>

enum { FORMAT = 1, BEGIN, TASKS, PAGES, PAGE = 4096, EVENT = 314, ENTRY = 16, FEW = 10 };

struct frame {
	uint32_t kind, vcpu, size, can;
};

static const char format[] = "sched:sched_switch\nname: sched_switch\nID: 314\nformat:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
			     "\tfield:int number;\toffset:8;\tsize:4;\tsigned:1;\n";

static bool put(int host, const void *bytes, size_t size)
{
	return write(host, bytes, size) == (ssize_t)size;
}

static bool put_frame(int host, uint32_t kind, const void *bytes, uint32_t size)
{
	const struct frame frame = {kind, 0, size, 0};

	return put(host, &frame, sizeof(frame)) && put(host, bytes, size);
}

/* A page of ftrace's ring with `count` events, all of them now. */
static void make_page(uint8_t page[PAGE], int count)
{
	const uint64_t head[2] = {__rdtsc(), (uint64_t)count * ENTRY};

	memset(page, 0, PAGE);
	memcpy(page, head, sizeof(head));
	for (int i = 0; i < count; i++) {
		const uint32_t entry[4] = {3, EVENT, 1,
					   (uint32_t)i}; /* three words behind the first */
		memcpy(page + sizeof(head) + i * ENTRY, entry, sizeof(entry));
	}
}

static bool put_page(int host, bool random)
{
	static uint8_t page[PAGE];

	if (!random)
		make_page(page, (PAGE - 16) / ENTRY);
	for (int i = 0; random && i < PAGE; i++)
		page[i] = (uint8_t)rand();
	return put_frame(host, PAGES, page, sizeof(page));
}

static bool begin(int host)
{
	static uint8_t page[PAGE];
	const uint32_t size = PAGE;

	if (!put(host, "vperf-events 1\n", 15) ||
	    !put_frame(host, FORMAT, format, sizeof(format) - 1) ||
	    !put_frame(host, BEGIN, &size, sizeof(size)))
		return false;
	sleep(1); /* events from before the recording are not recorded */
	make_page(page, FEW);
	return put_frame(host, PAGES, page, sizeof(page));
}

static void answer(int host, const char *how)
{
	const struct frame half = {PAGES, 0, PAGE, 0};
	char request[256];

	if (read(host, request, sizeof(request)) < 1 || !strstr(request, " events ") ||
	    !begin(host))
		return;
	if (!strcmp(how, "cut")) {
		put(host, &half, sizeof(half));
		put(host, request, 100);
		return;
	}
	while (put_page(host, !strcmp(how, "garbage")))
		;
}

int main(int argc, char **argv)
{
	struct sockaddr_vm address = {.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY};
	int listener = socket(AF_VSOCK, SOCK_STREAM, 0);

	if (argc != 3)
		work_usage("falseagent garbage|flood|cut PORT");
	work_init_abrupt("falseagent");
	signal(SIGPIPE, SIG_IGN);
	address.svm_port = (unsigned)work_number("PORT", argv[2]);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(listener, 1)) {
		perror("falseagent");
		return 1;
	}
	for (;;) {
		int host = accept(listener, NULL, NULL);
		if (host < 0)
			continue;
		answer(host, argv[1]);
		close(host);
	}
}
