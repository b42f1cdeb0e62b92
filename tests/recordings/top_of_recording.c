/* SPDX-License-Identifier: GPL-2.0-or-later */
/* usage: top_of_recording DIRECTORY
 *
 * Prints the screen and the tables of `vperf top`, as if its update were the whole recording. */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/account/account_recording.h"
#include "analyze/account/account_tables.h"
#include "analyze/report/live.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "render/render_table.h"
#include "render/top.h"

enum { WIDTH = 200, HEIGHT = 60 };

void vp_alloc_failed(void)
{
	fprintf(stderr, "top_of_recording: out of memory\n");
	exit(1);
}

int main(int argc, char **argv)
{
	struct vp_account_recording rec;
	struct vp_account_view view;
	struct vp_live live = {0};
	struct vp_table exits = {0}, thieves = {0}, vcpus = {0};
	struct vp_buffer out = {0};
	struct vp_error *error = argc == 2 ? vp_account_recording_open(argv[1], NULL, &rec)
					   : vp_error_new("usage: top_of_recording DIRECTORY");
	if (!error)
		error = vp_account_view_init(&view, &rec.account, NULL);
	if (error) {
		fprintf(stderr, "top_of_recording: %s\n", vp_error_message(error));
		return 1;
	}
	view.seconds = rec.duration;
	vp_account_vcpus_table(&view, &vcpus);
	vp_account_exits_table(&view, &exits);
	vp_account_steal_table(&view, &thieves);
	vp_live_take(&live, &view);
	const struct vp_top top = {.order.sort = VP_LIVE_STEAL};
	const struct vp_top_screen screen = {.width = WIDTH,
					     .height = HEIGHT,
					     .seconds = rec.duration,
					     .live = &live,
					     .vms = &rec.vms,
					     .exits = &exits,
					     .thieves = &thieves};
	vp_top_draw(&top, &screen, &out);
	vp_buffer_string(&out, "\f"); /* the form feed ends the screen */
	vp_render_table_csv(&vcpus, true, &out);
	vp_buffer_string(&out, "\f");
	vp_render_table_csv(&thieves, true, &out);
	fputs(vp_buffer_text(&out), stdout);
	vp_buffer_deinit(&out);
	vp_live_deinit(&live);
	vp_table_deinit(&vcpus);
	vp_table_deinit(&exits);
	vp_table_deinit(&thieves);
	vp_account_view_deinit(&view);
	vp_account_recording_close(&rec);
	return 0;
}
