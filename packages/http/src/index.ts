export { defaultFrontends } from "./default-frontends.js";
export type { LabelLookup } from "./encode/classification.js";
export { type MetricsOptions, metrics } from "./metrics-server.js";
export type { Restriction, Restrictions } from "./restrictions.js";
export type { RouteGroup } from "./routes/route.js";
export { type HttpOptions, http } from "./server.js";
export { type V2PluginOptions, v2Plugin } from "./v2-plugin.js";
