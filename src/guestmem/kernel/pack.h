/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel pack: symbols, offsets and sizes for finding tasks and their mappings in the memory of
 * one kernel build (by build-id), independent of KASLR.
 *
 * Text format: one fact per line, words separated by one blank (docs/format-pack.md):
 *
 *   vperf-pack 6
 *   kernel BUILDID RELEASE
 *   kallsyms COUNT SENSE       number of symbols; enum vp_kallsyms_encoding
 *   table NAME OFFSET          offsets of its tables from _text
 *   symbol NAME OFFSET         offset from _text; `percpu NAME OFFSET`: from the per-CPU base
 *   member STRUCT.MEMBER OFFSET
 *   value ENUM.NAME NUMBER
 *   size STRUCT SIZE
 *   derived 1                  members were derived without BTF
 *   evidence SEED HASH         hash of the kernel's symbol table and BTF
 *   end LINES
 */
#ifndef VP_GUESTMEM_KERNEL_PACK_H
#define VP_GUESTMEM_KERNEL_PACK_H

#include "base/buffer.h"
#include "base/macros.h"
#include "base/vec.h"
#include "guestmem/kernel/kallsyms.h"
#include "maps/format.h"
#include "maps/guest_btf.h"

/* MEMBER(identifier, struct, member). Alternatives, tried in order, cover changes between kernel
 * versions. */
#define VP_PACK_MEMBERS(MEMBER)                                                                    \
	MEMBER(task_pid, "task_struct", "pid")                                                     \
	MEMBER(task_tgid, "task_struct", "tgid")                                                   \
	MEMBER(task_comm, "task_struct", "comm")                                                   \
	MEMBER(task_mm, "task_struct", "mm")                                                       \
	MEMBER(task_tasks, "task_struct", "tasks")                                                 \
	MEMBER(task_stack, "task_struct", "stack")                                                 \
	MEMBER(task_fs, "task_struct", "fs")                                                       \
	MEMBER(task_group_leader, "task_struct", "group_leader")                                   \
	MEMBER(task_thread_node, "task_struct", "thread_node")                                     \
	MEMBER(task_signal, "task_struct", "signal")                                               \
	MEMBER(task_thread_pid, "task_struct", "thread_pid")                                       \
	MEMBER(signal_thread_head, "signal_struct", "thread_head")                                 \
	MEMBER(pid_level, "pid", "level")                                                          \
	MEMBER(pid_numbers, "pid", "numbers")                                                      \
	MEMBER(mm_pgd, "mm_struct", "pgd")                                                         \
	MEMBER(mm_vdso, "mm_struct", "context.vdso")                                               \
	MEMBER(mm_mmap, "mm_struct", "mmap")                                                       \
	MEMBER(mm_maple_root, "mm_struct", "mm_mt.ma_root")                                        \
	MEMBER(vma_start, "vm_area_struct", "vm_start")                                            \
	MEMBER(vma_end, "vm_area_struct", "vm_end")                                                \
	MEMBER(vma_pgoff, "vm_area_struct", "vm_pgoff")                                            \
	MEMBER(vma_flags, "vm_area_struct", "vm_flags")                                            \
	MEMBER(vma_file, "vm_area_struct", "vm_file")                                              \
	MEMBER(vma_next, "vm_area_struct", "vm_next")                                              \
	MEMBER(range_pivot, "maple_range_64", "pivot")                                             \
	MEMBER(range_slot, "maple_range_64", "slot")                                               \
	MEMBER(arange_pivot, "maple_arange_64", "pivot")                                           \
	MEMBER(arange_slot, "maple_arange_64", "slot")                                             \
	MEMBER(file_dentry, "file", "f_path.dentry")                                               \
	MEMBER(file_mnt, "file", "f_path.mnt")                                                     \
	MEMBER(file_mapping, "file", "f_mapping")                                                  \
	MEMBER(dentry_parent, "dentry", "d_parent")                                                \
	MEMBER(dentry_name, "dentry", "d_name.name")                                               \
	MEMBER(dentry_len, "dentry", "d_name.len")                                                 \
	MEMBER(dentry_inode, "dentry", "d_inode")                                                  \
	MEMBER(dentry_subdirs, "dentry", "d_subdirs")                                              \
	MEMBER(dentry_child, "dentry", "d_child")                                                  \
	MEMBER(dentry_children, "dentry", "d_children")                                            \
	MEMBER(dentry_sib, "dentry", "d_sib")                                                      \
	MEMBER(mount_parent, "mount", "mnt_parent")                                                \
	MEMBER(mount_point, "mount", "mnt_mountpoint")                                             \
	MEMBER(mount_mnt, "mount", "mnt")                                                          \
	MEMBER(mount_mounts, "mount", "mnt_mounts")                                                \
	MEMBER(mount_child, "mount", "mnt_child")                                                  \
	MEMBER(mnt_root, "vfsmount", "mnt_root")                                                   \
	MEMBER(fs_root_dentry, "fs_struct", "root.dentry")                                         \
	MEMBER(fs_root_mnt, "fs_struct", "root.mnt")                                               \
	MEMBER(mapping_xa_head, "address_space", "i_pages.xa_head")                                \
	MEMBER(mapping_host, "address_space", "host")                                              \
	MEMBER(inode_size, "inode", "i_size")                                                      \
	MEMBER(inode_mapping, "inode", "i_mapping")                                                \
	MEMBER(inode_sb, "inode", "i_sb")                                                          \
	MEMBER(sb_magic, "super_block", "s_magic")                                                 \
	MEMBER(xa_node_shift, "xa_node", "shift")                                                  \
	MEMBER(xa_node_slots, "xa_node", "slots")                                                  \
	MEMBER(module_list, "module", "list")                                                      \
	MEMBER(module_name, "module", "name")                                                      \
	MEMBER(module_kallsyms, "module", "kallsyms")                                              \
	MEMBER(module_orcs, "module", "arch.num_orcs")                                             \
	MEMBER(module_orc_ips, "module", "arch.orc_unwind_ip")                                     \
	MEMBER(module_orc, "module", "arch.orc_unwind")                                            \
	MEMBER(mod_symtab, "mod_kallsyms", "symtab")                                               \
	MEMBER(mod_num_symtab, "mod_kallsyms", "num_symtab")                                       \
	MEMBER(mod_strtab, "mod_kallsyms", "strtab")                                               \
	MEMBER(mod_typetab, "mod_kallsyms", "typetab")                                             \
	MEMBER(ksym_start, "bpf_ksym", "start")                                                    \
	MEMBER(ksym_end, "bpf_ksym", "end")                                                        \
	MEMBER(ksym_name, "bpf_ksym", "name")                                                      \
	MEMBER(ksym_node, "bpf_ksym", "lnode")                                                     \
	MEMBER(ops_trampoline, "ftrace_ops", "trampoline")                                         \
	MEMBER(ops_trampoline_size, "ftrace_ops", "trampoline_size")                               \
	MEMBER(ops_list, "ftrace_ops", "list")                                                     \
	MEMBER(orc_signal, "orc_entry", "signal")                                                  \
	MEMBER(orc_end, "orc_entry", "end")                                                        \
	MEMBER(rq_switches, "rq", "nr_switches")                                                   \
	MEMBER(rq_curr, "rq", "curr")                                                              \
	MEMBER(rq_idle, "rq", "idle")                                                              \
	MEMBER(rq_cpu, "rq", "cpu")                                                                \
	MEMBER(kstat_irqs, "kernel_stat", "irqs_sum")                                              \
	MEMBER(irq_timer, "irq_cpustat_t", "apic_timer_irqs")                                      \
	MEMBER(irq_counts, "irq_cpustat_t", "counts")

/* VALUE(identifier, enum, enumerator). */
#define VP_PACK_VALUES(VALUE)                                                                      \
	VALUE(pgfault, "vm_event_item", "PGFAULT")                                                 \
	VALUE(pgmajfault, "vm_event_item", "PGMAJFAULT")                                           \
	VALUE(irq_timer, "irq_stat_counts", "IRQ_COUNT_APIC_TIMER")

/* SYMBOL(identifier, the kernel's name). */
#define VP_PACK_SYMBOLS(SYMBOL)                                                                    \
	SYMBOL(entry, "entry_SYSCALL_64")                                                          \
	SYMBOL(banner, "linux_banner")                                                             \
	SYMBOL(start_notes, "__start_notes")                                                       \
	SYMBOL(stop_notes, "__stop_notes")                                                         \
	SYMBOL(start_btf, "__start_BTF")                                                           \
	SYMBOL(stop_btf, "__stop_BTF")                                                             \
	SYMBOL(init_task, "init_task")                                                             \
	SYMBOL(init_top_pgt, "init_top_pgt")                                                       \
	SYMBOL(init_mm, "init_mm")                                                                 \
	SYMBOL(phys_base, "phys_base")                                                             \
	SYMBOL(page_offset_base, "page_offset_base")                                               \
	SYMBOL(vmemmap_base, "vmemmap_base")                                                       \
	SYMBOL(l5_enabled, "__pgtable_l5_enabled")                                                 \
	SYMBOL(per_cpu_offset, "__per_cpu_offset")                                                 \
	SYMBOL(nr_cpu_ids, "nr_cpu_ids")                                                           \
	SYMBOL(vdso_image, "vdso_image_64")                                                        \
	SYMBOL(vdso64_image, "vdso64_image")                                                       \
	SYMBOL(modules, "modules")                                                                 \
	SYMBOL(bpf_kallsyms, "bpf_kallsyms")                                                       \
	SYMBOL(ftrace_trampolines, "ftrace_ops_trampoline_list")                                   \
	SYMBOL(start_orc_ips, "__start_orc_unwind_ip")                                             \
	SYMBOL(stop_orc_ips, "__stop_orc_unwind_ip")                                               \
	SYMBOL(start_orc, "__start_orc_unwind")                                                    \
	SYMBOL(stop_orc, "__stop_orc_unwind")                                                      \
	SYMBOL(end, "_end")                                                                        \
	SYMBOL(current_task, "current_task")                                                       \
	SYMBOL(pcpu_hot, "pcpu_hot")                                                               \
	SYMBOL(cpu_to_apicid, "x86_cpu_to_apicid")                                                 \
	SYMBOL(runqueues, "runqueues")                                                             \
	SYMBOL(vm_event_states, "vm_event_states")                                                 \
	SYMBOL(kstat, "kstat")                                                                     \
	SYMBOL(irq_stat, "irq_stat")                                                               \
	SYMBOL(total_forks, "total_forks")                                                         \
	/* 64-bit Arm */                                                                           \
	SYMBOL(swapper_pg_dir, "swapper_pg_dir")                                                   \
	SYMBOL(kimage_voffset, "kimage_voffset")                                                   \
	SYMBOL(entry_task, "__entry_task")                                                         \
	SYMBOL(cpu_logical_map, "__cpu_logical_map")                                               \
	SYMBOL(vdso_start, "vdso_start")                                                           \
	SYMBOL(vdso_end, "vdso_end")

#define VP_PACK_NONE UINT32_MAX

struct vp_pack_symbol {
	uint32_t offset; /* VP_PACK_NONE: not in this kernel */
	bool percpu;     /* relative to the per-CPU base instead of _text */
};

struct vp_kernel_pack {
	struct vp_build_id build_id;
	char release[80];
	struct vp_kallsyms kallsyms; /* offsets from _text, also `base` */
#define VP_PACK_FIELD(id, ...) uint32_t id;
	struct {
		VP_PACK_MEMBERS(VP_PACK_FIELD)
	} at;
	struct {
		VP_PACK_VALUES(VP_PACK_FIELD)
	} value;
#undef VP_PACK_FIELD
#define VP_PACK_FIELD(id, ...) struct vp_pack_symbol id;
	struct {
		VP_PACK_SYMBOLS(VP_PACK_FIELD)
	} symbol;
#undef VP_PACK_FIELD
	uint32_t page_size_of;  /* sizeof(struct page) */
	uint32_t inode_size_of; /* sizeof(struct inode); 0: unknown */
	bool derived;           /* members were derived without BTF (guestmem/kernel/derive.h) */
	/* Evidence against forged packs: a guest may claim any build-id, but no guest knows the
	 * seed, so it cannot make other tables with the same hash. */
	uint64_t seed, hash;
};

/* Symbol of the kernel's own top-level page table. */
static inline struct vp_pack_symbol vp_kernel_pack_top(const struct vp_kernel_pack *pack)
{
	return pack->symbol.init_top_pgt.offset != VP_PACK_NONE ? pack->symbol.init_top_pgt
								: pack->symbol.swapper_pg_dir;
}

void vp_kernel_pack_init(struct vp_kernel_pack *pack);
/* Reads all symbols from a copy of the image or a part of it, with pack->kallsyms. *text: address
 * of _text. False: no _text, or damaged tables. */
bool vp_kernel_pack_symbols(struct vp_kernel_pack *pack, const char *image, size_t size,
			    uint64_t *text) VP_MUST_CHECK;
/* Sets the offsets of members, the values of enumerators and the sizes of structs. */
void vp_kernel_pack_members(struct vp_kernel_pack *pack, const struct vp_guest_btf *btf);
/* Returns the first missing item without which tasks cannot be read, or NULL. */
const char *vp_kernel_pack_lacks(const struct vp_kernel_pack *pack);

void vp_kernel_pack_write(const struct vp_kernel_pack *pack, struct vp_buffer *text);
/* `label` names the text in errors. */
struct vp_error *vp_kernel_pack_parse(const char *label, const void *text, size_t size,
				      struct vp_kernel_pack *ret) VP_MUST_CHECK;

typedef VP_VEC(struct vp_kernel_pack) vp_kernel_packs;

#endif
