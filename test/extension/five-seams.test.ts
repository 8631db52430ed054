import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { fetchHandler } from "@tritonjs/http/fetch";
import { describe, expect, it, vi } from "vitest";
import { bindShifts, shift } from "./shift-extension.js";

/** Infers, and asks routes of the management. */
interface Way {
  /** Returns the version that answered. */
  ask(x: number, parameters?: Record<string, boolean>): Promise<number>;
  manage(method: "GET" | "POST"): Promise<Response>;
}

const WAYS: Record<string, (triton: Triton) => Promise<Way>> = {
  async "in process"(triton) {
    await triton.ready();
    const handler = fetchHandler(triton);
    return {
      async ask(x, parameters = {}) {
        const { y } = await triton.infer("m", { x: [[x]] }, { parameters });
        return Number(y!.data[0]);
      },
      manage: async (method) => handler(new Request("http://localhost/v2/models/m/shift", { method })),
    };
  },
  async "over HTTP"(triton) {
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
    const url = `${addresses.http!.url}/v2/models/m`;
    return {
      async ask(x, parameters = {}) {
        const inputs = [{ name: "x", datatype: "INT32", shape: [1, 1], data: [x] }];
        const body = JSON.stringify({ inputs, parameters });
        const answer = await fetch(`${url}/infer`, { method: "POST", body });
        const { outputs } = (await answer.json()) as { outputs: { data: number[] }[] };
        return outputs[0]!.data[0]!;
      },
      manage: (method) => fetch(`${url}/shift`, { method }),
    };
  },
};

describe("an extension that uses all five seams at once", () => {
  it.each(Object.entries(WAYS))("batches, routes, observes, loads and serves %s", async (_, open) => {
    const events: string[] = [];
    const ran: number[] = [];
    let letGo = () => {};
    const hold = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const triton = new Triton({ extensions: [shift((event) => events.push(event))] });
    bindShifts(triton, hold, (x) => ran.push(x));
    const { ask, manage } = await open(triton);
    expect(events).toEqual(["starts"]);

    const accepted = (count: number) =>
      vi.waitFor(() => expect(events.filter((event) => event === "m 1 accepts")).toHaveLength(count));
    const answers = [ask(0)];
    await vi.waitFor(() => expect(ran).toEqual([0]));
    for (const x of [1, 2, 3]) {
      answers.push(ask(x));
      await accepted(1 + x);
    }
    letGo();
    expect(await Promise.all(answers)).toEqual([1, 1, 1, 1]);
    expect(ran).toEqual([0, 3, 2, 1]);
    expect(events.slice(0, 2)).toEqual(["starts", "m 1 accepts"]);
    const wakes = () => events.filter((event) => event.endsWith("wakes"));
    expect(wakes()).toEqual(["m 1 wakes"]);

    const shown = async () => (await manage("GET")).json();
    expect(await shown()).toEqual([
      { version: 1, isResident: true },
      { version: 2, isResident: false },
    ]);
    expect(await ask(4, { tester: true })).toBe(2);
    expect((await manage("POST")).status).toBe(200);
    expect(await shown()).toEqual([
      { version: 1, isResident: false },
      { version: 2, isResident: false },
    ]);
    expect(await ask(5)).toBe(1);
    expect(wakes()).toEqual(["m 1 wakes", "m 2 wakes", "m 1 wakes"]);
    expect(await triton.metrics.metrics()).toContain("shift_batched_requests 6");

    const before = events.length;
    await triton.close();
    expect(events.slice(before)).toEqual(["drains", "m 1 ends", "m 2 ends", "closes"]);
  });
});
