import assert from "node:assert/strict";
import { test } from "node:test";
import { configCheck } from "../../static/js/verify.js";

const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const head = part({ alg: "Ed25519", typ: "beeyard-config+jws", kid: "k" }), body = part({ run: "demo", version: 1 });
const subtle = { importKey: async () => ({}), verify: async () => false };
const config = (signature) => ({
  jws: [head, body, ...signature].join("."), shown: {}, run: "demo", version: 1, keys: [{ kid: "k", kty: "OKP", crv: "Ed25519", x: "AA" }],
});

test("a signature that is no base64, or is missing, is an invalid one and not one that cannot be checked", async () => {
  for (const signature of [["%%%"], ["A"], []]) {
    assert.equal((await configCheck(config(signature), subtle, 0)).ok, false, String(signature));
  }
});

test("a browser without Ed25519 says that it cannot check", async () => {
  const old = { ...subtle, importKey: async () => Promise.reject(new Error("unknown")) };
  assert.equal((await configCheck(config(["AAAA"]), old, 0)).ok, null);
});
