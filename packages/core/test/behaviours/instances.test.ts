import { Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import { EchoModel, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { thrownBy } from "../../../../test/support/outcome.js";

/** A plain callback that records the instance it runs in. */
function namedEcho(seen: string[]) {
  return async (
    requests: readonly { readonly inputs: { readonly x: { readonly data: Int32Array } } }[],
    context: { readonly instanceName: string; readonly instanceIndex: number },
  ) => {
    seen.push(`${context.instanceName} ${context.instanceIndex}`);
    return requests.map(({ inputs }) => ({ y: inputs.x.data }));
  };
}

describe("instances", () => {
  it("run at the same time, one batch each", async () => {
    const clock = new VirtualClock();
    const model = new EchoModel();
    const handle = await model.bind(new Triton({ clock }), { maxBatchSize: 1 }, 2);
    model.held = true;
    for (const value of [1, 2, 3]) void echo(handle, value);
    await clock.settle();
    expect(model.batches).toEqual([[1], [2]]);
    expect(handle.instances().map(({ busy }) => busy)).toEqual([true, true]);
    model.release();
    await clock.settle();
    expect(model.batches).toEqual([[1], [2], [3]]);
  });

  it("are as many as the instance group says for one function, which they all call", async () => {
    const seen: string[] = [];
    const clock = new VirtualClock();
    const handle = new Triton({ clock }).bind({
      modelName: "m",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: namedEcho(seen),
      config: { maxBatchSize: 1, instanceGroup: [{ count: 2 }, { count: 1 }] },
    });
    await handle.ready();
    const answers = [1, 2, 3].map((value) => echo(handle, value));
    await clock.settle();
    expect(await Promise.all(answers)).toEqual([1, 2, 3]);
    expect(seen.sort()).toEqual(["m_0_0 0", "m_0_1 1", "m_1_0 2"]);
    expect(handle.instances().map(({ name, kind, healthy }) => [name, kind, healthy])).toEqual([
      ["m_0_0", "KIND_CPU", true],
      ["m_0_1", "KIND_CPU", true],
      ["m_1_0", "KIND_CPU", true],
    ]);
  });

  it("are one for each function of a list", async () => {
    const seen: string[] = [];
    const clock = new VirtualClock();
    const functions = ["a", "b"].map((name) => {
      const named = namedEcho([]);
      return (...args: Parameters<typeof named>) => {
        seen.push(`${name} as ${args[1].instanceName}`);
        return named(...args);
      };
    });
    const handle = new Triton({ clock }).bind({
      modelName: "m",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: functions,
      config: { maxBatchSize: 1 },
    });
    await handle.ready();
    void Promise.all([echo(handle, 1), echo(handle, 2)]);
    await clock.settle();
    expect(seen).toEqual(["a as m_0", "b as m_1"]);
  });

  it("must be as many as the functions of a list", () => {
    const bind = () =>
      new Triton().bind({
        modelName: "m",
        inputs: echoInputs,
        outputs: echoOutputs,
        inferFunc: [namedEcho([]), namedEcho([])],
        config: { instanceGroup: { count: 3 } },
      });
    expect(thrownBy(bind)).toContain(
      "inferFunc has 2 functions, one for each instance, but config.instanceGroup asks for 3 instances",
    );
  });

  it("take the oldest batch when they become idle", async () => {
    const clock = new VirtualClock();
    const model = new EchoModel();
    const handle = await model.bind(new Triton({ clock }), { maxBatchSize: 1 }, 3);
    model.held = true;
    for (let value = 0; value < 9; value++) void echo(handle, value);
    await clock.settle();
    model.releaseAll();
    await clock.settle();
    expect(model.batches.flat()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });
});
