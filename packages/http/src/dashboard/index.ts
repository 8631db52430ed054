export type { DashboardOptions } from "./dashboard.js";
export { dashboard } from "./dashboard.js";
