// What a page breaks of the rules of accessibility, as a list of sentences. Evaluated in the page; changes nothing.
(() => {
  const broken = [];
  const shown = (node) => node.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const what = (node) => `<${node.tagName.toLowerCase()}${node.className && node.getAttribute("class") ? ` class="${node.getAttribute("class")}"` : ""}> ${(node.textContent || "").trim().slice(0, 40)}`;
  const all = (selector) => [...document.querySelectorAll(selector)].filter(shown);
  const byId = (ids) => (ids || "").split(" ").filter(Boolean).map((id) => document.getElementById(id));
  const name = (node) => [node.getAttribute("aria-label"), ...byId(node.getAttribute("aria-labelledby")).map((one) => one && one.textContent), ...(node.labels ? [...node.labels].map((one) => one.textContent) : []), node.textContent, node.getAttribute("title")].find((text) => text && text.trim()) || "";

  if (!document.documentElement.lang) broken.push("the page has no language");
  if (!document.title.trim()) broken.push("the page has no title");
  if (all("h1").length !== 1) broken.push(`there are ${all("h1").length} first headings`);
  for (const role of ["main"]) if (all(role).length !== 1) broken.push(`there are ${all(role).length} landmarks ${role}`);
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of new Set(ids.filter((one, index) => ids.indexOf(one) !== index))) broken.push(`the id ${id} is there twice`);
  let level = 1;
  for (const node of all("main h1, main h2, main h3, main h4")) {
    const own = Number(node.tagName[1]);
    if (own > level + 1) broken.push(`a heading skips a level: ${what(node)}`);
    level = own;
  }
  for (const node of all("a[href], button, summary, [role=tab], [role=button]")) if (!name(node).trim()) broken.push(`no name: ${what(node)}`);
  for (const node of all("input, select, textarea")) {
    const told = [node.getAttribute("aria-label"), ...byId(node.getAttribute("aria-labelledby")).map((one) => one && one.textContent), ...(node.labels ? [...node.labels].map((one) => one.textContent) : [])].some((text) => text && text.trim());
    if (!told) broken.push(`no label: ${what(node)} ${node.name}`);
  }
  for (const node of all("img, svg")) if (node.getAttribute("aria-hidden") !== "true" && !(node.getAttribute("role") === "img" && node.getAttribute("aria-label"))) broken.push(`a picture says nothing: ${what(node)}`);
  for (const node of all("table")) { if (!node.querySelector("th")) broken.push(`a table has no heads: ${what(node)}`); }
  for (const node of document.querySelectorAll("[aria-describedby], [aria-labelledby], [aria-controls]")) {
    for (const attribute of ["aria-describedby", "aria-labelledby", "aria-controls"]) for (const id of (node.getAttribute(attribute) || "").split(" ").filter(Boolean)) if (!document.getElementById(id)) broken.push(`${attribute} leads nowhere: ${what(node)}`);
  }
  for (const node of document.querySelectorAll("[tabindex]")) if (Number(node.getAttribute("tabindex")) > 0) broken.push(`a place in the order of tabs is forced: ${what(node)}`);
  for (const node of all("button, a.btn, input, select, summary")) {
    const box = node.getBoundingClientRect();
    if (box.height < 16 || box.width < 16) broken.push(`too small to be hit: ${what(node)} ${Math.round(box.width)}x${Math.round(box.height)}`);
  }

  // Contrast (WCAG 2.2, 1.4.3), with half transparent colours laid over what is below them.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; known.set(colour, [r, g, b, a / 255]); }
    return known.get(colour);
  };
  const over = (top, low) => top.slice(0, 3).map((value, index) => value * top[3] + low[index] * (1 - top[3])).concat(1);
  const ground = (node) => {
    const layers = [];
    for (let one = node; one; one = one.parentElement) { const colour = rgba(getComputedStyle(one).backgroundColor); if (colour[3] > 0) layers.push(colour); if (colour[3] === 1) break; }
    return layers.reverse().reduce((low, top) => over(top, low), rgba("Canvas"));
  };
  const light = (colour) => { const [r, g, b] = colour.map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(node) || !shown(node) || node.closest("svg,option,:disabled,.sr,.skip,[aria-busy]")) continue;
    seen.add(node);
    const style = getComputedStyle(node), low = ground(node), top = over(rgba(style.color), low);
    const [a, b] = [light(top), light(low)].sort((one, other) => other - one);
    const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (isLarge ? 3 : 4.5)) broken.push(`contrast ${ratio.toFixed(2)}: ${what(node)}`);
  }
  return [...new Set(broken)].slice(0, 20);
})()
