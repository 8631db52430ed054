import { assertOptions } from "@tritonjs/protocol";
import { isAddress, type ModelCarrier, type ServerOfModel } from "./known-model.js";
import { type CommonModelOptions, MODEL_CLIENT_OPTION_TYPES } from "./options.js";
import type { ModelCalls, ModelNamed, ModelsClient, NameOfModel } from "./served-models.js";

/** The client of one model as this file uses it. */
interface OneModel {
  close(): Promise<void>;
}

interface Answering extends OneModel {
  inferSample(...given: readonly unknown[]): Promise<unknown>;
  inferBatch(...given: readonly unknown[]): Promise<unknown>;
  classify(output: string, inputs: never, options?: never): Promise<unknown>;
}

interface Streaming extends OneModel {
  inferSample(...given: readonly unknown[]): AsyncGenerator<unknown, void, void>;
}

/** The classes of the clients of one model, over one protocol. */
interface ModelClasses<S> {
  readonly answering: new (server: S, modelName: string, options: object) => Answering;
  readonly streaming: new (server: S, modelName: string, options: object) => Streaming;
}

/** Makes the client of all models of a server from the clients of one model. */
export function modelsClient<Models, Options, S extends ServerOfModel>(
  carrier: ModelCarrier<S>,
  address: string | readonly string[] | S,
  options: CommonModelOptions,
  { answering, streaming }: ModelClasses<S>,
): ModelsClient<Models, Options, S> {
  const { timeoutMs: _, ...serverTypes } = carrier.serverTypes;
  assertOptions("createClient()", options, { ...serverTypes, ...MODEL_CLIENT_OPTION_TYPES });
  const isOption = (types: object) => (entry: [string, unknown]) => Object.hasOwn(types, entry[0]);
  const all = Object.entries(options);
  const ofModels = Object.fromEntries(all.filter(isOption(MODEL_CLIENT_OPTION_TYPES)));
  const server = isAddress(address)
    ? carrier.open(address, Object.fromEntries(all.filter(isOption(serverTypes))))
    : address;
  const models = new Map<string, { readonly calls: object; close(): Promise<unknown> }>();
  const open = (modelName: string, modelVersion: string | number | undefined) => {
    const own = modelVersion === undefined ? ofModels : { ...ofModels, modelVersion };
    const answers = new answering(server, modelName, own);
    let streams: Streaming | undefined;
    const calls = {
      inferSample: (...given: readonly unknown[]) => answers.inferSample(...given),
      inferBatch: (...given: readonly unknown[]) => answers.inferBatch(...given),
      classify: (output: string, inputs: never, more?: never) => answers.classify(output, inputs, more),
      streamSample: (...given: readonly unknown[]) => {
        streams ??= new streaming(server, modelName, own);
        return streams.inferSample(...given);
      },
    };
    return { calls, close: () => Promise.all([answers.close(), streams?.close()]) };
  };
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= Promise.all([...models.values()].map((model) => model.close())).then(() => {
      if (isAddress(address)) server.close();
    });
    return closing;
  };
  return {
    server,
    model: <const N extends NameOfModel<Models>>(modelName: N, modelVersion?: string | number) => {
      const key = `${modelVersion ?? ""}/${modelName}`;
      let model = models.get(key);
      if (model === undefined) {
        model = open(modelName, modelVersion);
        models.set(key, model);
        if (closing !== undefined) void model.close();
      }
      return model.calls as ModelCalls<ModelNamed<Models, N>, Options>;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
