/* SPDX-License-Identifier: GPL-2.0-or-later */
/* List of importers. */
#ifndef VP_IMPORT_RECORDING_IMPORTERS_H
#define VP_IMPORT_RECORDING_IMPORTERS_H

#include <stddef.h>

#include "import/common/importer.h"

/* Importer `number`, counted from 0; NULL: no more. */
const struct vp_importer *vp_importer_at(size_t number);
/* The importer for the file or directory, or NULL. */
const struct vp_importer *vp_importer_of(const char *path);

#endif
