// SPDX-License-Identifier: GPL-2.0-or-later
// Puts the page together: a section for each kind of answer that the recording has.
import { readPage, unpackProfile, unpackTimeline, type Finding, type Page } from "./data";
import { el, section } from "./dom";
import { FlameGraph } from "./flame";
import * as format from "./format";
import { seriesView } from "./series";
import { stateBars, stealMatrix } from "./states";
import { TableView } from "./table";
import { TimelineView } from "./timeline";

function facts(page: Page): HTMLElement {
  const rows: [string, string][] = [
    ["Host", `${page.hostname}, Linux ${page.kernel}, ${page.pcpus} pCPUs`],
    ["VMs", page.vms.length ? page.vms.join(", ") : "none"],
    ["Time", format.duration(page.durationS * 1e9)],
    ["Recorded", page.instruments],
  ];
  if (page.profile) rows.push(["Samples", `${format.count(page.profile.samplesTaken)}, by ${page.trigger} ${
    page.profile.unit === "samples" ? `each ${format.duration(page.periodNs)}` : page.profile.unit === "ns" ? "weighted by time" : "weighted by its count"}`]);
  if (page.command) rows.push(["Command", page.command]);
  return el("dl", {}, ...rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function summary(page: Page): HTMLElement {
  const notes = [...(page.note ? [page.note] : []), ...page.notes];
  const list = el("details", { open: notes.length <= 3 }, el("summary", {}, `Notes on the recording (${notes.length})`),
    el("ul", {}, ...notes.map((note) => el("li", {}, note))));
  return section("summary", "Recording", facts(page), ...(notes.length ? [list] : []));
}

function finding(of: Finding): HTMLElement {
  const most = of.most ? `Most of it: ${of.most}, ${format.duration(of.most_ns)}. ` : "";
  const at = of.address ? ` Most at ${of.address}, ${format.count(of.address_count)} times.` : "";
  const head = of.records !== null ? `${of.vm === null ? "vperf" : `VM ${of.vm}`} lost ${format.count(of.count)} ${of.records}${of.percent ? `, ${format.percent(of.percent)} of them` : ""}: ${of.what}.`
    : `VM ${of.vm} loses ${format.duration(of.ns)}, ${format.percent(of.percent)} of its vCPUs' time, to ${of.what}.`;
  return el("li", {},
    el("p", {}, el("strong", {}, head)),
    ...(of.records !== null ? [] : [el("p", {}, `${most}${of.count ? `${format.count(of.count)} times.` : ""}${at}`)]),
    ...(of.detail ? [el("p", {}, `${of.detail[0].toUpperCase()}${of.detail.slice(1)}.`)] : []),
    el("p", {}, `Try: ${of.advice}. `, el("span", { class: "note" }, `(${of.source})`)),
    el("p", {}, el("code", {}, of.evidence)),
    ...(of.address_evidence ? [el("p", {}, el("code", {}, of.address_evidence))] : []));
}

function diagnosis(findings: Finding[]): HTMLElement {
  return section("diagnosis", "What costs most",
    findings.length ? el("ol", { class: "findings" }, ...findings.map(finding)) : el("p", {}, "Nothing stands out."));
}

function tables(page: Page, ...keys: string[]): HTMLElement[] {
  return keys.filter((key) => page.tables[key]?.rows.length).map((key) =>
    el("details", { open: true }, el("summary", {}, page.tables[key].title), new TableView(page.tables[key]).element));
}

function sections(page: Page): { parts: HTMLElement[]; timeline: TimelineView | null } {
  const parts = [summary(page)];
  if (page.findings) parts.push(diagnosis(page.findings));
  const has = (key: string) => (page.tables[key]?.rows.length ?? 0) > 0;
  if (has("states")) parts.push(section("vcpus", "What vCPUs did", stateBars(page.tables.states), ...tables(page, "vcpus")));
  if (has("steal")) parts.push(section("steal", "Who took the vCPUs' time", stealMatrix(page.tables.steal), ...tables(page, "steal")));
  if (page.profile)
    parts.push(section("profile", "Where the time went",
      new FlameGraph(unpackProfile(page.profile), page.before ? unpackProfile(page.before) : null).element));
  const timeline = page.timeline ? new TimelineView(unpackTimeline(page.timeline, page.vms)) : null;
  if (timeline) parts.push(section("timeline", "What happened when", timeline.element));
  if (has("schedVcpus")) parts.push(section("sched", "Threads and waits", ...tables(page, "schedVcpus", "schedThreads", "schedWaits", "schedWorst")));
  if (has("exits")) parts.push(section("exits", "VM exits", ...tables(page, "exits", "exitsByFunction", "exitsByProcess", "exitsByAddress")));
  if (page.intervals) parts.push(section("counters", "Counters", seriesView(page.intervals)));
  return { parts, timeline };
}

function listenToTheme(button: HTMLElement): void {
  const root = document.documentElement;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const say = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    say();
    window.dispatchEvent(new Event("resize"));
  });
  say();
}

function start(): void {
  const page = readPage();
  const main = document.getElementById("main")!;
  const { parts, timeline } = sections(page);
  document.title = `vperf: ${page.hostname}`;
  document.getElementById("title")!.textContent = `vperf: ${page.hostname}`;
  main.replaceChildren(...parts, el("footer", {}, `vperf ${page.vperf}, of ${page.path}`));
  document.getElementById("nav")!.replaceChildren(...parts.map((part) => el("a", { href: `#${part.id}` }, part.querySelector("h2")!.textContent!)));
  listenToTheme(document.getElementById("theme")!);
  timeline?.start();
  document.body.dataset.ready = "yes";
}

start();
