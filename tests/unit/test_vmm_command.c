/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Command lines of VMMs, with what tenants may put into them. */
#include "unit.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "host/vmm_command.h"

struct expected {
	const char *text; /* arguments, each with its zero */
	size_t size;
	const char *name, *uuid, *vsock;
	uint32_t cid;
};
#define LINE(line, ...)                                                                            \
	{                                                                                          \
		.text = line, .size = sizeof(line), __VA_ARGS__                                    \
	}
#define UUID "6f1d1b9a-6ab3-4a0c-9a9f-4d0b5f5a2f7e"

static const struct expected of_qemu[] = {
    /* libvirt, since 6.0 with JSON; before without */
    LINE("/usr/bin/qemu-system-x86_64\0-name\0guest=web1,debug-threads=on\0-S\0-object\0"
	 "{\"qom-type\":\"secret\",\"id\":\"masterKey0\"}\0-uuid\0" UUID
	 "\0-no-user-config\0-nodefaults\0-device\0"
	 "{\"driver\":\"vhost-vsock-pci\",\"id\":\"vsock0\",\"guest-cid\":3,\"vhostfd\":\"28\","
	 "\"bus\":\"pci.7\",\"addr\":\"0x0\"}",
	 .name = "web1", .uuid = UUID, .cid = 3),
    LINE("/usr/libexec/qemu-kvm\0-name\0guest=db,process=qemu:db,debug-threads=on\0-device\0"
	 "vhost-vsock-pci,id=vsock0,guest-cid=0x2a,vhostfd=27,bus=pci.6,addr=0x0",
	 .name = "db", .cid = 42),
    LINE("qemu-system-x86_64\0-name\0guest=a,,b,debug-threads=on", .name = "a,b"),
    LINE("qemu-system-x86_64\0-name\0guest=x=y", .name = "x=y"),
    LINE("qemu-system-aarch64\0-machine\0virt\0-device\0vhost-vsock-device,guest-cid=7", .cid = 7),
    LINE("qemu-system-s390x\0-device\0vhost-vsock-ccw,id=v,guest-cid=8,devno=fe.0.0002", .cid = 8),
    LINE("qemu-system-x86_64\0-device\0guest-cid=9,driver=vhost-vsock-pci-non-transitional",
	 .cid = 9),
    LINE("qemu-system-x86_64\0-device\0vhost-vsock-pci,guest-cid=4\0-device\0"
	 "vhost-vsock-pci,guest-cid=5",
	 .cid = 4),
    LINE("qemu-system-x86_64\0--device\0vhost-vsock-pci,guest-cid=0XFF\0--name\0both",
	 .name = "both", .cid = 255),
    /* Proxmox */
    LINE("/usr/bin/kvm\0-id\0"
	 "100\0-name\0shop,debug-threads=on\0-no-shutdown\0-chardev\0"
	 "socket,id=qmp,path=/var/run/qemu-server/100.qmp,server=on,wait=off\0-mon\0"
	 "chardev=qmp,mode=control\0-smbios\0type=1,uuid=" UUID
	 "\0-device\0vhost-vsock-pci,guest-cid=100",
	 .name = "shop", .uuid = UUID, .cid = 100),
    LINE("/usr/bin/kvm\0-id\0"
	 "101\0-name\0debug-threads=on\0-daemonize"),
    /* OpenStack: tenants' names and serial numbers are in other options */
    LINE("/usr/bin/qemu-system-x86_64\0-name\0guest=instance-0000002a,debug-threads=on\0-smbios\0"
	 "type=1,manufacturer=OpenStack Foundation,product=OpenStack Nova,version=1,"
	 "serial=guest-cid=77,uuid=" UUID "\0-device\0virtio-net-pci,netdev=n,id=guest-cid=78",
	 .name = "instance-0000002a", .uuid = UUID),
    /* -uuid counts more than -smbios, wherever it is; other tables have no uuid of the VM. */
    LINE("qemu\0-uuid\0" UUID "\0-smbios\0type=1,uuid=11111111-1111-1111-1111-111111111111",
	 .uuid = UUID),
    LINE("qemu\0-smbios\0type=1,uuid=11111111-1111-1111-1111-111111111111\0-uuid\0" UUID,
	 .uuid = UUID),
    LINE("qemu\0-smbios\0type=3,uuid=" UUID),
    LINE("qemu\0-smbios\0uuid=" UUID),
    LINE("qemu\0-smbios\0type=1,serial=x,,uuid=" UUID),
    LINE("qemu\0-smbios\0type=1"),
    LINE("qemu\0-smbios\0file=uuid=" UUID ",type=1"),
    LINE("qemu-system-x86_64\0-name\0guest=x\0type=1,serial=guest-cid=77\0-device\0"
	 "{\"driver\":\"vhost-vsock-pci\",\"guest-cid\":3}",
	 .name = "x", .cid = 3),
    LINE("qemu-system-x86_64\0-smbios\0type=11,value=-device vhost-vsock-pci,,guest-cid=77"),
    LINE("qemu-system-x86_64\0-append\0-device\0vhost-vsock-pci,guest-cid=77\0-m\0"
	 "1G"),
    LINE("qemu-system-x86_64\0-append\0-name\0-initrd\0guest=evil\0-name\0good", .name = "good"),
    LINE("qemu-system-x86_64\0-fw_cfg\0name=opt/x,string=vhost-vsock-pci,guest-cid=77"),
    LINE("qemu-system-x86_64\0-device\0virtio-blk-pci,serial=vhost-vsock-pci,,guest-cid=77"),
    LINE("qemu-system-x86_64\0-device\0virtio-blk-pci,serial=x,guest-cid=77"),
    LINE("qemu-system-x86_64\0-device\0"
	 "{\"driver\":\"virtio-blk-pci\",\"serial\":\"\\\"driver\\\":\\\"vhost-vsock-pci\\\","
	 "\\\"guest-cid\\\":77\"}"),
    LINE("qemu-system-x86_64\0-device\0{\"driver\":\"virtio-net-pci\",\"guest-cid\":77}"),
    LINE("qemu-system-x86_64\0-device\0{\"x\":{\"driver\":\"vhost-vsock-pci\",\"guest-cid\":7}}"),
    LINE("qemu-system-x86_64\0-device\0{\"driver\":\"vhost-vsock-pci\",\"guest-cid\":"),
    LINE("qemu-system-x86_64\0-device\0{\"driver\":[\"vhost-vsock-pci\"],\"guest-cid\":{}}"),
    LINE("qemu-system-x86_64\0-device\0vhost-user-vsock-pci,chardev=c,guest-cid=77"),
    LINE("qemu-system-x86_64\0-drive\0file=guest-cid=77.img,id=d"),
    /* kubevirt, kata, microvm */
    LINE("/usr/libexec/qemu-kvm\0-name\0guest=default_testvm,debug-threads=on\0-S\0-uuid\0" UUID
	 "\0-sandbox\0on,obsolete=deny\0-device\0"
	 "{\"driver\":\"vhost-vsock-pci-non-transitional\",\"id\":\"vsock0\",\"guest-cid\":"
	 "2147483659,\"vhostfd\":\"25\"}",
	 .name = "default_testvm", .uuid = UUID, .cid = 2147483659),
    LINE("/opt/kata/bin/qemu-system-x86_64\0-name\0sandbox-9c2f,debug-threads=on\0-uuid\0" UUID
	 "\0-device\0vhost-vsock-pci,disable-modern=false,vhostfd=3,id=vsock-1,guest-cid=123456",
	 .name = "sandbox-9c2f", .uuid = UUID, .cid = 123456),
    LINE("qemu-system-x86_64\0-M\0microvm\0-device\0vhost-vsock-device,id=vs,guest-cid=33",
	 .cid = 33),
    LINE("/usr/bin/stratovirt\0-name\0iso,debug-threads=on\0-device\0"
	 "vhost-vsock-pci,id=vsock-1,guest-cid=3,bus=pcie.0,addr=0x3",
	 .name = "iso", .cid = 3),
    /* Later options add to earlier ones. */
    LINE("qemu\0-name\0one\0-name\0debug-threads=on", .name = "one"),
    LINE("qemu\0-name\0one\0-name\0process=p,guest=two", .name = "two"),
    LINE("qemu\0-name\0guest=one,guest=two", .name = "two"),
    LINE("qemu\0-name\0process=p"),
    LINE("qemu\0-name\0"),
    LINE("qemu\0-name"),
    /* No guest's numbers. */
    LINE("qemu\0-device\0vhost-vsock-pci,guest-cid=2"),
    LINE("qemu\0-device\0vhost-vsock-pci,guest-cid=4294967295"),
    LINE("qemu\0-device\0vhost-vsock-pci,guest-cid=18446744073709551619"),
    LINE("qemu\0-device\0vhost-vsock-pci,guest-cid=-3"),
    LINE("qemu\0-device\0vhost-vsock-pci,guest-cid=3x"),
    LINE("qemu\0-device\0vhost-vsock-pci,guest-cid=0x"),
    LINE("qemu\0-device\0vhost-vsock-pci,guest-cid="),
    LINE("qemu\0-device\0vhost-vsock-pci"),
    LINE("qemu\0-device\0"),
    LINE("qemu\0-device"),
    LINE(""),
};

static const struct expected of_others[] = {
    /* kvmtool */
    LINE("lkvm\0run\0--name\0g1\0-k\0bzImage\0-p\0console=ttyS0 guest-cid=77\0--vsock\0"
	 "3",
	 .name = "g1", .cid = 3),
    LINE("/usr/bin/lkvm-static\0run\0--vsock=12\0--name=g2\0--balloon\0--rng", .name = "g2",
	 .cid = 12),
    LINE("kvmtool\0run\0-p\0--vsock=77\0--params\0--vsock\0--disk\0a.img"),
    LINE("./vm\0run\0--nodefaults\0--vsock\0"
	 "5\0-d\0disk",
	 .cid = 5),
    LINE("lkvm\0run\0--vsock"),
    /* crosvm */
    LINE("crosvm\0run\0--name\0arcvm\0--vsock\0cid=34,device=/dev/vhost-vsock\0-p\0vsock=77",
	 .name = "arcvm", .cid = 34),
    LINE("/apex/com.android.virt/bin/crosvm\0--extended-status\0run\0--disable-sandbox\0--cid\0"
	 "2048\0--params\0--vsock=cid=77",
	 .cid = 2048),
    LINE("crosvm\0run\0--vsock=cid=0x10\0--no-rng\0kernel", .cid = 16),
    LINE("crosvm\0run\0--vsock\0"
	 "11,device=/dev/x\0kernel",
	 .cid = 11),
    LINE("crosvm\0run\0-p\0--vsock=77\0kernel\0--android-fstab\0--cid=78"),
    /* Cloud Hypervisor and Firecracker: the CID is their own, not the kernel's. */
    LINE("cloud-hypervisor\0--api-socket\0/run/a\0--vsock\0cid=3,socket=/run/v,id=_v\0--cmdline\0"
	 "--vsock=socket=/run/evil",
	 .name = "a", .vsock = "/run/v"),
    LINE("cloud-hypervisor\0--api-socket=path=/run/vms/web1.sock\0--platform\0"
	 "serial_number=x,system_uuid=" UUID,
	 .name = "web1", .uuid = UUID),
    LINE("cloud-hypervisor\0--platform=uuid=" UUID ",oem_strings=[a]\0--api-socket\0fd=3",
	 .uuid = UUID),
    LINE("cloud-hypervisor\0--api-socket\0/run/.sock", .name = ".sock"),
    LINE("cloud-hypervisor\0--api-socket\0/run/"),
    LINE("/usr/bin/cloud-hypervisor-static\0-v\0--vsock=socket=v.sock,cid=3\0--watchdog\0--rng",
	 .vsock = "v.sock"),
    LINE("cloud-hypervisor\0--platform\0serial_number=guest-cid=77\0--cpus\0boot=1"),
    LINE("/usr/bin/firecracker\0--id\0"
	 "551e7604-e35c\0--api-sock\0/run/f.sock",
	 .name = "551e7604-e35c"),
    LINE("firecracker-v1.7.0\0--no-api\0--config-file\0vm.json\0--id=fc1", .name = "fc1"),
    LINE("firecracker\0--config-file\0guest-cid=77\0--boot-timer"),
};

static void expect_text(const char *line, const char *what, const char *found, const char *wanted)
{
	if ((!found != !wanted) || (found && strcmp(found, wanted) != 0))
		fail_msg("%s …: %s is '%s', not '%s'", line, what, found ? found : "(none)",
			 wanted ? wanted : "(none)");
}

static void expect_all(const struct expected *lines, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct expected *line = &lines[i];
		struct vp_vmm_command read = vp_vmm_command_read(line->text, line->size);
		VP_AUTO_FREE char *first = vp_format("%s (line %zu)", line->text, i);
		expect_text(first, "the name", read.name, line->name);
		expect_text(first, "the uuid", read.uuid, line->uuid);
		expect_text(first, "the socket", read.vsock, line->vsock);
		if (read.cid != line->cid)
			fail_msg("%s: the CID is %u, not %u", first, read.cid, line->cid);
		vp_vmm_command_deinit(&read);
	}
}

static void test_qemu(void **state)
{
	expect_all(of_qemu, VP_ARRAY_SIZE(of_qemu));
}

static void test_others(void **state)
{
	expect_all(of_others, VP_ARRAY_SIZE(of_others));
}

/* However it is cut, nothing beyond it is read (AddressSanitizer looks on). */
static void test_cut(void **state)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(of_qemu); i++)
		for (size_t size = 0; size < of_qemu[i].size; size++) {
			VP_AUTO_FREE char *copy = vp_alloc(size + 1);
			memcpy(copy, of_qemu[i].text, size);
			copy[size] = 'x';
			struct vp_vmm_command read = vp_vmm_command_read(copy, size);
			vp_vmm_command_deinit(&read);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_qemu),
	    cmocka_unit_test(test_others),
	    cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
