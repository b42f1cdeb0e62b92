/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cost of exits, by the guest code that caused them. */
#include "analyze/account/account.h"
#include "analyze/account/account_tables.h"
#include "analyze/common/key_set.h"
#include "analyze/common/naming.h"
#include "analyze/common/table.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"
#include "symbol/names.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/account/exit_sums.h"
#include "schema/exit_reason.h"
#include "timeline/guests.h"

/* The page table's address in CR3: below it the PCID or flags, above it flags. */
#define ROOT_MASK 0x000ffffffffff000ULL

/* Keys of rows: numbers of texts, or VP_NONE. */
struct site_row_key {
	uint32_t vm, function, module, process, pid, reason, vendor, detail;
};

struct site_row {
	struct site_row_key key;
	struct vp_exit_sums sums;
};

typedef VP_VEC(struct site_row) site_rows;

static uint32_t account_sites_text_of(struct vp_account_view *view, const char *text)
{
	return text ? vp_intern_string(&view->texts, text) : VP_NONE;
}

static uint32_t made_text(struct vp_account_view *view, char *text)
{
	uint32_t number = vp_intern_string(&view->texts, text);

	free(text);
	return number;
}

static void name_process(struct vp_account_view *view, struct vp_names *names, uint32_t space,
			 const struct vp_account_exit_site *site, struct site_row_key *key)
{
	uint64_t root = site->as_root & ROOT_MASK;
	bool kernel = (int64_t)site->ip < 0;
	const char *comm;

	if (names && vp_names_process(names, space, &comm, &key->pid))
		key->process = account_sites_text_of(view, comm);
	else if (kernel && (names || !root))
		key->process = account_sites_text_of(view, "[kernel]");
	else if (!root)
		key->process = account_sites_text_of(view, "[unknown]");
	else
		key->process = made_text(view, vp_format("cr3:0x%" PRIx64, root));
}

static void name_function(struct vp_account_view *view, const struct vp_naming_machine *machine,
			  uint32_t space, const struct vp_account_exit_site *site,
			  struct site_row_key *key)
{
	bool kernel = (int64_t)site->ip < 0;
	struct vp_names *names = kernel && machine->kernel ? machine->kernel : machine->names;
	struct vp_name name = {0};

	if (names)
		vp_names_find(names, names == machine->names ? space : VP_NAMES_NO_SPACE, kernel,
			      site->ip, site->last, &name);
	key->module = account_sites_text_of(view, name.module);
	key->function =
	    name.function ? account_sites_text_of(view, name.function)
	    : name.module
		? made_text(view, vp_format("%s+0x%" PRIx64, name.module, name.module_offset))
		: made_text(view, vp_format("0x%" PRIx64, site->ip));
}

static struct site_row_key without_site(uint32_t vm, uint32_t reason, uint32_t vendor)
{
	return (struct site_row_key){.vm = vm,
				     .function = VP_NONE,
				     .module = VP_NONE,
				     .process = VP_NONE,
				     .pid = VP_NONE,
				     .reason = reason,
				     .vendor = vendor,
				     .detail = VP_NONE};
}

/* Device memory has an address; all other memory is one item. */
static uint32_t account_sites_name_detail(struct vp_account_view *view,
					  const struct vp_account_exit_site *site)
{
	bool device = vp_account_exit_site_is_device(site);
	char text[VP_EXIT_NAME_SIZE];

	return account_sites_text_of(
	    view,
	    vp_exit_detail_text(site->detail_kind, device ? site->address : site->detail, text));
}

static void account_sites_name_site(struct vp_account_view *view, const struct vp_naming *naming,
				    enum vp_exits_by by, const struct vp_account_exit_site *site,
				    struct site_row_key *key)
{
	static const struct vp_naming_machine nothing;
	const struct vp_naming_machine *machine =
	    site->vm < naming->vms.count ? &naming->vms.at[site->vm] : &nothing;
	uint32_t space = VP_NAMES_NO_SPACE;

	*key = without_site(site->vm, site->reason, site->vendor);
	if (machine->names)
		space = vp_names_space_by_root(machine->names, site->as_root, site->last);
	name_process(view, machine->names, space, site, key);
	if (by != VP_EXITS_BY_FUNCTION)
		return;
	name_function(view, machine, space, site, key);
	key->detail = account_sites_name_detail(view, site);
}

static struct site_row *account_sites_row_of(struct vp_key_set *keys, site_rows *rows,
					     const struct site_row_key *key)
{
	bool inserted;
	uint32_t number = vp_key_set_add(keys, key, &inserted);

	if (inserted)
		vp_vec_push(rows, ((struct site_row){.key = *key}));
	return &rows->at[number];
}

/* Exits not caused by guest code (host interrupts), or with unknown site: the total by reason minus
 * the sum by site. */
static void add_without_site(const struct vp_account_view *view, struct vp_key_set *keys,
			     site_rows *rows)
{
	vp_vec_each (&view->account->costs, cost) {
		struct site_row_key key = without_site(cost->vm, cost->reason, cost->vendor);
		if (!vp_account_view_shows(view, cost->vm, VP_NONE))
			continue;
		struct site_row *row = account_sites_row_of(keys, rows, &key);
		vp_exit_sums_add_cost(&row->sums, cost);
	}
	vp_vec_each (&view->account->sites, site) {
		struct site_row_key key = without_site(site->vm, site->reason, site->vendor);
		if (!site->known || !vp_account_view_shows(view, site->vm, VP_NONE))
			continue;
		struct site_row *row = account_sites_row_of(keys, rows, &key);
		struct vp_exit_sums part = {0};
		vp_exit_sums_add_site(&part, view->account, site);
		vp_exit_sums_subtract(&row->sums, &part);
	}
}

static int account_sites_by_cost(const void *a, const void *b)
{
	const struct site_row *left = a, *right = b;

	return vp_exit_sums_order(&left->sums, &right->sums);
}

static void account_sites_collect(struct vp_account_view *view, const struct vp_naming *naming,
				  enum vp_exits_by by, site_rows *rows)
{
	struct vp_key_set keys = {.key_size = sizeof(struct site_row_key)};

	add_without_site(view, &keys, rows);
	vp_vec_each (&view->account->sites, site) {
		struct site_row_key key;
		if (!site->known || !vp_account_view_shows(view, site->vm, VP_NONE))
			continue;
		account_sites_name_site(view, naming, by, site, &key);
		struct site_row *row = account_sites_row_of(&keys, rows, &key);
		vp_exit_sums_add_site(&row->sums, view->account, site);
	}
	vp_key_set_deinit(&keys);
	if (rows->count)
		qsort(rows->at, rows->count, sizeof(*rows->at), account_sites_by_cost);
}

static void account_sites_put_name(const struct vp_account_view *view, uint32_t text,
				   struct vp_table *table)
{
	vp_table_text(table, text == VP_NONE ? NULL : vp_intern_text(&view->texts, text));
}

static void add_site_row(struct vp_account_view *view, enum vp_exits_by by,
			 const struct site_row *row, struct vp_table *table)
{
	char reason[VP_EXIT_NAME_SIZE];
	uint32_t text = account_sites_text_of(
	    view, vp_exit_reason_name(row->key.vendor, row->key.reason, reason));

	vp_table_text(table, vp_account_view_vm(view, row->key.vm));
	if (by == VP_EXITS_BY_FUNCTION) {
		account_sites_put_name(view, row->key.function, table);
		account_sites_put_name(view, row->key.module, table);
	}
	account_sites_put_name(view, row->key.process, table);
	vp_table_count(table, row->key.pid == VP_NONE ? VP_CELL_NO_COUNT : row->key.pid);
	account_sites_put_name(view, text, table);
	if (by == VP_EXITS_BY_FUNCTION)
		account_sites_put_name(view, row->key.detail, table);
	vp_exit_sums_put(view->account, &row->sums, vp_exit_reason_has_time(row->key.reason),
			 table);
}

void vp_account_sites_table(struct vp_account_view *view, const struct vp_naming *naming,
			    enum vp_exits_by by, struct vp_table *table)
{
	site_rows rows = {0};

	vp_table_column_add(table, "vm", "VM", "", VP_CELL_TEXT);
	if (by == VP_EXITS_BY_FUNCTION) {
		vp_table_column_add(table, "function", "Function", "", VP_CELL_TEXT);
		vp_table_column_add(table, "module", "Module", "", VP_CELL_TEXT);
	}
	vp_table_column_add(table, "process", "Process", "", VP_CELL_TEXT);
	vp_table_column_add(table, "pid", "PID", "", VP_CELL_COUNT);
	vp_table_column_add(table, "reason", "Reason", "", VP_CELL_TEXT);
	if (by == VP_EXITS_BY_FUNCTION)
		vp_table_column_add(table, "detail", "Detail", "", VP_CELL_TEXT);
	vp_exit_sums_columns(view->account, table);
	account_sites_collect(view, naming, by, &rows);
	for (size_t i = 0, left = view->limit ? view->limit : SIZE_MAX; i < rows.count && left; i++)
		if (rows.at[i].sums.count) {
			add_site_row(view, by, &rows.at[i], table);
			left--;
		}
	vp_vec_deinit(&rows);
}
