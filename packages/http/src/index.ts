import type { Frontend } from "@tritonjs/core";
import type { DefaultFrontends } from "@tritonjs/core/internal";
import { http, metrics } from "./server/http-frontends.js";

export type { TlsOptions } from "@tritonjs/core/frontend";
export * from "./fetch.js";
export { type HttpOptions, http, type MetricsOptions, metrics } from "./server/http-frontends.js";
export type { HttpLimits } from "./server/listening-frontend.js";
export { type V2PluginOptions, v2Plugin } from "./server/v2-plugin.js";

/** The frontends of this package that `serve()` opens by default. */
export const defaultFrontends: DefaultFrontends = (options, pages) => {
  const frontends: Frontend[] = [];
  if (options.allowHttp) {
    frontends.push(
      http({
        port: options.httpPort,
        address: options.httpAddress,
        maxInputSize: options.httpMaxInputSize,
        maxInputSizeName: "new Triton({ httpMaxInputSize })",
        ...(pages && (options.allowMetrics ? { landing: pages } : { pages })),
      }),
    );
  }
  if (options.allowMetrics) {
    frontends.push(
      metrics({ port: options.metricsPort, address: options.metricsAddress, ...(pages && { pages }) }),
    );
  }
  return frontends;
};
