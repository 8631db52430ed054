import { Server } from "node:net";
import type { Logger } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http, metrics } from "@tritonjs/http";
import { expect, it, onTestFinished, vi } from "vitest";
import { openTriton } from "./support/open-triton.js";

it("a connection that cannot be accepted leaves each frontend listening and logs one warning", async () => {
  const listening = new Set<Server>();
  const { listen } = Server.prototype;
  const spy = vi.spyOn(Server.prototype, "listen").mockImplementation(function (
    this: Server,
    ...args: Parameters<Server["listen"]>
  ) {
    listening.add(this);
    return listen.apply(this, args);
  });
  onTestFinished(() => spy.mockRestore());
  const warnings: string[] = [];
  const logger: Logger = { error() {}, warn: (line) => void warnings.push(line), info() {}, debug() {} };
  const triton = openTriton({ logger });
  const { addresses } = await triton.serve({
    frontends: [http({ port: 0 }), metrics({ port: 0 }), grpc({ port: 0 })],
  });
  const fault = Object.assign(new Error("accept EMFILE"), { code: "EMFILE" });
  for (const server of listening) for (let i = 0; i < 3; i++) server.emit("error", fault);
  expect(warnings.filter((line) => line.includes("EMFILE")).sort()).toEqual([
    "grpc cannot accept connections: accept EMFILE",
    "http cannot accept connections: accept EMFILE",
    "metrics cannot accept connections: accept EMFILE",
  ]);
  expect((await fetch(`${addresses.http!.url}/v2/health/live`)).status).toBe(200);
});
