/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of trace-cmd. */
#include "collect/importer.h"

#include "collect/import_entries.h"
#include "collect/import_file.h"

enum { USUAL_EVENTS = 1 << 16, LONGEST_NAME = 255 };

struct telling {
	const char *path;
	struct vp_slice bytes;
	const struct vp_import_channel *channel;
	struct vp_tracedat file;
	struct vp_buffer records;
	struct vp_import_entries entries;
};

static void tell_guests(const struct telling *telling)
{
	vp_vec_each (&telling->file.guests, guest) {
		size_t size = guest->name.size < LONGEST_NAME ? guest->name.size : LONGEST_NAME;
		vp_import_tell(
		    telling->channel,
		    (struct vp_import_news){.kind = VP_IMPORT_GUEST, .number = guest->id},
		    guest->name.bytes, size);
		vp_vec_each (&guest->threads, thread)
			vp_import_tell(telling->channel,
				       (struct vp_import_news){.kind = VP_IMPORT_THREAD,
							       .cpu = thread->cpu,
							       .number = thread->tid},
				       NULL, 0);
	}
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
			vp_import_entries_see(&telling->entries, &telling->file, class, raw, 0,
					      telling->channel);
		}
	}
	vp_import_tell(telling->channel, (struct vp_import_news){.kind = VP_IMPORT_SPAN}, span,
		       sizeof(span));
}

static void tell_begin(const struct telling *telling)
{
	struct vp_buffer text = {0};

	vp_event_classes_write(&telling->file.classes, &text);
	vp_import_tell(telling->channel,
		       (struct vp_import_news){.kind = VP_IMPORT_BEGIN, .number = telling->file.id},
		       text.bytes, text.size);
	vp_buffer_deinit(&text);
	vp_import_tell(telling->channel, (struct vp_import_news){.kind = VP_IMPORT_TASKS},
		       telling->file.commands.bytes, telling->file.commands.size);
}

static void tell_events(struct telling *telling, uint32_t cpu)
{
	if (telling->records.size)
		vp_import_tell(telling->channel,
			       (struct vp_import_news){.kind = VP_IMPORT_EVENTS, .cpu = cpu},
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
	vp_import_tell(
	    telling->channel,
	    (struct vp_import_news){.kind = VP_IMPORT_MISSED, .cpu = cpu, .number = walk.missed},
	    NULL, 0);
	vp_import_tell(telling->channel,
		       (struct vp_import_news){
			   .kind = VP_IMPORT_STRANGE, .cpu = cpu, .number = walk.malformed},
		       NULL, 0);
}

static struct vp_error *tell_all(void *state, const struct vp_import_channel *channel)
{
	struct telling *telling = state;

	telling->channel = channel;
	VP_TRY(vp_tracedat_open(telling->path, telling->bytes, &telling->file));
	vp_import_tell(
	    channel,
	    (struct vp_import_news){.kind = VP_IMPORT_CPUS, .number = telling->file.cpus.count},
	    NULL, 0);
	if (vp_tracedat_is_unshifted(&telling->file))
		vp_import_tell(channel, (struct vp_import_news){.kind = VP_IMPORT_UNSHIFTED}, NULL,
			       0);
	tell_guests(telling);
	survey(telling);
	tell_begin(telling);
	for (uint32_t cpu = 0; cpu < telling->file.cpus.count; cpu++)
		tell_cpu(telling, cpu);
	return NULL;
}

static struct vp_error *open_file(const char *path, void **state)
{
	struct telling *telling = vp_alloc(sizeof(*telling));

	*telling = (struct telling){.path = path};
	*state = telling;
	return vp_import_file_map(path, &telling->bytes);
}

static bool begins_like_one(const char *path)
{
	static const char magic[] = VP_TRACEDAT_MAGIC;

	return vp_import_file_begins(path, magic, sizeof(magic) - 1);
}

const struct vp_importer *vp_importer_tracedat(void)
{
	static const struct vp_importer importer = {.name = "trace.dat",
						    .summary = "a file of trace-cmd",
						    .knows = begins_like_one,
						    .open = open_file,
						    .tell = tell_all};

	return &importer;
}
