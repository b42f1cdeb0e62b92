#include "schedule.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_SECONDS 3.0 /* between SIGTERM and SIGKILL */

enum copy_state { COPY_WAITING, COPY_RUNNING, COPY_ENDING, COPY_KILLED, COPY_OVER };

/* One process of a job. */
struct copy {
	const struct job *job;
	size_t job_number; /* from 1, as in the log */
	int number;        /* from 1 */
	int asked;         /* from 1, of those that came by the control line; else 0 */
	enum copy_state state;
	pid_t pid;
	double deadline; /* of the next step, seconds after T0; negative = none */
};

struct run {
	struct schedule *schedule;
	struct copy *copies;
	size_t count;
	FILE *log;
	const char *log_dir;
	double t0;
	bool finishing;
	int control; /* -1: none */
	int asked;   /* jobs that came by it */
	char line[4096];
	size_t line_size;
};

static double now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double elapsed(const struct run *run)
{
	return now_seconds() - run->t0;
}

int schedule_add_job(struct schedule *schedule, char *line)
{
	struct job *job = &schedule->jobs[schedule->job_count];
	char *save = NULL;
	char *fields[3];
	size_t argc = 0;

	if (schedule->job_count == JOBS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < 3; i++) {
		fields[i] = strtok_r(i ? NULL : line, "\t", &save);
		if (!fields[i])
			return -EINVAL;
	}
	job->start = strtod(fields[0], NULL);
	job->length = strtod(fields[1], NULL);
	job->copies = atoi(fields[2]);
	for (char *arg; (arg = strtok_r(NULL, "\t", &save));) {
		if (argc == JOB_ARGS_MAX)
			return -E2BIG;
		job->argv[argc++] = arg;
	}
	if (!argc || job->copies < 1)
		return -EINVAL;
	schedule->job_count++;
	return 0;
}

static void output_path(const struct run *run, const struct copy *copy, char *path, size_t size)
{
	snprintf(path, size, "%s/.job%zu.%d", run->log_dir, copy->job_number, copy->number);
}

static void log_head(struct run *run, const struct copy *copy, const char *what)
{
	fprintf(run->log, "t=%.6f job=%zu copy=%d pid=%d %s", elapsed(run), copy->job_number,
		copy->number, copy->pid, what);
}

/* In the child: never returns. */
static void exec_job(const struct run *run, const struct copy *copy)
{
	char path[512];
	sigset_t none;
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int out;

	output_path(run, copy, path, sizeof(path));
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(126);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	execvp(copy->job->argv[0], copy->job->argv);
	dprintf(2, "cannot execute '%s': %s\n", copy->job->argv[0], strerror(errno));
	_exit(127);
}

static void start_copy(struct run *run, struct copy *copy)
{
	pid_t pid = fork();

	if (pid == 0)
		exec_job(run, copy);
	copy->pid = pid;
	if (pid < 0) {
		log_head(run, copy, "fork-failed\n");
		copy->state = COPY_OVER;
		copy->deadline = -1;
		return;
	}
	setpgid(pid, pid);
	log_head(run, copy, "start cmd=");
	for (char *const *arg = copy->job->argv; *arg; arg++)
		fprintf(run->log, "%s%s", arg == copy->job->argv ? "" : " ", *arg);
	fputc('\n', run->log);
	copy->state = COPY_RUNNING;
	copy->deadline = copy->job->length > 0 ? copy->job->start + copy->job->length : -1;
}

static void end_copy(struct run *run, struct copy *copy)
{
	log_head(run, copy, "term\n");
	kill(copy->pid, SIGTERM);
	copy->state = COPY_ENDING;
	copy->deadline = elapsed(run) + GRACE_SECONDS;
}

static void kill_copy(struct run *run, struct copy *copy)
{
	log_head(run, copy, "kill\n");
	kill(-copy->pid, SIGKILL);
	copy->state = COPY_KILLED;
	copy->deadline = -1;
}

/* Takes whatever step is due; with run->finishing, running copies are ended at once. */
static void step_copies(struct run *run)
{
	double now = elapsed(run);

	for (size_t i = 0; i < run->count; i++) {
		struct copy *copy = &run->copies[i];
		bool due = copy->deadline >= 0 && copy->deadline <= now;

		if (copy->state == COPY_WAITING && run->finishing)
			copy->state = COPY_OVER;
		else if (copy->state == COPY_WAITING && due)
			start_copy(run, copy);
		else if (copy->state == COPY_RUNNING && (due || run->finishing))
			end_copy(run, copy);
		else if (copy->state == COPY_ENDING && due)
			kill_copy(run, copy);
		if (copy->state == COPY_OVER)
			copy->deadline = -1;
	}
	fflush(run->log);
}

/* Appends what the process printed, each line marked with its job and copy. */
static void log_output(struct run *run, const struct copy *copy)
{
	char path[512];
	char *line = NULL;
	size_t size = 0;
	FILE *out;

	output_path(run, copy, path, sizeof(path));
	out = fopen(path, "re");
	if (!out)
		return;
	for (ssize_t n; (n = getline(&line, &size, out)) > 0;) {
		if (line[n - 1] == '\n')
			line[n - 1] = 0;
		fprintf(run->log, "out job=%zu copy=%d | %s\n", copy->job_number, copy->number,
			line);
	}
	free(line);
	fclose(out);
	unlink(path);
}

static void reap(struct run *run)
{
	struct rusage usage;
	int status;

	for (pid_t pid; (pid = wait4(-1, &status, WNOHANG, &usage)) > 0;) {
		for (size_t i = 0; i < run->count; i++) {
			struct copy *copy = &run->copies[i];
			bool by_signal = WIFSIGNALED(status);

			if (copy->pid != pid || copy->state == COPY_OVER)
				continue;
			log_head(run, copy, "exit");
			fprintf(run->log, " %s=%d user=%ld.%06ld system=%ld.%06ld\n",
				by_signal ? "signal" : "status",
				by_signal ? WTERMSIG(status) : WEXITSTATUS(status),
				(long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec,
				(long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec);
			kill(-pid, SIGKILL); /* what it left behind in its group */
			copy->state = COPY_OVER;
			copy->deadline = -1;
			log_output(run, copy);
			if (copy->asked)
				dprintf(run->control, "exit %d %d\n", copy->asked,
					by_signal ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
		}
	}
	fflush(run->log);
}

static bool all_over(const struct run *run)
{
	for (size_t i = 0; i < run->count; i++)
		if (run->copies[i].state != COPY_OVER)
			return false;
	return true;
}

/* Milliseconds to the next deadline, -1 for none. */
static int wait_time(const struct run *run)
{
	double next = -1;
	double now = elapsed(run);

	for (size_t i = 0; i < run->count; i++) {
		double deadline = run->copies[i].deadline;

		if (deadline >= 0 && (next < 0 || deadline < next))
			next = deadline;
	}
	if (next < 0)
		return -1;
	return next <= now ? 0 : (int)((next - now) * 1000) + 1;
}

static int add_copies(struct run *run, const struct job *job)
{
	size_t count = run->count + (size_t)job->copies;
	struct copy *copies = realloc(run->copies, count * sizeof(*copies));

	if (!copies)
		return -ENOMEM;
	run->copies = copies;
	for (int n = 1; n <= job->copies; n++)
		copies[run->count++] =
		    (struct copy){.job = job,
				  .job_number = (size_t)(job - run->schedule->jobs) + 1,
				  .number = n,
				  .deadline = job->start};
	return 0;
}

/* One more job, now; the text is kept. */
static void add_asked(struct run *run, const char *words)
{
	struct schedule *schedule = run->schedule;
	char *line = NULL;
	int asked = ++run->asked;

	if (asprintf(&line, "%f\t0\t1\t%s", elapsed(run), words) < 0 ||
	    schedule_add_job(schedule, line) ||
	    add_copies(run, &schedule->jobs[schedule->job_count - 1]))
		dprintf(run->control, "exit %d 126\n", asked);
	else
		run->copies[run->count - 1].asked = asked;
}

static void end_asked(struct run *run, int asked)
{
	for (size_t i = 0; i < run->count; i++)
		if (run->copies[i].asked == asked && run->copies[i].state == COPY_RUNNING)
			end_copy(run, &run->copies[i]);
}

static void take_line(struct run *run)
{
	if (!strncmp(run->line, "run\t", 4))
		add_asked(run, run->line + 4);
	else if (!strncmp(run->line, "end\t", 4))
		end_asked(run, atoi(run->line + 4));
	else
		run->finishing = true;
}

/* Byte by byte: what follows "finish" is not for the schedule. */
static void hear(struct run *run)
{
	char byte;

	do {
		if (read(run->control, &byte, 1) != 1 || run->line_size == sizeof(run->line) - 1) {
			run->finishing = true;
			return;
		}
		run->line[run->line_size++] = byte;
	} while (byte != '\n');
	run->line[run->line_size - 1] = 0;
	run->line_size = 0;
	take_line(run);
}

static void loop(struct run *run, int signal_fd)
{
	bool told = run->control < 0;

	while (!all_over(run) || (run->control >= 0 && !run->finishing)) {
		struct pollfd fds[2] = {
		    {.fd = signal_fd, .events = POLLIN},
		    {.fd = run->finishing ? -1 : run->control, .events = POLLIN}};
		struct signalfd_siginfo info;

		step_copies(run);
		if (!told && all_over(run))
			told = write(run->control, "done\n", 5) == 5;
		if (poll(fds, 2, wait_time(run)) < 0 && errno != EINTR)
			return;
		if ((fds[0].revents & POLLIN) && read(signal_fd, &info, sizeof(info)) > 0)
			run->finishing |= info.ssi_signo != SIGCHLD;
		reap(run);
		if (fds[1].revents)
			hear(run);
	}
}

int schedule_run(struct schedule *schedule, int control_fd)
{
	struct run run = {
	    .schedule = schedule, .log_dir = schedule->log_dir, .control = control_fd};
	char path[512];
	sigset_t mask;
	int signal_fd;
	int err = 0;

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	snprintf(path, sizeof(path), "%s/workloads.log", schedule->log_dir);
	signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	run.log = fopen(path, "we");
	if (signal_fd < 0 || !run.log)
		return -errno;
	for (size_t i = 0; !err && i < schedule->job_count; i++)
		err = add_copies(&run, &schedule->jobs[i]);
	if (!err) {
		run.t0 = now_seconds();
		fprintf(run.log, "t0 monotonic=%.9f realtime=%ld\n", run.t0, (long)time(NULL));
		loop(&run, signal_fd);
		fprintf(run.log, "end t=%.6f\n", elapsed(&run));
	}
	if (fclose(run.log) && !err)
		err = -errno;
	close(signal_fd);
	free(run.copies);
	return err;
}
