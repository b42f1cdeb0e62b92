// SPDX-License-Identifier: GPL-2.0-or-later
// One colour for each state, wherever it is shown. Account (vperf account) and timeline (vperf timeline)
// have names of their own for some of them.

const STATES: Record<string, string> = {
  guest: "#2e7d5b",
  running: "#5b8bb2",
  host: "#8a63b8",
  kernel: "#8a63b8",
  vmm: "#b07cc6",
  poll: "#c9a13b",
  polling: "#c9a13b",
  stolen: "#d1432f",
  preempted: "#d1432f",
  irq: "#e2793d",
  interrupted: "#e2793d",
  waking: "#e8a33d",
  throttled: "#a31545",
  halted: "#b9c3cc",
  halt: "#b9c3cc",
  blocked: "#8796a3",
  waiting: "#8796a3",
  idle: "#dfe4e8",
  unknown: "#999999",
};

export function stateColor(state: string): string {
  return STATES[state] ?? "#6f8f3a";
}

/** A stable number of a text. */
export function hash(text: string): number {
  let ret = 2166136261;
  for (let i = 0; i < text.length; i++) ret = Math.imul(ret ^ text.charCodeAt(i), 16777619) >>> 0;
  return ret;
}

/** VMs have hues of their own; the host has none. */
export function vmColor(vm: string): string {
  return `hsl(${hash(vm) % 360} 45% 48%)`;
}
