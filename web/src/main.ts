// SPDX-License-Identifier: GPL-2.0-or-later
// Builds the page: one section per kind of data in the recording.
import { readPage, unpackProfile, unpackTimeline, type Cell, type Finding, type Page } from "./data";
import { el, listenToTips, section } from "./dom";
import { FlameGraph } from "./flame";
import * as format from "./format";
import { seriesView } from "./series";
import { stateBars, stealMatrix } from "./states";
import { TableView } from "./table";
import { TimelineView } from "./timeline";

function facts(page: Page): HTMLElement {
  const rows: [string, string][] = [
    ["Host", `${page.hostname}, Linux ${page.kernel}, ${page.pcpus} pCPU${page.pcpus === 1 ? "" : "s"}`],
    ["VMs", page.vms.length ? page.vms.join(", ") : "none"],
    ["Start", format.dateTime(page.startNs) || "unknown"],
    ["Duration", format.duration(page.durationS * 1e9)],
    ["Data", page.instruments],
  ];
  if (page.profile) rows.push(["Samples", `${format.count(page.profile.samplesTaken)}, sampled by ${page.trigger} ${
    page.profile.unit === "samples" ? `every ${format.duration(page.periodNs)}` : page.profile.unit === "ns" ? "(weights: time)" : "(weights: event counts)"}`]);
  if (page.command) rows.push(["Command", page.command]);
  return el("dl", {}, ...rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** The first sentence of the page: the largest loss, or "nothing stands out". */
function headline(page: Page): string {
  const when = format.dateTime(page.startNs);
  const recording = `${page.hostname}${when ? `, ${when}` : ""}, ${format.duration(page.durationS * 1e9)}`;
  const losses = (page.findings ?? []).filter((of) => of.records === null);
  if (losses.length) return `${recording}: VM ${losses[0].vm} lost ${format.duration(losses[0].ns)} (${format.percent(losses[0].percent)} of its vCPUs' time) to ${losses[0].what}.`;
  if (page.findings) return `${recording}: nothing stands out.`;
  return `${recording}: ${page.profile ? `a profile of ${format.count(page.profile.samplesTaken)} samples` : page.instruments}.`;
}

function summary(page: Page): HTMLElement {
  const notes = [...(page.note ? [page.note] : []), ...page.notes];
  const list = el("details", {}, el("summary", {}, `Notes (${notes.length})`),
    el("ul", {}, ...notes.map((note) => el("li", {}, note))));
  return section("summary", "Recording", el("p", { class: "headline" }, headline(page)),
    el("details", {}, el("summary", {}, "Host, VMs and data sources"), facts(page)), ...(notes.length ? [list] : []));
}

/** A sentence about the other VMs that lose time to the same cause, with a leading space; "" without any. */
function victims(others: Finding[]): string {
  if (!others.length) return "";
  return ` The same cause costs ${others.map((other) => `VM ${other.vm} ${format.duration(other.ns)} (${format.percent(other.percent)})`).join(", ")}.`;
}

/** Labels and values of a finding; a list of commands for those that can be copied. */
function answers(of: Finding, others: Finding[]): [string, string | string[]][] {
  const rows: [string, string | string[]][] = [];
  if (of.most) rows.push(["Top cause", `${of.most}: ${format.duration(of.most_ns)}`]);
  const places = [...(of.pcpus ? [`pCPU${/[-,]/.test(of.pcpus) ? "s" : ""} ${of.pcpus}`] : []), ...(of.cgroup ? [`cgroup ${of.cgroup}`] : []),
    ...(of.address ? [`most at guest physical address ${of.address} (${format.count(of.address_count)} times)`] : [])];
  if (places.length) rows.push(["Where", places.join(", ")]);
  if (of.records === null) rows.push(["Details", `${of.count ? `${format.count(of.count)} times.` : ""}${victims(others)}${of.detail ? ` ${of.detail[0].toUpperCase()}${of.detail.slice(1)}.` : ""}`.trim()]);
  if (of.since_ns !== null) rows.push(["Since", `${format.moment(of.since_ns, 3)}, in ${format.percent(of.held_percent!)} of the time`]);
  if (of.seconds) rows.push(["Share", of.low_percent === null ? `exact for this recording; too short for an interval (${format.count(of.seconds)} of at least 3 seconds)`
    : `95% interval ${format.percent(of.low_percent)} to ${format.percent(of.high_percent!)}, from ${format.count(of.seconds)} seconds`]);
  rows.push(["See", [of.evidence, ...(of.address_evidence ? [of.address_evidence] : [])]]);
  rows.push(["Try", `${of.advice}.`]);
  if (of.commands.length) rows.push(["Commands", of.commands]);
  if (of.verify) rows.push(["Verify", [of.verify]]);
  return rows.filter(([, answer]) => answer.length);
}

function finding(of: Finding, others: Finding[], timeline: TimelineView | null): HTMLElement {
  const worst = of.vm !== null && of.records === null ? timeline?.worstWait(of.vm) ?? null : null;
  const show = worst && el("button", { type: "button", click: () => timeline!.open(timeline!.beginNs + worst.from, timeline!.beginNs + worst.to) }, "Show the longest wait");
  const head = of.records !== null ? `${of.vm === null ? "vperf" : `VM ${of.vm}`} lost ${format.count(of.count)} ${of.records}${of.percent ? `, ${format.percent(of.percent)} of them` : ""}: ${of.what}.`
    : `VM ${of.vm} loses ${format.duration(of.ns)}, ${format.percent(of.percent)} of its vCPUs' time, to ${of.what}.`;
  return el("li", {},
    el("p", {}, el("strong", {}, head)),
    el("dl", { class: "answers" }, ...answers(of, others).flatMap(([question, answer]) => [el("dt", {}, question),
      el("dd", {}, ...(typeof answer === "string" ? [answer] : answer.map((command) => el("code", {}, command))))])),
    ...(show ? [el("p", {}, show)] : []),
    el("p", { class: "note" }, of.source));
}

/** One entry per cause, in the order of 'vperf diagnose'. */
function diagnosis(findings: Finding[], timeline: TimelineView | null): HTMLElement {
  const entries = findings.flatMap((of, place) => of.cause === place ? [finding(of, findings.filter((other, at) => at !== place && other.cause === place), timeline)] : []);
  return section("diagnosis", "Findings", entries.length ? el("ol", { class: "findings" }, ...entries) : el("p", {}, "Nothing stands out."));
}

function tables(page: Page, timeline: TimelineView | null, ...keys: string[]): HTMLElement[] {
  return keys.filter((key) => page.tables[key]?.rows.length).map((key) => {
    const table = page.tables[key];
    const [at, ns] = ["at_s", "ns"].map((name) => table.columns.findIndex((column) => column.key === name));
    const open = timeline && at >= 0 && ns >= 0
      ? (row: Cell[]) => timeline.open(Number(row[at]) * 1e9, Number(row[at]) * 1e9 + Number(row[ns])) : null;
    return el("details", { open: open !== null }, el("summary", {}, `${table.title} (${format.count(table.rows.length + table.leftOut)})`),
      new TableView(table, open).element);
  });
}

function sections(page: Page): { parts: HTMLElement[]; timeline: TimelineView | null } {
  const has = (key: string) => (page.tables[key]?.rows.length ?? 0) > 0;
  const timeline = page.timeline ? new TimelineView(unpackTimeline(page.timeline, page.vms, page.startNs)) : null;
  const pictures: HTMLElement[] = [];
  if (has("states")) pictures.push(section("vcpus", "vCPU states", stateBars(page.tables.states), ...tables(page, null, "vcpus")));
  if (timeline) pictures.push(section("timeline", "Timeline", timeline.element));
  const parts = [summary(page), ...pictures];
  if (page.findings) parts.push(diagnosis(page.findings, timeline));
  if (page.profile)
    parts.push(section("profile", "Profile",
      new FlameGraph(unpackProfile(page.profile), page.before ? unpackProfile(page.before) : null).element));
  if (has("steal")) parts.push(section("steal", "Steal by thief", stealMatrix(page.tables.steal), ...tables(page, null, "steal")));
  if (has("schedVcpus")) parts.push(section("sched", "Guest threads and waits", ...tables(page, timeline, "schedVcpus", "schedThreads", "schedWaits", "schedWorst")));
  if (has("exits")) parts.push(section("exits", "VM exits", ...tables(page, null, "exits", "exitsByFunction", "exitsByProcess", "exitsByAddress")));
  if (page.intervals) parts.push(section("counters", "Counters", seriesView(page.intervals)));
  return { parts, timeline };
}

/** Moves the findings next to the vCPU states and the timeline; a narrow screen shows them below. */
function arrange(parts: HTMLElement[]): HTMLElement[] {
  const beside = parts.find((part) => part.id === "diagnosis");
  const pictures = parts.filter((part) => part.id === "vcpus" || part.id === "timeline");
  if (!beside || !pictures.length) return parts;
  beside.tabIndex = 0; // it scrolls there
  const first = el("div", { class: "first" }, el("div", {}, ...pictures), beside);
  return [parts[0], first, ...parts.slice(1).filter((part) => part !== beside && !pictures.includes(part))];
}

/** A stored setting, or null; some browsers have no storage for file: URLs. */
function kept(key: string): string | null {
  try {
    return localStorage.getItem(`vperf-${key}`);
  } catch {
    return null;
  }
}

function keep(key: string, value: string): void {
  try {
    localStorage.setItem(`vperf-${key}`, value);
  } catch {
    return;
  }
}

function listenToTheme(button: HTMLElement): void {
  const root = document.documentElement;
  const theme = kept("theme");
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const show = () => {
    button.textContent = "Dark";
    button.setAttribute("aria-pressed", String(dark()));
  };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    keep("theme", root.dataset.theme);
    show();
    window.dispatchEvent(new Event("resize"));
  });
  show();
}

/** Before printing, opens the summary and the longest waits; other closed tables are not printed. */
function openForPrint(): void {
  addEventListener("beforeprint", () => document.querySelectorAll<HTMLDetailsElement>("#summary details, #sched details:last-of-type")
    .forEach((part) => { part.open = true; }));
}

function start(): void {
  const page = readPage();
  const main = document.getElementById("main")!;
  format.setBase({ startNs: page.startNs, realtimeS: page.startRealtimeS, realtimeNs: page.startRealtimeNs });
  const { parts, timeline } = sections(page);
  document.title = `vperf: ${page.hostname}`;
  document.getElementById("title")!.textContent = `vperf: ${page.hostname}`;
  main.replaceChildren(...arrange(parts), el("footer", {}, `Written by vperf ${page.vperf} from ${page.path}`));
  document.getElementById("nav")!.replaceChildren(...parts.map((part) => el("a", { href: `#${part.id}` }, part.querySelector("h2")!.textContent!)));
  listenToTheme(document.getElementById("theme")!);
  listenToTips();
  openForPrint();
  timeline?.start();
  document.body.dataset.ready = "yes";
}

start();
