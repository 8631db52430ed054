import { toConfigJson } from "@tritonjs/core/config";
import { jsonResponse } from "../exchange/response.js";
import type { PlainJson } from "../json/write-json.js";
import { modelRoutePath, type Route } from "./route.js";

/** Metadata of the server and its models, and configurations. */
export const metadataRoutes: readonly Route[] = [
  {
    path: /^\/v2$/,
    methods: ["GET"],
    group: "metadata",
    errorType: "application/json",
    handle({ service }) {
      const { name, version, extensions } = service.serverMetadata();
      return jsonResponse({ name, version, extensions });
    },
  },
  {
    path: modelRoutePath(""),
    methods: ["GET"],
    group: "metadata",
    errorType: "application/json",
    handle({ service, model, version }) {
      const metadata = service.modelMetadata(model, version);
      return jsonResponse({
        name: metadata.name,
        versions: metadata.versions,
        platform: metadata.platform,
        inputs: metadata.inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
        outputs: metadata.outputs.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
      });
    },
  },
  {
    path: modelRoutePath("config"),
    methods: ["GET"],
    group: "model-config",
    errorType: "application/json",
    handle({ service, model, version }) {
      return jsonResponse(toConfigJson(service.modelConfig(model, version)) as { [name: string]: PlainJson });
    },
  },
];
