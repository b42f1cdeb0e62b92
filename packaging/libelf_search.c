/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Search trees of elfutils 0.192 and newer, which Debian's libelf.a uses and does not contain: they
 * are in libeu.a, which no package has. meson.build adds this file to static programs if they do
 * not link without it. Symbols are weak: a complete libelf.a wins. Without locks: each program uses
 * an ELF file from one thread only. */
#include <search.h>
#include <stddef.h>

#include "libelf_search.h"

__attribute__((weak)) void eu_search_tree_init(struct eu_search_tree *tree)
{
	tree->root = NULL;
}

__attribute__((weak)) void *eu_tsearch(const void *key, struct eu_search_tree *tree,
				       int (*compare)(const void *, const void *))
{
	return tsearch(key, &tree->root, compare);
}

__attribute__((weak)) void *eu_tfind(const void *key, struct eu_search_tree *tree,
				     int (*compare)(const void *, const void *))
{
	return tfind(key, &tree->root, compare);
}

__attribute__((weak)) void *eu_tdelete(const void *key, struct eu_search_tree *tree,
				       int (*compare)(const void *, const void *))
{
	return tdelete(key, &tree->root, compare);
}

__attribute__((weak)) void eu_tdestroy(struct eu_search_tree *tree, void (*free_node)(void *))
{
	tdestroy(tree->root, free_node);
	tree->root = NULL;
}

__attribute__((weak)) void eu_search_tree_fini(struct eu_search_tree *tree,
					       void (*free_node)(void *))
{
	eu_tdestroy(tree, free_node);
}
