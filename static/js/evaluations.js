// What saved states can do, over their checkpoints: one chart per figure, a line per lineage.
import { loss, percent, short } from "./format.js";
import { LINEAGE_TINTS, colour, plotMake, widthsKeep } from "./plot.js";
import { lineageLines } from "./series.js";
import { viewRead } from "./view.js";

/** @type {any[]} */
let plots = [];

function draw() {
  for (const plot of plots) plot.destroy();
  plots = [];
  const source = document.querySelector("[data-evaluation-columns]");
  if (!(source instanceof HTMLElement)) return;
  const columns = JSON.parse(source.dataset.evaluationColumns || "{}");
  // Along time there is nothing to see here: a checkpoint's place is its epoch.
  const axis = viewRead(location.search).x === "samples" ? "samples" : "epoch";
  const placed = axis === "samples" ? { ...columns, epoch: columns.samples } : columns;
  const samples = lineageLines(placed, "samples").lines;
  for (const box of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-evaluation]"))) {
    const found = lineageLines(placed, box.dataset.evaluation || "");
    const write = "share" in box.dataset ? percent : loss;
    const last = found.lines.length - 1;
    plots.push(plotMake(box, {
      x: found.epochs, axis, height: 190, sync: "evaluations", write,
      lines: found.lines.map(({ lineage, values }, i) => ({
        label: last ? `Lineage ${lineage}` : box.dataset.label || "", values, hasDots: true, write,
        colour: colour(LINEAGE_TINTS[(last - i) % LINEAGE_TINTS.length]),
        note: (at) => (axis === "samples" ? "" : ` after ${short(samples[i].values[at])} samples`),
      })),
    }));
  }
}

draw();
document.addEventListener("htmx:afterSettle", (event) => {
  if (/** @type {HTMLElement} */ (event.target).id === "evaluation-charts") draw();
});
for (const name of ["themechange", "viewchange"]) document.addEventListener(name, draw);
addEventListener("popstate", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
widthsKeep(/** @type {HTMLElement} */ (document.getElementById("evaluations")), () => plots);
