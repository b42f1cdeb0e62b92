/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/symbols/kernel_code.h"

#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"

enum {
	MAX_PIECES = 1 << 16,
	LARGEST_PIECE = 16 << 20,
	LONGEST_NAME = 512, /* KSYM_NAME_LEN; 128 until v6.1 */
};

/* Writes the symbols of an entry; false: invalid entry. */
typedef bool (*take_entry)(const struct vp_guest_kernel *kernel, uint64_t entry,
			   struct vp_maps_writer *writer);

static bool write_piece(struct vp_maps_writer *writer, uint64_t start, uint64_t size,
			const char *name, const char *module)
{
	uint64_t end;

	if (!(start >> 63) || !size || size > LARGEST_PIECE ||
	    __builtin_add_overflow(start, size, &end) || !name[0])
		return false;
	vp_maps_write_kernel_symbol(writer, start, size, 't', name, module);
	return true;
}

/* Writes the symbol of a struct bpf_ksym: of a program, a trampoline, or a dispatcher. */
static bool write_bpf(const struct vp_guest_kernel *kernel, uint64_t entry,
		      struct vp_maps_writer *writer)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const struct vp_guest_view *view = &kernel->view;
	char name[LONGEST_NAME];
	uint64_t start, end;

	return vp_guest_view_u64(view, entry + pack->at.ksym_start, &start) &&
	       vp_guest_view_u64(view, entry + pack->at.ksym_end, &end) &&
	       vp_guest_view_string(view, entry + pack->at.ksym_name, name, sizeof(name)) &&
	       write_piece(writer, start, end - start, name, "bpf");
}

static bool write_ftrace(const struct vp_guest_kernel *kernel, uint64_t entry,
			 struct vp_maps_writer *writer)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const struct vp_guest_view *view = &kernel->view;
	uint64_t start, size;

	return vp_guest_view_u64(view, entry + pack->at.ops_trampoline, &start) &&
	       vp_guest_view_u64(view, entry + pack->at.ops_trampoline_size, &size) &&
	       write_piece(writer, start, size, "ftrace_trampoline", "__builtin__ftrace");
}

/* Walks the circular list at `symbol`; entries have their list_head at `link`. False: the list
 * cannot be read completely. */
static bool walk_ring(const struct vp_guest_kernel *kernel, struct vp_pack_symbol symbol,
		      uint32_t link, take_entry take, struct vp_maps_writer *writer)
{
	uint64_t head = vp_guest_kernel_symbol(kernel, symbol), at = head;

	if (!head || link == VP_PACK_NONE)
		return true;
	for (unsigned i = 0; i < MAX_PIECES; i++) {
		if (!vp_guest_view_u64(&kernel->view, at, &at))
			return !i; /* the guest is gone, which is reported elsewhere */
		if (at == head)
			return true;
		if (!take(kernel, at - link, writer))
			return false;
	}
	return false;
}

void vp_guest_kernel_code_write(const struct vp_guest_kernel *kernel, struct vp_maps_writer *writer)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	bool has_bpf = pack->at.ksym_start != VP_PACK_NONE && pack->at.ksym_end != VP_PACK_NONE &&
		       pack->at.ksym_name != VP_PACK_NONE;
	bool has_ftrace =
	    pack->at.ops_trampoline != VP_PACK_NONE && pack->at.ops_trampoline_size != VP_PACK_NONE;

	if (has_bpf &&
	    !walk_ring(kernel, pack->symbol.bpf_kallsyms, pack->at.ksym_node, write_bpf, writer))
		vp_maps_write_note(writer, "the guest kernel's list of BPF programs could only be "
					   "read in part");
	if (has_ftrace && !walk_ring(kernel, pack->symbol.ftrace_trampolines, pack->at.ops_list,
				     write_ftrace, writer))
		vp_maps_write_note(writer,
				   "the guest kernel's list of ftrace trampolines could only "
				   "be read in part");
}
