import { boolean, integer, text } from "./option.js";

const sagemaker = { noEffect: "there is no frontend for SageMaker" };
const vertex = { noEffect: "there is no frontend for Vertex AI" };

/** Options of tritonserver for services that this server does not have. */
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
};
