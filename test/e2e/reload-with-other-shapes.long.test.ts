import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { Tensor, type Triton } from "@tritonjs/core";
import { Exchange, serviceOf } from "@tritonjs/server";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type Client, type NamedTensor, Refusal } from "../conformance/clients/client.js";
import { rawInputs, root } from "../conformance/clients/grpc.js";
import { grpcStreamClient } from "../conformance/clients/grpc-stream.js";
import { openClients } from "../conformance/clients/open-clients.js";
import { fromWire, toWire } from "../conformance/clients/wire.js";
import { identityConfig, RepositoryOnDisk } from "../support/repository-on-disk.js";
import { sendRequest } from "../support/send-request.js";
import { openTriton, until } from "./support/open-triton.js";

const RELOADS = 6;
/** Answers that every client gets before the next reload, so that each version serves each of them. */
const ANSWERS_PER_ROUND = 2;

/** What the model takes: in each version the data type or the last dimension differs from the version before. */
const FORMS = [
  { datatype: "FP32", columns: 4 },
  { datatype: "FP32", columns: 6 },
  { datatype: "INT32", columns: 6 },
] as const;
type Form = (typeof FORMS)[number];

describe.each([
  ["by versions of other numbers", (round: number) => round + 1],
  ["by versions of the same number", () => 1],
])("reloads with other shapes, %s, under load", (_how, versionOf) => {
  it("leave every answer in agreement with one version", async () => {
    const { triton, load } = await served(versionOf);
    const serving = await triton.serve();
    const clients = openClients(triton, serving).filter(({ way }) => way !== "in process");
    clients.push(grpcStreamClient("gRPC stream", serving.addresses.grpc!.url));
    onTestFinished(() => clients.forEach((client) => void client.close()));
    let over = false;
    const faults: string[] = [];
    const answered = clients.map(() => 0);
    const loads = clients.map(async (client, i) => {
      for (let n = 0; !over; n++) {
        const form = FORMS[n % FORMS.length]!;
        const fault = await ask(client, form, n, versionOf);
        if (fault === "answered") answered[i]!++;
        else if (fault !== "refused") faults.push(`${client.way}: ${fault}`);
      }
    });
    try {
      for (let round = 1; round <= RELOADS; round++) {
        const before = [...answered];
        await load(round);
        await until(() => answered.every((count, i) => count >= before[i]! + ANSWERS_PER_ROUND));
      }
    } finally {
      over = true;
      await Promise.all(loads);
    }
    expect(faults).toEqual([]);
  });
});

describe("a request whose last piece comes after a reload", () => {
  it.each(["HTTP", "gRPC"] as const)("is for the version in service by then, over %s", async (way) => {
    const { triton, load } = await served((round) => round + 1);
    const open = await pieces(triton, way);
    const [old, fresh] = [await open(FORMS[0]), await open(FORMS[1])];
    await load(1);
    expect(await fresh.finish()).toEqual({ version: "2", tensor: tensorOf(FORMS[1], 7) });
    expect(await old.finish()).toEqual({ error: expect.stringContaining(refusalOf(FORMS[0], FORMS[1])) });
  });

  it.each(["HTTP", "gRPC"] as const)("does not fail if the shapes stay, over %s", async (way) => {
    const { triton, load } = await served((round) => round + 1);
    const open = await pieces(triton, way);
    const request = await open(FORMS[0]);
    await load(FORMS.length);
    expect(await request.finish()).toEqual({
      version: String(FORMS.length + 1),
      tensor: tensorOf(FORMS[0], 7),
    });
  });
});

describe("a body of nothing but one tensor whose last piece comes after a reload", () => {
  it("has the shape that the version in service by then takes", async () => {
    const { triton, load } = await served((round) => round + 1);
    const { addresses } = await triton.serve();
    const open = (form: Form) => halfOverHttp(triton, addresses.http!.port, form, rawBody(form));
    const [old, fresh] = [await open(FORMS[0]), await open(FORMS[1])];
    await load(1);
    expect(await fresh.finish()).toEqual({ version: "2", tensor: tensorOf(FORMS[1], 7) });
    expect(await old.finish()).toEqual({ error: expect.stringContaining("Expected 24, got 16") });
  });
});

describe("a client that has sent half a request", () => {
  it.each(["HTTP", "gRPC"] as const)("holds up no reload and no unload, over %s", async (way) => {
    const { triton, load } = await served((round) => round + 1);
    const open = await pieces(triton, way);
    const request = await open(FORMS[0]);
    await load(1);
    await triton.unloadModel("m");
    expect(serviceOf(triton).isModelReady("m", "")).toBe(false);
    expect(await request.finish()).toEqual({ error: expect.stringContaining("Request for unknown model") });
  });
});

describe("a look-up of a model", () => {
  it("stays with its version, and gives the next one once that has taken its place", async () => {
    const { triton, load } = await served((round) => round + 1);
    const found = serviceOf(triton).model("m", "");
    const exchange = new Exchange(serviceOf(triton), undefined, found);
    expect(exchange.current()).toBe(found);
    await load(1);
    expect([found.version, found.config.input[0]?.dims]).toEqual([1, [4]]);
    expect([exchange.current().version, exchange.current().config.input[0]?.dims]).toEqual([2, [6]]);
    const inputs = new Map([["INPUT0", Tensor.fromElements("FP32", [1, 4], new Float32Array(4))]]);
    expect(() => sendRequest(found, { inputs }, () => {})).toThrow(
      "stopped accepting new inference requests",
    );
    await triton.unloadModel("m");
    expect(() => exchange.current()).toThrow("Request for unknown model");
  });
});

/** A Triton with the model `m` in its first form, and what brings the form of a round. */
async function served(versionOf: (round: number) => number) {
  const filesOf = (round: number) => ({
    "m/config.pbtxt": configOf(FORMS[round % FORMS.length]!, round),
    [`m/${versionOf(round)}/`]: "",
  });
  const models = await RepositoryOnDisk.create(filesOf(0));
  onTestFinished(() => models[Symbol.asyncDispose]());
  const triton = openTriton({
    modelRepository: models.path,
    modelControlMode: "explicit",
    loadModel: ["*"],
    exitTimeoutSecs: 0,
    logger: { error() {}, warn() {}, info() {}, debug() {} },
  });
  await triton.ready();
  const load = async (round: number) => {
    await models.write(filesOf(round));
    await triton.loadModel("m");
  };
  return { triton, load };
}

const configOf = ({ datatype, columns }: Form, round: number) =>
  identityConfig(
    `dynamic_batching { } parameters { key: "round" value { string_value: "${round}" } }`,
    `TYPE_${datatype}`,
  ).replaceAll("dims: [ -1 ]", `dims: [ ${columns} ]`);

function tensorOf({ datatype, columns }: Form, value: number): Omit<NamedTensor, "name"> {
  return { datatype, shape: [1, columns], elements: new Array<number>(columns).fill(value) };
}

/** What a version of one form says to a request of another one. */
function refusalOf(sent: Form, serving: Form): string {
  return sent.datatype === serving.datatype
    ? `unexpected shape for input 'INPUT0' for model 'm'. Expected [-1,${serving.columns}], got [1,${sent.columns}]`
    : `inference input 'INPUT0' data-type is '${sent.datatype}', but model 'm' expects '${serving.datatype}'`;
}

/** Asks once, and tells whether the answer is that of one version; says what is wrong if it is not. */
async function ask(
  client: Client,
  form: Form,
  value: number,
  versionOf: (round: number) => number,
): Promise<string> {
  try {
    const { version, outputs } = await client.infer({
      model: "m",
      inputs: [{ name: "INPUT0", ...tensorOf(form, value) }],
    });
    expect(outputs).toEqual([{ name: "OUTPUT0", ...tensorOf(form, value) }]);
    const rounds = Array.from({ length: RELOADS + 1 }, (_, round) => round);
    const serving = rounds.filter((round) => String(versionOf(round)) === version);
    expect(serving.map((round) => FORMS[round % FORMS.length])).toContain(form);
    return "answered";
  } catch (error) {
    const { message } = error as Error;
    const isWhole = FORMS.some((serving) => serving !== form && message.includes(refusalOf(form, serving)));
    return error instanceof Refusal && isWhole ? "refused" : message;
  }
}

/** What came of a request that was sent in pieces. */
type Outcome =
  | { readonly version: string; readonly tensor: Omit<NamedTensor, "name"> }
  | { readonly error: string };

/** A request of which the server has half. */
interface HalfRequest {
  /** Sends the rest. */
  finish(): Promise<Outcome>;
}

/** Opens requests of which the server has one half. */
async function pieces(triton: Triton, way: "HTTP" | "gRPC"): Promise<(form: Form) => Promise<HalfRequest>> {
  const { addresses } = await triton.serve();
  if (way === "HTTP") {
    return (form) => halfOverHttp(triton, addresses.http!.port, form, jsonBody(form));
  }
  const session = connectHttp2(`http://${addresses.grpc!.url}`);
  onTestFinished(() => session.destroy());
  session.on("error", () => {});
  return (form) => halfOverGrpc(session, form);
}

/** A body, and the headers that go with it. */
interface HttpBody {
  readonly bytes: Buffer;
  readonly headers: string;
}

function jsonBody(form: Form): HttpBody {
  const { elements, ...rest } = tensorOf(form, 7);
  const bytes = Buffer.from(JSON.stringify({ inputs: [{ name: "INPUT0", ...rest, data: elements }] }));
  return { bytes, headers: "" };
}

function rawBody(form: Form): HttpBody {
  const { datatype, elements } = tensorOf(form, 7);
  return { bytes: toWire(datatype, elements), headers: "Inference-Header-Content-Length: 0\r\n" };
}

async function halfOverHttp(
  triton: Triton,
  port: number,
  { datatype, columns }: Form,
  { bytes, headers }: HttpBody,
): Promise<HalfRequest> {
  const half = bytes.length >> 1;
  const socket = connect(port, "localhost");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  const lookUps = vi.spyOn(serviceOf(triton), "model");
  socket.write(
    `POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${headers}` +
      `Content-Length: ${bytes.length}\r\n\r\n`,
  );
  socket.write(bytes.subarray(0, half));
  await until(() => lookUps.mock.calls.length > 0);
  lookUps.mockRestore();
  return {
    async finish() {
      socket.write(bytes.subarray(half));
      const [head, ...rest] = (await textOf(socket)).split("\r\n\r\n");
      const length = /inference-header-content-length: (\d+)/i.exec(head!)?.[1];
      const body = Buffer.from(rest.join("\r\n\r\n"), "latin1");
      const json = JSON.parse(body.subarray(0, length === undefined ? undefined : Number(length)).toString());
      if (json.error !== undefined) return { error: json.error };
      const { shape, data } = json.outputs[0];
      const elements = data ?? fromWire(datatype, body.subarray(-4 * columns));
      return { version: json.model_version, tensor: { datatype: json.outputs[0].datatype, shape, elements } };
    },
  };
}

async function textOf(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("latin1").on("data", (piece) => (text += piece));
  await once(socket, "close");
  return text;
}

async function halfOverGrpc(session: ClientHttp2Session, form: Form): Promise<HalfRequest> {
  const input = { name: "INPUT0", ...tensorOf(form, 7) };
  const requestType = root.lookupType("inference.ModelInferRequest");
  const message = requestType
    .encode(requestType.fromObject({ modelName: "m", ...rawInputs([input]) }))
    .finish();
  const bytes = framed(message);
  const half = bytes.length >> 1;
  const stream = call(session, "ModelInfer");
  stream.write(bytes.subarray(0, half));
  // Frames of one connection are read in their order.
  const live = call(session, "ServerLive");
  live.end(framed(Buffer.alloc(0)));
  await answerOf(live);
  return {
    async finish() {
      stream.end(bytes.subarray(half));
      const { message: answer, error } = await answerOf(stream);
      if (error !== undefined) return { error };
      const responseType = root.lookupType("inference.ModelInferResponse");
      const response = responseType.toObject(responseType.decode(answer), { longs: Number });
      const [{ datatype, shape }] = response.outputs;
      const elements = fromWire(datatype, response.rawOutputContents[0]);
      return { version: response.modelVersion, tensor: { datatype, shape, elements } };
    },
  };
}

function call(session: ClientHttp2Session, method: string): ClientHttp2Stream {
  const stream = session.request({
    ":method": "POST",
    ":path": `/inference.GRPCInferenceService/${method}`,
    "content-type": "application/grpc",
    te: "trailers",
  });
  return stream.on("error", () => {});
}

function framed(message: Uint8Array): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}

/** The message of a call, or the text of its error. */
async function answerOf(
  stream: ClientHttp2Stream,
): Promise<{ readonly message: Buffer; readonly error?: string | undefined }> {
  const chunks: Buffer[] = [];
  let headers: Record<string, unknown> = {};
  stream.on("response", (sent) => (headers = { ...headers, ...sent }));
  stream.on("trailers", (sent) => (headers = { ...headers, ...sent }));
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(stream, "close");
  const text = headers["grpc-message"];
  const error = headers["grpc-status"] === "0" ? undefined : decodeURIComponent(String(text));
  return { message: Buffer.concat(chunks).subarray(5), error };
}
