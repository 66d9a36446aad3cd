"use strict";
(() => {
  const openTarget = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
      if (node.classList.contains("entry")) node.hidden = false;
    }
    target.scrollIntoView();
  };

  for (const form of document.querySelectorAll("form.filter")) {
    const list = document.getElementById(form.dataset.for);
    const entries = [...list.querySelectorAll(":scope > .entry")];
    const empty = list.querySelector(".empty");
    const texts = new Map(entries.map((entry) => {
      const parts = [entry.querySelector("summary"), entry.querySelector("blockquote, .purpose")];
      return [entry, parts.map((part) => (part ? part.textContent : "")).join(" ").toLowerCase()];
    }));
    const apply = () => {
      const chosen = new FormData(form);
      const words = (chosen.get("text") || "").toLowerCase().split(/\s+/).filter(Boolean);
      const verdicts = chosen.getAll("verdict");
      let shown = 0;
      for (const entry of entries) {
        const data = entry.dataset;
        const fits = (!verdicts.length || verdicts.includes(data.verdict))
          && (!chosen.get("level") || chosen.get("level") === data.level)
          && (!chosen.get("group") || chosen.get("group") === data.group)
          && words.every((word) => texts.get(entry).includes(word));
        entry.hidden = !fits;
        shown += fits;
      }
      empty.hidden = shown > 0;
      form.querySelector("output").textContent =
        shown === entries.length ? `${shown} shown` : `${shown} of ${entries.length} shown`;
    };
    form.hidden = false;
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const tile of document.querySelectorAll("[data-pick]")) {
      if (form.dataset.for !== "requirement-list") break;
      tile.addEventListener("click", () => {
        for (const box of form.querySelectorAll("[name=verdict]")) {
          box.checked = box.value === tile.dataset.pick;
        }
        apply();
      });
    }
    apply();
  }

  // A crosshair with the time and offset under the pointer.
  for (const plot of document.querySelectorAll("svg.plot")) {
    const [start, end, low, high] = plot.dataset.view.split(" ").map(Number);
    const inner = plot.querySelector("svg").getAttribute("viewBox").split(" ").map(Number);
    const caption = document.createElement("output");
    caption.className = "pointer";
    plot.after(caption);
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const [, , width] = plot.getAttribute("viewBox").split(" ").map(Number);
      const scale = width / box.width;
      const x = ((event.clientX - box.left) * scale - inner[0]) / inner[2];
      const y = ((event.clientY - box.top) * scale - inner[1]) / inner[3];
      const inside = x >= 0 && x <= 1 && y >= 0 && y <= 1;
      const offset = Math.round(high - y * (high - low)).toLocaleString("en").replaceAll(",", "\u202f");
      caption.textContent = inside ? `${(start + x * (end - start)).toFixed(4)} s · offset ${offset}` : "";
    });
    plot.addEventListener("pointerleave", () => { caption.textContent = ""; });
  }

  window.addEventListener("hashchange", openTarget);
  window.addEventListener("beforeprint", () => {
    for (const entry of document.querySelectorAll('.req, .case:not([data-verdict="pass"])')) entry.open = true;
  });
  openTarget();
})();
