/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/recording/import_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/confine.h"
#include "base/error.h"
#include "base/io.h"
#include "base/worker_process.h"
#include "import/common/import_channel.h"
#include "import/recording/importers.h"

struct vp_import_reader {
	struct vp_worker_process worker;
	const char *path;
	struct vp_buffer bytes;
};

/* For the confined process. */
struct job {
	const struct vp_importer *importer;
	const char *path;
	const struct vp_import_options *options;
};

static void import_reader_read_file(void *context, int channel)
{
	const struct job *job = context;
	void *state = NULL;

	struct vp_error *error = job->importer->open(job->path, job->options, &state);
	struct vp_import_channel confined = {channel};
	if (!error)
		error = vp_confine_to_reading(&confined.fd, 1, 0);
	if (!error)
		error = job->importer->send(state, &confined);
	if (!error)
		vp_import_send(&confined, (struct vp_import_msg){.kind = VP_IMPORT_END}, NULL, 0);
	else
		vp_import_send(&confined, (struct vp_import_msg){.kind = VP_IMPORT_PROBLEM},
			       vp_error_message(error), strlen(vp_error_message(error)));
}

/* The error for an unsupported format. */
static struct vp_error *unknown_format(const char *path)
{
	struct vp_buffer formats = {0};
	const struct vp_importer *importer;

	if (access(path, R_OK))
		return vp_error_errno(errno, "cannot read '%s'", path);
	for (size_t i = 0; (importer = vp_importer_at(i)); i++)
		vp_buffer_printf(&formats, "%s%s (%s)", i ? ", " : "", importer->name,
				 importer->summary);
	struct vp_error *error = vp_error_new("'%s': unrecognized format (supported: %s)", path,
					      vp_buffer_text(&formats));
	vp_buffer_deinit(&formats);
	return error;
}

struct vp_error *vp_import_reader_start(const char *path, const struct vp_import_options *options,
					struct vp_import_reader **ret)
{
	struct job job = {vp_importer_of(path), path, options};
	struct vp_worker_process worker;

	if (!job.importer)
		return unknown_format(path);
	if (options->event && !job.importer->has_samples)
		return vp_error_new("option --event: '%s' has no samples: it is of format %s", path,
				    job.importer->name);
	VP_TRY(vp_worker_process_start(SOCK_STREAM, import_reader_read_file, &job, &worker));
	*ret = vp_alloc(sizeof(**ret));
	**ret = (struct vp_import_reader){.worker = worker, .path = path};
	return NULL;
}

static bool import_reader_read_all(int fd, void *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = vp_read(fd, (char *)bytes + done, size - done);
		if (got == 0 || (got < 0 && errno != EINTR))
			return false;
		done += got > 0 ? (size_t)got : 0;
	}
	return true;
}

struct vp_error *vp_import_reader_next(struct vp_import_reader *reader, struct vp_import_msg *ret,
				       struct vp_slice *bytes)
{
	reader->bytes.size = 0;
	if (!import_reader_read_all(reader->worker.channel, ret, sizeof(*ret)) ||
	    ret->size > VP_IMPORT_MAX_BYTES ||
	    !import_reader_read_all(reader->worker.channel,
				    vp_buffer_extend(&reader->bytes, ret->size), ret->size))
		return vp_error_new("reading '%s' failed: the process that reads it ended",
				    reader->path);
	*bytes = (struct vp_slice){reader->bytes.bytes, ret->size};
	if (ret->kind == VP_IMPORT_PROBLEM)
		return vp_error_new("%s", vp_buffer_text(&reader->bytes));
	return NULL;
}

void vp_import_reader_free(struct vp_import_reader *reader)
{
	if (!reader)
		return;
	vp_worker_process_end(&reader->worker);
	vp_buffer_deinit(&reader->bytes);
	free(reader);
}
