/** The memory of a project: the agents' texts, a person's choice of them, and their use. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { pendingChanges, readMemory, settleChanges } from "../../src/cli/internal/config/memory.ts"
import { placesOf } from "../../src/cli/internal/config/places.ts"
import { answer, type Reply, say, serve, stream } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"

const program = useProgram()

/** Makes the call that writes the memory of a project. */
const noteIn = (cwd: string) =>
  readMemory({ ...placesOf(cwd), data: join(cwd, "data/deepagents") }).pipe(
    Effect.map(({ notes }) => (content: string) => ({
      call: "write_file",
      id: "toolu_1",
      input: { file_path: join(notes, "agent.md"), content }
    })),
    Effect.provide(NodeServices.layer)
  )

const systemOf = (request: { readonly body: unknown } | undefined): string => {
  const body = request?.body
  return typeof body === "object" && body !== null && "system" in body ? JSON.stringify(body.system) : ""
}

/** The texts of the files below a folder, by their last names. */
const textsIn = (folder: string) =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => [
        join(entry.parentPath, entry.name).split("/").slice(-2).join("/"),
        readFileSync(join(entry.parentPath, entry.name), "utf8")
      ])
  )

/** A folder whose agent gets these answers. */
const begin = Effect.fnUntraced(function* (
  script: (note: Effect.Success<ReturnType<typeof noteIn>>) => ReadonlyArray<Reply>
) {
  const cwd = program.folder()
  const note = yield* noteIn(cwd)
  const { requests, url } = yield* serve(...script(note))
  const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-test", XDG_DATA_HOME: join(cwd, "data") }
  return { cwd, env, memory: join(cwd, "data/deepagents/memory"), notes: note("").input.file_path, requests }
})

/** Types lines, each once a pattern was seen. */
const converse = (
  chat: ReturnType<typeof program.start>,
  lines: ReadonlyArray<readonly [seen: RegExp, line: string]>
) =>
  Effect.gen(function* () {
    let from = 0
    for (const [seen, line] of lines) {
      yield* Effect.callback<void>((resume) => {
        const look = () => {
          const at = chat.out().slice(from).search(seen)
          if (at < 0) return
          chat.child.stdout.off("data", look)
          from += at
          resume(Effect.void)
        }
        chat.child.stdout.on("data", look)
        look()
      })
      from = chat.out().length
      chat.child.stdin.write(`${line}\n`)
    }
    return yield* Effect.promise(() => chat.ended)
  })

describe("the memory of a project", { timeout: 60_000 }, () => {
  it.effect(
    "is not written in a run, but with --remember, and then counts in later sessions of this folder alone",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { cwd, env, memory, requests } = yield* begin((note) => [
            stream(answer([note("BE LOUD")])),
            say("Noted."),
            stream(answer([note("BE LOUD")])),
            say("Noted."),
            say("Hello."),
            say("Hello.")
          ])
          const plain = yield* program.run(cwd, ["run", "Note it", "--yolo"], env)
          assert.equal(plain.code, 0, plain.err)
          assert.include(JSON.stringify(requests[1]?.body), "allows it with --remember")
          assert.deepEqual(textsIn(memory), {})
          const kept = yield* program.run(cwd, ["run", "Note it", "--yolo", "--remember"], env)
          assert.equal(kept.code, 0, kept.err)
          assert.match(kept.err, /Remembered: agent\.md/)
          assert.deepEqual(textsIn(memory), { "kept/agent.md": "BE LOUD", "notes/agent.md": "BE LOUD" })
          // The prompt stays the same within the session.
          assert.equal(systemOf(requests[3]), systemOf(requests[2]))
          assert.notInclude(systemOf(requests[3]), "BE LOUD")
          yield* program.run(cwd, ["run", "Hi"], env)
          assert.include(systemOf(requests[4]), "BE LOUD")
          yield* program.run(program.folder(), ["run", "Hi"], env)
          assert.notInclude(systemOf(requests[5]), "BE LOUD")
        })
      )
  )

  it.effect.runIf(isFull)("that waits for a decision is not kept by a later run with --remember", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, env, memory, notes } = yield* begin((note) => [
          stream(answer([{ call: "read_file", id: "toolu_2", input: { file_path: note("").input.file_path } }])),
          stream(answer([note("PLANTED\nBE LOUD\n")])),
          say("Noted.")
        ])
        writeFileSync(notes, "PLANTED\n")
        const { code, err } = yield* program.run(cwd, ["run", "Note it", "--yolo", "--remember"], env)
        assert.equal(code, 0, err)
        assert.match(err, /Not remembered: agent\.md\. It has changes from before this run; decide in a chat: \/memory/)
        assert.deepEqual(textsIn(memory), { "notes/agent.md": "PLANTED\nBE LOUD\n" })
      })
    )
  )

  it.live.runIf(isFull)(
    "asks at the end of a turn with the diff; a yes counts from the next session on, and the model is told",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { cwd, env, requests } = yield* begin((note) => [
            stream(answer([note("BE LOUD")])),
            say("Noted."),
            say("Hello."),
            stream(answer([note("BE QUIET")])),
            say("Noted."),
            say("Bye."),
            say("Hello.")
          ])
          const chat = program.start(cwd, ["chat"], env, null)
          const done = yield* converse(chat, [
            [/> /, "note it"],
            [/memory: agent\.md[^]*\+BE LOUD[^]*remember this\?[^]*2\. yes[^]*1-3: /, "2"],
            [/are kept[^]*> /, "hi"],
            [/Hello[^]*> /, "note another"],
            [/-BE LOUD[^]*\+BE QUIET[^]*3\. no[^]*1-3: /, "3"],
            [/are taken back[^]*> /, "bye"],
            [/Bye[^]*> /, "/quit"]
          ])
          assert.equal(done.code, 0, done.err)
          assert.equal(new Set(requests.map(systemOf)).size, 1)
          assert.include(JSON.stringify(requests[2]?.body), "They count from the next conversation on")
          assert.include(JSON.stringify(requests[5]?.body), "were not wanted")
          const later = yield* program.run(cwd, ["run", "Hi"], env)
          assert.equal(later.code, 0, later.err)
          assert.include(systemOf(requests[6]), "BE LOUD")
          assert.notInclude(systemOf(requests[6]), "BE QUIET")
        })
      )
  )

  it.live.runIf(isFull)("is not written in plan mode; text from outside is said, and the refusal comes first", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const reach = { call: "execute", id: "toolu_2", input: { command: "curl -s http://127.0.0.1:1/ || true" } }
        const { cwd, env, memory, requests } = yield* begin((note) => [
          stream(answer([note("BE LOUD")])),
          say("A plan."),
          stream(answer([reach])),
          stream(answer([note("BE LOUD")])),
          say("Noted.")
        ])
        const planned = yield* converse(program.start(cwd, ["chat", "--approvals", "plan"], env, null), [
          [/> /, "note it"],
          [/A plan[^]*> /, "/quit"]
        ])
        assert.equal(planned.code, 0, planned.err)
        assert.include(JSON.stringify(requests[1]?.body), "nothing is changed in plan mode")
        const chat = program.start(cwd, ["chat"], env, null)
        const done = yield* converse(chat, [
          [/> /, "note it"],
          [/curl[^]*1-\d: /, "1"],
          [/write_file[^]*1-\d: /, "1"],
          [/text from outside \(a command that uses the network\)[^]*1\. no[^]*1-3: /, "1"],
          [/are taken back[^]*> /, "/quit"]
        ])
        assert.equal(done.code, 0, done.err)
        assert.deepEqual(textsIn(memory), {})
      })
    )
  )

  it.effect("is taken back where an agent made folders of files, and files of folders", () =>
    Effect.gen(function* () {
      const places = { ...placesOf(program.folder()), data: program.folder() }
      const { notes } = yield* readMemory(places)
      mkdirSync(join(notes, "skills/ship"), { recursive: true })
      writeFileSync(join(notes, "skills/ship/SKILL.md"), "Ship.")
      writeFileSync(join(notes, "agent.md"), "one")
      yield* settleChanges(places, yield* pendingChanges(places), true)
      rmSync(notes, { recursive: true })
      mkdirSync(join(notes, "agent.md"), { recursive: true })
      writeFileSync(join(notes, "agent.md/x.md"), "x")
      writeFileSync(join(notes, "skills"), "x")
      yield* settleChanges(places, yield* pendingChanges(places), false)
      assert.deepEqual(textsIn(notes), { "notes/agent.md": "one", "ship/SKILL.md": "Ship." })
      assert.deepEqual(readdirSync(dirname(notes)).toSorted(), ["kept", "notes"])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("keeps its skills and files as they were shown, and leaves newer notes to another question", () =>
    Effect.gen(function* () {
      const project = program.folder()
      const places = { ...placesOf(project), data: program.folder() }
      const { notes } = yield* readMemory(places)
      const putFile = (path: string, text: string): void => {
        mkdirSync(dirname(join(notes, path)), { recursive: true })
        writeFileSync(join(notes, path), text)
      }
      putFile("skills/ship/SKILL.md", "---\nname: ship\ndescription: Ships\n---\nShip.\n")
      putFile("agent.md", "one")
      const shown = yield* pendingChanges(places)
      assert.deepEqual(
        shown.map(({ path }) => path),
        ["agent.md", "skills/ship/SKILL.md"]
      )
      putFile("agent.md", "two")
      yield* settleChanges(places, shown, true)
      const kept = yield* readMemory(places)
      assert.deepEqual([kept.text, kept.skills.map(({ path }) => path)], ["one", ["ship"]])
      const [newer, ...others] = yield* pendingChanges(places)
      assert.deepEqual([newer?.path, others.length], ["agent.md", 0])
      yield* settleChanges(places, newer === undefined ? [] : [newer], false)
      assert.equal(readFileSync(join(notes, "agent.md"), "utf8"), "one")
      assert.deepEqual(yield* pendingChanges(places), [])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
