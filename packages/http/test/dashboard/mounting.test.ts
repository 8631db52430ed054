import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Triton } from "@tritonjs/core";
import { toNodeListener } from "@tritonjs/http";
import { dashboard } from "@tritonjs/http/dashboard";
import { expect, it, onTestFinished } from "vitest";
import { Events } from "./support/events.js";
import { openDashboard } from "./support/open-dashboard.js";

it("the dashboard works in a server of the program, under its path", async () => {
  const { triton, double } = await openDashboard();
  const page = dashboard({ path: "/ops/models", intervalMs: 20 }).open(triton.service);
  const server = createServer(toNodeListener(page)).listen(0);
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const root = `http://localhost:${(server.address() as AddressInfo).port}/ops/models`;
  const followed = await fetch(root);
  expect([followed.url, followed.status]).toEqual([`${root}/`, 200]);
  const answer = await fetch(`${root}/v2/models/double/infer`, {
    method: "POST",
    body: '{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1],"data":[4]}]}',
  });
  expect(await answer.json()).toMatchObject({ outputs: [{ data: [8] }] });
  const events = await Events.open(`${root}/api/events/double/1`);
  expect(await events.next("detail")).toMatchObject({ statistics: { inferenceCount: 1 } });
  events.leave();
  expect(double.statistics().inferenceCount).toBe(1);
});

it("`new Triton({ dashboard: true })` serves it by default on the metrics port, or without metrics on that of HTTP", async () => {
  const ports = { httpPort: 0, metricsPort: 0, allowGrpc: false, dashboard: true };
  for (const allowMetrics of [true, false]) {
    const triton = new Triton({ ...ports, allowMetrics });
    onTestFinished(() => triton.close());
    const { addresses } = await triton.serve();
    const { url } = addresses[allowMetrics ? "metrics" : "http"]!;
    expect((await fetch(`${url}/dashboard/`)).headers.get("content-type")).toContain("text/html");
    // The data need the token.
    expect((await fetch(`${url}/dashboard/api/info`)).status).toBe(403);
    await triton.close();
  }
});

it("a path that could not match is refused", () => {
  for (const path of ["", "/", "dashboard", "/dashboard/", "/a?b"]) {
    expect(() => dashboard({ path })).toThrow('dashboard path: expected a path such as "/dashboard"');
  }
});
