/**
 * Middleware that keeps a run under control. Each module is a namespace; `make` gives the middleware.
 */
export * as Budget from "./Budget.ts"
export * as Guardrail from "./Guardrail.ts"
export * as HumanInTheLoop from "./HumanInTheLoop.ts"
export * as ModelFallback from "./ModelFallback.ts"
export * as ModelRetry from "./ModelRetry.ts"
export * as ModelTimeout from "./ModelTimeout.ts"
export * as Summarization from "./Summarization.ts"
export * as Telemetry from "./Telemetry.ts"
export * as ToolRetry from "./ToolRetry.ts"
export * as ToolTimeout from "./ToolTimeout.ts"
