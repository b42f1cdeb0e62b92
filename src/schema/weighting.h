/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_SCHEMA_WEIGHTING_H
#define VP_SCHEMA_WEIGHTING_H

/* Weight of a sample. */
enum vp_weighting {
	VP_WEIGHTING_TICKS, /* 1: a tick of a clock */
	VP_WEIGHTING_TIME,  /* ns since the previous sample of the pCPU */
	VP_WEIGHTING_EVENTS /* events that the sample represents: its period */
};

#endif
