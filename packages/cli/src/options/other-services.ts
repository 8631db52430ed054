import { boolean, integer, list, text } from "./option.js";

const sagemaker = { noEffect: "there is no frontend for SageMaker" };
const vertex = { noEffect: "there is no frontend for Vertex AI" };
const tracing = { noEffect: "traces are not recorded yet" };

/** Options of tritonserver for services that are not here. */
export const otherServices = {
  SageMaker: {
    "allow-sagemaker": boolean("Listen for SageMaker requests.", false, sagemaker),
    "sagemaker-port": integer("Port for SageMaker.", 8080, sagemaker),
    "sagemaker-safe-port-range": text("Ports that SageMaker allows.", "", sagemaker),
    "sagemaker-thread-count": integer("Threads for SageMaker.", 8, sagemaker),
  },
  "Vertex AI": {
    "allow-vertex-ai": boolean("Listen for Vertex AI requests.", false, vertex),
    "vertex-ai-port": integer("Port for Vertex AI.", 8080, vertex),
    "vertex-ai-thread-count": integer("Threads for Vertex AI.", 8, vertex),
    "vertex-ai-default-model": text("Model for Vertex AI.", "", vertex),
  },
  Tracing: {
    "trace-config": list("<mode>,<setting>=<value>", "Setting of traces.", (setting) => setting, tracing),
    "trace-file": text("File of traces.", "", tracing),
    "trace-level": list("string", "What is traced.", (level) => level, tracing),
    "trace-rate": integer("One request of how many is traced.", 1000, tracing),
    "trace-count": integer("Traces to record; -1 for any number.", -1, tracing),
    "trace-log-frequency": integer("Traces to a file; 0 for one file.", 0, tracing),
  },
};
