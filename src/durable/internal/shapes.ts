/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const agentEntityLayer = "maxIdleTime?:d"

export const agentEntityMake =
  "name:s;agent:~effect-deepagents/Agent~;output?:~effect/Schema/Schema~;error?:~effect/Schema/Schema~"

export const cronLayer = "name:s;cron:~effect/Cron~;threadId:fs;input:afos;missed?:'all''once''skip'"

export const durableAgentMake =
  "name:s;agent:~effect-deepagents/Agent~;output?:~effect/Schema/Schema~;error?:~effect/Schema/Schema~"

export const waitMake = "max?:d"
