/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of JavaScript functions from the memory of a real Node.js process, without any option to
 * it. NODE names another one than that in PATH. */
#include "live_runtime.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/v8.h"

/* A function that never ends, called by a callback, by a method with a name outside of ASCII. */
static const char program[] =
    "function spins(n) { let x = 0; for (;;) x = (x * 31 + n) & 65535; }\n"
    "class Work {\n"
    "  m\xc3\xa9thode(n) { let local = n; [1].forEach(() => { spins(local); }); }\n"
    "}\n"
    "function outer() { new Work().m\xc3\xa9thode(7); }\n"
    "require('fs').writeSync(1, 'ready');\n"
    "outer();\n";

enum { MAX_FRAMES = 64, SETTLES_US = 500000 };

struct live {
	pid_t pid;
	int memory;
	uint64_t symbols[VP_V8_SYMBOLS];
};

static bool live_read(void *context, uint64_t addr, void *bytes, size_t size)
{
	const struct live *live = context;

	return pread(live->memory, bytes, size, (off_t)addr) == (ssize_t)size;
}

/* Starts it and waits for its word; false: there is no Node.js here. */
static bool live_start(struct live *live)
{
	const char *node = getenv("NODE") ? getenv("NODE") : "node";
	const char *const command[] = {node, "spins.js", NULL};

	return live_runtime_start(command, "spins.js", program, &live->pid);
}

static const char *v8_symbol(unsigned symbol)
{
	return vp_v8_symbol_name(symbol);
}

/* Notes the exported symbols of a mapped file; false: it is not V8. */
static bool find_symbols(struct live *live, const char *path, uint64_t start)
{
	live_runtime_symbols(path, start, v8_symbol, VP_V8_SYMBOLS, live->symbols);
	return vp_v8_has_symbols(live->symbols);
}

/* V8 is in the program or in libnode. */
static void find_v8(struct live *live)
{
	char name[64], line[8192];
	bool found = false;

	snprintf(name, sizeof(name), "/proc/%d/maps", live->pid);
	FILE *maps = fopen(name, "r");
	assert_non_null(maps);
	while (!found && fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = 0;
		const char *at = strchr(line, '/');
		if (at && strstr(at, "node"))
			found = find_symbols(live, at, strtoull(line, NULL, 16));
	}
	fclose(maps);
	assert_true(found);
}

/* 0: unreadable. The outermost frames are of C++, without frame pointers. */
static uint64_t word_at(const struct vp_v8 *v8, uint64_t addr)
{
	uint64_t word = 0;

	return vp_process_u64(v8->memory, addr, &word) ? word : 0;
}

/* The names of JavaScript's frames, innermost first, from the frame pointer on, without the
 * directories of files. */
static void put_frames(struct vp_v8 *v8, uint64_t bp, struct vp_buffer *list)
{
	for (unsigned i = 0; i < MAX_FRAMES && bp; i++, bp = word_at(v8, bp)) {
		struct vp_buffer name = {0};
		uint64_t shared =
		    vp_v8_function_of_frame(v8, word_at(v8, bp - v8->layout.context_below),
					    word_at(v8, bp - v8->layout.function_below));
		if (!shared)
			continue;
		assert_true(vp_v8_name(v8, shared, &name));
		const char *text = vp_buffer_text(&name), *space = strchr(text, ' ');
		const char *slash = space ? strrchr(space, '/') : NULL;
		vp_buffer_append(list, text, space ? (size_t)(space - text) : strlen(text));
		vp_buffer_printf(list, "%s%s\n", space ? " " : "",
				 slash   ? slash + 1
				 : space ? space + 1
					 : "");
		vp_buffer_deinit(&name);
	}
}

static void test_functions(void **state)
{
	struct live live = {.memory = -1};
	struct user_regs_struct registers;
	struct vp_buffer list = {0};
	char name[64];

	(void)state;
	if (!live_start(&live))
		skip();
	usleep(SETTLES_US);
	assert_int_equal(ptrace(PTRACE_ATTACH, live.pid, 0, 0), 0);
	assert_int_equal(waitpid(live.pid, NULL, 0), live.pid);
	assert_int_equal(ptrace(PTRACE_GETREGS, live.pid, 0, &registers), 0);
	snprintf(name, sizeof(name), "/proc/%d/mem", live.pid);
	live.memory = open(name, O_RDONLY);
	assert_true(live.memory >= 0);
	find_v8(&live);
	const struct vp_process_memory memory = {live_read, &live};
	struct vp_v8 v8;
	expect_no_error(vp_v8_open(&memory, live.symbols, &v8));
	put_frames(&v8, registers.rbp, &list);
	static const char expected[] = "JS:spins spins.js\n"
				       "JS:(anonymous) spins.js:@123\n"
				       "JS:forEach\n"
				       "JS:m\xc3\xa9thode spins.js\n"
				       "JS:outer spins.js\n"
				       "JS:(anonymous) spins.js:@";
	if (strncmp(vp_buffer_text(&list), expected, strlen(expected)) != 0)
		fail_msg("frames:\n%s", vp_buffer_text(&list));
	/* Its own code is in the file of the program, or of libnode. */
	if (v8.blob_high)
		assert_true(v8.blob_high - v8.blob_low > 1 << 20);
	uint64_t identity;
	assert_false(vp_v8_identity(&v8, registers.rsp & ~7ULL, &identity));
	vp_buffer_deinit(&list);
	kill(live.pid, SIGKILL);
	waitpid(live.pid, NULL, 0);
	close(live.memory);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_functions)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
