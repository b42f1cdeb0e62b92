/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stdio.h>

#include "counters/set.h"

int vp_counters_fail(struct vperf_error *error, int status, const char *format, ...)
{
	va_list args;

	if (!error)
		return status;
	error->status = status;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return status;
}

const char *vperf_status_text(int status)
{
	switch (status) {
	case VPERF_OK:
		return "no error";
	case VPERF_E_ARGUMENT:
		return "invalid argument, or a call that is not allowed in this state";
	case VPERF_E_EVENT:
		return "unknown event name";
	case VPERF_E_TOO_MANY:
		return "more events than there are counters";
	case VPERF_E_RIGHTS:
		return "no permission to count this event";
	case VPERF_E_NO_COUNTER:
		return "this event is not supported here";
	case VPERF_E_NOT_LENT:
		return "the host provides no such counters to this guest";
	case VPERF_E_VERSION:
		return "the agent in this guest has a different version";
	case VPERF_E_LOST:
		return "counting has ended: another user has the counter, or vperf lend or the "
		       "agent has stopped";
	case VPERF_E_THREAD:
		return "the set belongs to another thread";
	case VPERF_E_SYSTEM:
		return "out of memory or file descriptors, or a system call failed";
	default:
		return "not a status of this library";
	}
}
