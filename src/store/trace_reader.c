/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/trace_reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/io.h"
#include "schema/records.h"
#include "store/packet_states.h"
#include "store/packet_zstd.h"

/* Size of a read, in whole packets: buffers of many streams fit into the CPU caches. */
enum {
	LONGEST = VP_ZSTD_PACKET_MAX, /* maximum size of a packet in a file, compressed or not */
	WINDOW = 2 * LONGEST,
	CHUNK = 64 * 1024,
	PROBE = 64 * 1024
};

struct vp_stream_reader {
	struct vp_stream_cursor cursor; /* must be first: see vp_stream_next() */
	char *path;
	int fd;
	bool borrowed; /* the descriptor belongs to another reader */
	bool trusted;  /* checksums are not verified */
	bool follows;  /* the file is being written */
	enum vp_stream_class kind;
	uint32_t cpu;
	char *window;                          /* a part of the file … */
	uint64_t offset;                       /* … from here … */
	size_t filled;                         /* … of this size */
	size_t packet_at;                      /* in the window: start of the next packet */
	size_t at_hand;                        /* … and of the packet with the cursor's records */
	const struct vp_packet_header *packet; /* that packet; NULL: none so far */
	struct vp_unpacker *unpacker;          /* of a compressed stream; else NULL */
	struct vp_buffer states;               /* expanded records of a packet of states */
	struct vp_stream_health health;
};

/* Sets the stream's id from the file name; other names are read as a pCPU's stream. */
static void set_id(struct vp_stream_reader *stream)
{
	const char *name = strrchr(stream->path, '/');
	struct vp_stream_id id;

	if (!vp_stream_of_file(name ? name + 1 : stream->path, &id))
		return;
	stream->kind = id.kind;
	stream->cursor.has_defined = vp_stream_class_has_defined(id.kind);
	stream->cpu = id.pcpu;
}

static void make_window(struct vp_stream_reader *stream)
{
	stream->window = vp_alloc(WINDOW + VP_RECORD_ROOM);
	stream->cursor.at = stream->cursor.end = stream->window;
	if (vp_stream_is_compressed(stream->path))
		stream->unpacker = vp_unpacker_new();
}

struct vp_error *vp_stream_open(const char *path, struct vp_stream_reader **ret)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* pipes then read as empty */

	if (fd < 0)
		return vp_error_errno(errno, "cannot open stream '%s'", path);
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	struct vp_stream_reader *stream = vp_alloc_apart(sizeof(*stream));
	stream->path = vp_strdup(path);
	set_id(stream);
	stream->fd = fd;
	make_window(stream);
	*ret = stream;
	return NULL;
}

struct vp_stream_reader *vp_stream_again(const struct vp_stream_reader *of)
{
	struct vp_stream_reader *stream = vp_alloc_apart(sizeof(*stream));

	stream->path = vp_strdup(of->path);
	set_id(stream);
	stream->fd = of->fd;
	stream->borrowed = true;
	make_window(stream);
	return stream;
}

void vp_stream_rewind(struct vp_stream_reader *stream)
{
	stream->offset = 0;
	stream->filled = stream->packet_at = 0;
	stream->cursor.at = stream->cursor.end = stream->window;
	stream->cursor.records = 0;
	stream->health = (struct vp_stream_health){0};
	stream->trusted = false;
	stream->packet = NULL;
	memset(stream->window, 0, sizeof(struct vp_record_header));
}

void vp_stream_trust(struct vp_stream_reader *stream, bool trusted)
{
	stream->trusted = trusted;
}

void vp_stream_follow(struct vp_stream_reader *stream)
{
	stream->follows = true;
}

void vp_stream_free(struct vp_stream_reader *stream)
{
	if (!stream)
		return;
	if (!stream->borrowed)
		close(stream->fd);
	vp_unpacker_free(stream->unpacker);
	vp_buffer_deinit(&stream->states);
	free(stream->window);
	free(stream->path);
	free(stream);
}

/* Moves the unread rest to the front of the window and reads more after it, up to `most` bytes. */
static void window_refill(struct vp_stream_reader *stream, size_t most)
{
	memmove(stream->window, stream->window + stream->packet_at,
		stream->filled - stream->packet_at);
	stream->offset += stream->packet_at;
	stream->filled -= stream->packet_at;
	stream->packet_at = 0;
	while (stream->filled < most) {
		ssize_t got =
		    vp_pread(stream->fd, stream->window + stream->filled, most - stream->filled,
			     (off_t)(stream->offset + stream->filled));
		if (got <= 0)
			return;
		stream->filled += (size_t)got;
	}
}

/* A packet in the file. */
struct found {
	struct vp_zstd_lead lead; /* only the header is set if not compressed */
	uint64_t size;            /* bytes of the file; 0 if it is not one */
};

/* Bytes needed to determine the size of a packet. */
static size_t begin_size(const struct vp_stream_reader *stream)
{
	return stream->unpacker ? sizeof(struct vp_zstd_lead) : sizeof(struct vp_packet_header);
}

static struct found trace_reader_packet_at(const struct vp_stream_reader *stream, const char *bytes,
					   size_t left)
{
	struct found found = {.size = 0};

	if (left < begin_size(stream))
		return found;
	if (stream->unpacker) {
		memcpy(&found.lead, bytes, sizeof(found.lead));
		found.size = vp_zstd_packet_size(&found.lead);
	} else {
		memcpy(&found.lead.header, bytes, sizeof(found.lead.header));
		found.size = vp_packet_header_size(&found.lead.header);
	}
	return found;
}

/* The packet's header and records; NULL: damaged. */
static const char *packet_bytes(const struct vp_stream_reader *stream, const struct found *found,
				const char *bytes)
{
	const struct vp_packet_header *header = &found->lead.header;
	const char *packet = stream->unpacker ? vp_unpacker_unpack(stream->unpacker, &found->lead,
								   bytes + sizeof(found->lead))
					      : bytes;

	if (packet && !stream->trusted &&
	    header->checksum != vp_packet_checksum(header, packet + sizeof(*header),
						   vp_packet_header_size(header) - sizeof(*header)))
		return NULL;
	return packet;
}

static void note_damage(struct vp_stream_reader *stream, size_t at, size_t size)
{
	if (!stream->health.damaged)
		stream->health.damaged_at = stream->offset + at;
	stream->health.damaged += size;
}

/* Position of the next possible packet. Much faster than memmem(), which compares byte by byte. */
static const char *find_magic(const struct vp_stream_reader *stream, const char *at,
			      const char *end)
{
	const uint32_t magic = stream->unpacker ? VP_ZSTD_LEAD_MAGIC : VP_PACKET_MAGIC;

	for (; (size_t)(end - at) >= sizeof(magic); at++) {
		at = memchr(at, magic & 0xff, (size_t)(end - at) - sizeof(magic) + 1);
		if (!at || !memcmp(at, &magic, sizeof(magic)))
			return at;
	}
	return NULL;
}

/* Skips invalid bytes up to the next possible packet. */
static void skip_damage(struct vp_stream_reader *stream, size_t left)
{
	const char *from = stream->window + stream->packet_at;
	const char *found = find_magic(stream, from + 1, from + left);
	size_t skip = found ? (size_t)(found - from) : left > 3 ? left - 3 : left;

	note_damage(stream, stream->packet_at, skip);
	stream->packet_at += skip;
}

/* Whether the next packet is completely in the window, if the bytes are a packet. */
static bool window_has_packet(const struct vp_stream_reader *stream)
{
	size_t left = stream->filled - stream->packet_at;
	struct found found =
	    trace_reader_packet_at(stream, stream->window + stream->packet_at, left);

	return found.size && found.size <= left;
}

static void note_packet(struct vp_stream_reader *stream)
{
	note_damage(stream, stream->at_hand, stream->packet_at - stream->at_hand);
}

/* Expands the packet's states for the cursor. */
static void take_states(struct vp_stream_reader *stream)
{
	struct vp_stream_cursor *cursor = &stream->cursor;
	size_t size = (size_t)(cursor->end - cursor->at);

	stream->states.size = 0;
	if (vp_states_unpack(cursor->at, size, &stream->states) != size)
		note_packet(stream);
	size = stream->states.size;
	/* Padding, as after all packets. */
	memset(vp_buffer_extend(&stream->states, VP_RECORD_ROOM), 0, VP_RECORD_ROOM);
	cursor->at = stream->states.bytes;
	cursor->end = cursor->at + size;
}

/* Sets the cursor to the packet's records. */
static void packet_take(struct vp_stream_reader *stream, const struct found *found,
			const char *packet)
{
	const struct vp_packet_header *header = &found->lead.header;

	stream->cpu = header->cpu_id;
	stream->health.lost = header->events_discarded;
	stream->health.cut_off = false;
	stream->packet = (const void *)packet;
	stream->cursor.at = packet + sizeof(*header);
	stream->cursor.end = packet + vp_packet_header_size(header);
	stream->at_hand = stream->packet_at;
	stream->packet_at += found->size;
	if (stream->kind == VP_STREAM_STATES)
		take_states(stream);
}

/* Whether the rest of the file may be an incomplete packet. */
static bool may_be_begun(const struct vp_stream_reader *stream, const struct found *found,
			 size_t left)
{
	return left < begin_size(stream) || (found->size > left && found->size <= LONGEST);
}

/* The next valid packet; NULL at the end of the file. */
static const char *packet_find(struct vp_stream_reader *stream, struct found *found)
{
	for (;;) {
		if (!window_has_packet(stream))
			window_refill(stream, CHUNK);
		if (!window_has_packet(stream) && stream->filled - stream->packet_at < LONGEST)
			window_refill(stream, WINDOW);
		size_t left = stream->filled - stream->packet_at;
		if (!left)
			return NULL;

		const char *bytes = stream->window + stream->packet_at;
		*found = trace_reader_packet_at(stream, bytes, left);
		const char *packet =
		    found->size && found->size <= left ? packet_bytes(stream, found, bytes) : NULL;
		if (packet)
			return packet;
		if (stream->follows && may_be_begun(stream, found, left))
			return NULL;
		stream->health.cut_off = left < LONGEST;
		skip_damage(stream, left);
	}
}

static bool packet_next(struct vp_stream_reader *stream)
{
	struct found found;
	const char *packet = packet_find(stream, &found);

	if (packet)
		packet_take(stream, &found, packet);
	return packet;
}

const struct vp_packet_header *vp_stream_next_packet(struct vp_stream_reader *stream)
{
	struct found found;
	const char *packet = packet_find(stream, &found);

	if (packet)
		stream->packet_at += found.size;
	return (const void *)packet;
}

/* Valid checksum, but invalid records: counts the rest of the packet as damaged. */
static void drop_rest(struct vp_stream_reader *stream)
{
	struct vp_stream_cursor *cursor = &stream->cursor;

	if (stream->unpacker) /* position unknown in a compressed file */
		note_packet(stream);
	else
		note_damage(stream, (size_t)(cursor->at - stream->window),
			    (size_t)(cursor->end - cursor->at));
	cursor->at = cursor->end;
}

/* Size of the current record; 0: it is invalid. */
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
	if (header.id >= VP_ID_DEFINED && stream->cursor.has_defined && left >= sizeof(record)) {
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

/* The packet that starts at this offset of the file. */
static struct found packet_of_file(const struct vp_stream_reader *stream, uint64_t offset)
{
	char bytes[sizeof(struct vp_zstd_lead)];
	uint64_t at = offset - stream->offset;

	if (offset >= stream->offset && at + begin_size(stream) <= stream->filled)
		return trace_reader_packet_at(stream, stream->window + at, stream->filled - at);
	ssize_t got = vp_pread(stream->fd, bytes, begin_size(stream), (off_t)offset);
	return trace_reader_packet_at(stream, bytes, got > 0 ? (size_t)got : 0);
}

static bool packet_is_next(const struct found *found, uint32_t number, uint64_t until)
{
	const struct vp_packet_header *header = &found->lead.header;

	return found->size && header->flags & VP_PACKET_CONTINUES &&
	       header->packet_seq_num == number && header->timestamp_end < until;
}

uint64_t vp_stream_position(const struct vp_stream_reader *stream)
{
	return stream->offset + stream->packet_at;
}

void vp_stream_seek(struct vp_stream_reader *stream, uint64_t position)
{
	if (position >= stream->offset && position - stream->offset <= stream->filled) {
		stream->packet_at = (size_t)(position - stream->offset);
	} else {
		stream->offset = position;
		stream->filled = stream->packet_at = 0;
	}
	stream->cursor.at = stream->cursor.end;
}

uint32_t vp_stream_skip_continuing(struct vp_stream_reader *stream, uint64_t until)
{
	uint64_t position = vp_stream_position(stream);
	struct found next, second;
	uint32_t number, skipped = 0;

	if (!stream->packet || stream->cursor.at < stream->cursor.end)
		return 0;
	number = stream->packet->packet_seq_num + 1;
	next = packet_of_file(stream, position);
	for (; packet_is_next(&next, number, until); number++, skipped++) {
		second = packet_of_file(stream, position + next.size);
		if (!packet_is_next(&second, number + 1, until))
			break;
		position += next.size;
		next = second;
	}
	if (skipped)
		vp_stream_seek(stream, position);
	return skipped;
}

const struct vp_packet_header *vp_stream_packet(const struct vp_stream_reader *stream)
{
	return stream->packet;
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

/* The first packet in the part of the file at `*offset`, which is advanced. */
static bool find_packet_in(const struct vp_stream_reader *stream, char piece[PROBE],
			   uint64_t *offset, struct found *found)
{
	ssize_t got = vp_pread(stream->fd, piece, PROBE, (off_t)*offset);
	const char *end = piece + (got > 0 ? got : 0);

	for (const char *at = piece; (size_t)(end - at) >= begin_size(stream); at++) {
		at = find_magic(stream, at, end);
		if (!at)
			return false;
		*found = trace_reader_packet_at(stream, at, (size_t)(end - at));
		if (found->size) {
			*offset += (uint64_t)(at - piece);
			return true;
		}
	}
	return false;
}

/* The same for the whole file: parts overlap by the size of a packet's magic. */
static bool find_packet(const struct vp_stream_reader *stream, uint64_t *offset,
			struct found *found)
{
	VP_AUTO_FREE char *piece = vp_alloc(PROBE);
	uint64_t end = *offset + LONGEST + begin_size(stream);

	for (; *offset < end; *offset += PROBE - begin_size(stream))
		if (find_packet_in(stream, piece, offset, found))
			return true;
	return false;
}

bool vp_stream_time_near(const struct vp_stream_reader *stream, uint64_t offset, uint64_t *time)
{
	struct found found;
	uint64_t at = offset > LONGEST ? offset - LONGEST : 0;

	if (!find_packet(stream, &at, &found))
		return false;
	while (at + found.size <= offset) {
		struct found next = packet_of_file(stream, at + found.size);
		if (!next.size)
			break;
		at += found.size;
		found = next;
	}
	const struct vp_packet_header *header = &found.lead.header;
	uint64_t into = offset <= at ? 0 : offset - at < found.size ? offset - at : found.size;
	uint64_t lasts = header->timestamp_end > header->timestamp_begin
			     ? header->timestamp_end - header->timestamp_begin
			     : 0;
	*time = header->timestamp_begin +
		(uint64_t)((double)lasts * ((double)into / (double)found.size));
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
