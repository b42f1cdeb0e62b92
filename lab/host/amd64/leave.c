/*
 * Makes a guest leave at once after an interrupt was injected into it: QEMU's emulation of SVM may
 * inject it once more for as long as the guest has not left (docs/lab.md, "Labs that die"). Two
 * programs in the lab host's kernel: one notes that KVM injects an interrupt, one sends the pCPU an
 * interrupt when the guest is entered with it. That waits until the guest has its own, and is then
 * the reason to leave.
 *
 * Says "ready", then stays: the kernel forgets the programs with their last file descriptor.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* clang-format off */
#define INSN(op, dst, src, offset, value)                                                          \
	((struct bpf_insn){.code = (op), .dst_reg = (dst), .src_reg = (src), .off = (offset), .imm = (value)})
/* The first instructions of both programs: r0 = this pCPU's flag; without one they end. */
#define FIND_FLAG(map)                                                                             \
	INSN(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, 0),                                      \
	INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),                            \
	INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4),                                    \
	INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, (map)),                   \
	INSN(0, 0, 0, 0, 0), /* the second half of the instruction before */                       \
	INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),                               \
	INSN(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 1, 0),                                       \
	INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* clang-format on */

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int make_flags(void)
{
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_PERCPU_ARRAY,
			       .key_size = sizeof(uint32_t),
			       .value_size = sizeof(uint64_t),
			       .max_entries = 1};

	return bpf(BPF_MAP_CREATE, &attr);
}

/* Loads the program and runs it at the tracepoint from now on. Returns 0, or -1 with a message. */
static int run_at(const char *tracepoint, const struct bpf_insn *program, uint32_t length)
{
	static char log[16384];
	union bpf_attr load = {.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
			       .insns = (uintptr_t)program,
			       .insn_cnt = length,
			       .license = (uintptr_t) "GPL",
			       .log_buf = (uintptr_t)log,
			       .log_size = sizeof(log),
			       .log_level = 1};
	union bpf_attr attach = {.raw_tracepoint.name = (uintptr_t)tracepoint};
	int fd = bpf(BPF_PROG_LOAD, &load);

	if (fd < 0) {
		fprintf(stderr, "lab-leave: the program for %s: %s\n%s", tracepoint,
			strerror(errno), log);
		return -1;
	}
	attach.raw_tracepoint.prog_fd = (uint32_t)fd;
	if (bpf(BPF_RAW_TRACEPOINT_OPEN, &attach) < 0) {
		fprintf(stderr, "lab-leave: the tracepoint %s: %s\n", tracepoint, strerror(errno));
		return -1;
	}
	return 0;
}

int main(void)
{
	int flags = make_flags();
	const struct bpf_insn note_injection[] = {
	    FIND_FLAG(flags),
	    INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_0, 0, 0, 1),
	    INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
	    INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	/* The signal 0 does nothing; where interrupts are masked, an interrupt of this pCPU's sends
	 * it. */
	const struct bpf_insn interrupt_after_injection[] = {
	    FIND_FLAG(flags),
	    INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_0, 0, 0),
	    INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_1, 0, 3, 0),
	    INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_0, 0, 0, 0),
	    INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_1, 0, 0, 0),
	    INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_send_signal),
	    INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
	    INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	if (flags < 0) {
		fprintf(stderr, "lab-leave: no map: %s\n", strerror(errno));
		return 1;
	}
	if (run_at("kvm_inj_virq", note_injection,
		   sizeof(note_injection) / sizeof(*note_injection)) ||
	    run_at("kvm_entry", interrupt_after_injection,
		   sizeof(interrupt_after_injection) / sizeof(*interrupt_after_injection)))
		return 1;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
