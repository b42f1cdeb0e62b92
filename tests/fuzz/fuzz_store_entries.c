/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A store with an entry of anybody's. The first byte chooses the file that is the fuzzer's:
 * 0 `recording`, 1 `vms`, 2 a stream, 3 none: the entry is a file; then comes the entry's name, up
 * to a newline, then the file. The store is listed, and cleared as vperfd would do it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "render/render_history.h"
#include "store/history.h"
#include "store/retention.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define STORE "store-entries"

static const char good_recording[] =
    "vperf-recording 6\ntrigger cycles\nperiod_ns 1000000\nby_time 0\n"
    "pcpus 2\nstart 1\nrecords 3\nlost 0\nend 100000000\n";
static const char good_vms[] = "vperf-vms 6\nvm 1000 1000 7 1 0 1 3 - one\nvcpu 0 1001\n";

static void put_file(const char *directory, const char *name, const void *bytes, size_t size)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s", directory, name);
	FILE *file = fopen(path, "w");

	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
		abort();
}

static void put_entry(const char *path, uint8_t choice, const uint8_t *bytes, size_t size)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", path);

	if (choice % 4 == 3 || mkdir(path, 0700) || mkdir(host, 0700))
		return;
	put_file(path, "recording", good_recording, sizeof(good_recording) - 1);
	put_file(path, "vms", good_vms, sizeof(good_vms) - 1);
	put_file(path,
		 choice % 4 == 0   ? "recording"
		 : choice % 4 == 1 ? "vms"
				   : "host/account",
		 bytes, size);
}

static void list(void)
{
	struct vp_listed_store listed = {.path = STORE};
	struct vp_buffer out = {0};

	if (vp_history_read(STORE, &listed.history) || listed.history.count != 1)
		abort();
	vp_render_history_text(&listed, 0, false, &out);
	vp_render_history_json(&listed, &out);
	for (size_t i = 0; i < out.size; i++)
		if ((unsigned char)out.bytes[i] < ' ' && out.bytes[i] != '\n')
			abort();
	vp_buffer_deinit(&out);
	vp_history_deinit(&listed.history);
}

/* All goes that vperfd could have made, and nothing else. */
static void clear_store(void)
{
	const struct vp_retention limits = {.keep_bytes = 1};
	const struct vp_age_moment now = {.realtime = UINT64_MAX, .boot = ""};
	enum vp_removal why;
	vp_history history;
	uint32_t index;
	size_t others = 0;

	if (vp_history_read(STORE, &history))
		abort();
	vp_vec_each (&history, kept)
		others += kept->kind == VP_KEPT_FOREIGN || kept->is_open;
	while ((index = vp_retention_next(&history, &limits, &now, 0, UINT64_MAX, &why)) !=
	       VP_NONE) {
		if (history.at[index].kind == VP_KEPT_FOREIGN || vp_history_remove(&history, index))
			abort();
	}
	if (history.count != others)
		abort();
	vp_history_deinit(&history);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const uint8_t *end = size ? memchr(bytes + 1, '\n', size - 1) : NULL;

	if (!end)
		return 0;
	VP_AUTO_FREE char *name = vp_strndup((const char *)bytes + 1, (size_t)(end - bytes) - 1);
	if (!*name || strlen(name) > 200 || strchr(name, '/') || name[0] == '.' ||
	    !strcmp(name, VP_HISTORY_LOCK) || !strcmp(name, VP_HISTORY_FINDINGS) ||
	    !strcmp(name, VP_HISTORY_SPOOL) ||
	    !strncmp(name, VP_HISTORY_FLIGHT, sizeof(VP_HISTORY_FLIGHT) - 1))
		return 0;
	vp_file_remove_all(STORE);
	if (mkdir(STORE, 0700))
		abort();
	VP_AUTO_FREE char *path = vp_format(STORE "/%s", name);
	put_entry(path, bytes[0], end + 1, size - (size_t)(end + 1 - bytes));
	if (bytes[0] % 4 == 3)
		put_file(STORE, name, end + 1, size - (size_t)(end + 1 - bytes));
	list();
	clear_store();
	return 0;
}
