/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_SCHEMA_WEIGH_H
#define VP_SCHEMA_WEIGH_H

/* The weight of a sample. */
enum vp_weigh {
	VP_WEIGH_TICKS, /* 1: a tick of a clock */
	VP_WEIGH_TIME,  /* ns since the previous sample of its pCPU */
	VP_WEIGH_EVENTS /* events of the trigger that it stands for: its period */
};

#endif
