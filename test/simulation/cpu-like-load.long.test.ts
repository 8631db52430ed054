import { adaptiveKeepsUp } from "./expect-adaptive-keeps-up.js";

adaptiveKeepsUp("CPU-like");
