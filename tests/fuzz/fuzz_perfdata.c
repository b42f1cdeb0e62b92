/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file of perf record. */
#include "base/buffer.h"
#include "import/perf/perf_spaces.h"
#include "import/tracedat/tracedat.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void look_at(struct vp_perfdata *file, struct vp_tracedat *formats)
{
	struct vp_buffer out = {0};
	struct vp_perf_spaces spaces;
	struct vp_maps_writer maps;

	vp_perf_spaces_init(&spaces, file, 0);
	vp_maps_writer_init(&maps, -1);

	struct vp_perfdata_record record;
	for (vp_perfdata_rewind(file); vp_perfdata_next(file, &record);) {
		vp_perf_spaces_take(&spaces, &record);
		struct vp_cursor common = vp_cursor_of(record.raw.bytes, record.raw.size);
		uint32_t class = vp_tracedat_class(formats, vp_cursor_u16(&common));
		out.size = 0;
		if (class != VP_TRACEDAT_NO_CLASS)
			vp_tracepoint_convert(&formats->classes.at[class],
					      &formats->layouts.at[class], record.time, record.raw,
					      &out);
	}
	vp_perf_spaces_write(&spaces, &maps);
	vp_maps_writer_deinit(&maps);
	vp_perf_spaces_deinit(&spaces);
	vp_buffer_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct vp_buffer whole = {0};
	struct vp_perfdata file;
	struct vp_tracedat formats;

	vp_buffer_append(&whole, VP_PERFDATA_MAGIC, sizeof(VP_PERFDATA_MAGIC) - 1);
	vp_buffer_append(&whole, bytes, size);
	const struct vp_slice bytes_of_file = {whole.bytes, whole.size};
	struct vp_error *error = vp_perfdata_open("fuzz", &bytes_of_file, 1, &file);
	if (!error) {
		error = vp_tracedat_open_formats("fuzz", file.tracing, &formats);
		if (error)
			formats = (struct vp_tracedat){0};
		look_at(&file, &formats);
		vp_tracedat_close(&formats);
		vp_perfdata_close(&file);
	}
	vp_error_free(error);
	vp_buffer_deinit(&whole);
	return 0;
}
