import { HttpServerView } from "../measure/server/http-server-view.js";
import { ReportServerView } from "../measure/server/report-server-view.js";
import type { ServerView } from "../measure/server/server-view.js";
import { readModel } from "../target/read-model.js";
import { grpcClientOf, httpClientOf } from "../target/server-client.js";
import type { GrpcTargetOptions } from "../target/target-options.js";
import { openTriton } from "./open-triton.js";
import type { OpenedTarget } from "./opened-target.js";
import type { InProcessSettings, TargetSettings } from "./perf-settings.js";

/**
 * Connects to a server, or loads the models of this process, and asks for the model.
 *
 * @throws TritonError UNAVAILABLE without a server, NOT_FOUND for an unknown model, INVALID_ARG for a module that has no
 * `Triton`
 */
export async function openTarget(settings: TargetSettings): Promise<OpenedTarget> {
  if (settings.kind === "openai") return { options: settings, close: async () => {} };
  if (settings.kind === "in-process") return openInProcess(settings);
  const model = await readModel(settings);
  const view = settings.kind === "http" ? new HttpServerView(httpClientOf(settings)) : grpcView(settings);
  return { options: settings, model, view, close: async () => view.close?.() };
}

function grpcView(settings: GrpcTargetOptions): ServerView {
  const client = grpcClientOf(settings);
  return new ReportServerView({
    extensions: async () => (await client.getServerMetadata()).extensions,
    modelConfig: (name, modelVersion) => client.getModelConfig(name, { modelVersion }),
    statistics: (name, modelVersion) => client.getInferenceStatistics(name, { modelVersion }),
    close: () => client.close(),
  });
}

async function openInProcess({ source, ...model }: InProcessSettings): Promise<OpenedTarget> {
  const triton = await openTriton(source, model.modelName);
  const close = () => triton.close();
  try {
    const { service } = triton;
    const options = { ...model, source: { triton } };
    const view = new ReportServerView({
      extensions: () => service.serverMetadata().extensions,
      modelConfig: (name, version) => service.modelConfig(name, version),
      statistics: (name, version) => service.statistics(name, version),
    });
    return { options, model: await readModel(options), view, metricsPage: () => service.metrics(), close };
  } catch (error) {
    await close();
    throw error;
  }
}
