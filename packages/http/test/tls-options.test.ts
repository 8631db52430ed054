import { request } from "node:https";
import { connect } from "node:net";
import type { ConnectionOptions } from "node:tls";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Certificates, makeCertificates } from "../../../test/support/certificates.js";
import { http, metrics, type TlsOptions } from "../src/index.js";
import { IdentityService, identityConfig } from "./support/identity-service.js";

let certificates: Certificates;

beforeAll(async () => {
  certificates = await makeCertificates();
});

async function start(tls: TlsOptions) {
  const frontend = http({ port: 0, tls });
  onTestFinished(() => frontend.stop());
  const { port, url } = await frontend.start({ service: new IdentityService(identityConfig("m", "INT32")) });
  return { port, url, frontend };
}

function get(port: number, path: string, options: ConnectionOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "localhost", port, path, ...options }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    });
    sent.on("error", reject).end();
  });
}

describe("TLS", () => {
  it("serves clients that trust the certificate", async () => {
    const { ca, server } = certificates;
    const { port, url } = await start(server);
    expect(url).toBe(`https://localhost:${port}`);
    expect(await get(port, "/v2/health/live", { ca })).toBe(200);
    await expect(get(port, "/v2", {})).rejects.toThrow("certificate");
    await expect(fetch(`http://localhost:${port}/v2`)).rejects.toThrow();
  });

  it("requires certificates signed by its roots for mutual TLS", async () => {
    const { ca, server, client, stranger } = certificates;
    const { port } = await start({ ...server, ca });
    expect(await get(port, "/v2/health/live", { ca, ...client })).toBe(200);
    await expect(get(port, "/v2/health/live", { ca })).rejects.toThrow();
    await expect(get(port, "/v2/health/live", { ca, ...stranger })).rejects.toThrow();
  });

  it("may request a certificate without requiring it", async () => {
    const { ca, server } = certificates;
    const { port } = await start({ ...server, ca, rejectUnauthorized: false });
    expect(await get(port, "/v2/health/live", { ca })).toBe(200);
  });

  it("covers the metrics port", async () => {
    const { ca, server } = certificates;
    const frontend = metrics({ port: 0, tls: server });
    onTestFinished(() => frontend.stop());
    const { port } = await frontend.start({ service: new IdentityService() });
    expect(await get(port, "/metrics", { ca })).toBe(200);
  });

  it("rejects invalid certificates and keys of another certificate", async () => {
    const { server, client } = certificates;
    const code = "INVALID_ARG";
    await expect(start({ cert: "x", key: server.key })).rejects.toMatchObject({ code });
    await expect(start({ cert: server.cert, key: client.key })).rejects.toMatchObject({ code });
  });

  it("stops with connections that are open, idle, or in their handshake", async () => {
    const { ca, server } = certificates;
    const { port, frontend } = await start(server);
    const silent = connect(port, "localhost");
    const closed = new Promise((resolve) => silent.once("close", resolve));
    silent.on("error", () => {});
    expect(await get(port, "/v2/health/live", { ca })).toBe(200);
    await frontend.stop();
    await closed;
  });
});
