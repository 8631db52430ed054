import { join } from "node:path";
import { body, call } from "./call.js";
import { unpacked } from "./multi-model.js";
import { PlatformServer } from "./platform-server.js";

/** Each platform describes the server that it wants with environment variables, and runs `tritonjs serve`. */
export async function serveByVariables(): Promise<void> {
  {
    await using server = await PlatformServer.start({
      AIP_MODE: "PREDICTION",
      AIP_HTTP_PORT: "0",
      AIP_PREDICT_ROUTE: "/v1/predict",
      AIP_HEALTH_ROUTE: "/v1/health",
      // The platform gives a path of Cloud Storage: gs://bucket/models.
      AIP_STORAGE_URI: join(unpacked, "3f9c", "model"),
    });
    await call("AIP_MODE=PREDICTION", server.url, "/v1/predict", { method: "POST", body });
  }
  await using server = await PlatformServer.start({
    SAGEMAKER_MULTI_MODEL: "true",
    SAGEMAKER_BIND_TO_PORT: "0",
    SAGEMAKER_TRITON_ADDITIONAL_ARGS: "--id=endpoint",
  });
  await call("SAGEMAKER_MULTI_MODEL=true", server.url, "/ping");
}
