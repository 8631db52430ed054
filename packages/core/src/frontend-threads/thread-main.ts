import { workerData } from "node:worker_threads";
import type { Frontend, FrontendAddress, ThreadedFrontend } from "../frontend/serve-frontends.js";
import type { ServiceChange } from "../service/service-watch.js";
import { Control, type FrontendThreadData, type Methods } from "./control.js";
import { SentRequests } from "./mirrored-requests.js";
import { MirroredService } from "./mirrored-service.js";
import { ThreadLink } from "./thread-link.js";

/*
 * The program of a frontend thread.
 */

const data = workerData as FrontendThreadData;
const frontends = new Map<string, Frontend>();
const requests = new SentRequests(() => link);

const methods: Methods = {
  wake: () => link.wake(),
  change: (change: ServiceChange) => service.take(change),
  async open(name: string, { module, name: maker, options }: ThreadedFrontend): Promise<FrontendAddress> {
    const makers = (await import(module)) as Record<string, (options: unknown) => Frontend>;
    const frontend = makers[maker]!(options);
    frontends.set(name, frontend);
    return frontend.start(service);
  },
  leave: (name: string) => frontends.get(name)?.leave?.(),
  settle: (name: string) => frontends.get(name)?.settle?.(),
  async stop(name: string, drainTimeoutMs: number | undefined): Promise<void> {
    await frontends.get(name)?.stop(drainTimeoutMs);
    frontends.delete(name);
  },
  end(): void {
    link.close();
    control.close(new Error("the thread has ended"));
  },
};

const control = new Control(data.control, data.signals, methods, false);
const link: ThreadLink = new ThreadLink(data.link, control, requests);
const service = new MirroredService(data.service, control, requests);
