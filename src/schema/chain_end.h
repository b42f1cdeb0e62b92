/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How call chains end, for those who make them and those who read them. */
#ifndef VP_SCHEMA_CHAIN_END_H
#define VP_SCHEMA_CHAIN_END_H

/* Frames: of a chain that is walked at the sample; of one of guest user space that is unwound. */
enum { VP_CHAIN_FRAMES = 64, VP_CHAIN_LONGEST = 256 };

/* Values of chain_frames.end. */
enum vp_chain_end {
	VP_CHAIN_WHOLE = 0,
	VP_CHAIN_TOO_DEEP = 1,
	VP_CHAIN_UNREADABLE = 2,
	VP_CHAIN_NO_FRAME = 3,
	VP_CHAIN_FAILED = 4,
	VP_CHAIN_NO_TABLE = 5,
	VP_CHAIN_BAD_TABLE = 6,
	VP_CHAIN_NO_REGISTER = 7,
	/* Not recorded: BAD_TABLE where some of the stack was read after the sample. */
	VP_CHAIN_CHANGED = 8,
	VP_CHAIN_EXITED = 9,
	VP_CHAIN_GOES_ON = 255,
};
/* Bits of chain_frames.flags. */
enum vp_chain_flag {
	VP_CHAIN_BY_TABLES = 1,
	VP_CHAIN_READ_LATER = 2,
	VP_CHAIN_LINK = 4,
	VP_CHAIN_GUESSED = 8,
};
/* Bit of a guest program's address in a chain: this caller was guessed (VP_CHAIN_GUESSED). */
#define VP_CHAIN_GUESSED_IP (1ULL << 63)

#endif
