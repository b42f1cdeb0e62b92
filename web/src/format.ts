// SPDX-License-Identifier: GPL-2.0-or-later
// Formats numbers, durations and times for display.
import type { Cell, CellType } from "./data";

const UNITS: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

/** Start of the recording; offsets and times of day refer to it. */
export interface Base {
  startNs: number; // CLOCK_MONOTONIC
  realtimeS: number | null; // CLOCK_REALTIME at startNs, seconds; null: unknown
  realtimeNs: number; // ns within that second
}

const base: Base = { startNs: 0, realtimeS: null, realtimeNs: 0 };

export function setBase(to: Base): void {
  Object.assign(base, to);
}

/** An offset from the recording's start: "+4.540123 s". */
export function offset(monotonicNs: number, digits = 6): string {
  const ns = monotonicNs - base.startNs;
  return `${ns < 0 ? "-" : "+"}${(Math.abs(ns) / 1e9).toFixed(digits)} s`;
}

/** Milliseconds for Date, and the fraction of the second as digits. */
function realtime(monotonicNs: number, digits: number): { date: Date; fraction: string } | null {
  if (base.realtimeS === null) return null;
  const ns = base.realtimeNs + monotonicNs - base.startNs;
  const seconds = Math.floor(ns / 1e9);
  const fraction = digits ? `.${String(Math.floor((ns - seconds * 1e9) / 10 ** (9 - digits))).padStart(digits, "0")}` : "";
  return { date: new Date(1000 * (base.realtimeS + seconds)), fraction };
}

const two = (value: number) => String(value).padStart(2, "0");

/** Time of day in the reader's time zone: "16:49:05.123456"; "" if unknown. */
export function timeOfDay(monotonicNs: number, digits = 6): string {
  const time = realtime(monotonicNs, digits);
  return time ? `${two(time.date.getHours())}:${two(time.date.getMinutes())}:${two(time.date.getSeconds())}${time.fraction}` : "";
}

/** "2026-11-25 16:49:05 +01:00"; "" if unknown. */
export function dateTime(monotonicNs: number): string {
  const time = realtime(monotonicNs, 0);
  if (!time) return "";
  const zone = -time.date.getTimezoneOffset();
  const date = `${time.date.getFullYear()}-${two(time.date.getMonth() + 1)}-${two(time.date.getDate())}`;
  return `${date} ${timeOfDay(monotonicNs, 0)} ${zone < 0 ? "-" : "+"}${two(Math.floor(Math.abs(zone) / 60))}:${two(Math.abs(zone) % 60)}`;
}

/** Offset and time of day: "+4.540123 s (16:49:05.123456)". */
export function moment(monotonicNs: number, digits = 6): string {
  const day = timeOfDay(monotonicNs, digits);
  return offset(monotonicNs, digits) + (day ? ` (${day})` : "");
}

/** Three significant digits and a unit: "1.61 s", "853 ns". */
export function duration(ns: number): string {
  if (ns === 0) return "0";
  for (const [size, unit] of UNITS) {
    if (Math.abs(ns) >= size) {
      const value = ns / size;
      return `${Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(3)} ${unit}`;
    }
  }
  return `${ns.toPrecision(2)} ns`;
}

export function count(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 2 });
}

/** A sum of sample weights with its unit: "12 samples", "3.20 ms". */
export function weight(value: number, unit: string): string {
  return unit === "ns" ? duration(value) : `${count(value)} ${unit}`;
}

/** Short, for axes: "12.3 k", "4.1 M". */
export function amount(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toPrecision(3)} G`;
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size >= 1e3) return `${(value / 1e3).toPrecision(3)} k`;
  return value === Math.round(value) ? String(value) : value.toPrecision(3);
}

/** Two digits after the point, as in the tables of the commands. */
export function percent(value: number): string {
  return `${value.toFixed(2)}%`;
}

/** Seconds of the host's clock, as text. */
const HOST_TIME = "at_s";

export function cell({ type, key }: { type: CellType; key: string }, value: Cell): string {
  if (value === null) return "–";
  if (typeof value === "string") return key === HOST_TIME && Number(value) ? moment(1e9 * Number(value)) : value;
  if (type === "duration") return duration(value);
  if (type === "time") return offset(value);
  if (type === "percent") return percent(value);
  return count(value);
}
