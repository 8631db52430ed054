import { type ClientDuplexStream, type StatusObject, status } from "@grpc/grpc-js";
import type { CallDeadline } from "../../call/deadline.js";
import { areSeveral, hostNameOf, listOf, ServerAddresses } from "../../servers/server-addresses.js";
import { SeveralServers } from "../../servers/several-servers.js";
import type { CallOptions, ClientOptions } from "../client-options.js";
import { failureOf } from "./failure.js";
import { GrpcCarrier, type GrpcRequest, type StreamCarrier, type StreamMethod } from "./grpc-carrier.js";
import { DEFAULT_GRPC_PORT } from "./server-address.js";

/** Opens the carrier of one server, or of several. */
export function openGrpcCarrier(urls: string | readonly string[], options: ClientOptions): StreamCarrier {
  return areSeveral(urls) ? new GrpcServers(urls, options) : new GrpcCarrier(listOf(urls)[0]!, options);
}

/** The client leaves servers out by itself: grpc-js must not pause much longer, which is two minutes by default. */
const RECONNECT = { "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 2_000 };

/** A carrier over several servers. A stream goes to one of them. */
class GrpcServers extends SeveralServers<GrpcRequest, Buffer, GrpcCarrier> implements StreamCarrier {
  constructor(urls: string | readonly string[], options: ClientOptions) {
    const addresses = new ServerAddresses(urls, options, DEFAULT_GRPC_PORT);
    const channelOptions = { ...RECONNECT, ...nameOptions(urls, options), ...options.channelOptions };
    super(addresses, (url) => new GrpcCarrier(url, { ...options, channelOptions }), options);
  }

  async duplex<Q, R>(
    method: StreamMethod<Q, R>,
    headers: CallOptions["headers"],
    deadline: CallDeadline,
  ): Promise<ClientDuplexStream<Q, R>> {
    const { carrier, ended } = await this.beginStream();
    let stream: ClientDuplexStream<Q, R>;
    try {
      stream = carrier.duplex(method, headers, deadline);
    } catch (error) {
      ended(true);
      throw error;
    }
    stream.once("status", ({ code, details }: StatusObject) => {
      ended(code === status.OK || failureOf({ code, details }) === undefined);
    });
    return stream;
  }
}

/** With TLS, the certificate names the host, not the addresses that were found for it. */
export function nameOptions(
  urls: string | readonly string[],
  { tls }: Pick<ClientOptions, "tls">,
): Readonly<Record<string, string>> {
  const [first] = listOf(urls);
  const name = tls ? hostNameOf(first!, DEFAULT_GRPC_PORT)?.hostname : undefined;
  return name === undefined ? {} : { "grpc.ssl_target_name_override": name, "grpc.default_authority": name };
}
