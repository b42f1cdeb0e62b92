// SPDX-License-Identifier: GPL-2.0-or-later
// States of each vCPU as bars; steal as a matrix of vCPUs and thieves.
import { stateColor } from "./colors";
import type { Cell, Table } from "./data";
import { el } from "./dom";
import * as format from "./format";

function reader(table: Table): (row: Cell[], key: string) => Cell {
  const place = new Map(table.columns.map((column, i) => [column.key, i]));
  return (row, key) => row[place.get(key) ?? -1] ?? null;
}

function groupBy(table: Table, key: (row: Cell[]) => string): Map<string, Cell[][]> {
  const ret = new Map<string, Cell[][]>();
  for (const row of table.rows) ret.set(key(row), [...(ret.get(key(row)) ?? []), row]);
  return ret;
}

/** A list of names with their colours. */
export function swatches(names: string[], colorOf: (name: string) => string, kind: string): HTMLElement {
  return el("ul", { class: kind }, ...names.map((name) =>
    el("li", {}, el("span", { class: "swatch", style: `background:${colorOf(name)}` }), name)));
}

export function legend(states: string[]): HTMLElement {
  return swatches(states, stateColor, "legend");
}

/** One bar per vCPU: its wall time by state. */
export function stateBars(table: Table): HTMLElement {
  const get = reader(table);
  const vcpus = groupBy(table, (row) => `${get(row, "vm")} vCPU ${get(row, "vcpu") ?? "?"}`);
  const states = [...new Set(table.rows.map((row) => String(get(row, "state"))))];
  const bars = [...vcpus].map(([name, rows]) => {
    const total = rows.reduce((sum, row) => sum + Number(get(row, "ns")), 0);
    const parts = rows.map((row) => {
      const ns = Number(get(row, "ns"));
      const text = `${get(row, "state")}: ${format.duration(ns)}, ${format.percent(100 * ns / (total || 1))}`;
      return el("span", {
        class: "part", "data-tip": `${name}: ${text}`, "data-state": String(get(row, "state")),
        style: `width:${100 * ns / (total || 1)}%;background:${stateColor(String(get(row, "state")))}`,
      }, el("span", { class: "unseen" }, `${text}; `));
    });
    return el("div", { class: "vcpu-bar" }, el("span", { class: "name" }, name), el("div", { class: "bar-parts" }, ...parts));
  });
  return el("div", { class: "bars" }, legend(states), ...bars);
}

const MOST_THIEVES = 12;

/** One row per vCPU, one column per thief, sorted by steal; cells are percent of the vCPU's wall time. */
export function stealMatrix(table: Table): HTMLElement {
  const get = reader(table);
  const taken = new Map<string, number>();
  for (const row of table.rows) {
    const thief = String(get(row, "thief"));
    taken.set(thief, (taken.get(thief) ?? 0) + Number(get(row, "ns")));
  }
  const thieves = [...taken.keys()].sort((a, b) => taken.get(b)! - taken.get(a)!).slice(0, MOST_THIEVES);
  const victims = groupBy(table, (row) => `${get(row, "vm")} vCPU ${get(row, "vcpu") ?? "?"}`);
  const head = el("tr", {}, el("th", { scope: "col" }, "vCPU"), ...thieves.map((thief) => el("th", { scope: "col" }, thief)));
  const body = [...victims].map(([victim, rows]) => el("tr", {}, el("th", { scope: "row" }, victim),
    ...thieves.map((thief) => {
      const mine = rows.filter((row) => get(row, "thief") === thief);
      const percent = mine.reduce((sum, row) => sum + Number(get(row, "percent")), 0);
      const ns = mine.reduce((sum, row) => sum + Number(get(row, "ns")), 0);
      const strength = Math.min(1, percent / 50);
      return el("td", { style: ns ? `--strength:${strength.toFixed(3)}` : "", ...(ns ? { "data-tip":  `${victim}: ${format.duration(ns)} by ${thief}` } : {}) },
        ns ? `${format.percent(percent)}` : "");
    })));
  const note = taken.size > MOST_THIEVES ? `${taken.size - MOST_THIEVES} more thieves: see the table below.` : "";
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Steal of each vCPU by thief" },
    el("table", { class: "matrix" }, el("thead", {}, head), el("tbody", {}, ...body)),
    ...(note ? [el("p", { class: "note" }, note)] : []));
}
