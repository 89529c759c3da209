/** A script under review over files on the disk; the process may kill itself at an effect, or as it asks. */
import { appendFileSync, existsSync } from "node:fs"
import { Effect, Layer } from "effect"
import { Agent, Approval } from "effect-deepagents"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { crashScript, makeAgent, modelOf } from "../reviewed.ts"

const [folder = "", killAt = "0"] = process.argv.slice(2)

let steps = 0
const step = (what: string) =>
  Effect.sync(() => {
    appendFileSync(`${folder}/did`, `${what}\n`)
    if (++steps === Number(killAt)) process.kill(process.pid, "SIGKILL")
  })

const agent = makeAgent({ did: [], onEffect: step })
const isResumed = existsSync(`${folder}/threads.db`)

const program = Effect.gen(function* () {
  let result = yield* isResumed
    ? Agent.resume(agent, { threadId: "t", decisions: [] })
    : Agent.run(agent, "go", { threadId: "t" })
  while (result.stopReason === "suspended") {
    yield* step(`ask ${result.pending.length}`)
    const decisions = result.pending.map((one) => Approval.approve(one))
    result = yield* Agent.resume(agent, { threadId: "t", decisions })
  }
  appendFileSync(`${folder}/result`, result.text)
})

await Effect.runPromise(
  Effect.provide(program, [
    modelOf(crashScript),
    NodeScripts.layer(),
    FilesystemBackend.layer({ root: `${folder}/files` }),
    SessionStore.journal.pipe(Layer.provideMerge(SqliteSessions.layer({ file: `${folder}/threads.db` })))
  ])
)
