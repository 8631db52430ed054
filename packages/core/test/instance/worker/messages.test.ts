import { Tensor, TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { packError, packTensors, unpackError, unpackTensors } from "../../../src/worker/messages.js";
import { bits, fp32 } from "../../support/tensors.js";

const pack = (tensor: Tensor, owned: boolean) => {
  const transfer: ArrayBuffer[] = [];
  const packed = packTensors(new Map([["x", tensor]]), transfer, owned);
  return { packed, transfer };
};

describe("tensors packed for a worker", () => {
  it("unpack to equal tensors", () => {
    for (const tensor of [fp32([2, 1], [1, 2]), Tensor.fromElements("BYTES", [1], [Uint8Array.of(1, 2)])]) {
      const { packed } = pack(tensor, false);
      expect(bits(unpackTensors(packed).get("x")!)).toEqual(bits(tensor));
    }
  });

  it("transfer their memory only when they own it alone", () => {
    const owner = fp32([2], [1, 2]);
    expect(pack(owner, true).transfer).toEqual([owner.bytes.buffer]);
    const part = Tensor.fromBytes("FP32", [1], owner.bytes.subarray(0, 4));
    expect(pack(part, true).transfer).not.toContain(owner.bytes.buffer);
    expect(pack(owner, false).transfer).not.toContain(owner.bytes.buffer);
  });

  it("never transfer the pool under a small Buffer or its neighbours", () => {
    const buffer = Buffer.from([1, 2, 3, 4]);
    const { packed, transfer } = pack(Tensor.fromBytes("UINT8", [4], buffer), false);
    expect(transfer).not.toContain(buffer.buffer);
    expect(transfer.map((memory) => memory.byteLength)).toEqual([4]);
    expect([...packed[0]!.bytes]).toEqual([1, 2, 3, 4]);
  });

  it("transfer shared memory once", () => {
    const shared = fp32([2], [1, 2]);
    const transfer: ArrayBuffer[] = [];
    packTensors(
      new Map([
        ["a", shared],
        ["b", shared.reshaped([2, 1])],
      ]),
      transfer,
      true,
    );
    expect(transfer).toHaveLength(1);
  });
});

describe("errors packed by a worker", () => {
  it("keep code and message", () => {
    const error = unpackError(packError(new TritonError("UNAVAILABLE", "later")));
    expect(error).toMatchObject({ code: "UNAVAILABLE", message: "later" });
    expect(unpackError(packError(new TypeError("oops")))).toMatchObject({
      code: "INTERNAL",
      message: "oops",
    });
  });
});
