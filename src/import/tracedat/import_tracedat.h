/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Importer of trace-cmd's files: trace.dat. */
#ifndef VP_IMPORT_TRACEDAT_IMPORT_TRACEDAT_H
#define VP_IMPORT_TRACEDAT_IMPORT_TRACEDAT_H

#include "import/common/importer.h"

const struct vp_importer *vp_importer_tracedat(void);

#endif
