/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/recording/importers.h"

#include "base/macros.h"
#include "import/ctf/import_ctf.h"
#include "import/perf/import_perf.h"
#include "import/tracedat/import_tracedat.h"

const struct vp_importer *vp_importer_at(size_t number)
{
	const struct vp_importer *const all[] = {
	    vp_importer_tracedat(),
	    vp_importer_ctf(),
	    vp_importer_perf(),
	};

	return number < VP_ARRAY_SIZE(all) ? all[number] : NULL;
}

const struct vp_importer *vp_importer_of(const char *path)
{
	const struct vp_importer *importer = NULL;

	for (size_t i = 0; (importer = vp_importer_at(i)) && !importer->detects(path); i++)
		;
	return importer;
}
