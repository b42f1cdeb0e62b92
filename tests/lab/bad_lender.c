/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bad-lender overwrite | version: for a guest to which counters are lent, what its own root may do
 * to them. 'overwrite' fills the cells of all its CPUs with ones, which only a program in its
 * kernel can; 'version' answers one client as an agent of another version would.
 */
#include <err.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/lent.h"

enum { WORDS = sizeof(struct vp_lent_cell) / sizeof(uint64_t) };
enum { KEY_AT = -8 }; /* on the program's stack */

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* -1: that is not the map of the cells. */
static int open_if_cells(uint32_t id, uint32_t *n_cells)
{
	struct bpf_map_info info = {0};
	union bpf_attr open_attr = {.map_id = id};
	int fd = bpf(BPF_MAP_GET_FD_BY_ID, &open_attr);
	union bpf_attr attr = {
	    .info = {.bpf_fd = (uint32_t)fd, .info_len = sizeof(info), .info = (uintptr_t)&info}};

	if (fd < 0 || bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
		return -1;
	*n_cells = info.max_entries;
	if (!strcmp(info.name, "cells") && info.value_size == sizeof(struct vp_lent_cell))
		return fd;
	close(fd);
	return -1;
}

static int find_cells(uint32_t *n_cells)
{
	union bpf_attr attr = {0};

	while (!bpf(BPF_MAP_GET_NEXT_ID, &attr)) {
		int fd = open_if_cells(attr.next_id, n_cells);
		if (fd >= 0)
			return fd;
		attr.start_id = attr.next_id;
	}
	errx(1, "no counters are lent here");
}

static struct bpf_insn make(uint8_t code, uint8_t to, uint8_t from, int16_t offset, int32_t value)
{
	return (struct bpf_insn){
	    .code = code, .dst_reg = to, .src_reg = from, .off = offset, .imm = value};
}

/* A program of the kernel's: cell = lookup(cells, number); if (cell) all words of *cell = ~0. */
static size_t write_program(int cells, uint32_t number, struct bpf_insn *insns)
{
	size_t n = 0;

	insns[n++] = make(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, KEY_AT, (int32_t)number);
	insns[n++] = make(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0);
	insns[n++] = make(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, KEY_AT);
	insns[n++] = make(BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, cells);
	insns[n++] = make(0, 0, 0, 0, 0);
	insns[n++] = make(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem);
	insns[n++] = make(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, WORDS, 0);
	for (int16_t i = 0; i < WORDS; i++)
		insns[n++] = make(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_0, 0, (int16_t)(i * 8), -1);
	insns[n++] = make(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0);
	insns[n++] = make(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	return n;
}

static void overwrite_cell(int cells, uint32_t number)
{
	struct bpf_insn insns[WORDS + 16];
	union bpf_attr load = {.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
			       .insn_cnt = (uint32_t)write_program(cells, number, insns),
			       .insns = (uintptr_t)insns,
			       .license = (uintptr_t) "GPL"};
	int program = bpf(BPF_PROG_LOAD, &load);
	union bpf_attr run = {.test = {.prog_fd = (uint32_t)program}};

	if (program < 0 || bpf(BPF_PROG_TEST_RUN, &run))
		err(1, "cannot overwrite cell %u", number);
	close(program);
}

static void overwrite(void)
{
	uint32_t n = 0;
	int cells = find_cells(&n);

	for (uint32_t i = 0; i < n; i++)
		overwrite_cell(cells, i);
	printf("overwritten=%u\n", n);
}

static void answer_in_other_version(void)
{
	const struct vp_lent_reply reply = {.version = VP_LENT_VERSION + 1};
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = VP_LENT_SOCKET};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	unlink(VP_LENT_SOCKET);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(listener, 1))
		err(1, "%s", VP_LENT_SOCKET);
	int client = accept(listener, NULL, NULL);
	struct vp_lent_request request;
	if (recv(client, &request, sizeof(request), 0) != sizeof(request) ||
	    send(client, &reply, sizeof(reply), 0) != sizeof(reply))
		err(1, "client");
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "overwrite"))
		overwrite();
	else if (argc == 2 && !strcmp(argv[1], "version"))
		answer_in_other_version();
	else
		errx(2, "usage: bad-lender overwrite | version");
	return 0;
}
