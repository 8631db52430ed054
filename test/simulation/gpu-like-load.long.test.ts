import { adaptiveKeepsUp } from "./expect-adaptive-keeps-up.js";

adaptiveKeepsUp("GPU-like");
