import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import type {
  AccessGroup,
  AllowedHosts,
  AuthenticationRequest,
  ManagementOperation,
  ManagementRoute,
  RequestMemoryOptions,
} from "@tritonjs/core/internal/server";
import { type ErrorCode, type ServerMetadata, TritonError } from "@tritonjs/protocol";
import type { Restrictions } from "../access/access-control.js";
import type { InferenceService } from "../service/inference-service.js";
import type { ServiceChange } from "../service/service-watch.js";
import type { LinkEnd } from "./thread-link.js";

/** A message between the engine and a thread; `null` is a wake-up. */
type Message =
  | null
  | { readonly type: "change"; readonly change: ServiceChange }
  | { readonly type: "call"; readonly id: number; readonly method: string; readonly args: readonly unknown[] }
  | { readonly type: "tell"; readonly method: string; readonly args: readonly unknown[] }
  | { readonly type: "reply"; readonly id: number; readonly value?: unknown; readonly error?: ClonedError };

/** Calls that the other end may make: `wake` if it has frames or space for some, `change` if the service has changed. */
export type Methods = Readonly<Record<string, (...args: never[]) => unknown>>;

/**
 * Calls between the engine and a thread, and the changes of the service. The engine counts the changes and replies that
 * it has sent, in memory that the thread sees. So a thread finds out, at the cost of one read, whether its copy of the
 * service is current. If not, it takes the messages from the port at once.
 */
export class Control {
  readonly #signals: Int32Array;
  readonly #calls = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  #lastId = 0;
  /** Counted messages that this end has taken. */
  #seen = 0;
  /** Why no message is sent any more. */
  #closed: Error | undefined;

  /** @param isEngine true for the end whose messages are counted */
  constructor(
    private readonly port: MessagePort,
    signals: SharedArrayBuffer,
    private readonly methods: Methods,
    private readonly isEngine: boolean,
  ) {
    this.#signals = new Int32Array(signals);
    port.on("message", (message: Message) => this.#take(message));
  }

  wakeOther(): void {
    this.port.postMessage(null);
  }

  /** Sends a change, which the thread sees before its next look-up. */
  sendChange(change: ServiceChange): void {
    this.#post({ type: "change", change });
    this.#signal();
  }

  /** Calls a method of the other end, and ignores its result. */
  tell(method: string, ...args: readonly unknown[]): void {
    this.#post({ type: "tell", method, args });
  }

  /** Calls a method of the other end. */
  call<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    const id = ++this.#lastId;
    const result = new Promise<T>((resolve, reject) => {
      this.#calls.set(id, { resolve: resolve as (value: unknown) => void, reject });
    });
    this.#post({ type: "call", id, method, args });
    return result;
  }

  /** Calls a method of the engine and blocks this thread until the engine answers, which takes a turn of its event loop. */
  callSync<T>(method: string, ...args: readonly unknown[]): T {
    const id = ++this.#lastId;
    let reply: { readonly value?: unknown; readonly error?: ClonedError } | undefined;
    this.#calls.set(id, {
      resolve: (value) => {
        reply = { value };
      },
      reject: (error) => {
        reply = { error: error as ClonedError };
      },
    });
    this.#post({ type: "call", id, method, args });
    for (;;) {
      const before = Atomics.load(this.#signals, SIGNAL);
      this.takeWaiting();
      if (reply !== undefined) break;
      Atomics.wait(this.#signals, SIGNAL, before);
    }
    if (reply.error !== undefined) throw reply.error;
    return reply.value as T;
  }

  /** Takes the changes that the engine has sent by now. Costs one read if there are none. */
  catchUp(): void {
    if (Atomics.load(this.#signals, SIGNAL) !== this.#seen) this.takeWaiting();
  }

  /** Takes all messages of the port. Changes and replies count at once, others after the present turn. */
  takeWaiting(): void {
    for (
      let next = receiveMessageOnPort(this.port);
      next !== undefined;
      next = receiveMessageOnPort(this.port)
    ) {
      const message = next.message as Message;
      if (message?.type === "change" || message?.type === "reply") this.#take(message);
      else setImmediate(() => this.#take(message));
    }
  }

  /** Fails all calls that are not answered. */
  close(error: Error): void {
    this.#closed = error;
    this.port.close();
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
  }

  #take(message: Message): void {
    if (this.#closed !== undefined) return;
    if (message === null) {
      this.#invoke("wake");
      return;
    }
    switch (message.type) {
      case "change":
        this.#seen = (this.#seen + 1) | 0;
        this.#invoke("change", message.change);
        break;
      case "reply": {
        this.#seen = (this.#seen + 1) | 0;
        const call = this.#calls.get(message.id);
        this.#calls.delete(message.id);
        if (message.error === undefined) call?.resolve(message.value);
        else call?.reject(reviveError(message.error));
        break;
      }
      case "call":
        void this.#answer(message.id, message.method, message.args);
        break;
      case "tell":
        void Promise.resolve(this.#invoke(message.method, ...message.args)).catch((error: Error) =>
          process.emitWarning(error),
        );
        break;
    }
  }

  async #answer(id: number, method: string, args: readonly unknown[]): Promise<void> {
    try {
      this.#post({ type: "reply", id, value: await this.#invoke(method, ...args) });
    } catch (thrown) {
      this.#post({ type: "reply", id, error: cloneError(thrown) });
    }
    this.#signal();
  }

  #invoke(method: string, ...args: readonly unknown[]): unknown {
    return this.methods[method]!(...(args as never[]));
  }

  #post(message: Message): void {
    if (this.#closed === undefined) this.port.postMessage(message);
  }

  /** Counts a message that the thread must see, and wakes a thread that waits for it. */
  #signal(): void {
    if (!this.isEngine) return;
    Atomics.add(this.#signals, SIGNAL, 1);
    Atomics.notify(this.#signals, SIGNAL);
  }
}

/** An error as it goes to another thread. Structured clone would lose its class. */
interface ClonedError {
  readonly code: ErrorCode;
  readonly reason: string;
  readonly message: string;
  readonly retryAfterMs: number | undefined;
  /** Code and text of the cause, by which a failure to listen is recognised. */
  readonly cause: { readonly code: unknown; readonly message: string } | undefined;
}

function cloneError(thrown: unknown): ClonedError {
  const { code, reason, message, retryAfterMs, cause } = TritonError.from(thrown);
  return {
    code,
    reason,
    message,
    retryAfterMs,
    cause:
      cause instanceof Error
        ? { code: (cause as NodeJS.ErrnoException).code, message: cause.message }
        : undefined,
  };
}

function reviveError({ code, reason, message, retryAfterMs, cause }: ClonedError): TritonError {
  return new TritonError(code, message, {
    reason: reason as never,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(cause !== undefined && { cause: Object.assign(new Error(cause.message), { code: cause.code }) }),
  });
}

/** Everything that a thread is started with. */
export interface FrontendThreadData {
  readonly link: LinkEnd;
  /** Carries calls in both directions, changes of the service, and wake-ups. */
  readonly control: MessagePort;
  /** Words for {@link SIGNAL}. */
  readonly signals: SharedArrayBuffer;
  readonly service: ServiceData;
}

/** Index of the word that counts the messages of the engine that a thread must see before it continues. */
const SIGNAL = 0;

/** The parts of the service that never change. */
export interface ServiceData {
  readonly metadata: ServerMetadata;
  readonly namespacing: boolean;
  readonly restrictions: Restrictions;
  readonly allowedHosts?: AllowedHosts;
  /** Undefined if every client is accepted. */
  readonly authentication:
    | { readonly challenge: string; readonly publicEndpoints: readonly AccessGroup[] }
    | undefined;
  /** What extensions add to the management, without the functions. */
  readonly management: readonly ManagementRoute[];
  readonly traces: boolean;
  readonly allowsSharedMemory: boolean;
  /** Module that maps memory of GPUs, for a server with GPUs. */
  readonly gpuRegions?: string | undefined;
  /** Counts of the users of regions. */
  readonly regionUsers: Int32Array;
  readonly requestMemory: RequestMemoryOptions;
  /** Rows in which threads count the memory of requests, and the row of this thread. */
  readonly memoryRows: Float64Array;
  readonly memoryRow: number;
  /** `performance.timeOrigin` of the engine, whose clock times all traces. */
  readonly timeOrigin: number;
  readonly state: ServiceChange;
}

/** A request to authenticate. Headers cannot be cloned, so they are a list. */
export type ClonedAuthenticationRequest = Omit<AuthenticationRequest, "headers"> & {
  readonly headers: readonly (readonly [string, string])[];
};

/** Methods of the service that threads call as they are. */
export const FORWARDED = [
  "checkReady",
  "checkModelReady",
  "modelReadiness",
  "modelConfig",
  "statistics",
  "queue",
  "loadReport",
  "repositoryIndex",
  "loadModel",
  "unloadModel",
  "registerModelRepository",
  "unregisterModelRepository",
  "prepareMetrics",
  "metrics",
  "metricsFor",
] as const satisfies readonly (keyof InferenceService)[];

export type ForwardedMethod = (typeof FORWARDED)[number];

/** Routes with other operations: their functions cannot be cloned, so a thread makes its own, which call the engine. */
export function withOperations(
  routes: readonly ManagementRoute[],
  change: (
    operation: ManagementOperation,
    route: ManagementRoute,
    method: "get" | "post",
  ) => Omit<ManagementOperation, "run">,
): ManagementRoute[] {
  return routes.map((route) => {
    const { get, post } = route;
    const changed = {
      ...(get && { get: change(get, route, "get") }),
      ...(post && { post: change(post, route, "post") }),
    };
    return { ...route, ...changed } as ManagementRoute;
  });
}
