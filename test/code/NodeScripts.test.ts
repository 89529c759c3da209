/** Scripts in threads: their globals, the limits of their reach, and their ends. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { CodeMode, Scripts } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { sampled } from "../scale.ts"
import { escapes, hangs } from "./attacks.ts"
import { run, type Seen } from "./scripts.ts"

const makeSeen = (): Seen => ({ calls: [], lines: [] })

/** Signs that a script has a value of the host. */
const ofHost = /execPath|"PATH"|root:x:|\[object process\]|uid=\d/

layer(NodeScripts.layer())("a script", (it) => {
  it.effect("is the body of an async function in TypeScript", () =>
    Effect.gen(function* () {
      const value = yield* run(
        "interface A { readonly n: number }\nconst a: A = { n: args.n }\nenum B { C = 3 }\nreturn [a.n satisfies number, B.C]",
        { args: { n: 2 } }
      )
      assert.deepStrictEqual(value, [2, 3])
    })
  )

  it.effect("calls tools, prints lines and names phases", () =>
    Effect.gen(function* () {
      const noted = makeSeen()
      const value = yield* run(
        "phase('one'); const all = await Promise.all([1, 2].map((n) => tools.a({ n }))); text('got', all.length, { x: 1 }); console.log(await tools.anyOther()); return all",
        { seen: noted }
      )
      assert.deepStrictEqual(value, ['a {"n":1}', 'a {"n":2}'])
      assert.deepStrictEqual(noted.calls, ["a", "a", "anyOther"])
      assert.deepStrictEqual(noted.lines, ["phase: one", 'text: got 2 {"x":1}', "text: anyOther {}"])
    })
  )

  it.effect("catches a call that fails, with its reason", () =>
    Effect.gen(function* () {
      const value = yield* run(
        "try { await tools.a({}) } catch (e) { return [e.name, e.message, e.reason, e instanceof Error] }",
        {
          answer: () => Effect.fail({ name: "ToolError", message: "no", reason: "Rejected" })
        }
      )
      assert.deepStrictEqual(value, ["ToolError", "no", "Rejected", true])
    })
  )

  it.effect("goes on beside a task of `parallel` and an item of `pipeline` that fail, and prints the failures", () =>
    Effect.gen(function* () {
      const noted = makeSeen()
      const answer = (name: string) =>
        name === "b" ? Effect.fail({ name: "ToolError", message: "no" }) : Effect.succeed(name)
      const value = yield* run(
        "return [await parallel([() => tools.a({}), () => tools.b({}), tools.a({})], { concurrency: 2 }), await pipeline([1, 2], (n) => n === 1 ? tools.b({}) : n + 1, (n, item, at) => [n, item, at])]",
        { seen: noted, answer }
      )
      assert.deepStrictEqual(value, [
        ["a", null, "a"],
        [null, [3, 2, 1]]
      ])
      assert.deepStrictEqual(noted.lines, [
        "text: Task 2 of parallel failed: no",
        "text: Item 1 of pipeline failed: no"
      ])
    })
  )

  it.effect("does each task of `parallel` at any concurrency", () =>
    Effect.gen(function* () {
      for (const concurrency of ["NaN", "0", "-1", "'x'", "0.5", "1", "2", "Infinity"]) {
        const source = `return await parallel([() => tools.a({}), () => tools.b({})], { concurrency: ${concurrency} })`
        assert.deepStrictEqual(yield* run(source), ["a {}", "b {}"], concurrency)
      }
    })
  )

  it.effect("has the chance and the clock that it was begun with", () =>
    Effect.gen(function* () {
      const source = "return [Math.random(), Date.now(), new Date().toISOString(), new Date(0).getTime()]"
      const first = yield* run(source)
      assert.deepStrictEqual(yield* run(source), first)
      assert.deepStrictEqual((first as ReadonlyArray<unknown>).slice(1), [1e12, "2001-09-09T01:46:40.001Z", 0])
    })
  )

  it.effect("finds these names in its world, and no other of a host", () =>
    Effect.gen(function* () {
      const names = yield* run(
        "return [Object.keys(globalThis), Object.getOwnPropertyNames(globalThis).filter((n) => !/^[A-Z]/.test(n)).sort()]"
      )
      assert.deepStrictEqual(names, [
        [
          "tools",
          "searchTools",
          "describeTool",
          "agent",
          "task",
          "parallel",
          "pipeline",
          "text",
          "log",
          "console",
          "phase",
          "askUser",
          "store",
          "load",
          "budget",
          "args"
        ],
        [
          "agent",
          "args",
          "budget",
          "console",
          "decodeURI",
          "decodeURIComponent",
          "describeTool",
          "encodeURI",
          "encodeURIComponent",
          "escape",
          "eval",
          "globalThis",
          "isFinite",
          "isNaN",
          "load",
          "log",
          "parallel",
          "parseFloat",
          "parseInt",
          "phase",
          "pipeline",
          "searchTools",
          "store",
          "task",
          "text",
          "tools",
          "askUser",
          "undefined",
          "unescape"
        ].sort()
      ])
    })
  )

  it.effect("names its own lines when it fails", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(run("const a: number = 1\nconst f = () => { throw new TypeError('bad') }\nf()"))
      assert.strictEqual(error.reason, "Threw")
      assert.strictEqual(error.message, "TypeError: bad")
      assert.match(error.stack ?? "", /script\.ts:2:\d+[^]*script\.ts:3:/)
      const syntax = yield* Effect.flip(run("const a = 1\nlet b: = 3"))
      assert.strictEqual(syntax.reason, "Syntax")
      assert.match(syntax.message, /line 2: let b: = 3/)
    })
  )

  it.effect("names the limit that it passed, or that it waits for nothing", () =>
    Effect.gen(function* () {
      const reasonOf = (source: string, memory?: number) =>
        Effect.map(Effect.flip(run(source, { limits: { time: 500, memory } })), ({ reason }) => reason)
      assert.strictEqual(yield* reasonOf("while (true) {}"), "Time")
      assert.strictEqual(yield* reasonOf("await new Promise(() => {})"), "Stuck")
      assert.strictEqual(yield* reasonOf("return 'x'.repeat(3e6)"), "Size")
      assert.strictEqual(yield* reasonOf("return new ArrayBuffer(2e6).byteLength", 1_500_000), "Memory")
    })
  )

  it.effect("ends once the calls that it did not wait for have ended", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        run("void tools.a({}); return 1", { answer: () => Effect.as(Deferred.await(gate), "done") })
      )
      yield* Effect.forEach(Array.from({ length: 50 }), () => Effect.yieldNow, { discard: true })
      assert.isUndefined(fiber.pollUnsafe())
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(yield* Fiber.join(fiber), 1)
    })
  )

  it.effect("is ended from outside by a defect of an answer, which it can't catch", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(
        run("try { await tools.a({}) } catch { return 'caught' }", { answer: () => Effect.die("broken") })
      )
      assert.deepStrictEqual(exit, Exit.die("broken"))
      const interrupted = yield* Effect.exit(run("await tools.a({})", { answer: () => Effect.interrupt }))
      assert.isTrue(Exit.isFailure(interrupted) && Exit.hasInterrupts(interrupted))
    })
  )

  it.effect("may make so many calls, catches the refusal of the next, and no more reach the host", () =>
    Effect.gen(function* () {
      const noted = makeSeen()
      const source = "let n = 0; try { for (;;) { await tools.a({}); n++ } } catch (e) { return [n, e.name] }"
      assert.deepStrictEqual(yield* run(source, { limits: { calls: 3 }, seen: noted }), [3, "LimitError"])
      assert.strictEqual(noted.calls.length, 3)
    })
  )

  it.effect("reaches nothing of its host by published ways out", () =>
    Effect.forEach(
      escapes,
      (source) =>
        Effect.gen(function* () {
          const noted = makeSeen()
          const exit = yield* Effect.exit(run(source, { limits: { time: 400 }, seen: noted }))
          const said = JSON.stringify([Exit.isSuccess(exit) ? exit.value : String(exit.cause), noted.lines])
          assert.notMatch(said, ofHost, source)
          // A forged call is a call that the script may make anyway.
          assert.isEmpty(
            noted.calls.filter((name) => !["a", "b", "agent", "x", "constructor", "__proto__"].includes(name)),
            source
          )
          if (Exit.isSuccess(exit)) assert.notMatch(JSON.stringify(exit.value), /"object|function"/, source)
        }),
      { discard: true }
    )
  )

  it.effect("ends at a limit of time, memory or calls", () =>
    Effect.forEach(
      sampled(hangs),
      (source) =>
        Effect.gen(function* () {
          const exit = yield* Effect.exit(run(source, { limits: { time: 200 } }))
          if (Exit.isSuccess(exit)) return
          assert.match(String(exit.cause), /ScriptError/, source)
        }),
      { concurrency: 2, discard: true }
    )
  )
})

describe("the pool", () => {
  it.live("lets the program's loop run while a script computes for ever", () =>
    Effect.gen(function* () {
      yield* run("return 1")
      const order: Array<string> = []
      const other = Effect.andThen(
        Effect.sleep("5 millis"),
        Effect.sync(() => order.push("other work"))
      )
      const script = Effect.andThen(
        Effect.exit(run("while (true) {}", { limits: { time: 1_000 } })),
        Effect.sync(() => order.push("script"))
      )
      yield* Effect.all([script, other], { concurrency: 2 })
      assert.deepStrictEqual(order, ["other work", "script"])
    }).pipe(Effect.provide(NodeScripts.layer()))
  )

  it.live("runs scripts inside of scripts beyond the number that may run at once", () =>
    Effect.gen(function* () {
      const scripts = yield* Scripts.Scripts
      const inner = run("return 2").pipe(Effect.provideService(Scripts.Scripts, scripts), Effect.orDie)
      const values = yield* Effect.all(
        [1, 2, 3].map(() => run("return await tools.a({})", { answer: () => inner })),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(values, [2, 2, 2])
    }).pipe(Effect.provide(NodeScripts.layer({ most: 1 })))
  )

  it.live("frees the thread of a script that is interrupted", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        run("await tools.a({})", { answer: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never) })
      )
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* run("return 1"), 1)
    }).pipe(Effect.provide(NodeScripts.layer({ most: 1 })))
  )

  it("refuses options that it does not know", async () => {
    // @ts-expect-error: there is no such option
    const exit = await Effect.runPromiseExit(run("return 1").pipe(Effect.provide(NodeScripts.layer({ threads: 2 }))))
    assert.match(String(exit), /threads/)
    const none = await Effect.runPromiseExit(run("return 1").pipe(Effect.provide(NodeScripts.layer({ most: 0 }))))
    assert.match(String(none), /at least 1/)
    assert.strictEqual(CodeMode.toolName, "run_script")
  })
})
