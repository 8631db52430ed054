import { type InstanceGroupOptions, Triton, type TritonOptions } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import { EchoModel, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf } from "../../../../test/support/outcome.js";

/** Models with these instance groups, under a rate limiter; their batches wait for the test. */
async function served(options: TritonOptions, ...models: readonly (readonly InstanceGroupOptions[])[]) {
  const clock = new VirtualClock();
  const triton = new Triton({ clock, rateLimit: "execution_count", ...options });
  const model = new EchoModel();
  const handles = models.map((instanceGroup, i) =>
    triton.bind({
      modelName: `m${i}`,
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: model.callback(),
      config: { maxBatchSize: 1, instanceGroup },
    }),
  );
  for (const handle of handles) await handle.ready();
  model.held = true;
  return { clock, model, handles };
}

const needing = (name: string, count = 1, more: object = {}): InstanceGroupOptions => ({
  rateLimiter: { resources: [{ name, count, ...more }] },
});

describe("instances under a rate limiter", () => {
  it("wait for resources shared by all models", async () => {
    const { clock, model, handles } = await served({}, [needing("other")], [needing("R")], [needing("R")]);
    const answers = handles.map((handle, i) => echo(handle, i));
    await clock.settle();
    expect(model.batches).toEqual([[0], [1]]);
    model.release();
    await clock.settle();
    expect(model.batches).toEqual([[0], [1]]);
    model.release();
    await clock.settle();
    expect(model.batches).toEqual([[0], [1], [2]]);
    model.releaseAll();
    await clock.settle();
    expect(await Promise.all(answers)).toEqual([0, 1, 2]);
  });

  it("wait in one line, as in Triton: the first waiting instance blocks those behind it", async () => {
    const { clock, model, handles } = await served({}, [needing("R")], [needing("R")], [needing("other")]);
    for (const [i, handle] of handles.entries()) void echo(handle, i);
    await clock.settle();
    expect(model.batches).toEqual([[0]]);
    model.release();
    await clock.settle();
    expect(model.batches).toEqual([[0], [1]]);
    model.release();
    await clock.settle();
    expect(model.batches).toEqual([[0], [1], [2]]);
    model.releaseAll();
    await clock.settle();
  });

  it("have turns at the ratio that Triton's qa/L0_rate_limiter asks for: over 1.80 for priorities 1 and 2", async () => {
    const group = (priority: number) => [{ rateLimiter: { priority, resources: [{ name: "R", count: 1 }] } }];
    const { clock, model, handles } = await served({}, group(1), group(2));
    const sent = [0, 0];
    // Each client keeps 8 requests in flight. A client that waits for an answer sends another request after the end.
    const client = async (i: number): Promise<void> => {
      const running = new Set<Promise<unknown>>();
      while (Math.max(...sent) < 80) {
        while (running.size >= 8) await Promise.race(running);
        const answer: Promise<unknown> = echo(handles[i]!, i).finally(() => running.delete(answer));
        running.add(answer);
        sent[i]!++;
      }
      await Promise.all(running);
    };
    let over = false;
    const clients = Promise.all([client(0), client(1)]).finally(() => {
      over = true;
    });
    for (await clock.settle(); !over; await clock.settle()) model.release();
    await clients;
    expect(sent).toEqual([80, 44]);
    const order = model.batches.flat();
    expect(order.slice(0, 9)).toEqual([0, 0, 1, 0, 0, 1, 0, 0, 1]);
  });

  it("run together when the resources suffice for several", async () => {
    const { clock, model, handles } = await served({ rateLimitResources: [{ name: "R", count: 2 }] }, [
      { ...needing("R"), count: 3 },
    ]);
    for (const value of [1, 2, 3]) void echo(handles[0]!, value);
    await clock.settle();
    expect(model.batches).toEqual([[1], [2]]);
    model.releaseAll();
    await clock.settle();
    expect(model.batches).toEqual([[1], [2], [3]]);
  });

  it("skip a turn whose request was cancelled meanwhile", async () => {
    const { clock, model, handles } = await served({}, [needing("R")], [needing("R")]);
    const controller = new AbortController();
    const first = echo(handles[0]!, 1);
    await clock.settle();
    const given = outcomeOf(echo(handles[1]!, 2, { signal: controller.signal }));
    await clock.settle();
    const last = echo(handles[0]!, 3);
    await clock.settle();
    controller.abort();
    expect(await given).toBe("CANCELLED the request was cancelled");
    model.releaseAll();
    await clock.settle();
    expect(await Promise.all([first, last])).toEqual([1, 3]);
    expect(model.batches).toEqual([[1], [3]]);
  });

  it("keep their model from loading when they can never run, and do not affect others", async () => {
    const clock = new VirtualClock();
    const resources = { rateLimitResources: [{ name: "R", count: 1 }] };
    const triton = new Triton({ clock, rateLimit: "execution_count", ...resources });
    const model = new EchoModel();
    const bind = (modelName: string, group: InstanceGroupOptions) =>
      triton.bind({
        modelName,
        inputs: echoInputs,
        outputs: echoOutputs,
        inferFunc: model.callback(),
        config: { instanceGroup: group },
      });
    expect(await outcomeOf(bind("greedy", needing("R", 2)).ready())).toBe(
      'INVALID_ARG Resource count for "R" is limited to 1 which will prevent scheduling of one or more model ' +
        "instances, the minimum required count is 2",
    );
    expect(await outcomeOf(bind("modest", needing("R")).ready())).toBe("done");
  });

  it("release their resources when they are removed", async () => {
    const { clock, model, handles } = await served({}, [{ ...needing("R"), count: 2 }], [needing("R")]);
    model.held = false;
    await handles[0]!.updateInstances(1);
    await handles[0]!.unbind();
    const answer = echo(handles[1]!, 1);
    await clock.settle();
    expect(await answer).toBe(1);
  });

  it("log the resource counts on the verbose level, as Triton does", async () => {
    const lines: string[] = [];
    const logger = { error() {}, warn() {}, info() {}, debug: (line: string) => void lines.push(line) };
    const { clock, handles } = await served({ logVerbose: 1, logger }, [
      { ...needing("R", 4), name: "much" },
      {
        rateLimiter: {
          resources: [
            { name: "R", count: 3 },
            { name: "all", count: 1, global: true },
          ],
        },
      },
    ]);
    const limits = () => lines.filter((line) => line.startsWith("Max Resource Map===>")).at(-1);
    const all = "Max Resource Map===>\n\tDevice: GLOBAL\n\t\tResource: all\t Count: 1\n\tDevice: 0\n";
    expect(limits()).toBe(`${all}\t\tResource: R\t Count: 4\n`);
    await handles[0]!.updateInstances(handles[0]!.config().instanceGroup.slice(1));
    await clock.settle();
    expect(limits()).toBe(`${all}\t\tResource: R\t Count: 3\n`);
  });

  it("do not wait when the rate limiter is off", async () => {
    const { clock, model, handles } = await served({ rateLimit: "off" }, [{ ...needing("R", 9), count: 2 }]);
    for (const value of [1, 2]) void echo(handles[0]!, value);
    await clock.settle();
    expect(model.batches).toEqual([[1], [2]]);
  });
});
