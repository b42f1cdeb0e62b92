/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses files of VM managers: libvirt's domain XML, with the metadata of Nova and KubeVirt, and
 * Proxmox's configuration. Parts of them are texts of tenants.
 */
#ifndef VP_HOST_DOMAIN_FILE_H
#define VP_HOST_DOMAIN_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum { VP_DOMAIN_TEXT = 256, VP_DOMAIN_FILE_MOST = 4 << 20 };

/* Texts are cut off at their maximum size; "": none. */
struct vp_domain_file {
	char uuid[VP_DOMAIN_TEXT];    /* of the firmware */
	char id[VP_DOMAIN_TEXT];      /* of the VM at its manager, if that is another one */
	char title[VP_DOMAIN_TEXT];   /* the name that its owner has given it */
	char project[VP_DOMAIN_TEXT]; /* id of Nova's project */
	char tenant[VP_DOMAIN_TEXT];  /* name of Nova's project */
};

/* <domain>, or <domstatus> with one; false: not such a file. `salt` for hash tables is random, and
 * not 0. */
bool vp_domain_xml_parse(const char *text, size_t size, unsigned long salt,
			 struct vp_domain_file *ret);
/* /etc/pve/qemu-server/VMID.conf. */
void vp_proxmox_conf_parse(const char *text, size_t size, struct vp_domain_file *ret);

#endif
