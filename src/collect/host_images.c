/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/host_images.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "collect/clock.h"
#include "collect/confine.h"

enum { MOST_SECONDS = 120 };

struct reading {
	struct vp_mapped *images;
	size_t count;
	bool with_symbols;
	struct vp_build_id *build_ids; /* shared with the process that reads */
	int text;                      /* what it writes */
};

/* In the new process. */
static VP_NORETURN void run_reader(struct reading *reading)
{
	struct vp_maps_writer writer = {0};
	int keep[] = {reading->text};

	if (!vp_confine_to_reading(keep, VP_ARRAY_SIZE(keep)))
		_exit(1);
	writer.fd = keep[0];
	for (size_t i = 0; i < reading->count; i++) {
		struct vp_mapped *image = &reading->images[i];
		if (!vp_mapped_is_file(image->path))
			continue;
		vp_mapped_write(&writer, image, reading->with_symbols);
		reading->build_ids[i] = image->build_id;
	}
	_exit(vp_maps_writer_flush(&writer) != 0);
}

/* What the reader says is believed as far as it can do no harm. */
static void take_build_ids(const struct reading *reading)
{
	for (size_t i = 0; i < reading->count; i++)
		if (reading->build_ids[i].size <= VP_BUILD_ID_MAX)
			reading->images[i].build_id = reading->build_ids[i];
}

static void take_text(const struct reading *reading, struct vp_maps_writer *writer)
{
	struct stat status;

	if (fstat(reading->text, &status) || !status.st_size)
		return;
	size_t size = (size_t)status.st_size;
	char *text = mmap(NULL, size, PROT_READ, MAP_SHARED, reading->text, 0);
	if (text == MAP_FAILED)
		return;
	vp_maps_writer_adopt(writer, (struct vp_slice){text, size}, "is");
	munmap(text, size);
}

/* Whether it ended well, and in time: a user's file system may let a reader wait for ever. */
static bool await_reader(pid_t process)
{
	uint64_t end = vp_clock_monotonic() + MOST_SECONDS * 1000000000ULL;
	int status;

	for (pid_t ended; (ended = waitpid(process, &status, WNOHANG)) != process;) {
		if (ended < 0 && errno != EINTR)
			return false;
		if (vp_clock_monotonic() > end)
			kill(process, SIGKILL);
		usleep(1000);
	}
	return status == 0;
}

static bool read_images(struct reading *reading)
{
	pid_t process = fork();

	if (process == 0)
		run_reader(reading);
	return process > 0 && await_reader(process);
}

void vp_host_images_write(struct vp_maps_writer *writer, struct vp_mapped *images, size_t count,
			  bool with_symbols)
{
	struct reading reading = {.images = images, .count = count, .with_symbols = with_symbols};
	size_t size = (count + 1) * sizeof(*reading.build_ids);
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	VP_AUTO_CLOSE int text = memfd_create("vperf-host-images", MFD_CLOEXEC);

	reading.text = text;
	reading.build_ids = shared;
	bool whole = shared != MAP_FAILED && text >= 0 && read_images(&reading);
	if (!whole)
		vp_maps_write_note(
		    writer,
		    "not all files of host processes could be read: some symbols are missing");
	if (shared == MAP_FAILED)
		return;
	take_build_ids(&reading);
	take_text(&reading, writer);
	munmap(shared, size);
}
