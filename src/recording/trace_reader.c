/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/trace_reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "recording/packet.h"

/* So much is read at once, while it is whole packets: that of many streams stays in the caches. */
enum { WINDOW = 2 * VP_PACKET_MAX, CHUNK = 64 * 1024, PROBE = 64 * 1024 };

struct vp_stream_reader {
	struct vp_stream_cursor cursor; /* first: see vp_stream_next() */
	char *path;
	int fd;
	bool borrowed; /* the descriptor is another reader's */
	bool trusted;  /* checksums are not looked at */
	enum vp_stream_class kind;
	uint32_t cpu;
	char *window;     /* a stretch of the file … */
	uint64_t offset;  /* … from here … */
	size_t filled;    /* … this long */
	size_t packet_at; /* in the window: where the next packet begins */
	struct vp_stream_health health;
};

/* As its name says; one of another name is read as a pCPU's. */
static void set_id(struct vp_stream_reader *stream)
{
	const char *name = strrchr(stream->path, '/');
	struct vp_stream_id id;

	if (!vp_stream_of_file(name ? name + 1 : stream->path, &id))
		return;
	stream->kind = id.kind;
	stream->cpu = id.pcpu;
}

struct vp_error *vp_stream_open(const char *path, struct vp_stream_reader **ret)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe is just empty */

	if (fd < 0)
		return vp_error_errno(errno, "cannot open stream '%s'", path);
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	struct vp_stream_reader *stream = vp_alloc(sizeof(*stream));
	stream->path = vp_strdup(path);
	set_id(stream);
	stream->fd = fd;
	stream->window = vp_alloc(WINDOW + sizeof(struct vp_record_header));
	stream->cursor.at = stream->cursor.end = stream->window;
	*ret = stream;
	return NULL;
}

struct vp_stream_reader *vp_stream_again(const struct vp_stream_reader *of)
{
	struct vp_stream_reader *stream = vp_alloc(sizeof(*stream));

	stream->path = vp_strdup(of->path);
	set_id(stream);
	stream->fd = of->fd;
	stream->borrowed = true;
	stream->window = vp_alloc(WINDOW + sizeof(struct vp_record_header));
	stream->cursor.at = stream->cursor.end = stream->window;
	return stream;
}

void vp_stream_rewind(struct vp_stream_reader *stream)
{
	stream->offset = 0;
	stream->filled = stream->packet_at = 0;
	stream->cursor = (struct vp_stream_cursor){.at = stream->window, .end = stream->window};
	stream->health = (struct vp_stream_health){0};
	stream->trusted = false;
	memset(stream->window, 0, sizeof(struct vp_record_header));
}

void vp_stream_trust(struct vp_stream_reader *stream, bool trusted)
{
	stream->trusted = trusted;
}

void vp_stream_free(struct vp_stream_reader *stream)
{
	if (!stream)
		return;
	if (!stream->borrowed)
		close(stream->fd);
	free(stream->window);
	free(stream->path);
	free(stream);
}

/* Moves the unread rest to the front of the window and reads on behind it, up to `most` bytes. */
static void window_refill(struct vp_stream_reader *stream, size_t most)
{
	memmove(stream->window, stream->window + stream->packet_at,
		stream->filled - stream->packet_at);
	stream->offset += stream->packet_at;
	stream->filled -= stream->packet_at;
	stream->packet_at = 0;
	while (stream->filled < most) {
		ssize_t got =
		    pread(stream->fd, stream->window + stream->filled, most - stream->filled,
			  (off_t)(stream->offset + stream->filled));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;
		stream->filled += (size_t)got;
	}
}

/* Size in bytes of the packet that this is the header of, or 0: it is none. */
static uint64_t header_size(const struct vp_packet_header *header)
{
	uint64_t size = header->packet_size / 8;

	if (header->magic != VP_PACKET_MAGIC || header->content_size != header->packet_size ||
	    header->packet_size % 8 || size < sizeof(*header) || size > VP_PACKET_MAX)
		return 0;
	return size;
}

/* Size in bytes of the good packet at `bytes`, or 0. */
static size_t packet_check(const char *bytes, size_t left, bool trusted,
			   struct vp_packet_header *header)
{
	if (left < sizeof(*header))
		return 0;
	memcpy(header, bytes, sizeof(*header));
	uint64_t size = header_size(header);
	if (!size || size > left)
		return 0;
	if (!trusted && header->checksum != vp_packet_checksum(header, bytes + sizeof(*header),
							       size - sizeof(*header)))
		return 0;
	return size;
}

static void note_damage(struct vp_stream_reader *stream, size_t at, size_t size)
{
	if (!stream->health.damaged)
		stream->health.damaged_at = stream->offset + at;
	stream->health.damaged += size;
}

/* Where a packet could begin. Much faster than memmem(), which goes byte by byte. */
static const char *find_magic(const char *at, const char *end)
{
	static const uint32_t magic = VP_PACKET_MAGIC;

	for (; (size_t)(end - at) >= sizeof(magic); at++) {
		at = memchr(at, VP_PACKET_MAGIC & 0xff, (size_t)(end - at) - sizeof(magic) + 1);
		if (!at || !memcmp(at, &magic, sizeof(magic)))
			return at;
	}
	return NULL;
}

/* Steps over bytes that are not a packet, up to the next that could begin one. */
static void skip_damage(struct vp_stream_reader *stream, size_t left)
{
	const char *from = stream->window + stream->packet_at;
	const char *found = find_magic(from + 1, from + left);
	size_t skip = found ? (size_t)(found - from) : left > 3 ? left - 3 : left;

	note_damage(stream, stream->packet_at, skip);
	stream->packet_at += skip;
}

/* Whether the next packet lies in the window, if the bytes there are one. */
static bool window_has_packet(const struct vp_stream_reader *stream)
{
	size_t left = stream->filled - stream->packet_at;
	struct vp_packet_header header;

	if (left < sizeof(header))
		return false;
	memcpy(&header, stream->window + stream->packet_at, sizeof(header));
	uint64_t size = header_size(&header);
	return size && size <= left;
}

/* Finds the next good packet; false at the end of the file. */
static bool packet_next(struct vp_stream_reader *stream)
{
	for (;;) {
		if (!window_has_packet(stream))
			window_refill(stream, CHUNK);
		if (!window_has_packet(stream) &&
		    stream->filled - stream->packet_at < VP_PACKET_MAX)
			window_refill(stream, WINDOW);
		size_t left = stream->filled - stream->packet_at;
		if (!left)
			return false;

		const char *bytes = stream->window + stream->packet_at;
		struct vp_packet_header header;
		size_t size = packet_check(bytes, left, stream->trusted, &header);
		if (size) {
			stream->cpu = header.cpu_id;
			stream->health.lost = header.events_discarded;
			stream->cursor.at = bytes + sizeof(header);
			stream->cursor.end = bytes + size;
			stream->packet_at += size;
			stream->health.cut_off = false;
			return true;
		}
		stream->health.cut_off = left < VP_PACKET_MAX;
		skip_damage(stream, left);
	}
}

/* The checksum is right, but here is no record: the rest of the packet is as good as damaged. */
static void drop_rest(struct vp_stream_reader *stream)
{
	struct vp_stream_cursor *cursor = &stream->cursor;

	note_damage(stream, (size_t)(cursor->at - stream->window),
		    (size_t)(cursor->end - cursor->at));
	cursor->at = cursor->end;
}

/* Of the record at hand; 0: it is none. */
static size_t size_at_hand(const struct vp_stream_reader *stream)
{
	size_t left = (size_t)(stream->cursor.end - stream->cursor.at);
	struct vp_defined_record record;
	struct vp_record_header header;
	size_t size;

	if (left < sizeof(header))
		return 0;
	memcpy(&header, stream->cursor.at, sizeof(header));
	size = vp_record_size(header.id);
	if (header.id >= VP_ID_DEFINED && vp_stream_class_has_defined(stream->kind) &&
	    left >= sizeof(record)) {
		memcpy(&record, stream->cursor.at, sizeof(record));
		size = record.size >= sizeof(record) ? record.size : 0;
	}
	return size <= left ? size : 0;
}

const struct vp_record_header *vp_stream_next_slow(struct vp_stream_reader *stream)
{
	struct vp_stream_cursor *cursor = &stream->cursor;

	for (;;) {
		size_t size = cursor->at < cursor->end ? size_at_hand(stream) : 0;
		if (size) {
			const struct vp_record_header *record = (const void *)cursor->at;
			cursor->at += size;
			cursor->records++;
			return record;
		}
		if (cursor->at < cursor->end)
			drop_rest(stream);
		if (!packet_next(stream))
			return NULL;
	}
}

void vp_stream_seek_tail(struct vp_stream_reader *stream, uint64_t bytes)
{
	off_t size = lseek(stream->fd, 0, SEEK_END);

	stream->offset = size > 0 && (uint64_t)size > bytes ? (uint64_t)size - bytes : 0;
	stream->filled = stream->packet_at = 0;
	stream->cursor.at = stream->cursor.end = stream->window;
}

uint64_t vp_stream_size(const struct vp_stream_reader *stream)
{
	struct stat about;

	return fstat(stream->fd, &about) || about.st_size < 0 ? 0 : (uint64_t)about.st_size;
}

/* The first header of a packet in the piece of the file at `*offset`, which moves there. */
static bool find_header_in(const struct vp_stream_reader *stream, char piece[PROBE],
			   uint64_t *offset, struct vp_packet_header *header)
{
	ssize_t got = pread(stream->fd, piece, PROBE, (off_t)*offset);
	const char *end = piece + (got > 0 ? got : 0);

	for (const char *at = piece; (size_t)(end - at) >= sizeof(*header); at++) {
		at = find_magic(at, end);
		if (!at || (size_t)(end - at) < sizeof(*header))
			return false;
		memcpy(header, at, sizeof(*header));
		if (header_size(header)) {
			*offset += (uint64_t)(at - piece);
			return true;
		}
	}
	return false;
}

/* The same for as much of the file as has one: pieces overlap by a header. */
static bool find_header(const struct vp_stream_reader *stream, uint64_t *offset,
			struct vp_packet_header *header)
{
	VP_AUTO_FREE char *piece = vp_alloc(PROBE);
	uint64_t end = *offset + VP_PACKET_MAX + sizeof(*header);

	for (; *offset < end; *offset += PROBE - sizeof(*header))
		if (find_header_in(stream, piece, offset, header))
			return true;
	return false;
}

bool vp_stream_time_near(const struct vp_stream_reader *stream, uint64_t offset, uint64_t *time)
{
	struct vp_packet_header header;
	uint64_t at = offset > VP_PACKET_MAX ? offset - VP_PACKET_MAX : 0;

	if (!find_header(stream, &at, &header))
		return false;
	uint64_t size = header_size(&header);
	while (at + size <= offset) {
		struct vp_packet_header next;
		if (pread(stream->fd, &next, sizeof(next), (off_t)(at + size)) != sizeof(next) ||
		    !header_size(&next))
			break;
		at += size;
		header = next;
		size = header_size(&header);
	}
	uint64_t into = offset <= at ? 0 : offset - at < size ? offset - at : size;
	uint64_t lasts = header.timestamp_end > header.timestamp_begin
			     ? header.timestamp_end - header.timestamp_begin
			     : 0;
	*time = header.timestamp_begin + (uint64_t)((double)lasts * ((double)into / (double)size));
	return true;
}

uint32_t vp_stream_cpu(const struct vp_stream_reader *stream)
{
	return stream->cpu;
}

const char *vp_stream_path(const struct vp_stream_reader *stream)
{
	return stream->path;
}

struct vp_stream_health vp_stream_health(const struct vp_stream_reader *stream)
{
	struct vp_stream_health health = stream->health;

	health.records = stream->cursor.records;
	return health;
}

enum vp_stream_class vp_stream_class(const struct vp_stream_reader *stream)
{
	return stream->kind;
}

static int by_class_and_cpu(const void *a, const void *b)
{
	const struct vp_stream_reader *const *left = a, *const *right = b;

	if ((*left)->kind != (*right)->kind)
		return (*left)->kind < (*right)->kind ? -1 : 1;
	return ((*left)->cpu > (*right)->cpu) - ((*left)->cpu < (*right)->cpu);
}

struct vp_error *vp_trace_open(const char *path, unsigned classes, vp_stream_readers *streams)
{
	DIR *directory = opendir(path);
	struct vp_error *error = NULL;

	if (!directory)
		return vp_error_errno(errno, "cannot open trace directory '%s'", path);
	for (struct dirent *entry; !error && (entry = readdir(directory));) {
		struct vp_stream_id id;
		if (!vp_stream_of_file(entry->d_name, &id) || !(classes & VP_STREAMS(id.kind)))
			continue;
		VP_AUTO_FREE char *file = vp_format("%s/%s", path, entry->d_name);
		struct vp_stream_reader *stream = NULL;
		error = vp_stream_open(file, &stream);
		if (!error)
			vp_vec_push(streams, stream);
	}
	closedir(directory);
	if (error)
		vp_trace_close(streams);
	else if (streams->count)
		qsort(streams->at, streams->count, sizeof(*streams->at), by_class_and_cpu);
	return error;
}

void vp_trace_close(vp_stream_readers *streams)
{
	vp_vec_each (streams, stream)
		vp_stream_free(*stream);
	vp_vec_deinit(streams);
}

enum { CLASSES_LIMIT = 64 * 1024 * 1024 };

struct vp_error *vp_trace_classes(const char *path, vp_event_classes *ret)
{
	VP_AUTO_FREE char *file = vp_format("%s.events", path);
	struct vp_buffer text = {0};

	*ret = (vp_event_classes){0};
	if (access(file, F_OK) && errno == ENOENT)
		return NULL;
	struct vp_error *error = vp_file_read(file, CLASSES_LIMIT, &text);
	if (!error)
		error = vp_event_classes_parse(file, vp_buffer_text(&text), text.size, ret);
	vp_buffer_deinit(&text);
	return error;
}
