/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/confined_text.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/io.h"

enum { MAX_SECONDS = 120, NOT_CONFINED = 2 };
/* Maximum bytes of text: symbols of all programs of a host take about 100 MiB. */
#define MAX_TEXT (1ULL << 30)

static VP_NORETURN void run_writer(const struct vp_confined_text *text, int fd)
{
	struct vp_maps_writer writer = {0};
	int keep[] = {fd};

	if (vp_confine_to_reading(keep, VP_ARRAY_SIZE(keep), MAX_TEXT))
		_exit(NOT_CONFINED);
	writer.fd = keep[0];
	text->write(&writer, text->context);
	_exit(vp_maps_writer_flush(&writer) != 0);
}

static struct vp_error *confined_text_take_lines(int fd, const char *keywords,
						 struct vp_maps_writer *writer)
{
	struct stat status;

	if (fstat(fd, &status) || !status.st_size)
		return NULL;
	size_t size = (size_t)status.st_size;
	char *lines = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (lines == MAP_FAILED)
		return vp_error_errno(errno, "cannot map their symbols");
	vp_maps_writer_adopt(writer, (struct vp_slice){lines, size}, keywords);
	munmap(lines, size);
	return NULL;
}

static struct vp_error *judge(int status, bool late)
{
	if (late)
		return vp_error_new("reading them took longer than %d s", MAX_SECONDS);
	if (WIFSIGNALED(status))
		return vp_error_new("the process that read them was killed by signal %d",
				    WTERMSIG(status));
	if (WEXITSTATUS(status) == NOT_CONFINED)
		return vp_error_new("the process that reads them could not be confined");
	return status ? vp_error_new("their symbols need more than %llu MiB", MAX_TEXT >> 20)
		      : NULL;
}

/* Limited: a user's file system may block a reader forever. */
static struct vp_error *await_writer(pid_t process, const struct vp_meanwhile *meanwhile)
{
	uint64_t end = vp_clock_monotonic() + MAX_SECONDS * 1000000000ULL;
	bool late = false;
	int status;

	for (pid_t ended; (ended = vp_waitpid(process, &status, WNOHANG)) != process;) {
		if (ended < 0)
			return vp_error_errno(errno, "the process that reads them was lost");
		late = vp_clock_monotonic() > end;
		if (late)
			kill(process, SIGKILL);
		vp_sleep_us(1000);
		vp_meanwhile(meanwhile);
	}
	return judge(status, late);
}

struct vp_error *vp_confined_text_write(struct vp_maps_writer *writer,
					const struct vp_confined_text *text)
{
	VP_AUTO_CLOSE int fd = memfd_create("vperf-host-text", MFD_CLOEXEC);

	if (fd < 0)
		return vp_error_errno(errno, "cannot allocate memory for their symbols");
	pid_t process = fork();
	if (process == 0)
		run_writer(text, fd);
	if (process < 0)
		return vp_error_errno(errno, "cannot start a process to read them");
	struct vp_error *error = await_writer(process, text->meanwhile);
	struct vp_error *problem = confined_text_take_lines(fd, text->keywords, writer);
	if (!error)
		return problem;
	vp_error_free(problem); /* the first error has the cause */
	return error;
}
