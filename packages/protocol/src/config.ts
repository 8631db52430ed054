/*
 * `@tritonjs/protocol/config`: the message `ModelConfig` field by field, its defaults and its JSON form. Clients do not
 * need it.
 */

export {
  DEFAULT_MAX_BATCH_SIZE,
  defaultDynamicBatching,
  defaultInstanceGroup,
  defaultOptimization,
  defaultQueuePolicy,
  emptyConfig,
  emptyModelConfig,
  emptyModelInput,
  emptyModelOutput,
  specFields,
  textParameters,
} from "./config-defaults.js";
export { configText, toConfigJson } from "./config-json.js";
export {
  batchInputKind,
  batchOutputKind,
  emptyMessage,
  type FieldSchema,
  type FieldType,
  fieldsOf,
  hasPresence,
  isEnum,
  isMessage,
  type MessageSchema,
  message,
  modelConfigSchema,
  type PlainMessage,
  zeroOf,
} from "./model-config-schema.js";
