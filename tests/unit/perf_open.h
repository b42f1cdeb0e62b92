/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls of a test with perf_event_open() of its own: open_event() gets its arguments. The
 * test is linked with --wrap=syscall. */
#ifndef VP_TESTS_UNIT_PERF_OPEN_H
#define VP_TESTS_UNIT_PERF_OPEN_H

#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/syscall.h>

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* The descriptor, or -1 with errno. words: attr, pid, CPU, leader, flags. */
static long open_event(const struct perf_event_attr *attr, const long *words);

long __wrap_syscall(long number, ...)
{
	long words[6];
	va_list arguments;

	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		words[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_perf_event_open)
		return open_event((const struct perf_event_attr *)words[0], words);
	return __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

#endif
