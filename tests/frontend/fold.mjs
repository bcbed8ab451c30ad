// Reads {state, messages} and answers the state that a page has after them.
import { readFileSync } from "node:fs";
import { applied } from "../../static/js/state.js";

const { state: first, messages } = JSON.parse(readFileSync(0, "utf8"));
const { eventSeq: _, ...state } = messages.reduce((state, message) => applied(state, message).state, first);
process.stdout.write(JSON.stringify(state));
