import { TritonError } from "@tritonjs/protocol";
import { modelOfConfig, modelOfMetadata, modelWithoutTypes, type TypedModel } from "./typed-model.js";

/** Options of reading the models of a server. */
export interface ServerSource {
  /** Names of the models; those that the server lists unless given. */
  readonly models?: readonly string[];
  readonly token?: string;
  readonly timeoutMs: number;
}

/** The part of a client of either protocol that describes models. */
interface Describing {
  getModelRepositoryIndex(
    call: object,
  ): Promise<readonly { readonly name?: string; readonly reason?: string }[]>;
  getModelConfig(modelName: string, call: object): Promise<object>;
  getModelMetadata(modelName: string, call: object): Promise<Parameters<typeof modelOfMetadata>[1]>;
  close(): void;
}

/** Models read at once: a server with hundreds of them answers while others wait. */
const AT_ONCE = 16;

/** True for the address of a server. */
export function isServer(path: string): boolean {
  return /^(https?|grpcs?):\/\//i.test(path);
}

/**
 * Reads the models of a v2 server. A model that cannot be read is unknown, with the reason.
 *
 * @returns the models, and a text if the server did not list them
 */
export async function readServer(
  url: string,
  { models, token, timeoutMs }: ServerSource,
): Promise<{ readonly models: readonly TypedModel[]; readonly problem?: string }> {
  let client: Describing | undefined;
  try {
    client = await openClient(url, { timeoutMs, ...(token !== undefined && { accessToken: token }) });
    const names = models ?? (await namesOf(client, timeoutMs));
    return { models: await describe(client, [...new Set(names)], timeoutMs) };
  } catch (error) {
    const reason = TritonError.from(error).message;
    return { models: [], problem: `${url} did not list its models (name them with --model): ${reason}` };
  } finally {
    client?.close();
  }
}

async function openClient(url: string, options: object): Promise<Describing> {
  // One attempt tells whether a server answers.
  const settings = { ...options, retries: 0 };
  if (/^grpc/i.test(url)) {
    const { InferenceServerClient } = await import("@tritonjs/client/grpc");
    return new InferenceServerClient(url.replace(/^grpc:\/\//i, ""), settings);
  }
  const { InferenceServerClient } = await import("@tritonjs/client/http");
  return new InferenceServerClient(url, settings);
}

async function namesOf(client: Describing, timeoutMs: number): Promise<string[]> {
  const index = await client.getModelRepositoryIndex({ timeoutMs });
  return index.flatMap(({ name }) => (typeof name === "string" && name !== "" ? [name] : []));
}

async function describe(
  client: Describing,
  names: readonly string[],
  timeoutMs: number,
): Promise<TypedModel[]> {
  const described = new Array<TypedModel>(names.length);
  const places = names.keys();
  const readNext = async () => {
    for (const place of places) described[place] = await describeOne(client, names[place]!, timeoutMs);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, readNext));
  return described;
}

async function describeOne(client: Describing, name: string, timeoutMs: number): Promise<TypedModel> {
  let reason: string;
  try {
    const config = await client.getModelConfig(name, { timeoutMs });
    if (Array.isArray((config as { input?: unknown }).input)) return modelOfConfig(name, config);
    reason = "the server's configuration has no inputs";
  } catch (error) {
    reason = `the server has no configuration of it (${TritonError.from(error).message})`;
  }
  try {
    const metadata = await client.getModelMetadata(name, { timeoutMs });
    if (Array.isArray(metadata.inputs) && Array.isArray(metadata.outputs)) {
      return modelOfMetadata(name, metadata, reason);
    }
    return modelWithoutTypes(name, "the server's metadata of it has no inputs and outputs");
  } catch (error) {
    return modelWithoutTypes(name, TritonError.from(error).message);
  }
}
