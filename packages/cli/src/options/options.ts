import { frontendOptions } from "./frontend-options.js";
import { machineOptions } from "./machine-options.js";
import { boolean, integer, type Option, text } from "./option.js";
import { repositoryOptions } from "./repository-options.js";
import { serverOptions } from "./server-options.js";
import { traceOptions } from "./trace-options.js";

const sagemaker = { noEffect: "there is no frontend for SageMaker" };
const vertex = { noEffect: "there is no frontend for Vertex AI" };

/** Options of tritonserver for services that this server does not have. */
const otherServices = {
  SageMaker: {
    "allow-sagemaker": boolean("Listen for SageMaker requests.", false, sagemaker),
    "sagemaker-port": integer("Port to listen on for SageMaker.", 8080, sagemaker),
    "sagemaker-safe-port-range": text("Range of ports that SageMaker allows.", "", sagemaker),
    "sagemaker-thread-count": integer("Number of threads for SageMaker.", 8, sagemaker),
  },
  "Vertex AI": {
    "allow-vertex-ai": boolean("Listen for Vertex AI requests.", false, vertex),
    "vertex-ai-port": integer("Port to listen on for Vertex AI.", 8080, vertex),
    "vertex-ai-thread-count": integer("Number of threads for Vertex AI.", 8, vertex),
    "vertex-ai-default-model": text("Default model for Vertex AI.", "", vertex),
  },
};

/** Options by group and name, in the order of the help: tritonserver's, and a few of our own. */
export const optionGroups = {
  ...serverOptions,
  ...repositoryOptions,
  ...frontendOptions,
  ...machineOptions,
  ...otherServices,
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
