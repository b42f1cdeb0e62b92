/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A callback for urgent work, called at least ten times a second during a long wait. */
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
