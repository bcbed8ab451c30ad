// Reads [{live, now}] and answers what the browser says of each: state, reason, time left.
import { readFileSync } from "node:fs";
import { reachText, stateNow } from "../../static/js/evidence.js";
import { etaText, goalShare } from "../../static/js/pace.js";

const cases = JSON.parse(readFileSync(0, "utf8"));
const said = cases.map(({ live, now }) => ({
  ...stateNow(live, Date.parse(now)), eta: etaText(live), share: goalShare(live), reach: reachText(live),
}));
process.stdout.write(JSON.stringify(said));
