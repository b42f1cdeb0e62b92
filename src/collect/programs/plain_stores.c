/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/plain_stores.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <gelf.h>
#include <linux/bpf.h>
#include <linux/membarrier.h>

/* linux/bpf.h of Linux 5.12: BPF_ATOMIC has the code of the earlier BPF_XADD. */
enum {
	ATOMIC = BPF_STX | 0xc0 | BPF_DW,
	STORE = BPF_STX | BPF_MEM | BPF_DW,
	EXCHANGE = 0xe1,
	LOAD_IMMEDIATE = BPF_LD | BPF_IMM | BPF_DW, /* two words */
};

bool vp_plain_stores_needed(void)
{
	const struct bpf_insn program[] = {
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	    {.code = STORE, .dst_reg = BPF_REG_10, .src_reg = BPF_REG_0, .off = -8},
	    {.code = ATOMIC,
	     .dst_reg = BPF_REG_10,
	     .src_reg = BPF_REG_0,
	     .off = -8,
	     .imm = EXCHANGE},
	    {.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "vp_exchange", "GPL", program,
			       sizeof(program) / sizeof(*program), NULL);

	if (fd >= 0)
		close(fd);
	return fd < 0 && fd != -EPERM;
}

static size_t replace_in(struct bpf_insn *code, size_t count)
{
	size_t replaced = 0;

	for (size_t i = 0; i < count; i += code[i].code == LOAD_IMMEDIATE ? 2 : 1) {
		if (code[i].code != ATOMIC || code[i].imm != EXCHANGE)
			continue;
		code[i].code = STORE;
		code[i].imm = 0;
		replaced++;
	}
	return replaced;
}

size_t vp_plain_stores_replace(void *bytes, size_t size)
{
	Elf *elf = elf_version(EV_CURRENT) != EV_NONE ? elf_memory(bytes, size) : NULL;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t replaced = 0;

	while (elf && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_flags & SHF_EXECINSTR &&
		    header.sh_offset <= size && header.sh_size <= size - header.sh_offset)
			replaced += replace_in((void *)((char *)bytes + header.sh_offset),
					       header.sh_size / sizeof(struct bpf_insn));
	elf_end(elf);
	return replaced;
}

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

struct vp_error *vp_plain_stores_check(void)
{
	long commands = membarrier(MEMBARRIER_CMD_QUERY);

	if (commands >= 0 && commands & MEMBARRIER_CMD_GLOBAL)
		return NULL;
	return vp_error_new(
	    "BPF programs cannot use atomic exchanges on this kernel, and membarrier(2) "
	    "cannot replace them (no CONFIG_MEMBARRIER, or nohz_full)");
}

void vp_plain_stores_wait(void)
{
	membarrier(MEMBARRIER_CMD_GLOBAL);
}
