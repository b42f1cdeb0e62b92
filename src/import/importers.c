/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of importers. */
#include "base/macros.h"
#include "import/importer.h"

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
