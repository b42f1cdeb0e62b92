/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/vmm_command.h"

#include <ctype.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "base/vec.h"

enum {
	FIRST_GUEST_CID = 3, /* VMADDR_CID_HOST + 1 */
	MAX_ARGUMENTS = 1 << 16,
	JSON_DEPTH = 16,
};

typedef VP_VEC(const char *) arguments;

/* Command-line options of a family of VMMs. */
struct dialect {
	/* Flags (options without a value), then options with a text value, which may start with
	 * '-'. All other options have a value unless an option follows. NULL-terminated. */
	const char *const *flags;
	const char *const *texts;
	bool one_dash;   /* "-name" is the same as "--name" */
	bool with_equal; /* "--name=VALUE" is the same as "--name VALUE" */
	void (*take)(struct vp_vmm_command *command, const char *option, const char *value);
};

/* "3", "0x3"; 0: not a guest's CID. */
static uint32_t cid_of(const char *text, size_t size)
{
	VP_AUTO_FREE char *copy = vp_strndup(text, size);
	bool is_hex = copy[0] == '0' && (copy[1] == 'x' || copy[1] == 'X');
	const char *digits = is_hex ? copy + 2 : copy;
	char *end;
	unsigned long long number = strtoull(digits, &end, is_hex ? 16 : 10);

	if (!isxdigit((unsigned char)digits[0]) || *end || number < FIRST_GUEST_CID ||
	    number >= UINT32_MAX)
		return 0;
	return (uint32_t)number;
}

static void vmm_command_put(char **field, char *text)
{
	free(*field);
	*field = text;
}

/* Next field of "FIRST,KEY=VALUE,…"; ",," is a comma within a value. *key: NULL without '='.
 * False: no more. The caller frees both. */
static bool next_field(const char **text, char **key, char **value)
{
	struct vp_buffer field = {0};
	const char *next = *text;

	if (!*next)
		return false;
	for (; *next && (*next != ',' || next[1] == ','); next++) {
		next += *next == ',';
		vp_buffer_append(&field, next, 1);
	}
	*text = next + (*next == ',');
	const char *whole = vp_buffer_text(&field), *equal = strchr(whole, '=');
	*key = equal ? vp_strndup(whole, (size_t)(equal - whole)) : NULL;
	*value = vp_strdup(equal ? equal + 1 : whole);
	vp_buffer_deinit(&field);
	return true;
}

/* The value of `key`, the last one if repeated. `first`: a first field without a key counts as
 * well. NULL: none. */
static char *vmm_command_field_of(const char *text, const char *wanted, bool first)
{
	char *key, *value, *found = NULL;

	for (bool at_first = true; next_field(&text, &key, &value); at_first = false) {
		bool is_it = key ? !strcmp(key, wanted) : first && at_first;
		if (is_it)
			vmm_command_put(&found, VP_TAKE(value));
		free(key);
		free(value);
	}
	return found;
}

/* vhost-vsock-pci, vhost-vsock-device, vhost-vsock-ccw, vhost-vsock-pci-non-transitional. Not
 * vhost-user-vsock: its CID is defined by its daemon, not by this kernel. */
static bool is_vsock(const char *driver)
{
	return driver && !strncmp(driver, "vhost-vsock-", 12);
}

static const char *vmm_command_text_in(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) ? json_object_get_string(value)
							      : NULL;
}

/* {"driver":"vhost-vsock-pci","guest-cid":3}: the form that libvirt uses. */
static uint32_t cid_of_json(const char *text)
{
	struct json_tokener *tokener = json_tokener_new_ex(JSON_DEPTH);
	struct json_object *object =
	    tokener ? json_tokener_parse_ex(tokener, text, (int)strlen(text)) : NULL;
	uint32_t cid = 0;

	if (object && json_object_is_type(object, json_type_object) &&
	    is_vsock(vmm_command_text_in(object, "driver"))) {
		const char *number = vmm_command_text_in(object, "guest-cid");
		cid = number ? cid_of(number, strlen(number)) : 0;
	}
	json_object_put(object);
	json_tokener_free(tokener);
	return cid;
}

static uint32_t cid_of_device(const char *device)
{
	if (device[0] == '{')
		return cid_of_json(device);
	VP_AUTO_FREE char *driver = vmm_command_field_of(device, "driver", true);
	VP_AUTO_FREE char *cid = vmm_command_field_of(device, "guest-cid", false);
	return is_vsock(driver) && cid ? cid_of(cid, strlen(cid)) : 0;
}

/* A repeated -name adds to the previous one; its other fields are not names. */
static void take_qemu_name(struct vp_vmm_command *command, const char *value)
{
	char *name = vmm_command_field_of(value, "guest", true);

	if (name)
		vmm_command_put(&command->name, name);
}

/* "type=1,…,uuid=U": Proxmox uses this instead of -uuid, which has precedence. */
static void take_smbios(struct vp_vmm_command *command, const char *value)
{
	VP_AUTO_FREE char *type = vmm_command_field_of(value, "type", false);
	char *uuid = type && !strcmp(type, "1") ? vmm_command_field_of(value, "uuid", false) : NULL;

	if (uuid)
		vmm_command_put(&command->smbios_uuid, uuid);
}

static void take_qemu(struct vp_vmm_command *command, const char *option, const char *value)
{
	if (!strcmp(option, "name"))
		take_qemu_name(command, value);
	else if (!strcmp(option, "uuid"))
		vmm_command_put(&command->uuid, vp_strdup(value));
	else if (!strcmp(option, "smbios"))
		take_smbios(command, value);
	else if (!strcmp(option, "device") && !command->cid)
		command->cid = cid_of_device(value);
}

/* "cid=3,device=/dev/vhost-vsock", or "3". */
static void take_crosvm(struct vp_vmm_command *command, const char *option, const char *value)
{
	if (!strcmp(option, "name")) {
		vmm_command_put(&command->name, vp_strdup(value));
	} else if (!strcmp(option, "vsock") || !strcmp(option, "cid")) {
		VP_AUTO_FREE char *cid = vmm_command_field_of(value, "cid", true);
		command->cid = cid ? cid_of(cid, strlen(cid)) : 0;
	}
}

static void take_kvmtool(struct vp_vmm_command *command, const char *option, const char *value)
{
	if (!strcmp(option, "name"))
		vmm_command_put(&command->name, vp_strdup(value));
	else if (!strcmp(option, "vsock"))
		command->cid = cid_of(value, strlen(value));
}

/* "/run/vms/web1.sock", or "path=…": the only name of a Cloud Hypervisor VM. */
static char *name_of_socket(const char *value)
{
	VP_AUTO_FREE char *path = vmm_command_field_of(value, "path", true);
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *name = slash ? slash + 1 : path;
	const char *dot = name ? strrchr(name, '.') : NULL;

	if (!name)
		return NULL;
	return vp_strndup(name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

/* "serial_number=x,uuid=U"; newer ones: system_uuid. */
static void take_platform(struct vp_vmm_command *command, const char *value)
{
	char *uuid = vmm_command_field_of(value, "system_uuid", false);

	if (!uuid)
		uuid = vmm_command_field_of(value, "uuid", false);
	if (uuid)
		vmm_command_put(&command->uuid, uuid);
}

/* "cid=3,socket=/run/x.vsock": the CID is valid within the VMM only. */
static void take_cloud_hypervisor(struct vp_vmm_command *command, const char *option,
				  const char *value)
{
	if (!strcmp(option, "vsock"))
		vmm_command_put(&command->vsock, vmm_command_field_of(value, "socket", false));
	else if (!strcmp(option, "platform"))
		take_platform(command, value);
	else if (!strcmp(option, "api-socket"))
		vmm_command_put(&command->name, name_of_socket(value));
}

static void take_firecracker(struct vp_vmm_command *command, const char *option, const char *value)
{
	if (!strcmp(option, "id"))
		vmm_command_put(&command->name, vp_strdup(value));
	else if (!strcmp(option, "api-sock"))
		vmm_command_put(&command->api, vp_strdup(value));
}

/* QEMU's flags (HAS_ARG 0 in qemu-options.hx) in all versions since 2.0. */
static const char *const qemu_flags[] = {
    "h",
    "help",
    "version",
    "nographic",
    "nodefaults",
    "nodefconfig",
    "no-user-config",
    "snapshot",
    "S",
    "s",
    "daemonize",
    "no-reboot",
    "no-shutdown",
    "no-acpi",
    "no-hpet",
    "enable-kvm",
    "full-screen",
    "alt-grab",
    "ctrl-grab",
    "no-frame",
    "no-quit",
    "win2k-hack",
    "no-fd-bootchk",
    "singlestep",
    "one-insn-per-tb",
    "preconfig",
    "usb",
    "enable-fips",
    "mem-prealloc",
    "old-param",
    "semihosting",
    "only-migratable",
    "xen-attach",
    "xen-create",
    "xen-domid-restrict",
    "sdl",
    "curses",
    "portrait",
    "enable-sync-profile",
    "localtime",
    "std-vga",
    "no-kvm",
    "no-kvm-irqchip",
    "no-kvm-pit",
    "no-kvm-pit-reinjection",
    "tdf",
    "rtc-td-hack",
    "show-cursor",
    "perfmap",
    "jitdump",
    NULL,
};
static const char *const qemu_texts[] = {
    "append", "name",   "smbios",  "uuid",   "fw_cfg", "device",    "object",     "drive", "kernel",
    "initrd", "serial", "chardev", "netdev", "fsdev",  "acpitable", "option-rom", NULL,
};
static const struct dialect qemu = {qemu_flags, qemu_texts, true, false, take_qemu};

static const char *const crosvm_flags[] = {
    "disable-sandbox",
    "no-balloon",
    "no-legacy",
    "no-rng",
    "no-smt",
    "no-usb",
    "no-i8042",
    "no-rtc",
    "protected-vm",
    "unprotected-vm-with-firmware",
    "protected-vm-without-firmware",
    "hugepages",
    "host-cpu-topology",
    "enable-pnp-data",
    "per-vm-core-scheduling",
    "extended-status",
    "no-pmu",
    "delay-rt",
    "rt-cpus-all",
    "split-irqchip",
    "battery",
    NULL,
};
static const char *const crosvm_texts[] = {"p", "params", "name", "android-fstab", "initrd", NULL};
static const struct dialect crosvm = {crosvm_flags, crosvm_texts, false, true, take_crosvm};

static const char *const kvmtool_flags[] = {
    "balloon",      "vnc",           "gtk",
    "sdl",          "rng",           "nodefaults",
    "no-dhcp",      "debug",         "debug-single-step",
    "debug-ioport", "virtio-legacy", "force-pci",
    "no-pvtime",    "aarch32",       "nested",
    NULL,
};
static const char *const kvmtool_texts[] = {"p", "params", "name", "kernel",  "k", "initrd",
					    "i", "disk",   "d",    "sandbox", NULL};
static const struct dialect kvmtool = {kvmtool_flags, kvmtool_texts, false, true, take_kvmtool};

static const char *const cloud_flags[] = {"v", "vv", "vvv", "watchdog", "h", "V", NULL};
static const char *const cloud_texts[] = {"cmdline", "kernel", "platform", "initramfs", NULL};
static const struct dialect cloud_hypervisor = {cloud_flags, cloud_texts, false, true,
						take_cloud_hypervisor};

static const char *const firecracker_flags[] = {
    "no-api", "no-seccomp", "boot-timer", "show-level", "show-log-origin", "enable-pci", NULL};
static const char *const firecracker_texts[] = {"id", NULL};
static const struct dialect firecracker = {firecracker_flags, firecracker_texts, false, true,
					   take_firecracker};

static bool vmm_command_is_one_of(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

static bool begins(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static const struct dialect *dialect_of(const arguments *given)
{
	const char *slash = strrchr(given->at[0], '/');
	const char *program = slash ? slash + 1 : given->at[0];
	bool runs = given->count > 1 && !strcmp(given->at[1], "run");

	if (begins(program, "firecracker"))
		return &firecracker;
	if (begins(program, "cloud-hyperv"))
		return &cloud_hypervisor;
	if (begins(program, "crosvm"))
		return &crosvm;
	return begins(program, "lkvm") || begins(program, "kvmtool") || runs ? &kvmtool : &qemu;
}

/* The option in an argument, without dashes; NULL: not an option. */
static char *option_of(const struct dialect *dialect, const char *argument, const char **value)
{
	size_t dashes = strspn(argument, "-");
	const char *name = argument + dashes;
	const char *equal = dialect->with_equal ? strchr(name, '=') : NULL;

	/* getopt(3) distinguishes "-n" from "--n", but no such option is used here. */
	if (!dashes || dashes > 2 || !*name || (dashes == 1 && !dialect->one_dash && name[1]))
		return NULL;
	*value = equal ? equal + 1 : NULL;
	return equal ? vp_strndup(name, (size_t)(equal - name)) : vp_strdup(name);
}

static void vmm_command_take_all(struct vp_vmm_command *command, const struct dialect *dialect,
				 const arguments *given)
{
	for (size_t i = 1; i < given->count; i++) {
		const char *value = NULL;
		VP_AUTO_FREE char *option = option_of(dialect, given->at[i], &value);
		const char *next = i + 1 < given->count ? given->at[i + 1] : NULL;
		if (!option || vmm_command_is_one_of(dialect->flags, option))
			continue;
		if (!value && next &&
		    (next[0] != '-' || vmm_command_is_one_of(dialect->texts, option))) {
			value = next;
			i++;
		}
		if (value)
			dialect->take(command, option, value);
	}
}

struct vp_vmm_command vp_vmm_command_read(const char *text, size_t size)
{
	struct vp_vmm_command command = {0};
	struct vp_buffer bytes = {0};
	arguments given = {0};

	vp_buffer_append(&bytes, text, size);
	vp_buffer_append(&bytes, "", 1); /* terminates the last argument */
	for (size_t at = 0; at < size && given.count < MAX_ARGUMENTS;
	     at += strlen(bytes.bytes + at) + 1)
		vp_vec_push(&given, bytes.bytes + at);
	if (given.count) {
		const struct dialect *dialect = dialect_of(&given);
		vmm_command_take_all(&command, dialect, &given);
		command.is_firecracker = dialect == &firecracker;
	}
	if (command.name && !command.name[0])
		vmm_command_put(&command.name, NULL);
	if (!command.uuid)
		command.uuid = VP_TAKE(command.smbios_uuid);
	vp_vec_deinit(&given);
	vp_buffer_deinit(&bytes);
	return command;
}

void vp_vmm_command_deinit(struct vp_vmm_command *command)
{
	free(command->name);
	free(command->uuid);
	free(command->smbios_uuid);
	free(command->vsock);
	free(command->api);
}
