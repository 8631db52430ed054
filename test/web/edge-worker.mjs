/* A worker at the edge with a model. The runtime allows timers and random numbers only while it answers a request. */
import { batch, Triton } from "@tritonjs/core";
import { fetchHandler } from "@tritonjs/http/fetch";

let opened;

async function open() {
  const triton = new Triton({ gpus: [], requestMemory: { byteSize: 64e6 } });
  triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    inferFunc: batch(({ x }) => {
      for (let i = 0; i < x.data.length; i++) x.data[i] *= 2;
      return { y: x };
    }),
    config: { maxBatchSize: 8 },
  });
  await triton.ready();
  return fetchHandler(triton);
}

export default {
  async fetch(request) {
    opened ??= open();
    const handler = await opened;
    return handler(request);
  },
};
