// SPDX-License-Identifier: GPL-2.0-or-later
// The timeline: tracks of pCPUs, vCPUs and guest threads on one time axis.
import { inkOn, stateColor, vmColor } from "./colors";
import type { Track, Timeline } from "./data";
import { el } from "./dom";
import * as format from "./format";
import { legend, swatches } from "./states";

const TRACK_HEIGHT = 22;
const HINT = "Click a slice to see its details; drag to move, + and - zoom.";
const BAR_HEIGHT = 16;
const AXIS_HEIGHT = 22;
const LEAST_SPAN = 1000; // ns; the narrowest zoom
const MOST_THREADS = 40; // tracks of guest threads, until "all guest threads" is on
const MOST_VMS = 24; // in the legend of pCPUs
const LABEL_GAP = 10; // pixels between labels of the axis
const LEAST_LABELLED = 40; // pixels; narrower slices have no label
const OTHERS = "#80808030"; // colour of slices that do not match the search

interface Place {
  track: Track;
  slice: number;
}

/** The first slice of the track that ends after `time`. */
export function sliceAfter(track: Track, time: number): number {
  let low = 0;
  let high = track.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (track.end[middle] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

function busyTime(track: Track): number {
  let ret = 0;
  for (let i = 0; i < track.count; i++) ret += track.end[i] - track.begin[i];
  return ret;
}

/** Digits after the point of seconds, for marks with a distance of `step` ns. */
function digitsOf(step: number): number {
  return Math.max(0, Math.ceil(9 - Math.log10(step) - 1e-9));
}

/** Distance between two marks of the axis: the smallest round number of ns at which their labels fit. */
function stepOf(span: number, width: number, widthOf: (digits: number) => number): number {
  for (let size = 1; ; size *= 10)
    for (const step of [size, 2 * size, 5 * size])
      if (step / span * width >= widthOf(digitsOf(step)) + LABEL_GAP) return step;
}

/**
 * Pixel columns. Each is a stack of colours; their heights are their shares of the column's time. Heights are
 * whole pixels; rounding errors are carried to the next column, so that sums are right.
 */
class Stack {
  private readonly shares: Float64Array;
  private readonly owed: Float64Array;
  private column = -1;

  constructor(private readonly context: CanvasRenderingContext2D, private readonly colors: string[],
    private readonly top: number, private readonly height: number) {
    this.shares = new Float64Array(colors.length);
    this.owed = new Float64Array(colors.length);
  }

  add(column: number, color: number, share: number): void {
    if (column !== this.column) this.flush();
    this.column = column;
    this.shares[color] += share;
  }

  /** Draws adjacent columns of a single colour. */
  fill(column: number, columns: number, color: number): void {
    this.flush();
    this.context.fillStyle = this.colors[color];
    this.context.fillRect(column, this.top, columns, this.height);
  }

  flush(): void {
    if (this.column < 0) return;
    let bottom = this.top + this.height;
    for (let color = 0; color < this.shares.length; color++) {
      if (!this.shares[color]) continue;
      const wanted = this.shares[color] * this.height + this.owed[color];
      const rows = Math.min(Math.max(Math.round(wanted), 0), bottom - this.top);
      this.owed[color] = Math.max(-1, Math.min(1, wanted - rows));
      this.shares[color] = 0;
      if (!rows) continue;
      bottom -= rows;
      this.context.fillStyle = this.colors[color];
      this.context.fillRect(this.column, bottom, 1, rows);
    }
    this.column = -1;
  }
}

/** The text, shortened to `room` pixels: "swap…"; "" if fewer than two characters fit. */
function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let length = text.length - 1;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > room) length--;
  return length > 1 ? `${text.slice(0, length)}…` : "";
}

export class TimelineView {
  private drawn: [string, number, number][] = []; // slice labels, with their widths and the slices' widths in pixels
  readonly element: HTMLElement;
  private readonly canvas = el("canvas", {
    tabindex: 0, role: "application",
    "aria-label": "Timeline. Arrow keys left and right move, plus and minus zoom, Home shows all.",
  });
  private readonly names = el("ol", { class: "tracks" });
  private readonly tip = el("div", { class: "tip", hidden: true });
  private readonly status = el("p", { class: "status", role: "status" }, HINT);
  private readonly range = el("span", { class: "range" });
  private readonly thief = el("button", { type: "button", hidden: true, click: () => this.showThief() }, "Show the thief");
  private tracks: Track[] = [];
  private from = 0;
  private to: number;
  private word = "";
  private allThreads = false;
  private chosen: Place | null = null;
  private pending = false;
  /** Distinct colours; an index into them is a colour number. 0: slices outside the search. */
  private readonly colors: string[] = [OTHERS];
  private readonly colorOfState: number[];
  private readonly colorOfLabel: number[];

  constructor(private readonly timeline: Timeline) {
    this.to = timeline.lengthNs || 1;
    this.colorOfState = timeline.states.map((state) => this.colorNumber(stateColor(state)));
    this.colorOfLabel = timeline.labels.map(({ vm }) => (vm === null ? 0 : this.colorNumber(vmColor(vm))));
    const search = el("input", {
      type: "search", placeholder: "Search threads", "aria-label": "Search threads in the timeline",
      input: (event) => this.search((event.target as HTMLInputElement).value),
    });
    const button = (text: string, act: () => void) => el("button", { type: "button", click: act }, text);
    const threads = el("label", {}, el("input", { type: "checkbox", change: (event) => this.showThreads((event.target as HTMLInputElement).checked) }), " all guest threads");
    const short = timeline.shortestNs ? [el("p", { class: "note" }, `Adjacent slices shorter than ${format.duration(timeline.shortestNs)} are merged and drawn as shares of their states.`)] : [];
    const vms = [...new Set(timeline.labels.flatMap(({ vm }) => (vm === null ? [] : [vm])))];
    const onPcpus = vms.length && vms.length <= MOST_VMS ? [swatches(vms.map((vm) => `VM ${vm}`), (name) => vmColor(name.slice(3)), "legend-vms")] : [];
    const left = timeline.leftOut ? [el("p", { class: "note" }, "Too many guest threads: some are not in this file.")] : [];
    this.element = el("div", { class: "timeline" },
      el("div", { class: "bar" }, button("Zoom in", () => this.zoom(0.5)), button("Zoom out", () => this.zoom(2)),
        button("All", () => this.show(0, this.timeline.lengthNs)), search, threads, this.range),
      legend(timeline.states), ...onPcpus, ...short, ...left,
      el("div", { class: "graph" }, this.names, el("div", { class: "canvas" }, this.canvas, this.tip)),
      el("div", { class: "bar" }, this.status, this.thief));
    this.listen();
    this.chooseTracks();
  }

  /** Draws the timeline; call after it was added to the document, when sizes are known. */
  start(): void {
    new ResizeObserver(() => this.redraw()).observe(this.canvas.parentElement!);
    window.matchMedia("print").addEventListener("change", () => this.draw());
    this.redraw();
  }

  private chooseTracks(): void {
    const threads = this.timeline.tracks.filter((track) => track.kind === "thread");
    const busy = new Map(threads.map((track) => [track, busyTime(track)]));
    const busiest = new Set([...threads].sort((a, b) => busy.get(b)! - busy.get(a)!).slice(0, this.allThreads ? undefined : MOST_THREADS));
    this.tracks = this.timeline.tracks.filter((track) => track.kind !== "thread" || busiest.has(track));
    this.names.replaceChildren(...this.tracks.map((track) => el("li", { class: track.kind, title: track.title }, track.title)));
    this.redraw();
  }

  private showThreads(all: boolean): void {
    this.allThreads = all;
    this.chooseTracks();
  }

  private listen(): void {
    let dragged: { x: number; from: number; moved: boolean } | null = null;
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move(event.deltaX / this.width());
      else if (event.ctrlKey || event.shiftKey || event.altKey) this.zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX / this.width());
      else return;
      event.preventDefault();
    }, { passive: false });
    this.canvas.addEventListener("dblclick", (event) => this.zoom(0.25, event.offsetX / this.width()));
    this.canvas.addEventListener("pointerdown", (event) => {
      dragged = { x: event.offsetX, from: this.from, moved: false };
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (dragged) {
        const shift = (dragged.x - event.offsetX) / this.width() * (this.to - this.from);
        dragged.moved ||= Math.abs(dragged.x - event.offsetX) > 3;
        this.show(dragged.from + shift, dragged.from + shift + this.to - this.from);
      } else {
        this.hover(event);
      }
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (dragged && !dragged.moved) this.choose(this.placeAt(event.offsetX, event.offsetY));
      dragged = null;
    });
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  private key(event: KeyboardEvent): void {
    const act = {
      ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5),
      "-": () => this.zoom(2), Home: () => this.show(0, this.timeline.lengthNs),
    }[event.key];
    if (!act) return;
    act();
    event.preventDefault();
  }

  private width(): number {
    return this.canvas.clientWidth || 1;
  }

  /** Shows FROM to TO (ns since the timeline's start), limited to the timeline. */
  show(from: number, to: number): void {
    const span = Math.min(Math.max(to - from, LEAST_SPAN), this.timeline.lengthNs);
    this.from = Math.min(Math.max(from, 0), this.timeline.lengthNs - span);
    this.to = this.from + span;
    this.redraw();
  }

  /** The longest wait of the VM's vCPUs, or null. */
  worstWait(vm: string): { from: number; to: number } | null {
    let worst: { from: number; to: number } | null = null;
    for (const track of this.timeline.tracks.filter((other) => other.kind === "vcpu" && other.vm === vm))
      for (let i = 0; i < track.count; i++) {
        const state = this.timeline.states[track.state[i]];
        const length = track.end[i] - track.begin[i];
        if ((state === "preempted" || state === "waking") && (!worst || length > worst.to - worst.from))
          worst = { from: track.begin[i], to: track.end[i] };
      }
    return worst;
  }

  /** Scrolls to the timeline and shows FROM to TO (CLOCK_MONOTONIC, ns) in the middle third. */
  open(from: number, to: number): void {
    const length = Math.max(to - from, LEAST_SPAN);
    this.show(from - this.timeline.beginNs - length, to - this.timeline.beginNs + length);
    this.element.scrollIntoView({ block: "start" });
    this.canvas.focus({ preventScroll: true });
  }

  get beginNs(): number {
    return this.timeline.beginNs;
  }

  private zoom(factor: number, at = 0.5): void {
    const span = this.to - this.from;
    const middle = this.from + at * span;
    this.show(middle - at * span * factor, middle + (1 - at) * span * factor);
  }

  private move(part: number): void {
    const shift = part * (this.to - this.from);
    this.show(this.from + shift, this.to + shift);
  }

  private search(text: string): void {
    this.word = text.toLowerCase();
    const tracks = this.tracks.filter((track) => this.trackMatches(track)).length;
    this.status.textContent = this.word ? `'${text}' matches ${tracks} of ${this.tracks.length} tracks.` : HINT;
    this.redraw();
  }

  private trackMatches(track: Track): boolean {
    if (track.title.toLowerCase().includes(this.word)) return true;
    return track.label.some((label) => label >= 0 && this.timeline.labels[label].text.toLowerCase().includes(this.word));
  }

  private matches(track: Track, slice: number): boolean {
    const label = track.label[slice];
    return !this.word || track.title.toLowerCase().includes(this.word) ||
      (label >= 0 && this.timeline.labels[label].text.toLowerCase().includes(this.word));
  }

  private placeAt(x: number, y: number): Place | null {
    const track = this.tracks[Math.floor((y - AXIS_HEIGHT) / TRACK_HEIGHT)];
    if (!track) return null;
    const time = this.from + x / this.width() * (this.to - this.from);
    const slice = sliceAfter(track, time);
    return slice < track.count && track.begin[slice] <= time ? { track, slice } : null;
  }

  private describe({ track, slice }: Place): string {
    const label = track.label[slice] >= 0 ? this.timeline.labels[track.label[slice]] : null;
    const state = this.timeline.states[track.state[slice]];
    const who = !label ? "" : state === "preempted" || state === "waking" ? ` by ${label.text}` : ` ${label.vm ? `${label.vm} ` : ""}${label.text}`;
    const where = track.kind !== "pcpu" && track.pcpu[slice] >= 0 ? ` on pCPU ${track.pcpu[slice]}` : "";
    const length = track.end[slice] - track.begin[slice];
    const merged = track.merged[slice] > 1
      ? ` (${format.count(track.merged[slice])} slices, ${format.percent(100 * track.main[slice] / length)} of it in this state)` : "";
    return `${track.title}: ${state}${who}${where}, ${format.duration(length)} from ${format.moment(this.timeline.beginNs + track.begin[slice])}${merged}`;
  }

  private hover(event: PointerEvent): void {
    const place = this.placeAt(event.offsetX, event.offsetY);
    this.tip.hidden = !place;
    if (!place) return;
    this.tip.textContent = this.describe(place);
    this.tip.style.left = `${Math.min(event.offsetX + 12, Math.max(this.width() - 320, 0))}px`;
    this.tip.style.top = `${event.offsetY + 14}px`;
  }

  private choose(place: Place | null): void {
    this.chosen = place;
    this.status.textContent = place ? `${this.describe(place)}.` : "";
    const state = place && this.timeline.states[place.track.state[place.slice]];
    this.thief.hidden = !(place && (state === "preempted" || state === "waking") && place.track.pcpu[place.slice] >= 0);
    this.redraw();
  }

  /** Goes from the slice of a waiting vCPU to the thief's slice on the same pCPU. */
  private showThief(): void {
    const { track, slice } = this.chosen!;
    const middle = (track.begin[slice] + track.end[slice]) / 2;
    const pcpu = this.tracks.find((other) => other.kind === "pcpu" && other.number === track.pcpu[slice]);
    if (!pcpu) return;
    const at = sliceAfter(pcpu, middle);
    const length = track.end[slice] - track.begin[slice];
    this.show(track.begin[slice] - length, track.end[slice] + length);
    this.choose(at < pcpu.count ? { track: pcpu, slice: at } : null);
    this.names.children[this.tracks.indexOf(pcpu)].scrollIntoView({ block: "nearest" });
  }

  private redraw(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  private draw(): void {
    const width = this.width();
    const height = AXIS_HEIGHT + this.tracks.length * TRACK_HEIGHT;
    const scale = window.devicePixelRatio || 1;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    const context = this.canvas.getContext("2d")!;
    context.scale(scale, scale);
    this.drawAxis(context, width, height);
    this.drawn = [];
    this.tracks.forEach((track, i) => this.drawTrack(context, track, AXIS_HEIGHT + i * TRACK_HEIGHT, width));
    const [first, last] = [this.timeline.beginNs + this.from, this.timeline.beginNs + this.to];
    this.range.textContent = `${format.moment(first)} to ${format.moment(last)}, ${format.duration(this.to - this.from)}`;
    this.canvas.dataset.from = String(this.from);
    this.canvas.dataset.to = String(this.to);
    this.canvas.dataset.slices = JSON.stringify(this.drawn);
  }

  private drawAxis(context: CanvasRenderingContext2D, width: number, height: number): void {
    const style = getComputedStyle(this.element);
    const begin = this.timeline.beginNs - this.timeline.startNs; // so that marks are round offsets from the start of the recording
    const labels: string[] = [];
    context.font = "11px system-ui, sans-serif";
    const last = this.timeline.beginNs + this.to;
    const step = stepOf(this.to - this.from, width, (most) => context.measureText(format.offset(last, most)).width);
    const digits = digitsOf(step);
    context.fillStyle = style.getPropertyValue("--soft");
    context.strokeStyle = style.getPropertyValue("--line");
    context.beginPath();
    for (let mark = Math.ceil((this.from + begin) / step); mark * step - begin <= this.to; mark++) {
      const time = mark * step - begin;
      const x = (time - this.from) / (this.to - this.from) * width;
      const label = format.offset(this.timeline.beginNs + time, digits);
      context.moveTo(x, 14);
      context.lineTo(x, height);
      if (x + 3 + context.measureText(label).width > width) continue;
      context.fillText(label, x + 3, 11);
      labels.push(label);
    }
    context.stroke();
    this.canvas.dataset.labels = JSON.stringify(labels);
  }

  private colorNumber(color: string): number {
    const known = this.colors.indexOf(color);
    return known >= 0 ? known : this.colors.push(color) - 1;
  }

  /** Colour number of a slice; 0: it does not match the search. */
  private colorOf(track: Track, slice: number): number {
    if (this.word && !this.matches(track, slice)) return 0;
    const ofVm = track.kind === "pcpu" && track.label[slice] >= 0 ? this.colorOfLabel[track.label[slice]] : 0;
    return ofVm || this.colorOfState[track.state[slice]];
  }

  /** Draws a track: each device-pixel column is a stack of its colours, bottom up in the order of `colors`. */
  private drawTrack(context: CanvasRenderingContext2D, track: Track, top: number, width: number): void {
    const pixels = window.devicePixelRatio || 1;
    const columns = this.canvas.width;
    const scale = columns / (this.to - this.from);
    const y = top + (TRACK_HEIGHT - BAR_HEIGHT) / 2;
    const stack = new Stack(context, this.colors, Math.round(y * pixels), Math.round(BAR_HEIGHT * pixels));
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    for (let i = sliceAfter(track, this.from); i < track.count && track.begin[i] < this.to; i++) {
      const left = Math.max((track.begin[i] - this.from) * scale, 0);
      const right = Math.min((track.end[i] - this.from) * scale, columns);
      const parts = this.partsOf(track, i);
      for (let column = Math.floor(left); column < right; column++) {
        const inside = parts.length === 1 && column >= left ? Math.floor(right) - column : 0;
        if (inside > 0) {
          stack.fill(column, inside, parts[0][0]);
          column += inside - 1;
          continue;
        }
        const share = Math.min(column + 1, right) - Math.max(column, left);
        for (const [color, part] of parts) stack.add(column, color, share * part);
      }
    }
    stack.flush();
    context.restore();
    this.drawLabels(context, track, y, width);
    this.outline(context, track, y, width / (this.to - this.from));
  }

  /** Colour numbers of a slice, each with its share of the slice's time. */
  private partsOf(track: Track, slice: number): [number, number][] {
    const color = this.colorOf(track, slice);
    const others = track.others.get(slice);
    if (!others || !color) return [[color, 1]];
    const length = track.end[slice] - track.begin[slice];
    return [[color, track.main[slice] / length],
      ...others.map(([state, ns]): [number, number] => [this.colorOfState[state], ns / length])];
  }

  private drawLabels(context: CanvasRenderingContext2D, track: Track, y: number, width: number): void {
    const scale = width / (this.to - this.from);
    for (let i = sliceAfter(track, this.from); i < track.count && track.begin[i] < this.to; i++) {
      const left = Math.max((track.begin[i] - this.from) * scale, 0);
      const right = Math.min((track.end[i] - this.from) * scale, width);
      if (right - left >= LEAST_LABELLED) this.drawLabel(context, track, i, left, right, y);
    }
  }

  private drawLabel(context: CanvasRenderingContext2D, track: Track, slice: number, left: number, right: number, y: number): void {
    const label = track.label[slice] >= 0 ? this.timeline.labels[track.label[slice]] : null;
    const color = this.colorOf(track, slice);
    if (!label || !color) return;
    const room = right - left - 6;
    // The VM name precedes the name of a vCPU thread, which alone is ambiguous.
    const text = fitted(context, track.kind === "pcpu" && label.vm ? `${label.vm} ${label.text}` : label.text, room);
    if (!text) return;
    context.fillStyle = inkOn(this.colors[color]);
    context.fillText(text, left + 3, y + BAR_HEIGHT - 4);
    this.drawn.push([text, context.measureText(text).width, room]);
  }

  private outline(context: CanvasRenderingContext2D, track: Track, y: number, scale: number): void {
    if (this.chosen?.track !== track) return;
    const { slice } = this.chosen;
    context.strokeStyle = getComputedStyle(this.element).getPropertyValue("--ink");
    context.lineWidth = 2;
    context.strokeRect((track.begin[slice] - this.from) * scale, y - 1, Math.max((track.end[slice] - track.begin[slice]) * scale, 2), BAR_HEIGHT + 2);
    context.lineWidth = 1;
  }
}
