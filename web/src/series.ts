// SPDX-License-Identifier: GPL-2.0-or-later
// Counters over time, one line chart each.
import type { Intervals } from "./data";
import { choice, el, svg } from "./dom";
import * as format from "./format";

const WIDTH = 900;
const HEIGHT = 90;

interface Line {
  name: string;
  unit: string;
  points: (number | null)[];
}

/** An event's value in each bin: N per second, or percent of the interval for events in ns. */
function lineOf(intervals: Intervals, subject: number, event: number): Line {
  const { values } = intervals.subjects[subject];
  const width = intervals.events.length + 1;
  const { name, unit } = intervals.events[event];
  const points = Array.from({ length: intervals.bins }, (_, bin) => {
    const value = values[bin * width + event];
    const ns = values[bin * width + width - 1];
    if (value === null || !ns) return null;
    return unit === "ns" ? 100 * value / ns : value / ns * 1e9;
  });
  return { name, unit: unit === "ns" ? "%" : "/s", points };
}

/** Cycles per instruction, if both were counted; otherwise null. */
function cpi(intervals: Intervals, subject: number): Line | null {
  const place = (name: string) => intervals.events.findIndex((event) => event.name === name);
  const [cycles, instructions] = [place("cycles"), place("instructions")];
  if (cycles < 0 || instructions < 0) return null;
  const { values } = intervals.subjects[subject];
  const width = intervals.events.length + 1;
  const points = Array.from({ length: intervals.bins }, (_, bin) => {
    const [above, below] = [values[bin * width + cycles], values[bin * width + instructions]];
    return above === null || !below ? null : above / below;
  });
  return { name: "CPI", unit: "", points };
}

function pathOf(points: (number | null)[], most: number): string {
  let ret = "";
  let gap = true;
  points.forEach((value, i) => {
    if (value === null) {
      gap = true;
      return;
    }
    const x = (i + 0.5) / points.length * WIDTH;
    const y = HEIGHT - value / (most || 1) * (HEIGHT - 8) - 2;
    ret += `${gap ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
    if (gap) ret += `h0.1`;
    gap = false;
  });
  return ret;
}

function chart(line: Line, intervals: Intervals): HTMLElement {
  const known = line.points.filter((value): value is number => value !== null);
  const most = known.reduce((a, b) => Math.max(a, b), 0);
  const mean = known.reduce((a, b) => a + b, 0) / (known.length || 1);
  const read = el("span", { class: "value" });
  const graph = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${line.name}: mean ${format.amount(mean)} ${line.unit}, maximum ${format.amount(most)}` },
    svg("path", { d: pathOf(line.points, most), class: "line" }));
  graph.addEventListener("pointermove", (event) => {
    const at = Math.floor((event as PointerEvent).offsetX / graph.clientWidth * line.points.length);
    const value = line.points[at];
    read.textContent = value === null || value === undefined ? "" : ` ${format.amount(value)} ${line.unit} at +${format.duration(at * intervals.binNs)}`;
  });
  return el("figure", {}, el("figcaption", {}, `${line.name} `, el("small", {}, `mean ${format.amount(mean)} ${line.unit}, maximum ${format.amount(most)}`), read), graph);
}

export function seriesView(intervals: Intervals): HTMLElement {
  const charts = el("div", { class: "charts" });
  const draw = (name: string) => {
    const subject = intervals.subjects.findIndex((other) => other.name === name);
    const lines = [cpi(intervals, subject), ...intervals.events.map((_, event) => lineOf(intervals, subject, event))];
    charts.replaceChildren(...lines.filter((line): line is Line => line !== null && line.points.some((value) => value !== null))
      .map((line) => chart(line, intervals)));
  };
  const names = intervals.subjects.map((subject) => subject.name);
  if (names.length) draw(names[0]);
  const left = intervals.leftOut ? ` ${intervals.leftOut} more have too few intervals and are not shown.` : "";
  return el("div", {}, el("p", { class: "note" }, `${intervals.plan}; one point per ${format.duration(intervals.binNs)}.${left}`),
    el("div", { class: "bar" }, choice("Counted for", names, draw)), charts);
}
