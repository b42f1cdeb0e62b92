/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/tracefs/thread_names.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"

enum { NAMES_MAX = 1 << 16, STATUS_MAX = 1 << 16 };

void vp_thread_names_deinit(struct vp_thread_names *names)
{
	vp_map_deinit(&names->thread_of_tid);
	vp_vec_deinit(&names->threads);
}

static struct vp_task *thread_names_thread_of(struct vp_thread_names *names, uint32_t tid,
					      bool *is_new)
{
	if (names->threads.count > NAMES_MAX) { /* bounded: thread ids are reused */
		vp_map_deinit(&names->thread_of_tid);
		names->threads.count = 0;
	}
	uint32_t index =
	    *vp_map_insert(&names->thread_of_tid, tid, (uint32_t)names->threads.count, is_new);
	if (*is_new)
		vp_vec_push(&names->threads, (struct vp_task){.id = VP_ID_task});
	return &names->threads.at[index];
}

/* Emits nothing if the thread has exited. */
static void thread_names_read_file(uint32_t tid, const char *name, struct vp_buffer *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", tid, name);
	vp_error_free(vp_file_read(path, STATUS_MAX, ret));
}

static void set_comm(struct vp_task *task, const char *comm, size_t size)
{
	memset(task->comm, 0, sizeof(task->comm));
	memcpy(task->comm, comm, size < sizeof(task->comm) ? size : sizeof(task->comm) - 1);
}

static void read_comm(struct vp_task *task)
{
	struct vp_buffer comm = {0};

	thread_names_read_file(task->tid, "comm", &comm);
	set_comm(task, comm.bytes, strcspn(vp_buffer_text(&comm), "\n"));
	vp_buffer_deinit(&comm);
}

static uint32_t read_process(uint32_t tid)
{
	struct vp_buffer status = {0};

	thread_names_read_file(tid, "status", &status);
	const char *line = strstr(vp_buffer_text(&status), "\nTgid:");
	uint32_t pid = line ? (uint32_t)strtoul(line + strlen("\nTgid:"), NULL, 10) : 0;
	vp_buffer_deinit(&status);
	return pid;
}

static void begin_thread(struct vp_task *task, uint32_t pid, uint32_t tid)
{
	task->tid = tid;
	task->pid = pid ? pid : read_process(tid);
}

const struct vp_task *vp_thread_names_find(struct vp_thread_names *names, uint32_t pid,
					   uint32_t tid)
{
	bool is_new;
	struct vp_task *task = thread_names_thread_of(names, tid, &is_new);

	if (is_new) {
		begin_thread(task, pid, tid);
		read_comm(task);
	}
	return task;
}

void vp_thread_names_set(struct vp_thread_names *names, uint32_t pid, uint32_t tid,
			 struct vp_slice comm)
{
	bool is_new;
	struct vp_task *task = thread_names_thread_of(names, tid, &is_new);

	if (is_new || pid)
		begin_thread(task, pid, tid);
	set_comm(task, comm.bytes, strnlen(comm.bytes, comm.size));
}
