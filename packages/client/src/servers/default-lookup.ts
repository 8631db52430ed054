import { TritonError } from "@tritonjs/protocol";

/** The parts of Node.js that look a name up. Bundlers for browsers would fail at an import of them. */
interface NodeProcess {
  getBuiltinModule?(name: "dns/promises"): {
    lookup(hostname: string, options: { all: true }): Promise<readonly { readonly address: string }[]>;
  };
}

/**
 * Finds all addresses of a host with the resolver of Node.js.
 *
 * @throws TritonError UNSUPPORTED without Node.js 20.16 or newer.
 */
export async function defaultLookup(hostname: string): Promise<readonly string[]> {
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
