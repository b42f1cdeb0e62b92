/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Findings of two VMs with two vCPUs each: of which VM, from which share on, by whom and where. */
#include "account_records.h"

#include "analyze/report/diagnose.h"
#include "analyze/report/diagnose_commands.h"

enum { SECOND = 1000000000, PERCENT = SECOND / 100, PAUSE = 0x77, IOIO = 0x7b, MSR = 0x7c };

static vp_vms vms;
static struct vp_account account;
static struct vp_account_view view;
static struct vp_table places, addresses;
static struct vp_losses losses;
static struct vp_diagnosis diagnosis;

static int setup(void **state)
{
	vms = (vp_vms){0};
	places = addresses = (struct vp_table){0};
	losses = (struct vp_losses){0};
	two_vms(&vms);
	vp_account_init(&account, &vms);
	expect_no_error(vp_account_view_init(&view, &account, NULL));
	return 0;
}

static int teardown(void **state)
{
	vp_table_deinit(&places);
	vp_table_deinit(&addresses);
	vp_account_view_deinit(&view);
	vp_account_deinit(&account);
	vp_vms_deinit(&vms);
	return 0;
}

static void diagnose(void)
{
	static const struct vp_naming nothing;

	vp_table_deinit(&places);
	vp_table_deinit(&addresses);
	places = addresses = (struct vp_table){0};
	vp_account_settle(&account);
	vp_account_sites_table(&view, &nothing, VP_EXITS_BY_FUNCTION, &places);
	vp_account_addresses_table(&view, &addresses);
	vp_diagnose(&view, &places, &addresses, &losses, NULL, &diagnosis);
}

/* "VM id ns", one line each. */
static void expect_findings(const char *expected)
{
	struct vp_buffer out = {0};

	diagnose();
	vp_vec_each (&diagnosis.findings, finding)
		vp_buffer_printf(
		    &out, "%s %s %llu %llu %s\n",
		    finding->vm == VP_FINDING_OF_NO_VM ? "-" : vms.at[finding->vm].name,
		    finding->rule->id, (unsigned long long)finding->ns,
		    (unsigned long long)finding->count, finding->who ? finding->who : "-");
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
	vp_diagnosis_deinit(&diagnosis);
}

static void take_seconds(uint64_t preempted)
{
	for (uint32_t vm = FIRST_VM; vm <= SECOND_VM; vm += 1000)
		for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
			TAKE(&account, vcpu_account, .time = SECOND, .vm = vm, .vcpu = vcpu,
			     .end = SECOND, .guest = SECOND - preempted, .preempted = preempted);
}

static void take_theft(uint32_t vm, uint32_t vcpu, enum vp_thief_record kind, uint32_t owner,
		       uint16_t flags, uint64_t ns, const char *comm)
{
	struct vp_thief thief = {.time = SECOND,
				 .vm = vm,
				 .vcpu = vcpu,
				 .state = VP_STATE_PREEMPTED,
				 .kind = (uint16_t)kind,
				 .number = 7,
				 .thief_pid = owner,
				 .flags = flags,
				 .ns = ns,
				 .count = 10};

	memcpy(thief.comm, comm, strlen(comm));
	take_record(&account, VP_ID_thief, &thief);
}

static void take_exits(uint32_t vm, uint32_t vcpu, uint32_t reason, uint64_t count, uint64_t kernel,
		       uint64_t vmm)
{
	TAKE(&account, exit_account, .vm = vm, .vcpu = vcpu, .reason = reason,
	     .vendor = VP_VENDOR_AMD, .count = count, .total = kernel + vmm, .kernel = kernel,
	     .vmm = vmm);
}

static void expect_commands(const char *rule_id, const struct vp_vm *vm, uint32_t pcpus,
			    const char *expected)
{
	size_t count;
	const struct vp_rule *rules = vp_rules(&count);
	struct vp_buffer out = {0};

	for (size_t i = 0; i < count; i++)
		if (!strcmp(rules[i].id, rule_id))
			vp_diagnose_commands(&rules[i], vm, pcpus, &out);
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
}

static void expect_pcpus(const struct vp_vm *vm, uint32_t pcpus, const char *expected)
{
	struct vp_buffer out = {0};

	vp_diagnose_pcpus(vm, pcpus, &out);
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
}

/* A large VM has commands for some of its vCPUs, and says so; Xen's domains have numbers. */
static void test_many_vcpus(void **state)
{
	struct vp_vm vm = vp_vm_of_id(7);

	vm.name = vp_strdup("web");
	vm.has_domain = true;
	vm.domain = 5;
	for (uint32_t i = 0; i < 10; i++)
		vp_vm_vcpu(&vm, i)->pcpus = vp_strdup("0");
	expect_commands("steal-vm", &vm, 2,
			"xl vcpu-pin 5 0 1\nxl vcpu-pin 5 1 1\nxl vcpu-pin 5 2 1\n"
			"xl vcpu-pin 5 3 1\nxl vcpu-pin 5 4 1\nxl vcpu-pin 5 5 1\n"
			"xl vcpu-pin 5 6 1\nxl vcpu-pin 5 7 1\n"
			"# and so on for its other 2 vCPUs\n");
	expect_commands("quota", &vm, 2, "xl sched-credit2 -d 5 -c 0\n");
	vm.scheduler = vp_strdup("credit");
	expect_commands("quota", &vm, 2, "xl sched-credit -d 5 -c 0\n");
	expect_commands("steal-vm", &vm, 1, "xl sched-credit -d 5 -w 512\n");
	free(vm.scheduler);
	vm.scheduler = vp_strdup("rtds");
	expect_commands("quota", &vm, 2, "");
	expect_commands("steal-vm", &vm, 1, "");
	vm.has_domain = false;
	vm.cgroup = vp_strdup("/machine.slice/machine-qemu\\x2d3.scope");
	expect_commands("steal-vm", &vm, 2,
			"virsh vcpupin web 0 1\nvirsh vcpupin web 1 1\nvirsh vcpupin web 2 1\n"
			"virsh vcpupin web 3 1\nvirsh vcpupin web 4 1\nvirsh vcpupin web 5 1\n"
			"virsh vcpupin web 6 1\nvirsh vcpupin web 7 1\n"
			"# and so on for its other 2 vCPUs\n");
	vp_vm_deinit(&vm);
}

/* Each manager's commands, with the numbers of pCPUs that the VM does not use yet. */
static void test_commands(void **state)
{
	static const struct {
		const char *cgroup, *name;
		enum vp_manager manager;
		const char *pin, *quota, *emulator, *pages, *weight;
	} managers[] = {
	    {"/machine.slice/machine-qemu\\x2d3\\x2dweb.scope/libvirt/emulator", "web",
	     VP_MANAGER_LIBVIRT, "virsh vcpupin web 0 0,4-7\nvirsh vcpupin web 1 0,4-7\n",
	     "virsh schedinfo web --live --set vcpu_quota=-1\n", "virsh emulatorpin web 0,4-7\n",
	     "virt-xml web --edit --memorybacking hugepages=yes\n",
	     "virsh schedinfo web --live --set cpu_shares=200\n"},
	    {"/machine.slice/machine-qemu\\x2d3\\x2dinstance\\x2d0000002a.scope",
	     "instance-0000002a", VP_MANAGER_NOVA,
	     "openstack flavor set FLAVOR --property hw:cpu_policy=dedicated\n"
	     "openstack server resize --flavor FLAVOR SERVER\n",
	     "openstack flavor set FLAVOR --property quota:cpu_quota=-1\n", "",
	     "openstack flavor set FLAVOR --property hw:mem_page_size=large\n",
	     "openstack flavor set FLAVOR --property quota:cpu_shares=200\n"},
	    {"/machine.slice/machine-qemu\\x2d3.scope", "instance-0000002a-x", VP_MANAGER_LIBVIRT,
	     "virsh vcpupin instance-0000002a-x 0 0,4-7\n"
	     "virsh vcpupin instance-0000002a-x 1 0,4-7\n",
	     "virsh schedinfo instance-0000002a-x --live --set vcpu_quota=-1\n",
	     "virsh emulatorpin instance-0000002a-x 0,4-7\n",
	     "virt-xml instance-0000002a-x --edit --memorybacking hugepages=yes\n",
	     "virsh schedinfo instance-0000002a-x --live --set cpu_shares=200\n"},
	    {"/qemu.slice/100.scope", "web", VP_MANAGER_PROXMOX, "qm set 100 --affinity 0,4-7\n",
	     "qm set 100 --cpulimit 0\n", "", "qm set 100 --hugepages 2\n",
	     "qm set 100 --cpuunits 200\n"},
	    {"/system.slice/my vm.service", "web", VP_MANAGER_SYSTEMD,
	     "systemctl set-property 'my vm.service' AllowedCPUs=0,4-7\n",
	     "systemctl set-property 'my vm.service' CPUQuota=\n", "", "",
	     "systemctl set-property 'my vm.service' CPUWeight=200\n"},
	    {"/system.slice/vm.service/vcpus", "web", VP_MANAGER_SYSTEMD,
	     "systemctl set-property vm.service AllowedCPUs=0,4-7\n",
	     "systemctl set-property vm.service CPUQuota=\n", "", "",
	     "systemctl set-property vm.service CPUWeight=200\n"},
	    {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1a.slice/"
	     "cri-containerd-9c.scope/machine/qemu-1-shop_db.libvirt-qemu",
	     "shop_db", VP_MANAGER_KUBEVIRT, "", "", "", "", ""},
	    {"/kubepods/pod1a/9c.scope", "sandbox-9c2f", VP_MANAGER_UNKNOWN, "", "", "", "", ""},
	    {"/firecracker/551e7604", "551e7604", VP_MANAGER_FIRECRACKER, "", "", "", "", ""},
	    {"/user.slice/user-1000.slice/session-2.scope", "web", VP_MANAGER_UNKNOWN, "", "", "",
	     "", ""},
	    {"/", "web", VP_MANAGER_UNKNOWN, "", "", "", "", ""},
	};

	for (size_t i = 0; i < VP_ARRAY_SIZE(managers); i++) {
		struct vp_vm vm = vp_vm_of_id(7);
		vm.name = vp_strdup(managers[i].name);
		vm.cgroup = vp_strdup(managers[i].cgroup);
		vp_vm_vcpu(&vm, 0)->pcpus = vp_strdup("1-2");
		vp_vm_vcpu(&vm, 1)->pcpus = vp_strdup("2-3");
		assert_int_equal(vp_manager_of(&vm), managers[i].manager);
		VP_AUTO_FREE char *namespace = vp_vm_namespace(&vm);
		assert_string_equal(namespace,
				    managers[i].manager == VP_MANAGER_KUBEVIRT ? "shop" : "");
		expect_commands("steal-vm", &vm, 8, managers[i].pin);
		expect_commands("quota", &vm, 8, managers[i].quota);
		expect_commands("exits-cpuid", &vm, 8, "");
		expect_commands("steal-vmm", &vm, 8, managers[i].emulator);
		expect_commands("tlb-misses", &vm, 8, managers[i].pages);
		/* Where a vCPU may run is not known. */
		vp_vm_vcpu(&vm, 2);
		expect_commands("steal-vm", &vm, 8, managers[i].weight);
		expect_commands("overcommit", &vm, 8, "");
		vp_vm_vcpu(&vm, 2)->pcpus = vp_strdup("3");
		expect_pcpus(&vm, 8, "1-3");
		expect_pcpus(&vm, 1, "0");
		/* No other pCPU. */
		free(vp_vm_vcpu(&vm, 0)->pcpus);
		vp_vm_vcpu(&vm, 0)->pcpus = vp_strdup("0-7");
		expect_commands("steal-vm", &vm, 8, managers[i].weight);
		expect_commands("steal-self", &vm, 8, "");
		vp_vm_deinit(&vm);
	}
}

/* One task that costs two VMs, and two that cost one each. */
static void test_causes(void **state)
{
	take_seconds(30 * PERCENT);
	take_theft(FIRST_VM, 0, VP_BY_TASK, 70, 0, 30 * PERCENT, "backup");
	take_theft(SECOND_VM, 0, VP_BY_TASK, 70, 0, 20 * PERCENT, "backup");
	diagnose();
	assert_int_equal(diagnosis.findings.count, 2);
	assert_int_equal(diagnosis.findings.at[0].cause, 0);
	assert_int_equal(diagnosis.findings.at[1].cause, 1);
	vp_diagnosis_deinit(&diagnosis);
	take_theft(SECOND_VM, 1, VP_BY_TASK, 71, 0, 60 * PERCENT, "make");
	diagnose();
	assert_int_equal(diagnosis.findings.count, 2);
	assert_int_equal(diagnosis.findings.at[1].cause, 0);
	vp_diagnosis_deinit(&diagnosis);
}

/* Whoever takes time from both VMs is one cause, whatever kind of thief it is; threads of a VMM
 * work for one VM each. */
static void test_causes_of_each_kind(void **state)
{
	static const struct {
		const char *comm;
		enum vp_thief_record kind;
		uint32_t owner;
		uint16_t flags;
		bool is_one;
	} thieves[] = {
	    {"backup", VP_BY_TASK, 70, 0, true},      {"vperf", VP_BY_TASK, 9, 0, true},
	    {"irq/24-nvme", VP_BY_TASK, 0, 1, true},  {"eth0", VP_BY_DEVICE, 0, 0, true},
	    {"timer", VP_BY_VECTOR, 0, 0, true},      {"", VP_BY_VCPU, 3000, 0, true},
	    {"qemu", VP_BY_TASK, FIRST_VM, 0, false}, {"", VP_BY_VCPU, FIRST_VM, 0, false}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(thieves); i++) {
		take_seconds(0);
		for (uint32_t vm = FIRST_VM; vm <= SECOND_VM; vm += 1000)
			take_theft(vm, 0, thieves[i].kind,
				   thieves[i].owner == FIRST_VM ? vm : thieves[i].owner,
				   thieves[i].flags, SECOND / 5, thieves[i].comm);
		diagnose();
		assert_int_equal(diagnosis.findings.count, 2);
		assert_ptr_equal(diagnosis.findings.at[0].rule, diagnosis.findings.at[1].rule);
		assert_int_equal(diagnosis.findings.at[0].cause, 0);
		assert_int_equal(diagnosis.findings.at[1].cause, thieves[i].is_one ? 1 : 0);
		vp_diagnosis_deinit(&diagnosis);
		teardown(NULL);
		setup(NULL);
	}
}

/* The rules as they are documented: what each is about, from which share on. */
static void test_rules(void **state)
{
	static const struct {
		const char *id;
		double least;
		unsigned thieves;
	} expected[] = {{"steal-vm", 2, VP_THIEF_OTHER_VM},
			{"overcommit", 2, VP_THIEF_OTHER_VM},
			{"steal-self", 2, VP_THIEF_SAME_VM},
			{"steal-task", 4, VP_THIEF_TASK},
			{"steal-vmm", 4, VP_THIEF_VMM},
			{"steal-irq", 3, VP_THIEF_DEVICE},
			{"irq-storm", 3, VP_THIEF_STORM},
			{"steal-tick", 3, VP_THIEF_VECTOR},
			{"quota", 2, 0},
			{"wakeup", 3, 0},
			{"halt-polling", 5, 0},
			{"exits-lock", 2, 0},
			{"exits-pause", 5, 0},
			{"exits-timer", 5, 0},
			{"exits-ipi", 5, 0},
			{"exits-msr", 5, 0},
			{"exits-port", 3, 0},
			{"exits-mmio", 3, 0},
			{"faults", 3, 0},
			{"exits-cpuid", 3, 0},
			{"tlb-misses", 5, 0},
			{"tool-cost", 3, VP_THIEF_TOOL},
			{"lost-samples", 0.1, 0},
			{"lost-account", 0, 0},
			{"lost-events", 0.1, 0},
			{"lost-guest-events", 0.1, 0},
			{"lost-intervals", 0.1, 0}};
	size_t count;
	const struct vp_rule *rules = vp_rules(&count);

	assert_int_equal(count, VP_ARRAY_SIZE(expected));
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(rules[i].id, expected[i].id);
		assert_true(rules[i].least == expected[i].least);
		assert_int_equal(rules[i].thieves, expected[i].thieves);
	}
}

static const struct vp_rule *rule_of(const char *id)
{
	size_t count;
	const struct vp_rule *rules = vp_rules(&count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(rules[i].id, id))
			return &rules[i];
	fail();
	return NULL;
}

/* Of domains other words, as far as there are some. */
static void test_words(void **state)
{
	const struct vp_vm kvm = {0}, domain = {.has_domain = true};
	size_t count;
	const struct vp_rule *rules = vp_rules(&count);

	for (size_t i = 0; i < count; i++) {
		const struct vp_rule *rule = &rules[i];
		struct vp_rule_words words = vp_rule_words(rule, &kvm);
		assert_ptr_equal(words.what, rule->what);
		assert_ptr_equal(words.advice, rule->advice);
		assert_ptr_equal(words.source, rule->source);
		words = vp_rule_words(rule, NULL);
		assert_ptr_equal(words.advice, rule->advice);
		words = vp_rule_words(rule, &domain);
		const struct vp_rule_words *own = rule->by_scheduler
						      ? &rule->by_scheduler[VP_SCHEDULER_CREDIT2]
						      : &rule->of_domains;
		bool other = own->advice;
		assert_int_equal(other, own->source != NULL);
		assert_ptr_equal(words.what, own->what ? own->what : rule->what);
		assert_ptr_equal(words.advice, other ? own->advice : rule->advice);
		assert_ptr_equal(words.source, other ? own->source : rule->source);
	}
}

/* Advice names the command of the recording's scheduler, and none that the scheduler has not. */
static void test_schedulers(void **state)
{
	static const char *const ids[] = {"steal-vm", "overcommit", "quota"};
	static const struct {
		const char *name, *command;
	} schedulers[] = {{NULL, "sched-credit2"},
			  {"credit2", "sched-credit2"},
			  {"credit", "sched-credit"},
			  {"rtds", "sched-rtds"},
			  {"null", NULL},
			  {"arinc653", NULL}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(ids) * VP_ARRAY_SIZE(schedulers); i++) {
		const char *command = schedulers[i / VP_ARRAY_SIZE(ids)].command;
		struct vp_vm vm = {.has_domain = true};
		vm.scheduler = (char *)schedulers[i / VP_ARRAY_SIZE(ids)].name;
		struct vp_rule_words words =
		    vp_rule_words(rule_of(ids[i % VP_ARRAY_SIZE(ids)]), &vm);
		const char *texts[] = {words.advice, words.source};
		for (size_t j = 0; j < VP_ARRAY_SIZE(texts); j++) {
			const char *at = strstr(texts[j], "sched-");
			assert_int_equal(at != NULL, command != NULL);
			if (!at)
				continue;
			assert_int_equal(strcspn(at, " ),;"), strlen(command));
			assert_memory_equal(at, command, strlen(command));
		}
	}
}

/* A VM's findings are its own, in the order of their time; 4 % of two vCPUs' time is enough. */
static void test_of_which_vm(void **state)
{
	take_seconds(0);
	take_theft(SECOND_VM, 1, VP_BY_TASK, 77, 0, 8 * PERCENT, "burner");
	take_theft(FIRST_VM, 0, VP_BY_TASK, 77, 0, 8 * PERCENT - 1, "burner");
	take_theft(FIRST_VM, 1, VP_BY_TASK, FIRST_VM, 0, 9 * PERCENT, "qemu");
	take_theft(FIRST_VM, 1, VP_BY_TASK, SECOND_VM, 0, 1, "qemu"); /* another VM's: a task */
	expect_findings("alpha steal-vmm 90000000 10 qemu/7\n"
			"alpha steal-task 80000000 20 burner/7\n"
			"beta steal-task 80000000 10 burner/7\n");
	/* With one vCPU it is twice the share; the other one's thieves are not its. */
	view.has_vcpu = true;
	view.vcpu = 1;
	expect_findings("alpha steal-vmm 90000000 10 qemu/7\n"
			"beta steal-task 80000000 10 burner/7\n");
	diagnose();
	assert_true(diagnosis.findings.at[0].percent == 9 && diagnosis.findings.at[1].percent == 8);
	assert_int_equal(diagnosis.findings.at[0].most, 90000000);
	assert_string_equal(diagnosis.findings.at[0].words.what,
			    "threads that emulate its own devices");
	vp_diagnosis_deinit(&diagnosis);
}

/* Threads of the kernel that work for the VM, for another one, for interrupts, for none. */
static void test_classes(void **state)
{
	static const struct {
		const char *comm, *rule;
		enum vp_thief_record kind;
		uint32_t owner;
		uint16_t flags;
	} thieves[] = {{"vhost-1000", "steal-vmm", VP_BY_TASK, 0, 1},
		       {"vhost-2000", "steal-task", VP_BY_TASK, 0, 1},
		       {"kvm-pit/1000", "steal-vmm", VP_BY_TASK, 0, 1},
		       {"kvm-pit/100", "steal-task", VP_BY_TASK, 0, 1},
		       {"irq/24-nvme", "steal-irq", VP_BY_TASK, 0, 1},
		       {"irq/24-nvme", "steal-task", VP_BY_TASK, 0, 0},
		       {"irq", "steal-task", VP_BY_TASK, 0, 1},
		       {"ksoftirqd/1", "steal-irq", VP_BY_TASK, 0, 1},
		       {"vperf", "tool-cost", VP_BY_TASK, 9, 0},
		       {"vperfx", "steal-task", VP_BY_TASK, 9, 0},
		       {"", "steal-self", VP_BY_VCPU, FIRST_VM, 0},
		       {"", "steal-vm", VP_BY_VCPU, SECOND_VM, 0},
		       {"", "steal-vm", VP_BY_VCPU, 3000, 0},
		       {"eth0", "steal-irq", VP_BY_DEVICE, 0, 0},
		       {"RCU", "steal-irq", VP_BY_SOFTIRQ, 0, 0},
		       {"timer", "steal-tick", VP_BY_VECTOR, 0, 0}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(thieves); i++) {
		take_seconds(0);
		take_theft(FIRST_VM, 1, thieves[i].kind, thieves[i].owner, thieves[i].flags,
			   SECOND / 5, thieves[i].comm);
		diagnose();
		assert_int_equal(diagnosis.findings.count, 1);
		assert_string_equal(diagnosis.findings.at[0].rule->id, thieves[i].rule);
		assert_int_equal(diagnosis.findings.at[0].vm, 0);
		vp_diagnosis_deinit(&diagnosis);
		teardown(NULL);
		setup(NULL);
	}
	/* Those of whom nothing is known are in no rule. */
	take_seconds(0);
	take_theft(FIRST_VM, 1, VP_BY_UNKNOWN, 0, 0, SECOND / 5, "");
	take_theft(FIRST_VM, 1, VP_BY_MANY, 0, 0, SECOND / 5, "");
	expect_findings("");
}

static void test_names_of_vcpus(void **state)
{
	take_seconds(0);
	take_theft(FIRST_VM, 1, VP_BY_VCPU, SECOND_VM, 0, SECOND / 5, "");
	take_theft(SECOND_VM, 0, VP_BY_VCPU, 3000, 0, SECOND / 4, "");
	take_theft(SECOND_VM, 1, VP_BY_TASK, 5, 0, SECOND / 10, "");
	expect_findings("beta steal-vm 250000000 10 vCPU 7 of VM ?\n"
			"alpha steal-vm 200000000 10 vCPU 7 of VM beta\n"
			"beta steal-task 100000000 10 ?/7\n");
}

static void test_waking_and_quota(void **state)
{
	take_seconds(0);
	for (uint32_t vcpu = 0; vcpu < 2; vcpu++) {
		TAKE(&account, thief, .vm = SECOND_VM, .vcpu = vcpu, .state = VP_STATE_WAKING,
		     .kind = VP_BY_NOBODY, .ns = (5 + vcpu) * PERCENT, .count = 4);
		TAKE(&account, vcpu_account, .vm = FIRST_VM, .vcpu = vcpu, .begin = SECOND,
		     .end = 2ULL * SECOND, .throttled = (6 + vcpu) * PERCENT, .polls = 3 + vcpu,
		     .poll_wasted = (12 - vcpu) * PERCENT);
	}
	TAKE(&account, thief, .vm = SECOND_VM, .vcpu = 1, .state = VP_STATE_WAKING,
	     .kind = VP_BY_TASK, .number = 3, .ns = PERCENT, .count = 1);
	expect_findings("alpha halt-polling 230000000 7 vCPU 0\n"
			"alpha quota 130000000 0 vCPU 1\n"
			"beta wakeup 110000000 8 -\n");
	view.has_vcpu = true;
	view.vcpu = 1;
	expect_findings("alpha halt-polling 110000000 4 vCPU 1\n"
			"alpha quota 70000000 0 vCPU 1\n"
			"beta wakeup 60000000 4 -\n");
}

static void put_site(uint32_t vm, uint32_t reason, uint64_t ip, uint64_t count, uint64_t ns,
		     uint32_t kind, uint32_t detail)
{
	TAKE(&account, exit_site_detail, .vm = vm, .reason = reason, .vendor = VP_VENDOR_AMD,
	     .flags = VP_SITE_KNOWN, .ip = ip, .count = count, .ns = ns, .detail_kind = kind,
	     .detail = detail);
}

/* Spinning is the lock holder's fault where several vCPUs are, and more than 2 % of their time were
 * others'. */
static void test_lock_holder(void **state)
{
	static const struct {
		uint64_t preempted;
		uint32_t vcpus;
		const char *rule;
	} cases[] = {{2 * PERCENT, 2, "exits-pause"},
		     {2 * PERCENT + 1, 2, "exits-lock"},
		     {50 * PERCENT, 2, "exits-lock"},
		     {50 * PERCENT, 1, "exits-pause"}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		for (uint32_t vcpu = 0; vcpu < cases[i].vcpus; vcpu++) {
			TAKE(&account, vcpu_account, .vm = SECOND_VM, .vcpu = vcpu, .end = SECOND,
			     .guest = SECOND - cases[i].preempted, .preempted = cases[i].preempted);
			take_exits(SECOND_VM, vcpu, PAUSE, 5, 20 * PERCENT, 0);
		}
		TAKE(&account, guest_sample, .vm = SECOND_VM, .vcpu = 1); /* not accounted for */
		diagnose();
		assert_int_equal(diagnosis.findings.count, 1);
		assert_string_equal(diagnosis.findings.at[0].rule->id, cases[i].rule);
		assert_int_equal(diagnosis.findings.at[0].ns, cases[i].vcpus * 20 * PERCENT);
		assert_int_equal(diagnosis.findings.at[0].count, cases[i].vcpus * 5);
		vp_diagnosis_deinit(&diagnosis);
		teardown(NULL);
		setup(NULL);
	}
}

/* A reason's cost is divided as its places' time is, in each VM by itself; what others took
 * meanwhile is not its cost. */
static void test_places(void **state)
{
	take_seconds(0);
	TAKE(&account, exit_account, .vm = SECOND_VM, .vcpu = 0, .reason = IOIO,
	     .vendor = VP_VENDOR_AMD, .count = 40, .total = 100 * PERCENT, .kernel = 10 * PERCENT,
	     .vmm = 30 * PERCENT, .stolen = 60 * PERCENT);
	put_site(SECOND_VM, IOIO, 0x1000, 10, 30 * PERCENT, VP_DETAIL_PORT_IN, 0x70);
	put_site(SECOND_VM, IOIO, 0x2000, 5, 10 * PERCENT, VP_DETAIL_PORT_OUT, 0x71);
	put_site(SECOND_VM, IOIO, 0x2000, 5, 10 * PERCENT, VP_DETAIL_PORT_IN, 0x71);
	take_exits(FIRST_VM, 0, IOIO, 3, 7 * PERCENT, 0);
	put_site(FIRST_VM, IOIO, 0x3000, 2, 7 * PERCENT, VP_DETAIL_PORT_IN, 0x72);
	/* 30 % and 20 % of 100 % are known; of 40 % that it cost, the rest is nobody's. */
	expect_findings("beta exits-port 400000000 40 0x1000\n"
			"alpha exits-port 70000000 3 0x3000\n");
	diagnose();
	assert_int_equal(diagnosis.findings.at[0].most, 120000000);
	vp_diagnosis_deinit(&diagnosis);
}

/* What one rule names is its own, even if another is about the same reason. Ten exits' places are
 * not known. */
static void test_named_exits(void **state)
{
	take_seconds(0);
	take_exits(FIRST_VM, 1, MSR, 100, 90 * PERCENT, 0);
	put_site(FIRST_VM, MSR, 0x1000, 40, 40 * PERCENT, VP_DETAIL_MSR_WRITE, 0x6e0);
	put_site(FIRST_VM, MSR, 0x1001, 30, 30 * PERCENT, VP_DETAIL_MSR_WRITE, 0x830);
	put_site(FIRST_VM, MSR, 0x1002, 19, 19 * PERCENT, VP_DETAIL_MSR_READ, 0x830);
	put_site(FIRST_VM, MSR, 0x1003, 1, 1 * PERCENT, VP_DETAIL_MSR_WRITE, 0x838);
	expect_findings("alpha exits-timer 410000000 41 0x1000\n"
			"alpha exits-ipi 300000000 30 0x1001\n"
			"alpha exits-msr 190000000 29 0x1002\n");
}

/* The same function of two guests is not one cause. */
static void test_causes_of_exits(void **state)
{
	take_seconds(0);
	for (uint32_t vm = FIRST_VM; vm <= SECOND_VM; vm += 1000) {
		take_exits(vm, 0, IOIO, 5, 20 * PERCENT, 0);
		put_site(vm, IOIO, 0x1000, 5, 20 * PERCENT, VP_DETAIL_PORT_IN, 0x71);
	}
	diagnose();
	assert_int_equal(diagnosis.findings.count, 2);
	assert_string_equal(diagnosis.findings.at[0].who, diagnosis.findings.at[1].who);
	assert_int_equal(diagnosis.findings.at[1].cause, 0);
	vp_diagnosis_deinit(&diagnosis);
}

static void put_memory(uint32_t vm, uint64_t address, uint32_t kind, uint64_t count, uint64_t ns)
{
	TAKE(&account, exit_site_address, .vm = vm, .reason = 0x400, .vendor = VP_VENDOR_AMD,
	     .flags = VP_SITE_KNOWN, .ip = 0x1000 + kind, .count = count, .ns = ns,
	     .detail_kind = kind, .address = address);
}

/* Of a device's memory and of other, each VM's own address, by reads and writes together. */
static void test_addresses(void **state)
{
	take_seconds(0);
	take_exits(SECOND_VM, 0, 0x400, 100, 50 * PERCENT, 50 * PERCENT);
	put_memory(SECOND_VM, 0xf000, VP_DETAIL_MMIO_READ, 11, 20 * PERCENT);
	put_memory(SECOND_VM, 0xf000, VP_DETAIL_MMIO_WRITE, 12, 20 * PERCENT);
	put_memory(SECOND_VM, 0xe000, VP_DETAIL_MMIO_WRITE, 13, 30 * PERCENT);
	put_memory(SECOND_VM, 0x200000, VP_DETAIL_MEMORY_WRITE, 14, 30 * PERCENT);
	take_exits(FIRST_VM, 0, 0x400, 9, 20 * PERCENT, 0);
	put_memory(FIRST_VM, 0xf000, VP_DETAIL_MMIO_READ, 9, 20 * PERCENT);
	diagnose();
	assert_int_equal(diagnosis.findings.count, 3);
	const struct vp_finding *finding = diagnosis.findings.at;
	assert_int_equal(finding[0].vm, 1);
	assert_string_equal(finding[0].rule->id, "exits-mmio");
	assert_string_equal(finding[0].address, "0xf000");
	assert_int_equal(finding[0].address_count, 23);
	assert_int_equal(finding[1].vm, 1);
	assert_string_equal(finding[1].rule->id, "faults");
	assert_string_equal(finding[1].address, "0x200000-0x3fffff");
	assert_int_equal(finding[1].address_count, 14);
	assert_int_equal(finding[2].vm, 0);
	assert_string_equal(finding[2].address, "0xf000");
	assert_int_equal(finding[2].address_count, 9);
	vp_diagnosis_deinit(&diagnosis);
}

/* What more pCPUs would have given back is one finding, the rest another; both together are what
 * was taken. */
static void test_overcommit(void **state)
{
	account.overcommit.pcpus = 2;
	take_seconds(SECOND / 4); /* four vCPUs want all of two pCPUs */
	take_theft(SECOND_VM, 1, VP_BY_VCPU, FIRST_VM, 0, SECOND / 2 * 3, "");
	take_theft(SECOND_VM, 0, VP_BY_VCPU, FIRST_VM, 0, SECOND, "");
	diagnose();
	assert_int_equal(diagnosis.findings.count, 2);
	const struct vp_finding *finding = diagnosis.findings.at;
	assert_string_equal(finding[0].rule->id, "overcommit");
	assert_int_equal(finding[0].ns, 2ULL * SECOND);
	assert_int_equal(finding[0].count, 16);
	assert_string_equal(finding[0].detail,
			    "for 1.00 s in total, 4.0 vCPUs were runnable on average where they "
			    "may use 2 pCPUs");
	assert_string_equal(finding[1].rule->id, "steal-vm");
	assert_int_equal(finding[1].ns, SECOND / 2);
	assert_int_equal(finding[1].count, 4);
	assert_null(finding[1].detail);
	vp_diagnosis_deinit(&diagnosis);
}

/* An interrupt storm is one vCPU's, and one source's. */
static void test_storm(void **state)
{
	take_seconds(0);
	for (uint32_t vm = FIRST_VM; vm <= SECOND_VM; vm += 1000)
		for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
			TAKE(&account, thief, .vm = vm, .vcpu = vcpu, .state = VP_STATE_IRQ,
			     .kind = VP_BY_VECTOR, .number = 236, .ns = 6 * PERCENT,
			     .count = vm == SECOND_VM && vcpu ? 20000 : 19999, .comm = "timer");
	TAKE(&account, thief, .vm = SECOND_VM, .vcpu = 1, .state = VP_STATE_IRQ,
	     .kind = VP_BY_DEVICE, .number = 236, .ns = 7 * PERCENT, .count = 19000,
	     .comm = "eth0");
	expect_findings("alpha steal-tick 120000000 39998 timer/236\n"
			"beta steal-irq 70000000 19000 eth0/236\n"
			"beta irq-storm 60000000 20000 timer/236\n"
			"beta steal-tick 60000000 19999 timer/236\n");
}

/* From a thousandth of the records on; of the account whatever is lost. */
static void test_losses(void **state)
{
	take_seconds(0);
	losses.period_ns = 1000;
	losses.records[VP_STREAM_PCPU] = 9990;
	losses.lost[VP_STREAM_PCPU] = 10;
	losses.records[VP_STREAM_TRACE] = 9990;
	losses.lost[VP_STREAM_TRACE] = 9;
	losses.records[VP_STREAM_ACCOUNT] = 1000000000;
	losses.lost[VP_STREAM_ACCOUNT] = 2;
	account.lost.vcpus = 3;
	account.lost.thieves = 50;
	account.lost.sites = 700;
	expect_findings("- lost-samples 10000 10 -\n- lost-account 0 755 -\n");
	losses.lost[VP_STREAM_PCPU] = losses.lost[VP_STREAM_ACCOUNT] = 0;
	account.lost = (struct vp_account_loss){0};
	losses.lost[VP_STREAM_TRACEPOINTS] = 1;
	expect_findings("- lost-events 0 10 -\n");
	losses.lost[VP_STREAM_HYPERVISOR] = 10;
	losses.records[VP_STREAM_HYPERVISOR] = 5;
	expect_findings("- lost-events 0 20 -\n");
}

static void test_guest_losses(void **state)
{
	take_seconds(0);
	vms.at[0].guest_events = 999;
	vms.at[1].guest_events = 999;
	vms.at[1].guest_events_lost = 1;
	diagnose();
	assert_int_equal(diagnosis.findings.count, 1);
	assert_int_equal(diagnosis.findings.at[0].vm, 1);
	assert_int_equal(diagnosis.findings.at[0].count, 1);
	assert_true(diagnosis.findings.at[0].percent == 0.1);
	vp_diagnosis_deinit(&diagnosis);
	vms.at[1].guest_events = 1000;
	expect_findings("");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_rules),
	    TEST(test_words),
	    TEST(test_schedulers),
	    TEST(test_of_which_vm),
	    TEST(test_classes),
	    TEST(test_names_of_vcpus),
	    TEST(test_waking_and_quota),
	    TEST(test_lock_holder),
	    TEST(test_places),
	    TEST(test_named_exits),
	    TEST(test_addresses),
	    TEST(test_overcommit),
	    TEST(test_storm),
	    TEST(test_losses),
	    TEST(test_guest_losses),
	    TEST(test_commands),
	    TEST(test_causes),
	    TEST(test_causes_of_exits),
	    TEST(test_many_vcpus),
	    TEST(test_causes_of_each_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
