import { OptionError } from "./option-error.js";
import { readInteger } from "./read-value.js";

/** `name,key=value`: a setting of a named object. */
export interface NamedSetting {
  readonly name: string;
  readonly key: string;
  readonly value: string;
}

/** `name:count` or `name:count:device`. */
export interface ResourceSetting {
  readonly name: string;
  readonly count: number;
  /** Undefined for every device. */
  readonly device: number | undefined;
}

/** `<backend>,<setting>=<value>`, or `<setting>=<value>` for all backends, whose name is then empty. */
export function readBackendSetting(text: string): NamedSetting {
  if (text.startsWith(",")) {
    throw new OptionError(
      "No backend specified. --backend-config option format is <backend name>,<setting>=<value> or " +
        `<setting>=<value>. Got ${text}`,
    );
  }
  const format = `--backend-config option format is '<backend name>,<setting>=<value>'. Got ${text}`;
  return splitSetting(text, format);
}

/** `<cache>,<setting>=<value>`. */
export function readCacheSetting(text: string): NamedSetting {
  if (text.indexOf(",") <= 0) {
    throw new OptionError(
      `No cache specified. --cache-config option format is <cache name>,<setting>=<value>. Got ${text}`,
    );
  }
  return splitSetting(text, `--cache-config option format is '<cache name>,<setting>=<value>'. Got ${text}`);
}

/** `<policy>,<setting>=<value>`. */
export function readHostPolicy(text: string): NamedSetting {
  const format = `--host-policy option format is '<policy name>,<setting>=<value>'. Got ${text}`;
  const setting = splitSetting(text, format);
  if (setting.name === "") throw new OptionError(format);
  return setting;
}

/** `<setting>=<value>` of the metrics. */
export function readMetricsSetting(text: string): NamedSetting {
  const format = `--metrics-config option format is <setting>=<value>. Got ${text}`;
  const end = text.indexOf("=");
  if (end < 0 || text.slice(0, end).includes(",")) throw new OptionError(format);
  return splitSetting(`,${text}`, format);
}

/** `<resource>:<count>` or `<resource>:<count>:<device>`. */
export function readResource(text: string): ResourceSetting {
  const [name = "", count, device, ...rest] = text.split(":");
  if (count === undefined || rest.length > 0) {
    throw new OptionError(
      "--rate-limit-resource option format is '<resource_name>:<count>:<device>' or " +
        `'<resource_name>:<count>'. Got ${text}`,
    );
  }
  return {
    name,
    count: readInteger(count),
    device: device === undefined ? undefined : readInteger(device),
  };
}

/** `<first>:<second>`. */
export function readPair<T>(readSecond: (text: string) => T): (text: string) => readonly [number, T] {
  return (text) => {
    const end = text.indexOf(":");
    if (end < 0) {
      throw new OptionError(
        "Cannot parse pair option due to incorrect number of inputs.--<pair option> argument requires format " +
          `<first>:<second>. Found: ${text}`,
      );
    }
    return [readInteger(text.slice(0, end)), readSecond(text.slice(end + 1))];
  };
}

/** Splits at the first comma, and at the first equals sign after it. */
export function splitSetting(text: string, format: string): NamedSetting {
  const comma = text.indexOf(",");
  const equals = text.indexOf("=", comma + 1);
  const setting = {
    name: comma > 0 ? text.slice(0, comma) : "",
    key: text.slice(comma + 1, equals),
    value: text.slice(equals + 1),
  };
  if (equals < 0 || setting.key === "" || setting.value === "") throw new OptionError(format);
  return setting;
}
