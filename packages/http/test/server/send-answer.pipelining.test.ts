import { EventEmitter, once } from "node:events";
import { connect } from "node:net";
import { batch, Triton } from "@tritonjs/core";
import { describe, expect, it, onTestFinished } from "vitest";
import { http } from "../../src/index.js";

const body = '{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,1],"data":[1]}]}';
const infer = `POST /v2/models/slow/infer HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

describe("a client that leaves with pipelined requests", () => {
  it("has all of them cancelled and does not delay closing", async () => {
    const triton = new Triton();
    onTestFinished(() => triton.close());
    const events = new EventEmitter();
    const signals: AbortSignal[] = [];
    triton.bind({
      modelName: "slow",
      inputs: [{ name: "IN", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "OUT", dtype: "FP32", shape: [1] }],
      inferFunc: batch(async ({ IN }, { signal }) => {
        signals.push(signal);
        if (signals.length === 3) events.emit("begun");
        if (!signal.aborted) await once(signal, "abort");
        return { OUT: IN };
      }),
      config: { maxBatchSize: 1, instanceGroup: { count: 3 } },
    });
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
    const begun = once(events, "begun");
    const client = connect(addresses.http!.port, "localhost", () => client.write(infer.repeat(3)));
    await begun;
    client.destroy();
    await triton.close();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
  });
});
