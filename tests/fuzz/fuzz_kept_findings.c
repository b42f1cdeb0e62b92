/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A store's file of findings from anybody: texts that harm nobody, and the same when written again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/text.h"
#include "store/kept_findings.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_again(const vp_kept_findings *findings)
{
	struct vp_buffer out = {0};
	vp_kept_findings again;
	uint64_t bad;

	vp_vec_each (findings, finding)
		vp_kept_finding_put(finding->time, finding->permyriad,
				    (const char *const *)finding->texts, &out);
	vp_kept_findings_parse(out.bytes, out.size, &again, &bad);
	if (bad || again.count != findings->count)
		abort();
	for (size_t i = 0; i < again.count; i++)
		for (size_t text = 0; text < VP_KEPT_TEXTS; text++)
			if (strcmp(again.at[i].texts[text], findings->at[i].texts[text]) != 0)
				abort();
	vp_kept_findings_deinit(&again);
	vp_buffer_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	vp_kept_findings findings;
	uint64_t bad, lines = 0;

	vp_kept_findings_parse((const char *)bytes, size, &findings, &bad);
	for (size_t i = 0; i < size; i++)
		lines += bytes[i] == '\n' || (i + 1 == size && bytes[i] != '\n');
	if (findings.count + bad != lines)
		abort();
	vp_vec_each (&findings, finding)
		for (size_t text = 0; text < VP_KEPT_TEXTS; text++)
			if (!vp_text_is_clean(finding->texts[text]))
				abort();
	check_again(&findings);
	vp_kept_findings_deinit(&findings);
	return 0;
}
