/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/diagnose_commands.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"

enum { MAX_PCPUS = 4096, MAX_VCPUS = 8 };

/* Target of a rule's commands. */
enum change { CHANGE_NOTHING, CHANGE_PCPUS, CHANGE_EMULATOR, CHANGE_QUOTA, CHANGE_PAGES };

static enum change change_of(const struct vp_rule *rule)
{
	static const struct {
		const char *id;
		enum change change;
	} changes[] = {{"steal-vm", CHANGE_PCPUS},   {"overcommit", CHANGE_PCPUS},
		       {"steal-self", CHANGE_PCPUS}, {"steal-task", CHANGE_PCPUS},
		       {"steal-irq", CHANGE_PCPUS},  {"irq-storm", CHANGE_PCPUS},
		       {"steal-tick", CHANGE_PCPUS}, {"steal-vmm", CHANGE_EMULATOR},
		       {"quota", CHANGE_QUOTA},      {"tlb-misses", CHANGE_PAGES}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(changes); i++)
		if (!strcmp(changes[i].id, rule->id))
			return changes[i].change;
	return CHANGE_NOTHING;
}

/* Whether it is a domain name of OpenStack Nova: by default instance- and eight hexadecimal digits,
 * from a template in the deployment's configuration. */
static bool is_nova_name(const char *name)
{
	static const char prefix[] = "instance-";
	const char *digits = name + sizeof(prefix) - 1;

	return !strncmp(name, prefix, sizeof(prefix) - 1) && strlen(digits) == 8 &&
	       strspn(digits, "0123456789abcdef") == 8;
}

/* The last component of the cgroup's path that is a systemd unit, as a new string, or NULL. */
static char *unit_of(const char *cgroup)
{
	const char *end = cgroup + strlen(cgroup);

	while (end > cgroup) {
		const char *begin = end;
		while (begin > cgroup && begin[-1] != '/')
			begin--;
		size_t size = (size_t)(end - begin);
		if ((size > 6 && !strncmp(end - 6, ".scope", 6)) ||
		    (size > 8 && !strncmp(end - 8, ".service", 8)))
			return vp_strndup(begin, size);
		end = begin > cgroup ? begin - 1 : cgroup;
	}
	return NULL;
}

/* Proxmox's VM id; 0: not managed by Proxmox. */
static unsigned long proxmox_id(const char *cgroup)
{
	const char *slice = strstr(cgroup, "/qemu.slice/");
	char *end;

	if (!slice || !isdigit((unsigned char)slice[12]))
		return 0;
	unsigned long id = strtoul(slice + 12, &end, 10);
	return !strncmp(end, ".scope", 6) ? id : 0;
}

enum vp_manager vp_manager_of(const struct vp_vm *vm)
{
	if (vm->has_domain)
		return VP_MANAGER_XEN;
	if (!vm->cgroup || !vm->cgroup[0])
		return VP_MANAGER_UNKNOWN;
	/* The scope belongs to the pod's container, and Kubernetes sets its limits. */
	if (strstr(vm->cgroup, "/kubepods"))
		return strchr(vm->name, '_') ? VP_MANAGER_KUBEVIRT : VP_MANAGER_UNKNOWN;
	if (strstr(vm->cgroup, "/firecracker/"))
		return VP_MANAGER_FIRECRACKER;
	if (strstr(vm->cgroup, "machine-qemu") || strstr(vm->cgroup, "libvirt"))
		return is_nova_name(vm->name) ? VP_MANAGER_NOVA : VP_MANAGER_LIBVIRT;
	if (proxmox_id(vm->cgroup))
		return VP_MANAGER_PROXMOX;
	VP_AUTO_FREE char *unit = unit_of(vm->cgroup);
	/* The scope of a login session also contains other processes. */
	return unit && strncmp(unit, "session-", 8) != 0 ? VP_MANAGER_SYSTEMD : VP_MANAGER_UNKNOWN;
}

const char *vp_manager_name(enum vp_manager manager)
{
	static const char *const names[] = {
	    [VP_MANAGER_UNKNOWN] = "",          [VP_MANAGER_LIBVIRT] = "libvirt",
	    [VP_MANAGER_NOVA] = "nova",         [VP_MANAGER_PROXMOX] = "proxmox",
	    [VP_MANAGER_SYSTEMD] = "systemd",   [VP_MANAGER_XEN] = "xen",
	    [VP_MANAGER_KUBEVIRT] = "kubevirt", [VP_MANAGER_FIRECRACKER] = "firecracker"};

	return names[manager];
}

/* KubeVirt names domains NAMESPACE_NAME; neither part can contain an underscore. */
char *vp_vm_namespace(const struct vp_vm *vm)
{
	if (vm->project)
		return vp_strdup(vm->project);
	return vp_strndup(vm->name,
			  vp_manager_of(vm) == VP_MANAGER_KUBEVIRT ? strcspn(vm->name, "_") : 0);
}

/* Marks the pCPUs in a kernel list. */
static void mark_list(const char *list, uint32_t pcpus, bool *used)
{
	while (*list) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;
		if (end == list)
			return;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long pcpu = first; pcpu <= last && pcpu < pcpus; pcpu++)
			used[pcpu] = true;
		list = *end == ',' ? end + 1 : end;
	}
}

static void put_list(const bool *used, bool which, uint32_t pcpus, struct vp_buffer *ret)
{
	const char *comma = "";

	for (uint32_t first = 0; first < pcpus; first++) {
		uint32_t last = first;
		if (used[first] != which)
			continue;
		while (last + 1 < pcpus && used[last + 1] == which)
			last++;
		vp_buffer_printf(ret, last > first ? "%s%u-%u" : "%s%u", comma, first, last);
		comma = ",";
		first = last;
	}
}

/* Marks the pCPUs that the VM's vCPUs may use; false if they may use all, or if that is unknown. */
static bool mark_vm(const struct vp_vm *vm, uint32_t pcpus, bool *used)
{
	bool known = false;
	uint32_t count = 0;

	vp_vec_each (&vm->vcpus, vcpu) {
		if (!vcpu->pcpus)
			return false;
		mark_list(vcpu->pcpus, pcpus, used);
		known = true;
	}
	for (uint32_t pcpu = 0; pcpu < pcpus; pcpu++)
		count += used[pcpu];
	return known && count < pcpus && count;
}

void vp_diagnose_pcpus(const struct vp_vm *vm, uint32_t pcpus, struct vp_buffer *ret)
{
	bool used[MAX_PCPUS] = {0};

	if (pcpus == 1)
		vp_buffer_string(ret, "0");
	else if (pcpus <= MAX_PCPUS && mark_vm(vm, pcpus, used))
		put_list(used, true, pcpus, ret);
}

/* A shell comment on the VM's remaining vCPUs. */
static void put_rest(const struct vp_vm *vm, struct vp_buffer *ret)
{
	if (vm->vcpus.count > MAX_VCPUS)
		vp_buffer_printf(ret, "# and so on for its other %zu vCPUs\n",
				 vm->vcpus.count - MAX_VCPUS);
}

static void put_pin(const struct vp_vm *vm, enum vp_manager manager, const char *others,
		    struct vp_buffer *ret)
{
	VP_AUTO_FREE char *unit = vm->cgroup ? unit_of(vm->cgroup) : NULL;

	switch (manager) {
	case VP_MANAGER_LIBVIRT:
		for (size_t i = 0; i < vm->vcpus.count && i < MAX_VCPUS; i++) {
			vp_buffer_string(ret, "virsh vcpupin");
			vp_text_put_word(vm->name, ret);
			vp_buffer_printf(ret, " %u %s\n", vm->vcpus.at[i].number, others);
		}
		put_rest(vm, ret);
		break;
	case VP_MANAGER_NOVA:
		vp_buffer_string(ret,
				 "openstack flavor set FLAVOR --property hw:cpu_policy=dedicated\n"
				 "openstack server resize --flavor FLAVOR SERVER\n");
		break;
	case VP_MANAGER_PROXMOX:
		vp_buffer_printf(ret, "qm set %lu --affinity %s\n", proxmox_id(vm->cgroup), others);
		break;
	case VP_MANAGER_SYSTEMD:
		vp_buffer_string(ret, "systemctl set-property");
		vp_text_put_word(unit, ret);
		vp_buffer_printf(ret, " AllowedCPUs=%s\n", others);
		break;
	case VP_MANAGER_XEN:
		for (size_t i = 0; i < vm->vcpus.count && i < MAX_VCPUS; i++)
			vp_buffer_printf(ret, "xl vcpu-pin %u %u %s\n", vm->domain,
					 vm->vcpus.at[i].number, others);
		put_rest(vm, ret);
		break;
	case VP_MANAGER_KUBEVIRT:
	case VP_MANAGER_FIRECRACKER:
	case VP_MANAGER_UNKNOWN:
		break;
	}
}

/* xl's command for domains of the scheduler; NULL: the scheduler has no weights and caps. */
static const char *xl_command(const struct vp_vm *vm)
{
	switch (vp_scheduler_of(vm)) {
	case VP_SCHEDULER_CREDIT2:
		return "sched-credit2";
	case VP_SCHEDULER_CREDIT:
		return "sched-credit";
	default:
		return NULL;
	}
}

static void put_quota(const struct vp_vm *vm, enum vp_manager manager, struct vp_buffer *ret)
{
	VP_AUTO_FREE char *unit = vm->cgroup ? unit_of(vm->cgroup) : NULL;

	switch (manager) {
	case VP_MANAGER_LIBVIRT:
		vp_buffer_string(ret, "virsh schedinfo");
		vp_text_put_word(vm->name, ret);
		vp_buffer_string(ret, " --live --set vcpu_quota=-1\n");
		break;
	case VP_MANAGER_NOVA:
		vp_buffer_string(ret,
				 "openstack flavor set FLAVOR --property quota:cpu_quota=-1\n");
		break;
	case VP_MANAGER_PROXMOX:
		vp_buffer_printf(ret, "qm set %lu --cpulimit 0\n", proxmox_id(vm->cgroup));
		break;
	case VP_MANAGER_SYSTEMD:
		vp_buffer_string(ret, "systemctl set-property");
		vp_text_put_word(unit, ret);
		vp_buffer_string(ret, " CPUQuota=\n");
		break;
	case VP_MANAGER_XEN:
		if (xl_command(vm))
			vp_buffer_printf(ret, "xl %s -d %u -c 0\n", xl_command(vm), vm->domain);
		break;
	case VP_MANAGER_KUBEVIRT:
	case VP_MANAGER_FIRECRACKER:
	case VP_MANAGER_UNKNOWN:
		break;
	}
}

/* Twice the default weight, with cgroup v2 or Xen's credit and credit2. */
static void put_weight(const struct vp_vm *vm, enum vp_manager manager, struct vp_buffer *ret)
{
	VP_AUTO_FREE char *unit = vm->cgroup ? unit_of(vm->cgroup) : NULL;

	switch (manager) {
	case VP_MANAGER_LIBVIRT:
		vp_buffer_string(ret, "virsh schedinfo");
		vp_text_put_word(vm->name, ret);
		vp_buffer_string(ret, " --live --set cpu_shares=200\n");
		break;
	case VP_MANAGER_NOVA:
		vp_buffer_string(ret,
				 "openstack flavor set FLAVOR --property quota:cpu_shares=200\n");
		break;
	case VP_MANAGER_PROXMOX:
		vp_buffer_printf(ret, "qm set %lu --cpuunits 200\n", proxmox_id(vm->cgroup));
		break;
	case VP_MANAGER_SYSTEMD:
		vp_buffer_string(ret, "systemctl set-property");
		vp_text_put_word(unit, ret);
		vp_buffer_string(ret, " CPUWeight=200\n");
		break;
	case VP_MANAGER_XEN:
		if (xl_command(vm))
			vp_buffer_printf(ret, "xl %s -d %u -w 512\n", xl_command(vm), vm->domain);
		break;
	case VP_MANAGER_KUBEVIRT:
	case VP_MANAGER_FIRECRACKER:
	case VP_MANAGER_UNKNOWN:
		break;
	}
}

/* Huge pages for the VM's memory from its next start on. */
static void put_huge_pages(const struct vp_vm *vm, enum vp_manager manager, struct vp_buffer *ret)
{
	if (manager == VP_MANAGER_LIBVIRT) {
		vp_buffer_string(ret, "virt-xml");
		vp_text_put_word(vm->name, ret);
		vp_buffer_string(ret, " --edit --memorybacking hugepages=yes\n");
	} else if (manager == VP_MANAGER_NOVA) {
		vp_buffer_string(ret,
				 "openstack flavor set FLAVOR --property hw:mem_page_size=large\n");
	} else if (manager == VP_MANAGER_PROXMOX) {
		vp_buffer_printf(ret, "qm set %lu --hugepages 2\n", proxmox_id(vm->cgroup));
	}
}

void vp_diagnose_commands(const struct vp_rule *rule, const struct vp_vm *vm, uint32_t pcpus,
			  struct vp_buffer *ret)
{
	enum vp_manager manager = vp_manager_of(vm);
	enum change change = change_of(rule);
	bool used[MAX_PCPUS] = {0};
	struct vp_buffer others = {0};

	if (change == CHANGE_PAGES)
		put_huge_pages(vm, manager, ret);
	if (change == CHANGE_QUOTA)
		put_quota(vm, manager, ret);
	if ((change != CHANGE_PCPUS && change != CHANGE_EMULATOR) || pcpus > MAX_PCPUS)
		return;
	if (!mark_vm(vm, pcpus, used)) {
		if (rule->advises_weight)
			put_weight(vm, manager, ret);
		return;
	}
	put_list(used, false, pcpus, &others);
	if (change == CHANGE_PCPUS) {
		put_pin(vm, manager, vp_buffer_text(&others), ret);
	} else if (manager == VP_MANAGER_LIBVIRT) {
		vp_buffer_string(ret, "virsh emulatorpin");
		vp_text_put_word(vm->name, ret);
		vp_buffer_printf(ret, " %s\n", vp_buffer_text(&others));
	}
	vp_buffer_deinit(&others);
}
