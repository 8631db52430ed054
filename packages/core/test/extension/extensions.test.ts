import { type Extension, sample, Triton } from "@tritonjs/core";
import type { RequestTrace } from "@tritonjs/core/diagnostics";
import { describe, expect, it } from "vitest";

function recorder(name: string, events: string[]): Extension {
  return {
    name,
    attach: () => ({
      start: () => void events.push(`${name} starts`),
      drain: () => void events.push(`${name} drains`),
      close: () => void events.push(`${name} closes`),
      families: () => [
        {
          name: `${name}_answers`,
          help: "Answers",
          type: "gauge",
          collect: () => [{ labels: {}, value: 42 }],
        },
      ],
    }),
  };
}

/** Notes the events of requests. @param traceId of a trace that other services know */
function tracer(name: string, events: string[], traceId?: string): Extension {
  const note = (event: string) => void events.push(`${name} ${event}`);
  const start = (): RequestTrace => ({
    traceId,
    traceparent: traceId && `00-${traceId}-0000000000000001-01`,
    sampled: traceId !== undefined,
    child: () => undefined,
    within: (fn) => fn(),
    mark() {},
    begin: (model) => note(`begins ${model}`),
    batch: () => note("batch"),
    compute: () => note("compute"),
    outputs: (tensors) => note(`outputs ${[...tensors.keys()]}`),
    end: () => note("ends"),
    release: () => note("is released"),
  });
  return { name, attach: () => ({ tracer: { always: true, start } }) };
}

describe("extensions of a server", () => {
  it("all follow a request to its answer", async () => {
    const events: string[] = [];
    const traceId = "a".repeat(32);
    await using triton = new Triton({
      extensions: [tracer("one", events), tracer("two", events, traceId), tracer("three", events)],
    });
    const parents: (string | undefined)[] = [];
    const model = triton.bind({
      modelName: "m",
      inputs: [{ name: "x", dtype: "INT32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [-1] }],
      inferFunc: sample(({ x }, { requests }) => {
        parents.push(requests[0]?.traceparent);
        return { y: x };
      }),
    });
    await model.infer({ x: [1] });
    const expected = ["begins m", "batch", "outputs y", "compute", "ends", "is released"];
    for (const name of ["one", "two", "three"]) {
      expect(events.filter((event) => event.startsWith(name))).toEqual(
        expected.map((one) => `${name} ${one}`),
      );
    }
    expect(parents).toEqual([`00-${traceId}-0000000000000001-01`]);
  });

  it("choose the version of requests that name none", async () => {
    const routed: string[] = [];
    const router: Extension = {
      name: "router",
      attach: ({ registry, route }) => ({
        start() {
          route("m", "", {
            version: 1,
            keyHeader: undefined,
            route(request, found) {
              routed.push(request.id);
              return registry.readyVersion("m", "", request.id === "new" ? 2 : 1) ?? found;
            },
          });
        },
      }),
    };
    await using triton = new Triton({ extensions: [router] });
    for (const modelVersion of [1, 2, 3]) {
      triton.bind({
        modelName: "m",
        modelVersion,
        inputs: [{ name: "x", dtype: "INT32", shape: [-1] }],
        outputs: [{ name: "version", dtype: "INT32", shape: [1] }],
        inferFunc: sample(() => ({ version: [modelVersion] })),
      });
    }
    await triton.ready();
    const ask = async (id: string, modelVersion?: number) => {
      const options = modelVersion === undefined ? { id } : { id, modelVersion };
      return (await triton.infer("m", { x: [1] }, options)).version!.data[0];
    };
    expect([await ask("old"), await ask("new"), await ask("named", 3)]).toEqual([1, 2, 3]);
    const signal = AbortSignal.abort();
    await expect(triton.infer("m", { x: [1] }, { id: "gone", signal })).rejects.toThrow("cancelled");
    expect(routed).toEqual(["old", "new"]);
  });

  it("start with the server, drain before its models end, and close after them", async () => {
    const events: string[] = [];
    const triton = new Triton({ extensions: [recorder("one", events), recorder("two", events)] });
    const model = triton.bind({
      modelName: "m",
      inputs: [{ name: "x", dtype: "INT32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [-1] }],
      inferFunc: sample(({ x }) => ({ y: x })),
    });
    await triton.ready();
    await model.infer({ x: [1] });
    expect(events).toEqual(["one starts", "two starts"]);
    await triton.close();
    expect(events.slice(2)).toEqual(["one drains", "two drains", "one closes", "two closes"]);
  });

  it("show their metrics on the page", async () => {
    await using triton = new Triton({ extensions: [recorder("one", [])] });
    expect(await triton.metrics.metrics()).toContain("one_answers 42");
  });

  it("make the server fail to get ready with their error", async () => {
    const failing: Extension = {
      name: "failing",
      attach: () => ({ start: () => Promise.reject(new Error("no disk")) }),
    };
    await using triton = new Triton({ extensions: [failing] });
    await expect(triton.ready()).rejects.toThrow("no disk");
  });

  it("finish what they write, however little time requests have", async () => {
    let isWritten = false;
    const writing: Extension = {
      name: "writing",
      attach: () => ({
        async drain() {
          for (let turn = 0; turn < 1000; turn++) await new Promise(setImmediate);
          isWritten = true;
        },
      }),
    };
    const triton = new Triton({ exitTimeoutSecs: 0, extensions: [writing] });
    await triton.close();
    expect(isWritten).toBe(true);
  });

  it("cannot keep the server from closing", async () => {
    const failing: Extension = {
      name: "failing",
      attach: () => ({
        drain: () => {
          throw new Error("cannot drain");
        },
        close: () => Promise.reject(new Error("cannot close")),
      }),
    };
    const events: string[] = [];
    await using triton = new Triton({ extensions: [failing, recorder("one", events)] });
    await triton.close();
    expect(events).toEqual(["one starts", "one drains", "one closes"]);
  });

  it("cannot have one name twice", () => {
    expect(() => new Triton({ extensions: [recorder("one", []), recorder("one", [])] })).toThrow(
      "expected one named 'one', got two",
    );
  });
});
