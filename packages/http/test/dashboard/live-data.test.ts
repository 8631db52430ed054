import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { sample, Triton } from "@tritonjs/core";
import { toNodeListener } from "@tritonjs/http";
import { dashboard } from "@tritonjs/http/dashboard";
import { rollouts } from "@tritonjs/operations/rollout";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { Events } from "./support/events.js";
import { openDashboard, sendByDeadlines } from "./support/open-dashboard.js";

const NO_OUTCOMES = { in_time: 0, late: 0, hopeless: 0, expired: 0, queue_full: 0 };

describe("a viewer", () => {
  it("gets the models, their rates and their latencies", async () => {
    const { double, root } = await openDashboard();
    const events = await Events.open(`${root}/api/events/double/1`);
    const { columns, points } = await events.next("history");
    expect(points.length).toBeGreaterThan(0);
    await events.next("summary");
    await double.inferSample({ x: [1, 2] });
    const summary = await events.next("summary", ({ models }) => models[0]?.counts.succeeded === 1);
    const [row] = summary.models;
    expect(row).toMatchObject({ name: "double", version: 1, state: "READY", reason: "", bound: true });
    expect(row.counts).toMatchObject({ instances: 1, healthyInstances: 1 });
    const point = (column: string) => row.point[columns.indexOf(column)];
    expect(point("requestsPerSecond")).toBeGreaterThan(0);
    for (const part of ["request", "queue", "compute"]) expect(point(`${part}P99`)).toBeGreaterThan(0);
    expect(summary.process.residentBytes).toBeGreaterThan(1e6);
  });

  it("gets the detail of the model that it has chosen, with the texts of errors", async () => {
    const { triton, double, root } = await openDashboard();
    const events = await Events.open(`${root}/api/events/double/1`);
    await double.inferSample({ x: [1] });
    const failing = () => double.inferSample({ x: [-1] }).catch(() => {});
    await failing();
    await failing();
    await triton.infer("double", { wrong: [1] }).catch(() => {});
    const detail = await events.next("detail", ({ errors }) => errors.length === 2);
    expect(detail.errors.at(-1)).toMatchObject({
      code: "INTERNAL",
      message: expect.stringContaining("<img src=x onerror=alert(1)>"),
      count: 2,
    });
    expect(detail.errors[0].code).toBe("INVALID_ARG");
    expect(detail.failures.BACKEND).toBe(2);
    expect(detail.statistics.batchStats[0]).toMatchObject({ batchSize: 1, computeInfer: { count: 3 } });
    expect(Object.values(detail.queue.cuts as Record<string, number>).reduce((a, b) => a + b)).toBe(3);
    expect(detail.instances).toMatchObject([{ name: "double_0", healthy: true, busy: false }]);
  });

  it("gets what became of requests with deadlines, by class", async () => {
    const { triton, root } = await openDashboard();
    await sendByDeadlines(triton);
    const events = await Events.open(`${root}/api/events/squares/1`);
    const { deadlines } = await events.next("detail");
    expect(deadlines).toEqual([
      { level: 1, caller: "gold", outcomes: { ...NO_OUTCOMES, in_time: 6 }, causes: {} },
      {
        level: 2,
        caller: "<b>slow</b>",
        outcomes: { ...NO_OUTCOMES, hopeless: 3 },
        causes: { slow_model: 3 },
      },
    ]);
    const without = await Events.open(`${root}/api/events/double/1`);
    expect((await without.next("detail")).deadlines).toEqual([]);
  });

  it("gets the rollouts with both versions side by side", async () => {
    const updates = rollouts();
    const { triton, double, root } = await openDashboard({ extensions: [updates] });
    triton.bind({
      modelName: "double",
      modelVersion: 2,
      inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
      inferFunc: (requests) => requests.map(({ inputs }) => ({ y: inputs.x! })),
      config: { maxBatchSize: double.config().maxBatchSize },
    });
    await triton.ready();
    await updates.start("double", { from: 1, to: 2, share: 40 });
    const events = await Events.open(`${root}/api/events`);
    const { rollouts: shown } = await events.next("summary", ({ rollouts }) => rollouts.length === 1);
    expect(shown[0]).toMatchObject({ model: "double", from: 1, to: 2, share: 40, state: "running" });
    expect(shown[0].verdict).toMatchObject({ old: { version: 1 }, new: { version: 2 }, reasons: [] });
    expect(await (await fetch(`${root}/assets/rollouts.js`)).text()).toContain("Rollout of");
  });

  it("gets the log so far, and then only new messages", async () => {
    const { triton, root } = await openDashboard();
    triton.server.log.warning("before <b>");
    const events = await Events.open(`${root}/api/events`);
    const before = await events.next("log");
    expect(before.at(-1)).toMatchObject({ level: "warning", message: "before <b>" });
    triton.server.log.info("after");
    expect((await events.next("log")).map(({ message }: { message: string }) => message)).toEqual(["after"]);
  });

  it("changes the number of instances", async () => {
    const { double, root } = await openDashboard();
    const change = (body: string, name = "double") =>
      fetch(`${root}/api/instances/${name}/1`, { method: "POST", body });
    expect((await change('{"count":2}')).status).toBe(200);
    expect(double.instances()).toHaveLength(2);
    for (const bad of ["", '{"count":0}', '{"count":1.5}', '{"count":257}', "2"])
      expect((await change(bad)).status).toBe(400);
    expect((await change('{"count":2}', "nobody")).status).toBe(404);
    expect(double.instances()).toHaveLength(2);
  });

  it("gets the live sequences of a model", async () => {
    const { triton, root } = await openDashboard();
    const echo = triton.bind({
      modelName: "stateful",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: (requests) => requests.map(({ inputs }) => ({ y: inputs.x })),
      config: { sequence: { maxSequenceIdleMicroseconds: 60_000_000 }, maxBatchSize: 1 },
    });
    await echo.inferSample({ x: [1] }, { sequence: { id: 7, start: true } });
    const events = await Events.open(`${root}/api/events/stateful/1`);
    expect((await events.next("detail")).sequences).toEqual({ inSlots: 1, inBacklog: 0 });
    await echo.inferSample({ x: [1] }, { sequence: { id: 7, end: true } });
    await events.next("detail", ({ sequences }) => sequences.inSlots === 0);
  });

  it("is let go when the server closes", async () => {
    const { triton, root } = await openDashboard();
    const events = await Events.open(`${root}/api/events`);
    await events.next("summary");
    const closed = triton.close();
    await events.ended();
    await closed;
  });
});

describe("without a viewer", () => {
  it("the server is not sampled, and no latencies are counted", async () => {
    const { triton, double, root } = await openDashboard();
    const inspector = serviceOf(triton).inspector!;
    const watched = () => inspector.models()[0]!.counters!.latencies !== undefined;
    await double.inferSample({ x: [1] });
    await (await fetch(`${root}/`)).text();
    await (await fetch(`${root}/api/info`)).text();
    expect(watched()).toBe(false);
    const one = await Events.open(`${root}/api/events`);
    const other = await Events.open(`${root}/api/events`);
    await one.next("summary");
    await other.next("summary");
    expect(watched()).toBe(true);
    one.leave();
    await other.next("summary");
    expect(watched()).toBe(true);
    other.leave();
    await expect.poll(watched).toBe(false);
  });
});

describe("access to the data", () => {
  it("needs the token where management does; the page itself does not", async () => {
    const { triton, root } = await openDashboard({ security: { accessToken: "secret" } });
    expect((await fetch(`${root}/`)).status).toBe(200);
    for (const path of ["api/info", "api/events", "v2/models/stats"]) {
      const refused = await fetch(`${root}/${path}`);
      expect([path, refused.status]).toEqual([path, 403]);
      expect(await refused.text()).toContain("expecting header 'triton-access-token'");
    }
    const change = await fetch(`${root}/api/instances/double/1`, { method: "POST", body: '{"count":2}' });
    expect(change.status).toBe(403);
    const headers = { "triton-access-token": serviceOf(triton).accessToken! };
    expect((await fetch(`${root}/api/info`, { headers })).status).toBe(200);
    await (await Events.open(`${root}/api/events`, headers)).next("summary");
  });

  it("is refused to pages of other sites", async () => {
    const { root } = await openDashboard();
    // fetch() sets this header itself, as browsers do.
    const status = await new Promise((resolve, reject) => {
      request(`${root}/v2/repository/index`, { method: "POST", headers: { "sec-fetch-site": "cross-site" } })
        .on("response", (response) => resolve(response.resume().statusCode))
        .on("error", reject)
        .end();
    });
    expect(status).toBe(403);
  });
});

describe("the page", () => {
  it("comes with a strict content security policy and no inline script", async () => {
    const { root } = await openDashboard();
    const response = await fetch(`${root}/`);
    const policy = response.headers.get("content-security-policy")!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).not.toContain("unsafe");
    const page = await response.text();
    expect(page).not.toMatch(/<script(?![^>]*\ssrc=)|\son\w+=|style=|https?:\/\//);
    for (const [, asset] of page.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)) {
      const file = await fetch(`${root}/${asset}`);
      expect([asset, file.status]).toEqual([asset, 200]);
      await file.arrayBuffer();
    }
  });

  it("imports only files that are served, and nothing from elsewhere", async () => {
    const { root } = await openDashboard();
    const seen = new Set(["main.js"]);
    for (const name of seen) {
      const file = await fetch(`${root}/assets/${name}`);
      expect([name, file.status]).toEqual([name, 200]);
      for (const [, imported] of (await file.text()).matchAll(/from "\.\/([^"]+)"/g)) seen.add(imported!);
    }
    expect(seen.size).toBeGreaterThan(10);
    for (const outside of ["../package.json", "..%2fpackage.json", "constructor"]) {
      const { status } = await fetch(`${root}/assets/${outside}`);
      expect([outside, status]).toEqual([outside, 404]);
    }
  });

  it("is pointed to at the root of the HTTP port, whose other paths stay as they were", async () => {
    const { root, addresses } = await openDashboard();
    const landing = await fetch(`${addresses.http}/`);
    expect(await landing.text()).toContain(`<a href="${root}/">`);
    expect((await fetch(`${addresses.http}/dashboard/`)).status).toBe(404);
    expect((await fetch(`${addresses.http}/v2/health/live`)).status).toBe(200);
    expect(await (await fetch(`${addresses.metrics}/metrics`)).text()).toContain("nv_inference_count");
    const followed = await fetch(`${addresses.metrics}/`);
    expect([followed.url, followed.status]).toEqual([`${root}/`, 200]);
  });
});

describe("many models", () => {
  it("a viewer gets the rows of all models once, then those that changed, and all again when one comes", async () => {
    const { triton, double, root } = await openDashboard();
    const bind = (modelName: string) =>
      triton.bind({
        modelName,
        inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
        outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
        inferFunc: sample(({ x }) => ({ y: x })),
      });
    for (let i = 0; i < 1200; i++) bind(`m${i}`);
    await triton.ready();
    const events = await Events.open(`${root}/api/events/double/1`);
    const first = await events.next("summary");
    expect([first.hasAll, first.models.length]).toEqual([true, 1201]);
    // The rate of the first sample is not known, so the second changes all rows.
    await events.next("summary", ({ hasAll, models }) => !hasAll && models.length === 0);
    await double.inferSample({ x: [1] });
    const changed = await events.next("summary", ({ models }) => models.length > 0);
    expect(changed.hasAll).toBe(false);
    expect(changed.models.map(({ name }: { name: string }) => name)).toEqual(["double"]);
    bind("late");
    const all = await events.next("summary", ({ hasAll }) => hasAll);
    expect(all.models).toHaveLength(1202);
    // The plot of the chosen model goes on, whether or not its row has changed.
    const { point } = await events.next("detail");
    expect((await events.next("detail")).point[0]).toBeGreaterThan(point[0]);
  });
});

describe("mounting", () => {
  it("the dashboard works in a server of the program, under its path", async () => {
    const { triton, double } = await openDashboard();
    const page = dashboard({ path: "/ops/models", intervalMs: 20 }).open(triton);
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
});
