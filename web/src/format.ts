// SPDX-License-Identifier: GPL-2.0-or-later
// Numbers as people read them, with their units.
import type { Cell, CellType } from "./data";

const UNITS: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

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

/** A sum of weights of samples in their unit: "12 samples", "3.20 ms". */
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

export function percent(value: number): string {
  return `${value.toFixed(value !== 0 && Math.abs(value) < 0.1 ? 3 : 2)} %`;
}

export function cell(type: CellType, value: Cell): string {
  if (value === null) return "–";
  if (typeof value === "string") return value;
  if (type === "duration") return duration(value);
  if (type === "time") return `${(value / 1e9).toFixed(6)} s`;
  if (type === "percent") return percent(value);
  return count(value);
}
