// SPDX-License-Identifier: GPL-2.0-or-later
// One colour per state, the same in all sections. "work" of the timeline is kernel, poll and vmm
// together. Guest is dark and preempted is light: they differ in luminance
// by 3:1, so that red-green blind readers and grey print can distinguish them.

const STATES: Record<string, string> = {
  guest: "#14506e",
  running: "#3f7fa8",
  work: "#8460b0",
  kernel: "#8460b0",
  vmm: "#b184c8",
  poll: "#c9b23b",
  preempted: "#f27d42",
  interrupted: "#f9ab7d",
  waking: "#fbc15e",
  throttled: "#b3123f",
  halted: "#cbd3d9",
  waiting: "#a3b0ba",
  idle: "#e3e8ec",
  unknown: "#8d8d8d",
};

const DARK_INK = "#14171a";
const LIGHT_INK = "#ffffff";
export const LEAST_CONTRAST = 4.5; // of text and background (WCAG 2.2, AA)

export function stateColor(state: string): string {
  return STATES[state] ?? "#6f8f3a";
}

/** Hash of a text; the same in every page. */
export function hash(text: string): number {
  let ret = 2166136261;
  for (let i = 0; i < text.length; i++) ret = Math.imul(ret ^ text.charCodeAt(i), 16777619) >>> 0;
  return ret;
}

/** Relative luminance of "#rrggbb" (WCAG 2.2). */
export function luminance(color: string): number {
  const part = (at: number) => {
    const value = parseInt(color.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

export function contrast(a: string, b: string): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

/** Text colour with enough contrast on that background. */
export function inkOn(background: string): string {
  return contrast(background, DARK_INK) >= contrast(background, LIGHT_INK) ? DARK_INK : LIGHT_INK;
}

/** "#rrggbb" of an HSL colour; saturation and lightness from 0 to 1. */
function hex(hue: number, saturation: number, lightness: number): string {
  const part = (n: number) => {
    const k = (n + hue / 30) % 12;
    const value = lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(255 * value).toString(16).padStart(2, "0");
  };
  return `#${part(0)}${part(8)}${part(4)}`;
}

/** A pale colour of that hue; dark text has enough contrast on it. */
export function paleColor(hue: number, saturation: number, lightness: number): string {
  let ret = hex(hue, saturation, lightness);
  for (let light = lightness; contrast(ret, DARK_INK) < LEAST_CONTRAST && light < 1; light += 0.02) ret = hex(hue, saturation, light);
  return ret;
}

/** Colour of a VM, from its name. */
export function vmColor(vm: string): string {
  return paleColor(hash(vm) % 360, 0.45, 0.62);
}
