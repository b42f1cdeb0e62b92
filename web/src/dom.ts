// SPDX-License-Identifier: GPL-2.0-or-later
// Short constructors of elements. Strings are added as text, never as HTML: names come from guests.

type Attributes = Record<string, string | number | boolean | ((event: Event) => void)>;

function apply(element: Element, attributes: Attributes, children: (Node | string)[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children);
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: (Node | string)[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, attributes, children);
  return element;
}

export function svg(tag: string, attributes: Attributes = {}, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag) as SVGElement;
  apply(element, attributes, children);
  return element;
}

/** A section of the page, with its heading. */
export function section(id: string, title: string, ...children: (Node | string)[]): HTMLElement {
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), ...children);
}

/** Shows `data-tip` of the element under the pointer, without delay. */
export function listenToTips(): void {
  const tip = el("div", { class: "tip fixed", role: "tooltip", hidden: true });
  document.body.append(tip);
  const hide = () => { tip.hidden = true; };
  document.addEventListener("pointerover", (event) => {
    const owner = (event.target as Element).closest?.("[data-tip]");
    tip.hidden = !owner;
    if (owner) tip.textContent = owner.getAttribute("data-tip");
  });
  document.addEventListener("pointermove", (event) => {
    if (tip.hidden) return;
    tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4)}px`;
    tip.style.top = `${event.clientY + tip.offsetHeight + 20 > innerHeight ? event.clientY - tip.offsetHeight - 8 : event.clientY + 14}px`;
  });
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
}

/** A labelled select; the first choice is selected. */
export function choice(label: string, choices: string[], changed: (chosen: string) => void): HTMLElement {
  const select: HTMLSelectElement = el("select", { change: () => changed(select.value) }, ...choices.map((text) => el("option", {}, text)));
  return el("label", {}, `${label} `, select);
}
