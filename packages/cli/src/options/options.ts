import { accessOptions } from "./access-options.js";
import { cloudOptions } from "./cloud-options.js";
import { frontendOptions } from "./frontend-options.js";
import { machineOptions } from "./machine-options.js";
import type { Option } from "./option.js";
import { repositoryOptions } from "./repository-options.js";
import { serverOptions } from "./server-options.js";
import { traceOptions } from "./trace-options.js";

/** Options by group and name, in the order of the help: tritonserver's, and a few of our own. */
export const optionGroups = {
  ...serverOptions,
  ...accessOptions,
  ...repositoryOptions,
  ...frontendOptions,
  ...machineOptions,
  ...cloudOptions,
  ...traceOptions,
};

type Groups = typeof optionGroups;
type Table = UnionToIntersection<Groups[keyof Groups]>;
type UnionToIntersection<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void
  ? I
  : never;

/** Every option by its name. */
export const allOptions = Object.assign({}, ...Object.values(optionGroups)) as Table;

/** Name of an option, without the dashes. */
export type OptionName = keyof Table & string;

/** The values of all options. */
export type OptionValues = {
  readonly [Name in OptionName]: Table[Name] extends Option<infer T> ? T : never;
};
