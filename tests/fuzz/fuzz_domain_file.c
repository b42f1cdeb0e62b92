/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file of a VM's manager from anybody, as XML or as Proxmox's: texts of bounded size, or none. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/domain_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(const struct vp_domain_file *found)
{
	if (!memchr(found->uuid, 0, VP_DOMAIN_TEXT) || !memchr(found->id, 0, VP_DOMAIN_TEXT) ||
	    !memchr(found->title, 0, VP_DOMAIN_TEXT) ||
	    !memchr(found->project, 0, VP_DOMAIN_TEXT) || !memchr(found->tenant, 0, VP_DOMAIN_TEXT))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct vp_domain_file found;

	if (!vp_domain_xml_parse((const char *)bytes, size, 1, &found) &&
	    (found.uuid[0] || found.title[0]))
		abort();
	check(&found);
	vp_proxmox_conf_parse((const char *)bytes, size, &found);
	check(&found);
	return 0;
}
