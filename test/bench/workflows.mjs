/**
 * Kills and edits a workflow of many agents on SQLite, and counts what was done twice.
 *
 *   npm run bench:workflows -- --agents 1000 --kills 100 --edits 20
 *   npm run bench:workflows -- --agents 1000 --quota 1500
 *
 * A kill comes when the workers have written so many new turns, not by the clock: a process takes seconds to start.
 */
import { spawn } from "node:child_process"
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"

const { values } = parseArgs({
  options: {
    agents: { type: "string", default: "1000" },
    kills: { type: "string", default: "20" },
    edits: { type: "string", default: "5" },
    quota: { type: "string" },
    child: { type: "string" },
    edit: { type: "string", default: "0" }
  }
})

const rounds = 5
const concurrency = 16
const agents = Number(values.agents)

/** Each edit inserts, reorders or renames something. */
const scriptOf = (edit) => `// edit ${edit}
phase("find")
const renamed${edit} = Array.from({ length: ${agents / 2} }, (_, i) => i)${edit % 2 === 1 ? ".reverse()" : ""}
const found = await parallel(renamed${edit}.map((i) => () => agent("find " + i)))
phase("verify")
${edit > 0 ? `await agent("plan of edit ${edit}")` : ""}
const all = await parallel(found${edit % 3 === 2 ? ".slice().reverse()" : ""}.map((one) => () => agent("verify " + one)))
return all.length`

const child = async (folder) => {
  const { Effect, Layer, Schema } = await import("effect")
  const { Agent, Message, Tool } = await import("../../src/index.ts")
  const { Workflow } = await import("../../src/code/index.ts")
  const NodeScripts = await import("../../src/code/NodeScripts.ts")
  const SqliteSessions = await import("../../src/sessions/SqliteSessions.ts")
  const { SessionStore } = await import("../../src/sessions/index.ts")
  const { TestChatModel } = await import("../../src/testing/index.ts")
  const log = (file, line) => appendFileSync(join(folder, file), `${line}\n`)
  const look = Tool.make("look", {
    description: "",
    parameters: { at: Schema.String },
    execute: ({ at }) =>
      Effect.sync(() => {
        log("tools.txt", at)
        return `seen ${at}`
      })
  })
  let turns = 0
  const model = TestChatModel.reactive((request) => {
    const task = Message.text(request.messages[0])
    const turn = request.messages.filter(({ role }) => role === "ai").length
    if (values.quota !== undefined && turns >= Number(values.quota)) {
      log("refused.txt", task)
      return TestChatModel.fail({ _tag: "QuotaExhausted" })
    }
    turns++
    log("turns.txt", `${task}#${turn}`)
    return turn < rounds - 1
      ? TestChatModel.calls([{ name: "look", arguments: { at: `${task}-${turn}` } }])
      : `done ${task}`
  })
  const workflow = Workflow.make({ agents: [Agent.make({ name: "worker", prompt: "", tools: [look] })] })
  const input = workflow.input({ script: scriptOf(Number(values.edit)), limits: { agents: 3 * agents, concurrency } })
  // The same script goes on; an edited one is another input.
  const before = existsSync(join(folder, "edit")) ? readFileSync(join(folder, "edit"), "utf8") : undefined
  writeFileSync(join(folder, "edit"), values.edit)
  const run =
    before === values.edit
      ? Agent.resume(workflow, { threadId: "workflow" })
      : Agent.run(workflow, input, { threadId: "workflow" })
  const sessions = Layer.provide(SessionStore.journal, SqliteSessions.layer({ file: join(folder, "threads.db") }))
  const started = performance.now()
  const result = await Effect.runPromise(
    Effect.result(Effect.provide(run, Layer.mergeAll(model, NodeScripts.layer(), sessions)))
  )
  const said = result._tag === "Success" ? JSON.stringify(result.success.output) : result.failure.message
  const memory = process.resourceUsage().maxRSS / 1024
  console.log(`${said}\n${Math.round(performance.now() - started)} ms, at most ${Math.round(memory)} MiB`)
}

const linesOf = (folder, file) => {
  const path = join(folder, file)
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : []
}

const sizeOf = (path) => (existsSync(path) ? statSync(path).size : 0)

/** Runs a process until it ends, or until its workers have written so many bytes of new turns. */
const runChild = (folder, edit, more, killAfter) =>
  new Promise((resolve) => {
    const file = join(folder, "turns.txt")
    const began = sizeOf(file)
    const one = spawn(
      process.execPath,
      [
        ...process.execArgv,
        import.meta.filename,
        "--child",
        folder,
        "--edit",
        `${edit}`,
        "--agents",
        `${agents}`,
        ...more
      ],
      { stdio: "inherit" }
    )
    const timer =
      killAfter === undefined
        ? undefined
        : setInterval(() => {
            if (sizeOf(file) - began >= killAfter) one.kill("SIGKILL")
          }, 2)
    one.on("close", (code) => {
      clearInterval(timer)
      resolve(code)
    })
  })

const twice = (lines) => lines.length - new Set(lines).size

const report = (folder) => {
  const turns = linesOf(folder, "turns.txt")
  const tools = linesOf(folder, "tools.txt")
  console.log({
    turns: new Set(turns).size,
    turnsTwice: twice(turns),
    tools: new Set(tools).size,
    toolsTwice: twice(tools),
    database: `${(sizeOf(join(folder, "threads.db")) / 1e6).toFixed(1)} MB`
  })
}

const parent = async () => {
  const folder = mkdtempSync(join(tmpdir(), "workflow-"))
  if (values.quota !== undefined) {
    await runChild(folder, 0, ["--quota", values.quota])
    console.log({ refused: linesOf(folder, "refused.txt").length })
    report(folder)
    await runChild(folder, 0, [])
  } else {
    const kills = Number(values.kills)
    const edits = Number(values.edits)
    // Turns are a line of about 14 bytes.
    const whole = agents * rounds * 14
    let killed = 0
    for (let at = 0; at < kills; at++) {
      const edit = Math.floor((at * (edits + 1)) / kills)
      const bytes = Math.max(100, (whole / (kills + 1)) * (0.5 + Math.random()))
      if ((await runChild(folder, edit, [], bytes)) === null) killed++
    }
    console.log({ killed, mostTwice: killed * concurrency })
    await runChild(folder, edits, [])
  }
  report(folder)
  rmSync(folder, { recursive: true })
}

await (values.child === undefined ? parent() : child(values.child))
