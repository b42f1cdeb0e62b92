/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Owners of VMs, from files of libvirt, Nova, KubeVirt and Proxmox below a made root. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "host/domain_file.h"
#include "host/vm_owner.h"

#define UUID "3c5a1ff0-4b6f-4f0e-9a0e-0d6f1b2c3d4e"
#define NOVA                                                                                       \
	"<metadata><nova:instance xmlns:nova=\"http://openstack.org/xmlns/libvirt/nova/1.1\">"     \
	"<nova:package version=\"27\"/><nova:name>web &amp; db</nova:name>"                        \
	"<nova:flavor name=\"m1\"><nova:memory>1</nova:memory></nova:flavor>"                      \
	"<nova:owner><nova:user uuid=\"u1\">alice</nova:user>"                                     \
	"<nova:project uuid=\"p1\">shop</nova:project></nova:owner></nova:instance></metadata>"

static char root[] = "/tmp/vperf-owner-XXXXXX";

static void put(const char *path, const char *text)
{
	VP_AUTO_FREE char *file = vp_format("%s/%s", root, path);

	for (char *slash = file + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = 0;
		mkdir(file, 0755);
	}
	FILE *out = fopen(file, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static struct vp_vm owner(const char *name, const char *uuid, const char *cgroup)
{
	struct vp_vm vm = {.pid = 77,
			   .name = vp_strdup(name),
			   .uuid = vp_strdup(uuid),
			   .cgroup = vp_strdup(cgroup)};
	VP_AUTO_FREE char *proc = vp_format("%s/proc", root);

	vp_vm_owner_read(root, proc, &vm);
	return vm;
}

static void expect(struct vp_vm vm, const char *uuid, const char *title, const char *project,
		   const char *tenant)
{
	const char *const found[] = {vm.uuid, vm.title, vm.project, vm.tenant};
	const char *const expected[] = {uuid, title, project, tenant};

	for (size_t i = 0; i < 4; i++)
		if (!expected[i])
			assert_null(found[i]);
		else if (!found[i] || strcmp(found[i], expected[i]) != 0)
			fail_msg("%zu: '%s', not '%s'", i, found[i] ? found[i] : "-", expected[i]);
	vp_vm_deinit(&vm);
}

static int set_up(void **state)
{
	if (geteuid() != 0)
		return 0;
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	vp_file_remove_all(root);
	return 0;
}

static void needs_root(void)
{
	if (geteuid() != 0)
		skip(); /* the confined process becomes another user */
}

static void test_nova(void **state)
{
	static const char scope[] =
	    "/machine.slice/machine-qemu\\x2d1\\x2dinstance\\x2d00000001.scope";

	needs_root();
	put("run/libvirt/qemu/instance-00000001.xml",
	    "<domstatus state='running' pid='77'><vcpus><vcpu id='0' pid='78'/></vcpus>"
	    "<domain type='kvm' id='1'><name>instance-00000001</name><uuid>" UUID "</uuid>" NOVA
	    "</domain></domstatus>");
	expect(owner("instance-00000001", UUID, scope), UUID, "web & db", "p1", "shop");
	expect(owner("instance-00000001", "", scope), UUID, "web & db", "p1", "shop");
	/* The file of another VM; a name that is no file name; no manager. */
	expect(owner("instance-00000001", "other", scope), "other", NULL, NULL, NULL);
	expect(owner("../qemu/instance-00000001", UUID, scope), UUID, NULL, NULL, NULL);
	expect(owner("instance-00000001", UUID, "/user.slice"), UUID, NULL, NULL, NULL);
	put("etc/libvirt/qemu/plain.xml",
	    "<!-- edited --><domain><uuid>" UUID "</uuid><name>plain</name></domain>");
	expect(owner("plain", "", "/machine/qemu-3-plain.libvirt-qemu"), UUID, NULL, NULL, NULL);
}

static void test_kubevirt(void **state)
{
	static const char pod[] = "/kubepods.slice/kubepods-burstable.slice/pod1/x";

	needs_root();
	put("proc/77/root/run/libvirt/qemu/run/shop_web.xml",
	    "<domstatus><domain><uuid>" UUID "</uuid><metadata>"
	    "<kubevirt xmlns=\"http://kubevirt.io\"><uid>of-the-vmi</uid></kubevirt></metadata>"
	    "</domain></domstatus>");
	/* The firmware's uuid is a hash of the name: the same in each namespace. */
	expect(owner("shop_web", UUID, pod), "of-the-vmi", NULL, NULL, NULL);
	/* A link of the pod does not lead out of it. */
	put("outside.xml", "<domain><uuid>" UUID "</uuid>" NOVA "</domain>");
	VP_AUTO_FREE char *target = vp_format("%s/outside.xml", root);
	VP_AUTO_FREE char *link =
	    vp_format("%s/proc/77/root/run/libvirt/qemu/run/shop_link.xml", root);
	assert_int_equal(symlink(target, link), 0);
	expect(owner("shop_link", UUID, pod), UUID, NULL, NULL, NULL);
	VP_AUTO_FREE char *up = vp_format("%s/proc/77/root/run/libvirt/qemu/run/shop_up.xml", root);
	assert_int_equal(symlink("../../../../../../../outside.xml", up), 0);
	expect(owner("shop_up", UUID, pod), UUID, NULL, NULL, NULL);
	/* Neither does a pipe stop it. */
	VP_AUTO_FREE char *pipe =
	    vp_format("%s/proc/77/root/run/libvirt/qemu/run/shop_pipe.xml", root);
	assert_int_equal(mkfifo(pipe, 0666), 0);
	expect(owner("shop_pipe", UUID, pod), UUID, NULL, NULL, NULL);
}

static void test_proxmox(void **state)
{
	needs_root();
	put("etc/pve/qemu-server/100.conf",
	    "#notes: name: no\nboot: order=scsi0\nname: web1\n"
	    "smbios1: base64=1,uuid=" UUID ",sku=x\n[before]\nname: old\nsmbios1: uuid=old\n");
	expect(owner("web1", UUID, "/qemu.slice/100.scope"), UUID, "web1", NULL, NULL);
	expect(owner("web1", "", "/qemu.slice/100.scope"), UUID, "web1", NULL, NULL);
	expect(owner("web1", UUID, "/qemu.slice/101.scope"), UUID, NULL, NULL, NULL);
}

static void expect_xml(bool ok, const char *text, const char *title)
{
	struct vp_domain_file found;

	assert_int_equal(vp_domain_xml_parse(text, strlen(text), 1, &found), ok);
	assert_string_equal(found.title, title);
}

static void test_hostile_xml(void **state)
{
	struct vp_buffer deep = {0};
	struct vp_domain_file found;

	expect_xml(true, "<domain>" NOVA "</domain>", "web & db");
	expect_xml(false, "", "");
	expect_xml(false, "<domain>" NOVA, "");
	expect_xml(false, "<other>" NOVA "</other>", "");
	/* Elements in other places, or of other namespaces. */
	expect_xml(true, "<domain><devices>" NOVA "</devices></domain>", "");
	expect_xml(true,
		   "<domain><metadata><instance xmlns=\"http://x\"><name>n</name></instance>"
		   "</metadata></domain>",
		   "");
	expect_xml(false,
		   "<!DOCTYPE d [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>"
		   "<domain>" NOVA "</domain>",
		   "");
	/* The second one of an element does not replace or extend the first. */
	expect_xml(true, "<domain>" NOVA NOVA "</domain>", "web & db");
	for (int i = 0; i < 100000; i++)
		vp_buffer_string(&deep, "<domain>");
	for (int i = 0; i < 100000; i++)
		vp_buffer_string(&deep, "</domain>");
	assert_true(vp_domain_xml_parse(vp_buffer_text(&deep), deep.size, 1, &found));
	assert_string_equal(found.uuid, "");
	vp_buffer_deinit(&deep);
	/* Too long a text is cut off. */
	struct vp_buffer long_one = {0};
	vp_buffer_string(&long_one, "<domain><uuid>");
	for (int i = 0; i < 1000; i++)
		vp_buffer_string(&long_one, "0123456789");
	vp_buffer_string(&long_one, "</uuid></domain>");
	assert_true(vp_domain_xml_parse(vp_buffer_text(&long_one), long_one.size, 1, &found));
	assert_int_equal(strlen(found.uuid), VP_DOMAIN_TEXT - 1);
	vp_buffer_deinit(&long_one);
}

/* A tenant's text becomes one line of plain text. */
static void test_hostile_title(void **state)
{
	needs_root();
	put("run/libvirt/qemu/instance-00000002.xml",
	    "<domain><uuid>" UUID "</uuid><metadata><n:instance "
	    "xmlns:n=\"http://openstack.org/xmlns/libvirt/nova/1.0\"><n:name>a\nvm 1 1&#10;\"}\\"
	    "</n:name></n:instance></metadata></domain>");
	expect(owner("instance-00000002", UUID, "/machine.slice/machine-qemu"), UUID,
	       "a?vm 1 1?\"}\\", NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nova), cmocka_unit_test(test_kubevirt),
	    cmocka_unit_test(test_proxmox), cmocka_unit_test(test_hostile_xml),
	    cmocka_unit_test(test_hostile_title)};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
