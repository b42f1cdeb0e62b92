/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/tracedat_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/confine.h"
#include "collect/tracedat.h"
#include "collect/worker_process.h"

enum { USUAL_EVENTS = 1 << 16, MOST_BYTES = 1 << 26, LONGEST_NAME = 255 };
#define MOST_FILE (3ULL << 30) /* what the process has address space for, and some more */

struct vp_tracedat_reader {
	struct vp_worker_process worker;
	const char *path;
	struct vp_buffer bytes;
};

/* In the process. */
struct telling {
	const char *path;
	struct vp_slice bytes;
	int channel;
	struct vp_tracedat file;
	struct vp_buffer records;
	struct vp_map vcpu_of_tid;
};

static void tell(const struct telling *telling, struct vp_tracedat_news news, const void *bytes,
		 size_t size)
{
	news.size = (uint32_t)size;
	if (size > MOST_BYTES || vp_fd_write_all(telling->channel, &news, sizeof(news)) ||
	    vp_fd_write_all(telling->channel, bytes, size))
		_exit(1);
}

static void tell_guests(const struct telling *telling)
{
	vp_vec_each (&telling->file.guests, guest) {
		size_t size = guest->name.size < LONGEST_NAME ? guest->name.size : LONGEST_NAME;
		tell(telling,
		     (struct vp_tracedat_news){.kind = VP_TRACEDAT_GUEST, .number = guest->id},
		     guest->name.bytes, size);
		vp_vec_each (&guest->threads, thread)
			tell(telling,
			     (struct vp_tracedat_news){.kind = VP_TRACEDAT_THREAD,
						       .cpu = thread->cpu,
						       .number = thread->tid},
			     NULL, 0);
	}
}

/* The thread and the vCPU of an event kvm:kvm_entry; false: it is another one. */
static bool find_vcpu(const struct vp_event_class *class, struct vp_cursor fields, uint32_t *tid,
		      uint32_t *vcpu)
{
	struct vp_event_value value;
	bool found = false;

	if (strcmp(class->name, "kvm:kvm_entry") != 0)
		return false;
	vp_vec_each (&class->fields, field) {
		if (!vp_event_next_value(&fields, field, &value))
			return false;
		if (!strcmp(field->name, "common_pid"))
			*tid = (uint32_t)value.number;
		if (!strcmp(field->name, "vcpu_id")) {
			*vcpu = (uint32_t)value.number;
			found = true;
		}
	}
	return found;
}

static void see_event(struct telling *telling, uint32_t class, struct vp_slice raw)
{
	const struct vp_event_class *its = &telling->file.classes.at[class];
	uint32_t tid = 0, vcpu = 0;
	bool inserted = false;

	if (strcmp(its->name, "kvm:kvm_entry") != 0)
		return;
	telling->records.size = 0;
	if (vp_tracepoint_convert(its, &telling->file.places.at[class], 0, raw,
				  &telling->records) &&
	    find_vcpu(its, vp_event_fields((void *)telling->records.bytes), &tid, &vcpu))
		vp_map_insert(&telling->vcpu_of_tid, tid, vcpu, &inserted);
	if (inserted)
		tell(
		    telling,
		    (struct vp_tracedat_news){.kind = VP_TRACEDAT_VCPU, .cpu = vcpu, .number = tid},
		    NULL, 0);
}

/* Before all: when it was, which classes there are events of, which threads are vCPUs. */
static void survey(struct telling *telling)
{
	uint64_t span[2] = {UINT64_MAX, 0};

	for (uint32_t cpu = 0; cpu < telling->file.cpus.count; cpu++) {
		struct vp_tracedat_walk walk = {.cpu = cpu};
		struct vp_slice raw;
		uint32_t class;
		uint64_t time;
		while (vp_tracedat_next(&telling->file, &walk, &class, &time, &raw)) {
			span[0] = time < span[0] ? time : span[0];
			span[1] = time > span[1] ? time : span[1];
			see_event(telling, class, raw);
		}
	}
	telling->records.size = 0;
	tell(telling, (struct vp_tracedat_news){.kind = VP_TRACEDAT_SPAN}, span, sizeof(span));
}

static void tell_begin(const struct telling *telling)
{
	struct vp_buffer text = {0};

	vp_event_classes_write(&telling->file.classes, &text);
	tell(telling,
	     (struct vp_tracedat_news){.kind = VP_TRACEDAT_BEGIN, .number = telling->file.id},
	     text.bytes, text.size);
	vp_buffer_deinit(&text);
	tell(telling, (struct vp_tracedat_news){.kind = VP_TRACEDAT_NAMES},
	     telling->file.commands.bytes, telling->file.commands.size);
}

static void tell_events(struct telling *telling, uint32_t cpu)
{
	if (telling->records.size)
		tell(telling, (struct vp_tracedat_news){.kind = VP_TRACEDAT_EVENTS, .cpu = cpu},
		     telling->records.bytes, telling->records.size);
	telling->records.size = 0;
}

static void tell_cpu(struct telling *telling, uint32_t cpu)
{
	struct vp_tracedat_walk walk = {.cpu = cpu};
	struct vp_slice raw;
	uint32_t class;
	uint64_t time;

	while (vp_tracedat_next(&telling->file, &walk, &class, &time, &raw)) {
		if (!vp_tracepoint_convert(&telling->file.classes.at[class],
					   &telling->file.places.at[class], time, raw,
					   &telling->records))
			walk.malformed++;
		if (telling->records.size >= USUAL_EVENTS)
			tell_events(telling, cpu);
	}
	tell_events(telling, cpu);
	tell(telling,
	     (struct vp_tracedat_news){
		 .kind = VP_TRACEDAT_MISSED, .cpu = cpu, .number = walk.missed},
	     NULL, 0);
	tell(telling,
	     (struct vp_tracedat_news){
		 .kind = VP_TRACEDAT_STRANGE, .cpu = cpu, .number = walk.malformed},
	     NULL, 0);
}

static struct vp_error *tell_all(struct telling *telling)
{
	VP_TRY(vp_tracedat_open(telling->path, telling->bytes, &telling->file));
	tell(
	    telling,
	    (struct vp_tracedat_news){.kind = VP_TRACEDAT_CPUS, .number = telling->file.cpus.count},
	    NULL, 0);
	tell_guests(telling);
	survey(telling);
	tell_begin(telling);
	for (uint32_t cpu = 0; cpu < telling->file.cpus.count; cpu++)
		tell_cpu(telling, cpu);
	tell(telling, (struct vp_tracedat_news){.kind = VP_TRACEDAT_END}, NULL, 0);
	return NULL;
}

static void read_file(void *context, int channel)
{
	struct telling *telling = context;
	int keep[] = {channel};

	if (!vp_confine_to_reading(keep, VP_ARRAY_SIZE(keep)))
		_exit(1);
	telling->channel = keep[0];
	struct vp_error *error = tell_all(telling);
	if (error)
		tell(telling, (struct vp_tracedat_news){.kind = VP_TRACEDAT_PROBLEM},
		     vp_error_message(error), strlen(vp_error_message(error)));
}

/* The file is in the process's memory: what it needs to open, it has. */
static struct vp_error *map_file(const char *path, struct vp_slice *ret)
{
	struct stat status = {0};
	int fd = vp_file_open_regular(path, MOST_FILE, 0);

	if (fd < 0)
		return vp_error_errno(errno, "cannot read '%s'", path);
	void *bytes = MAP_FAILED;
	if (!fstat(fd, &status) && status.st_size)
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	int failure = errno;
	close(fd);
	*ret = (struct vp_slice){bytes, (size_t)status.st_size};
	if (!status.st_size)
		return vp_error_new("'%s' is no file of trace-cmd: it is empty", path);
	return bytes == MAP_FAILED ? vp_error_errno(failure, "cannot read '%s'", path) : NULL;
}

struct vp_error *vp_tracedat_reader_start(const char *path, struct vp_tracedat_reader **ret)
{
	struct telling telling = {.path = path};
	struct vp_worker_process worker;

	VP_TRY(map_file(path, &telling.bytes));
	struct vp_error *error = vp_worker_process_start(SOCK_STREAM, read_file, &telling, &worker);
	munmap((void *)telling.bytes.bytes, telling.bytes.size);
	if (error)
		return error;
	*ret = vp_alloc(sizeof(**ret));
	**ret = (struct vp_tracedat_reader){.worker = worker, .path = path};
	return NULL;
}

static bool read_all(int fd, void *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = read(fd, (char *)bytes + done, size - done);
		if (got == 0 || (got < 0 && errno != EINTR))
			return false;
		done += got > 0 ? (size_t)got : 0;
	}
	return true;
}

struct vp_error *vp_tracedat_reader_next(struct vp_tracedat_reader *reader,
					 struct vp_tracedat_news *ret, struct vp_slice *bytes)
{
	reader->bytes.size = 0;
	if (!read_all(reader->worker.channel, ret, sizeof(*ret)) || ret->size > MOST_BYTES ||
	    !read_all(reader->worker.channel, vp_buffer_extend(&reader->bytes, ret->size),
		      ret->size))
		return vp_error_new("reading '%s' failed: the process that reads it ended",
				    reader->path);
	*bytes = (struct vp_slice){reader->bytes.bytes, ret->size};
	if (ret->kind == VP_TRACEDAT_PROBLEM)
		return vp_error_new("%s", vp_buffer_text(&reader->bytes));
	return NULL;
}

void vp_tracedat_reader_free(struct vp_tracedat_reader *reader)
{
	vp_worker_process_end(&reader->worker);
	vp_buffer_deinit(&reader->bytes);
	free(reader);
}
