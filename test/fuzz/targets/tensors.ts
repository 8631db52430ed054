import { grpc } from "@tritonjs/grpc";
import { fetchHandler } from "@tritonjs/http/fetch";
import { decodeMessage, encodeMessage, inference, inferencePath } from "@tritonjs/protocol/grpc";
import { expectThat, type FuzzTarget } from "../engine/target.js";
import { httpMessage, httpStructure } from "../structures/http-message.js";
import { text } from "../structures/text.js";
import { expectGoodAnswer } from "../support/answers.js";
import { requestOf } from "../support/fetch-target.js";
import { GrpcCalls } from "../support/grpc-calls.js";
import { openIdentityModels, V2_TOKENS } from "../support/identity-models.js";
import { INFER_SEEDS, V2_HEADERS } from "../support/v2-seeds.js";

/** An output as bytes. */
interface Answered {
  readonly model: string;
  readonly datatype: string;
  readonly shape: readonly number[];
  readonly bytes: Buffer;
}

/**
 * Inferences in JSON and with binary tensors. The model returns its input. So what an input in JSON was read as can be
 * sent again, in binary over HTTP and over gRPC, and must come back the same.
 */
export async function open(): Promise<FuzzTarget> {
  const { triton } = await openIdentityModels();
  const { addresses } = await triton.serve({ frontends: [grpc({ port: 0 })] });
  const calls = new GrpcCalls(addresses.grpc!.port);
  const unexpected: unknown[] = [];
  const handler = fetchHandler(triton, { onError: (error) => void unexpected.push(error) });
  const send = async (message: Uint8Array): Promise<string | { response: Response; body: Buffer }> => {
    const request = requestOf(message);
    if (request === undefined) return "not a request";
    const response = await handler(request);
    const body = Buffer.from(await response.arrayBuffer());
    if (unexpected.length > 0) throw unexpected.splice(0)[0];
    return { response, body };
  };
  const inBinary = async ({ model, datatype, shape, bytes }: Answered): Promise<void> => {
    const header = Buffer.from(
      JSON.stringify({
        inputs: [{ name: "IN", datatype, shape, parameters: { binary_data_size: bytes.length } }],
        parameters: { binary_data_output: true },
      }),
    );
    const lines = [`inference-header-content-length: ${header.length}`];
    const body = Buffer.concat([header, bytes]);
    const sent = await send(httpMessage(`POST /v2/models/${model}/infer`, body, lines));
    const again = typeof sent === "string" ? undefined : binaryAnswer(model, sent.response, sent.body);
    expectThat(
      again?.bytes.equals(bytes) === true,
      () => `in binary: ${again?.bytes.toString("hex")}, not ${bytes.toString("hex")}`,
    );
    const message = encodeMessage(inference.ModelInferRequest, {
      modelName: model,
      inputs: [{ name: "IN", datatype, shape: [...shape] }],
      rawInputContents: [bytes],
    });
    const { status, messages, message: why } = await calls.call(inferencePath("ModelInfer"), message);
    expectThat(status === 0, () => `over gRPC: status ${status}, ${why}`);
    const raw =
      decodeMessage(inference.ModelInferResponse, messages[0]!).rawOutputContents?.[0] ?? new Uint8Array();
    expectThat(
      bytes.equals(raw),
      () => `over gRPC: ${Buffer.from(raw).toString("hex")}, not ${bytes.toString("hex")}`,
    );
  };
  return {
    seeds: INFER_SEEDS,
    tokens: V2_TOKENS,
    structure: httpStructure(text, V2_HEADERS),
    lanes: 8,
    async run(input) {
      const sent = await send(input);
      if (typeof sent === "string") return sent;
      const { response, body } = sent;
      const encoding = response.headers.get("content-encoding");
      if (encoding !== null) return `${response.status} ${encoding}`;
      const contentType = response.headers.get("content-type") ?? "";
      expectGoodAnswer({ status: response.status, contentType, body });
      if (response.status !== 200) return String(response.status);
      const asked = withBinaryOutput(input);
      const model =
        asked === undefined
          ? undefined
          : /^POST \/v2\/models\/([a-z0-9]+)\/infer /.exec(asked.toString("latin1"))?.[1];
      if (asked === undefined || model === undefined || NOT_COMPARED.has(model)) return "200";
      const binary = await send(asked);
      if (typeof binary === "string" || binary.response.status !== 200) return "200";
      const answered = binaryAnswer(model, binary.response, binary.body);
      if (answered === undefined) return "200";
      await inBinary(answered);
      return "200, the same in binary and over gRPC";
    },
    async check() {
      const sent = await send(INFER_SEEDS[0]!);
      expectThat(typeof sent !== "string" && sent.body.includes('"data":[1.0,-2.5,'), () => "another answer");
    },
    async close() {
      calls.close();
      await triton.close();
    },
  };
}

/** Models that need parameters, or have other inputs. */
const NOT_COMPARED: ReadonlySet<string> = new Set(["sequence", "stream", "pair"]);

/** The same request, but for a binary answer without conversions; undefined for a body that is not plain JSON. */
function withBinaryOutput(input: Uint8Array): Buffer | undefined {
  const all = Buffer.from(input);
  const end = all.indexOf("\r\n\r\n");
  const head = all.subarray(0, Math.max(0, end)).toString("latin1");
  if (/inference-header-content-length|content-encoding/i.test(head)) return undefined;
  const body = all.subarray(end + 4).toString("utf8");
  // The text of the inputs stays as it is, so that numbers are read as before.
  if (!/^\s*\{/.test(body) || /"(?:parameters|outputs)"/.test(body)) return undefined;
  const start = head.split("\r\n", 1)[0]!.split(" ").slice(0, 2).join(" ");
  return httpMessage(start, body.replace("{", '{"parameters":{"binary_data_output":true},'));
}

/** The only output of an answer in binary. */
function binaryAnswer(model: string, response: Response, body: Buffer): Answered | undefined {
  const length = Number(response.headers.get("inference-header-content-length") ?? body.length);
  if (response.status !== 200) throw new Error(`refused in binary: ${body.toString("utf8").slice(0, 200)}`);
  const { outputs } = JSON.parse(body.subarray(0, length).toString("utf8")) as {
    outputs: { datatype: string; shape: number[]; parameters?: { binary_data_size?: number } }[];
  };
  const [output] = outputs;
  if (outputs.length !== 1 || output?.parameters?.binary_data_size !== body.length - length) return undefined;
  return { model, datatype: output.datatype, shape: output.shape, bytes: body.subarray(length) };
}
