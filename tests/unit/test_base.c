/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The helpers at the bottom: cursor, buffer, interner, map, files, errors. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/file.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/map.h"
#include "base/radix.h"
#include "base/search.h"
#include "base/text.h"

static void test_cursor_integers(void **state)
{
	struct vp_cursor cursor = vp_cursor_of("\1\2\3\4\5\6\7\10\1\2\3\4\1\2", 14);

	assert_true(vp_cursor_u64(&cursor) == 0x0807060504030201);
	assert_int_equal(vp_cursor_u32(&cursor), 0x04030201);
	assert_int_equal(vp_cursor_left(&cursor), 2);
	assert_int_equal(vp_cursor_u32(&cursor), 0);
	assert_false(vp_cursor_ok(&cursor));
	/* Failed for good, though two bytes are left. */
	assert_int_equal(vp_cursor_u16(&cursor), 0);
	assert_int_equal(vp_cursor_left(&cursor), 0);
}

static void test_cursor_lines(void **state)
{
	struct vp_cursor cursor = vp_cursor_of("one\n\nlast", 9);
	struct vp_slice line;

	assert_true(vp_cursor_line(&cursor, &line) && vp_slice_is(line, "one"));
	assert_int_equal(vp_cursor_offset(&cursor), 4);
	assert_true(vp_cursor_line(&cursor, &line) && vp_slice_is(line, ""));
	assert_true(vp_cursor_line(&cursor, &line) && vp_slice_is(line, "last"));
	assert_false(vp_cursor_line(&cursor, &line));
	cursor = vp_cursor_of(NULL, 0);
	assert_false(vp_cursor_line(&cursor, &line));
}

static void test_cursor_words(void **state)
{
	struct vp_cursor cursor = vp_cursor_of("a \t12 ff 0 rest of it", 21);

	assert_true(vp_slice_is(vp_cursor_word(&cursor), "a"));
	assert_int_equal(vp_cursor_decimal(&cursor), 12);
	assert_int_equal(vp_cursor_hex(&cursor), 255);
	assert_int_equal(vp_cursor_decimal(&cursor), 0);
	assert_true(vp_cursor_ok(&cursor));
	assert_true(vp_slice_is(vp_cursor_rest(&cursor), "rest of it"));
	vp_cursor_word(&cursor);
	assert_false(vp_cursor_ok(&cursor));
}

static bool number_fails(const char *text, bool hex)
{
	struct vp_cursor cursor = vp_cursor_of(text, strlen(text));

	if (hex)
		vp_cursor_hex(&cursor);
	else
		vp_cursor_decimal(&cursor);
	return !vp_cursor_ok(&cursor);
}

static void test_cursor_numbers(void **state)
{
	assert_false(number_fails("18446744073709551615", false));
	assert_true(number_fails("18446744073709551616", false));
	assert_false(number_fails("FFFFFFFFffffffff", true));
	assert_true(number_fails("10000000000000000", true));
	assert_true(number_fails("0x10", true));
	assert_true(number_fails("-1", false));
	assert_true(number_fails("1a", false));
	assert_true(number_fails("", false));
}

static void test_buffer(void **state)
{
	struct vp_buffer buffer = {0};

	for (int i = 0; i < 1000; i++)
		vp_buffer_printf(&buffer, "%d,", i);
	assert_int_equal(buffer.size, 10 * 2 + 90 * 3 + 900 * 4);
	vp_buffer_append(&buffer, NULL, 0);
	vp_buffer_string(&buffer, "end");
	assert_string_equal(vp_buffer_text(&buffer) + buffer.size - 7, "999,end");
	vp_buffer_deinit(&buffer);
}

/* By keys in which few or all digits differ; those of one key stay in their order. */
static void test_radix(void **state)
{
	static const uint64_t masks[] = {0, 0x7, 0xff00, 0xff000000000000ff, UINT64_MAX};
	struct vp_keyed things[1000];
	uint64_t random = 1;

	for (size_t i = 0; i < VP_ARRAY_SIZE(masks); i++) {
		for (uint32_t at = 0; at < VP_ARRAY_SIZE(things); at++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			things[at] = (struct vp_keyed){(random ^ random >> 32) & masks[i], at};
		}
		vp_radix_sort(things, VP_ARRAY_SIZE(things));
		for (size_t at = 1; at < VP_ARRAY_SIZE(things); at++) {
			assert_true(things[at - 1].key <= things[at].key);
			if (things[at - 1].key == things[at].key)
				assert_true(things[at - 1].item < things[at].item);
		}
	}
	vp_radix_sort(things, 0);
	vp_radix_sort(things, 1);
}

static void test_intern(void **state)
{
	struct vp_intern intern = {0};
	char name[16];

	for (uint32_t i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		assert_int_equal(vp_intern_string(&intern, name), i);
	}
	assert_int_equal(vp_intern_string(&intern, "name 1234"), 1234);
	assert_int_equal(vp_intern_add(&intern, "name 12345", 9), 1234);
	assert_int_equal(vp_intern_add(&intern, "", 0), 5000);
	assert_string_equal(vp_intern_text(&intern, 42), "name 42");
	assert_true(vp_intern_has(&intern, "name 42"));
	assert_false(vp_intern_has(&intern, "name 5000"));
	vp_intern_deinit(&intern);
	assert_false(vp_intern_has(&intern, "name 42"));
}

/* What another one begins with is another one, wherever both are. */
static void test_intern_beginnings(void **state)
{
	enum { LONGEST = 2000 };
	struct vp_intern intern = {0};
	char text[LONGEST];

	memset(text, 'x', sizeof(text));
	for (uint32_t i = 0; i < LONGEST; i++)
		assert_int_equal(vp_intern_add(&intern, text, LONGEST - i), i);
	for (uint32_t i = 0; i < LONGEST; i++)
		assert_int_equal(vp_intern_add(&intern, text, LONGEST - i), i);
	vp_intern_deinit(&intern);
}

static void test_map(void **state)
{
	struct vp_map map = {0};
	bool inserted;

	assert_null(vp_map_find(&map, 0));
	for (uint32_t i = 0; i < 5000; i++) {
		vp_map_insert(&map, i * 0x1000ULL, i, &inserted);
		assert_true(inserted);
	}
	assert_int_equal(*vp_map_insert(&map, 0x7000, 9, &inserted), 7);
	assert_false(inserted);
	assert_int_equal(*vp_map_find(&map, 4999 * 0x1000ULL), 4999);
	assert_null(vp_map_find(&map, 1));
	assert_int_equal(map.count, 5000);
	vp_map_deinit(&map);
}

static uint64_t hash_in_another_process(void)
{
	char self[4096] = "", command[4200];
	unsigned long long hash = 0;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(command, sizeof(command), "'%s' hash", self);
	FILE *output = popen(command, "r");
	assert_non_null(output);
	assert_int_equal(fscanf(output, "%llx", &hash), 1);
	pclose(output);
	return hash;
}

/* Else a guest could choose keys that all hash alike. */
static void test_hash_is_not_foretold(void **state)
{
	assert_true(vp_hash64(1) == vp_hash64(1));
	assert_true(hash_in_another_process() != hash_in_another_process());
}

static void test_files(void **state)
{
	struct vp_buffer buffer = {0};

	expect_no_error(vp_file_publish("test_base.txt", "hello", 5));
	expect_no_error(vp_file_read("test_base.txt", 5, &buffer));
	expect_no_error(vp_file_read("test_base.txt", 5, &buffer));
	assert_string_equal(vp_buffer_text(&buffer), "hellohello");
	expect_error(vp_file_read("test_base.txt", 4, &buffer),
		     "larger than the maximum of 4 bytes");
	expect_error(vp_file_read("/nonexistent", 4, &buffer), "cannot open '/nonexistent': No");
	expect_error(vp_file_publish("/nonexistent/x", "", 0), "cannot create");
	vp_buffer_deinit(&buffer);
}

static void test_errors(void **state)
{
	struct vp_error *error = vp_error_errno(ENOENT, "cannot open '%s'", "x");

	assert_string_equal(vp_error_message(error), "cannot open 'x': No such file or directory");
	assert_int_equal(vp_error_kind(error), VP_ERROR_FAILURE);
	vp_error_free(error);
	error = vp_error_usage("no");
	assert_int_equal(vp_error_kind(error), VP_ERROR_USAGE);
	vp_error_free(error);
	vp_error_free(NULL);
}

static void test_file_pipe(void **state)
{
	struct vp_buffer buffer = {0};

	/* Nobody writes to it: not waited for. */
	unlink("test_base.fifo");
	assert_int_equal(mkfifo("test_base.fifo", 0600), 0);
	expect_no_error(vp_file_read("test_base.fifo", 100, &buffer));
	assert_int_equal(buffer.size, 0);
	unlink("test_base.fifo");
	vp_buffer_deinit(&buffer);
}

/* Whoever may write to the folder cannot have another file written, by a link of a known name. */
static void test_new_files(void **state)
{
	struct vp_buffer buffer = {0};

	temporary_file("test_base.victim", "safe", 4);
	unlink("test_base.txt.tmp");
	assert_int_equal(symlink("test_base.victim", "test_base.txt.tmp"), 0);
	expect_no_error(vp_file_publish("test_base.txt", "hello", 5));
	expect_no_error(vp_file_read("test_base.victim", 4, &buffer));
	assert_string_equal(vp_buffer_text(&buffer), "safe");
	vp_buffer_deinit(&buffer);
	unlink("test_base.txt.tmp");
}

static bool no_nameless; /* the file system cannot make a file without a name */
int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

int __wrap_open64(const char *path, int flags, ...)
{
	va_list list;

	va_start(list, flags);
	mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
	va_end(list);
	if (no_nameless && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return __real_open64(path, flags, mode);
}

static size_t files_here(void)
{
	DIR *folder = opendir(".");
	size_t count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* Nothing is in the folder that a killed program could leave, until it is complete. */
static void test_nameless_files(void **state)
{
	struct vp_new_file file;
	struct vp_buffer buffer = {0};
	struct stat status;

	for (int again = 0; again < 2; again++) {
		unlink("test_base.new");
		if (again)
			expect_no_error(vp_file_publish("test_base.new", "older text", 10));
		size_t before = files_here();
		assert_int_equal(vp_new_file_create(&file, "test_base.new", 0600), 0);
		assert_int_equal(write(file.fd, "new", 3), 3);
		assert_int_equal(files_here(), before);
		assert_int_equal(vp_new_file_publish(&file), 0);
		vp_new_file_deinit(&file);
		assert_int_equal(files_here(), before + !again);
		buffer.size = 0;
		expect_no_error(vp_file_read("test_base.new", 4, &buffer));
		assert_string_equal(vp_buffer_text(&buffer), "new");
		assert_int_equal(stat("test_base.new", &status), 0);
		assert_int_equal(status.st_mode & 07777, 0600);
	}
	assert_int_equal(mkdir("test_base.folder", 0700), 0);
	size_t before = files_here();
	assert_int_equal(vp_new_file_create(&file, "test_base.folder", 0600), 0);
	assert_int_equal(vp_new_file_publish(&file), -EISDIR);
	vp_new_file_deinit(&file);
	assert_int_equal(files_here(), before);
	assert_int_equal(rmdir("test_base.folder"), 0);
	vp_buffer_deinit(&buffer);
}

static void test_named_files(void **state)
{
	struct vp_new_file file;
	struct vp_buffer buffer = {0};

	no_nameless = true;
	assert_int_equal(vp_new_file_create(&file, "test_base.txt", 0600), 0);
	char *name = strdup(file.name);
	assert_memory_equal(name, "test_base.txt.", 14);
	assert_int_equal(access(name, F_OK), 0);
	vp_new_file_deinit(&file);
	assert_int_not_equal(access(name, F_OK), 0);
	assert_int_equal(vp_new_file_create(&file, "test_base.txt", 0600), 0);
	assert_string_not_equal(file.name, name);
	assert_int_equal(write(file.fd, "new", 3), 3);
	assert_int_equal(vp_new_file_publish(&file), 0);
	vp_new_file_deinit(&file);
	no_nameless = false;
	expect_no_error(vp_file_read("test_base.txt", 4, &buffer));
	assert_string_equal(vp_buffer_text(&buffer), "new");
	vp_buffer_deinit(&buffer);
	free(name);
}

/* A pipe or a device that a user names as output stays what it is. */
static void test_outputs(void **state)
{
	VP_AUTO_NEW_FILE struct vp_new_file file = {.fd = -1};
	struct stat status;
	char bytes[8] = "";

	unlink("test_base.fifo");
	unlink("test_base.out");
	assert_int_equal(mkfifo("test_base.fifo", 0600), 0);
	int reader = open("test_base.fifo", O_RDONLY | O_NONBLOCK);
	expect_no_error(vp_file_publish_output("test_base.fifo", "all", 3));
	assert_int_equal(read(reader, bytes, sizeof(bytes)), 3);
	assert_string_equal(bytes, "all");
	assert_int_equal(vp_new_file_create_output(&file, "test_base.fifo", 0600), 0);
	assert_int_equal(write(file.fd, "part", 4), 4);
	assert_int_equal(vp_new_file_publish(&file), 0);
	assert_int_equal(read(reader, bytes, sizeof(bytes)), 4);
	assert_int_equal(lstat("test_base.fifo", &status), 0);
	assert_true(S_ISFIFO(status.st_mode));
	close(reader);
	unlink("test_base.fifo");
	expect_no_error(vp_file_publish_output("test_base.out", "new", 3));
	assert_int_equal(stat("test_base.out", &status), 0);
	assert_int_equal(status.st_size, 3);
	unlink("test_base.out");
}

static void expect_refused(const char *path, uint64_t most, int flags, int errnum)
{
	errno = 0;
	assert_int_equal(vp_file_open_regular(path, most, flags), -1);
	assert_int_equal(errno, errnum);
}

static void test_regular_files(void **state)
{
	temporary_file("test_base.txt", "hello", 5);
	unlink("test_base.link");
	unlink("test_base.fifo");
	assert_int_equal(symlink("test_base.txt", "test_base.link"), 0);
	assert_int_equal(mkfifo("test_base.fifo", 0600), 0);
	int fd = vp_file_open_regular("test_base.link", 5, 0);
	assert_true(fd >= 0);
	close(fd);
	expect_refused("test_base.link", 5, O_NOFOLLOW, ENOTSUP);
	expect_refused("test_base.txt", 4, 0, EFBIG);
	expect_refused("test_base.fifo", 5, 0, ENOTSUP);
	expect_refused("/dev/null", 5, 0, ENOTSUP);
	expect_refused(".", UINT64_MAX, 0, ENOTSUP);
	expect_refused("/nonexistent", 5, 0, ENOENT);
	unlink("test_base.fifo");
}

static void test_clean(void **state)
{
	struct vp_buffer result = {0};
	static const char dirty[] =
	    "a\x1b[31m\xc3\xa9\xff\xc2\x9b\xe2\x82\xac\xed\xa0\x80\xf0\x9f\x98\x80\xe2";

	vp_text_clean(dirty, sizeof(dirty) - 1, &result);
	assert_string_equal(vp_buffer_text(&result),
			    "a?[31m\xc3\xa9???\xe2\x82\xac???\xf0\x9f\x98\x80?");
	vp_buffer_deinit(&result);
	vp_text_clean_lines("a\n\x1b"
			    "b\n\n",
			    6, &result);
	assert_string_equal(vp_buffer_text(&result), "a\n?b\n\n");
	vp_buffer_deinit(&result);
	char *cleaned = vp_text_cleaned("two\nlines");
	assert_string_equal(cleaned, "two?lines");
	free(cleaned);
	assert_true(vp_text_is_clean("\xc3\xa9 and e") && vp_text_is_clean(""));
	assert_false(vp_text_is_clean("\xc3") || vp_text_is_clean("\x7f"));
}

/* Each of them is one '?', in text and in JSON; their neighbours stay. */
static void test_clean_hidden(void **state)
{
	static const char *const hidden[] = {
	    "\u200b",     "\u200c",     "\u200d",     "\u200e",     "\u200f", "\u2028",
	    "\u2029",     "\u202a",     "\u202b",     "\u202c",     "\u202d", "\u202e",
	    "\u2060",     "\u2066",     "\u2067",     "\u2068",     "\u2069", "\u206f",
	    "\u061c",     "\u00ad",     "\ufeff",     "\u3164",     "\ufff9", "\uffff",
	    "\U000e0001", "\U000e007f", "\U000e0100", "\U0010ffff", "\u180e", "\ufe0f"};
	static const char *const shown[] = {"\u00ac", "\u00ae",     "\u2010", "\u2027", "\u202f",
					    "\u205f", "\u2070",     "\u061b", "\u061d", "\ufffd",
					    "\uff9f", "\U0001f600", "\u4e2d"};

	for (size_t i = 0; i < VP_ARRAY_SIZE(hidden) + VP_ARRAY_SIZE(shown); i++) {
		bool is_shown = i >= VP_ARRAY_SIZE(hidden);
		const char *one = is_shown ? shown[i - VP_ARRAY_SIZE(hidden)] : hidden[i];
		VP_AUTO_FREE char *dirty = vp_format("a%sb%s", one, one);
		VP_AUTO_FREE char *clean = vp_text_cleaned(dirty);
		VP_AUTO_FREE char *quoted = vp_format("\"%s\"", is_shown ? dirty : "a?b?");
		struct vp_buffer out = {0};
		struct vp_json json = vp_json_to(&out);
		assert_string_equal(clean, is_shown ? dirty : "a?b?");
		assert_int_equal(vp_text_is_clean(one), is_shown);
		vp_json_text(&json, NULL, dirty);
		assert_string_equal(vp_buffer_text(&out), quoted);
		vp_buffer_deinit(&out);
	}
}

static void test_json(void **state)
{
	struct vp_buffer out = {0};
	struct vp_json json = vp_json_to(&out);

	vp_json_object(&json, NULL);
	vp_json_text(&json, "a \"word\"\\", "line\n\xff\x1b\xc3\xa9\x7f\xc2\x9b.");
	vp_json_text(&json, "none", NULL);
	vp_json_line(&json);
	vp_json_array(&json, "list");
	vp_json_count(&json, NULL, UINT64_MAX);
	vp_json_bool(&json, NULL, true);
	vp_json_array(&json, NULL);
	vp_json_array_end(&json);
	vp_json_array_end(&json);
	vp_json_object_end(&json);
	assert_string_equal(vp_buffer_text(&out),
			    "{\"a \\\"word\\\"\\\\\": \"line\\u000a?\\u001b\xc3\xa9???.\", "
			    "\"none\": null,\n\"list\": [18446744073709551615, true, []]}");
	out.size = 0;
	json = vp_json_to(&out);
	vp_json_answer(&json);
	vp_json_count(&json, "more", 2);
	vp_json_object_end(&json);
	assert_string_equal(vp_buffer_text(&out), "{\"version\": 1, \"more\": 2}");
	out.size = 0;
	json = vp_json_to(&out);
	vp_json_array(&json, NULL);
	vp_json_number(&json, NULL, 0.1);
	vp_json_number(&json, NULL, (double)INFINITY);
	vp_json_double(&json, NULL, 2);
	vp_json_double(&json, NULL, (double)NAN);
	vp_json_amount(&json, NULL, 123456789012);
	vp_json_amount(&json, NULL, 0.5);
	vp_json_fixed(&json, NULL, 1.25, 1);
	vp_json_hex(&json, NULL, 0xfff);
	vp_json_array_end(&json);
	assert_string_equal(vp_buffer_text(&out),
			    "[0.1, null, 2.0, null, 123456789012, 0.5, 1.2, \"0xfff\"]");
	vp_buffer_deinit(&out);
}

/* As json-c lays it out, which scripts that read lines rely on. */
static void test_json_pretty(void **state)
{
	struct vp_buffer out = {0};
	struct vp_json json = vp_json_to(&out);

	vp_json_object(&json, NULL);
	vp_json_line(&json);
	vp_json_pretty(&json, true);
	vp_json_array(&json, "rows");
	vp_json_object(&json, NULL);
	vp_json_count(&json, "n", 1);
	vp_json_null(&json, "m");
	vp_json_object_end(&json);
	vp_json_object(&json, NULL);
	vp_json_object_end(&json);
	vp_json_array_end(&json);
	vp_json_pretty(&json, false);
	vp_json_line(&json);
	vp_json_count(&json, "last", 0);
	vp_json_line(&json);
	vp_json_object_end(&json);
	assert_string_equal(vp_buffer_text(&out),
			    "{\n\"rows\": [\n  {\n    \"n\":1,\n    \"m\":null\n  },\n"
			    "  {\n  }\n],\n\"last\": 0\n}");
	vp_buffer_deinit(&out);
}

/* The program says what happens then: these tests come back. */
static jmp_buf out_of_memory;

void vp_alloc_failed(void)
{
	longjmp(out_of_memory, 1);
}

static void test_out_of_memory(void **state)
{
	struct vp_buffer buffer = {0};

	vp_buffer_string(&buffer, "kept");
	assert_null(vp_buffer_try_extend(&buffer, SIZE_MAX / 2 + 2));
	assert_string_equal(vp_buffer_text(&buffer), "kept");
	assert_null(vp_realloc_try(NULL, SIZE_MAX / 2, 4));
	if (!setjmp(out_of_memory)) {
		free(vp_realloc_array(NULL, SIZE_MAX / 2, 4));
		fail_msg("there was that much memory");
	}
	if (!setjmp(out_of_memory)) {
		vp_buffer_extend(&buffer, SIZE_MAX / 2 + 2);
		fail_msg("there was that much memory");
	}
	assert_string_equal(vp_buffer_text(&buffer), "kept");
	vp_buffer_deinit(&buffer);
}

static void test_durations(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {{0, "0"},
		     {1, "1 ns"},
		     {853, "853 ns"},
		     {999, "999 ns"},
		     {1000, "1.00 us"},
		     {12345, "12.3 us"},
		     {999499, "999 us"},
		     {999500, "1.00 ms"},
		     {9996000, "10.0 ms"},
		     {99960000, "100 ms"},
		     {1614000000, "1.61 s"},
		     {86400000000000, "86400 s"},
		     {UINT64_MAX, "18446744074 s"}};
	char text[VP_DURATION_SIZE];

	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++)
		assert_string_equal(vp_text_duration(cases[i].ns, text), cases[i].text);
}

static void test_long_durations(void **state)
{
	static const struct {
		uint64_t s;
		const char *text;
	} cases[] = {{0, "0"},
		     {5, "5.00 s"},
		     {119, "119 s"},
		     {120, "2 min 0 s"},
		     {3599, "59 min 59 s"},
		     {3600, "1 h 0 min"},
		     {86399, "23 h 59 min"},
		     {266400, "3 d 2 h"},
		     {UINT64_MAX / 1000000000, "213503 d 23 h"}};
	char text[VP_DURATION_SIZE];

	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++)
		assert_string_equal(vp_text_long_duration(cases[i].s * 1000000000, text),
				    cases[i].text);
}

/* As printf() has them, on both sides of each power of ten. */
static void test_counts(void **state)
{
	struct vp_buffer buffer = {0};
	uint64_t power = 1;

	for (int digits = 1; digits <= 20; digits++, power *= 10)
		for (uint64_t number = power - 1; number <= power + 1; number++) {
			char expected[24];
			snprintf(expected, sizeof(expected), "%" PRIu64, number);
			buffer.size = 0;
			vp_buffer_count(&buffer, number);
			assert_string_equal(vp_buffer_text(&buffer), expected);
		}
	/* Each four digits, and each behind others. */
	for (uint64_t number = 0; number < 10000; number++) {
		char expected[24];
		uint64_t before = number * 100010001 + 1234567890000000000;
		snprintf(expected, sizeof(expected), "%" PRIu64 "%" PRIu64, number, before);
		buffer.size = 0;
		vp_buffer_count(&buffer, number);
		vp_buffer_count(&buffer, before);
		assert_string_equal(vp_buffer_text(&buffer), expected);
	}
	/* Wider than that, and not: of few digits and of many. */
	static const uint64_t some[] = {0, 7, 99999999, 100000000, 1234567890123, UINT64_MAX};
	for (size_t i = 0; i < VP_ARRAY_SIZE(some); i++)
		for (int width = 0; width <= 20; width++) {
			char expected[48];
			snprintf(expected, sizeof(expected), "%*" PRIu64 "|%0*" PRIu64, width,
				 some[i], width, some[i]);
			buffer.size = 0;
			vp_buffer_padded(&buffer, some[i], (size_t)width, ' ');
			vp_buffer_string(&buffer, "|");
			vp_buffer_padded(&buffer, some[i], (size_t)width, '0');
			assert_string_equal(vp_buffer_text(&buffer), expected);
		}
	buffer.size = 0;
	vp_buffer_count(&buffer, UINT64_MAX);
	assert_string_equal(vp_buffer_text(&buffer), "18446744073709551615");
	vp_buffer_deinit(&buffer);
}

static void test_first(void **state)
{
	static const int sorted[] = {1, 3, 3, 3, 7};
	enum { COUNT = VP_ARRAY_SIZE(sorted) };

	for (int wanted = 0; wanted < 9; wanted++) {
		size_t first = 0, behind = 0;
		while (first < COUNT && sorted[first] < wanted)
			first++;
		while (behind < COUNT && sorted[behind] <= wanted)
			behind++;
		assert_int_equal(VP_FIRST(i, COUNT, sorted[i] >= wanted), first);
		assert_int_equal(VP_FIRST(i, COUNT, sorted[i] > wanted), behind);
	}
	assert_int_equal(VP_FIRST(i, 0, sorted[i] > 0), 0);
}

/* The calls of this program, in their order: these stand in for libc's. */
static char calls[64];
static int full_disk; /* errno of fsync() */

int fsync(int fd)
{
	struct stat status;

	if (full_disk) {
		errno = full_disk;
		return -1;
	}
	if (strlen(calls) < sizeof(calls) - 2 && !fstat(fd, &status))
		strcat(calls, S_ISDIR(status.st_mode) ? "d" : "f");
	return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
	if (strlen(calls) < sizeof(calls) - 2)
		strcat(calls, "r");
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int from, const char *old, int to, const char *new, int flags)
{
	if (strlen(calls) < sizeof(calls) - 2)
		strcat(calls, "l");
	return (int)syscall(SYS_linkat, from, old, to, new, flags);
}

/* After a crash there is the file before or the new one, and not an empty one. */
static void test_published_file_is_on_disk(void **state)
{
	unlink("test_base.published");
	calls[0] = 0;
	expect_no_error(vp_file_publish("test_base.published", "text", 4));
	assert_string_equal(calls, "fld"); /* file, link, folder */
	calls[0] = 0;
	expect_no_error(vp_file_publish("test_base.published", "next", 4));
	assert_string_equal(calls, "fllrd"); /* the path is there: by another name */
	no_nameless = true;
	calls[0] = 0;
	expect_no_error(vp_file_publish("test_base.published", "last", 4));
	assert_string_equal(calls, "frd");
	no_nameless = false;
	calls[0] = 0;
	expect_no_error(vp_file_publish_output("/dev/null", "text", 4));
	assert_string_equal(calls, "");
	unlink("test_base.published");
}

/* Without room for a second file, the text goes into the file that is there, and is all of it. */
static void test_full_disk(void **state)
{
	static const int full[] = {ENOSPC, EDQUOT};
	struct vp_buffer text = {0};

	for (unsigned i = 0; i < VP_ARRAY_SIZE(full); i++) {
		temporary_file("test_base.full", "a longer text", 13);
		full_disk = full[i];
		expect_no_error(vp_file_publish("test_base.full", "short", 5));
		full_disk = 0;
		text.size = 0;
		expect_no_error(vp_file_read("test_base.full", 100, &text));
		assert_string_equal(vp_buffer_text(&text), "short");
	}
	/* A file that does not exist: the disk is the reason. */
	full_disk = ENOSPC;
	expect_error(vp_file_publish("test_base.none", "new", 3), "No space left on device");
	/* Another error is one, and leaves the file as it was. */
	full_disk = EIO;
	expect_error(vp_file_publish("test_base.full", "new", 3), "cannot write 'test_base.full'");
	full_disk = 0;
	text.size = 0;
	expect_no_error(vp_file_read("test_base.full", 100, &text));
	assert_string_equal(vp_buffer_text(&text), "short");
	vp_buffer_deinit(&text);
	unlink("test_base.full");
}

/* Wherever a byte is, and whatever is before it: what is shown as itself goes on behind it. */
static void test_clean_size_by_bytes(void **state)
{
	enum { SIZE = 27 };
	char text[SIZE];

	for (size_t at = 0; at < SIZE; at++)
		for (int byte = 0; byte < 0x80; byte++) {
			memset(text, ' ' + (int)at, SIZE);
			text[at] = (char)byte;
			assert_int_equal(vp_text_clean_size(text, SIZE),
					 byte < ' ' || byte == 0x7f ? at : SIZE);
		}
	/* A letter of two bytes, and a byte that begins none. */
	for (size_t at = 0; at + 1 < SIZE; at++) {
		memset(text, '~', SIZE);
		memcpy(text + at, "\xc3\xa4", 2);
		assert_int_equal(vp_text_clean_size(text, SIZE), SIZE);
		memcpy(text + at, "\xff~", 2);
		assert_int_equal(vp_text_clean_size(text, SIZE), at);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1) { /* see hash_in_another_process() */
		printf("%llx\n", (unsigned long long)vp_hash64(1));
		return 0;
	}
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_published_file_is_on_disk),
	    cmocka_unit_test(test_full_disk),
	    cmocka_unit_test(test_first),
	    cmocka_unit_test(test_counts),
	    cmocka_unit_test(test_cursor_integers),
	    cmocka_unit_test(test_cursor_lines),
	    cmocka_unit_test(test_cursor_words),
	    cmocka_unit_test(test_cursor_numbers),
	    cmocka_unit_test(test_buffer),
	    cmocka_unit_test(test_intern),
	    cmocka_unit_test(test_intern_beginnings),
	    cmocka_unit_test(test_radix),
	    cmocka_unit_test(test_map),
	    cmocka_unit_test(test_files),
	    cmocka_unit_test(test_errors),
	    cmocka_unit_test(test_file_pipe),
	    cmocka_unit_test(test_hash_is_not_foretold),
	    cmocka_unit_test(test_new_files),
	    cmocka_unit_test(test_nameless_files),
	    cmocka_unit_test(test_named_files),
	    cmocka_unit_test(test_outputs),
	    cmocka_unit_test(test_regular_files),
	    cmocka_unit_test(test_clean),
	    cmocka_unit_test(test_clean_hidden),
	    cmocka_unit_test(test_durations),
	    cmocka_unit_test(test_long_durations),
	    cmocka_unit_test(test_out_of_memory),
	    cmocka_unit_test(test_json),
	    cmocka_unit_test(test_json_pretty),
	    cmocka_unit_test(test_clean_size_by_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
