export type { LoadGenerator } from "./load/load-generator.js";
export type { LoadLevel } from "./load/load-level.js";
export type { GeneratorUsage, KeptResponses, LoadWindow, RequestRecords } from "./load/request-records.js";
