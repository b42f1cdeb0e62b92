/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which files of the host are opened for a guest, and downloads of those that the host lacks. */
#include "unit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/io.h"
#include "base/macros.h"
#include "collect/guests/host_copy.h"
#include "collect/guests/host_fetch.h"
#include "maps/debuginfod.h"
#include "maps/image.h"

#define INSTALLED "/usr/bin/env"

static char folder[] = "/tmp/vperf-copies-XXXXXX";
static struct vp_build_id installed; /* of INSTALLED */
static const struct vp_build_id other = {.size = 4, .bytes = "\1\2\3\4"};

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

/* The system's folders of links are in the test's folder. */
int __wrap_open64(const char *path, int flags, ...)
{
	VP_AUTO_FREE char *moved = vp_format("%s%s", folder, path);
	va_list more;
	mode_t mode;

	va_start(more, flags);
	mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
	va_end(more);
	return __real_open64(strstr(path, "/.build-id/") ? moved : path, flags, mode);
}

static void expect_refused(const char *path, const char *below)
{
	assert_int_equal(vp_host_copy_open(path, below), -1);
}

static void expect_opened(int fd)
{
	assert_true(fd >= 0);
	close(fd);
}

/* Files that a guest may have a process see. */
static void test_open(void **state)
{
	VP_AUTO_FREE char *below = vp_format("%s/", folder);
	VP_AUTO_FREE char *path = vp_format("%s/file", folder);
	VP_AUTO_FREE char *link = vp_format("%s/link", folder);

	(void)state;
	expect_opened(vp_host_copy_open(INSTALLED, "/usr/"));
	expect_refused("usr/bin/env", "/usr/");
	expect_refused("/etc/passwd", "/usr/");
	expect_refused("/usr/../etc/passwd", "/usr/");
	expect_refused("/usr/bin", "/usr/");
	expect_refused("/dev/null", "/");
	assert_int_equal(symlink("/etc/passwd", link), 0);
	expect_refused(link, below);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	expect_refused(path, below); /* only its owner can read it */
	assert_int_equal(fchmod(fd, 0644), 0);
	close(fd);
	if (!geteuid()) {
		expect_opened(vp_host_copy_open(path, below));
		assert_int_equal(chown(path, 65534, 65534), 0);
	}
	expect_refused(path, below); /* not of root */
	unlink(path);
	unlink(link);
}

/* The file at the guest's path may be of another version. */
static void test_installed(void **state)
{
	(void)state;
	expect_opened(vp_host_copy_find(INSTALLED, &installed));
	assert_int_equal(vp_host_copy_find(INSTALLED, &other), -1);
	assert_int_equal(vp_host_copy_find("/etc/passwd", &installed), -1);
	assert_int_equal(vp_host_copy_find("", &installed), -1);
}

/* Makes a link by build-id in a folder of the system; returns its path. */
static char *put_link(const char *of_system, const struct vp_build_id *build_id, const char *to)
{
	struct vp_buffer digits = {0};

	vp_build_id_put(build_id, &digits);
	const char *text = vp_buffer_text(&digits);
	VP_AUTO_FREE char *make =
	    vp_format("mkdir -p %s%s/.build-id/%.2s", folder, of_system, text);
	char *link = vp_format("%s%s/.build-id/%.2s/%s", folder, of_system, text, text + 2);
	vp_buffer_deinit(&digits);
	assert_int_equal(system(make), 0);
	assert_int_equal(symlink(to, link), 0);
	return link;
}

/* An installed program that the guest has elsewhere is found by a link of its build-id, and only
 * if it is an installed program of that build-id. */
static void test_links(void **state)
{
	static const char *const folders[] = {"/usr/lib", "/usr/lib/debug"};

	(void)state;
	for (size_t i = 0; i < VP_ARRAY_SIZE(folders); i++) {
		assert_int_equal(vp_host_copy_find("/elsewhere/env", &installed), -1);
		VP_AUTO_FREE char *link = put_link(folders[i], &installed, INSTALLED);
		expect_opened(vp_host_copy_find("/elsewhere/env", &installed));
		VP_AUTO_FREE char *wrong = put_link(folders[i], &other, INSTALLED);
		assert_int_equal(vp_host_copy_find("/elsewhere/env", &other), -1);
		assert_int_equal(unlink(link), 0);
		VP_AUTO_FREE char *copy = vp_format("cp %s %s/copy", INSTALLED, folder);
		VP_AUTO_FREE char *outside = vp_format("%s/copy", folder);
		assert_int_equal(system(copy), 0);
		free(link);
		link = put_link(folders[i], &installed, outside);
		assert_int_equal(vp_host_copy_find("/elsewhere/env", &installed), -1);
		assert_int_equal(unlink(link), 0);
	}
}

/* Copies the installed file to a path like that of a download. */
static char *put_download(const char *cache, const char *file)
{
	struct vp_buffer bytes = {0}, digits = {0};

	vp_build_id_put(&installed, &digits);
	VP_AUTO_FREE char *download = vp_format("%s/%s", cache, vp_buffer_text(&digits));
	char *path = vp_format("%s/%s", download, file);
	expect_no_error(vp_file_read(INSTALLED, 1 << 24, &bytes));
	assert_int_equal(mkdir(cache, 0755), 0);
	assert_int_equal(mkdir(download, 0755), 0);
	expect_no_error(vp_file_publish(path, bytes.bytes, bytes.size));
	vp_buffer_deinit(&bytes);
	vp_buffer_deinit(&digits);
	return path;
}

/* Downloads of this user, in a cache of this user. */
static void test_download(void **state)
{
	VP_AUTO_FREE char *cache = vp_format("%s/cache", folder);
	VP_AUTO_FREE char *link = vp_format("%s/link-to-cache", folder);
	VP_AUTO_FREE char *download = put_download(cache, "executable");

	(void)state;
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	expect_opened(vp_host_copy_find("/elsewhere/env", &installed));
	expect_opened(vp_host_copy_find("", &installed));
	assert_int_equal(vp_host_copy_download(&other), -1);
	assert_int_equal(symlink(cache, link), 0);
	setenv("DEBUGINFOD_CACHE_PATH", link, 1);
	expect_opened(vp_host_copy_download(&installed));
	VP_AUTO_FREE char *found = vp_debuginfod_find(&installed, VP_DEBUGINFOD_EXECUTABLE);
	assert_non_null(found); /* for names, without a server */
	assert_null(vp_debuginfod_find(&installed, VP_DEBUGINFOD_DEBUGINFO));
	if (!geteuid()) { /* another user's */
		assert_int_equal(chown(download, 65534, 65534), 0);
		assert_int_equal(vp_host_copy_download(&installed), -1);
		assert_int_equal(chown(download, 0, 0), 0);
		assert_int_equal(chown(cache, 65534, 65534), 0);
		assert_int_equal(vp_host_copy_download(&installed), -1);
		assert_int_equal(chown(cache, 0, 0), 0);
	}
	assert_int_equal(unlink(download), 0); /* a link out of the cache */
	assert_int_equal(symlink(INSTALLED, download), 0);
	assert_int_equal(vp_host_copy_download(&installed), -1);
	unsetenv("DEBUGINFOD_CACHE_PATH");
}

static void expect_cache(const char *expected)
{
	VP_AUTO_FREE char *cache = vp_debuginfod_cache();

	assert_string_equal(cache ? cache : "none", expected);
}

/* As debuginfod_find_debuginfo(3) has it. */
static void test_cache_folder(void **state)
{
	VP_AUTO_FREE char *home = vp_strdup(getenv("HOME") ? getenv("HOME") : "/");
	VP_AUTO_FREE char *old = vp_format("%s/.debuginfod_client_cache", folder);
	VP_AUTO_FREE char *usual = vp_format("%s/.cache/debuginfod_client", folder);

	(void)state;
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", folder, 1);
	expect_cache(usual);
	setenv("XDG_CACHE_HOME", "/x", 1);
	expect_cache("/x/debuginfod_client");
	assert_int_equal(mkdir(old, 0755), 0);
	expect_cache(old);
	setenv("DEBUGINFOD_CACHE_PATH", "/y", 1);
	expect_cache("/y");
	unsetenv("DEBUGINFOD_CACHE_PATH");
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	expect_cache("none");
	setenv("HOME", home, 1);
}

struct taken {
	unsigned offers, refused; /* refused: that many are left to refuse */
	uint32_t vm;
	struct vp_build_id build_id;
};

static bool take(void *context, uint32_t vm, const struct vp_build_id *build_id, int fd)
{
	struct taken *taken = context;

	assert_true(fd >= 0);
	taken->offers++;
	taken->vm = vm;
	taken->build_id = *build_id;
	return !taken->refused || !taken->refused--;
}

static void fetch_steps(struct vp_host_fetch *fetch, struct taken *taken, unsigned offers)
{
	uint64_t end = vp_clock_monotonic() + 20000000000ULL;

	while (taken->offers < offers && vp_clock_monotonic() < end) {
		vp_host_fetch_step(fetch, take, taken);
		vp_sleep_us(1000);
	}
	assert_int_equal(taken->offers, offers);
}

/* The server is a folder. A file that it lacks does not delay the next one. */
static void expect_fetches(void)
{
	VP_AUTO_FREE char *served = vp_format("%s/served", folder);
	VP_AUTO_FREE char *files = vp_format("%s/served/buildid", folder);
	VP_AUTO_FREE char *cache = vp_format("%s/new-cache", folder);
	VP_AUTO_FREE char *url = vp_format("file://%s", served);
	struct vp_host_fetch *fetch = vp_host_fetch_new();
	struct taken taken = {.refused = 1};

	assert_int_equal(mkdir(served, 0755), 0);
	free(put_download(files, "executable"));
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	unsetenv("DEBUGINFOD_URLS");
	vp_host_fetch_request(fetch, 7, &installed); /* no server: ignored */
	setenv("DEBUGINFOD_URLS", url, 1);
	vp_host_fetch_request(fetch, 5, &other);
	for (unsigned i = 0; i < 1000; i++) /* 64 of a VM */
		vp_host_fetch_request(fetch, 6, &installed);
	vp_host_fetch_request(fetch, 8, &installed);
	fetch_steps(fetch, &taken, 2);
	assert_int_equal(taken.vm, 6);
	assert_true(vp_build_id_equal(&taken.build_id, &installed));
	fetch_steps(fetch, &taken, 1 + 64 + 1);
	assert_int_equal(taken.vm, 8);
	vp_host_fetch_free(fetch);
	unsetenv("DEBUGINFOD_URLS");
	unsetenv("DEBUGINFOD_CACHE_PATH");
}

static void test_fetch(void **state)
{
	(void)state;
	if (!dlopen("libdebuginfod.so.1", RTLD_NOW))
		skip();
	expect_fetches();
}

/* A recording may end meanwhile. */
static void test_fetch_ends(void **state)
{
	struct vp_host_fetch *fetch = vp_host_fetch_new();
	struct taken taken = {0};

	(void)state;
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:9", 1);
	vp_host_fetch_request(fetch, 1, &installed);
	vp_host_fetch_step(fetch, take, &taken);
	vp_host_fetch_free(fetch);
	vp_host_fetch_free(NULL);
	unsetenv("DEBUGINFOD_URLS");
}

static int set_up(void **state)
{
	VP_AUTO_CLOSE int fd = open(INSTALLED, O_RDONLY | O_CLOEXEC);

	(void)state;
	expect_no_error(vp_image_read_build_id(fd, INSTALLED, &installed));
	assert_true(installed.size > 0);
	assert_non_null(mkdtemp(folder));
	setenv("HOME", folder, 1); /* not the user's cache */
	return 0;
}

static int tear_down(void **state)
{
	VP_AUTO_FREE char *command = vp_format("rm -r %s", folder);

	(void)state;
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_open),         cmocka_unit_test(test_installed),
	    cmocka_unit_test(test_links),        cmocka_unit_test(test_download),
	    cmocka_unit_test(test_cache_folder), cmocka_unit_test(test_fetch),
	    cmocka_unit_test(test_fetch_ends),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
