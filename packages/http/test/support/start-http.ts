import { onTestFinished } from "vitest";
import { type HttpOptions, http } from "../../src/index.js";
import type { IdentityService } from "./identity-service.js";

/** Opens the HTTP frontend on a free port until the end of the test. */
export async function startHttp(service: IdentityService, options: HttpOptions = {}): Promise<number> {
  const frontend = http({ port: 0, ...options });
  const { port } = await frontend.start({ service });
  onTestFinished(() => frontend.stop());
  return port;
}
