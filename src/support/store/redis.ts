/** Lua scripts of stores in Redis. */
import * as Effect from "effect/Effect"
import * as Redis from "effect/persistence/Redis"
import * as Predicate from "effect/Predicate"
import { failLate, type Problem } from "./problem.ts"

/** Makes scripts that begin with the same lines. Their only key is the prefix of all keys. */
export const scriptsWith = (shared: string) => (lua: string) =>
  Redis.script((prefix: string, ...args: ReadonlyArray<string | number>) => [prefix, ...args], {
    lua: shared + lua,
    numberOfKeys: 1
  }).withReturnType<unknown>()

export type Script = ReturnType<ReturnType<typeof scriptsWith>>

/** Runs scripts under a prefix. */
export type Run = (script: Script, ...args: ReadonlyArray<string | number>) => Effect.Effect<unknown, Problem>

const toProblem = (error: Redis.RedisError): Problem => {
  const { cause } = error
  const hasMessage = Predicate.hasProperty(cause, "message") && typeof cause.message === "string"
  return { problem: hasMessage ? String(cause.message) : String(cause), cause: error }
}

/** Makes the runner of a server's scripts. */
export const runnerOf =
  (redis: Redis.Redis["Service"], prefix: string): Run =>
  (script, ...args) =>
    failLate(Effect.mapError(redis.eval(script)(prefix, ...args), toProblem))
