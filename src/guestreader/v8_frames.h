/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JavaScript functions in call chains, in place of addresses in V8's code. */
#ifndef VP_GUESTREADER_V8_FRAMES_H
#define VP_GUESTREADER_V8_FRAMES_H

#include "guestmem/symbols/runtimes.h"
#include "schema/chain_end.h"
#include "unwind/user_chain.h"

/* Replaces the addresses of frames that execute JavaScript, interpreted or compiled, by those of
 * their SharedFunctionInfos; of callers, the address is one higher, like return addresses. Removes
 * an innermost frame of V8's own code that a function of JavaScript called: it counts as that
 * function. `functions` has the replaced ones without that. Returns their number. */
unsigned vp_v8_frames_put(const struct vp_guest_v8_code *code,
			  const struct vp_user_program *program, struct vp_user_chain *chain,
			  uint64_t functions[VP_CHAIN_LONGEST]);

#endif
