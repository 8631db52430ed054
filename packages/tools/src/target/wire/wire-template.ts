import type { DataType } from "@tritonjs/protocol";

/*
 * A request is prepared once, in full:
 *
 *   | head, parameters ... [fresh values] | rest of the tensors |
 *   ^ start               ^ prefix end                          ^ end
 *
 * What differs from request to request lies in the prefix, at places of fixed length. A request with such places is a
 * stamped copy of the prefix, followed by the shared rest. Other requests are sent without any copy. The bytes lie in
 * shared memory, so that threads do not multiply them.
 */

/** Place of random values in a prepared request, relative to its start. */
export interface FreshPlace {
  readonly at: number;
  readonly byteSize: number;
  readonly datatype: DataType;
}

/** Places of a prepared request that a request replaces, relative to its start. */
export interface StampPlaces {
  readonly fresh?: FreshPlace;
  readonly sequenceId?: number;
  readonly sequenceStart?: number;
  readonly sequenceEnd?: number;
  readonly requestId?: number;
}

/** A prepared request: a range of the shared bytes. */
export interface WireTemplate {
  readonly start: number;
  readonly end: number;
  /** End of the part that is copied for each request, relative to the start. 0 when nothing is replaced. */
  readonly prefixEnd: number;
  readonly places: StampPlaces;
}

/** All prepared requests of a data set. */
export interface WireTemplates {
  readonly bytes: SharedArrayBuffer;
  readonly templates: readonly WireTemplate[];
}

/** A prepared request before it is put into shared memory. */
export interface PreparedRequest {
  readonly parts: readonly Uint8Array[];
  readonly places: StampPlaces;
  /** End of the last place, relative to the start. */
  readonly prefixEnd: number;
}

/** Puts prepared requests into shared memory. */
export function shareRequests(requests: readonly PreparedRequest[]): WireTemplates {
  const lengths = requests.map(({ parts }) => parts.reduce((sum, part) => sum + part.length, 0));
  const bytes = new SharedArrayBuffer(lengths.reduce((sum, length) => sum + length, 0));
  const view = new Uint8Array(bytes);
  let start = 0;
  const templates = requests.map(({ parts, places, prefixEnd }, i): WireTemplate => {
    let at = start;
    for (const part of parts) {
      view.set(part, at);
      at += part.length;
    }
    const template = { start, end: start + lengths[i]!, prefixEnd, places };
    start = template.end;
    return template;
  });
  return { bytes, templates };
}
