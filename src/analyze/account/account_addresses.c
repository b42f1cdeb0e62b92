/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cost of exits to memory, by guest physical address. */
#include "analyze/account/account.h"
#include "analyze/account/account_tables.h"
#include "analyze/common/key_set.h"
#include "analyze/common/table.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/records.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/account/exit_sums.h"
#include "schema/exit_reason.h"
#include "timeline/guests.h"

/* Keys of rows; no padding. */
struct row_key {
	uint64_t address;
	uint32_t vm, reason, vendor, kind;
};

struct row {
	struct row_key key;
	struct vp_exit_sums sums;
};

typedef VP_VEC(struct row) address_rows;

static struct row *account_addresses_row_of(struct vp_key_set *keys, address_rows *rows,
					    const struct row_key *key)
{
	bool inserted;
	uint32_t number = vp_key_set_add(keys, key, &inserted);

	if (inserted)
		vp_vec_push(rows, ((struct row){.key = *key}));
	return &rows->at[number];
}

static struct row_key unknown_address(uint32_t vm, uint32_t reason, uint32_t vendor)
{
	return (struct row_key){
	    .address = VP_NO_ADDRESS, .vm = vm, .reason = reason, .vendor = vendor};
}

static bool has_address(const struct vp_account_view *view, const struct vp_account_exit_site *site)
{
	return site->known && site->address != VP_NO_ADDRESS &&
	       vp_exit_reason_is_memory(site->vendor, site->reason) &&
	       vp_account_view_shows(view, site->vm, VP_NONE);
}

/* Adds exits without an address, by reason. */
static void add_rest(const struct vp_account_view *view, struct vp_key_set *keys,
		     address_rows *rows)
{
	vp_vec_each (&view->account->costs, cost) {
		struct row_key key = unknown_address(cost->vm, cost->reason, cost->vendor);
		if (!vp_exit_reason_is_memory(cost->vendor, cost->reason) ||
		    !vp_account_view_shows(view, cost->vm, VP_NONE))
			continue;
		struct row *row = account_addresses_row_of(keys, rows, &key);
		vp_exit_sums_add_cost(&row->sums, cost);
	}
	vp_vec_each (&view->account->sites, site) {
		struct row_key key = unknown_address(site->vm, site->reason, site->vendor);
		if (!has_address(view, site))
			continue;
		struct row *row = account_addresses_row_of(keys, rows, &key);
		struct vp_exit_sums part = {0};
		vp_exit_sums_add_site(&part, view->account, site);
		vp_exit_sums_subtract(&row->sums, &part);
	}
}

static int account_addresses_by_cost(const void *a, const void *b)
{
	const struct row *left = a, *right = b;

	int order = vp_exit_sums_order(&left->sums, &right->sums);

	if (order)
		return order;
	return (left->key.address > right->key.address) - (left->key.address < right->key.address);
}

static void account_addresses_collect(const struct vp_account_view *view, address_rows *rows)
{
	struct vp_key_set keys = {.key_size = sizeof(struct row_key)};

	add_rest(view, &keys, rows);
	vp_vec_each (&view->account->sites, site) {
		const struct row_key key = {.address = site->address,
					    .vm = site->vm,
					    .reason = site->reason,
					    .vendor = site->vendor,
					    .kind = site->detail_kind};
		if (!has_address(view, site))
			continue;
		struct row *row = account_addresses_row_of(&keys, rows, &key);
		vp_exit_sums_add_site(&row->sums, view->account, site);
	}
	vp_key_set_deinit(&keys);
	if (rows->count)
		qsort(rows->at, rows->count, sizeof(*rows->at), account_addresses_by_cost);
}

static const char *account_addresses_keep(struct vp_account_view *view, const char *text)
{
	return vp_intern_text(&view->texts, vp_intern_string(&view->texts, text));
}

/* Text of a device address, or of a block of memory. */
static const char *address_text(struct vp_account_view *view, const struct row_key *key,
				bool device)
{
	enum { TEXT_SIZE = 48 };
	uint64_t end = key->address + VP_MEMORY_BLOCK - 1;
	char text[TEXT_SIZE];

	if (key->address == VP_NO_ADDRESS)
		return NULL;
	if (device)
		snprintf(text, sizeof(text), "0x%" PRIx64, key->address);
	else
		snprintf(text, sizeof(text), "0x%" PRIx64 "-0x%" PRIx64, key->address, end);
	return account_addresses_keep(view, text);
}

static const char *access_text(uint32_t kind)
{
	switch (kind) {
	case VP_DETAIL_MMIO_READ:
	case VP_DETAIL_MEMORY_READ:
		return "read";
	case VP_DETAIL_MMIO_WRITE:
	case VP_DETAIL_MEMORY_WRITE:
		return "write";
	case VP_DETAIL_MEMORY_FETCH:
		return "fetch";
	default:
		return NULL;
	}
}

static void account_addresses_add_row(struct vp_account_view *view, const struct row *row,
				      struct vp_table *table)
{
	const struct row_key *key = &row->key;
	bool device = key->kind == VP_DETAIL_MMIO_READ || key->kind == VP_DETAIL_MMIO_WRITE;
	bool known = key->address != VP_NO_ADDRESS;

	vp_table_text(table, vp_account_view_vm(view, key->vm));
	vp_table_text(table, address_text(view, key, device));
	vp_table_text(table, !known ? NULL : device ? "device" : "memory");
	vp_table_text(table, access_text(key->kind));
	vp_table_text(table, vp_account_view_reason(view, key->vendor, key->reason));
	vp_exit_sums_put(view->account, &row->sums, true, table);
}

void vp_account_addresses_table(struct vp_account_view *view, struct vp_table *table)
{
	address_rows rows = {0};

	vp_table_column_add(table, "vm", "VM", "", VP_CELL_TEXT);
	vp_table_column_add(table, "address", "Address", "", VP_CELL_TEXT);
	vp_table_column_add(table, "what", "What", "", VP_CELL_TEXT);
	vp_table_column_add(table, "access", "Access", "", VP_CELL_TEXT);
	vp_table_column_add(table, "reason", "Reason", "", VP_CELL_TEXT);
	vp_exit_sums_columns(view->account, table);
	account_addresses_collect(view, &rows);
	for (size_t i = 0, left = view->limit ? view->limit : SIZE_MAX; i < rows.count && left; i++)
		if (rows.at[i].sums.count) {
			account_addresses_add_row(view, &rows.at[i], table);
			left--;
		}
	vp_vec_deinit(&rows);
}
