/** Commands as real processes: their kept output, and their ends. */
import { spawn } from "node:child_process"
import * as NodeFs from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import { Backend, type BackendError, Sandbox } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { scaled } from "../../scale.ts"
import { awaitGone, isAlive, pidIn } from "../processes.ts"
import { runNow, plant, system, temporary } from "./temporary.ts"

const openShell = (options: Partial<LocalShell.Options> = {}) =>
  Effect.gen(function* () {
    const { outside, root } = yield* temporary
    const sandbox = yield* LocalShell.make({ root, ripgrep: false, ...options })
    return { root, outside, sandbox }
  })

const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const start = Date.now()
    const value = yield* effect
    return { value, millis: Date.now() - start }
  })

const reasonOf = <A, R>(effect: Effect.Effect<A, BackendError.BackendError, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason._tag)

describe("execute", () => {
  it.live("returns the output of both channels in the order of its writing, and the exit code", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* openShell()
      const command = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done; exit 3"
      const expected = Array.from({ length: 9 }, (_, index) => `o${index + 1}\ne${index + 1}\n`).join("")
      assert.deepStrictEqual(yield* sandbox.execute(command), { output: expected, exitCode: 3, truncated: false })
    })
  )

  it.live("does so even if it is all there before anything is read", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* openShell()
      const command = "touch ready; sleep 0.1; for i in 1 2 3; do echo o$i; echo e$i >&2; done"
      const fiber = yield* Effect.forkChild(sandbox.execute(command))
      while (!NodeFs.existsSync(`${root}/ready`)) yield* Effect.sleep("5 millis")
      // Nothing else is done in this process meanwhile, so nothing is read.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600)
      assert.strictEqual((yield* Fiber.join(fiber)).output, "o1\ne1\no2\ne2\no3\ne3\n")
    })
  )

  it.live("gives 128 + n for a command that a signal ended", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* openShell()
      assert.strictEqual((yield* sandbox.execute("kill -9 $$")).exitCode, 137)
      assert.strictEqual((yield* sandbox.execute("kill -TERM $$")).exitCode, 143)
    })
  )

  it.live("takes a command that begins with a dash for a command", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* openShell()
      assert.strictEqual((yield* sandbox.execute("-c 'echo x'")).exitCode, 127)
      assert.strictEqual((yield* sandbox.execute("'--version'")).exitCode, 127)
    })
  )

  it.live("passes on little of the environment, and the given variables", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* Effect.acquireRelease(
        runNow(() => void (process.env["SECRET_KEY"] = "s3cret")),
        () => runNow(() => void delete process.env["SECRET_KEY"])
      ).pipe(Effect.andThen(openShell({ env: { set: { LAYER: "l", BOTH: "l" } } })))
      const { output } = yield* sandbox.execute("env", { env: { CALL: "c", BOTH: "c" } })
      const variables = new Map(
        output
          .trim()
          .split("\n")
          .map((line) => line.split("=", 2) as [string, string])
      )
      const expected = ["BOTH", "CALL", "HOME", "LANG", "LAYER", "PATH", "TERM", "TMPDIR"]
      // These are the shell's own.
      const own = ["PWD", "OLDPWD", "SHLVL", "_"]
      for (const name of variables.keys()) assert.include([...expected, ...own], name)
      assert.deepStrictEqual([variables.get("CALL"), variables.get("LAYER"), variables.get("BOTH")], ["c", "l", "c"])
      assert.isTrue(variables.has("PATH"))
    })
  )

  it.live("runs in the root, or a folder of it; never out of it", () =>
    Effect.gen(function* () {
      const { outside, root, sandbox } = yield* openShell()
      yield* plant(root, { "a/b/": "", "file.txt": "x" })
      yield* runNow(() => {
        NodeFs.symlinkSync(outside, `${root}/out`)
        NodeFs.symlinkSync("a/b", `${root}/in`)
      })
      const pwd = (cwd: string) => Effect.map(sandbox.execute("pwd -P", { cwd }), ({ output }) => output.trim())
      assert.strictEqual((yield* sandbox.execute("pwd")).output.trim(), root)
      assert.strictEqual(yield* pwd("/a/b"), `${root}/a/b`)
      assert.strictEqual(yield* pwd("in"), `${root}/a/b`)
      for (const cwd of ["/out", "../outside", "~"]) assert.strictEqual(yield* reasonOf(pwd(cwd)), "OutsideRoot", cwd)
      assert.strictEqual(yield* reasonOf(pwd("/none")), "NotFound")
      assert.strictEqual(yield* reasonOf(pwd("/file.txt")), "NotDirectory")
    })
  )

  it.live("closes stdin, or gives it; a command need not read it", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* openShell()
      assert.strictEqual((yield* sandbox.execute("cat; echo end")).output, "end\n")
      assert.strictEqual((yield* sandbox.execute("cat", { stdin: "häl\nlo" })).output, "häl\nlo")
      const large = "x".repeat(5_000_000)
      assert.strictEqual((yield* sandbox.execute("wc -c", { stdin: large })).output.trim(), "5000000")
      assert.strictEqual((yield* sandbox.execute("exit 4", { stdin: large })).exitCode, 4)
      const closed = yield* sandbox.execute("exec <&-; sleep 0.3; echo end", { stdin: large })
      assert.deepStrictEqual(closed, { output: "end\n", exitCode: 0, truncated: false })
    })
  )

  it.live("joins characters that are cut anywhere, and shows invalid ones", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* openShell()
      const command = "printf '\\360\\237'; sleep 0.05; printf '\\230\\200'; printf '\\377|\\303'"
      assert.strictEqual((yield* sandbox.execute(command)).output, "😀\uFFFD|\uFFFD")
    })
  )

  it.live("runs two commands at a time", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* openShell()
      const wait = (mine: string, other: string) =>
        sandbox.execute(`touch ${mine}; while [ ! -e ${other} ]; do sleep 0.01; done; echo ${mine}`, {
          cwd: "/",
          timeout: "5 seconds"
        })
      const both = yield* Effect.all([wait("one", "two"), wait("two", "one")], { concurrency: 2 })
      assert.deepStrictEqual(
        both.map(({ output }) => output),
        ["one\n", "two\n"]
      )
      assert.isTrue(NodeFs.existsSync(`${root}/one`))
    })
  )

  it.live.runIf(NodeFs.existsSync("/bin/bash"))("by another shell, if that is what is wanted", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* openShell({ shell: "/bin/bash" })
      assert.strictEqual(
        (yield* sandbox.execute("echo ${BASH_VERSION:+bash} $((1+1)); echo x >&2")).output,
        "bash 2\nx\n"
      )
    })
  )
})

describe("output", () => {
  it.live("is its beginning and its end if it is too long, in characters that are whole", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* openShell({ outputLimit: 1000 })
      const { output, truncated } = yield* sandbox.execute("seq 1 1000000")
      assert.isTrue(truncated)
      assert.isTrue(output.startsWith("1\n2\n3\n") && output.endsWith("999999\n1000000\n"))
      const left = /\n… (\d+) characters left out …\n/.exec(output)
      assert.strictEqual(Number(left?.[1]) + output.length - (left?.[0].length ?? 0), 6_888_896)
      assert.isBelow(output.length, 1100)
      const smileys = yield* sandbox.execute("printf x; for i in $(seq 2000); do printf '\\360\\237\\230\\200'; done")
      assert.isTrue(smileys.truncated && smileys.output.isWellFormed())
      const exact = yield* sandbox.execute("head -c 1000 /dev/zero | tr '\\0' x")
      assert.deepStrictEqual(exact, { output: "x".repeat(1000), exitCode: 0, truncated: false })
    })
  )

  it.live(
    "without end takes no more memory, and its time",
    () =>
      Effect.gen(function* () {
        const { sandbox } = yield* openShell()
        const before = process.memoryUsage().rss
        let peak = before
        const timer = setInterval(() => {
          peak = Math.max(peak, process.memoryUsage().rss)
        }, 10)
        const { millis, value } = yield* timed(Effect.flip(sandbox.execute("yes", { timeout: "2 seconds" })))
        clearInterval(timer)
        assert.strictEqual(value.reason._tag, "TimedOut")
        // It writes gigabytes in that time.
        assert.isBelow(peak - before, 800_000_000)
        assert.isBelow(millis, 40_000)
      }),
    60_000
  )
})

// These wait for processes, and go on beside each other.
describe.concurrent("a command that is over its time", () => {
  it.live("fails with the limit, and the end of its output", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* openShell()
      const error = yield* Effect.flip(
        sandbox.execute("seq 1 3000; echo begun >&2; sleep 60", { timeout: "2 seconds" })
      )
      assert.deepStrictEqual(error.reason, { _tag: "TimedOut", limit: 2000 })
      assert.isTrue(error.detail?.endsWith("3000\nbegun\n"))
      assert.isAtMost(error.detail?.length ?? Infinity, 2000)
    })
  )

  it.live("is ended with all that it started, and grandchildren that hold its pipes delay nothing", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* openShell()
      const command = "(sleep 60 & echo $! > inner; wait) & sleep 61 & echo $! > outer; wait"
      const { millis } = yield* timed(Effect.flip(sandbox.execute(command, { timeout: "2 seconds" })))
      assert.isBelow(millis, 30_000)
      for (const name of ["inner", "outer"]) assert.isTrue(yield* awaitGone(yield* pidIn(`${root}/${name}`)), name)
    })
  )

  it.live(
    "is killed if it does not end when it is asked to, 2 seconds later",
    () =>
      Effect.gen(function* () {
        const { root, sandbox } = yield* openShell()
        const command = "trap '' TERM; (trap '' TERM; echo $$ > shell; sleep 60; sleep 60) & wait; wait; sleep 60"
        const { millis } = yield* timed(Effect.flip(sandbox.execute(command, { timeout: "2 seconds" })))
        assert.isAtLeast(millis, 3900)
        assert.isBelow(millis, 30_000)
        assert.isTrue(yield* awaitGone(yield* pidIn(`${root}/shell`)))
      }),
    60_000
  )

  it.live("may end in peace: its actions on the signal are awaited", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* openShell()
      const command = "trap 'sleep 0.3; echo bye > bye; exit 0' TERM; echo ready > ready; while :; do sleep 0.05; done"
      yield* Effect.flip(sandbox.execute(command, { timeout: "2 seconds" }))
      assert.isTrue(NodeFs.existsSync(`${root}/bye`))
    })
  )
})

describe.concurrent("interruption", () => {
  it.live("ends the command with all that it started, before it is over itself", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* openShell()
      const fiber = yield* Effect.forkChild(sandbox.execute("sleep 60 & echo $! > inner; echo $$ > shell; wait"))
      const [inner, shell] = [yield* pidIn(`${root}/inner`), yield* pidIn(`${root}/shell`)]
      const { millis } = yield* timed(Fiber.interrupt(fiber))
      assert.isBelow(millis, 30_000)
      assert.isFalse(isAlive(inner) || isAlive(shell))
    })
  )

  it.live(
    "kills a command that ignores the signal",
    () =>
      Effect.gen(function* () {
        const { root, sandbox } = yield* openShell()
        const fiber = yield* Effect.forkChild(
          sandbox.execute("trap '' TERM; echo $$ > shell; while :; do sleep 1; done")
        )
        const shell = yield* pidIn(`${root}/shell`)
        const { millis } = yield* timed(Fiber.interrupt(fiber))
        assert.isTrue(millis >= 1900 && millis < 30_000)
        assert.isTrue(yield* awaitGone(shell))
      }),
    60_000
  )
})

describe.concurrent("processes that a command leaves in the background", () => {
  it.live("does not keep it from being over, and is ended", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* openShell()
      const { millis, value } = yield* timed(sandbox.execute("sleep 60 & echo $! > pid; echo started"))
      const pid = yield* pidIn(`${root}/pid`)
      assert.deepStrictEqual(value, {
        output: "started\n",
        exitCode: 0,
        truncated: false,
        left: [`sleep (pid ${pid})`]
      })
      assert.isBelow(millis, 30_000)
      assert.isTrue(yield* awaitGone(pid))
    })
  )

  it.live("are named at the end, by their programs; short-lived ones are not", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* openShell()
      const many = "for i in 1 2 3 4 5 6 7; do nohup sleep 60 >/dev/null 2>&1 & done; exit 3"
      const [ended] = yield* Stream.runCollect(
        Stream.filter(sandbox.executeStream(many), ({ _tag }) => _tag === "Exited")
      )
      assert.deepInclude(ended, { exitCode: 3 })
      const left = ended !== undefined && "left" in ended ? (ended.left ?? []) : []
      assert.match(left.join(", "), /^(sleep \(pid \d+\), ){5}2 more$/)
      for (const command of ["true", "seq 1 100000 | head -1", "sleep 0.02 &", "true & wait"]) {
        assert.notProperty(yield* sandbox.execute(command), "left", command)
      }
    })
  )

  it.live("does not delay it, even out of its group with its pipes in hand", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* openShell()
      const command =
        "setsid sh -c 'echo $$ > pid; exec sleep 60' & while [ ! -s pid ]; do sleep 0.01; done; echo started"
      const { millis, value } = yield* timed(sandbox.execute(command))
      const pid = yield* pidIn(`${root}/pid`)
      yield* Effect.addFinalizer(() => runNow(() => void process.kill(pid, "SIGKILL")))
      assert.strictEqual(value.output, "started\n")
      assert.isBelow(millis, 30_000)
    })
  )

  it.live(
    "writes on without end, and the command is over all the same, with all that it wrote itself",
    () =>
      Effect.gen(function* () {
        const { sandbox } = yield* openShell({ outputLimit: 10_000_000 })
        const { millis, value } = yield* timed(
          sandbox.execute(
            "seq 1 50000; (trap '' TERM; touch on; exec yes) & while [ ! -e on ]; do sleep 0.01; done; exit 7",
            { timeout: "50 seconds" }
          )
        )
        assert.strictEqual(value.exitCode, 7)
        assert.include(value.output, "\n50000\n")
        assert.isBelow(millis, 30_000)
      }),
    60_000
  )

  it.live(
    "is killed after 2 seconds if it does not end; at once if the layer is released",
    () =>
      Effect.gen(function* () {
        const { root } = yield* temporary
        const command = (name: string) =>
          `(trap '' TERM; sh -c 'echo $PPID' > ${name}; while :; do sleep 1; done) & while [ ! -s ${name} ]; do sleep 0.01; done`
        const scope = yield* Scope.make()
        const sandbox = yield* Scope.provide(LocalShell.make({ root, ripgrep: false }), scope)
        yield* sandbox.execute(command("first"))
        const first = yield* pidIn(`${root}/first`)
        assert.isTrue(isAlive(first))
        assert.isTrue(yield* awaitGone(first, 30_000))
        yield* sandbox.execute(command("second"))
        const second = yield* pidIn(`${root}/second`)
        yield* Scope.close(scope, Exit.void)
        // Its own two seconds are not over: it was killed with the layer.
        assert.isTrue(yield* awaitGone(second, 1500))
      }),
    60_000
  )

  it.live("is ended when the shell is, whether somebody reads on or not", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* openShell()
      const run = Stream.runForEach(sandbox.executeStream("sleep 60 & echo $! > pid; echo started"), () => Effect.never)
      const fiber = yield* Effect.forkChild(run)
      assert.isTrue(yield* awaitGone(yield* pidIn(`${root}/pid`)))
      yield* Fiber.interrupt(fiber)
    })
  )
})

describe("executeStream", () => {
  it.live("keeps the channels apart, gives all as it comes, and then the end", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* openShell()
      // The command goes on once its first output is here.
      const events = yield* Stream.runCollect(
        sandbox
          .executeStream("echo out; while [ ! -e go ]; do sleep 0.01; done; echo err >&2; exit 2")
          .pipe(Stream.tap(() => runNow(() => NodeFs.writeFileSync(`${root}/go`, ""))))
      )
      assert.deepStrictEqual(events, [
        { _tag: "Output", channel: "stdout", text: "out\n" },
        { _tag: "Output", channel: "stderr", text: "err\n" },
        { _tag: "Exited", exitCode: 2, truncated: false }
      ])
    })
  )

  it.live(
    "is as fast as it is read: a command that writes waits, and loses nothing",
    () =>
      Effect.gen(function* () {
        const { root, sandbox } = yield* openShell()
        const command =
          "for i in $(seq 1 60); do head -c 500000 /dev/zero; echo $i > progress; done; echo done > progress"
        const before = process.memoryUsage().rss
        let total = 0
        let stalledAt = ""
        yield* Stream.runForEach(sandbox.executeStream(command), (event) =>
          Effect.gen(function* () {
            if (event._tag === "Output") total += event.text.length
            if (stalledAt === "") {
              yield* Effect.sleep("500 millis")
              stalledAt = NodeFs.existsSync(`${root}/progress`)
                ? NodeFs.readFileSync(`${root}/progress`, "utf8").trim()
                : "0"
            }
          })
        )
        assert.isBelow(Number(stalledAt), 30)
        assert.strictEqual(total, 30_000_000)
        assert.isBelow(process.memoryUsage().rss - before, 150_000_000)
      }),
    60_000
  )

  it.live(
    "gives the rest of the pipes when the command is over already",
    () =>
      Effect.gen(function* () {
        const { root, sandbox } = yield* openShell()
        // More than is buffered here, and less than the pipe holds beside it: the command ends while nobody reads.
        const wait = "while [ ! -e go ]; do sleep 0.01; done"
        const command = `printf x; ${wait}; head -c 1100000 /dev/zero; touch done`
        let total = 0
        yield* Stream.runForEach(sandbox.executeStream(command), (event) =>
          Effect.gen(function* () {
            if (event._tag === "Output") total += event.text.length
            yield* runNow(() => NodeFs.writeFileSync(`${root}/go`, ""))
            while (!NodeFs.existsSync(`${root}/done`)) yield* Effect.sleep("20 millis")
            // A busy machine gives many small pieces: only the first one waits.
            if (total === 1) yield* Effect.sleep("50 millis")
          })
        )
        assert.strictEqual(total, 1_100_001)
      }).pipe(Effect.timeout("30 seconds")),
    60_000
  )

  it.live("left early, ends the command", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* openShell()
      const { millis, value } = yield* timed(
        Stream.runCollect(sandbox.executeStream("echo $$ > pid; echo one; sleep 60").pipe(Stream.take(1)))
      )
      assert.strictEqual(value.length, 1)
      assert.isBelow(millis, 30_000)
      assert.isTrue(yield* awaitGone(yield* pidIn(`${root}/pid`)))
    })
  )

  it.live("ends in time even if nobody reads it any more", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* openShell()
      const run = Stream.runForEach(
        sandbox.executeStream("echo $$ > pid; yes", { timeout: "2 seconds" }),
        () => Effect.never
      )
      const fiber = yield* Effect.forkChild(run)
      assert.isTrue(yield* awaitGone(yield* pidIn(`${root}/pid`), 30_000))
      yield* Fiber.interrupt(fiber)
    })
  )

  it.live("fails with TimedOut, after what came", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* openShell()
      const seen: Array<string> = []
      const error = yield* Effect.flip(
        Stream.runForEach(sandbox.executeStream("echo one; sleep 60", { timeout: "2 seconds" }), (event) =>
          runNow(() => void seen.push(event._tag === "Output" ? event.text : "end"))
        )
      )
      assert.deepStrictEqual(
        [seen, error.reason, error.detail],
        [["one\n"], { _tag: "TimedOut", limit: 2000 }, "one\n"]
      )
    })
  )
})

describe("commands that can't be started", () => {
  it.live("is a failure that says why", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* openShell()
      for (const options of [{ env: { A: "a\0b" } }, {}]) {
        const command = options.env === undefined ? "echo a\0b" : "true"
        assert.strictEqual(yield* reasonOf(sandbox.execute(command, options)), "Unsupported")
      }
      for (const name of ["A=B", "A;id", "1A", "", "A\0", "é"])
        assert.strictEqual(yield* reasonOf(sandbox.execute("true", { env: { [name]: "x" } })), "InvalidPath")
      const long = yield* Effect.flip(sandbox.execute(`: ${"x".repeat(5_000_000)}`))
      assert.deepStrictEqual(long.reason, { _tag: "TooLarge", size: 5_000_002, limit: 131_071 })
      const values = { env: Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`V${at}`, "x".repeat(100_000)])) }
      assert.strictEqual(yield* reasonOf(sandbox.execute("true", values)), "TooLarge")
      assert.include(long.message, "write the script to a file")
      assert.strictEqual(yield* reasonOf(LocalShell.make({ root, shell: `${root}/none` })), "NotFound")
      assert.strictEqual(yield* reasonOf(LocalShell.make({ root, shell: "sh" })), "InvalidPath")
      assert.strictEqual(yield* reasonOf(LocalShell.make({ root: `${root}/none` })), "NotFound")
    })
  )

  it.live.runIf(process.platform === "linux")(
    "leaves no processes and no open files behind, nor do commands",
    () =>
      Effect.gen(function* () {
        const { sandbox } = yield* openShell()
        const descriptors = () => NodeFs.readdirSync("/proc/self/fd").length
        yield* sandbox.execute("true")
        const before = descriptors()
        // Other files of this worker may keep processes.
        const countChildren = Effect.map(
          system("ps", "-o", "pid=", "--ppid", `${process.pid}`),
          (listed) => listed.trim().split("\n").length
        )
        const children = yield* countChildren
        for (let round = 0; round < scaled(24); round++) {
          yield* sandbox.execute("sleep 60 & true")
          yield* Effect.ignore(sandbox.execute("echo a\0b"))
          yield* Effect.ignore(sandbox.execute("sleep 60", { timeout: "10 millis" }))
          yield* Effect.ignore(sandbox.read("/none"))
          yield* sandbox.write("/file.txt", "x")
        }
        while (descriptors() > before + 1) yield* Effect.sleep("5 millis")
        assert.isAtMost(yield* countChildren, children + 1)
      }),
    60_000
  )
})

describe("the layer", () => {
  it.live("gives one value as both services; commands and files see each other", () =>
    Effect.gen(function* () {
      const { root } = yield* temporary
      yield* Effect.gen(function* () {
        const sandbox = yield* Sandbox.Sandbox
        const backend = yield* Backend.Backend
        assert.strictEqual<Backend.Service>(sandbox, backend)
        assert.isTrue(Sandbox.isSandbox(backend) && sandbox.reaches("/anything") && sandbox.id.includes(root))
        yield* backend.write("/from-file.txt", "one\n")
        assert.strictEqual((yield* sandbox.execute("cat from-file.txt; echo two > from-command.txt")).output, "one\n")
        const read = yield* backend.read("/from-command.txt")
        assert.strictEqual(read.kind === "text" && read.text, "two")
      }).pipe(Effect.provide(LocalShell.layer({ root })))
    })
  )
})

describe("a process that is killed", () => {
  it.live("ends its commands, and their processes, within two seconds", () =>
    Effect.gen(function* () {
      const { root } = yield* temporary
      const child = spawn(
        process.execPath,
        [
          "--conditions=@effect-deepagents/source",
          `${import.meta.dirname}/../children/shell.ts`,
          root,
          "trap '' TERM; sleep 60 & echo $! > inner; echo $$ > outer; sleep 3; echo late > late; sleep 60"
        ],
        { stdio: ["ignore", "pipe", "inherit"] }
      )
      const outer = yield* pidIn(`${root}/outer`)
      const inner = yield* pidIn(`${root}/inner`)
      assert.isTrue(isAlive(outer) && isAlive(inner))
      child.kill("SIGKILL")
      assert.isTrue(yield* awaitGone(outer))
      assert.isTrue(yield* awaitGone(inner))
      assert.isFalse(NodeFs.existsSync(`${root}/late`))
    })
  )
})
