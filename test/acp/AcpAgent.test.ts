import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schedule, Stream } from "effect"
import { Agent, type AgentEvent, Approval, Backend, Checkpoint } from "effect-deepagents"
import { AcpAgent } from "effect-deepagents/acp"
import { MemoryBackend } from "effect-deepagents/backends"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { Budget } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { makeFolder } from "./editor.ts"

const program = join(import.meta.dirname, "children/exampleAgent.ts")

/** The folders of this repository and of its packages, wherever links lead. */
const code = [join(import.meta.dirname, "../.."), realpathSync(join(import.meta.dirname, "../../node_modules"))]

/** The example agent, in a sandbox that has its code and the folder of its sessions. */
const make = (folder: string, options: Partial<AcpAgent.Options> = {}) =>
  AcpAgent.make({
    name: "coder",
    command: [process.execPath, program, folder],
    isolation: { readable: code, writable: [folder] },
    ...options
  })

const deciding = (decide: (request: Approval.Request) => Approval.Decision, asked: Array<Approval.Request> = []) =>
  Layer.succeed(Approval.Approvals, {
    decide: (request) =>
      Effect.sync(() => {
        asked.push(request)
        return decide(request)
      })
  })

const yes = (asked?: Array<Approval.Request>) => deciding((request) => Approval.approve(request), asked)
const no = deciding((request) => Approval.reject(request, "no"))

const services = Layer.mergeAll(NodeServices.layer, MemoryBackend.layer())

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}

const withVariable =
  (name: string, value: string) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => void (process.env[name] = value)),
      () => self,
      () => Effect.sync(() => void delete process.env[name])
    )

/** The processes of this machine whose command contains a text. */
const countProcesses = (text: string): number =>
  readdirSync("/proc").filter((id) => {
    try {
      return /^\d+$/.test(id) && readFileSync(`/proc/${id}/cmdline`, "utf8").includes(text)
    } catch {
      return false
    }
  }).length

describe("AcpAgent", { timeout: 60_000 }, () => {
  it.live("gives its answer, with its text and plan as events of the run", () =>
    Effect.gen(function* () {
      const events: Array<AgentEvent.AgentEvent> = []
      yield* Stream.runForEach(Agent.stream(make(makeFolder()), "hello"), (event) =>
        Effect.sync(() => void events.push(event))
      )
      const text = events.flatMap((event) => (event._tag === "TextDelta" ? [event.text] : [])).join("")
      assert.strictEqual(text, "You said: hello")
      const { output } = yield* Agent.run(make(makeFolder()), "plan")
      assert.strictEqual(output, "planned")
    }).pipe(Effect.provide(services))
  )

  it.live("asks our approvals for its permission requests, and writes to our files", () =>
    Effect.gen(function* () {
      const asked: Array<Approval.Request> = []
      const { output } = yield* Effect.provide(Agent.run(make(makeFolder()), "write a.txt"), yes(asked))
      assert.strictEqual(output, "written")
      assert.deepStrictEqual(
        asked.map(({ description }) => description),
        ["coder: write a.txt"]
      )
      const backend = yield* Backend.Backend
      const found = yield* backend.read("/a.txt")
      assert.strictEqual(found.kind === "text" ? found.text : "", "new")
    }).pipe(Effect.provide(services))
  )

  it.live("refuses unapproved calls, and asks about writes that nobody requested", () =>
    Effect.gen(function* () {
      const folder = makeFolder()
      assert.strictEqual((yield* Effect.provide(Agent.run(make(folder), "write a.txt"), no)).output, "not allowed")
      assert.strictEqual((yield* Effect.provide(Agent.run(make(folder), "sneak b.txt"), no)).output, "refused")
      assert.strictEqual((yield* Effect.provide(Agent.run(make(folder), "read ../secret"), yes())).output, "refused")
      const backend = yield* Backend.Backend
      assert.deepStrictEqual((yield* backend.ls("/")).entries, [])
    }).pipe(Effect.provide(services))
  )

  it.live("runs its commands in our sandbox, once somebody allowed them", () =>
    Effect.gen(function* () {
      const asked: Array<Approval.Request> = []
      const agent = make(makeFolder())
      const { output } = yield* Effect.provide(Agent.run(agent, "run echo $((20 + 22))"), yes(asked))
      assert.strictEqual(output, "42\n[0]")
      assert.lengthOf(asked, 1)
    }).pipe(Effect.provide([NodeServices.layer, LocalShell.layer({ root: makeFolder() })]))
  )

  it.live("counts its cost, and stops it at the budget", () =>
    Effect.gen(function* () {
      const lead = Agent.program({
        name: "lead",
        run: (task: string) => Agent.answer(make(makeFolder()), task),
        middleware: [Budget.make({ cost: 0.5, onExhausted: "finalAnswer" })]
      })
      const { output, usage } = yield* Agent.run(lead, "spend")
      assert.include(output ?? "", "was stopped: the budget of 0.5 in cost is used up")
      assert.isAtLeast(usage.cost ?? 0, 0.5)
      assert.isBelow(usage.cost ?? 0, 1)
      assert.isTrue(usage.isEstimated)
    }).pipe(Effect.provide(services))
  )

  it.live("fails with its last words when it dies", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Agent.run(make(makeFolder()), "crash"))
      assert.include(String(error), "the disk is full")
      for (const isolation of [undefined, "none"] as const) {
        const missing = AcpAgent.make({ name: "none", command: ["/no/such/program"], isolation })
        assert.include(String(yield* Effect.flip(Agent.run(missing, "hi"))), "/no/such/program")
      }
    }).pipe(Effect.provide(services))
  )

  it.live("by itself reaches only its folder and named paths of the machine", () =>
    Effect.gen(function* () {
      const secret = join(makeFolder(), "secret")
      writeFileSync(secret, "canary")
      const task = `self cat ${secret}; echo gone > ${secret}; echo $HOME $SECRET; cat /proc/net/dev | tail -n +3 | wc -l`
      const isolated = yield* Agent.run(make(makeFolder(), { env: { SECRET: "named" } }), task)
      assert.strictEqual(isolated.output, "/tmp/home named\n1\n")
      assert.strictEqual(readFileSync(secret, "utf8"), "canary")
      const free = yield* Agent.run(make(makeFolder(), { isolation: "none" }), `self cat ${secret}`)
      assert.strictEqual(free.output, "canary")
    }).pipe(Effect.provide(services))
  )

  it.live("writes into its folder by itself, and sees nothing of our variables", () =>
    Effect.gen(function* () {
      const cwd = makeFolder()
      const agent = make(makeFolder(), { cwd })
      const { output } = yield* Agent.run(agent, "self pwd; echo mine > own.txt; echo [$HUSH]")
      assert.strictEqual(output, `${cwd}\n[]\n`)
      assert.strictEqual(readFileSync(join(cwd, "own.txt"), "utf8"), "mine\n")
    }).pipe(Effect.provide(services), withVariable("HUSH", "quiet"))
  )

  it.live("ends its whole group with the run", () =>
    Effect.gen(function* () {
      const folder = makeFolder()
      const file = join(folder, "pids")
      const fiber = yield* Effect.forkChild(Agent.run(make(folder, { isolation: "none" }), "hang"))
      const pids = yield* Effect.suspend(() =>
        existsSync(file) ? Effect.succeed(readFileSync(file, "utf8").split(" ").map(Number)) : Effect.fail("not yet")
      ).pipe(Effect.retry(Schedule.spaced("20 millis")))
      yield* Fiber.interrupt(fiber)
      yield* Effect.suspend(() => (pids.some(isAlive) ? Effect.fail("alive") : Effect.void)).pipe(
        Effect.retry(Schedule.spaced("20 millis"))
      )
    }).pipe(Effect.provide(services))
  )

  it.live("ends its sandbox with the run, and all that it started there", () =>
    Effect.gen(function* () {
      const folder = makeFolder()
      const fiber = yield* Effect.forkChild(Agent.run(make(folder), "hang"))
      yield* Effect.suspend(() => (existsSync(join(folder, "pids")) ? Effect.void : Effect.fail("not yet"))).pipe(
        Effect.retry(Schedule.spaced("20 millis"))
      )
      assert.isAtLeast(countProcesses(folder), 1)
      yield* Fiber.interrupt(fiber)
      yield* Effect.suspend(() => (countProcesses(folder) > 0 ? Effect.fail("alive") : Effect.void)).pipe(
        Effect.retry(Schedule.spaced("20 millis"))
      )
    }).pipe(Effect.provide(services))
  )

  it.live("is cancelled when it is silent for too long", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Agent.run(make(makeFolder(), { silence: "300 millis" }), "hang"))
      assert.include(String(error), "said nothing for")
    }).pipe(Effect.provide(services))
  )

  it.live("loads its session again when its run resumes, and is not told the task twice", () =>
    Effect.gen(function* () {
      const folder = makeFolder()
      const agent = make(folder)
      const thread = { threadId: "work" }
      const fiber = yield* Effect.forkChild(Agent.run(agent, "hang", thread))
      yield* Effect.suspend(() => (existsSync(join(folder, "pids")) ? Effect.void : Effect.fail("not yet"))).pipe(
        Effect.retry(Schedule.spaced("20 millis"))
      )
      yield* Fiber.interrupt(fiber)
      const { output } = yield* Agent.run(agent, Checkpoint.resume(undefined), thread)
      assert.include(output ?? "", "You were cut off. Go on")
      const logs = readdirSync(folder).filter((name) => name.endsWith(".log"))
      assert.lengthOf(logs, 1)
      const said = readFileSync(join(folder, logs[0] ?? ""), "utf8")
        .trim()
        .split("\n")
      assert.strictEqual(said[0], "hang")
      assert.lengthOf(said, 2)
    }).pipe(Effect.provide([services, SessionStore.journal.pipe(Layer.provide(MemorySessions.layer))]))
  )

  it.live("waits for a person in the inbox, and goes on in another run", () =>
    Effect.gen(function* () {
      const agent = make(makeFolder())
      const thread = { threadId: "work" }
      const first = yield* Agent.run(agent, "write a.txt", thread)
      assert.strictEqual(first.stopReason, "suspended")
      const [request] = first.pending
      assert.strictEqual(request?.description, "coder: write a.txt")
      const decisions = request === undefined ? [] : [Approval.approve(request)]
      const second = yield* Agent.run(agent, Checkpoint.resume(undefined, { decisions }), thread)
      assert.strictEqual(second.output, "written")
      const backend = yield* Backend.Backend
      assert.lengthOf((yield* backend.ls("/")).entries, 1)
    }).pipe(Effect.provide([services, SessionStore.journal.pipe(Layer.provide(MemorySessions.layer))]))
  )
})
