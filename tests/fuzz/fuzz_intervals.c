/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording of intervals from anywhere: the first byte chooses which of its files is the
 * fuzzer's: 0 records in a packet with a good checksum, 1 `recipe`, 2 `vms`. The others are sound.
 * It is made a data set of, and written in all formats.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "render/render_intervals.h"
#include "store/packet.h"
#include "table/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char good_recording[] =
    "vperf-recording 6\nperiod_ns 1000000\npcpus 2\nstart 1\nrecords 3\nlost 0\nend 100000000\n";
static const char good_vms[] = "vperf-vms 6\nvm 1000 1000 7 1 0 1 3 - one\nvcpu 0 1001\n";
static const char good_recipe[] = "per task\ncount instructions cycles exits\nset branches\n";

static void put_file(const char *directory, const char *name, const void *bytes, size_t size)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s", directory, name);
	FILE *file = fopen(path, "w");

	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
		abort();
}

/* Puts a sound header before the records. */
static void put_packet(const char *directory, const uint8_t *records, size_t size)
{
	struct vp_packet_header header = {.magic = VP_PACKET_MAGIC};
	struct vp_buffer packet = {0};

	header.packet_size = header.content_size = 8 * (sizeof(header) + size);
	header.checksum = vp_packet_checksum(&header, records, size);
	vp_buffer_append(&packet, &header, sizeof(header));
	vp_buffer_append(&packet, records, size);
	put_file(directory, "host/intervals-cpu0", packet.bytes, packet.size);
	vp_buffer_deinit(&packet);
}

/* One interval that counted something of everything. */
static void put_good_packet(const char *directory)
{
	struct {
		struct vp_interval head;
		struct vp_interval_value values[4];
	} interval = {
	    .head = {.time = 50,
		     .id = VP_ID_interval,
		     .owner = 1000,
		     .tid = 1001,
		     .values = 4,
		     .begin = 40},
	};

	for (unsigned i = 0; i < VP_ARRAY_SIZE(interval.values); i++)
		interval.values[i] = (struct vp_interval_value){.time = 50,
								.id = VP_ID_interval_value,
								.place = i,
								.live = VP_LIVE_ALL / (i + 1),
								.value = 7 * i + 1};
	put_packet(directory, (const uint8_t *)&interval, sizeof(interval));
}

static void put_all(const char *directory, const uint8_t *bytes, size_t size)
{
	put_file(directory, "recording", good_recording, sizeof(good_recording) - 1);
	put_file(directory, "vms", good_vms, sizeof(good_vms) - 1);
	put_file(directory, "recipe", good_recipe, sizeof(good_recipe) - 1);
	put_good_packet(directory);
	if (bytes[0] % 3 == 0)
		put_packet(directory, bytes + 1, size - 1);
	else
		put_file(directory, bytes[0] % 3 == 1 ? "recipe" : "vms", bytes + 1, size - 1);
}

static void put_data(const struct vp_interval_recording *rec, const char *base,
		     struct vp_buffer *out)
{
	struct vp_interval_choice choice = {
	    .base = base, .per = 1000, .subjects = true, .live = true, .partial = !base};
	struct vp_data data;
	struct vp_error *error = vp_interval_data(rec, &choice, &data);

	if (!error) {
		vp_dataset_write_csv(&data, out);
		vp_dataset_write_arff(&data, out);
		vp_data_deinit(&data);
	}
	vp_error_free(error);
}

static void report(const char *directory)
{
	struct vp_interval_recording rec;
	struct vp_buffer out = {0};
	struct vp_error *error = vp_interval_recording_open(directory, &rec);

	if (error) {
		vp_error_free(error);
		return;
	}
	const char *base = vp_interval_usual_base(&rec);
	vp_render_intervals_text(&rec, base, 1000, 0, &out);
	vp_render_intervals_json(&rec, &out);
	put_data(&rec, base, &out);
	put_data(&rec, NULL, &out);
	/* Whoever wrote the recording, its names do no harm to a terminal. */
	for (size_t i = 0; i < out.size; i++)
		if ((unsigned char)out.bytes[i] < ' ' && out.bytes[i] != '\n')
			abort();
	vp_buffer_deinit(&out);
	vp_interval_recording_close(&rec);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static char directory[] = "fuzz-intervals.XXXXXX";
	static bool made;

	if (!size || size > VP_PACKET_MAX - sizeof(struct vp_packet_header))
		return 0;
	if (!made && !mkdtemp(directory))
		abort();
	VP_AUTO_FREE char *host = vp_format("%s/host", directory);
	if (!made && mkdir(host, 0700))
		abort();
	made = true;
	put_all(directory, bytes, size);
	report(directory);
	return 0;
}
