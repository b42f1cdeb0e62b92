/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prototypes of import/ctf/babeltrace.h are those of babeltrace2's headers. */
#include "import/ctf/babeltrace.h"

#include <babeltrace2/babeltrace.h>

#define SAME(type, name, arguments)                                                                \
	_Static_assert(__builtin_types_compatible_p(                                               \
			   __typeof__(&bt_##name), __typeof__(((struct vp_babeltrace *)0)->name)), \
		       #name);
VP_BT_CALLS(SAME)

_Static_assert(VP_BT_BOOL == BT_FIELD_CLASS_TYPE_BOOL, "");
_Static_assert((VP_BT_UNSIGNED | 1 << 2) == BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER, "");
_Static_assert((VP_BT_SIGNED | 1 << 2) == BT_FIELD_CLASS_TYPE_SIGNED_INTEGER, "");
_Static_assert(VP_BT_STRING == BT_FIELD_CLASS_TYPE_STRING, "");
_Static_assert(VP_BT_ARRAY == BT_FIELD_CLASS_TYPE_ARRAY, "");
_Static_assert((int)VP_BT_END == (int)BT_MESSAGE_ITERATOR_NEXT_STATUS_END, "");
_Static_assert((int)VP_BT_FAILED == (int)BT_GRAPH_SIMPLE_SINK_COMPONENT_CONSUME_FUNC_STATUS_ERROR,
	       "");
_Static_assert((int)VP_BT_MESSAGE_EVENT == (int)BT_MESSAGE_TYPE_EVENT, "");
_Static_assert((int)VP_BT_MESSAGE_DISCARDED == (int)BT_MESSAGE_TYPE_DISCARDED_EVENTS, "");
_Static_assert((int)VP_BT_VALUE_STRING == (int)BT_VALUE_TYPE_STRING, "");
_Static_assert((int)VP_BT_LOG_NONE == (int)BT_LOGGING_LEVEL_NONE, "");

int main(void)
{
	return 0; /* it was compiled */
}
