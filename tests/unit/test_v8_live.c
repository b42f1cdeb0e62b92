/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of JavaScript functions from the memory of a real Node.js process, without any option to
 * it. NODE names another one than that in PATH. */
#include "unit.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
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
	const char *command = getenv("NODE") ? getenv("NODE") : "node";
	char said[64] = {0};
	int out[2];

	assert_int_equal(pipe(out), 0);
	FILE *file = fopen("spins.js", "w");
	assert_non_null(file);
	fputs(program, file);
	fclose(file);
	live->pid = fork();
	if (!live->pid) {
		dup2(out[1], 1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp(command, command, "spins.js", NULL);
		_exit(127);
	}
	close(out[1]);
	ssize_t got = read(out[0], said, sizeof(said) - 1);
	close(out[0]);
	return got > 0 && !strncmp(said, "ready", 5);
}

/* Notes the exported symbols of a mapped file; false: it is not V8. */
static bool find_symbols(struct live *live, const char *path, uint64_t start)
{
	int fd = open(path, O_RDONLY);
	struct stat status;

	assert_true(fd >= 0 && !fstat(fd, &status));
	const char *file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(file != MAP_FAILED);
	const Elf64_Ehdr *header = (const void *)file;
	const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);
	uint64_t base = header->e_type == ET_DYN ? start : 0;
	for (unsigned i = 0; i < header->e_shnum; i++) {
		if (sections[i].sh_type != SHT_DYNSYM)
			continue;
		const Elf64_Sym *table = (const void *)(file + sections[i].sh_offset);
		const char *names = file + sections[sections[i].sh_link].sh_offset;
		for (size_t j = 0; j < sections[i].sh_size / sizeof(*table); j++)
			for (unsigned k = 0; k < VP_V8_SYMBOLS; k++)
				if (table[j].st_value &&
				    !strcmp(names + table[j].st_name, vp_v8_symbol_name(k)))
					live->symbols[k] = base + table[j].st_value;
	}
	munmap((void *)file, (size_t)status.st_size);
	close(fd);
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
