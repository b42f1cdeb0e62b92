/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads, frames and names from the memory of a real Python process. PYTHON names another one than
 * that in PATH. */
#include "live_runtime.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/python.h"

/* A function that is called from C, and a second thread. */
static const char program[] =
    "import os, threading, functools\n"
    "class Outer:\n"
    "    def m\xc3\xa9thode(self, event, left, right):\n"
    "        os.write(1, b'ready')\n"
    "        event.wait()\n"
    "def waits(event):\n"
    "    functools.reduce(functools.partial(Outer().m\xc3\xa9thode, event), [1, 2])\n"
    "threading.Thread(target=lambda: threading.Event().wait()).start()\n"
    "waits(threading.Event())\n";

struct live {
	pid_t pid;
	int memory;
	uint64_t symbols[VP_PYTHON_SYMBOLS];
};

static bool live_read(void *context, uint64_t addr, void *bytes, size_t size)
{
	const struct live *live = context;

	return pread(live->memory, bytes, size, (off_t)addr) == (ssize_t)size;
}

/* Starts it and waits for its word; false: there is no Python here. */
static bool live_start(struct live *live)
{
	const char *python = getenv("PYTHON") ? getenv("PYTHON") : "python3";
	const char *const command[] = {python, "-S", "waits.py", NULL};

	return live_runtime_start(command, "waits.py", program, &live->pid);
}

static const char *python_symbol(unsigned symbol)
{
	return vp_python_symbol_name(symbol);
}

/* Notes the exported symbols of a mapped file; false: it is not the interpreter. */
static bool find_symbols(struct live *live, const char *path, uint64_t start)
{
	live_runtime_symbols(path, start, python_symbol, VP_PYTHON_SYMBOLS, live->symbols);
	return live->symbols[VP_PYTHON_LOOP] != 0;
}

/* The interpreter is the program or libpython. */
static void find_interpreter(struct live *live)
{
	char name[64], line[8192];
	bool found = false;

	snprintf(name, sizeof(name), "/proc/%d/maps", live->pid);
	FILE *maps = fopen(name, "r");
	assert_non_null(maps);
	while (!found && fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = 0;
		const char *at = strchr(line, '/');
		if (at && strstr(at, "python3"))
			found = find_symbols(live, at, strtoull(line, NULL, 16));
	}
	fclose(maps);
	assert_true(found);
}

struct seen {
	struct vp_python *python;
	uint64_t main;
	uint32_t pid, threads;
};

static bool take_thread(void *context, const struct vp_python_thread *thread)
{
	struct seen *seen = context;

	seen->threads++;
	if (thread->native_id == seen->pid)
		seen->main = thread->state;
	return true;
}

static uint64_t word_at(const struct vp_python *python, uint64_t addr)
{
	uint64_t word = 0;

	assert_true(vp_process_u64(python->memory, addr, &word));
	return word;
}

/* Appends the name of a code object, without the directory of its file. */
static void put_code(struct vp_python *python, uint64_t code, struct vp_buffer *list)
{
	struct vp_buffer name = {0};

	assert_true(vp_python_code_name(python, code, &name));
	const char *text = vp_buffer_text(&name), *slash = strrchr(text, '/');
	size_t function = slash ? (size_t)(strstr(text, ":/") - text) + 1 : name.size;
	vp_buffer_append(list, text, function);
	vp_buffer_string(list, slash ? slash + 1 : "");
	vp_buffer_string(list, "\n");
	vp_buffer_deinit(&name);
}

/* The names of the thread's frames, innermost first; '|' after an entry. */
static void list_frames(struct vp_python *python, uint64_t thread, struct vp_buffer *list)
{
	const struct vp_python_layout *at = &python->layout;
	uint64_t frame = word_at(python, thread + at->thread_frame);
	unsigned count = 0;

	if (at->frame_in != VP_PYTHON_DIRECT)
		frame = word_at(python, frame + at->frame_in);
	for (; frame && count < 100; frame = word_at(python, frame + at->frame_previous), count++) {
		unsigned char owner;
		assert_true(vp_process_read(python->memory, frame + at->frame_owner, &owner, 1));
		bool entry = owner == at->entry_value;
		if (!entry || !at->entry_is_empty) /* without the tag of 3.14 */
			put_code(python, word_at(python, frame + at->frame_code) & ~7ULL, list);
		if (entry)
			vp_buffer_string(list, "|\n");
	}
	assert_true(count < 100);
}

static void test_a_real_process(void **state)
{
	struct live live = {0};
	struct vp_process_memory memory = {live_read, &live};
	struct vp_python python;
	struct seen seen = {.python = &python};
	struct vp_buffer frames = {0};
	char name[64];

	(void)state;
	if (!live_start(&live)) {
		waitpid(live.pid, NULL, 0);
		skip();
	}
	snprintf(name, sizeof(name), "/proc/%d/mem", live.pid);
	live.memory = open(name, O_RDONLY);
	assert_true(live.memory >= 0);
	find_interpreter(&live);
	struct vp_error *error = vp_python_open(&memory, live.symbols, &python);
	/* The main thread waits in a call of the lock that `event.wait` makes. */
	usleep(200000);
	seen.pid = (uint32_t)live.pid;
	bool complete = !error && vp_python_threads_each(&python, take_thread, &seen);
	if (seen.main)
		list_frames(&python, seen.main, &frames);
	kill(live.pid, SIGKILL);
	waitpid(live.pid, NULL, 0);
	close(live.memory);
	if (error && strstr(vp_error_message(error), "is not supported")) {
		vp_error_free(error);
		skip();
	}
	expect_no_error(error);
	assert_true(complete);
	assert_int_equal(seen.threads, 2);
	assert_string_equal(vp_buffer_text(&frames), "py::Condition.wait:threading.py\n"
						     "py::Event.wait:threading.py\n"
						     "py::Outer.m\xc3\xa9thode:waits.py\n|\n"
						     "py::waits:waits.py\n"
						     "py::<module>:waits.py\n|\n");
	for (unsigned i = 0; i < VP_PYTHON_FAILURES; i++)
		assert_int_equal(python.failures[i], 0);
	vp_buffer_deinit(&frames);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_real_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
