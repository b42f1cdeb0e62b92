/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elfutils' lib/eu-search.h, as far as libelf needs it. */
#ifndef VP_PACKAGING_LIBELF_SEARCH_H
#define VP_PACKAGING_LIBELF_SEARCH_H

/* libelf's has a lock after the root. */
struct eu_search_tree {
	void *root;
};

void eu_search_tree_init(struct eu_search_tree *tree);
void *eu_tsearch(const void *key, struct eu_search_tree *tree,
		 int (*compare)(const void *, const void *));
void *eu_tfind(const void *key, struct eu_search_tree *tree,
	       int (*compare)(const void *, const void *));
void *eu_tdelete(const void *key, struct eu_search_tree *tree,
		 int (*compare)(const void *, const void *));
void eu_tdestroy(struct eu_search_tree *tree, void (*free_node)(void *));
void eu_search_tree_fini(struct eu_search_tree *tree, void (*free_node)(void *));

#endif
