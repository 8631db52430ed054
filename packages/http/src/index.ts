export { defaultFrontends } from "./default-frontends.js";
export * from "./fetch.js";
export type { HttpLimits } from "./http-limits.js";
export { type MetricsOptions, metrics } from "./metrics-server.js";
export { type HttpOptions, http } from "./server.js";
export type { TlsOptions } from "./tls-options.js";
export { type V2PluginOptions, v2Plugin } from "./v2-plugin.js";
