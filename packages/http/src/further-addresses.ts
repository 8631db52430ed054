import { lookup } from "node:dns/promises";
import { createServer, type Server, type Socket } from "node:net";

/** Address families that a machine may lack while its resolver still names them. */
const LACKING: ReadonlySet<string | undefined> = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"]);

/** The port, and whether others may listen on it too. */
export interface ListenAt {
  readonly port: number;
  readonly reusePort: boolean;
}

/** The addresses of a host, the one to listen on first and the others: `localhost` is 127.0.0.1 and often ::1. */
export async function addressesOf(host: string): Promise<readonly [string, ...string[]]> {
  const [first, ...others] = (await lookup(host, { all: true })).map(({ address }) => address);
  return first === undefined ? [host] : [first, ...others];
}

/**
 * Listens on further addresses and hands every connection to one server, which so sees all of them, and can end all of
 * them when it stops.
 *
 * @throws the error of an address that cannot be listened on, after the others have been closed
 */
export async function listenAlso(
  addresses: readonly string[],
  at: ListenAt,
  accept: (socket: Socket) => void,
): Promise<Server[]> {
  const servers: Server[] = [];
  try {
    for (const host of addresses) {
      const server = await listenOn({ host, ...at }, accept);
      if (server !== undefined) servers.push(server);
    }
  } catch (error) {
    for (const server of servers) server.close();
    throw error;
  }
  return servers;
}

function listenOn(
  options: ListenAt & { readonly host: string },
  accept: (socket: Socket) => void,
): Promise<Server | undefined> {
  const server = createServer({ noDelay: true }, accept);
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (LACKING.has(error.code)) resolve(undefined);
      else reject(error);
    });
    server.listen(options, () => resolve(server));
  });
}
