/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/rules.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/account/account_tables.h"
#include "analyze/common/health.h"
#include "analyze/common/table.h"
#include "analyze/report/diagnose.h"
#include "analyze/report/diagnose_rules.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/text.h"
#include "schema/vm.h"

void vp_held_rules_deinit(vp_held_rules *rules)
{
	vp_vec_each (rules, rule) {
		free(rule->who);
		free(rule->sentence);
	}
	vp_vec_deinit(rules);
}

static bool rules_has_word(const char *list, const char *word)
{
	size_t size = strlen(word);

	while (*(list += strspn(list, " ,"))) {
		size_t length = strcspn(list, " ,");
		if (length == size && !memcmp(list, word, size))
			return true;
		list += length;
	}
	return false;
}

static char *sentence_of(const struct vp_account *account, const struct vp_finding *finding)
{
	char lost[VP_DURATION_SIZE], most[VP_DURATION_SIZE];
	const char *who = finding->who ? finding->who : "";
	VP_AUTO_FREE char *rest = finding->who ? vp_format("; most of it: %s, %s", who,
							   vp_text_duration(finding->most, most))
					       : vp_strdup("");
	VP_AUTO_FREE char *text =
	    vp_format("VM %s loses %s, %.1f%% of its vCPUs' time, to %s%s",
		      account->vms->at[finding->vm].name, vp_text_duration(finding->ns, lost),
		      finding->percent, finding->words.what, rest);

	return vp_text_cleaned(text);
}

void vp_rules_evaluate(struct vp_account *account, const struct vp_daemon_config *config,
		       vp_held_rules *ret)
{
	const struct vp_table none = {0};
	const struct vp_losses losses = {0};
	struct vp_account_view view;
	struct vp_diagnosis diagnosis;

	vp_account_settle(account);
	vp_account_divide_running(account);
	vp_error_free(vp_account_view_init(&view, account, NULL)); /* cannot fail for all VMs */
	vp_diagnose(&view, &none, &none, &losses, NULL, &diagnosis);
	vp_vec_each (&diagnosis.findings, finding) {
		if (finding->vm == VP_FINDING_OF_NO_VM || finding->rule->records ||
		    rules_has_word(config->ignore, finding->rule->id))
			continue;
		struct vp_held_rule held = {.rule = finding->rule->id,
					    .vm = vp_vm_id(&account->vms->at[finding->vm]),
					    .percent = finding->percent,
					    .is_own = finding->rule->thieves == VP_THIEF_TOOL,
					    .who =
						vp_text_cleaned(finding->who ? finding->who : ""),
					    .sentence = sentence_of(account, finding)};
		vp_vec_push(ret, held);
	}
	vp_diagnosis_deinit(&diagnosis);
	vp_account_view_deinit(&view);
}

/* Key of a rule and a VM; a VM with a uuid keeps its key when its process restarts. */
static uint64_t rules_key(const char *rule, const struct vp_vm *vm)
{
	const char *const parts[] = {rule, vm->uuid ? vm->uuid : "", vm->name ? vm->name : ""};
	uint64_t key = vm->uuid && vm->uuid[0] ? 0 : vp_vm_id(vm);

	for (size_t i = 0; i < VP_ARRAY_SIZE(parts); i++)
		for (const char *at = parts[i];; at++) {
			key = vp_hash64(key ^ (unsigned char)*at);
			if (!*at)
				break;
		}
	return key;
}

bool vp_rules_may_fire(vp_fired_rules *fired, const struct vp_daemon_config *config,
		       const struct vp_held_rule *held, const struct vp_vm *vm, uint64_t now)
{
	uint64_t key = rules_key(held->rule, vm);
	size_t kept = 0;
	bool waits = false;

	if (held->is_own || held->percent < (double)config->least)
		return false;
	/* Removes expired entries, so that the list is limited by the VMs of that period. */
	for (size_t i = 0; i < fired->count; i++) {
		struct vp_fired_rule *item = &fired->at[i];
		if (now - item->time >= config->again_ns)
			continue;
		waits |= item->key == key;
		fired->at[kept++] = *item;
	}
	fired->count = kept;
	if (!waits)
		vp_vec_push(fired, ((struct vp_fired_rule){key, now}));
	return !waits;
}
