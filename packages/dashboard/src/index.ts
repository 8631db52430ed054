export { dashboard } from "./routes/dashboard.js";
export type { DashboardOptions } from "./routes/dashboard-options.js";
