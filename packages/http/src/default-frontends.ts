import type { DefaultFrontends, Frontend } from "@tritonjs/core";
import { metrics } from "./metrics-server.js";
import { http } from "./server.js";

/** The frontends of this package that `serve()` opens by itself. */
export const defaultFrontends: DefaultFrontends = (options) => {
  const frontends: Frontend[] = [];
  if (options.allowHttp) {
    frontends.push(
      http({
        port: options.httpPort,
        address: options.httpAddress,
        maxInputSize: options.httpMaxInputSize,
      }),
    );
  }
  if (options.allowMetrics) {
    frontends.push(metrics({ port: options.metricsPort, address: options.metricsAddress }));
  }
  return frontends;
};
