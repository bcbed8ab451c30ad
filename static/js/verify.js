// Checks the signature of a config in this browser, with WebCrypto, against the site's key set.

const ALGORITHM = "Ed25519";
const TYP = "beeyard-config+jws";
const CLAIMS = new Set(["iss", "iat", "exp", "jti"]);

/** @typedef {{ok: boolean | null, text: string}} Verdict `ok` is null when this browser cannot check */

/** @param {string} text base64url @returns {Uint8Array<ArrayBuffer>} */
function bytesOf(text) {
  const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
}

/** @param {string} text base64url of JSON */
function jsonOf(text) {
  return JSON.parse(new TextDecoder().decode(bytesOf(text)));
}

/** Whether two JSON values are the same, whatever the order of names. @param {any} a @param {any} b @returns {boolean} */
export function isSame(a, b) {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return Object.is(a, b);
  const names = Object.keys(a);
  return Array.isArray(a) === Array.isArray(b) && names.length === Object.keys(b).length &&
    names.every((name) => name in b && isSame(a[name], b[name]));
}

/** @param {any} subtle @param {any} jwk @param {string} token @returns {Promise<boolean>} */
async function isSignedBy(subtle, jwk, token) {
  const [head, body, signature] = token.split(".");
  const { kty, crv, x } = jwk;
  const key = await subtle.importKey("jwk", { kty, crv, x }, { name: ALGORITHM }, false, ["verify"]);
  return subtle.verify({ name: ALGORITHM }, key, bytesOf(signature), new TextEncoder().encode(`${head}.${body}`));
}

/**
 * @param {{jws: string, shown: any, run: string, version: number, keys: any[]}} config
 * @param {any} subtle @param {number} now milliseconds @returns {Promise<Verdict>}
 */
export async function configCheck(config, subtle, now) {
  if (!subtle) {
    return { ok: null, text: "This browser checks signatures on secure pages (https or this machine) only. “beeyard verify FILE” checks it in a terminal." };
  }
  let header, payload;
  try {
    const parts = config.jws.split(".");
    [header, payload] = parts.slice(0, 2).map(jsonOf);
    bytesOf(parts[2]); // what is no base64 is no signature: that is not for lack of a browser that can
  } catch {
    return { ok: false, text: "These are not signed bytes." };
  }
  if (header.alg !== ALGORITHM || header.typ !== TYP) return { ok: false, text: "The signature is of another kind than a config's." };
  const jwk = config.keys.find((key) => key.kid === header.kid);
  if (!jwk) return { ok: false, text: "It is signed with a key that this site does not publish." };
  let fits;
  try {
    fits = await isSignedBy(subtle, jwk, config.jws);
  } catch {
    return { ok: null, text: "This browser cannot check Ed25519 signatures. “beeyard verify FILE” can, in a terminal." };
  }
  if (!fits) return { ok: false, text: "The signature does not fit these bytes: they were changed after they were signed." };
  const body = Object.fromEntries(Object.entries(payload).filter(([name]) => !CLAIMS.has(name)));
  if (body.run !== config.run || body.version !== config.version || !isSame(body, config.shown)) {
    return { ok: false, text: "The signature is good, but of other values than this page shows." };
  }
  const until = new Date(payload.exp * 1000).toISOString().slice(0, 10);
  if (payload.exp * 1000 < now) return { ok: null, text: `The signature is good and ran out on ${until}: machines refuse it by now.` };
  return { ok: true, text: `Checked in this browser: the site's key ${header.kid.slice(0, 8)}… signed exactly these values; valid until ${until}. Your own machine pins that key when it first joins.` };
}

/** @param {HTMLElement} place */
async function show(place) {
  const root = place.parentElement || document;
  const say = (/** @type {Verdict} */ { ok, text }) => {
    const chip = /** @type {HTMLElement} */ (place.querySelector("[data-verify-chip]"));
    chip.textContent = ok ? "Signature checked" : ok === false ? "Signature does not fit" : "Not checked here";
    chip.dataset.tone = ok ? "ok" : ok === false ? "bad" : "idle";
    /** @type {HTMLElement} */ (place.querySelector("[data-verify-text]")).textContent = text;
  };
  try {
    const answer = await fetch(place.dataset.keys || "", { cache: "no-cache" });
    const { keys } = await answer.json();
    const config = {
      jws: root.querySelector("[data-verify-jws]")?.textContent?.trim() || "",
      shown: JSON.parse(root.querySelector("[data-verify-body]")?.textContent || "null"),
      run: place.dataset.run || "", version: Number(place.dataset.version), keys,
    };
    say(await configCheck(config, globalThis.crypto?.subtle, Date.now()));
  } catch {
    say({ ok: null, text: "The site's keys could not be fetched, so nothing was checked." });
  }
}

function showAll() {
  for (const place of document.querySelectorAll("[data-verify]")) void show(/** @type {HTMLElement} */ (place));
}

if (globalThis.document) {
  showAll();
  // Another config came into the page: what was checked is not what is shown.
  document.addEventListener("partschange", (event) => /** @type {CustomEvent} */ (event).detail.includes("config") && showAll());
}
