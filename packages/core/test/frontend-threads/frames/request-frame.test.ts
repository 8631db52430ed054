import type { InferInit } from "@tritonjs/core/frontend";
import { NO_PARAMETERS, Tensor } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { OutgoingFrame } from "../../../src/frontend-threads/frames.js";
import {
  ReceivedRequest,
  readRequestKey,
  writeRequest,
} from "../../../src/frontend-threads/request-frames.js";
import { InferenceRequest } from "../../../src/request/inference-request.js";
import { copyScalars, NO_SEQUENCE } from "../../../src/request-info.js";
import { pass } from "./exchange.js";

const config = { input: [{ name: "x" }, { name: "ids" }], output: [{ name: "y" }] } as never;
const frame = new OutgoingFrame();

function sent(init: InferInit, latest = false) {
  writeRequest(frame, 5, { key: 17, latest, config }, new InferenceRequest("m", init), undefined);
  const incoming = pass(frame);
  return {
    number: incoming.number,
    target: readRequestKey(incoming),
    request: contentOf(new ReceivedRequest(incoming, { name: "m", config })),
  };
}

/** A request without the state of its processing. */
function contentOf(request: ReceivedRequest) {
  const { id, parameters, requestedOutputs, inputs, trace, arrival } = request;
  const scalars = { ...NO_SCALARS };
  copyScalars(request, scalars);
  return { id, parameters, requestedOutputs, inputs, trace, arrival, ...scalars };
}

const NO_SCALARS = { priority: 0, queueTimeoutMicroseconds: 0, ...NO_SEQUENCE };

const x = () => Tensor.fromElements("FP32", [1, 3], Float32Array.of(1, 2, 3));

describe("a request that goes to the engine", () => {
  it("keeps its number, its model version and its tensors", () => {
    const { number, target, request } = sent({ inputs: new Map([["x", x()]]) }, true);
    expect([number, target]).toEqual([5, { key: 17, latest: true }]);
    expect(
      [...request.inputs].map(([name, { datatype, shape, elements }]) => [name, datatype, shape, elements]),
    ).toEqual([["x", "FP32", [1, 3], Float32Array.of(1, 2, 3)]]);
  });

  it("has the defaults for everything that the client left out", () => {
    const { request } = sent({ inputs: new Map() });
    expect({ ...request }).toEqual({
      id: "",
      parameters: NO_PARAMETERS,
      requestedOutputs: [],
      correlationId: undefined,
      priority: 0,
      queueTimeoutMicroseconds: 0,
      sequenceStart: false,
      sequenceEnd: false,
      inputs: new Map(),
      trace: undefined,
      arrival: undefined,
    });
  });

  it("keeps ids, parameters, limits, outputs and sequences", () => {
    const init = {
      inputs: new Map(),
      id: "ünïque-7 \u{1f600}",
      parameters: { text: "ä", whole: 7, part: 0.1, big: 2n ** 60n, on: true, off: false },
      requestedOutputs: ["y", "unknown"],
      correlationId: 2n ** 63n,
      priority: 3,
      queueTimeoutMicroseconds: 2 ** 40,
      sequenceStart: true,
      sequenceEnd: true,
    };
    const { inputs: _, trace: _trace, arrival: _arrival, ...request } = sent(init).request;
    expect(request).toEqual({
      ...init,
      inputs: undefined,
      parameters: Object.assign(Object.create(null), init.parameters),
    });
    expect(sent({ inputs: new Map(), correlationId: "seq-1" }).request.correlationId).toBe("seq-1");
  });

  it("keeps what validation will refuse: unknown data types, names and dimensions of 64 bits", () => {
    const odd = Tensor.fromBytes("<invalid>" as never, [0, 2n ** 63n - 1n, -1] as never, new Uint8Array(4));
    const [[name, tensor] = []] = [...sent({ inputs: new Map([["nope", odd]]) }).request.inputs];
    expect([name, tensor?.datatype, tensor?.shape]).toEqual(["nope", "<invalid>", [0, 2n ** 63n - 1n, -1]]);
  });

  it("hands the memory of a large tensor over, and copies small tensors of the same memory", () => {
    const memory = new Uint8Array(140_000);
    memory.fill(7, 0, 70_000);
    memory.fill(9, 70_000);
    const large = Tensor.fromBytes("UINT8", [1, 70_000], memory.subarray(0, 70_000));
    const small = Tensor.fromBytes("UINT8", [1, 16], memory.subarray(70_000, 70_016));
    const { inputs } = sent({
      inputs: new Map([
        ["x", large],
        ["ids", small],
      ]),
    }).request;
    expect(memory.byteLength).toBe(0);
    expect(Buffer.compare(inputs.get("x")!.bytes, new Uint8Array(70_000).fill(7))).toBe(0);
    expect(inputs.get("ids")?.bytes).toEqual(new Uint8Array(16).fill(9));
  });
});
