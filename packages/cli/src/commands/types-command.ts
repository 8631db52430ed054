import { existsSync } from "node:fs";
import { stat, writeFile } from "node:fs/promises";
import { TritonError } from "@tritonjs/protocol";
import {
  type InspectOptions,
  inspectModelFile,
  isCloudPath,
  type ModelInspection,
} from "@tritonjs/repository/config";
import { Command } from "commander";
import type { CommandContext } from "../command-context.js";
import { isServer, readServer } from "../types/read-server.js";
import { modelOfConfig, modelWithoutTypes, type TypedModel } from "../types/typed-model.js";
import { schemasText } from "../types/write-schemas.js";
import { oneLine, typesText } from "../types/write-types.js";
import { findingsText, inspectHere } from "./config-command.js";

interface TypesOptions {
  readonly out?: string;
  readonly zod?: string;
  readonly client?: true;
  readonly model?: readonly string[];
  readonly token?: string;
  readonly timeout: string;
  readonly modelConfigName?: string;
}

export function typesCommand({ terminal, additions, finish }: CommandContext): Command {
  const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];
  return new Command("types")
    .description("write types of models, for createClient(), triton.infer() and triton.bind()")
    .argument(
      "<sources...>",
      "servers (http://host:8000, grpc://host:8001); model repositories; .onnx files, model.json files, SavedModels and " +
        "tree models, also as <name>=<file>",
    )
    .option("--out <file>", "file to write; standard output unless given")
    .option("--zod <file>", "also write schemas for zod to this file, which check inputs at run time")
    .option("--client", "write types for clients alone; for programs without @tritonjs/core")
    .option(
      "--model <name>",
      "model of the servers, again for each; all that they list unless given",
      collect,
    )
    .option("--token <token>", "access token of the servers")
    .option("--timeout <milliseconds>", "longest time for each answer of a server", "10000")
    .option("--model-config-name <name>", "use configs/<name>.pbtxt where there is one")
    .action(async (sources: string[], { out, zod, client, modelConfigName, ...options }: TypesOptions) => {
      const timeoutMs = Number(options.timeout);
      if (!(timeoutMs > 0)) {
        throw new TritonError("INVALID_ARG", `--timeout: expected milliseconds, got '${options.timeout}'`, {
          reason: "INVALID_OPTION",
        });
      }
      const servers = sources.filter(isServer);
      const paths = sources.filter((source) => !isServer(source));
      const settings = { ...(modelConfigName !== undefined && { modelConfigName }), ...additions };
      const local = paths.length === 0 ? [] : await inspectTypedModels(paths, settings);
      const remote = await Promise.all(
        servers.map(async (url) => {
          const { model: models, token } = options;
          return {
            url,
            ...(await readServer(url, { models, token, timeoutMs } as Parameters<typeof readServer>[1])),
          };
        }),
      );
      const broken = local.filter(({ config }) => config === undefined);
      if (broken.length > 0) terminal.writeError(findingsText(broken));
      const unread = remote.flatMap(({ problem }) => problem ?? []);
      for (const problem of unread) terminal.writeError(`${oneLine(problem)}\n`);
      const fromServers = remote.flatMap(({ url, models }) => models.map((model) => ({ url, model })));
      for (const { url, model } of fromServers) {
        if (model.inputs !== undefined) continue;
        terminal.writeError(`${url}: model '${oneLine(model.name)}': ${oneLine(model.notes.join("; "))}\n`);
      }
      const models = withDistinctNames([
        ...local.map(typedInspection),
        ...fromServers.map(({ model }) => model),
      ]);
      const text = typesText({ models, unread }, client !== true && servers.length === 0);
      if (out === undefined) terminal.write(text);
      else await writeFile(out, text);
      if (zod !== undefined) await writeFile(zod, schemasText({ models, unread }));
      finish(
        unread.length > 0 || models.some(({ inputs }) => inputs === undefined) || broken.length > 0 ? 1 : 0,
      );
    });
}

function typedInspection({ name, config, labels, findings }: ModelInspection): TypedModel {
  if (config !== undefined) return modelOfConfig(name, config, labels);
  return modelWithoutTypes(
    name,
    findings.find(({ severity }) => severity === "error")?.message ?? "it cannot be read",
  );
}

/** The first model of each name, but one that is known before one that is not. */
function withDistinctNames(models: readonly TypedModel[]): TypedModel[] {
  const byName = new Map<string, TypedModel>();
  for (const model of models) {
    const before = byName.get(model.name);
    if (before === undefined || before.inputs === undefined) byName.set(model.name, model);
  }
  return [...byName.values()];
}

/**
 * Inspects model repositories and model files. A file may come with the name of its model: `resnet=files/v2.onnx`.
 */
async function inspectTypedModels(
  paths: readonly string[],
  options: InspectOptions,
): Promise<ModelInspection[]> {
  const found = await Promise.all(paths.map(async (path) => ({ path, model: await inspectFile(path) })));
  const repositories = found.filter(({ model }) => model === undefined).map(({ path }) => path);
  for (const path of repositories) await assertRepository(path);
  const files = found.flatMap(({ model }) => model ?? []);
  const inRepositories = repositories.length === 0 ? [] : await inspectHere(repositories, options);
  const names = inRepositories.map(({ name }) => name);
  return [...inRepositories, ...files.map((file) => unlessTaken(file, names))];
}

async function assertRepository(path: string): Promise<void> {
  if (isCloudPath(path)) return;
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return;
  const expected =
    "a model repository, an .onnx file, a model.json of TensorFlow.js, the directory of a SavedModel, or a tree model " +
    "(.json, .ubj or .model of XGBoost, .txt of LightGBM, .tl of Treelite)";
  const got = found === undefined ? "a path that does not exist" : "another file";
  throw new TritonError("INVALID_ARG", `cannot read models of '${path}': expected ${expected}, got ${got}`);
}

async function inspectFile(given: string): Promise<ModelInspection | undefined> {
  if (isCloudPath(given)) return undefined;
  const sign = given.indexOf("=");
  const isNamed = sign > 0 && !existsSync(given);
  return isNamed ? inspectModelFile(given.slice(sign + 1), given.slice(0, sign)) : inspectModelFile(given);
}

function unlessTaken(model: ModelInspection, names: string[]): ModelInspection {
  const { name, directory } = model;
  if (!names.includes(name)) {
    names.push(name);
    return model;
  }
  const message = `two models have the name '${name}': name one with <name>=<file>`;
  return { ...model, config: undefined, findings: [{ severity: "error", path: directory, message }] };
}
