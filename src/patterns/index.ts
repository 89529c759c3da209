/** Agents of agents by name: each `make` returns an `Agent.Program`, which runs, streams, resumes and nests. */
export * as Autopilot from "./Autopilot.ts"
export * as Goal from "./Goal.ts"
export * as MapReduce from "./MapReduce.ts"
export * as Pipeline from "./Pipeline.ts"
export * as Plan from "./Plan.ts"
export * as Reflect from "./Reflect.ts"
export * as Supervisor from "./Supervisor.ts"
export * as Team from "./Team.ts"
