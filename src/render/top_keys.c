/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/live.h"
#include "base/macros.h"
#include "base/vec.h"
#include "render/top.h"

#include <string.h>

enum { ESCAPE = 27, PAGE = 10 };

/* Selects the next or previous VM by number; after the last one, all VMs. */
static void top_keys_choose_vm(struct vp_top *top, const struct vp_live *live, bool backwards)
{
	const struct vp_live_order all = {.by_vm = true, .sort = VP_LIVE_VALUES};
	vp_live_rows vms = {0};
	size_t index = 0; /* 0: all VMs */

	vp_live_rows_make(live, &all, &vms);
	for (size_t i = 0; top->order.has_vm && i < vms.count; i++)
		if (vms.at[i]->vm == top->order.vm)
			index = i + 1;
	index = (index + (backwards ? vms.count : 1)) % (vms.count + 1);
	top->order.has_vm = index > 0;
	top->order.vm = index ? vms.at[index - 1]->vm : 0;
	top->first = 0;
	vp_vec_deinit(&vms);
}

static void scroll(struct vp_top *top, const struct vp_live *live, bool up, size_t rows)
{
	vp_live_rows shown = {0};

	vp_live_rows_make(live, &top->order, &shown);
	if (!up)
		top->first = top->first + rows < shown.count ? top->first + rows : shown.count;
	else
		top->first = top->first > rows ? top->first - rows : 0;
	vp_vec_deinit(&shown);
}

static void sort_by(struct vp_top *top, unsigned value)
{
	top->order.sort = value % (VP_LIVE_VALUES + 1);
	top->first = 0;
}

static bool take_sort_key(struct vp_top *top, char key)
{
	static const char keys[VP_LIVE_VALUES + 2] = "goitxn"; /* by enum vp_live_value */
	const char *found = key ? strchr(keys, key) : NULL;

	if (found)
		sort_by(top, (unsigned)(found - keys));
	else if (key == '>')
		sort_by(top, top->order.sort + 1);
	else if (key == '<')
		sort_by(top, top->order.sort + VP_LIVE_VALUES);
	return found || key == '>' || key == '<';
}

static void take_key(struct vp_top *top, char key, const struct vp_live *live)
{
	bool help = top->help;

	top->help = false; /* any key closes the help */
	if (take_sort_key(top, key))
		return;
	switch (key) {
	case '?':
	case 'h':
		top->help = !help;
		break;
	case 'q':
		top->quit = true;
		break;
	case 'f':
	case ' ':
		top->frozen = !top->frozen;
		break;
	case 'v':
	case 'V':
		top_keys_choose_vm(top, live, key == 'V');
		break;
	case 'a':
		top->order.has_vm = false;
		break;
	case 'c':
		top->order.by_vm = !top->order.by_vm;
		top->first = 0;
		break;
	case 'j':
	case 'k':
		scroll(top, live, key == 'k', 1);
		break;
	default:
		break;
	}
}

/* Handles a complete multi-byte key. */
static void take_escape(struct vp_top *top, const struct vp_live *live)
{
	static const struct {
		const char *bytes;
		bool up;
		size_t rows;
	} keys[] = {{"[A", true, 1},        {"OA", true, 1},        {"[B", false, 1},
		    {"OB", false, 1},       {"[5~", true, PAGE},    {"[6~", false, PAGE},
		    {"[H", true, SIZE_MAX}, {"[1~", true, SIZE_MAX}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(keys); i++)
		if (strlen(keys[i].bytes) == top->escaped - 1 &&
		    !memcmp(keys[i].bytes, top->escape + 1, top->escaped - 1))
			scroll(top, live, keys[i].up, keys[i].rows);
}

void vp_top_key(struct vp_top *top, char byte, const struct vp_live *live)
{
	bool introduces = top->escaped == 1 && (byte == '[' || byte == 'O');

	if (byte == ESCAPE) {
		top->escape[0] = byte;
		top->escaped = 1;
		top->help = false;
	} else if (!top->escaped || (top->escaped == 1 && !introduces)) {
		top->escaped = 0;
		take_key(top, byte, live);
	} else {
		/* Sequences end with a letter or '~'. Longer ones are unknown. */
		if (top->escaped < sizeof(top->escape))
			top->escape[top->escaped] = byte;
		top->escaped++;
		if (introduces || byte < '@' || byte > '~')
			return;
		if (top->escaped <= sizeof(top->escape))
			take_escape(top, live);
		top->escaped = 0;
	}
}
