/** An agent whose script acts ten times; the process may kill itself at one of the effects. */
import { appendFileSync, existsSync } from "node:fs"
import { Effect, Layer } from "effect"
import { Agent, Approval } from "effect-deepagents"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { agentOf, model } from "../cutOff.ts"

const [folder = "", killAt = "0"] = process.argv.slice(2)

let effects = 0
const agent = agentOf((what) =>
  Effect.sync(() => {
    appendFileSync(`${folder}/did`, `${what}\n`)
    if (++effects === Number(killAt)) process.kill(process.pid, "SIGKILL")
  })
)

const isResumed = existsSync(`${folder}/did`)
const sessions = SessionStore.journal.pipe(Layer.provideMerge(SqliteSessions.layer({ file: `${folder}/threads.db` })))

const program = Effect.gen(function* () {
  let result = yield* isResumed
    ? Agent.resume(agent, { threadId: "t", decisions: [] })
    : Agent.run(agent, "go", { threadId: "t" })
  while (result.stopReason === "suspended") {
    const decisions = result.pending.map((one) => Approval.approve(one))
    result = yield* Agent.resume(agent, { threadId: "t", decisions })
  }
  appendFileSync(`${folder}/result`, result.text)
})

await Effect.runPromise(Effect.provide(program, [model, sessions, NodeScripts.layer()]))
