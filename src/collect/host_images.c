/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/host_images.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/confine.h"
#include "base/io.h"
#include "collect/clock.h"

enum { MOST_SECONDS = 120, NOT_CONFINED = 2 };
/* Bytes of text: symbols of the programs of a host take some 100 MiB at most. */
#define MOST_TEXT (1ULL << 30)

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

	if (vp_confine_to_reading(keep, VP_ARRAY_SIZE(keep), MOST_TEXT))
		_exit(NOT_CONFINED);
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

static struct vp_error *take_text(const struct reading *reading, struct vp_maps_writer *writer)
{
	struct stat status;

	if (reading->text < 0 || fstat(reading->text, &status) || !status.st_size)
		return NULL;
	size_t size = (size_t)status.st_size;
	char *text = mmap(NULL, size, PROT_READ, MAP_SHARED, reading->text, 0);
	if (text == MAP_FAILED)
		return vp_error_errno(errno, "cannot map their symbols");
	vp_maps_writer_adopt(writer, (struct vp_slice){text, size}, "is");
	munmap(text, size);
	return NULL;
}

static struct vp_error *judge(int status, bool late)
{
	if (late)
		return vp_error_new("reading them took longer than %d s", MOST_SECONDS);
	if (WIFSIGNALED(status))
		return vp_error_new("the process that read them was killed by signal %d",
				    WTERMSIG(status));
	if (WEXITSTATUS(status) == NOT_CONFINED)
		return vp_error_new("the process that reads them could not be confined");
	return status ? vp_error_new("their symbols need more than %llu MiB", MOST_TEXT >> 20)
		      : NULL;
}

/* At most so long: a user's file system may let a reader wait for ever. */
static struct vp_error *await_reader(pid_t process)
{
	uint64_t end = vp_clock_monotonic() + MOST_SECONDS * 1000000000ULL;
	bool late = false;
	int status;

	for (pid_t ended; (ended = vp_waitpid(process, &status, WNOHANG)) != process;) {
		if (ended < 0)
			return vp_error_errno(errno, "the process that reads them was lost");
		late = vp_clock_monotonic() > end;
		if (late)
			kill(process, SIGKILL);
		vp_sleep_us(1000);
	}
	return judge(status, late);
}

static struct vp_error *read_images(struct reading *reading)
{
	if (reading->build_ids == MAP_FAILED || reading->text < 0)
		return vp_error_errno(errno, "cannot get memory for their symbols");
	pid_t process = fork();
	if (process == 0)
		run_reader(reading);
	return process > 0 ? await_reader(process)
			   : vp_error_errno(errno, "cannot start a process to read them");
}

struct vp_error *vp_host_images_write(struct vp_maps_writer *writer, struct vp_mapped *images,
				      size_t count, bool with_symbols)
{
	struct reading reading = {.images = images, .count = count, .with_symbols = with_symbols};
	size_t size = (count + 1) * sizeof(*reading.build_ids);
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	VP_AUTO_CLOSE int text = memfd_create("vperf-host-images", MFD_CLOEXEC);

	reading.text = text;
	reading.build_ids = shared;
	struct vp_error *error = read_images(&reading);
	if (shared != MAP_FAILED) {
		take_build_ids(&reading);
		struct vp_error *problem = take_text(&reading, writer);
		if (error)
			vp_error_free(problem);
		else
			error = problem;
		munmap(shared, size);
	}
	return error;
}
