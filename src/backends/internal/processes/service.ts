/** The service of processes in the background; public by `Processes`. */
import * as Context from "effect/Context"
import type { Service } from "./table.ts"

/** The processes in the background of a session. Without it, processes end with the run that started them. */
export class ProcessTable extends Context.Service<ProcessTable, Service>()("effect-deepagents/ProcessTable") {}
