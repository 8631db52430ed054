import { batch, Tensor, TritonError } from "@tritonjs/core";
import { recordScheduling, Tape, timelineOf } from "@tritonjs/operations/time-travel";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import { sendRequest } from "../../../../test/support/send-request.js";
import { Events } from "./support/events.js";
import { repositoryOf } from "./support/model-repository.js";
import { openDashboard } from "./support/open-dashboard.js";

const x = [{ name: "x", dtype: "INT32", shape: [1] }] as const;
const y = [{ name: "y", dtype: "INT32", shape: [1] }] as const;

describe("a viewer of the dashboard", () => {
  it("gets the use of the response cache", async () => {
    const { triton, root } = await openDashboard({ responseCache: { byteSize: 1024 * 1024 } });
    const cached = triton.bind({
      modelName: "cached",
      inputs: x,
      outputs: y,
      inferFunc: batch(({ x }) => ({ y: x })),
      config: { maxBatchSize: 4, responseCache: true },
    });
    const events = await Events.open(`${root}/api/events/cached/1`);
    for (let i = 0; i < 3; i++) await cached.inferSample({ x: [7] });
    const { cache } = await events.next("summary", ({ cache }) => cache?.lookups === 3);
    expect(cache).toMatchObject({ entries: 1, hits: 2, evictions: 0 });
    expect(cache.utilization).toBeGreaterThan(0);
    const { statistics } = await events.next("detail", ({ statistics }) => statistics !== undefined);
    expect(statistics.inferenceStats).toMatchObject({ cacheHit: { count: 2 }, cacheMiss: { count: 1 } });
  });

  it("downloads what the server has recorded of its scheduling", async () => {
    const { root } = await openDashboard();
    expect(await (await fetch(`${root}/api/info`)).json()).toMatchObject({ isRecording: false });
    const none = await fetch(`${root}/api/recording`);
    expect([none.status, await none.json()]).toEqual([
      404,
      { error: "the server records no scheduling: start it with recordScheduling() or --scheduling-ring" },
    ]);
    const recorded = await openDashboard({ extensions: [recordScheduling({ keep: "last" })] });
    await recorded.double.inferSample({ x: [1] }, { id: "one" });
    const answer = await fetch(`${recorded.root}/api/recording`);
    expect(answer.headers.get("content-type")).toBe("application/octet-stream");
    const { requests, batches } = timelineOf(Tape.from(new Uint8Array(await answer.arrayBuffer())));
    expect(requests).toMatchObject([{ id: "one", model: "double", batch: 0 }]);
    expect(batches).toMatchObject([{ instance: "double_0", requests: [0] }]);
  });

  it("needs the header of restricted groups for a recording", async () => {
    const restrictions = { statistics: { header: "x-key", value: "secret" } };
    const extensions = [recordScheduling()];
    const { root } = await openDashboard({ extensions }, { restrictions });
    expect((await fetch(`${root}/api/recording`)).status).toBe(403);
    expect((await fetch(`${root}/api/recording`, { headers: { "x-key": "secret" } })).status).toBe(200);
  });

  it("has no cache on a server without one", async () => {
    const { root } = await openDashboard();
    const events = await Events.open(`${root}/api/events`);
    expect((await events.next("summary")).cache).toBeNull();
  });

  it("sees that an instance died and was restarted", async () => {
    const { triton, root } = await openDashboard();
    const mortal = triton.bind({
      modelName: "mortal",
      inputs: x,
      outputs: y,
      inferFunc: new URL("../../../core/test/behaviours/fixtures/ends-on-demand.mjs", import.meta.url),
      config: { maxBatchSize: 1 },
    });
    await mortal.ready();
    const events = await Events.open(`${root}/api/events/mortal/1`);
    expect((await events.next("detail")).instances).toMatchObject([{ healthy: true, restarts: 0 }]);
    await expect(mortal.inferSample({ x: [-1] })).rejects.toThrow("crashed");
    const { instances, errors } = await events.next("detail", ({ instances }) => instances[0].restarts === 1);
    expect(instances).toMatchObject([{ healthy: true, isolation: "worker" }]);
    expect(errors[0].message).toContain("exited with code 3");
  });

  it("gets errors inside of streams, whose requests go on", async () => {
    const { triton, root } = await openDashboard();
    const streaming = triton.bind({
      modelName: "streaming",
      inputs: x,
      outputs: y,
      async *inferFunc() {
        yield [new Error("no token this time")];
        yield [{ y: [2] }];
      },
      config: { batching: false, decoupled: true },
    });
    await streaming.ready();
    const events = await Events.open(`${root}/api/events/streaming/1`);
    const inputs = new Map([["x", Tensor.fromElements("INT32", [1], Int32Array.of(1))]]);
    const seen: unknown[] = [];
    await new Promise<void>((resolve) => {
      sendRequest(serviceOf(triton).model("streaming", ""), { inputs }, (outcome, final) => {
        if (outcome !== undefined) seen.push(TritonError.is(outcome) ? outcome.message : outcome.outputs);
        if (final) resolve();
      });
    });
    expect(seen).toEqual(["no token this time", expect.any(Map)]);
    const { errors } = await events.next("detail", ({ errors }) => errors.length > 0);
    expect(errors).toMatchObject([{ message: expect.stringContaining("no token this time"), count: 1 }]);
  });

  it("loads and unloads models of a repository", async () => {
    const modelRepository = await repositoryOf("later");
    const { triton, root } = await openDashboard({ modelRepository, modelControlMode: "explicit" });
    const post = (operation: string) =>
      fetch(`${root}/v2/repository/models/later/${operation}`, { method: "POST", body: "{}" });
    const stateOf = (data: { models: { name: string; state: string }[] }) =>
      data.models.find(({ name }) => name === "later")?.state;
    expect((await post("load")).status).toBe(200);
    const events = await Events.open(`${root}/api/events`);
    const loaded = await events.next("summary", (data) => stateOf(data) === "READY");
    const row = loaded.models.find(({ name }: { name: string }) => name === "later");
    expect(row.bound).toBe(false);
    expect((await triton.infer("later", { x: [4] })).y?.data[0]).toBe(8);
    expect((await post("unload")).status).toBe(200);
    await events.next("summary", (data) => stateOf(data) === "UNAVAILABLE");
  });

  it("cannot load models of a server whose models are not loaded explicitly", async () => {
    const { root } = await openDashboard({ modelRepository: await repositoryOf("fixed") });
    const info = await (await fetch(`${root}/api/info`)).json();
    expect(info).toMatchObject({ modelControlMode: "none" });
    const answer = await fetch(`${root}/v2/repository/models/fixed/unload`, { method: "POST", body: "{}" });
    expect([answer.status, await answer.text()]).toEqual([
      503,
      expect.stringContaining("explicit model load / unload is not allowed"),
    ]);
  });

  it("is told why the number of instances cannot change", async () => {
    const { triton, root } = await openDashboard();
    triton.bindEnsemble({
      modelName: "whole",
      inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
      config: { maxBatchSize: 8 },
      steps: [{ modelName: "double", inputMap: { x: "x" }, outputMap: { y: "y" } }],
    });
    await triton.ready();
    const change = (name: string, body: string) =>
      fetch(`${root}/api/instances/${name}/1`, { method: "POST", body });
    const refused = await change("whole", '{"count":2}');
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("instances")]);
  });
});
