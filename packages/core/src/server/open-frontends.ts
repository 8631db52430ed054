import type { Frontend, FrontendAddress } from "../frontend/frontend.js";
import type { InferenceService } from "../service/inference-service.js";

/** Result of `serve`. */
export interface ServeResult {
  /** Address of each frontend by its name: `http`, `grpc`, `metrics`. */
  readonly addresses: Readonly<Record<string, FrontendAddress>>;
}

/** Opens frontends one after the other. If one cannot be opened, the others are closed again. */
export async function openFrontends(
  frontends: readonly Frontend[],
  service: InferenceService,
): Promise<ServeResult> {
  const addresses: Record<string, FrontendAddress> = {};
  const started: Frontend[] = [];
  try {
    for (const frontend of frontends) {
      started.push(frontend);
      addresses[frontend.name] = await frontend.start(service);
    }
  } catch (error) {
    await Promise.allSettled(started.map((frontend) => frontend.stop(0)));
    throw error;
  }
  return { addresses };
}
