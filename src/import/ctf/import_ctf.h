/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Importer of LTTng's traces: CTF. */
#ifndef VP_IMPORT_CTF_IMPORT_CTF_H
#define VP_IMPORT_CTF_IMPORT_CTF_H

#include "import/common/importer.h"

const struct vp_importer *vp_importer_ctf(void);

#endif
