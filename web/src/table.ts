// SPDX-License-Identifier: GPL-2.0-or-later
// A table that sorts by the clicked column and filters its rows by a word.
import type { Cell, Table } from "./data";
import { el } from "./dom";
import * as format from "./format";

const SHOWN = 50; // rows until "Show all" is clicked
const FEW = 10; // tables of at most that many rows have no filter

function compare(a: Cell, b: Cell): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (typeof a === "number" && typeof b === "number") return b - a;
  return String(a).localeCompare(String(b));
}

export class TableView {
  readonly element: HTMLElement;
  private readonly body = el("tbody");
  private readonly more = el("button", { type: "button", class: "more", click: () => this.showAll() });
  private readonly none = el("p", { class: "note", hidden: true }, "No row matches.");
  private readonly heads: HTMLElement[] = [];
  private sorted = -1;
  private downwards = true;
  private word = "";
  private most = SHOWN;

  /** `open`: called when a row is clicked; null: rows cannot be clicked. */
  constructor(private readonly table: Table, private readonly opens: ((row: Cell[]) => void) | null = null) {
    const head = el("tr", {}, ...table.columns.map((column, i) => this.head(i, column.header)));
    const filter = el("input", {
      type: "search", placeholder: "Filter rows", "aria-label": `Filter rows of ${table.title}`,
      input: (event) => this.filter((event.target as HTMLInputElement).value),
    });
    this.element = el("div", { class: "table" },
      el("div", { class: "bar" }, ...(table.rows.length > FEW ? [filter] : []),
        el("button", { type: "button", click: (event) => this.copy(event.target as HTMLElement) }, "Copy as CSV")),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${table.title}: table` },
        el("table", {}, el("caption", { class: "unseen" }, table.title), el("thead", {}, head), this.body)),
      this.none, this.more);
    if (table.leftOut) this.element.append(el("p", { class: "note" }, `${table.leftOut} more rows are not in this file.`));
    this.draw();
  }

  private head(column: number, text: string): HTMLElement {
    const head = el("th", { scope: "col", "data-type": this.table.columns[column].type },
      el("button", { type: "button", click: () => this.sort(column) }, text));
    this.heads.push(head);
    return head;
  }

  private sort(column: number): void {
    this.downwards = this.sorted === column ? !this.downwards : true;
    this.sorted = column;
    this.heads.forEach((head, i) => i === column
      ? head.setAttribute("aria-sort", this.downwards === (this.table.columns[i].type !== "text") ? "descending" : "ascending")
      : head.removeAttribute("aria-sort"));
    this.draw();
  }

  private filter(word: string): void {
    this.word = word.toLowerCase();
    this.draw();
  }

  /** The rows that are shown, with raw numbers, as 'vperf … --csv' has them. */
  private copy(button: HTMLElement): void {
    const quote = (value: Cell) => (typeof value === "string" && /[",\n]/.test(value) ? `"${value.replace(/"/g, '""')}"` : String(value ?? ""));
    const lines = [this.table.columns.map((column) => quote(column.key)), ...this.rows().map((row) => row.map(quote))];
    const text = el("textarea", {}, lines.map((line) => line.join(",")).join("\n"));
    document.body.append(text);
    text.select();
    button.textContent = document.execCommand("copy") ? "Copied" : "Copying failed";
    text.remove();
    button.focus();
  }

  private showAll(): void {
    this.most = Infinity;
    this.draw();
  }

  private rows(): Cell[][] {
    const { columns, rows } = this.table;
    const ret = rows.filter((row) => !this.word ||
      row.some((value, i) => format.cell(columns[i], value).toLowerCase().includes(this.word)));
    if (this.sorted >= 0) ret.sort((a, b) => compare(a[this.sorted], b[this.sorted]) * (this.downwards ? 1 : -1));
    return ret;
  }

  private rowAttributes(row: Cell[]): Record<string, string | number | ((event: Event) => void)> {
    const open = this.opens;
    if (!open) return {};
    return { class: "opens", tabindex: 0, "data-tip": "Show in the timeline", click: () => open(row),
      keydown: (event) => { if ((event as KeyboardEvent).key === "Enter") open(row); } };
  }

  private draw(): void {
    const rows = this.rows();
    this.none.hidden = rows.length > 0;
    this.body.replaceChildren(...rows.slice(0, this.most).map((row) => el("tr", this.rowAttributes(row),
      ...row.map((value, i) => el("td", { "data-type": this.table.columns[i].type },
        format.cell(this.table.columns[i], value))))));
    this.more.hidden = rows.length <= this.most;
    this.more.textContent = `Show all ${rows.length} rows`;
  }
}
