import { boolean, integer, text } from "./option.js";

const sagemaker = { noEffect: "there is no frontend for SageMaker" };
const vertex = { noEffect: "there is no frontend for Vertex AI" };

/** Options of tritonserver for services that this server does not have. */
export const otherServices = {
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
