import type { Carrier } from "../../call/carrier.js";
import { areSeveral, listOf, ServerAddresses } from "../../servers/server-addresses.js";
import { SeveralServers } from "../../servers/several-servers.js";
import type { ClientOptions } from "../client-options.js";
import { DEFAULT_HTTP_PORT } from "../paths.js";
import { type HttpAnswer, HttpCarrier, type HttpRequest } from "./http-carrier.js";

/** Opens the carrier of one server, or of several. */
export function openHttpCarrier(
  urls: string | readonly string[],
  options: ClientOptions,
): Carrier<HttpRequest, HttpAnswer> {
  if (!areSeveral(urls)) return new HttpCarrier(listOf(urls)[0]!, options);
  const addresses = new ServerAddresses(urls, options, DEFAULT_HTTP_PORT);
  return new SeveralServers(addresses, (url) => new HttpCarrier(url, options), options);
}
