/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/notes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/vec.h"

static const char prefix[] = "VM '", infix[] = "': ";
enum { NAMED = 3 };

/* The note's text after "VM 'NAME': ", and the quoted name; NULL: the note is not about a VM. */
static const char *note_of_vm(const char *note, struct vp_slice *name)
{
	const char *end = strncmp(note, prefix, sizeof(prefix) - 1) ? NULL : strstr(note, infix);

	if (!end)
		return NULL;
	*name = (struct vp_slice){note + sizeof(prefix) - 2,
				  (size_t)(end - note) - (sizeof(prefix) - 2) + 1};
	return end + sizeof(infix) - 1;
}

static bool says_the_same(const char *note, const char *rest, struct vp_slice *name)
{
	const char *own = note_of_vm(note, name);

	return own && !strcmp(own, rest);
}

static bool is_repeated(const vp_sentences *notes, size_t number, const char *rest)
{
	struct vp_slice name;

	for (size_t i = 0; i < number; i++)
		if (says_the_same(notes->at[i], rest, &name))
			return true;
	return false;
}

/* The note, merged with later ones that differ only in the VM. */
static char *fold_from(const vp_sentences *notes, size_t number, const char *rest)
{
	struct vp_buffer text = {0};
	struct vp_slice name;
	size_t count = 0;

	for (size_t i = number; i < notes->count; i++)
		if (says_the_same(notes->at[i], rest, &name) && count++ < NAMED)
			vp_buffer_printf(&text, "%s%.*s", count > 1 ? ", " : "", (int)name.size,
					 name.bytes);
	char *folded = count > NAMED ? vp_format("VMs %s and %zu more (-v lists them): %s",
						 vp_buffer_text(&text), count - NAMED, rest)
				     : vp_format("VM%s %s: %s", count > 1 ? "s" : "",
						 vp_buffer_text(&text), rest);
	vp_buffer_deinit(&text);
	return folded;
}

void vp_notes_fold(const vp_sentences *notes, vp_sentences *ret)
{
	struct vp_slice name;

	for (size_t i = 0; i < notes->count; i++) {
		const char *rest = note_of_vm(notes->at[i], &name);
		if (!rest)
			vp_vec_push(ret, vp_strdup(notes->at[i]));
		else if (!is_repeated(notes, i, rest))
			vp_vec_push(ret, fold_from(notes, i, rest));
	}
}
