/**
 * Takes jobs from a table, any number of workers at once, and keeps each one's thread in the same database. A worker that
 * dies leaves its job to the next one, which goes on where the thread was.
 */
import { Console, Effect, Schedule } from "effect"
import { Agent, Checkpoint } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import { SqlClient } from "effect/sql"
import { agent } from "./agent.ts"

export const prepare = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE IF NOT EXISTS jobs (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    input TEXT NOT NULL,
    output TEXT,
    error TEXT,
    taken_until TIMESTAMPTZ
  )`
})

export const add = Effect.fnUntraced(function* (input: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`INSERT INTO jobs (input) VALUES (${input})`
})

/** Takes a new job, or a job whose worker died. This worker has ten minutes for it. */
const take = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [job] = yield* sql<{ id: string; input: string }>`UPDATE jobs SET taken_until = now() + interval '10 minutes'
    WHERE id = (
      SELECT id FROM jobs
      WHERE output IS NULL AND error IS NULL AND (taken_until IS NULL OR taken_until < now())
      ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING id::text AS id, input`
  return job
})

/** Does one job. The result is false if there was none. */
export const step = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const job = yield* take
  if (job === undefined) return false
  const threadId = `job-${job.id}`
  const begun = yield* Effect.orElseSucceed(SessionStore.checkpoint(threadId), () => undefined)
  const input = begun === undefined ? job.input : Checkpoint.resume(undefined)
  yield* Effect.matchEffect(Agent.run(agent, input, { threadId }), {
    onFailure: ({ message }) =>
      Effect.andThen(
        sql`UPDATE jobs SET error = ${message} WHERE id = ${job.id}::bigint`,
        Console.error(`job ${job.id} failed: ${message}`)
      ),
    onSuccess: ({ text }) =>
      Effect.andThen(
        sql`UPDATE jobs SET output = ${text} WHERE id = ${job.id}::bigint`,
        Console.log(`job ${job.id}: ${text}`)
      )
  })
  return true
})

/** Works for ever. Looks every second while there is nothing to do. */
export const work = Effect.repeat(Effect.repeat(step, { while: (did) => did }), Schedule.spaced("1 second"))
