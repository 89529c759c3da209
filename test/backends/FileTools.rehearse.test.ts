/** Edits and writes that can't be applied are refused before a person is asked about them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Approval, Backend, Message, Tool } from "effect-deepagents"
import { FileTools, MemoryBackend } from "effect-deepagents/backends"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { type Call, turns } from "./converse.ts"

const edit = (old_string: string, file_path = "/a.ts"): Call => [
  "edit_file",
  { file_path, old_string, new_string: "changed" }
]
const write = (file_path: string): Call => ["write_file", { file_path, content: "new" }]
const read: Call = ["read_file", { file_path: "/a.ts" }]

/** The files that a person was asked about, and the answers of the tools. `meanwhile` runs before the last round. */
const converse = (rounds: ReadonlyArray<ReadonlyArray<Call>>, touches = false) => {
  const asked: Array<unknown> = []
  const agent = Agent.make({
    name: "agent",
    prompt: "",
    tools: [
      ...FileTools.make(),
      Tool.make("touch", {
        description: "",
        parameters: {},
        execute: () =>
          Effect.flatMap(Backend.Backend, (backend) => Effect.as(Effect.orDie(backend.write("/a.ts", "other")), "ok"))
      })
    ],
    middleware: [HumanInTheLoop.make({ tools: { edit_file: true, write_file: true } })]
  })
  const all = touches ? [...rounds.slice(0, -1), [["touch", {}] as const], ...rounds.slice(-1)] : rounds
  return Effect.gen(function* () {
    const backend = yield* Backend.Backend
    yield* backend.write("/a.ts", "one\ntwo\ntwo\n")
    yield* backend.upload([{ path: "/b.bin", content: new Uint8Array([0, 1, 2]) }])
    const { messages } = yield* Agent.run(agent, "Go")
    const answers = messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
    return { asked, answers }
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        TestChatModel.script(turns(all)),
        MemoryBackend.layer(),
        Layer.succeed(Approval.Approvals, {
          decide: (request) =>
            Effect.sync(() => (asked.push(request.arguments["file_path"]), Approval.approve(request)))
        })
      )
    )
  )
}

describe("a change that can't be applied", () => {
  it.effect("is refused without a question, in the words of the tool", () =>
    Effect.gen(function* () {
      const refused = yield* converse([
        [edit("one"), write("/a.ts"), edit("one", "/none.ts"), edit("x", "/b.bin")],
        [read],
        [edit("three")],
        [edit("two")],
        [write("/b.bin")]
      ])
      assert.deepEqual(refused.asked, [])
      const [unread, over, missing, binary, , absent, twice, written] = refused.answers
      assert.include(unread, "you have not read it")
      assert.include(over, "you have not read it")
      assert.include(missing, "no such file")
      assert.include(binary, "not read it")
      assert.match(absent ?? "", /not in the file|no such text|no match/i)
      assert.match(twice ?? "", /2|more than once/)
      assert.include(written, "you have not read it")
      const conflict = yield* converse([[read], [edit("one")]], true)
      assert.deepEqual(conflict.asked, [])
      assert.include(conflict.answers.at(-1), "changed")
    })
  )

  it.effect("is asked about if it can be applied, or if an earlier call of its round decides that", () =>
    Effect.gen(function* () {
      const fine = yield* converse([
        [read],
        [edit("one"), write("/new/c.ts")],
        [["edit_file", { file_path: "/a.ts", old_string: "changed", new_string: "again" }]]
      ])
      assert.deepEqual(fine.asked, ["/a.ts", "/new/c.ts", "/a.ts"])
      const together = yield* converse([[read, edit("one")]])
      assert.deepEqual(together.asked, ["/a.ts"])
      assert.include(together.answers.at(-1), "Edited")
      const made = yield* converse([[write("/d.ts"), edit("new", "/d.ts")]])
      assert.deepEqual(made.asked, ["/d.ts", "/d.ts"])
      assert.include(made.answers.at(-1), "Edited")
    })
  )
})
