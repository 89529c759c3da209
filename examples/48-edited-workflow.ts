/**
 * A workflow of 200 agents, whose script is edited twice while it runs. Each edit stops the run in the middle, and gives
 * the thread the next script: finished agents are not asked again, and agents in flight go on with their own messages.
 */
import assert from "node:assert/strict"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, HashMap, Layer, Schema, Stream } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { Workflow } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel } from "effect-deepagents/testing"

const files = Array.from({ length: 200 }, (_, at) => `src/module${at}.ts`)

/** The first script reads the files. */
const first = `
phase("Read")
const found = await parallel(args.map((file) => () => agent("Read " + file, { label: file })))
return found.length`

/** The second one has each finding verified by another agent, as soon as it is there. */
const second = `
phase("Read and verify")
const found = await pipeline(
  args,
  (file) => agent("Read " + file, { label: file }),
  (finding, file) => finding.startsWith("defect") ? agent("Verify " + file, { label: "verifies " + file }) : null
)
return found.filter((one) => one !== null).length`

/** The third one goes through the files from the end, and reports what was confirmed. */
const third = `
phase("Read, verify, report")
const found = await pipeline(
  args.toReversed(),
  (file) => agent("Read " + file),
  (finding, file) => finding.startsWith("defect") ? agent("Verify " + file).then((said) => said === "confirmed" && file) : false
)
const confirmed = found.filter((file) => file !== false)
return { confirmed: confirmed.length, report: await agent("Report on " + confirmed.length + " defects") }`

/** The turns that a model was asked for: the task, and the number of the turn. */
const turns: Array<string> = []

const look = Tool.make("look", {
  description: "Looks into a file",
  parameters: { file: Schema.String },
  execute: ({ file }) => Effect.as(Effect.yieldNow, `the text of ${file}`),
  annotations: { readOnly: true }
})

/** Each worker looks into its file, and answers in its second turn. Each fifth file has a defect. */
const model = TestChatModel.reactive(({ messages: [asked, ...rest] }) => {
  const task = asked === undefined ? "" : Message.text(asked)
  turns.push(`${task} #${rest.filter(({ role }) => role === "ai").length}`)
  const file = task.split(" ")[1] ?? ""
  const isSeen = rest.some(({ role }) => role === "tool")
  if (task.startsWith("Report")) return TestChatModel.text("All is written down.", { delay: "1 millis" })
  if (!isSeen) return TestChatModel.calls([{ name: "look", arguments: { file } }])
  if (task.startsWith("Verify")) return "confirmed"
  return /[05]\.ts$/.test(file) ? `defect in ${file}` : `nothing in ${file}`
})

const survey = Workflow.make({ agents: [Agent.make({ name: "reader", prompt: "You find defects.", tools: [look] })] })

/** Runs a script until so many agents are done; then somebody stops it, to edit the script. */
const runUntil = (script: string, most: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* Agent.start(survey, survey.input({ script, args: files }), { threadId: "survey" })
      let progress = Workflow.noProgress
      yield* Stream.runForEach(handle.events, (event) => {
        progress = Workflow.advance(progress, event)
        const done = HashMap.filter(progress.agents, ({ status }) => status === "done")
        return event._tag === "SubagentCompleted" && HashMap.size(done) === most ? handle.interrupt : Effect.void
      })
      yield* Console.log(`stopped with ${HashMap.size(progress.agents)} agents begun in this run`)
    })
  )

const program = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped()
  yield* Effect.gen(function* () {
    yield* runUntil(first, 60)
    yield* runUntil(second, 80)
    const { output } = yield* Agent.run(survey, survey.input({ script: third, args: files }), { threadId: "survey" })
    yield* Console.log(JSON.stringify(output))
    assert.deepEqual(output?.value, { confirmed: 40, report: "All is written down." })
    assert.equal(output?.agents, 241)
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        model,
        NodeScripts.layer(),
        SessionStore.journal.pipe(Layer.provideMerge(SqliteSessions.layer({ file: `${folder}/threads.db` })))
      )
    )
  )
  const distinct = new Set(turns)
  yield* Console.log(`${distinct.size} turns; asked again: ${turns.length - distinct.size}`)
  // 200 readers and 40 verifiers with two turns each, and the report.
  assert.equal(distinct.size, 481)
  // At most the turns in flight at the two edits.
  assert.ok(turns.length - distinct.size <= 2 * 16)
})

NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
