// SPDX-License-Identifier: GPL-2.0-or-later
// The page's data, as written by src/render/page*.c: types, and functions that unpack it.

export type CellType = "text" | "count" | "duration" | "time" | "percent";
export type Cell = string | number | null;

export interface Column {
  key: string;
  header: string;
  type: CellType;
}

export interface Table {
  title: string;
  leftOut: number;
  columns: Column[];
  rows: Cell[][];
}

interface PackedProfile {
  path: string;
  samples: number;
  unit: string;
  samplesTaken: number;
  durationS: number;
  vms: string[];
  texts: string[];
  rows: number;
  rowData: string;
  nodes: number;
  leastSamples: number;
  nodeData: string;
}

interface PackedTrack {
  kind: TrackKind;
  number: number;
  vm: number;
  name: string | null;
  slices: number;
  data: string;
}

interface PackedTimeline {
  beginNs: number;
  lengthNs: number;
  shortestNs: number;
  leftOut: boolean;
  labels: (string | number)[];
  states: string[];
  tracks: PackedTrack[];
}

export interface Intervals {
  plan: string;
  beginNs: number;
  binNs: number;
  bins: number;
  leftOut: number;
  events: { name: string; unit: string }[];
  subjects: { name: string; intervals: number; values: (number | null)[] }[];
}

/** A finding of vperf diagnose: a cause that costs a VM time. */
export interface Finding {
  id: string;
  vm: string | null; // null: the recording itself
  ns: number;
  percent: number;
  count: number;
  most: string | null; // thief or source of the largest part
  most_ns: number;
  address: string | null; // guest physical address with the largest part
  address_count: number;
  records: string | null; // name of the records, of which `count` were lost; null: a loss of time
  detail: string | null;
  what: string;
  evidence: string; // command that shows the details
  address_evidence: string | null;
  advice: string;
  source: string;
  pcpus: string | null; // pCPUs that the VM's vCPUs may use; null: all
  cgroup: string | null; // of `most`
  commands: string[]; // of libvirt or xl, that carry out the advice
  seconds: number; // number of one-second observations; 0: a loss of records
  since_ns: number | null; // start of the first second in which it was found (CLOCK_MONOTONIC)
  held_percent: number | null;
  low_percent: number | null; // 95% interval of `percent`; null: too few seconds
  high_percent: number | null;
  verify: string | null; // command that shows whether a change helped
  cause: number; // index of the first finding with the same cause
}

export interface Page {
  vperf: string;
  path: string;
  hostname: string;
  kernel: string;
  instruments: string;
  command: string;
  note: string;
  trigger: string;
  periodNs: number;
  pcpus: number;
  startNs: number;
  startRealtimeS: number | null;
  startRealtimeNs: number;
  durationS: number;
  vms: string[];
  notes: string[];
  tables: Record<string, Table>;
  findings?: Finding[];
  profile?: PackedProfile;
  before?: PackedProfile;
  timeline?: PackedTimeline;
  intervals?: Intervals;
}

/** Kinds of a profile's rows, in the order of enum vp_kind. */
export const KINDS = ["kernel", "user", "idle", "steal", "vm"] as const;
export type Kind = typeof KINDS[number] | "unknown";

export interface Row {
  kind: Kind;
  function: string | null;
  module: string | null;
  process: string | null;
  vm: string | null; // null: the host
  samples: number;
  key?: string; // identifies it within a stack; computed on first use
}

/** A node of the tree of stacks. */
export interface StackNode {
  parent: number; // index of the caller's node; -1: outermost
  row: number;
  samples: number; // weight of the stacks that end here
}

export interface Profile {
  path: string;
  samples: number; // the sum of all weights
  unit: string; // of the weights: "samples", "ns" or an event name
  samplesTaken: number;
  durationS: number;
  leastSamples: number;
  rows: Row[];
  nodes: StackNode[];
}

export type TrackKind = "pcpu" | "vcpu" | "thread";

/** Slices of a track, sorted by time; times are ns since the start of the timeline. */
export interface Track {
  kind: TrackKind;
  title: string;
  number: number;
  vm: string | null;
  count: number;
  begin: Float64Array;
  end: Float64Array;
  state: Uint8Array;
  label: Int32Array; // index into Timeline.labels; -1: none
  pcpu: Int32Array; // -1: none
  merged: Uint32Array; // number of merged short slices, at least 1
  main: Float64Array; // ns in `state`
  others: Map<number, [number, number][]>; // for merged slices: other states, with their ns
}

export interface Timeline {
  startNs: number; // of the recording
  beginNs: number;
  lengthNs: number;
  shortestNs: number;
  leftOut: boolean;
  states: string[];
  labels: { text: string; vm: string | null }[];
  tracks: Track[];
}

/** Decodes base64 of LEB128 numbers. */
class Packed {
  private readonly bytes: string;
  private at = 0;

  constructor(base64: string) {
    this.bytes = atob(base64);
  }

  next(): number {
    let ret = 0;
    let scale = 1;
    for (;;) {
      const byte = this.bytes.charCodeAt(this.at++);
      ret += (byte & 0x7f) * scale;
      if (!(byte & 0x80)) return ret;
      scale *= 128;
    }
  }
}

export function readPage(): Page {
  return JSON.parse(document.getElementById("data")!.textContent!) as Page;
}

export function unpackProfile(packed: PackedProfile): Profile {
  const text = (number: number) => (number ? packed.texts[number - 1] : null);
  const rowData = new Packed(packed.rowData);
  const rows: Row[] = [];
  for (let i = 0; i < packed.rows; i++) {
    const kind = rowData.next();
    rows.push({
      kind: KINDS[kind - 1] ?? "unknown",
      function: text(rowData.next()),
      module: text(rowData.next()),
      process: text(rowData.next()),
      vm: packed.vms[rowData.next() - 1] ?? null,
      samples: rowData.next(),
    });
  }
  const nodeData = new Packed(packed.nodeData);
  const nodes: StackNode[] = [];
  for (let i = 0; i < packed.nodes; i++) {
    const back = nodeData.next();
    nodes.push({ parent: back ? i - back : -1, row: nodeData.next(), samples: nodeData.next() });
  }
  // Without stacks, each row is a stack of one frame.
  if (!nodes.length) rows.forEach((row, i) => nodes.push({ parent: -1, row: i, samples: row.samples }));
  const { path, samples, unit, samplesTaken, durationS, leastSamples } = packed;
  return { path, samples, unit, samplesTaken, durationS, leastSamples, rows, nodes };
}

function trackTitle(packed: PackedTrack, vm: string | null): string {
  if (packed.kind === "pcpu") return `pCPU ${packed.number}`;
  if (packed.kind === "vcpu") return `${vm ?? "?"} vCPU ${packed.number === 0xffff ? "?" : packed.number}`;
  return `${vm ?? "?"} ${packed.name ?? packed.number}`;
}

function unpackTrack(packed: PackedTrack, vms: string[]): Track {
  const data = new Packed(packed.data);
  const count = packed.slices;
  const vm = packed.vm ? vms[packed.vm - 1] : null;
  const track: Track = {
    kind: packed.kind,
    title: trackTitle(packed, vm),
    number: packed.number,
    vm,
    count,
    begin: new Float64Array(count),
    end: new Float64Array(count),
    state: new Uint8Array(count),
    label: new Int32Array(count),
    pcpu: new Int32Array(count),
    merged: new Uint32Array(count),
    main: new Float64Array(count),
    others: new Map(),
  };
  let time = 0;
  for (let i = 0; i < count; i++) {
    track.begin[i] = time += data.next();
    const length = data.next();
    track.end[i] = time += length;
    track.state[i] = data.next();
    track.label[i] = data.next() - 1;
    track.pcpu[i] = data.next() - 1;
    track.merged[i] = data.next() + 1;
    track.main[i] = track.merged[i] > 1 ? data.next() : length;
    if (track.merged[i] > 1)
      track.others.set(i, Array.from({ length: data.next() }, () => [data.next(), data.next()]));
  }
  return track;
}

const TRACK_ORDER: TrackKind[] = ["pcpu", "vcpu", "thread"];

export function unpackTimeline(packed: PackedTimeline, vms: string[], startNs: number): Timeline {
  const labels: Timeline["labels"] = [];
  for (let i = 0; i < packed.labels.length; i += 2) {
    const vm = packed.labels[i + 1] as number;
    labels.push({ text: packed.labels[i] as string, vm: vm ? vms[vm - 1] : null });
  }
  const tracks = packed.tracks.map((track) => unpackTrack(track, vms));
  tracks.sort((a, b) => TRACK_ORDER.indexOf(a.kind) - TRACK_ORDER.indexOf(b.kind) ||
    (a.vm ?? "").localeCompare(b.vm ?? "") || a.number - b.number);
  const { beginNs, lengthNs, shortestNs, leftOut, states } = packed;
  return { startNs, beginNs, lengthNs, shortestNs, leftOut, states, labels, tracks };
}
