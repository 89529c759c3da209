/**
 * The spans at the doors of backends and sandboxes: one for one operation, however many services are behind it.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Stream, Tracer } from "effect"
import { Backend, Sandbox } from "effect-deepagents"
import { CompositeBackend, MemoryBackend, Permissions } from "effect-deepagents/backends"
import { makeSpanRecorder } from "../spans.ts"

/** Records the names of the spans that end, with their attributes. */
const recorded = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const { spans, tracer } = makeSpanRecorder()
    return Effect.map(Effect.exit(Effect.provideService(effect, Tracer.Tracer, tracer)), () => spans)
  })

const namesOf = (spans: ReadonlyArray<Tracer.NativeSpan>) => spans.map(({ name }) => name)

const files = () => Layer.fresh(MemoryBackend.layer({ files: { "/a.md": "one", "/b/c.md": "two" } }))

/** A sandbox whose commands read a file of its own. */
const machine = Sandbox.layer(
  Effect.map(MemoryBackend.make({ files: { "/a.md": "one" } }), (backend): Sandbox.Service => ({
    ...Backend.traced(backend),
    id: "fake",
    execute: () => Effect.as(Backend.traced(backend).read("/a.md"), { output: "", exitCode: 0, truncated: false }),
    executeStream: () =>
      Stream.fromEffect(
        Effect.as(Backend.traced(backend).read("/a.md"), { _tag: "Exited", exitCode: 0, truncated: false } as const)
      ),
    reaches: () => true
  }))
)

const layered = Permissions.layer({ rules: [{ operations: ["write"], paths: ["/a.md"], ruling: "refuse" }] }).pipe(
  Layer.provide(CompositeBackend.layer({ default: files(), routes: { "/mem": files(), "/other": files() } }))
)

describe("spans", () => {
  it.effect("name the operation and its path", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      const [span, ...more] = yield* recorded(backend.write("/n.md", "text"))
      expect([span?.name, span?.attributes.get("path"), more.length]).toEqual(["Backend.write", "/n.md", 0])
      const [failed] = yield* recorded(backend.read("/none"))
      expect(failed?.status).toMatchObject({ _tag: "Ended", exit: { _tag: "Failure" } })
      expect(namesOf(yield* recorded(Effect.andThen(backend.ls("/"), backend.ls("/b"))))).toEqual([
        "Backend.ls",
        "Backend.ls"
      ])
    }).pipe(Effect.provide(files()))
  )

  it.effect("are one for an operation of a composite behind rules, with any work below", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      expect(namesOf(yield* recorded(backend.grep({ pattern: "o" })))).toEqual(["Backend.grep"])
      expect(namesOf(yield* recorded(backend.move("/mem/a.md", "/other/moved.md")))).toEqual(["Backend.move"])
      expect(namesOf(yield* recorded(backend.write("/a.md", "denied")))).toEqual(["Backend.write"])
      expect(namesOf(yield* recorded(backend.download(["/a.md", "/mem/b/c.md"])))).toEqual(["Backend.download"])
    }).pipe(Effect.provide(layered))
  )

  it.effect("are children of the caller's span", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      const spans = yield* recorded(Effect.withSpan(backend.read("/mem/a.md"), "mine"))
      expect(namesOf(spans)).toEqual(["mine", "Backend.read"])
      expect(spans[1]?.parent).toMatchObject({ value: { name: "mine" } })
    }).pipe(Effect.provide(layered))
  )

  it.effect("of commands hold no command, and end with the stream, also when it is left", () =>
    Effect.gen(function* () {
      const sandbox = yield* Sandbox.Sandbox
      const [span, ...more] = yield* recorded(sandbox.execute("echo secret"))
      expect([span?.name, span?.attributes.size, more.length]).toEqual(["Sandbox.execute", 0, 0])
      const streamed = yield* recorded(Stream.runDrain(sandbox.executeStream("echo secret")))
      expect(namesOf(streamed)).toEqual(["Sandbox.executeStream"])
      const left = yield* recorded(Stream.runHead(sandbox.executeStream("echo secret")))
      expect(left.map(({ status }) => status._tag)).toEqual(["Ended"])
      expect(namesOf(yield* recorded(sandbox.read("/a.md")))).toEqual(["Backend.read"])
    }).pipe(Effect.provide(machine))
  )
})
