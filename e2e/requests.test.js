// openid-client as the judge of pushed and signed authorization requests and of
// signed answers.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as client from "openid-client";
import { Browser } from "./browser.js";
import { start } from "./versola.js";

const callback = "http://localhost:9999/callback";
const insecure = { execute: [client.allowInsecureRequests] };
let versola, keys;

before(async () => {
  versola = await start();
  keys = {};
  for (const [alg, name] of [["ES256", { name: "ECDSA", namedCurve: "P-256" }], ["PS256", { name: "RSA-PSS", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" }]]) {
    const pair = await crypto.subtle.generateKey(name, true, ["sign", "verify"]);
    const { kty, crv, x, y, n, e } = await crypto.subtle.exportKey("jwk", pair.publicKey);
    keys[alg] = { pair, jwks: { keys: [JSON.parse(JSON.stringify({ kty, crv, x, y, n, e, alg, kid: alg, use: "sig" }))] } };
  }
  const web = {
    kind: "client", tenant: "demo", client_kind: "web", auth_method: "client_secret_basic", grant_types: ["authorization_code", "refresh_token"],
    redirect_uris: [callback], scopes: ["openid", "profile", "email"],
  };
  await versola.declare([
    { ...web, id: "plain", secret: "plain-secret" },
    { ...web, id: "pushing", secret: "pushing-secret", require_pushed_authorization_requests: true },
    ...["ES256", "PS256"].map((alg) => ({
      ...web, auth_method: "private_key_jwt", jwks: keys[alg].jwks, id: `signing-${alg.toLowerCase()}`, request_object_signing_alg: alg, require_signed_request_object: true,
      authorization_signed_response_alg: alg, require_pushed_authorization_requests: true,
    })),
    { ...web, id: "by-value", secret: "by-value-secret", request_object_signing_alg: "ES256", jwks: keys.ES256.jwks },
  ]);
});
after(() => versola?.stop());

const discover = (id, auth, metadata) => client.discovery(new URL(versola.issuer), id, metadata, auth, insecure);
const secret = (id) => client.ClientSecretBasic(`${id}-secret`);

// begin makes the parameters of a request and what its answer is checked by.
async function begin(changes) {
  const pkceCodeVerifier = client.randomPKCECodeVerifier();
  const checks = { pkceCodeVerifier, expectedState: client.randomState(), expectedNonce: client.randomNonce(), idTokenExpected: true };
  const parameters = {
    redirect_uri: callback, scope: "openid email", code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: "S256",
    state: checks.expectedState, nonce: checks.expectedNonce, ...changes,
  };
  return { checks, parameters };
}

// finish exchanges the answer at the redirect URI and reads who it was.
async function finish(config, answer, checks, options) {
  assert.ok(answer.left, `the browser stayed: ${answer.status} ${answer.url} ${answer.body}`);
  const tokens = await client.authorizationCodeGrant(config, answer.url, checks, undefined, options);
  const person = await client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub, options);
  assert.equal(person.email, "alice@example.com");
  return tokens;
}

test("a pushed request, required of the client", async () => {
  const config = await discover("pushing", secret("pushing"));
  const { checks, parameters } = await begin();
  const at = await client.buildAuthorizationUrlWithPAR(config, parameters);
  assert.deepEqual([...at.searchParams.keys()].sort(), ["client_id", "request_uri"]);
  await new Browser(versola.issuer).go(at); // opened, and left
  await finish(config, await new Browser(versola.issuer).signIn(at), checks);
  const again = await new Browser(versola.issuer).go(at);
  assert.equal(again.status, 400);
  assert.match(again.body, /invalid_request_uri/);
  const unpushed = await new Browser(versola.issuer).go(client.buildAuthorizationUrl(config, parameters));
  await assert.rejects(client.authorizationCodeGrant(config, unpushed.url, checks), { error: "invalid_request" });
  await assert.rejects(client.buildAuthorizationUrlWithPAR(config, { ...parameters, scope: "openid admin" }), { error: "invalid_scope" });
});

test("a pushed request that binds the code to a key", async () => {
  const config = await discover("pushing", secret("pushing"));
  const { checks, parameters } = await begin();
  const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair("ES256"));
  const at = await client.buildAuthorizationUrlWithPAR(config, parameters, { DPoP });
  const answer = await new Browser(versola.issuer).signIn(at);
  const other = client.getDPoPHandle(config, await client.randomDPoPKeyPair("ES256"));
  await assert.rejects(client.authorizationCodeGrant(config, answer.url, checks, undefined, { DPoP: other }), { error: "invalid_grant" });
  const tokens = await finish(config, answer, checks, { DPoP });
  assert.equal(tokens.token_type, "dpop");
});

test("a signed request by value", async () => {
  const config = await discover("by-value", secret("by-value"));
  const { checks, parameters } = await begin();
  const at = await client.buildAuthorizationUrlWithJAR(config, parameters, keys.ES256.pair.privateKey);
  await finish(config, await new Browser(versola.issuer).signIn(at), checks);
  const stranger = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]);
  const refused = await new Browser(versola.issuer).go(await client.buildAuthorizationUrlWithJAR(config, parameters, stranger.privateKey));
  assert.equal(refused.status, 400);
  assert.match(refused.body, /invalid_request_object/);
});

for (const mode of ["jwt", "query.jwt", "form_post.jwt", "fragment.jwt"]) {
  test(`a signed answer by ${mode}`, async () => {
    const config = await discover("plain", secret("plain"));
    const jarm = await discover("plain", secret("plain"), { authorization_signed_response_alg: "RS256" });
    client.useJwtResponseMode(jarm);
    const { checks, parameters } = await begin({ response_mode: mode });
    const at = client.buildAuthorizationUrl(config, parameters);
    let answer = await new Browser(versola.issuer).signIn(at);
    if (mode === "form_post.jwt") {
      const posted = await new Browser(versola.issuer).submit(answer, { response: "" }).catch((e) => e);
      assert.ok(posted.left, posted);
      const body = [...answer.body.matchAll(/name="response" value="([^"]*)"/g)][0][1];
      const request = new Request(callback, { method: "POST", body: new URLSearchParams({ response: body }) });
      const tokens = await client.authorizationCodeGrant(jarm, request, checks);
      assert.ok(tokens.id_token);
      return;
    }
    if (mode === "fragment.jwt") {
      answer.url.search = answer.url.hash.slice(1);
      answer.url.hash = "";
    }
    assert.deepEqual([...answer.url.searchParams.keys()], ["response"]);
    await finish(jarm, answer, checks);
  });
}

for (const alg of ["ES256", "PS256"]) {
  test(`message signing with ${alg}: a signed request, pushed with private_key_jwt, and a signed answer`, async () => {
    const { privateKey } = keys[alg].pair;
    const config = await discover(`signing-${alg.toLowerCase()}`, client.PrivateKeyJwt({ key: privateKey, kid: alg }), { authorization_signed_response_alg: alg, id_token_signed_response_alg: "RS256" });
    client.useJwtResponseMode(config);
    const { checks, parameters } = await begin();
    const push = async (more) => {
      const signed = await client.buildAuthorizationUrlWithJAR(config, { ...parameters, ...more }, { key: privateKey, kid: alg });
      return client.buildAuthorizationUrlWithPAR(config, signed.searchParams);
    };
    await finish(config, await new Browser(versola.issuer).signIn(await push()), checks);
    const refused = await new Browser(versola.issuer).go(await push({ prompt: "none" }));
    await assert.rejects(client.authorizationCodeGrant(config, refused.url, checks), { error: "login_required" });
    await assert.rejects(client.buildAuthorizationUrlWithPAR(config, parameters), { error: "invalid_request" });
  });
}
