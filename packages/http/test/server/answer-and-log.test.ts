import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const path = "/v2/models/m/infer";
const body = '{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}';

/** A server with a logger, and its log lines. */
async function startLogged() {
  const lines: string[] = [];
  const stream = new Writable({
    write(line, _encoding, written) {
      lines.push(String(line));
      written();
    },
  });
  const port = await startHttp(new IdentityService(identityConfig("m", "INT32")), { logger: { stream } });
  return { port, lines };
}

describe("a server with a logger", () => {
  it("answers like one without a logger", async () => {
    const plain = await startHttp(new IdentityService(identityConfig("m", "INT32")));
    const { port } = await startLogged();
    for (const request of [
      { path, body },
      { path, body: "{" },
      { path: "/v2/models/m", method: "GET" },
      { path: "/other", method: "GET" },
      { path: "/v2/%", method: "GET" },
      { path, method: "PROPFIND" },
    ]) {
      const [logged, direct] = [await send(port, request), await send(plain, request)];
      const said = ({ status, text, headers }: typeof logged) => [status, text, headers["content-type"]];
      expect(said(logged)).toEqual(said(direct));
    }
  });

  it("logs each request", async () => {
    const { port, lines } = await startLogged();
    await send(port, { path, body });
    const [first] = lines.map((line) => JSON.parse(line));
    expect(first).toMatchObject({ msg: "incoming request", req: { method: "POST", url: path } });
  });
});
