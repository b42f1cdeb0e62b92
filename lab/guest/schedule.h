/* Runs jobs at set times after a common start, and keeps a log of what really happened. */
#ifndef VLAB_SCHEDULE_H
#define VLAB_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JOBS_MAX 256
#define JOB_ARGS_MAX 64

/* One "workload" statement; copies of it are separate processes. */
struct job {
	double start;  /* seconds after T0 */
	double length; /* seconds; 0 = until the end of the run */
	int copies;
	char *argv[JOB_ARGS_MAX + 1];
};

struct schedule {
	struct job jobs[JOBS_MAX];
	size_t job_count;
	const char *log_dir; /* workloads.log goes here, and is complete when the run ends */
};

/* Reads one "job" line: START LENGTH COPIES PROGRAM ARG..., tab separated. Keeps pointers into it.
 */
int schedule_add_job(struct schedule *schedule, char *line);

/*
 * Runs all jobs; T0 is now. With control_fd >= 0 the run lasts until the line "finish" comes there
 * (or it closes); without, until all jobs are over. SIGTERM ends it too. Lines that come there:
 *
 *   run <tab> PROGRAM [<tab> ARG]...   starts one more job
 *   end <tab> N                        SIGTERM to the Nth of these
 *   finish
 *
 * and lines that go: "done" when all jobs of the schedule are over, "exit N STATUS" when the Nth
 * job that was asked for is (128 + the signal that ended it).
 * Returns 0, or a negative errno when the log could not be written.
 */
int schedule_run(struct schedule *schedule, int control_fd);

#endif
