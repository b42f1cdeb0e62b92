/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Importer of perf's files: perf.data. */
#ifndef VP_IMPORT_PERF_IMPORT_PERF_H
#define VP_IMPORT_PERF_IMPORT_PERF_H

#include "import/common/importer.h"

const struct vp_importer *vp_importer_perf(void);

#endif
