/** A run in the terminal: its text as it comes, a line for each call, and a sentence in place of a stack trace. */
import { assert, describe, it } from "@effect/vitest"
import { Config, ConfigProvider, Console, Effect, Layer, Schema } from "effect"
import { Agent, ChatModel, Tool } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import { Printer } from "effect-deepagents/view"
import { vi } from "vitest"

const look = Tool.make("look", {
  description: "",
  parameters: { at: Schema.String },
  execute: ({ at }) => (at === "gone" ? Effect.fail("there is\n nothing") : "a thing")
})
const agent = Agent.make({ name: "a", prompt: "", tools: [look] })

/** What a program writes to the standard output. */
const printed = <E, R>(program: Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const pieces: Array<string> = []
    const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => pieces.push(String(text)) > 0)
    yield* Effect.ensuring(
      program,
      Effect.sync(() => write.mockRestore())
    )
    return pieces.join("")
  })

describe("Printer", () => {
  it.effect("prints text as it comes, and calls and failures as lines of their own", () =>
    Effect.gen(function* () {
      const text = yield* printed(Printer.run(agent, "go"))
      assert.equal(text, "I look.\n→ look at: here\n→ look at: gone\n✗ look: there is nothing\nOne thing.\n")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls(
            [
              { name: "look", arguments: { at: "here" } },
              { name: "look", arguments: { at: "gone" } }
            ],
            { text: ["I ", "look."] }
          ),
          TestChatModel.text(["One", " thing.\n"])
        ])
      )
    )
  )

  it.effect("shows no escape codes of a model", () =>
    Effect.gen(function* () {
      const text = yield* printed(Printer.run(agent, "go"))
      assert.notInclude(text, "\u001b")
      assert.include(text, "wiped")
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.text(["\u001b[2J", "wiped"])])))
  )

  it("shows no escape codes of a tool's name, and indents by the path", () => {
    const called = { _tag: "ToolCalled", toolName: "\u001b[2Jlook", arguments: {} } as const
    const lineOf = (path: ReadonlyArray<string>) => Printer.line({ ...called, path } as never) ?? ""
    assert.notInclude(lineOf(["a"]), "\u001b")
    assert.include(lineOf(["a"]), "look")
    assert.isTrue(lineOf([]).startsWith("→"))
    assert.isTrue(lineOf(["a", "b"]).startsWith("  →"))
  })

  it.effect("joins the halves of a character, and of an end of a line", () =>
    Effect.gen(function* () {
      assert.equal(yield* printed(Printer.run(agent, "go")), "😀 one\ntwo\n")
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.text(["\ud83d", "\ude00 one\r", "\ntwo\n"])])))
  )

  const ending = Effect.fnUntraced(function* <A, E>(program: Effect.Effect<A, E>) {
    const before = process.exitCode
    const said: Array<unknown> = []
    const console = Object.assign(Object.create(globalThis.console), { error: (text: unknown) => said.push(text) })
    yield* program.pipe(Printer.orExit, Effect.provideService(Console.Console, console))
    const { exitCode } = process
    process.exitCode = before
    return [...said, exitCode]
  })

  it.effect("ends a program with the sentence of its failure, and code 1", () =>
    Effect.gen(function* () {
      const broken = Layer.effect(ChatModel.ChatModel, Effect.fail(new Error("There is no key.")))
      assert.deepEqual(yield* ending(Printer.run(agent, "go").pipe(Effect.provide(broken))), ["There is no key.", 1])
      const isInUse = Effect.fail(new Error("", { cause: new Error("the port is in use") }))
      assert.deepEqual(yield* ending(isInUse), ["the port is in use", 1])
    })
  )

  it.effect("says of a setting that it is missing or what it should be, and never its value", () =>
    Effect.gen(function* () {
      const settings = ConfigProvider.fromEnv({ env: { PORT: "sk-secret", SMALL: "99999" } })
      const readConfig = <A>(config: Config.Config<A>) => ending(config.parse(settings))
      assert.deepEqual(yield* readConfig(Config.Port("PORT")), ["PORT is wrong: expected a number", 1])
      assert.deepEqual(yield* readConfig(Config.Port("SMALL")), [
        "SMALL is wrong: expected a value between 1 and 65535",
        1
      ])
      assert.deepEqual(yield* readConfig(Config.Redacted("DATABASE_URL")), ["DATABASE_URL is not set", 1])
    })
  )
})
