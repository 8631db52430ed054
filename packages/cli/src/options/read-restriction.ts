import { ENDPOINT_GROUPS } from "@tritonjs/core/frontend";
import type { EndpointGroup } from "@tritonjs/core/types";
import { OptionError } from "./option-error.js";

/** Groups of the protocol that need a header. */
export interface RestrictionArgument {
  readonly groups: readonly EndpointGroup[];
  readonly header: string;
  readonly value: string;
}

/**
 * `<group>,<group>:<key>=<value>`: the groups answer only requests with a header `key` of that value.
 *
 * @param kind `api` or `protocol`, as the option calls the groups
 */
export function readRestriction(option: string, kind: "api" | "protocol") {
  return (text: string, previous: readonly RestrictionArgument[]): readonly RestrictionArgument[] => {
    const colon = text.indexOf(":");
    const equals = text.indexOf("=", colon + 1);
    const header = text.slice(colon + 1, equals);
    const value = text.slice(equals + 1);
    if (colon <= 0 || equals < 0 || header === "" || value === "") {
      throw new OptionError(`--${option} option format is '<config name>:<setting>=<value>'. Got ${text}`);
    }
    const restricted = new Set(previous.flatMap((other) => other.groups));
    const groups = text
      .slice(0, colon)
      .split(",")
      .map((group) => {
        const known = ENDPOINT_GROUPS.find((each) => each === group);
        if (known === undefined) throw new OptionError(`unknown restricted ${kind} '${group}' `);
        if (restricted.has(known)) {
          throw new OptionError(
            `restricted ${kind} '${group}' can not be specified in multiple config groups`,
          );
        }
        restricted.add(known);
        return known;
      });
    return [...previous, { groups, header, value }];
  };
}
