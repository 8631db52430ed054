/* Bodies of inference requests over HTTP, for the models of bench/programs/identity-server.mjs. */

/** Request with an FP32 tensor of a shape, in binary in both directions. */
export function binaryBody(model, shape) {
  const elements = shape.reduce((product, dim) => product * dim, 1);
  const tensor = Buffer.from(new Float32Array(elements).fill(0.5).buffer);
  const byteSize = tensor.length;
  const header = Buffer.from(
    JSON.stringify({
      inputs: [{ name: "x", datatype: "FP32", shape, parameters: { binary_data_size: byteSize } }],
      parameters: { binary_data_output: true },
    }),
  );
  return {
    path: `/v2/models/${model}/infer`,
    headers: {
      "content-type": "application/octet-stream",
      "inference-header-content-length": String(header.length),
    },
    body: Buffer.concat([header, tensor]),
  };
}

/** Request with an FP32 tensor with four decimals, in about the given number of bytes of JSON. */
export function jsonBody(model, byteSize) {
  const data = [];
  for (let length = 0; length < byteSize; ) {
    const number = ((data.length * 7919) % 20_000) / 10_000 - 1;
    data.push(Number(number.toFixed(4)));
    length += String(data.at(-1)).length + 1;
  }
  const inputs = [{ name: "x", datatype: "FP32", shape: [data.length], data }];
  return {
    path: `/v2/models/${model}/infer`,
    headers: { "content-type": "application/json" },
    body: Buffer.from(JSON.stringify({ inputs })),
  };
}
