/** Set-ups of agents for the models that they run on, as plain data. */
export * as HarnessProfile from "./HarnessProfile.ts"
