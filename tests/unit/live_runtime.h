/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A language runtime as a process of this machine, which a test reads. */
#ifndef VP_TESTS_LIVE_RUNTIME_H
#define VP_TESTS_LIVE_RUNTIME_H

#include "unit.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes the program into `file`, runs the command, and waits until it prints "ready"; false: the
 * command does not exist. The process is killed when the test ends. */
static inline bool live_runtime_start(const char *const command[], const char *file,
				      const char *program, pid_t *pid)
{
	char printed[64] = {0};
	int out[2];

	assert_int_equal(pipe(out), 0);
	FILE *source = fopen(file, "w");
	assert_non_null(source);
	fputs(program, source);
	fclose(source);
	*pid = fork();
	if (!*pid) {
		dup2(out[1], 1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execvp(command[0], (char *const *)command);
		_exit(127);
	}
	close(out[1]);
	ssize_t got = read(out[0], printed, sizeof(printed) - 1);
	close(out[0]);
	return got > 0 && !strncmp(printed, "ready", 5);
}

/* Notes the addresses of the exported symbols with these names, of a file mapped at `start`. */
static inline void live_runtime_symbols(const char *path, uint64_t start,
					const char *(*name_of)(unsigned symbol), unsigned count,
					uint64_t *symbols)
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
			for (unsigned k = 0; k < count; k++)
				if (table[j].st_value &&
				    !strcmp(names + table[j].st_name, name_of(k)))
					symbols[k] = base + table[j].st_value;
	}
	munmap((void *)file, (size_t)status.st_size);
	close(fd);
}

#endif
