// The list of runs asks for newer numbers now and then; each run's own page is the live one.
import { evidence, loss, number, short } from "./format.js";

const EVERY_MS = 10000;
/** @type {Record<string, (value: any) => string>} */
const FORMATS = { num_peers: number, samples_per_second: short, loss, epoch: number, reason: evidence };

async function refresh() {
  if (document.hidden) return;
  const answer = await fetch("/api/v1/runs/", { cache: "no-cache" });
  if (!answer.ok) return;
  const { items } = await answer.json();
  for (const run of items) {
    const card = document.querySelector(`[data-home-run="${CSS.escape(run.slug)}"]`);
    for (const [name, format] of Object.entries(FORMATS)) {
      const element = card?.querySelector(`[data-home="${name}"]`);
      if (element) element.textContent = format(run[name]);
    }
  }
}

setInterval(() => refresh().catch(() => undefined), EVERY_MS);
