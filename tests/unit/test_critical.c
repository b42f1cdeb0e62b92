/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The critical path of a guest's thread, and the latencies of its wake-ups. */
#include "unit.h"

#include "analyze/trace/critical.h"
#include "analyze/trace/guest_sched.h"
#include "made_wait.h"
#include "render/render_table.h"

#define NAME "test_critical.rec"

enum { OTHER_VM = 2000, OTHER_VCPU = 2001, VHOST = 70, NET_RX = 3 };

/* A packet of another VM's guest, which the host's network hands on while that VM's vCPU is out of
 * its guest; or right after an interrupt of a device. */
static void make_network_host(struct made *made, bool of_device)
{
	put_name(made, VHOST, "vhost");
	change(made, 1, 6, VHOST, 0, SLEEPS);
	change(made, 0, 10, 0, VCPU, 0);
	change(made, 2, 12, 0, OTHER_VCPU, 0);
	PUT(made, 2, 15, kvm_entry, .tid = OTHER_VCPU, .vm = OTHER_VM, .vcpu = 0);
	enter(made, 20);
	leave(made, 110, MADE_HLT);
	change(made, 0, 120, VCPU, 0, SLEEPS);
	PUT(made, 2, 195, kvm_exit, .tid = OTHER_VCPU, .vm = OTHER_VM, .reason = MADE_NPF,
	    .vcpu = 0, .vendor = VP_VENDOR_AMD);
	if (of_device) {
		PUT(made, 2, 196, irq_handler_entry, .tid = OTHER_VCPU, .irq = 24);
		PUT(made, 2, 197, irq_handler_exit, .tid = OTHER_VCPU, .irq = 24);
	}
	PUT(made, 2, 198, softirq_entry, .tid = OTHER_VCPU, .vec = NET_RX);
	wake(made, 2, 200, OTHER_VCPU, VHOST, 1);
	PUT(made, 2, 202, softirq_exit, .tid = OTHER_VCPU, .vec = NET_RX);
	change(made, 1, 205, 0, VHOST, 0);
	PUT(made, 2, 210, kvm_entry, .tid = OTHER_VCPU, .vm = OTHER_VM, .vcpu = 0);
	wake(made, 1, 230, VHOST, VCPU, 0);
	change(made, 0, 235, 0, VCPU, 0);
	enter(made, 238);
	change(made, 1, 240, VHOST, 0, SLEEPS);
	PUT(made, 2, 260, kvm_exit, .tid = OTHER_VCPU, .vm = OTHER_VM, .reason = MADE_HLT,
	    .vcpu = 0, .vendor = VP_VENDOR_AMD);
	leave(made, 330, MADE_HLT);
	change(made, 0, 340, VCPU, 0, SLEEPS);
}

static void make_network_guests(void)
{
	struct guest waits, sends;

	guest_begin(&waits, NAME, "guest-vm0", "vm0");
	guest_switch(&waits, 30, 0, WAITER);
	guest_switch(&waits, 100, WAITER, 0);
	put_event(&waits, 250, IRQ_ENTRY, (const uint32_t[]){0, 5});
	guest_waking(&waits, 252, 0, WAITER);
	put_event(&waits, 254, IRQ_EXIT, (const uint32_t[]){0, 5});
	guest_switch(&waits, 260, 0, WAITER);
	guest_switch(&waits, 320, WAITER, 0);
	guest_end(&waits);
	guest_begin(&sends, NAME, "guest-vm1", "vm1");
	guest_switch(&sends, 40, 0, SENDER);
	guest_switch(&sends, 220, SENDER, 0);
	guest_end(&sends);
}

static void make_network(bool of_device)
{
	struct made made;

	begin(&made, NAME, 2, 3);
	make_network_host(&made, of_device);
	end(&made);
	make_network_guests();
}

static const struct vp_threads_options all = {.to = UINT64_MAX, .vm = "vm0"};

static void expect_table(struct vp_table *table, const char *text)
{
	struct vp_buffer out = {0};

	vp_render_table_csv(table, false, &out);
	assert_string_equal(vp_buffer_text(&out), text);
	vp_buffer_deinit(&out);
	vp_table_deinit(table);
}

static void expect_path(const struct vp_threads_options *options, const char *word,
			const char *chain)
{
	const struct vp_thread *thread;
	struct vp_critical path;
	struct vp_threads threads;
	struct vp_table table = {0};
	uint64_t sum = 0;

	expect_no_error(vp_threads_open(NAME, options, &threads));
	expect_no_error(vp_critical_choose(&threads, "vm0", word, &thread));
	expect_no_error(vp_critical_find(&threads, thread, &path));
	vp_vec_each (&path.links, link) {
		assert_true(link->begin == path.from + sum);
		sum += link->end - link->begin;
	}
	assert_true(path.from + sum == path.to);
	vp_critical_chain_table(&path, &table);
	expect_table(&table, chain);
	vp_critical_deinit(&path);
	vp_threads_deinit(&threads);
}

static void test_path(void **state)
{
	make_wait(NAME, true);
	expect_path(&all, "waiter",
		    "1.000000030,70,guest,vm0,waiter/7,\n"
		    "1.000000100,40,guest,vm0,reader/8,\n"
		    "1.000000140,5,hypervisor,vm0,reader/8,\n"
		    "1.000000145,5,guest,vm0,reader/8,\n"
		    "1.000000150,50,host-queue,host,qemu/60,thief/50\n"
		    "1.000000200,30,host,host,qemu/60,\n"
		    "1.000000230,5,vcpu-wakeup,vm0,reader/8,idle pCPU\n"
		    "1.000000235,3,hypervisor,vm0,reader/8,\n"
		    "1.000000238,14,guest,vm0,reader/8,\n"
		    "1.000000252,8,guest-queue,vm0,reader/8,\n"
		    "1.000000260,20,guest,vm0,reader/8,\n"
		    "1.000000280,10,guest-queue,vm0,waiter/7,\n"
		    "1.000000290,30,guest,vm0,waiter/7,\n");
	const struct vp_threads_options some = {.from = AT(180), .to = AT(255), .vm = "vm0"};
	expect_path(&some, "7",
		    "1.000000180,20,host-queue,host,qemu/60,thief/50\n"
		    "1.000000200,30,host,host,qemu/60,\n"
		    "1.000000230,5,vcpu-wakeup,vm0,reader/8,idle pCPU\n"
		    "1.000000235,3,hypervisor,vm0,reader/8,\n"
		    "1.000000238,14,guest,vm0,reader/8,\n"
		    "1.000000252,3,guest-queue,vm0,reader/8,\n");
}

#define BEFORE_PACKET "1.000000030,70,guest,vm0,waiter/7,\n"
#define BEHIND_PACKET                                                                              \
	"1.000000200,5,host-queue,host,vhost/70,idle pCPU\n"                                       \
	"1.000000205,25,host,host,vhost/70,\n"                                                     \
	"1.000000230,5,vcpu-wakeup,vm0,waiter/7,idle pCPU\n"                                       \
	"1.000000235,3,hypervisor,vm0,waiter/7,\n"                                                 \
	"1.000000238,14,guest,vm0,waiter/7,\n"                                                     \
	"1.000000252,8,guest-queue,vm0,waiter/7,\n"                                                \
	"1.000000260,60,guest,vm0,waiter/7,\n"

/* A packet from another VM: its guest's thread is on the path, if that guest's events are read; one
 * that a device brought is nobody's. */
static void test_other_vm(void **state)
{
	struct vp_threads_options both = all;

	both.others = true;
	make_network(false);
	expect_path(&both, "waiter",
		    BEFORE_PACKET "1.000000100,95,guest,vm1,sender/9,\n"
				  "1.000000195,5,hypervisor,vm1,sender/9,\n" BEHIND_PACKET);
	expect_path(&all, "waiter",
		    BEFORE_PACKET "1.000000100,100,host,host,-/2001,\n" BEHIND_PACKET);
	make_network(true);
	expect_path(&both, "waiter",
		    BEFORE_PACKET
		    "1.000000100,100,device,host,vhost/70,host's interrupt 3\n" BEHIND_PACKET);
}

static void test_blame(void **state)
{
	const struct vp_thread *thread;
	struct vp_critical path;
	struct vp_threads threads;
	struct vp_table table = {0};

	make_wait(NAME, true);
	expect_no_error(vp_threads_open(NAME, &all, &threads));
	expect_no_error(vp_critical_choose(&threads, "vm0", "waiter", &thread));
	expect_no_error(vp_critical_find(&threads, thread, &path));
	vp_critical_blame_table(&path, &table);
	expect_table(&table, "100,34.4828,2,guest,vm0,waiter/7,\n"
			     "79,27.2414,4,guest,vm0,reader/8,\n"
			     "50,17.2414,1,host-queue,host,qemu/60,thief/50\n"
			     "30,10.3448,1,host,host,qemu/60,\n"
			     "10,3.44828,1,guest-queue,vm0,waiter/7,\n"
			     "8,2.75862,2,hypervisor,vm0,reader/8,\n"
			     "8,2.75862,1,guest-queue,vm0,reader/8,\n"
			     "5,1.72414,1,vcpu-wakeup,vm0,reader/8,idle pCPU\n");
	vp_critical_deinit(&path);
	vp_threads_deinit(&threads);
}

static void test_latencies(void **state)
{
	struct vp_threads threads;
	struct vp_guest_sched sums = {.threads = &threads, .max_worst = 1};
	struct vp_table times = {0}, worst = {0};

	make_wait(NAME, true);
	expect_no_error(vp_threads_open(NAME, &all, &threads));
	vp_guest_sched_sum(&sums);
	vp_guest_sched_thread_table(&sums, &times);
	expect_table(&times, "vm0,7,waiter,100,0,10,0,180,0,,0\n"
			     "vm0,8,reader,75,5,8,0,132,0,,5\n");
	vp_guest_sched_worst_table(&sums, &worst);
	/* The vCPU was woken at 230, had a pCPU at 235; its guest woke the reader at 252. */
	expect_table(&worst, "vm0,8,reader,30,5,17,8,1.000000230,device\n");
	vp_guest_sched_deinit(&sums);
	vp_threads_deinit(&threads);
}

/* A wakeup of which only a part is in the window does not count. */
static void test_window(void **state)
{
	static const struct {
		uint64_t from, to;
		size_t count;
	} windows[] = {{252, 290, 2}, {253, 1000, 1}, {281, 1000, 0}, {200, 259, 0}, {200, 260, 1}};

	make_wait(NAME, true);
	for (size_t i = 0; i < VP_ARRAY_SIZE(windows); i++) {
		const struct vp_threads_options options = {
		    .from = AT(windows[i].from), .to = AT(windows[i].to), .vm = "vm0"};
		struct vp_threads threads;
		struct vp_guest_sched sums = {.threads = &threads, .max_worst = 10};
		uint64_t whole = 0;
		expect_no_error(vp_threads_open(NAME, &options, &threads));
		vp_guest_sched_sum(&sums);
		for (size_t j = 0; j < VP_GUEST_SCHED_BUCKETS; j++)
			whole += sums.whole[j];
		assert_int_equal(whole, windows[i].count);
		assert_int_equal(sums.worst.count, windows[i].count);
		vp_guest_sched_deinit(&sums);
		vp_threads_deinit(&threads);
	}
}

static void test_errors(void **state)
{
	const struct vp_thread *thread;
	struct vp_threads threads;

	make_wait(NAME, false);
	expect_error(vp_threads_open(NAME, &all, &threads), "no events of guest 'vm0'");
	make_wait(NAME, true);
	expect_no_error(vp_threads_open(NAME, &all, &threads));
	expect_error(vp_critical_choose(&threads, "vm0", "nobody", &thread),
		     "no event of a thread");
	vp_threads_deinit(&threads);
	const struct vp_threads_options late = {.from = AT(5000), .to = UINT64_MAX, .vm = "vm0"};
	struct vp_critical path;
	expect_no_error(vp_threads_open(NAME, &late, &threads));
	expect_no_error(vp_critical_choose(&threads, "vm0", "7", &thread));
	expect_error(vp_critical_find(&threads, thread, &path),
		     "no event of the thread in that time");
	vp_threads_deinit(&threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_path),   cmocka_unit_test(test_other_vm),
	    cmocka_unit_test(test_blame),  cmocka_unit_test(test_latencies),
	    cmocka_unit_test(test_window), cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
