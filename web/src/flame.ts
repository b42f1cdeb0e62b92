// SPDX-License-Identifier: GPL-2.0-or-later
// The flame graph: host or VM, process, then stacks with callers above callees.
import { hash, inkOn, paleColor, vmColor } from "./colors";
import type { Profile, Row } from "./data";
import { choice, el } from "./dom";
import * as format from "./format";

/** A frame of the graph. */
interface Frame {
  name: string;
  row: Row | null; // null: host, VM or process
  kind: "all" | "machine" | "process" | "code";
  value: number; // weight of its samples, with callees
  parent: Frame | null;
  children: Map<string, Frame>;
  before: number; // share in the baseline recording; 0 without one
}

const ROW_HEIGHT = 19;
const STEAL = paleColor(4, 0.62, 0.66);
const LEAST_WIDTH = 0.0007; // share of the graph; narrower frames are not drawn
const MOST_DRAWN = 4000;
const NONE = new Map<string, Frame>(); // shared by all frames without callees; never modified

function makeFrame(name: string, kind: Frame["kind"], row: Row | null, parent: Frame | null): Frame {
  return { name, kind, row, value: 0, parent, children: NONE, before: 0 };
}

function child(parent: Frame, name: string, kind: Frame["kind"], row: Row | null): Frame {
  const key = row ? row.key ??= `${name}\0${row.module}\0${row.kind}` : name;
  let ret = parent.children.get(key);
  if (ret) return ret;
  if (parent.children === NONE) parent.children = new Map();
  parent.children.set(key, ret = makeFrame(name, kind, row, parent));
  return ret;
}

function machineOf(row: Row): string {
  return row.vm === null || row.kind === "vm" ? "host" : row.vm;
}

function functionName(row: Row): string {
  return row.function ?? "[unknown]";
}

/** Sorts frames by name, not by size, so that two recordings line up. */
function byName(frame: Frame): Frame[] {
  return [...frame.children.values()].sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
}

/** The legend of the colours. */
const LEGEND: [string, string][] = [["process", paleColor(45, 0.3, 0.72)], ["kernel", paleColor(30, 0.75, 0.68)],
  ["user", paleColor(125, 0.42, 0.68)], ["VM", paleColor(265, 0.32, 0.68)], ["steal", STEAL], ["idle", paleColor(210, 0.12, 0.82)]];

export interface Filter {
  machine: string | null;
  process: string | null;
}

/** The tree of the stacks that pass the filter. */
export function buildFrames(profile: Profile, filter: Filter): Frame {
  const all = makeFrame("all", "all", null, null);
  const frameOf: (Frame | null)[] = [];
  profile.nodes.forEach((node, i) => {
    const row = profile.rows[node.row];
    let above: Frame | null;
    if (node.parent >= 0) {
      above = frameOf[node.parent];
    } else {
      const machine = machineOf(row);
      const process = row.kind === "kernel" || row.kind === "user" ? row.process ?? "[unknown]" : null;
      const passes = (filter.machine === null || filter.machine === machine) &&
        (filter.process === null || filter.process === process);
      above = passes ? child(all, machine, "machine", null) : null;
      if (above && process !== null) above = child(above, process, "process", null);
    }
    const frame = above && child(above, functionName(row), "code", row);
    frameOf[i] = frame;
    for (let up = frame; up; up = up.parent) up.value += node.samples;
  });
  return all;
}

/** Sets each frame's share of all samples in the baseline recording. */
function addBefore(now: Frame, before: Frame, total: number): void {
  now.before = before.value / (total || 1);
  for (const [key, frame] of now.children) {
    const other = before.children.get(key);
    if (other) addBefore(frame, other, total);
  }
}

export class FlameGraph {
  readonly element: HTMLElement;
  private readonly graph = el("div", { class: "flame", role: "tree", "aria-label": "Flame graph", keydown: (event) => this.key(event as KeyboardEvent) });
  private readonly status = el("p", { class: "status", role: "status" });
  private readonly reset = el("button", { type: "button", click: () => this.zoom(this.root) }, "Reset zoom");
  private readonly processes: HTMLSelectElement = el("select", { change: () => this.choose({ process: this.processes.value }) });
  private readonly filter: Filter = { machine: null, process: null };
  private root!: Frame;
  private shown!: Frame;
  private found: RegExp | null = null;
  private readonly drawn = new Map<HTMLElement, Frame>();

  constructor(private readonly profile: Profile, private readonly before: Profile | null) {
    const machines = [...new Set(profile.nodes.filter((node) => node.parent < 0).map((node) => machineOf(profile.rows[node.row])))];
    const search = el("input", {
      type: "search", placeholder: "Search (regex)", "aria-label": "Search functions",
      input: (event) => this.search((event.target as HTMLInputElement).value),
    });
    this.element = el("div", {},
      el("div", { class: "bar" },
        choice("Machine", ["all", ...machines.sort()], (machine) => this.choose({ machine })),
        el("label", {}, "Process ", this.processes), search, this.reset),
      before ? el("p", { class: "note" }, `Compared with ${before.path}: red frames have a larger share of the samples here, blue frames a smaller one.`) : "",
      el("ul", { class: "legend" }, ...LEGEND.map(([name, color]) => el("li", {}, el("span", { class: "swatch", style: `background:${color}` }), name))),
      this.status, this.graph);
    this.rebuild();
    this.listProcesses();
  }

  private choose(wanted: { machine?: string; process?: string }): void {
    if (wanted.machine !== undefined) {
      this.filter.machine = wanted.machine === "all" ? null : wanted.machine;
      this.filter.process = null;
    }
    if (wanted.process !== undefined) this.filter.process = wanted.process === "all" ? null : wanted.process;
    this.rebuild();
    if (wanted.machine !== undefined) this.listProcesses();
  }

  private listProcesses(): void {
    const sums = new Map<string, number>();
    for (const machine of this.root.children.values())
      for (const frame of machine.children.values())
        if (frame.kind === "process") sums.set(frame.name, (sums.get(frame.name) ?? 0) + frame.value);
    const names = [...sums.keys()].sort((a, b) => sums.get(b)! - sums.get(a)!);
    this.processes.replaceChildren(...["all", ...names].map((name) => el("option", {}, name)));
  }

  private rebuild(): void {
    this.root = buildFrames(this.profile, this.filter);
    if (this.before) addBefore(this.root, buildFrames(this.before, this.filter), this.before.samples);
    this.zoom(this.root);
  }

  private zoom(frame: Frame): void {
    this.shown = frame;
    this.reset.disabled = frame === this.root;
    this.draw();
  }

  /** Zooms to a frame and keeps the keyboard focus in the graph. */
  private zoomTo(frame: Frame): void {
    this.zoom(frame);
    [...this.drawn].find(([, other]) => other === frame)?.[0].focus({ preventScroll: true });
  }

  private search(text: string): void {
    try {
      this.found = text ? new RegExp(text, "i") : null;
    } catch {
      this.status.textContent = `Invalid regular expression: ${text}`;
      return;
    }
    this.draw();
  }

  /** Weight of the matching frames; frames inside a matching frame are not added again. */
  private matched(frame: Frame): number {
    if (this.found!.test(frame.name)) return frame.value;
    let ret = 0;
    for (const below of frame.children.values()) ret += this.matched(below);
    return ret;
  }

  private color(frame: Frame): string {
    const share = frame.value / (this.profile.samples || 1);
    if (this.before) {
      const change = Math.max(-1, Math.min(1, (share - frame.before) / Math.max(share, frame.before, 1e-9)));
      return change >= 0 ? paleColor(8, 0.7, 0.9 - 0.35 * change) : paleColor(215, 0.6, 0.9 + 0.35 * change);
    }
    if (frame.kind === "all") return "#cfd6dc";
    if (frame.kind === "machine") return frame.name === "host" ? paleColor(200, 0.12, 0.6) : vmColor(frame.name);
    if (frame.kind === "process") return paleColor(45, 0.3, 0.72);
    const light = (62 + hash(frame.name) % 12) / 100;
    const kind = frame.row!.kind;
    if (kind === "kernel") return paleColor(24 + hash(frame.row!.module ?? "") % 14, 0.75, light);
    if (kind === "idle") return paleColor(210, 0.12, 0.82);
    if (kind === "steal") return STEAL;
    if (kind === "vm") return paleColor(265, 0.32, light);
    return paleColor(95 + hash(frame.row!.module ?? "") % 60, 0.42, light);
  }

  private describe(frame: Frame): string {
    const share = frame.value / (this.profile.samples || 1);
    const row = frame.row;
    const place = row ? ` (${[row.module, row.kind].filter(Boolean).join(", ")})` : "";
    const change = this.before ? `, ${format.percent(100 * frame.before)} before` : "";
    return `${frame.name}${place}: ${format.weight(frame.value, this.profile.unit)}, ${format.percent(100 * share)}${change}`;
  }

  private draw(): void {
    const path: Frame[] = [];
    for (let up = this.shown.parent; up; up = up.parent) path.unshift(up);
    this.drawn.clear();
    path.forEach((frame, depth) => this.box(frame, depth, 0, 1, true));
    const depth = this.boxes(path.length);
    this.graph.replaceChildren(...this.drawn.keys());
    this.graph.style.height = `${depth * ROW_HEIGHT}px`;
    const least = this.profile.leastSamples > 1 ? ` Stacks with fewer than ${this.profile.leastSamples} samples are merged into their callers.` : "";
    this.status.textContent = this.found
      ? `${format.percent(100 * this.matched(this.root) / (this.root.value || 1))} of the samples match.`
      : `${this.describe(this.shown)}.${least}`;
  }

  /** Draws level by level, widest frames first, up to a limit; returns the depth. */
  private boxes(depth: number): number {
    let level: [Frame, number][] = [[this.shown, 0]];
    const whole = this.shown.value || 1;
    while (level.length && this.drawn.size < MOST_DRAWN) {
      const below: [Frame, number][] = [];
      for (const [frame, left] of level) {
        this.box(frame, depth, left, frame.value / whole, false);
        let at = left;
        for (const next of byName(frame)) {
          if (next.value / whole >= LEAST_WIDTH) below.push([next, at]);
          at += next.value / whole;
        }
      }
      level = below;
      depth++;
    }
    return depth;
  }

  private box(frame: Frame, depth: number, left: number, width: number, above: boolean): void {
    const matches = this.found?.test(frame.name) ? " found" : "";
    const color = this.color(frame);
    const box = el("div", {
      class: `frame${above ? " above" : ""}${matches}`, role: "treeitem", tabindex: this.drawn.size ? -1 : 0,
      "aria-level": depth + 1, "data-tip": this.describe(frame), "aria-label": this.describe(frame),
      style: `left:${100 * left}%;width:${100 * width}%;top:${depth * ROW_HEIGHT}px;background:${color};color:${inkOn(color)}`,
      click: () => this.zoomTo(frame),
      pointerenter: () => { if (!this.found) this.status.textContent = `${this.describe(frame)}.`; },
      focus: () => { if (!this.found) this.status.textContent = `${this.describe(frame)}.`; },
    }, width > 0.012 ? frame.name : "");
    this.drawn.set(box, frame);
  }

  private key(event: KeyboardEvent): void {
    const frame = this.drawn.get(event.target as HTMLElement);
    if (!frame) return;
    const boxOf = (wanted: Frame | null | undefined) => [...this.drawn].find(([, other]) => other === wanted)?.[0];
    const sorted = (of: Frame | null) => (of ? byName(of) : []);
    const siblings = sorted(frame.parent);
    const target = {
      ArrowUp: () => boxOf(frame.parent),
      ArrowDown: () => boxOf(sorted(frame)[0]),
      ArrowRight: () => boxOf(siblings[siblings.indexOf(frame) + 1]),
      ArrowLeft: () => boxOf(siblings[siblings.indexOf(frame) - 1]),
    }[event.key];
    if (target) {
      target()?.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      this.zoomTo(frame);
    } else if (event.key === "Escape") {
      this.zoomTo(this.root);
    } else {
      return;
    }
    event.preventDefault();
  }
}
