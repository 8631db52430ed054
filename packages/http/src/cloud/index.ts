export { type SageMakerInferenceType, type SageMakerOptions, sageMaker } from "./sagemaker.js";
export { type VertexAiOptions, vertexAi } from "./vertex-ai.js";
