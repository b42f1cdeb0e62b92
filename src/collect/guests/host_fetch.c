/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/guests/host_fetch.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/io.h"
#include "base/vec.h"
#include "base/worker_process.h"
#include "collect/guests/host_copy.h"
#include "maps/debuginfod.h"

enum {
	MAX_WAITING = 64, /* of a VM */
	MAX_SECONDS = 120,
	CHANNEL = 3,  /* the first descriptor after the standard ones */
	GRACE_S = 10, /* after which a client that ignores its limit is ended */
};
/* Bytes of a file, and of all files of a recording. */
#define MAX_FILE (256ULL << 20)
#define MAX_TOTAL (1ULL << 30)

struct download {
	uint32_t vm;
	struct vp_build_id build_id;
};

struct vp_host_fetch {
	VP_VEC(struct download) waiting; /* in order; the first one is running, or has ended */
	bool running, ended;
	struct vp_worker_process worker;
	uint64_t total; /* bytes of all downloads */
};

struct vp_host_fetch *vp_host_fetch_new(void)
{
	return vp_alloc(sizeof(struct vp_host_fetch));
}

void vp_host_fetch_free(struct vp_host_fetch *fetch)
{
	if (!fetch)
		return;
	if (fetch->running)
		vp_worker_process_end(&fetch->worker);
	vp_vec_deinit(&fetch->waiting);
	free(fetch);
}

void vp_host_fetch_request(struct vp_host_fetch *fetch, uint32_t vm,
			   const struct vp_build_id *build_id)
{
	unsigned count = 0;

	vp_vec_each (&fetch->waiting, download)
		count += download->vm == vm;
	if (vp_debuginfod_has_servers() && count < MAX_WAITING && fetch->total < MAX_TOTAL)
		vp_vec_push(&fetch->waiting, ((struct download){.vm = vm, .build_id = *build_id}));
}

/* The user's limits, if any, are kept. */
static void set_limit(const char *variable, uint64_t most)
{
	VP_AUTO_FREE char *text = vp_format("%llu", (unsigned long long)most);

	setenv(variable, text, 0);
}

/* In the child process, which keeps no descriptor of the recorder. The end closes its channel. */
static void fetch_one(void *context, int channel)
{
	const struct download *download = context;
	const struct rlimit limit = {MAX_FILE, MAX_FILE};

	if (dup2(channel, CHANNEL) != CHANNEL)
		return;
	syscall(SYS_close_range, CHANNEL + 1, ~0U, 0);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	set_limit("DEBUGINFOD_MAXSIZE", MAX_FILE);
	set_limit("DEBUGINFOD_MAXTIME", MAX_SECONDS);
	alarm(MAX_SECONDS + GRACE_S);
	free(vp_debuginfod_fetch(&download->build_id, VP_DEBUGINFOD_EXECUTABLE));
}

static void remove_first(struct vp_host_fetch *fetch)
{
	memmove(fetch->waiting.at, fetch->waiting.at + 1,
		--fetch->waiting.count * sizeof(*fetch->waiting.at));
	fetch->ended = false;
}

static void start_first(struct vp_host_fetch *fetch)
{
	struct vp_error *error =
	    vp_worker_process_start(SOCK_STREAM, fetch_one, fetch->waiting.at, &fetch->worker);

	fetch->running = !error;
	if (error)
		remove_first(fetch);
	vp_error_free(error);
}

static void check_running(struct vp_host_fetch *fetch)
{
	struct pollfd end = {.fd = fetch->worker.channel, .events = POLLIN};

	if (vp_poll(&end, 1, 0) <= 0)
		return;
	vp_worker_process_end(&fetch->worker);
	fetch->running = false;
	fetch->ended = true;
}

static void offer_first(struct vp_host_fetch *fetch, vp_host_fetch_take take, void *context)
{
	const struct download *download = &fetch->waiting.at[0];
	VP_AUTO_CLOSE int fd = vp_host_copy_download(&download->build_id);
	struct stat status;

	if (fd >= 0 && !take(context, download->vm, &download->build_id, fd))
		return;
	if (fd >= 0 && !fstat(fd, &status))
		fetch->total += (uint64_t)status.st_size;
	remove_first(fetch);
}

void vp_host_fetch_step(struct vp_host_fetch *fetch, vp_host_fetch_take take, void *context)
{
	if (fetch->running)
		check_running(fetch);
	if (fetch->ended)
		offer_first(fetch, take, context);
	if (!fetch->running && !fetch->ended && fetch->waiting.count)
		start_first(fetch);
}
