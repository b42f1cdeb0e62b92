/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Something that must not wait, done about ten times a second or more while something else is
 * waited for. */
#ifndef VP_BASE_MEANWHILE_H
#define VP_BASE_MEANWHILE_H

struct vp_meanwhile {
	void (*call)(void *context);
	void *context;
};

/* `meanwhile` may be NULL. */
static inline void vp_meanwhile(const struct vp_meanwhile *meanwhile)
{
	if (meanwhile)
		meanwhile->call(meanwhile->context);
}

#endif
