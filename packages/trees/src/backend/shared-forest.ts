import type { Forest } from "../forest/forest.js";

/** A copy of a forest whose arrays threads share. */
export function sharedForest(forest: Forest): Forest {
  const entries = Object.entries(forest).map(([key, value]) => [
    key,
    ArrayBuffer.isView(value) ? shared(value) : value,
  ]);
  return Object.fromEntries(entries) as Forest;
}

function shared(array: ArrayBufferView): ArrayBufferView {
  const memory = new SharedArrayBuffer(array.byteLength);
  new Uint8Array(memory).set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
  return array instanceof Int32Array ? new Int32Array(memory) : new Float64Array(memory);
}
