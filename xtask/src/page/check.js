// Looks at a page as it is laid out, and writes what is wrong into #findings.
(function () {
  "use strict";
  const findings = [];
  const add = (kind, text) => { if (findings.length < 200) findings.push(kind + ": " + text); };
  const width = document.documentElement.clientWidth;
  const name = (e) => {
    const said = (e.textContent || "").trim().replace(/\s+/g, " ").slice(0, 50);
    return "<" + e.tagName.toLowerCase() + "> " + said;
  };
  const scrolls = (e) => {
    for (let at = e; at && at !== document.body; at = at.parentElement) {
      const flow = getComputedStyle(at).overflowX;
      if (flow === "auto" || flow === "scroll" || flow === "hidden") return at;
    }
    return null;
  };
  // What is folded away has boxes all the same.
  const isFolded = (e) => {
    const fold = e.parentElement && e.parentElement.closest("details:not([open])");
    return fold !== null && fold !== undefined && e.closest("summary") === null;
  };
  const isHidden = (e) => e.closest(".skip") !== null || isFolded(e);

  function widths() {
    if (document.documentElement.scrollWidth > width + 1) {
      add("overflow", "the page is " + document.documentElement.scrollWidth + " wide in " + width);
    }
    for (const e of document.querySelectorAll("body *")) {
      const box = e.getBoundingClientRect();
      if (box.width === 0 || isHidden(e) || scrolls(e.parentElement) || e.closest("svg svg")) continue;
      if (box.right > width + 1 || box.left < -1) {
        add("overflow", name(e) + " reaches from " + box.left.toFixed(0) + " to " + box.right.toFixed(0));
      }
    }
  }

  // Boxes of all text that can be seen, cut off at the edges of what scrolls.
  function boxes() {
    const out = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    while (walker.nextNode()) {
      const node = walker.currentNode, parent = node.parentElement;
      if (!node.data.trim() || !parent || isHidden(parent)) continue;
      if (parent.closest("title, script, style, #findings")) continue;
      range.selectNodeContents(node);
      const edge = scrolls(parent);
      const limit = edge ? edge.getBoundingClientRect() : null;
      for (const r of range.getClientRects()) {
        const left = limit ? Math.max(r.left, limit.left) : r.left;
        const right = limit ? Math.min(r.right, limit.right) : r.right;
        if (right - left > 1 && r.height > 1) {
          out.push({ left, right, top: r.top, bottom: r.bottom, node, parent });
        }
      }
    }
    return out;
  }

  function overlaps(all) {
    all.sort((a, b) => a.top - b.top);
    for (let i = 0; i < all.length; i++) {
      for (let j = i + 1; j < all.length && all[j].top < all[i].bottom - 3; j++) {
        const a = all[i], b = all[j];
        if (a.node === b.node) continue;
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 2 && down > 3) add("overlap", name(a.parent) + " and " + name(b.parent));
      }
    }
  }

  const parse = (text) => {
    const parts = (text.match(/[\d.]+/g) || []).map(Number);
    return { r: parts[0] || 0, g: parts[1] || 0, b: parts[2] || 0, a: parts.length > 3 ? parts[3] : 1 };
  };
  const light = (c) => {
    const part = (x) => { x /= 255; return x <= 0.03928 ? x / 12.92 : Math.pow((x + 0.055) / 1.055, 2.4); };
    return 0.2126 * part(c.r) + 0.7152 * part(c.g) + 0.0722 * part(c.b);
  };
  const ground = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.a > 0.99) return colour;
    }
    return { r: 255, g: 255, b: 255, a: 1 };
  };
  function contrast(all) {
    const seen = new Set();
    for (const { parent } of all) {
      if (seen.has(parent)) continue;
      seen.add(parent);
      const style = getComputedStyle(parent);
      const ink = parse(parent.closest("svg") ? style.fill : style.color);
      const [a, b] = [light(ink), light(ground(parent))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < 4.5) add("contrast", ratio.toFixed(2) + " of " + name(parent));
    }
  }

  function charts() {
    for (const chart of document.querySelectorAll("svg.chart")) {
      const box = chart.getBoundingClientRect();
      if (box.width === 0 || isFolded(chart)) continue;
      const lines = [...chart.querySelectorAll("polyline")];
      const points = lines.reduce((sum, line) => sum + line.points.numberOfItems, 0);
      const dots = chart.querySelectorAll("circle").length;
      if (points + dots === 0) add("empty chart", name(chart));
      if (box.width < 200 || box.height < 80) add("small chart", name(chart));
      for (const text of chart.querySelectorAll("text")) {
        if (text.getBoundingClientRect().height < 9) { add("small text", name(text)); break; }
      }
      if (chart.getAttribute("role") !== "img" || !chart.querySelector("title")) {
        add("chart without words", chart.id || "svg");
      }
    }
  }

  function structure() {
    if (document.querySelectorAll("h1").length !== 1) add("headings", "there is not one h1");
    let last = 0;
    for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
      const level = Number(heading.tagName[1]);
      if (level > last + 1) add("headings", name(heading) + " skips a level");
      last = level;
    }
    for (const table of document.querySelectorAll("table")) {
      if (!table.caption) add("table", "without a caption");
      if (table.rows.length < 2) add("table", "without rows: " + name(table));
      const region = table.closest("[role=region]");
      if (!region || region.tabIndex !== 0) add("table", "cannot be scrolled by keyboard");
      for (const head of table.querySelectorAll("th")) if (!head.scope) add("table", "a head without scope");
    }
    for (const link of document.querySelectorAll("a[href^='#']")) {
      if (!document.getElementById(link.getAttribute("href").slice(1))) add("link", name(link));
    }
    if (!document.documentElement.lang) add("language", "is missing");
  }

  function look() {
    widths();
    const all = boxes();
    overlaps(all);
    contrast(all);
    charts();
  }

  look();
  const closed = [...document.querySelectorAll("details:not([open])")];
  for (const e of closed) e.open = true;
  look();
  structure();
  for (const e of closed) e.open = false;
  for (const error of window.pageErrors || []) add("console", error);
  const out = document.createElement("pre");
  out.id = "findings";
  out.textContent = "width " + width + "\n" + [...new Set(findings)].join("\n");
  document.body.appendChild(out);
})();
