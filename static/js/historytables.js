// The tables behind the history's charts: the server writes them, and again when data has come.

const SECTIONS = ["timeline", "throughput", "spent"];

/**
 * Bring the tables up to date; a part that had nothing to show and now has something comes whole.
 * @param {HTMLElement} root what holds the history @param {string} url of the history alone
 * @returns {Promise<HTMLElement | null>} the timeline, when its first moment has come
 */
export async function tablesRenew(root, url) {
  const answer = await fetch(url, { cache: "no-cache" });
  if (!answer.ok) throw new Error(`history: ${answer.status}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  let begun = null;
  for (const id of SECTIONS) {
    const old = root.querySelector(`#${id}`), part = page.getElementById(id);
    if (!old || !part) continue;
    const isFirst = !old.querySelector("[data-history-chart]") && part.querySelector("[data-history-chart]");
    if (!isFirst) twinRenew(old, part);
    else {
      old.replaceWith(document.adoptNode(part));
      if (id === "timeline") begun = part;
    }
  }
  return begun;
}

/** @param {Element} old @param {Element} part */
function twinRenew(old, part) {
  const table = old.querySelector(".twin table"), rows = part.querySelector(".twin table");
  // Whoever stands on a link in it keeps it until the next time.
  if (!table || !rows || table.contains(document.activeElement)) return;
  table.replaceWith(document.adoptNode(rows));
  old.querySelector(".twin > p")?.remove();
  const note = part.querySelector(".twin > p");
  if (note) old.querySelector(".twin")?.append(document.adoptNode(note));
}
