/** Background processes, in a real shell. */
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import {
  Agent,
  type Backend,
  type Json,
  Message,
  type Sandbox,
  Tool,
  type ToolContext,
  ToolOutput
} from "effect-deepagents"
import { FileTools, Processes } from "effect-deepagents/backends"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { TestChatModel } from "effect-deepagents/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { awaitGone, isAlive, pidIn } from "../processes.ts"

const tools = FileTools.make({ execute: { background: true } })

const findNamed = (name: string) =>
  tools.find((one) => one.name === name) ??
  Tool.make(name, { description: "", parameters: {}, execute: () => Effect.die(name) })

/** Calls a tool in a run, and gives its text, or the message of its failure. */
const call = (name: string, args: Json.JsonObject) =>
  Tool.run(findNamed(name), args).pipe(
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
        const begun = yield* call("execute", {
          background: true,
          command: 'echo ready; while read line; do echo "<$line>"; done'
        })
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
        let text = yield* call("execute", { background: true, command: "seq 1 20000; exit 3" })
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
        let text = yield* call("execute", { background: true, command: `exec ${process.execPath} -e '${write}'` })
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
    /** Waits until the named output is written anew, and lists all that is written in the next moment. */
    const alive = Effect.fnUntraced(function* (...awaited: ReadonlyArray<string>) {
      for (const name of readdirSync(marks)) rmSync(join(marks, name))
      while (!awaited.every((name) => existsSync(join(marks, name)))) yield* Effect.sleep("20 millis")
      yield* Effect.sleep("300 millis")
      return readdirSync(marks)
    })
    return inRun(() =>
      Effect.gen(function* () {
        yield* call("execute", { background: true, command: `(${loop("child")}) & ${loop("parent")}` })
        yield* call("execute", { background: true, command: loop("other") })
        assert.deepStrictEqual((yield* alive("child", "other", "parent")).toSorted(), ["child", "other", "parent"])
        assert.include(yield* call("kill_process", { id: "p1" }), "p1: it")
        assert.include(yield* call("read_output", { id: "p1" }), "ended")
        assert.deepStrictEqual(yield* alive("other"), ["other"])
      })
    ).pipe(
      Effect.andThen(alive()),
      Effect.map((left) => assert.deepStrictEqual(left, [])),
      Effect.ensuring(Effect.sync(() => rmSync(marks, { recursive: true, force: true })))
    )
  })

  it.live("ends the right one, for any content of its files", () =>
    inRun((root) =>
      Effect.gen(function* () {
        const bystander = spawn("sleep", ["60"], { stdio: "ignore" })
        yield* Effect.addFinalizer(() => Effect.sync(() => bystander.kill("SIGKILL")))
        yield* call("execute", { background: true, command: "exec sleep 61" })
        const [folder = ""] = readdirSync(join(root, ".processes")).filter((name) => name.startsWith("p1-"))
        const file = join(root, ".processes", folder, "pid")
        const pid = Number(readFileSync(file, "utf8"))
        writeFileSync(file, `${bystander.pid}\n`)
        assert.include(yield* call("kill_process", { id: "p1" }), "p1: it was ended")
        assert.isTrue(yield* awaitGone(pid))
        assert.isTrue(isAlive(bystander.pid ?? 0))
      }).pipe(Effect.scoped)
    )
  )

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
          assert.isTrue(yield* awaitGone(pid, 20_000))
        }),
      (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
    )
  )

  it.live("has a terminal if it asks for one", () =>
    inRun(() =>
      Effect.gen(function* () {
        const command = "test -t 0 && test -t 1 && echo terminal || echo none"
        assert.include(yield* call("execute", { background: true, command }), "none\n")
        let text = yield* call("execute", { background: true, command, pty: true })
        while (!text.includes("has ended")) text = yield* call("read_output", { id: "p2", wait: 10 })
        assert.include(text, "terminal")
      })
    )
  )

  it.live("is bounded: in number, and in output", () =>
    inRun(() =>
      Effect.gen(function* () {
        yield* call("execute", { background: true, command: "sleep 60" })
        const second = yield* call("execute", { background: true, command: "true" })
        assert.include(second, "FAILED 1 processes run already: p1")
        assert.include(yield* call("kill_process", { id: "p1" }), "p1: it was ended")
        let text = yield* call("execute", { background: true, command: "yes" })
        while (!text.includes("has ended")) text = yield* call("read_output", { id: "p2", offset: 1e12, wait: 10 })
        assert.notInclude(text, "exit code 0;")
      }).pipe(Effect.provide(Processes.layer({ most: 1, output: 100_000 })))
    )
  )

  it.live("of several that are started at once has an id of its own, and counts", () =>
    inRun(() =>
      Effect.gen(function* () {
        const begin = (word: string) => call("execute", { background: true, command: `echo ${word}; sleep 60` })
        const said = yield* Effect.all([begin("one"), begin("two"), begin("three")], { concurrency: "unbounded" })
        const ids = said.map((text) => /process (p\d)/.exec(text)?.[1] ?? text)
        assert.deepStrictEqual(ids.slice(0, 2), ["p1", "p2"])
        assert.include(ids[2], "FAILED 2 processes run already")
        assert.include(yield* call("read_output", { id: "p1" }), "one\n")
        assert.include(yield* call("read_output", { id: "p2" }), "two\n")
      }).pipe(Effect.provide(Processes.layer({ most: 2 })))
    )
  )

  it.live("is read until a text is there, wherever reads break off; a text that does not come is said so", () =>
    inRun(() =>
      Effect.gen(function* () {
        const command = "seq 1 20000; sleep 0.7; printf 'list'; sleep 0.4; echo 'ening on 80'; sleep 60"
        yield* call("execute", { background: true, command })
        const ready = yield* call("read_output", { id: "p1", until: "listening on" })
        assert.match(ready, /listening on 80\n\[process p1: it runs; it wrote "listening on"; output from/)
        assert.include(yield* call("read_output", { id: "p1", until: "1\n2\n" }), "1\n2\n3\n")
        const never = yield* call("read_output", { id: "p1", offset: 1e9, until: "never", wait: 1 })
        assert.include(never, 'it runs; "never" did not come')
        yield* call("execute", { background: true, command: "echo bye" })
        assert.include(yield* call("read_output", { id: "p2", until: "never" }), 'exit code 0; "never" did not come')
      })
    )
  )

  it.live("of another name is not there; git ignores the folder of processes", () =>
    inRun((root) =>
      Effect.gen(function* () {
        assert.include(yield* call("read_output", { id: "p9" }), 'FAILED there is no process "p9": none was started')
        yield* call("execute", { background: true, command: "true" })
        assert.include(yield* call("read_output", { id: "p9" }), "there are: p1")
        assert.deepStrictEqual(readdirSync(root), [".processes"])
        assert.strictEqual(readFileSync(join(root, ".processes/.gitignore"), "utf8"), "*\n")
      })
    )
  )
})

const inFolder = <A, E, R>(test: (root: string) => Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "session-"))),
    test,
    (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
  )

const coder = Agent.make({
  name: "coder",
  prompt: "You code.",
  tools,
  middleware: [Processes.notices()]
})

const start = (command: string) =>
  TestChatModel.script([
    TestChatModel.calls([{ name: "execute", arguments: { command, background: true } }]),
    "started"
  ])

const answers = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

const noticesIn = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) =>
    message.role === "human" && message.source === Processes.source ? [Message.text(message)] : []
  )

describe("the processes of a session", () => {
  it.live("go on from run to run, and end with the session; the model hears once of an ended one", () =>
    inFolder((root) =>
      Effect.gen(function* () {
        const pid = yield* Effect.gen(function* () {
          const first = yield* Agent.run(coder, "Go").pipe(
            Effect.provide(start("echo $$ >pid; trap 'exit 3' USR1; while :; do sleep 0.05; done"))
          )
          const pid = yield* pidIn(join(root, "pid"))
          yield* Effect.sleep("200 millis")
          assert.isTrue(isAlive(pid))
          const second = yield* Agent.run(coder, [...first.messages, Message.human("And?")]).pipe(
            Effect.provide(start("echo $$ >other; sleep 60"))
          )
          assert.match(answers(second.newMessages).join(), /process p2: it runs/)
          assert.deepStrictEqual(noticesIn(second.messages), [])
          const table = yield* Processes.ProcessTable
          const ended = yield* Effect.forkChild(Stream.runHead(table.ended), { startImmediately: true })
          process.kill(pid, "SIGUSR1")
          assert.deepInclude(Option.getOrThrow(yield* Fiber.join(ended)), { id: "p1", end: { exitCode: 3 } })
          const third = yield* Agent.run(coder, [...second.messages, Message.human("And?")]).pipe(
            Effect.provide(start("true"))
          )
          const said = noticesIn(third.messages)
          assert.strictEqual(said.length, 1)
          assert.match(said[0] ?? "", /- p1 \(echo \$\$ >pid.*\): it has ended with exit code 3\. read_output/)
          const listed = yield* table.list
          assert.deepStrictEqual(
            listed.map(({ id, end }) => [id, end === undefined]),
            [
              ["p1", false],
              ["p2", true],
              ["p3", false]
            ]
          )
          return yield* pidIn(join(root, "other"))
        }).pipe(Effect.provide(Processes.layer()))
        assert.isTrue(yield* awaitGone(pid))
      }).pipe(Effect.provide(LocalShell.layer({ root })))
    )
  )

  it.live("of an earlier program are told as gone, once; none of its numbers is given again", () =>
    inFolder((root) => {
      const session = Processes.layer({ folder: "/session" })
      const go = (command: string) =>
        Agent.run(coder, "Go").pipe(Effect.provide(start(command)), Effect.provide(session))
      return Effect.gen(function* () {
        yield* go("exec sleep 60")
        const second = yield* go("true")
        assert.match(noticesIn(second.messages).join(), /- p1 \(exec sleep 60\): it is gone: it ended with the program/)
        assert.include(answers(second.messages).join(), "[process p2: it has ended with exit code 0")
        const { messages } = yield* go("exec sleep 60")
        assert.deepStrictEqual(noticesIn(messages), [])
        assert.include(answers(messages).join(), "[process p3: it runs")
      }).pipe(Effect.provide(LocalShell.layer({ root })))
    })
  )

  it.live("that outlive a killed program are ended at the next start; others of the same number are left alone", () =>
    inFolder((root) =>
      Effect.gen(function* () {
        const folder = join(root, "session")
        /** A process in a group of its own, and the row that a killed program would have left of it. */
        const plant = (id: string, change: (begin: string) => string) => {
          const child = spawn("sh", ["-c", "sleep 60 & wait"], { detached: true, stdio: "ignore" })
          const pid = child.pid ?? 0
          const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
          const ticks = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? ""
          const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()
          const begin = change(`${ticks}-${boot}`)
          mkdirSync(join(folder, `${id}-a`), { recursive: true })
          writeFileSync(join(folder, `${id}-a`, "row"), `${pid} other\n${pid} ${begin}\n${pid} ${begin}\n`)
          writeFileSync(join(folder, `${id}-a`, "command"), `npm run\ndev ${id}`)
          return pid
        }
        const ours = plant("p3", (begin) => begin)
        const others = plant("p5", () => "1-elsewhere")
        // A row that names the group of somebody else beside a process that runs.
        const bystander = plant("p6", () => "1-elsewhere")
        const alive = plant("p8", (begin) => begin)
        const [, , itsRow = ""] = readFileSync(join(folder, "p8-a", "row"), "utf8").split("\n")
        writeFileSync(join(folder, "p8-a", "row"), `${alive} other\n${bystander} other\n${itsRow}\n`)
        mkdirSync(join(folder, "p7-a"))
        writeFileSync(join(folder, "p7-a", "row"), "-1 x\n$(touch /tmp/pwned) x\n1; x\n")
        const spared = [others, bystander, alive]
        yield* Effect.addFinalizer(() => Effect.sync(() => spared.forEach((one) => process.kill(-one, "SIGKILL"))))
        const listed = yield* Effect.provide(
          Effect.flatMap(Processes.ProcessTable, ({ list }) => list),
          Processes.layer({ folder: "/session" })
        )
        assert.deepStrictEqual(
          listed.map(({ command, end, id }) => [
            id,
            command,
            Processes.describeEnd(end).split(" ").slice(0, 4).join(" ")
          ]),
          [
            ["p3", "npm run dev p3", "it still ran after"],
            ["p5", "npm run dev p5", "it is gone: it"],
            ["p6", "npm run dev p6", "it is gone: it"],
            ["p8", "npm run dev p8", "it is gone: it"]
          ]
        )
        assert.isTrue(yield* awaitGone(ours))
        assert.deepStrictEqual(spared.map(isAlive), [true, true, true])
      }).pipe(Effect.scoped, Effect.provide(LocalShell.layer({ root })))
    )
  )

  it.live("are named to a command that leaves something behind", () =>
    inFolder((root) =>
      Effect.gen(function* () {
        const server = 'require("http").createServer().listen(0)'
        const command = `nohup ${process.execPath} -e '${server}' >/dev/null 2>&1 &`
        const { messages } = yield* Agent.run(coder, "Go").pipe(
          Effect.provide(
            TestChatModel.script([TestChatModel.calls([{ name: "execute", arguments: { command } }]), "done"])
          )
        )
        assert.match(
          answers(messages).join(),
          /succeeded with exit code 0\. It left behind: node \(pid \d+\), which was ended\. Use background: true for what has to go on\.\]$/
        )
      }).pipe(Effect.provide(LocalShell.layer({ root })))
    )
  )
})
