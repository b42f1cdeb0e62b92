/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes seeds for fuzz_guest_memory into the folder that is named. */
#include <stdio.h>

#include "../unit/arm_guest.h"
#include "../unit/guest_files.h"

static void write_seed(const char *folder, const char *name, char kind, const void *bytes,
		       size_t size)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s", folder, name);
	VP_AUTO_FCLOSE FILE *file = fopen(path, "we");

	if (!file || (kind && fputc(kind, file) == EOF) || fwrite(bytes, 1, size, file) != size)
		exit(1);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"old", "new", "place"};
	static const char perf_map[] = "7f0000001000 40 Interp:main\n0x7f0000001040 0x20 a b\n";

	if (argc != 2)
		return 2;
	for (int layout = BUILT_OLD; layout <= BUILT_PLACE; layout++) {
		struct vp_buffer snapshot = {0};
		VP_AUTO_FREE char *objects = vp_format("objects-%s", names[layout]);
		VP_AUTO_FREE char *tables = vp_format("tables-%s", names[layout]);
		built_kernel(&guest, (enum built_layout)layout);
		uint64_t mm = built_mm(&guest);
		built_put64(&guest, mm + guest.pack.at.mm_maple_root,
			    built_vma(&guest, 0x400000, 0x402000, 1, built_mm(&guest)));
		built_process(&guest, 7, mm, "prog");
		built_snapshot(&guest, &snapshot);
		write_seed(argv[1], names[layout], 0, snapshot.bytes, snapshot.size);
		write_seed(argv[1], objects, 1, guest.low, guest.free);
		write_seed(argv[1], tables, 2, guest.image + AT_KALLSYMS,
			   guest.kallsyms_end - AT_KALLSYMS);
		vp_buffer_deinit(&snapshot);
	}
	/* 64-bit Arm: each size of pages. */
	for (unsigned page_bits = 12; page_bits <= 16; page_bits += 2) {
		struct vp_buffer snapshot = {0};
		VP_AUTO_FREE char *name = vp_format("arm-%u", page_bits);
		make_arm(page_bits, page_bits == 14 ? 47 : 48, true);
		uint64_t mm = built_mm(&guest);
		built_put64(&guest, mm + guest.pack.at.mm_maple_root,
			    built_vma(&guest, 0x400000, 0x402000, 1, built_mm(&guest)));
		built_process(&guest, 7, mm, "prog");
		arm_snapshot(&snapshot);
		write_seed(argv[1], name, 0, snapshot.bytes, snapshot.size);
		/* See fuzz_guest_memory.c for the first byte. */
		VP_AUTO_FREE char *objects = vp_format("objects-arm-%u", page_bits);
		write_seed(argv[1], objects, (char)(5 + (page_bits - 12) * 4), guest.low,
			   guest.free);
		vp_buffer_deinit(&snapshot);
	}
	/* As many tasks as it takes to work out where they have what. */
	built_kernel(&guest, BUILT_NEW);
	for (uint32_t tgid = 2; tgid < 10; tgid++)
		built_process(&guest, tgid, 0, "kthread");
	built_process(&guest, 300, built_mm(&guest), "prog");
	write_seed(argv[1], "tasks", 3, guest.low, guest.free);
	write_seed(argv[1], "btf", 2, guest.image + AT_BTF, guest.btf_size);
	/* A folder with perf maps, as the kernel of a process that has one sees it. */
	built_kernel(&guest, BUILT_NEW);
	struct root root = built_root(&guest);
	uint64_t prog = built_file(&guest, built_dentry(&guest, root.dentry, "prog"), root.mnt);
	uint64_t tmp = built_dentry(&guest, root.dentry, "tmp");
	built_put64(&guest, tmp + guest.pack.at.dentry_inode, 1);
	built_text_file(&guest, tmp, "perf-7.map", perf_map, false);
	built_program(&guest, &root, 7, prog);
	write_seed(argv[1], "folders", 1, guest.low, guest.free);
	write_seed(argv[1], "perf-map", 2, perf_map, sizeof(perf_map) - 1);
	struct vp_buffer text = {0};
	guest.pack.build_id = vp_build_id_of("0123456789", 10);
	guest.pack.kallsyms.encoding = VP_KALLSYMS_PERCPU;
	vp_kernel_pack_write(&guest.pack, &text);
	write_seed(argv[1], "pack", 2, text.bytes, text.size);
	vp_buffer_deinit(&text);
	return 0;
}
