/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Xen's trace events (public/trace.h; schedulers: common/sched/), with the names of
 * xentrace_format. Each has names for its words, with a letter for the format: d number, s signed
 * number, x hexadecimal, q 64-bit number in two words, a address (two words in events with bit
 * 0x100, otherwise one), v vCPU (its domain above bit 16), r all remaining words.
 */
#ifndef VP_XEN_EVENT_TYPES_H
#define VP_XEN_EVENT_TYPES_H

#define VP_XEN_EVENT_TYPES(X)                                                                      \
	X(0x0001f004, "trace_irq", "vector:x count:d tot_cycles:x max_cycles:x")                   \
	X(0x00021002, "continue_running", "of:v")                                                  \
	X(0x00021011, "running_to_runnable", "of:v")                                               \
	X(0x00021021, "running_to_blocked", "of:v")                                                \
	X(0x00021031, "running_to_offline", "of:v")                                                \
	X(0x00021101, "runnable_to_running", "of:v")                                               \
	X(0x00021121, "runnable_to_blocked", "of:v")                                               \
	X(0x00021131, "runnable_to_offline", "of:v")                                               \
	X(0x00021201, "blocked_to_running", "of:v")                                                \
	X(0x00021211, "blocked_to_runnable", "of:v")                                               \
	X(0x00021231, "blocked_to_offline", "of:v")                                                \
	X(0x00021301, "offline_to_running", "of:v")                                                \
	X(0x00021311, "offline_to_runnable", "of:v")                                               \
	X(0x00021321, "offline_to_blocked", "of:v")                                                \
	X(0x00022001, "csched_sched_tasklet", "")                                                  \
	X(0x00022002, "csched_account_start", "domid:d vcpuid:d active:d")                         \
	X(0x00022003, "csched_account_stop", "domid:d vcpuid:d active:d")                          \
	X(0x00022004, "csched_stolen_vcpu", "from:d domid:d vcpuid:d")                             \
	X(0x00022005, "csched_picked_cpu", "domid:d vcpuid:d cpu:d")                               \
	X(0x00022006, "csched_tickle", "cpu:d")                                                    \
	X(0x00022007, "csched_boost", "domid:d vcpuid:d")                                          \
	X(0x00022008, "csched_unboost", "domid:d vcpuid:d")                                        \
	X(0x00022009, "csched_schedule", "cpu_tasklet_idle:x")                                     \
	X(0x0002200a, "csched_ratelimit", "of:v runtime:d")                                        \
	X(0x0002200b, "csched_steal_check", "peer_cpu:d checked:d")                                \
	X(0x00022201, "csched2_tick", "")                                                          \
	X(0x00022202, "csched2_runq_pos", "of:v pos:d")                                            \
	X(0x00022203, "csched2_credit_burn", "of:v credit:s budget:s delta:s")                     \
	X(0x00022204, "csched2_credit_add", "")                                                    \
	X(0x00022205, "csched2_tickle_check", "of:v credit:s score:s")                             \
	X(0x00022206, "csched2_tickle", "cpu:d")                                                   \
	X(0x00022207, "csched2_credit_reset", "of:v cr_start:s cr_end:s")                          \
	X(0x00022208, "csched2_sched_tasklet", "")                                                 \
	X(0x00022209, "csched2_update_load", "")                                                   \
	X(0x0002220a, "csched2_runq_assign", "of:v rq_id:d")                                       \
	X(0x0002220b, "csched2_updt_vcpu_load", "vcpuload:q of:v wshift:d")                        \
	X(0x0002220c, "csched2_updt_runq_load", "rq_avgload:q b_avgload:q rq_load_rq_id_wshift:r") \
	X(0x0002220d, "csched2_tickle_new", "of:v processor:d credit:s")                           \
	X(0x0002220e, "csched2_runq_max_weight", "rq_id_max_weight:x")                             \
	X(0x0002220f, "csched2_migrate", "of:v rq_id_trq_id:x")                                    \
	X(0x00022210, "csched2_load_check", "lrq_id_orq_id:x delta:s")                             \
	X(0x00022211, "csched2_load_balance", "l_bavgload:q o_bavgload:q lrq_id_orq_id:x")         \
	X(0x00022213, "csched2_pick_cpu", "b_avgload:q of:v rq_id_new_cpu:x")                      \
	X(0x00022214, "csched2_runq_candidate", "of:v tickled_cpu:s credit:s")                     \
	X(0x00022215, "csched2_schedule", "rq_cpu:x tasklet_idle_smt_idle_tickled:x")              \
	X(0x00022216, "csched2_ratelimit", "of:v runtime:d")                                       \
	X(0x00022217, "csched2_runq_cand_chk", "of:v")                                             \
	X(0x00022801, "rtds_tickle", "cpu:d")                                                      \
	X(0x00022802, "rtds_runq_pick", "of:v cur_deadline:q cur_budget:q")                        \
	X(0x00022803, "rtds_burn_budget", "of:v cur_budget:q delta:d")                             \
	X(0x00022804, "rtds_repl_budget", "of:v cur_deadline:q cur_budget:q")                      \
	X(0x00022805, "rtds_sched_tasklet", "")                                                    \
	X(0x00022806, "rtds_schedule", "cpu_tasklet_idle_tickled:x")                               \
	X(0x00022a01, "null_pick_cpu", "of:v new_cpu:d")                                           \
	X(0x00022a02, "null_assign", "of:v cpu:d")                                                 \
	X(0x00022a03, "null_deassign", "of:v cpu:d")                                               \
	X(0x00022a04, "null_migrate", "of:v new_cpu_cpu:x")                                        \
	X(0x00022a05, "null_schedule", "cpu_tasklet:x of:v")                                       \
	X(0x00022a06, "null_sched_tasklet", "")                                                    \
	X(0x00028001, "sched_add_domain", "domid:d")                                               \
	X(0x00028002, "sched_rem_domain", "domid:d")                                               \
	X(0x00028003, "domain_sleep", "domid:d vcpuid:d")                                          \
	X(0x00028004, "domain_wake", "domid:d vcpuid:d")                                           \
	X(0x00028005, "do_yield", "domid:d vcpuid:d")                                              \
	X(0x00028006, "do_block", "domid:d vcpuid:d")                                              \
	X(0x00028007, "domain_shutdown", "domid:d vcpuid:d code:d")                                \
	X(0x00028008, "sched_ctl", "")                                                             \
	X(0x00028009, "sched_adjdom", "domid:d")                                                   \
	X(0x0002800a, "enter_scheduler", "prev_domid:d prev_vcpuid:d next_domid:d next_vcpuid:d")  \
	X(0x0002800b, "s_timer_fn", "")                                                            \
	X(0x0002800c, "t_timer_fn", "")                                                            \
	X(0x0002800d, "dom_timer_fn", "")                                                          \
	X(0x0002800e, "switch_infprev", "domid:d vcpuid:d runtime:d")                              \
	X(0x0002800f, "switch_infnext", "new_domid:d new_vcpuid:d time:d r_time:s")                \
	X(0x00028010, "domain_shutdown_code", "domid:d vcpuid:d code:d")                           \
	X(0x00028011, "switch_infcont", "domid:d vcpuid:d runtime:d r_time:s")                     \
	X(0x00041001, "domain_create", "domid:d")                                                  \
	X(0x00041002, "domain_destroy", "domid:d")                                                 \
	X(0x00081001, "VMENTRY", "")                                                               \
	X(0x00081002, "VMEXIT", "exitcode:x rip:a")                                                \
	X(0x00081003, "SVM_VMEXIT", "exitcode:x rip:a")                                            \
	X(0x00081401, "nVMENTRY", "")                                                              \
	X(0x00081402, "nVMEXIT", "exitcode:x rip:a")                                               \
	X(0x00082001, "PF_XEN", "virt:a errorcode:x")                                              \
	X(0x00082002, "PF_INJECT", "errorcode:x virt:a")                                           \
	X(0x00082003, "INJ_EXC", "vector:x errorcode:x")                                           \
	X(0x00082004, "INJ_VIRQ", "vector:x fake:d")                                               \
	X(0x00082005, "REINJ_VIRQ", "vector:x")                                                    \
	X(0x00082006, "IO_READ", "port:x size:d")                                                  \
	X(0x00082007, "IO_WRITE", "port:x size:d")                                                 \
	X(0x00082008, "CR_READ", "cr:d value:a")                                                   \
	X(0x00082009, "CR_WRITE", "cr:d value:a")                                                  \
	X(0x0008200a, "DR_READ", "")                                                               \
	X(0x0008200b, "DR_WRITE", "")                                                              \
	X(0x0008200c, "MSR_READ", "msr:x value:q")                                                 \
	X(0x0008200d, "MSR_WRITE", "msr:x value:q")                                                \
	X(0x0008200e, "CPUID", "func:x eax:x ebx:x ecx:x edx:x")                                   \
	X(0x0008200f, "INTR", "vector:r")                                                          \
	X(0x00082010, "NMI", "")                                                                   \
	X(0x00082011, "SMI", "")                                                                   \
	X(0x00082012, "VMMCALL", "func:x")                                                         \
	X(0x00082013, "HLT", "intpending:d")                                                       \
	X(0x00082014, "INVLPG", "is_invlpga:d virt:a")                                             \
	X(0x00082015, "MCE", "")                                                                   \
	X(0x00082016, "IOPORT_READ", "port:x data:x")                                              \
	X(0x00082017, "MMIO_READ", "address:x data:x")                                             \
	X(0x00082018, "CLTS", "")                                                                  \
	X(0x00082019, "LMSW", "value:a")                                                           \
	X(0x0008201a, "RDTSC", "value:q")                                                          \
	X(0x00082020, "INTR_WINDOW", "value:x")                                                    \
	X(0x00082021, "NPF", "gpa:q mfn:q qual:x p2mt:x")                                          \
	X(0x00082022, "REALMODE_EMULATE", "eip:x")                                                 \
	X(0x00082023, "TRAP", "vector:x")                                                          \
	X(0x00082024, "TRAP_DEBUG", "qualification:x")                                             \
	X(0x00082025, "VLAPIC", "")                                                                \
	X(0x00082026, "XCR_READ", "index:x value:q")                                               \
	X(0x00082027, "XCR_WRITE", "index:x value:q")                                              \
	X(0x00082216, "IOPORT_WRITE", "port:x data:x")                                             \
	X(0x00082217, "MMIO_WRITE", "address:x data:x")                                            \
	X(0x00084001, "hpet_create", "tn:d irq:d delta:q period:q")                                \
	X(0x00084002, "pit_create", "delta:q period:q")                                            \
	X(0x00084003, "rtc_create", "delta:q period:q")                                            \
	X(0x00084004, "vlapic_create", "delta:q period:q irq:d")                                   \
	X(0x00084005, "hpet_destroy", "tn:d")                                                      \
	X(0x00084006, "pit_destroy", "")                                                           \
	X(0x00084007, "rtc_destroy", "")                                                           \
	X(0x00084008, "vlapic_destroy", "")                                                        \
	X(0x00084009, "pit_callback", "")                                                          \
	X(0x0008400a, "vlapic_callback", "")                                                       \
	X(0x0008400b, "vpic_update_int_output", "int_output:d is_master:d irq:d")                  \
	X(0x0008400c, "vpic_vcpu_kick", "irq:d")                                                   \
	X(0x0008400d, "vpic_intack", "is_master:d irq:d")                                          \
	X(0x0008400e, "vpic_irq_positive_edge", "irq:d")                                           \
	X(0x0008400f, "vpic_irq_negative_edge", "irq:d")                                           \
	X(0x00084010, "vpic_ack_pending_irq", "accept_pic_intr:d int_output:d")                    \
	X(0x00084011, "vlapic_accept_pic_intr", "i8259_target:d accept_pic_int:d")                 \
	X(0x0010f001, "page_grant_map", "domid:d")                                                 \
	X(0x0010f002, "page_grant_unmap", "domid:d")                                               \
	X(0x0010f003, "page_grant_transfer", "domid:d")                                            \
	X(0x0010f004, "set_p2m_entry", "words:r")                                                  \
	X(0x0010f005, "decrease_reservation", "words:r")                                           \
	X(0x0010f010, "pod_populate", "words:r")                                                   \
	X(0x0010f011, "pod_zero_reclaim", "words:r")                                               \
	X(0x0010f012, "pod_superpage_splinter", "words:r")                                         \
	X(0x00201003, "trap", "rip:a trapnr_error:x")                                              \
	X(0x00201004, "page_fault", "rip:a addr:a error:x")                                        \
	X(0x00201005, "forced_invalid_op", "rip:a")                                                \
	X(0x00201006, "emulate_privop", "rip:a")                                                   \
	X(0x00201007, "emulate_4G", "rip:a")                                                       \
	X(0x00201008, "math_state_restore", "")                                                    \
	X(0x00201009, "paging_fixup", "rip:a addr:a")                                              \
	X(0x0020100a, "gdt_ldt_mapping_fault", "rip:a offset:a")                                   \
	X(0x0020100b, "ptwr_emulation", "npte:q addr:a rip:a")                                     \
	X(0x0020100c, "ptwr_emulation_pae", "npte:q addr:a rip:a")                                 \
	X(0x0020100d, "hypercall", "op:x arguments:r")                                             \
	X(0x0020200e, "hypercall_subcall", "op:x arguments:r")                                     \
	X(0x0040f001, "shadow_not_shadow", "words:r")                                              \
	X(0x0040f002, "shadow_fast_propagate", "va:a")                                             \
	X(0x0040f003, "shadow_fast_mmio", "va:a")                                                  \
	X(0x0040f004, "shadow_false_fast_path", "va:a")                                            \
	X(0x0040f005, "shadow_mmio", "va:a")                                                       \
	X(0x0040f006, "shadow_fixup", "words:r")                                                   \
	X(0x0040f007, "shadow_domf_dying", "va:a")                                                 \
	X(0x0040f008, "shadow_emulate", "words:r")                                                 \
	X(0x0040f009, "shadow_emulate_unshadow_user", "va:a gfn:a")                                \
	X(0x0040f00a, "shadow_emulate_unshadow_evtinj", "va:a gfn:a")                              \
	X(0x0040f00b, "shadow_emulate_unshadow_unhandled", "va:a gfn:a")                           \
	X(0x0040f00c, "shadow_emulate_wrmap_bf", "gfn:a")                                          \
	X(0x0040f00d, "shadow_emulate_prealloc_unpin", "gfn:a")                                    \
	X(0x0040f00e, "shadow_emulate_resync_full", "gfn:a")                                       \
	X(0x0040f00f, "shadow_emulate_resync_only", "gfn:a")                                       \
	X(0x00801001, "cpu_freq_change", "old_mhz:d new_mhz:d")                                    \
	X(0x00801002, "cpu_idle_entry", "words:r")                                                 \
	X(0x00801003, "cpu_idle_exit", "words:r")                                                  \
	X(0x00802001, "cleanup_move_delayed", "irq:d vector:x cpu:d")                              \
	X(0x00802002, "cleanup_move", "irq:d vector:x cpu:d")                                      \
	X(0x00802003, "bind_vector", "irq:d vector:x cpu_mask:x")                                  \
	X(0x00802004, "clear_vector", "irq:d vector:x cpu_mask:x")                                 \
	X(0x00802005, "move_vector", "irq:d vector:x cpu:d")                                       \
	X(0x00802006, "assign_vector", "irq:d vector:x cpu_mask:x")                                \
	X(0x00802007, "bogus_vector", "vector:x")                                                  \
	X(0x00802008, "do_irq", "irq:d began:d ended:d")

#endif
