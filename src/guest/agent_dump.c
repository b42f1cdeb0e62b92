/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the agent's symbol map; reads the symbols of mapped files for it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/file.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "guest/agent.h"
#include "guest/tracker.h"
#include "guest/watch.h"
#include "maps/mapped.h"
#include "maps/proc.h"
#include "maps/writer.h"

enum {
	MAX_JIT_LINES = 4 << 20,
	MAX_JIT_FILE = 256 << 20,
	MAX_JIT_LINE = 64 << 10,
	MAX_SECONDS = 300,
	NOT_CONFINED = 2,
	POLL_US = 2000,
};

struct dump {
	struct vp_agent *agent;
	struct vp_maps_writer writer;
	bool symbols;
	/* Per image of the tracker: a mapping in a running process; .end 0: none. */
	struct live_mapping {
		uint32_t tgid;
		uint64_t start, end;
	} * live;
	uint64_t unread; /* files that are missing or have changed */
	size_t jit_lines;
};

static bool is_alive(const struct vp_tracker *tracker, const struct vp_tracker_space *space)
{
	return !space->end_ns &&
	       vp_tracker_space_of(tracker, space->tgid) == (uint32_t)(space - tracker->spaces.at);
}

static void find_users(struct dump *dump)
{
	struct vp_tracker *tracker = &dump->agent->tracker;

	dump->live = vp_alloc(tracker->images.count * sizeof(*dump->live));
	vp_vec_each (&tracker->spaces, space) {
		bool alive = is_alive(tracker, space);
		for (uint32_t i = space->first_mapping; i != VP_TRACKER_NONE;
		     i = tracker->mappings.at[i].next) {
			const struct vp_tracker_mapping *mapping = &tracker->mappings.at[i];
			tracker->images.at[mapping->image].used = true;
			if (alive)
				dump->live[mapping->image] = (struct live_mapping){
				    space->tgid, mapping->start, mapping->end};
		}
	}
}

static void agent_dump_write_image(struct dump *dump, uint32_t number)
{
	struct vp_tracker_image *image = &dump->agent->tracker.images.at[number];
	const struct live_mapping *live = &dump->live[number];
	struct vp_mapped mapped = {.path = image->path,
				   .build_id = image->build_id,
				   .pid = live->end ? live->tgid : 0,
				   .start = live->start,
				   .end = live->end};

	if (!image->used || !vp_mapped_is_file(image->path))
		return;
	if (!vp_mapped_write(&dump->writer, &mapped, dump->symbols))
		dump->unread++;
	image->build_id = mapped.build_id;
}

static void write_mappings(struct dump *dump, const struct vp_tracker_space *space)
{
	const struct vp_tracker *tracker = &dump->agent->tracker;

	for (uint32_t i = space->first_mapping; i != VP_TRACKER_NONE;
	     i = tracker->mappings.at[i].next) {
		const struct vp_tracker_mapping *mapping = &tracker->mappings.at[i];
		const struct vp_tracker_image *image = &tracker->images.at[mapping->image];
		vp_maps_write_mapping(&dump->writer, space->id, mapping->start, mapping->end,
				      mapping->pgoff, mapping->from_ns, &image->build_id,
				      image->path);
	}
}

static void write_space(struct dump *dump, const struct vp_tracker_space *space)
{
	const struct vp_tracker *tracker = &dump->agent->tracker;

	vp_maps_write_space(&dump->writer, space->id, space->tgid, space->root, space->start_ns,
			    space->end_ns, space->comm);
	if (space->parent != VP_TRACKER_NONE)
		vp_maps_write_fork(&dump->writer, space->id, tracker->spaces.at[space->parent].id);
	write_mappings(dump, space);
}

/* "7f0010 40 Interpreter:main"; other lines are skipped. */
static void write_jit_line(struct dump *dump, uint64_t id, char *line)
{
	char *rest;
	uint64_t addr = strtoull(line, &rest, 16);
	uint64_t size = strtoull(rest, &rest, 16);

	rest += strspn(rest, " \t");
	rest[strcspn(rest, "\n")] = 0;
	if (!addr || !size || !*rest || dump->jit_lines >= MAX_JIT_LINES)
		return;
	dump->jit_lines++;
	vp_maps_write_jit(&dump->writer, id, addr, size, rest);
}

/* Writes complete lines. A partial line stays in the buffer, unless it exceeds the limit. */
static void write_jit_lines(struct dump *dump, uint64_t id, struct vp_buffer *text)
{
	char *next = text->bytes, *end = next + text->size, *newline;

	while ((newline = memchr(next, '\n', (size_t)(end - next)))) {
		*newline = 0;
		write_jit_line(dump, id, next);
		next = newline + 1;
	}
	size_t left = (size_t)(end - next);
	memmove(text->bytes, next, left);
	text->size = left < MAX_JIT_LINE ? left : 0;
}

/* In pieces, with read() only: the seccomp filter allows nothing else. */
static void write_jit_file(struct dump *dump, uint64_t id, const char *path)
{
	/* Any user may create a link or pipe of that name. */
	VP_AUTO_CLOSE int fd = vp_file_open_regular(path, MAX_JIT_FILE, O_NOFOLLOW);
	struct vp_buffer text = {0};
	ssize_t got = 1;

	while (fd >= 0 && got > 0) {
		char *room = vp_buffer_extend(&text, MAX_JIT_LINE);
		got = vp_read(fd, room, MAX_JIT_LINE);
		text.size -= MAX_JIT_LINE - (size_t)(got > 0 ? got : 0);
		write_jit_lines(dump, id, &text);
	}
	vp_buffer_deinit(&text);
}

static void write_live_jit(struct dump *dump)
{
	const struct vp_tracker *tracker = &dump->agent->tracker;

	vp_vec_each (&tracker->spaces, space)
		if (is_alive(tracker, space)) {
			VP_AUTO_FREE char *path =
			    vp_format("/proc/%u/root/tmp/perf-%u.map", space->tgid,
				      vp_proc_inner_pid(space->tgid));
			write_jit_file(dump, space->id, path);
		}
}

/* Perf maps of exited processes in this /tmp; each belongs to the last process with that pid. */
static void write_left_jit(struct dump *dump)
{
	const struct vp_tracker *tracker = &dump->agent->tracker;
	struct vp_map last = {0}; /* tgid → space + 1; 0: running */
	DIR *folder = opendir("/tmp");
	bool inserted;

	for (uint32_t i = 0; folder && i < tracker->spaces.count; i++) {
		const struct vp_tracker_space *space = &tracker->spaces.at[i];
		*vp_map_insert(&last, space->tgid, 0, &inserted) =
		    is_alive(tracker, space) ? 0 : i + 1;
	}
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		unsigned pid;
		int end = 0;
		if (sscanf(entry->d_name, "perf-%u.map%n", &pid, &end) != 1 || !end ||
		    entry->d_name[end])
			continue;
		uint32_t *space = vp_map_find(&last, pid);
		VP_AUTO_FREE char *path = vp_format("/tmp/%s", entry->d_name);
		if (space && *space)
			write_jit_file(dump, tracker->spaces.at[*space - 1].id, path);
	}
	if (folder)
		closedir(folder);
	vp_map_deinit(&last);
}

static void agent_dump_write_losses(struct dump *dump)
{
	const struct vp_agent *agent = dump->agent;
	const struct vp_tracker *tracker = &agent->tracker;
	uint64_t task_events = agent->task_events ? vp_task_watch_lost(agent->task_events) : 0;
	uint64_t mappings = agent->perf ? vp_perf_lost(agent->perf) : 0;

	vp_vec_each (&agent->notes, note)
		vp_maps_write_note(&dump->writer, "%s", *note);
	if (task_events)
		vp_maps_write_note(&dump->writer,
				   "%" PRIu64 " process start and exit events were lost",
				   task_events);
	if (mappings)
		vp_maps_write_note(&dump->writer, "%" PRIu64 " mapping events were lost", mappings);
	if (tracker->forgotten)
		vp_maps_write_note(&dump->writer,
				   "%" PRIu64 " exited processes were dropped: out of table memory",
				   tracker->forgotten);
	if (tracker->forgotten_paths)
		vp_maps_write_note(&dump->writer,
				   "%" PRIu64 " mappings have no path: out of table memory",
				   tracker->forgotten_paths);
	if (dump->unread)
		vp_maps_write_note(
		    &dump->writer,
		    "%" PRIu64
		    " mapped files could not be read or have changed: no symbols for them",
		    dump->unread);
	if (dump->jit_lines >= MAX_JIT_LINES)
		vp_maps_write_note(&dump->writer, "more than %d JIT symbols, the rest is ignored",
				   MAX_JIT_LINES);
}

/* Parses users' data: files, program output, names. */
static int dump_processes(struct dump *dump)
{
	const struct vp_tracker *tracker = &dump->agent->tracker;

	/* Images first: mappings need their build-ids. */
	find_users(dump);
	for (uint32_t i = 0; i < tracker->images.count; i++)
		agent_dump_write_image(dump, i);
	vp_vec_each (&tracker->spaces, space)
		write_space(dump, space);
	if (dump->symbols) {
		write_live_jit(dump);
		write_left_jit(dump);
	}
	agent_dump_write_losses(dump);
	return vp_maps_writer_finish(&dump->writer);
}

/* In a confined process that can only read files and write the dump: malformed files cannot
 * affect the agent. */
static VP_NORETURN void dump_confined(struct dump *dump)
{
	int keep[] = {dump->writer.fd};

	if (vp_confine_to_reading(keep, VP_ARRAY_SIZE(keep), INT64_MAX))
		_exit(NOT_CONFINED);
	dump->writer.fd = keep[0];
	_exit(dump_processes(dump) ? 1 : 0);
}

/* A user's file system may block it forever. */
static int await_dump(pid_t process)
{
	int status = 0;
	pid_t ended;

	for (uint64_t waited = 0; !(ended = vp_waitpid(process, &status, WNOHANG));
	     waited += POLL_US) {
		if (waited > MAX_SECONDS * 1000000ULL)
			kill(process, SIGKILL);
		vp_sleep_us(POLL_US);
	}
	if (ended < 0)
		return -errno;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_CONFINED)
		return -EPERM;
	return status ? -EIO : 0;
}

int vp_agent_dump(struct vp_agent *agent, int fd, bool symbols)
{
	struct dump dump = {.agent = agent, .symbols = symbols};
	struct vp_agent_clock now;

	vp_maps_writer_init(&dump.writer, fd);
	vp_proc_write_machine(&dump.writer, true);
	vp_vec_each (&agent->clocks, clock)
		vp_maps_write_clock(&dump.writer, clock->mono_ns, clock->tsc, clock->error_ns);
	vp_clock_pair(CLOCK_MONOTONIC, VP_AGENT_CLOCK_TRIES, &now.mono_ns, &now.tsc, &now.error_ns);
	vp_maps_write_clock(&dump.writer, now.mono_ns, now.tsc, now.error_ns);
	vp_proc_write_kallsyms(
	    &dump.writer); /* the kernel's names; addresses require another capability */
	if (symbols)
		vp_mapped_write_vdso(&dump.writer);
	pid_t process = fork();
	if (process == 0)
		dump_confined(&dump);
	int result = process > 0 ? await_dump(process) : -errno;
	vp_maps_writer_deinit(&dump.writer);
	return result;
}
