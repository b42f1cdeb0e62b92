/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest's thread waits for another one, which waits for a disk that a thread of the host serves
 * after another thread left its pCPU: what the host and the guest record of it. */
#ifndef VP_TESTS_MADE_WAIT_H
#define VP_TESTS_MADE_WAIT_H

#include "made_events.h"

enum { VM = 1000, VCPU = 1001, QEMU = 60, THIEF = 50, WAITER = 7, READER = 8, SENDER = 9 };

static inline void enter(struct made *made, uint64_t ns)
{
	PUT(made, 0, ns, kvm_entry, .tid = VCPU, .vm = VM, .vcpu = 0);
}

static inline void leave(struct made *made, uint64_t ns, uint32_t reason)
{
	PUT(made, 0, ns, kvm_exit, .tid = VCPU, .vm = VM, .reason = reason, .vcpu = 0,
	    .vendor = VP_VENDOR_AMD);
}

static inline void make_host(struct made *made)
{
	put_name(made, QEMU, "qemu");
	put_name(made, THIEF, "thief");
	change(made, 1, 5, 0, THIEF, 0);
	change(made, 0, 10, 0, VCPU, 0);
	enter(made, 20);
	leave(made, 140, MADE_NPF);
	wake(made, 0, 142, VCPU, QEMU, 1); /* the reader's request */
	enter(made, 145);
	leave(made, 160, MADE_HLT);
	change(made, 0, 170, VCPU, 0, SLEEPS);
	change(made, 1, 200, THIEF, QEMU, SLEEPS);
	wake(made, 1, 230, QEMU, VCPU, 0);
	change(made, 0, 235, 0, VCPU, 0);
	enter(made, 238);
	change(made, 1, 240, QEMU, 0, SLEEPS);
	leave(made, 330, MADE_HLT);
	change(made, 0, 340, VCPU, 0, SLEEPS);
}

/* Names of the guest's threads. */
static const char *name_of(uint32_t tid)
{
	return tid == WAITER   ? "waiter"
	       : tid == READER ? "reader"
	       : tid == SENDER ? "sender"
			       : "swapper/0";
}

static inline void make_guest(const char *name)
{
	struct guest guest;

	guest_begin(&guest, name, "guest-vm0", "vm0");
	guest_switch(&guest, 30, 0, WAITER);
	guest_switch(&guest, 100, WAITER, READER);
	guest_switch(&guest, 150, READER, 0);
	put_event(&guest, 250, IRQ_ENTRY, (const uint32_t[]){0, 5});
	guest_waking(&guest, 252, 0, READER);
	put_event(&guest, 254, IRQ_EXIT, (const uint32_t[]){0, 5});
	guest_switch(&guest, 260, 0, READER);
	guest_waking(&guest, 280, READER, WAITER);
	guest_switch(&guest, 290, READER, WAITER);
	guest_switch(&guest, 320, WAITER, 0);
	guest_end(&guest);
}

static inline void make_wait(const char *name, bool with_guest)
{
	struct made made;

	begin(&made, name, 1, 2);
	make_host(&made);
	end(&made);
	if (with_guest)
		make_guest(name);
}

#endif
