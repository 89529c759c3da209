/**
 * Sandboxes of Daytona. Needs the package `@daytonaio/sdk`.
 */
export * as DaytonaSandbox from "./DaytonaSandbox.ts"
