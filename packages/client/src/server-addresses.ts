import { TritonError } from "@tritonjs/protocol";
import type { CommonClientOptions, Lookup } from "./options.js";

/** Default of `lookupIntervalMs`: headless services change at this pace, and a lookup costs less than a call. */
export const DEFAULT_LOOKUP_INTERVAL_MS = 5_000;

const NAME = /^dns:\/\/(\[[^\]/]+\]|[^:/[\]]+)(?::(\d+))?\/?$/;

type LookupOptions = Pick<CommonClientOptions, "lookup" | "lookupIntervalMs">;

interface HostName {
  readonly hostname: string;
  readonly port: string;
}

/** Splits `dns://name:port`; undefined for another address. */
export function hostNameOf(url: string, defaultPort: number): HostName | undefined {
  const [, hostname, port] = NAME.exec(url) ?? [];
  return hostname === undefined ? undefined : { hostname, port: port ?? String(defaultPort) };
}

/** True if the addresses stand for several servers, or may come to. */
export function areSeveral(urls: string | readonly string[]): boolean {
  const list = listOf(urls);
  return list.length > 1 || NAME.test(list[0]!);
}

/** The addresses as a list without repetitions, which must not be empty. */
export function listOf(urls: string | readonly string[]): readonly string[] {
  const list = typeof urls === "string" ? [urls] : [...new Set(urls)];
  if (list.length > 0) return list;
  throw new TritonError(
    "INVALID_ARG",
    "urls: expected the address of at least one server, got an empty list",
    {
      reason: "INVALID_OPTION",
    },
  );
}

/** The addresses of a list, in which names stand for all addresses that a lookup finds for them. */
export class ServerAddresses {
  readonly #urls: readonly string[];
  readonly #names: ReadonlyMap<string, HostName>;
  readonly #lookup: Lookup;
  readonly #intervalMs: number;
  readonly #found = new Map<string, readonly string[]>();
  #running: Promise<void> | undefined;
  #nextAt = Number.NEGATIVE_INFINITY;

  /** @param defaultPort port of a name without one */
  constructor(urls: string | readonly string[], options: LookupOptions, defaultPort: number) {
    this.#urls = listOf(urls);
    const names = this.#urls.map((url) => [url, hostNameOf(url, defaultPort)] as const);
    this.#names = new Map(names.filter((entry): entry is [string, HostName] => entry[1] !== undefined));
    this.#lookup = options.lookup ?? defaultLookup;
    this.#intervalMs = options.lookupIntervalMs ?? DEFAULT_LOOKUP_INTERVAL_MS;
  }

  get areNames(): boolean {
    return this.#names.size > 0;
  }

  get intervalMs(): number {
    return this.#intervalMs;
  }

  /** The addresses as of the last lookup. */
  get current(): readonly string[] {
    return [
      ...new Set(this.#urls.flatMap((url) => this.#found.get(url) ?? (this.#names.has(url) ? [] : [url]))),
    ];
  }

  /**
   * Starts a lookup if it is time for one; undefined otherwise. Calls share a lookup. A name for which nothing is found
   * keeps the addresses that it had.
   *
   * @throws TritonError UNAVAILABLE if no address is known at all.
   */
  refresh(now: number): Promise<void> | undefined {
    if (this.#names.size === 0) return undefined;
    if (this.#running === undefined && now < this.#nextAt) return undefined;
    this.#running ??= this.#lookUpAll().finally(() => {
      this.#nextAt = performance.now() + this.#intervalMs;
      this.#running = undefined;
    });
    return this.#running;
  }

  async #lookUpAll(): Promise<void> {
    let fault: TritonError | undefined;
    await Promise.all(
      [...this.#names].map(async ([url, { hostname, port }]) => {
        try {
          const found = await this.#lookup(hostname);
          if (found.length === 0) throw notFound(hostname);
          this.#found.set(
            url,
            found.map((address) => `${address.includes(":") ? `[${address}]` : address}:${port}`),
          );
        } catch (cause) {
          fault = notFound(hostname, cause);
        }
      }),
    );
    if (this.current.length > 0) return;
    throw fault!;
  }
}

function notFound(hostname: string, cause?: unknown): TritonError {
  if (TritonError.is(cause)) return cause;
  const why = cause === undefined ? "it has no addresses" : (cause as Error).message;
  return new TritonError("UNAVAILABLE", `cannot find the servers of '${hostname}': ${why}`, {
    reason: "CONNECTION_FAILED",
    cause,
  });
}

/** The parts of Node.js that look a name up. Bundlers for browsers would fail at an import of them. */
interface NodeProcess {
  getBuiltinModule?(name: "dns/promises"): {
    lookup(hostname: string, options: { all: true }): Promise<readonly { readonly address: string }[]>;
  };
}

/** Finds all addresses of a host with the resolver of Node.js, 20.16 or newer. */
async function defaultLookup(hostname: string): Promise<readonly string[]> {
  const dns = (globalThis as { process?: NodeProcess }).process?.getBuiltinModule?.("dns/promises");
  if (dns === undefined) {
    throw new TritonError(
      "UNSUPPORTED",
      `cannot look up '${hostname}': expected Node.js 20.16 or newer; give the option lookup`,
      { reason: "PLATFORM_NOT_SUPPORTED" },
    );
  }
  return (await dns.lookup(hostname, { all: true })).map(({ address }) => address);
}
