/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of the account: a row of each says the right VM, vCPU, reason, thief, place and figure. */
#include "account_records.h"

#include "make_recording.h"
#include "timeline/guests.h"

#define NAME "test_account_tables.rec"
#define AT(ns) (MADE_START + (ns))

enum { HLT = 0x78, IOIO = 0x7b, SECOND = 1000000000 };

static vp_vms vms;
static struct vp_account account;
static struct vp_account_view view;
static struct vp_table table;

static int setup(void **state)
{
	vms = (vp_vms){0};
	table = (struct vp_table){0};
	two_vms(&vms);
	vp_account_init(&account, &vms);
	expect_no_error(vp_account_view_init(&view, &account, NULL));
	return 0;
}

static int teardown(void **state)
{
	vp_account_view_deinit(&view);
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
	return 0;
}

/* Goes on with a view of that VM. */
static void look_at(const char *vm)
{
	vp_account_view_deinit(&view);
	expect_no_error(vp_account_view_init(&view, &account, vm));
}

static void test_state_names(void **state)
{
	static const char *const names[] = {"guest",     "kernel",     "poll",   "vmm",
					    "halted",    "waiting",    "waking", "preempted",
					    "throttled", "interrupted"};

	for (size_t i = 0; i < VP_STATES; i++)
		assert_string_equal(vp_state_name(i), names[i]);
}

static void test_shows(void **state)
{
	assert_true(vp_account_view_shows(&view, 0, 5) && vp_account_view_shows(&view, 9, 5));
	view.has_vcpu = true;
	view.vcpu = 1;
	assert_true(vp_account_view_shows(&view, 1, 1) && vp_account_view_shows(&view, 1, VP_NONE));
	assert_false(vp_account_view_shows(&view, 1, 0));
	look_at("beta");
	assert_true(vp_account_view_shows(&view, 1, 0));
	assert_false(vp_account_view_shows(&view, 0, 0));
	assert_false(vp_account_view_shows(&view, 2, 0)); /* one that came later */
	look_at("1000");
	assert_true(vp_account_view_shows(&view, 0, 0));
	assert_false(vp_account_view_shows(&view, 1, 0));
}

/* Rows are in the order of VMs and vCPUs, whatever came first; states that were not have none. */
static void test_states(void **state)
{
	TAKE(&account, vcpu_account, .vm = SECOND_VM, .vcpu = 1, .end = 200, .guest = 150,
	     .irq = 50);
	TAKE(&account, vcpu_account, .vm = SECOND_VM, .vcpu = 0, .end = 100, .halted = 100);
	TAKE(&account, vcpu_account, .vm = FIRST_VM, .vcpu = 1, .end = 100, .kernel = 30,
	     .preempted = 70);
	TAKE(&account, guest_sample, .vm = FIRST_VM, .vcpu = 0); /* not accounted for */
	vp_account_states_table(&view, &table);
	expect_csv(&table, true,
		   "vm,vcpu,state,ns,percent\n"
		   "alpha,1,kernel,30,30\n"
		   "alpha,1,preempted,70,70\n"
		   "beta,0,halted,100,100\n"
		   "beta,1,guest,150,75\n"
		   "beta,1,interrupted,50,25\n");
	view.has_vcpu = true;
	view.vcpu = 0;
	vp_account_states_table(&view, &table);
	expect_csv(&table, false, "beta,0,halted,100,100\n");
}

static void test_order_of_vcpus(void **state)
{
	static const uint32_t vcpus[] = {7, 2, 9, 0, 4};

	for (size_t i = 0; i < VP_ARRAY_SIZE(vcpus); i++)
		for (uint32_t vm = SECOND_VM; vm >= FIRST_VM; vm -= 1000)
			TAKE(&account, vcpu_account, .vm = vm, .vcpu = vcpus[i], .end = 1,
			     .throttled = 1);
	vp_account_states_table(&view, &table);
	expect_csv(&table, false,
		   "alpha,0,throttled,1,100\n"
		   "alpha,2,throttled,1,100\n"
		   "alpha,4,throttled,1,100\n"
		   "alpha,7,throttled,1,100\n"
		   "alpha,9,throttled,1,100\n"
		   "beta,0,throttled,1,100\n"
		   "beta,2,throttled,1,100\n"
		   "beta,4,throttled,1,100\n"
		   "beta,7,throttled,1,100\n"
		   "beta,9,throttled,1,100\n");
	vp_account_steal_table(&view, &table);
	expect_csv(&table, false,
		   "alpha,0,throttled,cgroup CPU quota,,1,0,1,100,,1\n"
		   "alpha,2,throttled,cgroup CPU quota,,1,0,1,100,,1\n"
		   "alpha,4,throttled,cgroup CPU quota,,1,0,1,100,,1\n"
		   "alpha,7,throttled,cgroup CPU quota,,1,0,1,100,,1\n"
		   "alpha,9,throttled,cgroup CPU quota,,1,0,1,100,,1\n"
		   "beta,0,throttled,cgroup CPU quota,,1,0,1,100,,1\n"
		   "beta,2,throttled,cgroup CPU quota,,1,0,1,100,,1\n"
		   "beta,4,throttled,cgroup CPU quota,,1,0,1,100,,1\n"
		   "beta,7,throttled,cgroup CPU quota,,1,0,1,100,,1\n"
		   "beta,9,throttled,cgroup CPU quota,,1,0,1,100,,1\n");
}

static void test_vcpus(void **state)
{
	TAKE(&account, vcpu_account, .vm = SECOND_VM, .vcpu = 1, .end = 2 * SECOND, .guest = SECOND,
	     .kernel = SECOND / 5, .poll = SECOND / 50, .vmm = SECOND / 25, .halted = SECOND / 10,
	     .waiting = SECOND / 20, .waking = SECOND / 100, .preempted = SECOND / 40,
	     .throttled = SECOND / 200, .irq = SECOND / 400, .exits = 41, .wakeups = 20,
	     .preemptions = 9, .polls = 6, .poll_wasted = 777);
	TAKE(&account, vcpu_account, .vm = FIRST_VM, .vcpu = 0, .end = SECOND / 4,
	     .guest = SECOND / 4, .exits = 1, .polls = 2);
	vp_account_vcpus_table(&view, &table);
	expect_csv(
	    &table, true,
	    "vm,vcpu,wall_ns,guest,kernel,poll,vmm,halted,waiting,waking,preempted,throttled,"
	    "interrupted,exits_per_s,wakeups_per_s,preemptions_per_s,polls,poll_wasted_ns\n"
	    "alpha,0,250000000,100,0,0,0,0,0,0,0,0,0,4,0,0,2,0\n"
	    "beta,1,2000000000,50,10,1,2,5,2.5,0.5,1.25,0.25,0.125,21,10,5,6,777\n");
	/* With samples, the guest's time is divided as they are. */
	for (int i = 0; i < 4; i++)
		TAKE(&account, guest_sample, .vm = SECOND_VM, .vcpu = 1,
		     .mode = i ? VP_MODE_GUEST_USER : VP_MODE_GUEST_KERNEL);
	look_at("beta");
	vp_account_vcpus_table(&view, &table);
	expect_csv(
	    &table, true,
	    "vm,vcpu,wall_ns,guest,kernel,poll,vmm,halted,waiting,waking,preempted,throttled,"
	    "interrupted,guest_user,guest_kernel,exits_per_s,wakeups_per_s,"
	    "preemptions_per_s,polls,poll_wasted_ns\n"
	    "beta,1,2000000000,50,10,1,2,5,2.5,0.5,1.25,0.25,0.125,37.5,12.5,21,10,5,6,"
	    "777\n");
	look_at("alpha"); /* it has none */
	vp_account_vcpus_table(&view, &table);
	expect_csv(&table, false, "alpha,0,250000000,100,0,0,0,0,0,0,0,0,0,4,0,0,2,0\n");
}

/* A grade that estimates the guest's time has its error, in percent of the vCPU's time. */
static void test_vcpus_estimated(void **state)
{
	account.grade = VP_ACCOUNT_STATES;
	TAKE(&account, vcpu_account, .vm = FIRST_VM, .vcpu = 1, .end = 2 * SECOND, .guest = SECOND,
	     .halted = SECOND);
	vp_account_vcpus_table(&view, &table);
	/* No sample says what the second was: all of it may have been the host's. */
	expect_csv(&table, true,
		   "vm,vcpu,wall_ns,guest,kernel,poll,vmm,halted,waiting,waking,preempted,"
		   "throttled,interrupted,guest_error,exits_per_s,wakeups_per_s,"
		   "preemptions_per_s,polls,poll_wasted_ns\n"
		   "alpha,1,2000000000,50,0,0,0,50,0,0,0,0,0,50,0,0,0,0,0\n");
}

static void take_exits(uint32_t vm, uint32_t vcpu, uint32_t reason, uint64_t count, uint64_t total)
{
	TAKE(&account, exit_account, .vm = vm, .vcpu = vcpu, .reason = reason,
	     .vendor = VP_VENDOR_AMD, .count = count, .total = total, .max = 40, .kernel = 1,
	     .poll = 2, .vmm = 3, .stolen = 4, .blocked = 5, .waking = 6);
	TAKE(&account, exit_bucket, .vm = vm, .vcpu = vcpu, .reason = reason,
	     .vendor = VP_VENDOR_AMD, .bucket = vp_bucket_of(32), .count = (uint32_t)count);
}

/* The vCPUs of a VM are summed, VMs and vendors are not; the dearest first. */
static void test_exits(void **state)
{
	take_exits(FIRST_VM, 0, HLT, 2, 100);
	take_exits(SECOND_VM, 0, HLT, 2, 150);
	take_exits(FIRST_VM, 1, HLT, 3, 200);
	take_exits(FIRST_VM, 1, IOIO, 1, 150);
	TAKE(&account, exit_account, .vm = FIRST_VM, .reason = 12, .vendor = VP_VENDOR_INTEL,
	     .count = 1, .total = 7);
	view.seconds = 2;
	vp_account_exits_table(&view, &table);
	expect_csv(&table, true,
		   "vm,reason,count,per_s,work_ns,work_mean_ns,kernel_ns,poll_ns,vmm_ns,asleep_ns,"
		   "steal_ns,waking_ns,total_ns,mean_ns,p50_ns,p99_ns,max_ns,blocked_ns,stolen_ns\n"
		   "alpha,HLT,5,3,12,2,2,4,6,10,20,12,300,60,36,39,40,10,8\n"
		   "beta,HLT,2,1,6,3,1,2,3,5,10,6,150,75,36,39,40,5,4\n"
		   "alpha,IOIO,1,1,6,6,1,2,3,5,10,6,150,150,36,39,40,5,4\n"
		   "alpha,HLT,1,1,0,0,0,0,0,0,0,0,7,7,0,0,0,0,0\n");
	view.limit = 1;
	view.has_vcpu = true; /* 0 */
	view.seconds = 0;
	vp_account_exits_table(&view, &table);
	expect_csv(&table, false, "beta,HLT,2,0,6,3,1,2,3,5,10,6,150,75,36,39,40,5,4\n");
}

/* A long sleep and long waits for a pCPU are no work: the port that needs the VMM comes first. */
static void test_exits_by_work(void **state)
{
	TAKE(&account, exit_account, .vm = FIRST_VM, .reason = HLT, .vendor = VP_VENDOR_AMD,
	     .count = 10, .total = 9000, .kernel = 90, .poll = 10, .stolen = 400, .blocked = 8000,
	     .waking = 500);
	TAKE(&account, exit_account, .vm = FIRST_VM, .reason = IOIO, .vendor = VP_VENDOR_AMD,
	     .count = 2, .total = 300, .kernel = 100, .vmm = 200);
	TAKE(&account, exit_site_waits, .vm = FIRST_VM, .reason = HLT, .vendor = VP_VENDOR_AMD,
	     .flags = VP_SITE_KNOWN, .ip = 0x1000, .count = 10, .ns = 9000, .idle = 8000,
	     .stolen = 900, .address = VP_NO_ADDRESS);
	TAKE(&account, exit_site, .vm = FIRST_VM, .reason = IOIO, .vendor = VP_VENDOR_AMD,
	     .flags = VP_SITE_KNOWN, .ip = 0x2000, .count = 2, .ns = 300);
	vp_account_exits_table(&view, &table);
	expect_csv(&table, false,
		   "alpha,IOIO,2,0,300,150,100,0,200,0,0,0,300,150,0,0,0,0,0\n"
		   "alpha,HLT,10,0,100,10,90,10,0,8000,900,500,9000,900,0,0,0,8000,400\n");
	vp_account_sites_table(&view, &(struct vp_naming){0}, VP_EXITS_BY_FUNCTION, &table);
	expect_csv(&table, false,
		   "alpha,0x2000,,[unknown],,IOIO,,2,300,150,0,0,300,150,0\n"
		   "alpha,0x1000,,[unknown],,HLT,,10,100,10,8000,900,9000,900,8000\n");
}

/* Recordings before 0.3 have no waits by place: a place has the share of all for its reason. */
static void test_exits_of_old_places(void **state)
{
	TAKE(&account, exit_account, .vm = FIRST_VM, .reason = HLT, .vendor = VP_VENDOR_AMD,
	     .count = 10, .total = 10000, .kernel = 1000, .blocked = 7000, .waking = 2000);
	TAKE(&account, exit_site, .vm = FIRST_VM, .reason = HLT, .vendor = VP_VENDOR_AMD,
	     .flags = VP_SITE_KNOWN, .ip = 0x1000, .count = 5, .ns = 5000);
	vp_account_sites_table(&view, &(struct vp_naming){0}, VP_EXITS_BY_FUNCTION, &table);
	expect_csv(&table, false,
		   "alpha,,,,,HLT,,5,500,100,3500,1000,5000,1000,3500\n"
		   "alpha,0x1000,,[unknown],,HLT,,5,500,100,3500,1000,5000,1000,3500\n");
}

/* Of what costs the same, what is more frequent comes first. */
static void test_order_of_exits(void **state)
{
	static const uint64_t counts[] = {3, 8, 1, 5};

	for (uint32_t i = 0; i < VP_ARRAY_SIZE(counts); i++) {
		take_exits(FIRST_VM, 0, 0x60 + i, counts[i], 100);
		TAKE(&account, exit_site, .vm = FIRST_VM, .reason = 0x60 + i,
		     .vendor = VP_VENDOR_AMD, .flags = VP_SITE_KNOWN, .ip = i + 1,
		     .count = counts[i], .ns = 100);
	}
	take_exits(SECOND_VM, 0, HLT, 2, 101);
	take_exits(SECOND_VM, 0, IOIO, 9, 99);
	vp_account_exits_table(&view, &table);
	static const uint64_t order[] = {2, 8, 5, 3, 1, 9};
	assert_int_equal(vp_table_rows(&table), VP_ARRAY_SIZE(order));
	for (size_t i = 0; i < VP_ARRAY_SIZE(order); i++)
		assert_int_equal(table.cells.at[i * table.columns.count + 2].count, order[i]);
	vp_table_deinit(&table);
	table = (struct vp_table){0};
	vp_account_sites_table(&view, &(struct vp_naming){0}, VP_EXITS_BY_PROCESS, &table);
	assert_int_equal(vp_table_rows(&table), VP_ARRAY_SIZE(order));
	for (size_t i = 0; i < VP_ARRAY_SIZE(order); i++)
		assert_int_equal(table.cells.at[i * table.columns.count + 4].count, order[i]);
	vp_table_deinit(&table);
}

/* How long a paravirtual guest's entries to Xen last, nobody tells. */
static void test_exits_without_times(void **state)
{
	take_exits(SECOND_VM, 1, VP_PARAVIRTUAL | 29, 4, 0);
	view.seconds = 1;
	vp_account_exits_table(&view, &table);
	assert_int_equal(vp_table_rows(&table), 1);
	assert_string_equal(table.cells.at[0].text, "beta");
	assert_int_equal(table.cells.at[2].count, 4);
	assert_int_equal(table.cells.at[3].count, 4);
	for (size_t cell = 4; cell < table.columns.count; cell++)
		assert_true(table.cells.at[cell].count == VP_CELL_NO_COUNT);
	vp_table_deinit(&table);
}

static void steal(uint32_t vm, uint32_t vcpu, enum vp_thief_record kind, uint32_t number,
		  uint32_t owner, uint64_t ns, const char *comm)
{
	struct vp_thief thief = {.vm = vm,
				 .vcpu = vcpu,
				 .state = VP_STATE_PREEMPTED,
				 .kind = (uint16_t)kind,
				 .number = number,
				 .thief_pid = owner,
				 .ns = ns,
				 .count = 1};

	memcpy(thief.comm, comm, strlen(comm));
	take_record(&account, VP_ID_thief, &thief);
}

/* A kind and a name for each thief: whose vCPU, whose VMM's thread or which VM's vhost it is. */
static void test_thieves(void **state)
{
	TAKE(&account, vcpu_account, .vm = FIRST_VM, .vcpu = 1, .end = 1000, .guest = 1000 - 680,
	     .preempted = 680);
	steal(FIRST_VM, 1, VP_BY_VCPU, 1, SECOND_VM, 90, "");
	steal(FIRST_VM, 1, VP_BY_VCPU, 0, FIRST_VM, 80, "");
	steal(FIRST_VM, 1, VP_BY_VCPU, 3, 5000, 79, "");
	steal(FIRST_VM, 1, VP_BY_TASK, 2003, SECOND_VM, 70, "qemu");
	steal(FIRST_VM, 1, VP_BY_TASK, 61, 0, 60, "vhost-2000");
	steal(FIRST_VM, 1, VP_BY_TASK, 62, 0, 59, "kvm-pit/1000");
	steal(FIRST_VM, 1, VP_BY_TASK, 63, 0, 58, "vhost-7");
	steal(FIRST_VM, 1, VP_BY_TASK, 64, 64, 57, "");
	steal(FIRST_VM, 1, VP_BY_NOBODY, 0, 0, 50, "");
	steal(FIRST_VM, 1, VP_BY_DEVICE, 24, 0, 30, "eth0");
	steal(FIRST_VM, 1, VP_BY_SOFTIRQ, 3, 0, 20, "NET_RX");
	steal(FIRST_VM, 1, VP_BY_VECTOR, 236, 0, 10, "");
	steal(FIRST_VM, 1, VP_BY_UNKNOWN, 0, 0, 9, "");
	steal(FIRST_VM, 1, VP_BY_MANY, 0, 0, 8, "");
	vp_account_steal_table(&view, &table);
	expect_csv(&table, true,
		   "vm,vcpu,kind,thief,cgroup,preempted_ns,waking_ns,ns,percent,count,taken_ns\n"
		   "alpha,1,vcpu,vCPU 1 of VM beta,,90,0,90,9,1,90\n"
		   "alpha,1,vcpu,vCPU 0 of VM alpha,,80,0,80,8,1,80\n"
		   "alpha,1,vcpu,vCPU 3 of VM ?,,79,0,79,7.9,1,79\n"
		   "alpha,1,task,qemu/2003 of VM beta,,70,0,70,7,1,70\n"
		   "alpha,1,task,vhost-2000/61 for VM beta,,60,0,60,6,1,60\n"
		   "alpha,1,task,kvm-pit/1000/62 for VM alpha,,59,0,59,5.9,1,59\n"
		   "alpha,1,task,vhost-7/63,,58,0,58,5.8,1,58\n"
		   "alpha,1,task,?/64,,57,0,57,5.7,1,57\n"
		   "alpha,1,idle,none: the pCPU was idle,,50,0,50,5,1,50\n"
		   "alpha,1,irq,eth0/24,,30,0,30,3,1,30\n"
		   "alpha,1,softirq,NET_RX/3,,20,0,20,2,1,20\n"
		   "alpha,1,irq,236,,10,0,10,1,1,10\n"
		   "alpha,1,unknown,unknown: more threads ran than are tracked,,9,0,9,0.9,1,9\n"
		   "alpha,1,others,thieves beyond the table,,8,0,8,0.8,1,8\n");
}

/* Of each VM in all, most first; of many VMs the first eight. */
static void test_totals_of_steal(void **state)
{
	vp_sentences said = {0};

	TAKE(&account, vcpu_account, .vm = FIRST_VM, .vcpu = 0, .end = 1000, .guest = 900,
	     .waking = 40, .preempted = 30, .throttled = 20, .irq = 10);
	TAKE(&account, vcpu_account, .vm = FIRST_VM, .vcpu = 1, .end = 1000, .guest = 1000);
	TAKE(&account, vcpu_account, .vm = SECOND_VM, .vcpu = 0, .end = 1000, .guest = 500,
	     .preempted = 500);
	vp_account_steal_totals(&view, &said);
	assert_int_equal(said.count, 2);
	assert_string_equal(said.at[0], "VM beta: 500 ns of steal, 50.00% of its vCPUs' time");
	assert_string_equal(said.at[1], "VM alpha: 100 ns of steal, 5.00% of its vCPUs' time");
	look_at("alpha");
	vp_account_steal_totals(&view, &said);
	assert_int_equal(said.count, 3);
	for (uint32_t vm = 1; vm <= 8; vm++)
		TAKE(&account, vcpu_account, .vm = 7000 + vm, .end = 1000, .guest = 999 - vm,
		     .preempted = vm + 1);
	look_at(NULL);
	vp_account_steal_totals(&view, &said);
	assert_int_equal(said.count, 3 + 8 + 1);
	assert_string_equal(said.at[11], "2 more VMs have steal");
	vp_vec_each (&said, sentence)
		free(*sentence);
	vp_vec_deinit(&said);
}

/* Most time first, with that of wake-ups, whichever came first. */
static void test_order_of_thieves(void **state)
{
	static const uint64_t taken[2] = {60, 100}, waking[2] = {60, 0};

	for (uint32_t vcpu = 0; vcpu < 2; vcpu++) {
		TAKE(&account, vcpu_account, .vm = FIRST_VM, .vcpu = (uint16_t)vcpu, .end = 1000,
		     .preempted = 160, .waking = 60, .guest = 780);
		for (uint32_t i = 0; i < 2; i++) {
			uint32_t which = i ^ vcpu;
			steal(FIRST_VM, vcpu, VP_BY_TASK, 5 + which, 0, taken[which], "t");
			if (waking[which])
				TAKE(&account, thief, .vm = FIRST_VM, .vcpu = (uint16_t)vcpu,
				     .state = VP_STATE_WAKING, .kind = VP_BY_TASK,
				     .number = 5 + which, .ns = waking[which], .count = 1,
				     .comm = "t");
		}
	}
	vp_account_steal_table(&view, &table);
	expect_csv(&table, false,
		   "alpha,0,task,t/5,,60,60,120,12,2,60\n"
		   "alpha,0,task,t/6,,100,0,100,10,1,100\n"
		   "alpha,1,task,t/5,,60,60,120,12,2,60\n"
		   "alpha,1,task,t/6,,100,0,100,10,1,100\n");
}

static void test_kernel_threads(void **state)
{
	vp_cgroups cgroups = {0};

	TAKE(&account, vcpu_account, .vm = SECOND_VM, .vcpu = 0, .end = 1000, .preempted = 1000);
	TAKE(&account, thief, .vm = SECOND_VM, .state = VP_STATE_PREEMPTED, .kind = VP_BY_TASK,
	     .number = 5, .flags = 1, .ns = 500, .count = 2, .cgroup = 9, .comm = "kworker/3:1");
	TAKE(&account, thief, .vm = SECOND_VM, .state = VP_STATE_IRQ, .kind = VP_BY_TASK,
	     .number = 6, .flags = 1, .ns = 400, .count = 3, .cgroup = 8, .comm = "ksoftirqd/3");
	TAKE(&account, thief, .vm = SECOND_VM, .state = VP_STATE_WAKING, .kind = VP_BY_TASK,
	     .number = 7, .ns = 100, .count = 4, .comm = "kworker/3:1");
	TAKE(&account, thief, .vm = SECOND_VM, .state = VP_STATE_PREEMPTED, .kind = VP_BY_DEVICE,
	     .number = 8, .flags = 1, .ns = 50, .count = 5);
	TAKE(&account, thief, .vm = SECOND_VM, .state = VP_STATE_PREEMPTED, .kind = 77, .ns = 1);
	vp_cgroups_note(&cgroups, 8);
	vp_cgroups_note(&cgroups, 9);
	cgroups.at[0].path = vp_strdup("/eight");
	cgroups.at[1].path = vp_strdup("/nine");
	view.cgroups = &cgroups;
	vp_account_steal_table(&view, &table);
	expect_csv(&table, false,
		   "beta,0,kworker,kworker/3:1/5,/nine,500,0,500,50,2,500\n"
		   "beta,0,kthread,ksoftirqd/3/6,/eight,400,0,400,40,3,400\n"
		   "beta,0,task,kworker/3:1/7,,0,100,100,10,4,0\n"
		   "beta,0,irq,8,,50,0,50,5,5,50\n"
		   "beta,0,unknown,unknown: more threads ran than are tracked,,1,0,1,0.1,0,1\n");
	vp_cgroups_deinit(&cgroups);
}

/* The quota has no thief, and what no thief explains has a row; each vCPU has its own rows. */
static void test_rest(void **state)
{
	TAKE(&account, vcpu_account, .vm = SECOND_VM, .vcpu = 1, .end = 1000, .throttled = 200,
	     .preempted = 100, .waking = 50, .irq = 25, .guest = 625);
	TAKE(&account, vcpu_account, .vm = SECOND_VM, .vcpu = 0, .end = 1000, .preempted = 100,
	     .guest = 900);
	TAKE(&account, vcpu_account, .vm = FIRST_VM, .vcpu = 0, .end = 100, .waking = 10,
	     .guest = 90);
	for (int how = 0; how < 3; how++)
		TAKE(&account, thief, .vm = SECOND_VM, .vcpu = 1,
		     .state = how == 0   ? VP_STATE_PREEMPTED
			      : how == 1 ? VP_STATE_WAKING
					 : VP_STATE_IRQ,
		     .kind = VP_BY_TASK, .number = 5, .ns = 10, .count = 1, .comm = "t");
	steal(SECOND_VM, 0, VP_BY_TASK, 5, 0, 100, "t");
	vp_account_steal_table(&view, &table);
	expect_csv(&table, false,
		   "alpha,0,unfinished,unfinished or unknown,,10,0,10,10,,10\n"
		   "beta,0,task,t/5,,100,0,100,10,1,100\n"
		   "beta,1,throttled,cgroup CPU quota,,200,0,200,20,,200\n"
		   "beta,1,unfinished,unfinished or unknown,,145,0,145,14.5,,145\n"
		   "beta,1,task,t/5,,20,10,30,3,3,20\n");
	view.limit = 2;
	view.has_vcpu = true;
	view.vcpu = 1;
	vp_account_steal_table(&view, &table);
	expect_csv(&table, false,
		   "beta,1,throttled,cgroup CPU quota,,200,0,200,20,,200\n"
		   "beta,1,unfinished,unfinished or unknown,,145,0,145,14.5,,145\n");
}

static void put_site(uint32_t vm, uint32_t reason, uint64_t address, uint32_t kind, uint64_t count,
		     uint64_t ns)
{
	TAKE(&account, exit_site_address, .vm = vm, .reason = reason, .vendor = VP_VENDOR_AMD,
	     .flags = VP_SITE_KNOWN, .ip = 0x1000 + kind, .count = count, .ns = ns,
	     .detail_kind = kind, .address = address);
}

static void take_cost(uint32_t vm, uint32_t reason, uint64_t count, uint64_t ns)
{
	for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
		TAKE(&account, exit_account, .vm = vm, .vcpu = vcpu, .reason = reason,
		     .vendor = VP_VENDOR_AMD, .count = count, .total = ns);
}

/* By VM, address and access; what the places lack of the sums by reason has no address. */
static void test_addresses(void **state)
{
	take_cost(FIRST_VM, MADE_NPF, 20, 1000);
	take_cost(SECOND_VM, MADE_NPF, 10, 500);
	take_cost(SECOND_VM, MADE_HLT, 10, 500);
	put_site(FIRST_VM, MADE_NPF, 0x5000, VP_DETAIL_MMIO_READ, 3, 300);
	put_site(FIRST_VM, MADE_NPF, 0x5000, VP_DETAIL_MMIO_WRITE, 4, 400);
	put_site(FIRST_VM, MADE_NPF, 0x200000, VP_DETAIL_MEMORY_READ, 5, 90);
	put_site(FIRST_VM, MADE_NPF, 0x200000, VP_DETAIL_MEMORY_WRITE, 6, 80);
	put_site(FIRST_VM, MADE_NPF, 0x400000, VP_DETAIL_MEMORY_FETCH, 7, 80);
	put_site(SECOND_VM, MADE_NPF, 0x5000, VP_DETAIL_MMIO_READ, 8, 400);
	put_site(SECOND_VM, MADE_NPF, 0x6000, VP_DETAIL_MEMORY_FETCH + 1, 1, 1);
	put_site(SECOND_VM, MADE_HLT, 0x7000, VP_DETAIL_MMIO_READ, 8, 400); /* not to memory */
	vp_account_addresses_table(&view, &table);
	expect_csv(&table, true,
		   "vm,address,what,access,reason,count,work_ns,work_mean_ns,asleep_ns,steal_ns,"
		   "total_ns,mean_ns,idle_ns\n"
		   "alpha,,,,NPF,15,1050,70,0,0,1050,70,0\n"
		   "beta,,,,NPF,11,599,54,0,0,599,54,0\n"
		   "beta,0x5000,device,read,NPF,8,400,50,0,0,400,50,0\n"
		   "alpha,0x5000,device,write,NPF,4,400,100,0,0,400,100,0\n"
		   "alpha,0x5000,device,read,NPF,3,300,100,0,0,300,100,0\n"
		   "alpha,0x200000-0x3fffff,memory,read,NPF,5,90,18,0,0,90,18,0\n"
		   "alpha,0x400000-0x5fffff,memory,fetch,NPF,7,80,11,0,0,80,11,0\n"
		   "alpha,0x200000-0x3fffff,memory,write,NPF,6,80,13,0,0,80,13,0\n"
		   "beta,0x6000-0x205fff,memory,,NPF,1,1,1,0,0,1,1,0\n");
	look_at("beta");
	view.limit = 2;
	vp_account_addresses_table(&view, &table);
	expect_csv(&table, false,
		   "beta,,,,NPF,11,599,54,0,0,599,54,0\n"
		   "beta,0x5000,device,read,NPF,8,400,50,0,0,400,50,0\n");
}

/* All exits have their addresses, or even more than were counted. */
static void test_addresses_of_all(void **state)
{
	take_cost(SECOND_VM, MADE_NPF, 1, 100);
	put_site(SECOND_VM, MADE_NPF, 0x5000, VP_DETAIL_MMIO_READ, 3, 300);
	vp_account_addresses_table(&view, &table);
	expect_csv(&table, false, "beta,0x5000,device,read,NPF,3,300,100,0,0,300,100,0\n");
}

static void render_diagnose_put_index(uint32_t vm, uint32_t reason, uint64_t ip, uint64_t root,
				      bool known, uint64_t count, uint64_t ns)
{
	TAKE(&account, exit_site, .vm = vm, .reason = reason, .vendor = VP_VENDOR_AMD,
	     .flags = known, .ip = ip, .as_root = root, .count = count, .ns = ns, .last = 5000);
}

static void load_maps(const char *name, const char *text, struct vp_naming_machine *ret)
{
	temporary_file(name, text, strlen(text));
	expect_no_error(vp_names_load(name, NULL, &ret->names));
}

/* Each VM's places are named by its own symbol map; one has none. */
static void make_naming(struct vp_naming *naming)
{
	static const char maps[] = "vperf-maps 1\nmachine guest beta\nsource memory\n"
				   "k ffffffff81000000 100 T in_kernel\n"
				   "a 0 71 5000 0 0 worker\n"
				   "m 0 400000 402000 0 0 - /bin/worker\n"
				   "i - /bin/worker\ns 100 10 work\nend 9\n";

	*naming = (struct vp_naming){0};
	vp_vec_push(&naming->vms, (struct vp_naming_machine){0});
	vp_vec_push(&naming->vms, (struct vp_naming_machine){0});
	load_maps("test_account_tables.maps", maps, &naming->vms.at[1]);
}

static void free_naming(struct vp_naming *naming)
{
	vp_names_free(naming->vms.at[1].names);
	vp_vec_deinit(&naming->vms);
}

static void put_offsets(void)
{
	take_cost(SECOND_VM, IOIO, 50, 5000);
	take_cost(FIRST_VM, IOIO, 2, 200);
	render_diagnose_put_index(SECOND_VM, IOIO, 0x400104, 0x5000, true, 10, 1000);
	render_diagnose_put_index(SECOND_VM, IOIO, 0x400108, 0x8000000000005fff, true, 1, 100);
	render_diagnose_put_index(SECOND_VM, IOIO, 0x401000, 0x5000, true, 20, 2000);
	render_diagnose_put_index(SECOND_VM, IOIO, 0xffffffff81000010, 0x5000, true, 5, 500);
	render_diagnose_put_index(SECOND_VM, IOIO, 0xffffffff81000020, 0x9000, true, 4, 400);
	render_diagnose_put_index(SECOND_VM, IOIO, 0x400104, 0x9000, true, 3, 300);
	render_diagnose_put_index(SECOND_VM, IOIO, 0x400104, 0, true, 2, 200);
	render_diagnose_put_index(SECOND_VM, IOIO, 0, 0, false, 6, 600);
	render_diagnose_put_index(FIRST_VM, IOIO, 0x400104, 0x5000, true, 1, 100);
	render_diagnose_put_index(FIRST_VM, IOIO, 0xffffffff81000010, 0, true, 1, 50);
}

/* Where the place is not known, it is nobody's: among what the places lack. */
static void test_places(void **state)
{
	struct vp_naming naming;

	make_naming(&naming);
	put_offsets();
	vp_account_sites_table(&view, &naming, VP_EXITS_BY_FUNCTION, &table);
	expect_csv(
	    &table, true,
	    "vm,function,module,process,pid,reason,detail,count,work_ns,work_mean_ns,asleep_"
	    "ns,steal_ns,total_ns,mean_ns,idle_ns\n"
	    "beta,,,,,IOIO,,55,5500,100,0,0,5500,100,0\n"
	    "beta,/bin/worker+0x1000,/bin/worker,worker,71,IOIO,,20,2000,100,0,0,2000,100,0\n"
	    "beta,work,/bin/worker,worker,71,IOIO,,11,1100,100,0,0,1100,100,0\n"
	    "beta,in_kernel,[kernel],worker,71,IOIO,,5,500,100,0,0,500,100,0\n"
	    "beta,in_kernel,[kernel],[kernel],,IOIO,,4,400,100,0,0,400,100,0\n"
	    "beta,0x400104,,cr3:0x9000,,IOIO,,3,300,100,0,0,300,100,0\n"
	    "alpha,,,,,IOIO,,2,250,125,0,0,250,125,0\n"
	    "beta,0x400104,,[unknown],,IOIO,,2,200,100,0,0,200,100,0\n"
	    "alpha,0x400104,,cr3:0x5000,,IOIO,,1,100,100,0,0,100,100,0\n"
	    "alpha,0xffffffff81000010,,[kernel],,IOIO,,1,50,50,0,0,50,50,0\n");
	vp_account_sites_table(&view, &naming, VP_EXITS_BY_PROCESS, &table);
	expect_csv(&table, true,
		   "vm,process,pid,reason,count,work_ns,work_mean_ns,asleep_ns,steal_ns,total_ns,"
		   "mean_ns,idle_ns\n"
		   "beta,,,IOIO,55,5500,100,0,0,5500,100,0\n"
		   "beta,worker,71,IOIO,36,3600,100,0,0,3600,100,0\n"
		   "beta,[kernel],,IOIO,4,400,100,0,0,400,100,0\n"
		   "beta,cr3:0x9000,,IOIO,3,300,100,0,0,300,100,0\n"
		   "alpha,,,IOIO,2,250,125,0,0,250,125,0\n"
		   "beta,[unknown],,IOIO,2,200,100,0,0,200,100,0\n"
		   "alpha,cr3:0x5000,,IOIO,1,100,100,0,0,100,100,0\n"
		   "alpha,[kernel],,IOIO,1,50,50,0,0,50,50,0\n");
	look_at("alpha");
	view.limit = 1;
	vp_account_sites_table(&view, &naming, VP_EXITS_BY_PROCESS, &table);
	expect_csv(&table, false, "alpha,,,IOIO,2,250,125,0,0,250,125,0\n");
	free_naming(&naming);
}

/* A kernel's names that the user gave go before those of the symbol map, for kernel code only. */
static void test_kernel_names(void **state)
{
	static const char system_map[] = "ffffffff81000000 T given\nffffffff81000100 T end\n";
	struct vp_naming naming;

	make_naming(&naming);
	temporary_file("test_account_tables.map", system_map, sizeof(system_map) - 1);
	expect_no_error(
	    vp_names_load_kallsyms("test_account_tables.map", &naming.vms.at[1].kernel));
	take_cost(SECOND_VM, IOIO, 0, 0);
	render_diagnose_put_index(SECOND_VM, IOIO, 0xffffffff81000010, 0x5000, true, 5, 500);
	render_diagnose_put_index(SECOND_VM, IOIO, 0x400104, 0x5000, true, 4, 400);
	vp_account_sites_table(&view, &naming, VP_EXITS_BY_FUNCTION, &table);
	expect_csv(&table, false,
		   "beta,given,[kernel],worker,71,IOIO,,5,500,100,0,0,500,100,0\n"
		   "beta,work,/bin/worker,worker,71,IOIO,,4,400,100,0,0,400,100,0\n");
	vp_names_free(naming.vms.at[1].kernel);
	free_naming(&naming);
}

static void put_span(struct made *made, uint32_t vm, uint32_t vcpu, uint64_t ns, uint64_t length,
		     uint32_t state, uint16_t flags)
{
	struct vp_vcpu_span span = {.time = AT(ns),
				    .id = VP_ID_vcpu_span,
				    .flags = flags,
				    .vm = vm,
				    .tid = vm + vcpu + 1,
				    .vcpu = (uint16_t)vcpu,
				    .state = (uint8_t)state,
				    .vendor = VP_VENDOR_INTEL,
				    .reason = 12 + vcpu,
				    .cpu = 3 + vcpu,
				    .ns = length};

	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_STATES, VP_NO_PCPU}, &span);
}

/* A state begins as much before its record's time as it lasted. */
static void test_events(void **state)
{
	struct made made;

	made_begin(&made, NAME, 2);
	put_span(&made, SECOND_VM, 1, 100, 150, VP_STATE_WAKING, 0); /* from before the start on */
	put_span(&made, FIRST_VM, 0, 200, 60, VP_STATE_GUEST, 0);
	put_span(&made, 3000, 0, 250, 60, VP_STATE_GUEST, 0);
	put_span(&made, FIRST_VM, 0, 260, 1, VP_STATES, 0);
	put_span(&made, SECOND_VM, 1, 300, 40, VP_STATE_KERNEL, VP_HAS_EXIT_REASON);
	put_span(&made, SECOND_VM, 0, 310, 20, VP_STATE_HALTED, VP_HAS_EXIT_REASON);
	vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_STATES, VP_NO_PCPU}, 0);
	made_end(&made, 1);
	expect_no_error(vp_account_events_table(&view, NAME, AT(0), &table));
	expect_csv(&table, true,
		   "begin_ns,ns,vm,vcpu,pcpu,state,reason\n"
		   "0,150,beta,1,4,waking,-\n"
		   "140,60,alpha,0,3,guest,-\n"
		   "260,40,beta,1,4,kernel,INVD\n"
		   "290,20,beta,0,3,halted,HLT\n");
	look_at("beta");
	view.limit = 2;
	expect_no_error(vp_account_events_table(&view, NAME, AT(0), &table));
	expect_csv(&table, false,
		   "0,150,beta,1,4,waking,-\n"
		   "260,40,beta,1,4,kernel,INVD\n");
	view.has_vcpu = true; /* 0 */
	expect_no_error(vp_account_events_table(&view, NAME, AT(0), &table));
	expect_csv(&table, false, "290,20,beta,0,3,halted,HLT\n");
}

static void test_no_events(void **state)
{
	struct made made;

	made_begin(&made, NAME, 2);
	made_end(&made, 1);
	expect_error(vp_account_events_table(&view, NAME, AT(0), &table),
		     "has no account events: record with --account-events");
	expect_error(vp_account_view_init(&view, &account, "gamma"),
		     "'gamma'; the VMs are alpha (1000), beta (2000)");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_state_names),
	    TEST(test_shows),
	    TEST(test_states),
	    TEST(test_order_of_vcpus),
	    TEST(test_vcpus),
	    TEST(test_vcpus_estimated),
	    TEST(test_exits),
	    TEST(test_exits_by_work),
	    TEST(test_exits_of_old_places),
	    TEST(test_order_of_exits),
	    TEST(test_exits_without_times),
	    TEST(test_thieves),
	    TEST(test_totals_of_steal),
	    TEST(test_kernel_threads),
	    TEST(test_order_of_thieves),
	    TEST(test_rest),
	    TEST(test_addresses),
	    TEST(test_addresses_of_all),
	    TEST(test_places),
	    TEST(test_kernel_names),
	    TEST(test_events),
	    TEST(test_no_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
