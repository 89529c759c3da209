import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it, vi } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { Agent, Approval, type Backend } from "effect-deepagents"
import { AcpAgent, AcpError } from "effect-deepagents/acp"
import { MemoryBackend } from "effect-deepagents/backends"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { makeFolder } from "./editor.ts"

const program = join(import.meta.dirname, "children/hostileAgent.ts")

const hostile = (how: string, options: Partial<AcpAgent.Options> = {}) =>
  AcpAgent.make({ name: "coder", command: [process.execPath, program, how], isolation: "none", ...options })

/** A person who decides in turn. Keeps the requests. */
const person = (asked: Array<Approval.Request>, ...answers: ReadonlyArray<boolean>) =>
  Layer.succeed(Approval.Approvals, {
    decide: (request) =>
      Effect.sync(() => {
        const isYes = answers[asked.length] ?? false
        asked.push(request)
        return isYes ? Approval.approve(request) : Approval.reject(request, "no")
      })
  })

const memory = Layer.mergeAll(
  NodeServices.layer,
  MemoryBackend.layer({ files: { "/big.txt": "x".repeat(100_000), "/a.txt": "old" } })
)

const shell = Layer.mergeAll(NodeServices.layer, Layer.orDie(LocalShell.layer({ root: makeFolder() })))

const outputOf = (
  how: string,
  services: Layer.Layer<Backend.Backend | NodeServices.NodeServices> = memory,
  asked: Array<Approval.Request> = [],
  ...answers: ReadonlyArray<boolean>
) =>
  Effect.map(
    Agent.run(hostile(how), "go").pipe(Effect.provide([services, person(asked, ...answers)])),
    ({ output }) => output
  )

describe("AcpAgent: hostile agents", { timeout: 60_000 }, () => {
  describe.concurrent("in silence", () => {
    for (const method of ["initialize", "session/new", "session/prompt"]) {
      it.live(`fails when ${method} is never answered`, () =>
        Effect.gen(function* () {
          const agent = hostile(`silent ${method}`, { silence: "2 seconds" })
          const error = yield* Effect.flip(Agent.run(agent, "go"))
          assert.include(String(error), "said nothing for")
        }).pipe(Effect.provide(memory))
      )
    }
  })

  for (const how of ["null initialize", "wrong initialize", "null session/new", "wrong session/new"]) {
    it.live(`fails as a connection does after the answer: ${how}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Agent.run(hostile(how), "go"))
        assert.instanceOf(error, AcpError)
      }).pipe(Effect.provide(memory))
    )
  }

  for (const how of ["junk", "ids", "deep"]) {
    it.live(`ignores messages that violate the protocol: ${how}`, () =>
      Effect.gen(function* () {
        const print = vi.spyOn(console, "error").mockImplementation(() => {})
        yield* Effect.addFinalizer(() => Effect.sync(() => print.mockRestore()))
        assert.strictEqual(yield* outputOf(how), "fine")
        assert.notInclude(print.mock.calls.flat().join(" "), "\u001B")
      }).pipe(Effect.scoped)
    )
  }

  it.live("ends the connection for a line without an end", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Agent.run(hostile("long"), "go"))
      assert.include(String(error), "session/prompt")
    }).pipe(Effect.provide(memory))
  )

  it.live("asks about a write, if the permitted call reads, or wrote already", () =>
    Effect.gen(function* () {
      const asked: Array<Approval.Request> = []
      assert.strictEqual(yield* outputOf("peek", memory, asked, true, false), "refused")
      assert.lengthOf(asked, 2)
      const more: Array<Approval.Request> = []
      assert.strictEqual(yield* outputOf("again", memory, more, true, false), "done, refused")
      assert.lengthOf(more, 2)
    })
  )

  it.live("asks about a command, unless the permitted call named the same one", () =>
    Effect.gen(function* () {
      const asked: Array<Approval.Request> = []
      assert.strictEqual(yield* outputOf("swap", shell, asked, true, false), "refused")
      assert.lengthOf(asked, 2)
      const more: Array<Approval.Request> = []
      assert.strictEqual(yield* outputOf("same", shell, more, true, false), "done")
      assert.lengthOf(more, 1)
    })
  )

  it.live("frees a released terminal, and reports the end of a killed one", () =>
    Effect.gen(function* () {
      const yes = Array.from({ length: 40 }, () => true)
      assert.strictEqual(yield* outputOf("many", shell, [], ...yes), "done")
      assert.include(yield* outputOf("kill", shell, [], true), '"exitStatus":{"signal":"SIGKILL"}')
    })
  )

  it.live("ends a process that asks and does not read", () =>
    Effect.gen(function* () {
      const stream = Agent.stream(hostile("deaf"), "go")
      const fiber = yield* Effect.forkChild(
        Stream.runDrain(Stream.takeUntil(stream, (event) => event._tag === "TextDelta"))
      )
      yield* Fiber.join(fiber)
    }).pipe(Effect.provide(memory))
  )
})
