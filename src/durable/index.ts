/**
 * Agents that outlive their process: as workflows, as entities of a cluster, by the clock.
 */
export * as AgentClient from "./AgentClient.ts"
export * as AgentEntity from "./AgentEntity.ts"
export * as Conflict from "./Conflict.ts"
export * as Cron from "./Cron.ts"
export * as DurableAgent from "./DurableAgent.ts"
export * as NotRunning from "./NotRunning.ts"
export * as Outcome from "./Outcome.ts"
export * as ThreadEvent from "./ThreadEvent.ts"
export * as Wait from "./Wait.ts"
