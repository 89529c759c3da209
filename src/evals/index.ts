/** Evaluations of agents: cases, scorers, reports. */
export * as Cases from "./Cases.ts"
export * as Eval from "./Eval.ts"
export * as Learn from "./Learn.ts"
export * as Replay from "./Replay.ts"
export * as Report from "./Report.ts"
export * as Scorers from "./Scorers.ts"
export * as Trajectory from "./Trajectory.ts"
