import type { InferenceService } from "@tritonjs/core/frontend";

const EVERY_SECONDS = 10;

/** Logs the models that are still loading, every ten seconds until stopped. */
export function reportProgress(service: InferenceService): { stop(): void } {
  let seconds = 0;
  const timer = setInterval(async () => {
    seconds += EVERY_SECONDS;
    const index = await service.repositoryIndex(false).catch(() => undefined);
    if (index === undefined) {
      // The server is closing.
      clearInterval(timer);
      return;
    }
    const loading = index.filter(({ state }) => state === "LOADING");
    const names = loading.map(({ name, version }) => `${name}:${version}`).join(", ");
    if (names !== "") service.log.info(`still loading after ${seconds} seconds: ${names}`);
  }, EVERY_SECONDS * 1000).unref();
  return { stop: () => clearInterval(timer) };
}
