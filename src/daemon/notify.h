/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages to systemd (sd_notify(3)). */
#ifndef VP_DAEMON_NOTIFY_H
#define VP_DAEMON_NOTIFY_H

/* Sends lines such as "READY=1" to the socket in $NOTIFY_SOCKET; does nothing without it. */
void vp_notify(const char *lines);

#endif
