/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/passes.h"

#include <pthread.h>

#include "analyze/profile/resolve.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/vec.h"
#include "store/trace_reader.h"
#include "timeline/segment.h"

/* Minimum bytes of records per thread; more threads would mostly survey. */
enum { MIN_BYTES = 32 << 20, MAX_JOBS = 64, USEFUL_JOBS = 8 };

static uint32_t jobs_of(const struct vp_pass_input *input)
{
	const struct vp_profile_options *options = input->options;
	uint64_t bytes = 0, jobs = options->jobs < MAX_JOBS ? options->jobs : MAX_JOBS;

	if (options->sink || !input->streams->count || jobs < 2)
		return 1;
	if (!options->max_jobs)
		return (uint32_t)jobs;
	vp_vec_each (input->streams, stream)
		bytes += vp_stream_size(*stream);
	jobs = jobs < USEFUL_JOBS ? jobs : USEFUL_JOBS;
	if (bytes / MIN_BYTES < jobs)
		jobs = bytes / MIN_BYTES;
	return jobs ? (uint32_t)jobs : 1;
}

/* State of a thread. */
struct worker {
	struct vp_pass *pass;
	vp_stream_readers streams; /* its own readers; the last one has the caller's */
	pthread_t thread;
	bool started;
};

static void *work(void *context)
{
	struct worker *worker = context;

	vp_pass_run(worker->pass);
	return NULL;
}

static void passes_read_again(const vp_stream_readers *streams, vp_stream_readers *ret)
{
	vp_vec_each (streams, stream)
		vp_vec_push(ret, vp_stream_again(*stream));
}

/* The last pass reads all streams to the end with the caller's readers, which then have the health
 * of the streams. */
static struct vp_error *workers_init(struct worker *workers, uint32_t count, const uint64_t *cuts,
				     const struct vp_pass_input *input, struct vp_passes *passes,
				     bool *stop)
{
	for (uint32_t i = 0; i < count; i++) {
		struct vp_pass_input part = *input;
		bool last = i + 1 == count;
		workers[i].pass = &passes->at[i];
		if (!last)
			passes_read_again(input->streams, &workers[i].streams);
		part.streams = last ? input->streams : &workers[i].streams;
		part.from = i ? cuts[i - 1] : 0;
		part.until = last ? 0 : cuts[i];
		part.stop = stop;
		part.first = i ? &passes->at[0] : NULL;
		passes->count++;
		VP_TRY(vp_pass_init(workers[i].pass, &part));
	}
	return NULL;
}

/* The first segment is processed in this thread. False: threads could not be created. */
static bool run_all(struct worker *workers, uint32_t count, bool *stop)
{
	bool all = true;

	for (uint32_t i = 1; i < count && all; i++)
		all = workers[i].started =
		    !pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	if (all)
		work(&workers[0]);
	else
		__atomic_store_n(stop, true, __ATOMIC_RELAXED);
	for (uint32_t i = 1; i < count; i++)
		if (workers[i].started)
			pthread_join(workers[i].thread, NULL);
	return all;
}

/* Merges all into the first one, which refers to the others' names. */
static bool merge_all(struct vp_passes *passes)
{
	for (uint32_t i = 1; i < passes->count; i++)
		if (!vp_pass_merge(&passes->at[0], &passes->at[i]))
			return false;
	return true;
}

/* Completes the counts of the caller's readers. */
static void count_records(const struct vp_pass_input *input, const struct vp_passes *passes)
{
	for (uint32_t i = 0; i + 1 < passes->count; i++)
		for (uint32_t j = 0; j < input->streams->count; j++) {
			struct vp_stream_reader *stream = input->streams->at[j];
			vp_stream_count(stream, vp_pass_records(&passes->at[i], j));
		}
}

/* *done: the result equals that of a single pass. */
static struct vp_error *make_by_several(const struct vp_pass_input *input, uint32_t jobs,
					struct vp_passes *ret, bool *done)
{
	VP_AUTO_FREE uint64_t *cuts = vp_alloc(jobs * sizeof(*cuts));
	VP_AUTO_FREE struct worker *workers = vp_alloc(jobs * sizeof(*workers));
	bool stop = false;

	if (!vp_segments_cut(input->streams, jobs, cuts))
		return NULL;
	ret->at = vp_alloc_apart(jobs * sizeof(*ret->at));
	struct vp_error *error = workers_init(workers, jobs, cuts, input, ret, &stop);
	*done = !error && run_all(workers, jobs, &stop) && !stop && merge_all(ret);
	if (*done)
		count_records(input, ret);
	for (uint32_t i = 0; i < jobs; i++) {
		ret->at[i].input.stop = NULL;
		ret->at[i].input.streams = NULL;
		vp_trace_close(&workers[i].streams);
	}
	if (error || !*done)
		vp_passes_deinit(ret);
	return error;
}

static struct vp_error *make_by_one(const struct vp_pass_input *input, struct vp_passes *ret)
{
	vp_vec_each (input->streams, stream)
		vp_stream_rewind(*stream);
	ret->at = vp_alloc_apart(sizeof(*ret->at));
	ret->count = 1;
	struct vp_error *error = vp_pass_init(ret->at, input);
	if (error)
		vp_passes_deinit(ret);
	else
		vp_pass_run(ret->at);
	return error;
}

struct vp_error *vp_passes_make(const struct vp_pass_input *input, struct vp_passes *ret)
{
	uint32_t jobs = jobs_of(input);
	bool done = false;

	*ret = (struct vp_passes){0};
	if (jobs > 1)
		VP_TRY(make_by_several(input, jobs, ret, &done));
	if (done)
		return NULL;
	VP_TRY(make_by_one(input, ret));
	if (!vp_resolver_is_full(ret->at->flow.resolver))
		return NULL;
	struct vp_pass_input in_order = *input;
	in_order.in_order = true;
	vp_passes_deinit(ret);
	return make_by_one(&in_order, ret);
}

void vp_passes_deinit(struct vp_passes *passes)
{
	for (uint32_t i = 0; i < passes->count; i++)
		vp_pass_deinit(&passes->at[i]);
	free(passes->at);
	*passes = (struct vp_passes){0};
}
