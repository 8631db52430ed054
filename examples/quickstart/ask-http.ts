/** The elements of one output as numbers, whatever their data type. */
export type Answer = readonly number[];

/** A request: one row for one input of a model, and the requested output. */
export interface Question {
  readonly model: string;
  readonly input: string;
  readonly row: readonly number[];
  readonly output: string;
}

/** Sends a request over HTTP, with JSON in both directions. */
export async function askHttpJson(url: string, { model, input, row, output }: Question): Promise<Answer> {
  const body = JSON.stringify({
    inputs: [{ name: input, shape: [1, row.length], datatype: "FP32", data: row }],
    outputs: [{ name: output }],
  });
  const response = await post(url, model, body, {});
  const { outputs } = (await response.json()) as { outputs: [{ data: number[] }] };
  return outputs[0].data;
}

/**
 * Sends a request over HTTP, with the binary tensor extension in both directions: tensors as bytes behind a JSON
 * header.
 */
export async function askHttpBinary(url: string, { model, input, row, output }: Question): Promise<Answer> {
  const tensor = Buffer.from(Float32Array.from(row).buffer);
  const header = Buffer.from(
    JSON.stringify({
      inputs: [
        {
          name: input,
          shape: [1, row.length],
          datatype: "FP32",
          parameters: { binary_data_size: tensor.byteLength },
        },
      ],
      outputs: [{ name: output, parameters: { binary_data: true } }],
    }),
  );
  const response = await post(url, model, Buffer.concat([header, tensor]), {
    "Inference-Header-Content-Length": String(header.byteLength),
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const headerLength = Number(response.headers.get("inference-header-content-length"));
  const { outputs } = JSON.parse(bytes.toString("utf8", 0, headerLength)) as {
    outputs: [{ datatype: string }];
  };
  return readElements(outputs[0].datatype, bytes.subarray(headerLength));
}

/** Reads the elements of a tensor in its wire form, for the two data types of the quick start. */
export function readElements(datatype: string, bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const size = datatype === "INT64" ? 8 : 4;
  return Array.from({ length: bytes.byteLength / size }, (_, i) =>
    datatype === "INT64" ? Number(view.getBigInt64(i * size, true)) : view.getFloat32(i * size, true),
  );
}

async function post(
  url: string,
  model: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string>,
): Promise<Response> {
  const response = await fetch(`${url}/v2/models/${model}/infer`, { method: "POST", body, headers });
  if (!response.ok) throw new Error(`${model} answered ${response.status}: ${await response.text()}`);
  return response;
}
