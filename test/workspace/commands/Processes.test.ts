/** Background processes, in a real shell. */
import { spawn } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Agent, type Backend, type Json, type Sandbox, Tool, type ToolContext, ToolOutput } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { TestChatModel } from "effect-deepagents/testing"
import { Processes } from "effect-deepagents/workspace"
import * as Effect from "effect/Effect"
import { gone, pidIn } from "../../backends/processes.ts"

const named = (name: string, options?: Parameters<typeof Processes.make>[0]) => {
  const tool = Processes.make(options).find((one) => one.name === name)
  return tool ?? Tool.make(name, { description: "", parameters: {}, execute: () => Effect.die(name) })
}

/** Calls a tool in a run, and gives its text, or the message of its failure. */
const call = (name: string, args: Json.JsonObject, options?: Parameters<typeof Processes.make>[0]) =>
  Tool.run(named(name, options), args).pipe(
    Effect.map(ToolOutput.text),
    Effect.catch((error) => Effect.succeed(`FAILED ${error.message}`))
  )

/** A run on a new folder in which a test calls tools. */
const inRun = <A, E>(
  test: (root: string) => Effect.Effect<A, E, ToolContext.ToolContext | Sandbox.Sandbox | Backend.Backend>
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "processes-"))),
    (root) => {
      const probe = Tool.make("probe", {
        description: "Runs the test",
        parameters: {},
        execute: () => Effect.as(Effect.orDie(Effect.suspend(() => test(root))), "done")
      })
      const agent = Agent.make({ name: "tested", prompt: "You are tested.", tools: [probe] })
      return Agent.run(agent, "Go").pipe(
        Effect.flatMap(({ messages }) =>
          Effect.sync(() => {
            const answer = messages.find((message) => message.role === "tool")
            assert.deepInclude(answer?.content[0], { text: "done" })
          })
        ),
        Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "probe" }]), "done"])),
        Effect.provide(LocalShell.layer({ root }))
      )
    },
    (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
  )

const outputFile = (text: string): string => /in the file (\/\S+)\]/.exec(text)?.[1] ?? ""

describe("a process", () => {
  it.live("takes input, gives its output from an offset, and ends when its input does", () =>
    inRun(() =>
      Effect.gen(function* () {
        const begun = yield* call("start_process", { command: 'echo ready; while read line; do echo "<$line>"; done' })
        assert.include(begun, "ready\n[process p1: it runs; output from 0 to 6 of 6 bytes")
        yield* call("send_input", { id: "p1", text: "$(one) 'two'" })
        assert.include(
          yield* call("read_output", { id: "p1", offset: 6, wait: 10 }),
          "<$(one) 'two'>\n[process p1: it runs; output from 6"
        )
        yield* call("send_input", { id: "p1", text: "last", close: true })
        let text = ""
        while (!text.includes("has ended")) text = yield* call("read_output", { id: "p1", offset: 10_000, wait: 10 })
        assert.include(text, "it has ended with exit code 0")
        assert.include(yield* call("read_output", { id: "p1" }), "<last>")
        assert.include(yield* call("send_input", { id: "p1", text: "x" }), "FAILED nothing reads that")
      })
    )
  )

  it.live("keeps its exit code, and all of its output in a file", () =>
    inRun((root) =>
      Effect.gen(function* () {
        let text = yield* call("start_process", { command: "seq 1 20000; exit 3" })
        while (!text.includes("has ended")) text = yield* call("read_output", { id: "p1", wait: 10 })
        assert.include(text, "exit code 3")
        assert.include(text, "there is more: read on from offset 30000")
        const file = readFileSync(join(root, outputFile(text)), "utf8")
        assert.strictEqual(file.split("\n").length, 20_001)
        const window = yield* call("read_output", { id: "p1", offset: file.length - 6 })
        assert.include(window, "20000\n[process p1")
      })
    )
  )

  it.live("gives every character once, wherever a window or the output breaks off in it", () =>
    inRun((root) =>
      Effect.gen(function* () {
        const write = `process.stdout.write("a" + "é東😀".repeat(8000)); setTimeout(() => process.stdout.write(Buffer.from([0xf0, 0x9f])), 300); setTimeout(() => process.stdout.write(Buffer.from([0x98, 0x80, 0xff])), 1500)`
        let text = yield* call("start_process", { command: `exec ${process.execPath} -e '${write}'` })
        let read = ""
        let at = 0
        for (;;) {
          const [, from = "", to = ""] = /; output from (\d+) to (\d+) of/.exec(text) ?? []
          assert.strictEqual(Number(from), at)
          read += text.slice(0, Math.max(0, text.lastIndexOf("\n[process p1")))
          if (text.includes("has ended") && !text.includes("there is more")) break
          at = Number(to)
          text = yield* call("read_output", { id: "p1", offset: at, wait: 5 })
        }
        assert.strictEqual(read, readFileSync(join(root, outputFile(text)), "utf8"))
        assert.strictEqual(read, `a${"é東😀".repeat(8000)}😀\ufffd`)
        assert.include(yield* call("read_output", { id: "p1", offset: 1e300 }), "[process p1: it has ended")
      })
    )
  )

  it.live("is ended with all that it started, by hand or by the end of the run", () => {
    const marks = mkdtempSync(join(tmpdir(), "marks-"))
    const loop = (name: string) => `while :; do echo x > ${marks}/${name}; sleep 0.05; done`
    /** What is still written after what is there was taken away. */
    const alive = Effect.gen(function* () {
      for (const name of readdirSync(marks)) rmSync(join(marks, name))
      yield* Effect.sleep("300 millis")
      return readdirSync(marks)
    })
    return inRun(() =>
      Effect.gen(function* () {
        yield* call("start_process", { command: `(${loop("child")}) & ${loop("parent")}` })
        yield* call("start_process", { command: loop("other") })
        assert.deepStrictEqual((yield* alive).toSorted(), ["child", "other", "parent"])
        assert.include(yield* call("kill_process", { id: "p1" }), "p1 is ended")
        assert.include(yield* call("read_output", { id: "p1" }), "ended")
        assert.deepStrictEqual(yield* alive, ["other"])
      })
    ).pipe(
      Effect.andThen(alive),
      Effect.map((left) => assert.deepStrictEqual(left, [])),
      Effect.ensuring(Effect.sync(() => rmSync(marks, { recursive: true, force: true })))
    )
  })

  it.live("is ended with the program that started it, when that is killed", () =>
    Effect.acquireUseRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "crash-"))),
      (root) =>
        Effect.gen(function* () {
          const path = fileURLToPath(new URL("crash.child.mjs", import.meta.url))
          const signal = yield* Effect.callback<string | null>((resume) => {
            const program = spawn(process.execPath, ["--conditions=@effect-deepagents/source", path, root], {
              stdio: ["ignore", "ignore", "inherit"]
            })
            program.on("close", (_, signal) => resume(Effect.succeed(signal)))
          })
          assert.strictEqual(signal, "SIGKILL")
          const pid = yield* pidIn(join(root, "pid"))
          assert.isTrue(yield* gone(pid, 20_000))
        }),
      (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
    )
  )

  it.live("has a terminal if it asks for one", () =>
    inRun(() =>
      Effect.gen(function* () {
        const command = "test -t 0 && test -t 1 && echo terminal || echo none"
        assert.include(yield* call("start_process", { command }), "none\n")
        let text = yield* call("start_process", { command, pty: true })
        while (!text.includes("has ended")) text = yield* call("read_output", { id: "p2", wait: 10 })
        assert.include(text, "terminal")
      })
    )
  )

  it.live("is bounded: in number, and in what it writes", () =>
    inRun(() =>
      Effect.gen(function* () {
        const options = { most: 1, output: 100_000 }
        yield* call("start_process", { command: "sleep 60" }, options)
        assert.include(yield* call("start_process", { command: "true" }, options), "FAILED 1 processes run already: p1")
        yield* call("kill_process", { id: "p1" })
        let text = yield* call("start_process", { command: "yes" }, options)
        while (!text.includes("has ended")) text = yield* call("read_output", { id: "p2", offset: 1e12, wait: 10 })
        assert.notInclude(text, "exit code 0;")
      })
    )
  )

  it.live("of several that are started at once has an id of its own, and counts", () =>
    inRun(() =>
      Effect.gen(function* () {
        const begin = (word: string) => call("start_process", { command: `echo ${word}; sleep 60` }, { most: 2 })
        const said = yield* Effect.all([begin("one"), begin("two"), begin("three")], { concurrency: "unbounded" })
        const ids = said.map((text) => /process (p\d)/.exec(text)?.[1] ?? text)
        assert.deepStrictEqual(ids.slice(0, 2), ["p1", "p2"])
        assert.include(ids[2], "FAILED 2 processes run already")
        assert.include(yield* call("read_output", { id: "p1" }), "one\n")
        assert.include(yield* call("read_output", { id: "p2" }), "two\n")
      })
    )
  )

  it.live("of another name is not there; the folder of processes is none of git's", () =>
    inRun((root) =>
      Effect.gen(function* () {
        assert.include(yield* call("read_output", { id: "p9" }), 'FAILED there is no process "p9": none was started')
        yield* call("start_process", { command: "true" })
        assert.include(yield* call("read_output", { id: "p9" }), "there are: p1")
        assert.deepStrictEqual(readdirSync(root), [".processes"])
        assert.strictEqual(readFileSync(join(root, ".processes/.gitignore"), "utf8"), "*\n")
      })
    )
  )
})
