/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that vperfd runs, their words, and what it tells systemd. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/io.h"
#include "base/macros.h"
#include "daemon/child.h"
#include "daemon/notify.h"

static void expect_words(const struct vp_daemon_words *words, const char *expected)
{
	struct vp_buffer text = {0};

	for (size_t i = 0; words->at[i]; i++)
		vp_buffer_printf(&text, "%s%s", i ? " " : "", words->at[i]);
	assert_string_equal(vp_buffer_text(&text), expected);
	vp_buffer_deinit(&text);
}

static void test_words(void **state)
{
	struct vp_daemon_config config;
	struct vp_daemon_words words;

	vp_daemon_config_init(&config);
	vp_daemon_record_words(&config, "/b/vperf", "/s/1", 4, &words);
	expect_words(&words, "/b/vperf record -q --no-agent -o /s/1 -z1 "
			     "--names-every=600 --freq=19 --stagger --mmap-pages=512");
	vp_daemon_samples_words(&config, "/b/vperf", "/s/1", 4, &words);
	expect_words(&words, "/b/vperf record -q --no-agent -o /s/1 -z1 --quiet-vms "
			     "-g --freq=997 --duration=60 --mmap-pages=512");
	config.compression = config.frequency = config.names_ns = 0;
	free(config.account);
	config.account = vp_strdup("exact");
	config.flight_bytes = 64 << 20;
	vp_daemon_record_words(&config, "/b/vperf", "/s/1", 4, &words);
	expect_words(&words, "/b/vperf record -q --no-agent -o /s/1 --account=exact "
			     "--no-samples");
	vp_daemon_flight_words(&config, "/b/vperf", "/s/flight", 4, &words);
	expect_words(&words, "/b/vperf record -q --no-agent -o /s/flight --quiet-vms "
			     "--no-samples --no-account --trace=sched,kvm,irq --flight 65536K "
			     "--mmap-pages=1024");
	vp_daemon_snapshot_words("/b/vperf", "/s/flight", &words);
	expect_words(&words, "/b/vperf snapshot /s/flight");
	vp_daemon_config_deinit(&config);
}

static unsigned pages_of(const struct vp_daemon_words *words)
{
	unsigned pages = 0;

	for (size_t i = 0; words->at[i]; i++)
		(void)sscanf(words->at[i], "--mmap-pages=%u", &pages);
	return pages;
}

/* The buffers of all pCPUs together have a limit, down to a size per pCPU that is still of use. The
 * flight recorder's are not larger than its ring. */
static void test_buffers(void **state)
{
	static const struct {
		uint32_t pcpus;
		uint64_t ring;
		unsigned record, flight, samples; /* pages of 4 KiB */
	} cases[] = {{1, 64 << 20, 512, 1024, 512}, {8, 64 << 20, 512, 512, 512},
		     {9, 64 << 20, 256, 256, 512},  {16, 16 << 20, 256, 256, 512},
		     {17, 16 << 20, 128, 128, 256}, {128, 1 << 30, 32, 64, 64},
		     {512, 1 << 30, 32, 64, 64},    {4, 2 << 20, 512, 128, 512}};
	const unsigned pages = (unsigned)getpagesize() / 4096;
	struct vp_daemon_config config;
	struct vp_daemon_words words;

	vp_daemon_config_init(&config);
	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		config.flight_bytes = cases[i].ring;
		vp_daemon_record_words(&config, "/b/vperf", "/s/1", cases[i].pcpus, &words);
		assert_int_equal(pages_of(&words) * pages, cases[i].record);
		vp_daemon_flight_words(&config, "/b/vperf", "/s/1", cases[i].pcpus, &words);
		assert_int_equal(pages_of(&words) * pages, cases[i].flight);
		vp_daemon_samples_words(&config, "/b/vperf", "/s/1", cases[i].pcpus, &words);
		assert_int_equal(pages_of(&words) * pages, cases[i].samples);
	}
	vp_daemon_config_deinit(&config);
}

/* Returns whether it failed. */
static bool wait_for(pid_t child)
{
	bool failed = false;

	for (int i = 0; i < 1000; i++) {
		if (vp_child_has_ended(child, &failed))
			return failed;
		vp_sleep_us(10000);
	}
	fail_msg("process %d does not end", (int)child);
	return true;
}

static void test_output(void **state)
{
	const struct vp_daemon_words words = {.at = {"/bin/echo", "here"}, .count = 2};
	char text[16] = "";
	int ends[2];
	pid_t child;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	expect_no_error(vp_child_start(&words, ends[1], &child));
	close(ends[1]);
	assert_false(wait_for(child));
	assert_int_equal(vp_read(ends[0], text, sizeof(text)), 5);
	assert_string_equal(text, "here\n");
	close(ends[0]);
}

static void test_no_program(void **state)
{
	const struct vp_daemon_words words = {.at = {"/nonexistent/vperf"}, .count = 1};
	pid_t child;

	expect_error(vp_child_start(&words, -1, &child), "cannot run '/nonexistent/vperf'");
}

static bool sleeper_fails_by(int signal)
{
	const struct vp_daemon_words words = {.at = {"/bin/sleep", "100"}, .count = 2};
	pid_t child;

	expect_no_error(vp_child_start(&words, -1, &child));
	kill(child, signal);
	return wait_for(child);
}

/* SIGTERM asks a child to end. */
static void test_failure(void **state)
{
	const struct vp_daemon_words words = {.at = {"/bin/false"}, .count = 1};
	pid_t child;

	expect_no_error(vp_child_start(&words, -1, &child));
	assert_true(wait_for(child));
	assert_true(sleeper_fails_by(SIGKILL));
	assert_false(sleeper_fails_by(SIGTERM));
}

/* A child is asked to end when its parent was killed. */
static void test_orphan(void **state)
{
	const struct vp_daemon_words words = {.at = {"/bin/sleep", "100"}, .count = 2};
	int ends[2];
	pid_t child = 0;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t parent = fork();
	if (!parent) {
		vp_error_free(vp_child_start(&words, -1, &child));
		(void)!vp_write(ends[1], &child, sizeof(child));
		pause();
	}
	assert_int_equal(vp_read(ends[0], &child, sizeof(child)), sizeof(child));
	assert_int_equal(kill(child, 0), 0);
	VP_AUTO_FREE char *path = vp_format("/proc/%d/exe", (int)child);
	kill(parent, SIGKILL);
	vp_waitpid(parent, NULL, 0);
	char program[256];
	/* Its new parent may leave it as a zombie, which has no program. */
	for (int i = 0; i < 1000 && readlink(path, program, sizeof(program)) > 0; i++)
		vp_sleep_us(10000);
	assert_int_equal(readlink(path, program, sizeof(program)), -1);
	close(ends[0]);
	close(ends[1]);
}

static void test_notify(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "test_notify.socket"};
	char text[64] = "";
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	unsetenv("NOTIFY_SOCKET");
	vp_notify("READY=1");
	unlink(address.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	VP_AUTO_FREE char *here = getcwd(NULL, 0);
	VP_AUTO_FREE char *path = vp_format("%s/%s", here, address.sun_path);
	if (strlen(path) >= sizeof(address.sun_path))
		skip();
	setenv("NOTIFY_SOCKET", path, 1);
	vp_notify("READY=1\nSTATUS=x");
	assert_int_equal(vp_recv(fd, text, sizeof(text), MSG_DONTWAIT), 16);
	assert_string_equal(text, "READY=1\nSTATUS=x");
	close(fd);
	unsetenv("NOTIFY_SOCKET");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_words),   cmocka_unit_test(test_output),
	    cmocka_unit_test(test_failure), cmocka_unit_test(test_no_program),
	    cmocka_unit_test(test_orphan),  cmocka_unit_test(test_notify),
	    cmocka_unit_test(test_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
