export { type SageMakerInferenceType, type SageMakerOptions, sageMaker } from "./sagemaker/sagemaker.js";
export { type VertexAiOptions, vertexAi } from "./vertex-ai/vertex-ai.js";
