/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session and instruments of the test's own: what each writes, loses and fails at. */
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/programs/conditions.h"
#include "maps/proc.h"
#include "session/instrument.h"
#include "session/session_flight.h"
#include "session/session_private.h"
#include "store/trace_reader.h"

#define NAME "test_session.rec"

enum { SAMPLES = 3, INTERVALS = 2 };
/* A pCPU that came online later, and another such. */
enum { LATE = 40, LATER = 41 };

/* An instrument that writes `records` records of one class at its last `drain`. */
struct fake {
	struct vp_instrument base;
	enum vp_stream_class kind;
	unsigned records;
	uint64_t lost, lost_late;
	const char *fails_to_open, *fails_to_stop, *fails_to_drain, *fails_to_finish;
	bool stopped, finished;
	int fd;
	unsigned *freed;
};

static struct fake *fake_of(const struct vp_instrument *instrument)
{
	return (struct fake *)instrument;
}

static struct vp_error *failure(const char *why)
{
	return why ? vp_error_new("%s", why) : NULL;
}

static struct vp_error *fake_open(struct vp_instrument *instrument, struct vp_services *services)
{
	return failure(fake_of(instrument)->fails_to_open);
}

static struct vp_error *fake_stop(struct vp_instrument *instrument)
{
	fake_of(instrument)->stopped = true;
	return failure(fake_of(instrument)->fails_to_stop);
}

static int fake_fd(const struct vp_instrument *instrument)
{
	return fake_of(instrument)->fd;
}

static struct vp_error *fake_drain(struct vp_instrument *instrument)
{
	struct fake *fake = fake_of(instrument);
	uint32_t pcpu = (uint32_t)instrument->session->pcpus.at[0];
	union vp_any_record record = {.host_sample = {.id = VP_ID_host_sample, .mode = 1}};

	if (fake->kind == VP_STREAM_INTERVALS)
		record.interval = (struct vp_interval){.id = VP_ID_interval};
	for (; fake->stopped && fake->records; fake->records--) {
		record.header.time = vp_clock_monotonic();
		vp_trace_append(instrument->session->trace, (struct vp_stream_id){fake->kind, pcpu},
				&record);
	}
	return failure(fake->fails_to_drain);
}

static struct vp_error *fake_finish(struct vp_instrument *instrument, uint64_t end)
{
	fake_of(instrument)->finished = true;
	return failure(fake_of(instrument)->fails_to_finish);
}

static uint64_t fake_lost(const struct vp_instrument *instrument, struct vp_stream_id id)
{
	const struct fake *fake = fake_of(instrument);

	assert_int_equal(id.kind, fake->kind);
	if (id.pcpu == LATE || id.pcpu == LATER)
		return fake->lost_late + id.pcpu;
	return (int)id.pcpu == instrument->session->pcpus.at[0] ? fake->lost : 0;
}

static void fake_put_total(const struct vp_instrument *instrument, struct vp_buffer *out)
{
	vp_buffer_printf(out, "%u things, ", fake_of(instrument)->records);
}

static void fake_free(struct vp_instrument *instrument)
{
	++*fake_of(instrument)->freed;
	free(instrument);
}

#define FAKE_OPS(called, own)                                                                      \
	{                                                                                          \
		.name = (called), .classes = VP_STREAMS(own), .open = fake_open, .fd = fake_fd,    \
		.drain = fake_drain, .stop = fake_stop, .finish = fake_finish, .lost = fake_lost,  \
		.put_total = fake_put_total, .free = fake_free                                     \
	}
static const struct vp_instrument_ops profile_ops = FAKE_OPS("profile", VP_STREAM_PCPU);
static const struct vp_instrument_ops intervals_ops = FAKE_OPS("intervals", VP_STREAM_INTERVALS);

/* A session with two of them. */
struct scene {
	struct vp_session *session;
	struct fake *profile, *intervals;
	unsigned freed;
};

static struct fake *add(struct scene *scene, const struct vp_instrument_ops *ops,
			enum vp_stream_class kind, unsigned records)
{
	struct fake *fake = vp_alloc(sizeof(*fake));

	*fake = (struct fake){.kind = kind, .records = records, .fd = -1, .freed = &scene->freed};
	fake->base.ops = ops;
	vp_session_add(scene->session, &fake->base);
	return fake;
}

static void begin(struct scene *scene)
{
	const struct vp_session_options options = {.directory = NAME};

	(void)!system("rm -rf " NAME " " NAME ".old");
	*scene = (struct scene){.session = vp_session_new(&options)};
	scene->profile = add(scene, &profile_ops, VP_STREAM_PCPU, SAMPLES);
	scene->intervals = add(scene, &intervals_ops, VP_STREAM_INTERVALS, INTERVALS);
}

/* Without what is done once a second, however long the test takes. */
static void start(struct scene *scene)
{
	expect_no_error(vp_session_start(scene->session));
	expect_no_error(vp_session_publish(scene->session));
	scene->session->next_second = UINT64_MAX;
}

/* Names are written while it is recorded, too: whoever kills the recorder leaves those. */
static void test_names_meanwhile(void **state)
{
	static const struct vp_instrument_ops names_ops = {.name = "profile",
							   .classes = VP_STREAMS(VP_STREAM_PCPU),
							   .open = fake_open,
							   .fd = fake_fd,
							   .drain = fake_drain,
							   .stop = fake_stop,
							   .finish = fake_finish,
							   .lost = fake_lost,
							   .put_total = fake_put_total,
							   .free = fake_free,
							   .needs_names = true};
	const struct vp_session_options options = {.directory = NAME, .names_ns = 50000000};
	struct scene scene = {.session = vp_session_new(&options)};
	struct vp_session *session = scene.session;

	(void)!system("rm -rf " NAME " " NAME ".old");
	add(&scene, &names_ops, VP_STREAM_PCPU, 0);
	expect_no_error(vp_session_open(session));
	expect_no_error(vp_session_start(session));
	expect_no_error(vp_session_publish(session));
	VP_AUTO_FREE char *path = vp_recording_maps_path(NAME, &session->vms, NULL);
	session->next_second = 0;
	expect_no_error(vp_session_step(session, 0)); /* begins to wait */
	assert_int_equal(session->names_wait, 50000000);
	assert_int_equal(access(path, F_OK), -1);
	session->names_at = session->next_second = 0;
	expect_no_error(vp_session_step(session, 0));
	assert_int_equal(access(path, F_OK), 0);
	uint64_t now = vp_clock_monotonic();
	assert_in_range(session->names_at, now, now + 600000000000);
	/* Another time, not each time. */
	assert_int_equal(unlink(path), 0);
	session->next_second = 0;
	expect_no_error(vp_session_step(session, 0));
	assert_int_equal(access(path, F_OK), -1);
	vp_session_free(session);
	assert_int_equal(scene.freed, 1);
}

static void end(struct scene *scene)
{
	vp_session_free(scene->session);
	assert_int_equal(scene->freed, 2);
}

static uint64_t count(unsigned classes, uint32_t id)
{
	vp_stream_readers streams = {0};
	const struct vp_record_header *record;
	uint64_t found = 0;

	expect_no_error(vp_trace_open(NAME "/host", classes, &streams));
	vp_vec_each (&streams, stream)
		while ((record = vp_stream_next(*stream)))
			found += record->id == id;
	vp_trace_close(&streams);
	return found;
}

static void expect_message(struct vp_error *error, const char *message)
{
	assert_non_null(error);
	assert_string_equal(vp_error_message(error), message);
	vp_error_free(error);
}

static void test_streams_and_losses(void **state)
{
	struct scene scene;
	struct vp_recording info;

	begin(&scene);
	scene.profile->lost = 5;
	scene.intervals->lost = 7;
	expect_no_error(vp_session_open(scene.session));
	start(&scene);
	expect_no_error(vp_session_step(scene.session, 0));
	expect_no_error(vp_session_finish(scene.session));
	VP_AUTO_FREE char *totals = vp_session_totals(scene.session);
	assert_non_null(strstr(totals, "12 lost"));
	end(&scene);
	expect_no_error(vp_recording_read(NAME, &info));
	assert_string_equal(info.instruments, "profile intervals");
	assert_true(vp_recording_has_instrument(&info, "intervals"));
	assert_false(vp_recording_has_instrument(&info, "interval"));
	/* A sample more or less is a clock's. */
	assert_int_equal(info.records[VP_STREAM_PCPU], SAMPLES + 2);
	assert_int_equal(info.records[VP_STREAM_INTERVALS], INTERVALS);
	assert_int_equal(info.lost[VP_STREAM_PCPU], 5);
	assert_int_equal(info.lost[VP_STREAM_INTERVALS], 7);
	vp_recording_deinit(&info);
	assert_int_equal(count(VP_STREAMS(VP_STREAM_PCPU), VP_ID_host_sample), SAMPLES);
	assert_int_equal(count(VP_STREAMS(VP_STREAM_PCPU), VP_ID_interval), 0);
	assert_int_equal(count(VP_STREAMS(VP_STREAM_INTERVALS), VP_ID_interval), INTERVALS);
}

/* Those of pCPUs that came later count, too, where they have a stream of that class. */
static void test_losses_of_late_pcpus(void **state)
{
	struct scene scene;
	struct vp_recording info;

	begin(&scene);
	scene.profile->lost = 5;
	scene.profile->lost_late = 1000;
	scene.intervals->lost = 7;
	scene.intervals->lost_late = 2000;
	expect_no_error(vp_session_open(scene.session));
	start(&scene);
	vp_vec_push(&scene.session->late_pcpus,
		    ((struct vp_late_pcpu){LATE, VP_STREAMS(VP_STREAM_PCPU)}));
	vp_vec_push(&scene.session->late_pcpus,
		    ((struct vp_late_pcpu){LATER, VP_STREAMS(VP_STREAM_PCPU) |
						      VP_STREAMS(VP_STREAM_INTERVALS)}));
	expect_no_error(vp_session_step(scene.session, 0));
	expect_no_error(vp_session_finish(scene.session));
	end(&scene);
	expect_no_error(vp_recording_read(NAME, &info));
	assert_int_equal(info.lost[VP_STREAM_PCPU], 5 + 1000 + LATE + 1000 + LATER);
	assert_int_equal(info.lost[VP_STREAM_INTERVALS], 7 + 2000 + LATER);
	vp_recording_deinit(&info);
}

/* The first error of the end is told, and does not keep anything from being written. */
static void test_first_error(void **state)
{
	struct scene scene;
	struct vp_recording info;

	begin(&scene);
	scene.profile->fails_to_drain = "the second";
	scene.intervals->fails_to_stop = "the first";
	scene.intervals->fails_to_finish = "the third";
	expect_no_error(vp_session_open(scene.session));
	start(&scene);
	expect_message(vp_session_finish(scene.session), "the first");
	assert_true(scene.profile->finished && scene.intervals->finished);
	end(&scene);
	expect_no_error(vp_recording_read(NAME, &info));
	assert_true(info.end > info.start);
	assert_int_equal(info.records[VP_STREAM_INTERVALS], INTERVALS);
	vp_recording_deinit(&info);
	assert_int_equal(count(VP_STREAMS_ALL, VP_ID_host_sample), SAMPLES);
	assert_int_equal(access(NAME "/vms", F_OK), 0);
}

/* What is a help only may be absent, unless there is nothing else; what is not stops the start. */
/* Instruments that provide something are opened before those that use it; else the order stays. */
static void test_order(void **state)
{
	enum { FIRST = VP_SERVICE_GUEST_SAMPLER, SECOND = VP_SERVICE_EXIT_PROGRAMS };
	struct vp_instrument_ops ops[] = {
	    FAKE_OPS("alone", VP_STREAM_PCPU), FAKE_OPS("both", VP_STREAM_INTERVALS),
	    FAKE_OPS("second", VP_STREAM_TRACE), FAKE_OPS("other", VP_STREAM_TRACEPOINTS),
	    FAKE_OPS("first", VP_STREAM_HYPERVISOR)};
	const struct vp_session_options options = {.directory = NAME};
	struct scene scene = {.session = vp_session_new(&options)};

	ops[1].uses = FIRST | SECOND;
	ops[2].uses = FIRST;
	ops[2].provides = SECOND;
	ops[4].provides = FIRST;
	for (size_t i = 0; i < VP_ARRAY_SIZE(ops); i++)
		add(&scene, &ops[i], VP_STREAM_PCPU, 0);
	expect_no_error(vp_session_open(scene.session));
	assert_string_equal(scene.session->info.instruments, "alone other first second both");
	vp_session_free(scene.session);
	assert_int_equal(scene.freed, VP_ARRAY_SIZE(ops));
}

static const char *other_clock; /* of the kernel, or NULL */
char *__wrap_vp_host_other_clock(const char *sysfs);

char *__wrap_vp_host_other_clock(const char *sysfs)
{
	assert_string_equal(sysfs, "/sys");
	return other_clock ? vp_strdup(other_clock) : NULL;
}

/* A hypervisor whose records have the pCPUs' counters: a warning, once, if these may differ. */
static void test_clock(void **state)
{
	struct vp_hypervisor hypervisor = *vp_hypervisor_kvm();
	struct scene scene;

	for (int i = 0; i < 4; i++) {
		hypervisor.has_counter_times = i & 1;
		other_clock = i & 2 ? "hpet" : NULL;
		begin(&scene);
		scene.session->hypervisor = &hypervisor;
		expect_no_error(vp_session_open(scene.session));
		VP_AUTO_FREE char *first = vp_session_take_notice(scene.session);
		VP_AUTO_FREE char *second = vp_session_take_notice(scene.session);
		assert_int_equal(first != NULL, i == 3);
		if (first)
			assert_non_null(strstr(first, "the kernel's clock source is hpet"));
		assert_null(second);
		end(&scene);
	}
	other_clock = NULL;
}

static void test_absence(void **state)
{
	struct scene scene;

	begin(&scene);
	scene.intervals->fails_to_open = "no such counter";
	scene.intervals->base.absence = "no intervals";
	expect_no_error(vp_session_open(scene.session));
	assert_int_equal(scene.freed, 1);
	VP_AUTO_FREE char *notice = vp_session_take_notice(scene.session);
	assert_string_equal(notice, "no intervals: no such counter");
	assert_string_equal(scene.session->info.instruments, "profile");
	end(&scene);

	begin(&scene);
	scene.profile->fails_to_open = "no programs";
	expect_message(vp_session_open(scene.session), "no programs");
	assert_int_not_equal(access(NAME, F_OK), 0); /* an older one would have stayed */
	end(&scene);
}

/* On a full disk: said once, counted, and the rest is written. */
static void test_full_disk(void **state)
{
	const struct rlimit none = {0, RLIM_INFINITY};
	struct rlimit before;
	struct scene scene;
	unsigned notices = 0;

	begin(&scene);
	expect_no_error(vp_session_open(scene.session));
	start(&scene);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	setrlimit(RLIMIT_FSIZE, &none);
	for (int i = 0; i < 3; i++) {
		scene.profile->records = 1;
		scene.profile->stopped = true;
		expect_no_error(vp_session_step(scene.session, 0));
	}
	setrlimit(RLIMIT_FSIZE, &before);
	for (char *notice; (notice = vp_session_take_notice(scene.session)); free(notice))
		notices += strstr(notice, "records are being lost") != NULL;
	assert_int_equal(notices, 1);
	scene.profile->records = SAMPLES;
	expect_no_error(vp_session_finish(scene.session));
	assert_int_equal(scene.session->info.lost[VP_STREAM_PCPU], 3);
	assert_int_equal(scene.session->info.lost[VP_STREAM_INTERVALS], 0);
	end(&scene);
	assert_int_equal(count(VP_STREAMS_ALL, VP_ID_host_sample), SAMPLES);
	assert_int_equal(count(VP_STREAMS_ALL, VP_ID_interval), INTERVALS);
}

static void expect_older_stays(void)
{
	struct vp_recording info;

	expect_no_error(vp_recording_read(NAME, &info));
	assert_string_equal(info.note, "older");
	vp_recording_deinit(&info);
	assert_int_not_equal(access(NAME ".old", F_OK), 0);
}

/* Whatever keeps a recording from being begun, an older one stays where it is. */
static void test_failed_start_leaves_older(void **state)
{
	const struct rlimit none = {0, RLIM_INFINITY};
	struct vp_recording older = {.note = "older", .period_ns = 1};
	struct rlimit before;
	struct scene scene;

	begin(&scene);
	assert_int_equal(mkdir(NAME, 0700), 0);
	expect_no_error(vp_recording_write(NAME, &older));
	scene.profile->fails_to_open = "no programs";
	expect_message(vp_session_open(scene.session), "no programs");
	expect_older_stays();
	end(&scene);

	const struct vp_session_options options = {.directory = NAME};
	scene = (struct scene){.session = vp_session_new(&options)};
	scene.profile = add(&scene, &profile_ops, VP_STREAM_PCPU, SAMPLES);
	scene.intervals = add(&scene, &intervals_ops, VP_STREAM_INTERVALS, INTERVALS);
	expect_no_error(vp_session_open(scene.session));
	expect_no_error(vp_session_start(scene.session));
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	setrlimit(RLIMIT_FSIZE, &none);
	expect_error(vp_session_publish(scene.session), "cannot write to");
	setrlimit(RLIMIT_FSIZE, &before);
	expect_older_stays();
	end(&scene);
	expect_older_stays();
}

static uint64_t count_in(const char *directory, uint32_t id)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", directory);
	vp_stream_readers streams = {0};
	const struct vp_record_header *record;
	uint64_t found = 0;

	expect_no_error(vp_trace_open(host, VP_STREAMS_ALL, &streams));
	vp_vec_each (&streams, stream)
		while ((record = vp_stream_next(*stream)))
			found += record->id == id;
	vp_trace_close(&streams);
	return found;
}

static void expect_about(const char *directory, uint32_t cause, uint64_t begun, uint64_t lost)
{
	struct vp_recording info;

	expect_no_error(vp_recording_read(directory, &info));
	assert_string_equal(info.mode, "flight");
	assert_int_equal(info.snapshot_cause.kind, cause);
	assert_int_equal(info.begun, begun);
	assert_int_equal(info.start, begun);
	assert_true(info.end > info.start);
	assert_int_equal(info.lost[VP_STREAM_PCPU], lost);
	vp_recording_deinit(&info);
}

/* Nothing is on disk until a snapshot; each has all up to then; at the end the recording itself. */
static void test_flight(void **state)
{
	const struct vp_flight_options flight = {.bytes = 1 << 20};
	const struct vp_snapshot_cause manual = {.kind = VP_CAUSE_MANUAL};
	const struct vp_snapshot_cause by_signal = {.kind = VP_CAUSE_SIGNAL};
	struct scene scene;
	VP_AUTO_FREE char *first = NULL;
	VP_AUTO_FREE char *second = NULL;

	(void)!system("rm -rf " NAME ".2*");
	begin(&scene);
	scene.session->options.flight = &flight;
	expect_no_error(vp_session_open(scene.session));
	start(&scene);
	uint64_t begun = scene.session->info.start;
	scene.profile->stopped = true;
	expect_no_error(vp_session_step(scene.session, 0));
	assert_int_equal(count(VP_STREAMS_ALL, VP_ID_host_sample), 0);
	scene.profile->lost = 4;
	expect_no_error(vp_session_snapshot(scene.session, &manual, &first));
	assert_int_equal(strlen(first), strlen(NAME) + 17);
	assert_int_equal(strncmp(first, NAME ".2", strlen(NAME ".2")), 0);
	assert_int_equal(count_in(first, VP_ID_host_sample), SAMPLES);
	scene.profile->records = 1;
	expect_no_error(vp_session_step(scene.session, 0));
	expect_no_error(vp_session_snapshot(scene.session, &by_signal, &second));
	assert_string_not_equal(first, second);
	assert_int_equal(count_in(second, VP_ID_host_sample), SAMPLES + 1);
	assert_int_equal(count_in(second, VP_ID_interval), 0);
	expect_about(first, VP_CAUSE_MANUAL, begun, 4);
	expect_about(second, VP_CAUSE_SIGNAL, begun, 4);
	assert_int_equal(access(NAME "/control", F_OK), 0);
	expect_no_error(vp_session_finish(scene.session));
	end(&scene);
	assert_int_equal(access(NAME "/control", F_OK), -1);
	expect_about(NAME, VP_CAUSE_END, begun, 4);
	assert_int_equal(count(VP_STREAMS_ALL, VP_ID_host_sample), SAMPLES + 1);
	assert_int_equal(count(VP_STREAMS_ALL, VP_ID_interval), INTERVALS);
	(void)!system("rm -rf " NAME ".2*");
}

/* One instrument that has much is enough to end the wait of all. */
static void test_wait(void **state)
{
	struct scene scene;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "", 1), 1);
	begin(&scene);
	scene.intervals->fd = ends[0];
	expect_no_error(vp_session_open(scene.session));
	start(&scene);
	uint64_t before = vp_clock_monotonic();
	expect_no_error(vp_session_step(scene.session, 60000));
	assert_true(vp_clock_monotonic() - before < 30000000000ULL);
	end(&scene);
	close(ends[0]);
	close(ends[1]);
}

/* What sees the conditions, in the kernel's place. */
static struct {
	struct vp_fired fired;
	bool has_fired, open;
	unsigned armed;
	uint64_t unheard;
	int ends[2];
} watch;

struct vp_error *__wrap_vp_condition_watch_open(const struct vp_conditions *conditions,
						bool every_vm, struct vp_condition_watch **ret);
void __wrap_vp_condition_watch_add(struct vp_condition_watch *its, uint32_t pid);
void __wrap_vp_condition_watch_arm(struct vp_condition_watch *its);
int __wrap_vp_condition_watch_fd(const struct vp_condition_watch *its);
bool __wrap_vp_condition_watch_take(struct vp_condition_watch *its, struct vp_fired *ret);
uint64_t __wrap_vp_condition_watch_dropped(const struct vp_condition_watch *its);
void __wrap_vp_condition_watch_free(struct vp_condition_watch *its);

struct vp_error *__wrap_vp_condition_watch_open(const struct vp_conditions *conditions,
						bool every_vm, struct vp_condition_watch **ret)
{
	assert_true(every_vm);
	assert_int_equal(pipe(watch.ends), 0);
	watch.open = true;
	*ret = (void *)&watch;
	return NULL;
}

void __wrap_vp_condition_watch_add(struct vp_condition_watch *its, uint32_t pid)
{
}

void __wrap_vp_condition_watch_arm(struct vp_condition_watch *its)
{
	watch.armed++;
}

int __wrap_vp_condition_watch_fd(const struct vp_condition_watch *its)
{
	return watch.ends[0];
}

bool __wrap_vp_condition_watch_take(struct vp_condition_watch *its, struct vp_fired *ret)
{
	bool has = watch.has_fired;

	*ret = has ? watch.fired : *ret;
	watch.has_fired = false;
	return has;
}

uint64_t __wrap_vp_condition_watch_dropped(const struct vp_condition_watch *its)
{
	return watch.unheard;
}

void __wrap_vp_condition_watch_free(struct vp_condition_watch *its)
{
	if (!its)
		return;
	watch.open = false;
	close(watch.ends[0]);
	close(watch.ends[1]);
}

#define HOUR (3600 * 1000000000ULL)

/* The machine has been up for a day, for what was hours ago. */
uint64_t __real_vp_clock_monotonic(void);
uint64_t __wrap_vp_clock_monotonic(void);

uint64_t __wrap_vp_clock_monotonic(void)
{
	return __real_vp_clock_monotonic() + 24 * HOUR;
}

/* Of one of which nothing is known any more; `ago` ns. */
static void fire(uint64_t ago)
{
	watch.fired = (struct vp_fired){.time = vp_clock_monotonic() - ago,
					.ns = 25000000,
					.kind = VP_FIRED_STEAL,
					.pid = 4194000,
					.tid = 4194001,
					.vcpu = 1,
					.cpu = 3,
					.thief_tid = 5,
					.thief_ns = 20000000,
					.thief_comm = "thief"};
	watch.has_fired = true;
}

static void begin_conditions(struct scene *scene, const struct vp_flight_options *flight)
{
	(void)!system("rm -rf " NAME ".2*");
	memset(&watch, 0, sizeof(watch));
	begin(scene);
	scene->session->options.flight = flight;
	expect_no_error(vp_session_open(scene->session));
	assert_true(watch.open);
	start(scene);
	assert_int_equal(watch.armed, 1);
}

/* The next sentence begins with this. */
static void expect_notice(struct scene *scene, const char *begin)
{
	VP_AUTO_FREE char *notice = vp_session_take_notice(scene->session);

	assert_non_null(notice);
	if (strncmp(notice, begin, strlen(begin)) != 0)
		fail_msg("'%s' does not begin with '%s'", notice, begin);
}

static void expect_no_notice(struct scene *scene)
{
	VP_AUTO_FREE char *notice = vp_session_take_notice(scene->session);

	if (notice)
		fail_msg("'%s'", notice);
}

static void step(struct scene *scene)
{
	expect_no_error(vp_session_step(scene->session, 0));
}

static const struct vp_conditions two_conditions = {.wanted = {true, true},
						    .ns = {20000000, 10000000}};

/* A snapshot so long after the condition, and the next one not sooner than it says. */
static void test_conditions(void **state)
{
	const struct vp_flight_options flight = {.bytes = 1 << 20,
						 .conditions = two_conditions,
						 .after_ns = HOUR,
						 .every_ns = 3 * HOUR,
						 .limits = {.count = 3, .bytes = 1 << 30}};
	struct scene scene;

	begin_conditions(&scene, &flight);
	fire(0);
	for (int i = 0; i < 3; i++)
		step(&scene);
	expect_no_notice(&scene); /* it is in an hour */
	fire(2 * HOUR);
	step(&scene);
	expect_notice(&scene, "steal>20ms: vCPU 1 of VM '?' (thread 4194001) was runnable for "
			      "25.0 ms without a pCPU; of this, 'thief' (thread 5) had pCPU 3 "
			      "for 20.0 ms; snapshot in '" NAME ".2");
	for (int i = 0; i < 3; i++)
		step(&scene);
	assert_int_equal(watch.armed, 1);
	expect_no_notice(&scene);
	/* One whose time to wait is over: it is looked for again, once. */
	fire(4 * HOUR);
	watch.fired.thief_tid = 0;
	watch.fired.kind = VP_FIRED_WAKEUP;
	watch.fired.vcpu = VP_VCPU_UNKNOWN;
	step(&scene);
	expect_notice(&scene,
		      "wakeup>10ms: vCPU ? of VM '?' (thread 4194001) got a pCPU 25.0 ms after "
		      "it was woken; the thread on pCPU 3 is unknown; snapshot in '");
	for (int i = 0; i < 3; i++)
		step(&scene);
	assert_int_equal(watch.armed, 2);
	/* The last one that there may be. */
	fire(4 * HOUR);
	step(&scene);
	expect_notice(&scene, "steal>20ms: ");
	expect_notice(&scene, "no further triggered snapshots: ");
	assert_false(watch.open);
	step(&scene);
	assert_int_equal(watch.armed, 2);
	expect_no_error(vp_session_finish(scene.session));
	end(&scene);
	(void)!system("rm -rf " NAME ".2*");
}

/* Conditions that nobody could be told of are counted; no room on the disk is said once. */
static void test_unheard(void **state)
{
	const struct vp_flight_options flight = {
	    .bytes = 1 << 20,
	    .conditions = two_conditions,
	    .limits = {.count = 3, .bytes = 1 << 30, .free_bytes = 1ULL << 60}};
	struct scene scene;

	begin_conditions(&scene, &flight);
	for (int i = 0; i < 3; i++) {
		fire(1);
		step(&scene);
		step(&scene);
		assert_int_equal(watch.armed, 2 + i);
		if (!i)
			expect_notice(&scene, "steal>20ms: ");
		expect_no_notice(&scene);
	}
	watch.unheard = 17;
	expect_no_error(vp_session_finish(scene.session));
	expect_notice(&scene, "17 snapshot triggers suppressed");
	end(&scene);
	assert_false(watch.open);
}

/* How long to wait: until the snapshot is due, then until conditions are looked for again. */
static void test_wait_for_conditions(void **state)
{
	const struct vp_flight_options flight = {.bytes = 1 << 20,
						 .conditions = two_conditions,
						 .after_ns = HOUR,
						 .every_ns = 3 * HOUR,
						 .limits = {.count = 3, .bytes = 1 << 30}};
	int fds[VP_FLIGHT_FDS];
	struct scene scene;
	size_t n = 0;

	begin_conditions(&scene, &flight);
	assert_int_equal(vp_session_flight_wait(scene.session, 60000, fds, &n), 60000);
	assert_int_equal(n, 2);
	assert_int_equal(fds[1], watch.ends[0]);
	fire(HOUR - 30 * 1000000000ULL);
	step(&scene);
	n = 0;
	assert_in_range(vp_session_flight_wait(scene.session, 60000, fds, &n), 1, 30001);
	n = 0;
	assert_int_equal(vp_session_flight_wait(scene.session, 7, fds, &n), 7);
	fire(3 * HOUR - 40 * 1000000000ULL);
	step(&scene);
	n = 0;
	assert_in_range(vp_session_flight_wait(scene.session, 60000, fds, &n), 1, 40001);
	end(&scene);
	(void)!system("rm -rf " NAME ".2*");
}

/* This process stands for a VMM, and has no VM open. */
static bool is_another_process(const struct vp_vm *vm)
{
	return vp_proc_start_time(vm->pid) != vm->started;
}

/* A vCPU that has another thread, in a process that is this one, or another one of its number. */
static void test_number_used_again(void **state)
{
	const struct vp_session_options options = {.directory = NAME};
	const uint32_t pid = (uint32_t)getpid();
	const uint64_t started = vp_proc_start_time(pid);
	struct vp_hypervisor hypervisor = *vp_hypervisor_kvm();

	hypervisor.is_gone = is_another_process;

	assert_true(started > 1);
	for (int again = 0; again < 2; again++) {
		struct vp_session *session = vp_session_new(&options);
		session->hypervisor = &hypervisor;
		struct vp_vm vm = {.pid = pid, .started = again ? started - 1 : started};
		vm.name = vp_strdup("x");
		vp_vm_vcpu(&vm, 0)->tid = 5;
		vp_vec_push(&session->vms, vm);
		assert_ptr_equal(vp_session_vm(session, pid), &session->vms.at[0]);
		vp_session_vcpu(session, &session->vms.at[0], 0, 6);
		assert_int_equal(session->vms.at[0].end != 0, again);
		assert_int_equal(session->vms.at[0].vcpus.at[0].tid, again ? 5 : 6);
		/* This process has no VM open: as far as is known it is the old one's record. */
		assert_int_equal(vp_session_vm_id(session, pid, 6), pid);
		assert_int_equal(session->vms.count, 1);
		vp_session_free(session);
	}
}

/* Processes in which there is one more VM than is known, whose vCPUs' threads are known, too. */
static unsigned searches;
static uint32_t process_with_new, new_thread;

static struct vp_vm *find_new(vp_vms *vms, uint32_t pid, bool at_start)
{
	searches++;
	if (pid != process_with_new)
		return NULL;
	process_with_new = 0;
	struct vp_vm vm = {.pid = pid, .name = vp_strdup("new"), .memory = vp_strdup("")};
	vp_vec_each (vms, other)
		vm.nth += other->pid == pid;
	vp_vm_vcpu(&vm, 0)->tid = new_thread;
	vp_vec_push(vms, vm);
	return &vms->at[vms->count - 1];
}

/* Where all VMs of a process are known to have ended, a thread that is a vCPU all the same is
 * another one's: it is looked for, in that process, once a second. */
static void test_new_vm_of_known_process(void **state)
{
	struct vp_session *session = vp_session_new(&(struct vp_session_options){0});
	struct vp_hypervisor hypervisor = *vp_hypervisor_kvm();

	hypervisor.scan_one = find_new;
	session->hypervisor = &hypervisor;
	for (uint32_t pid = 10; pid <= 20; pid += 10)
		for (uint32_t nth = 0; nth < 2; nth++) {
			struct vp_vm vm = {.pid = pid, .nth = nth, .name = vp_strdup("x")};
			vm.end = pid == 20 || !nth ? 5 : 0;
			vp_vm_vcpu(&vm, 0)->tid = pid + 1 + nth;
			vp_vec_push(&session->vms, vm);
		}
	vp_session_take_vms(session, 0);
	/* The second VM of the first process runs. */
	searches = 0;
	assert_int_equal(vp_session_vm_id(session, 10, 12), 10 | 1 << VP_PID_BITS);
	assert_int_equal(searches, 0);
	/* Those of the second do not, and there is none other, or there is. */
	assert_int_equal(vp_session_vm_id(session, 20, 22), 20 | 1 << VP_PID_BITS);
	assert_int_equal(vp_session_vm_id(session, 20, 21), 20);
	assert_int_equal(searches, 1);
	vp_map_deinit(&session->no_vms);
	process_with_new = 20;
	new_thread = 21; /* which had been a vCPU of the first one */
	assert_int_equal(vp_session_vm_id(session, 20, 21), 20 | 2 << VP_PID_BITS);
	assert_int_equal(searches, 2);
	assert_int_equal(session->vms.count, 5);
	VP_AUTO_FREE char *notice = vp_session_take_notice(session);
	assert_string_equal(notice, "VM 'new' (process 20) started during the recording");
	assert_true(session->vms_changed);
	assert_int_equal(vp_session_vm_id(session, 20, 21), 20 | 2 << VP_PID_BITS);
	assert_int_equal(searches, 2);
	/* A recorder next to another one does not report it. */
	session->options.quiet_vms = true;
	process_with_new = 30;
	new_thread = 31;
	assert_int_equal(vp_session_vm_id(session, 30, 31), 30);
	assert_int_equal(session->vms.count, 6);
	assert_null(vp_session_take_notice(session));
	vp_session_free(session);
}

static void add_vm(struct vp_session *session, uint32_t pid, uint64_t end)
{
	struct vp_vm *vm = vp_vec_push_slot(&session->vms);

	*vm = (struct vp_vm){.pid = pid, .end = end, .name = vp_format("vm-%u", pid)};
}

static void note_forgotten(struct vp_instrument *instrument, uint32_t id)
{
	fake_of(instrument)->records += id;
}

/* A thread's name has the VMM's number; a record has KVM's, and there is no vCPU of the first. */
static void test_vcpu_numbers_are_kvms(void **state)
{
	struct vp_session *session = vp_session_new(&(struct vp_session_options){0});
	static const uint32_t kvms[] = {0, 1, 2, 4, 5, 6};

	add_vm(session, 10, 0);
	struct vp_vm *vm = &session->vms.at[0];
	for (uint32_t i = 0; i < VP_ARRAY_SIZE(kvms); i++)
		*vp_vm_vcpu(vm, i) =
		    (struct vp_vcpu){.number = i, .tid = 100 + i, .is_guessed = true};
	for (uint32_t i = VP_ARRAY_SIZE(kvms); i--;)
		vp_session_vcpu(session, vm, kvms[i], 100 + i);
	assert_int_equal(vm->vcpus.count, VP_ARRAY_SIZE(kvms));
	for (uint32_t i = 0; i < VP_ARRAY_SIZE(kvms); i++)
		assert_int_equal(vp_vm_vcpu(vm, kvms[i])->tid, 100 + i);
	/* One thread may run several, by turns. */
	vp_session_vcpu(session, vm, 7, 100);
	assert_int_equal(vm->vcpus.count, VP_ARRAY_SIZE(kvms) + 1);
	assert_null(vp_session_take_notice(session));
	vp_session_free(session);
}

static uint64_t generation;

static uint64_t generation_now(void)
{
	return generation;
}

/* Where the hypervisor tells when a VM came, there can be new ones only then; where it does not,
 * always. */
static void test_generations(void **state)
{
	struct vp_session *session = vp_session_new(&(struct vp_session_options){0});
	struct vp_hypervisor hypervisor = *vp_hypervisor_kvm();
	static const struct {
		uint64_t generation;
		bool may_be_new;
	} looks[] = {{5, true}, {5, false}, {6, true}, {6, false}, {0, true}, {0, true}, {6, true}};

	session->hypervisor = &hypervisor;
	hypervisor.generation = generation_now;
	for (size_t i = 0; i < VP_ARRAY_SIZE(looks); i++) {
		generation = looks[i].generation;
		assert_int_equal(vp_session_may_be_new_vms(session), looks[i].may_be_new);
	}
	hypervisor.generation = NULL;
	for (int i = 0; i < 2; i++)
		assert_true(vp_session_may_be_new_vms(session));
	vp_session_free(session);
}

/* VMs that ended before all that a flight recorder has are nowhere any more, but counted. */
static void test_ended_vms_are_forgotten(void **state)
{
	static const struct vp_instrument_ops ops = {.forget_vm = note_forgotten,
						     .put_total = fake_put_total,
						     .lost = fake_lost,
						     .free = fake_free};
	struct vp_session *session = vp_session_new(&(struct vp_session_options){0});
	struct fake *fake = vp_alloc(sizeof(*fake));
	unsigned freed = 0;

	*fake = (struct fake){.base.ops = &ops, .freed = &freed};
	vp_session_add(session, &fake->base);
	add_vm(session, 10, 5000000000);
	add_vm(session, 11, 0);
	add_vm(session, 12, 90000000000);
	vp_session_forget_vms(session, 0); /* nothing was overwritten yet */
	assert_int_equal(session->vms.count, 3);
	vp_session_forget_vms(session, 100000000000);
	assert_int_equal(session->vms.count, 2);
	assert_int_equal(session->vms.at[0].pid, 11);
	assert_int_equal(session->vms.at[1].pid, 12); /* records may still name it */
	assert_int_equal(fake->records, 10);
	VP_AUTO_FREE char *totals = vp_session_totals(session);
	assert_non_null(strstr(totals, "3 VMs"));
	vp_session_free(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ended_vms_are_forgotten),
	    cmocka_unit_test(test_names_meanwhile),
	    cmocka_unit_test(test_vcpu_numbers_are_kvms),
	    cmocka_unit_test(test_streams_and_losses),
	    cmocka_unit_test(test_losses_of_late_pcpus),
	    cmocka_unit_test(test_first_error),
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_clock),
	    cmocka_unit_test(test_absence),
	    cmocka_unit_test(test_full_disk),
	    cmocka_unit_test(test_failed_start_leaves_older),
	    cmocka_unit_test(test_flight),
	    cmocka_unit_test(test_wait),
	    cmocka_unit_test(test_conditions),
	    cmocka_unit_test(test_unheard),
	    cmocka_unit_test(test_wait_for_conditions),
	    cmocka_unit_test(test_number_used_again),
	    cmocka_unit_test(test_generations),
	    cmocka_unit_test(test_new_vm_of_known_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
