/** Checks commands: exit code, output, input, time, and that no process stays. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Service as Files } from "../../../../core/Backend.ts"
import { collect, type ExecuteEvent, type Service } from "../../../../core/Sandbox.ts"
import { fails, assert, expect } from "../assert.ts"
import { readBytes, runWithoutDefect, putFiles, readText, rule, type Rules, readWhole } from "./common.ts"
import { byteLength } from "./paths.ts"

/** The services of a sandbox. */
export interface Pair {
  readonly sandbox: Service
  readonly backend: Files
}

const outcomes: ReadonlyArray<readonly [command: string, exitCode: number, output: string]> = [
  ["true", 0, ""],
  ["false", 1, ""],
  ["exit 3", 3, ""],
  ["exit 255", 255, ""],
  ["echo one; exit 7", 7, "one\n"],
  ["echo 'a  b' \"c\" \\$d", 0, "a  b c $d\n"],
  ["printf '%s' 'no newline'", 0, "no newline"],
  ["printf 'é\\n日本語\\n'", 0, "é\n日本語\n"],
  ["echo one && false || echo two", 0, "one\ntwo\n"],
  ["for i in 1 2 3; do\n  echo $i\ndone\n# a comment", 0, "1\n2\n3\n"],
  ["echo a | tr a b", 0, "b\n"],
  ["cat <<'EOF'\n$HOME `id` 'x'\nEOF", 0, "$HOME `id` 'x'\n"],
  ["echo hidden >/dev/null", 0, ""]
]

/** Time to wait for an event that must not happen. */
const grace = "700 millis"

const outputOf = (events: ReadonlyArray<ExecuteEvent>) =>
  events.flatMap((event) => (event._tag === "Output" ? [event] : []))

/** Checks of commands. */
export const sandboxRules: Rules<Pair> = [
  rule("it is a backend and a sandbox by one value", function* ({ backend, sandbox }) {
    yield* assert(Object.is(sandbox, backend), "both services are one value", "two")
    yield* assert(sandbox.id !== "", "it has an id", sandbox.id)
    yield* assert(typeof sandbox.reaches("/") === "boolean", "it says what commands reach", sandbox.reaches("/"))
  }),
  rule("a command has an exit code and an output, and failing is no failure", function* ({ sandbox }) {
    for (const [command, exitCode, output] of outcomes) {
      const result = yield* sandbox.execute(command)
      yield* expect(result, { output, exitCode, truncated: false }, `execute of ${JSON.stringify(command)}`)
    }
    const unknown = yield* sandbox.execute("no-such-command-anywhere")
    yield* expect(unknown.exitCode, 127, "the exit code of a command that is not there")
    yield* assert(unknown.output.includes("no-such-command-anywhere"), "its output names it", unknown.output)
    const broken = yield* sandbox.execute("if then (")
    yield* assert(broken.exitCode !== 0, "a command that is no command fails", broken)
    for (const nul of ["\0", "echo a\0b"])
      yield* fails(sandbox.execute(nul), `execute of ${JSON.stringify(nul)}`, "Unsupported")
    for (const odd of ["", " ", "\n", "\ud800", `: ${"x".repeat(300_000)}`])
      yield* runWithoutDefect(sandbox.execute(odd), `execute of ${JSON.stringify(odd.slice(0, 20))}`)
  }),
  rule("what a command says on stderr is in its output", function* ({ sandbox }) {
    const result = yield* sandbox.execute("echo wrong >&2; exit 2")
    yield* expect(result, { output: "wrong\n", exitCode: 2, truncated: false }, "the output")
  }),
  rule("a stream, put together, is what execute gives", function* ({ sandbox }) {
    for (const command of ["echo one; echo two; exit 4", "true", "seq 1 500", "printf 'é日'"]) {
      const events = yield* Stream.runCollect(sandbox.executeStream(command))
      yield* expect(
        events.map(({ _tag }) => _tag).filter((tag) => tag === "Exited"),
        ["Exited"],
        "there is one end"
      )
      yield* expect(events.at(-1)?._tag, "Exited", "the end is last")
      const executed = yield* sandbox.execute(command)
      yield* expect(yield* collect(Stream.fromIterable(events)), executed, `the stream of ${command}`)
    }
  }),
  rule("a command reads what it is given, and else an input that is empty and closed", function* ({ sandbox }) {
    for (const stdin of ["text\n", "no newline", "é日\u{1F600}\n", "'\"$(id)`id`\\\nEOF\n", ""])
      yield* expect((yield* sandbox.execute("cat", { stdin })).output, stdin, "cat gives its input")
    yield* expect(
      yield* sandbox.execute("cat", { timeout: "10 seconds" }),
      { output: "", exitCode: 0, truncated: false },
      "no input"
    )
    const large = "0123456789abcde\n".repeat(40_000)
    const counted = yield* sandbox.execute("wc -c", { stdin: large })
    yield* expect(Number(counted.output.trim()), large.length, "a large input is read to its end")
    yield* expect(
      (yield* sandbox.execute("true", { stdin: large })).exitCode,
      0,
      "an input that nobody reads is no failure"
    )
    yield* expect(
      (yield* sandbox.execute("head -n 1", { stdin: large })).output,
      "0123456789abcde\n",
      "nor one that is read in part"
    )
  }),
  rule("a command runs in the root, or in a folder of the backend", function* ({ sandbox }) {
    yield* putFiles(sandbox, { "/here.txt": "root", "/sub/here.txt": "sub", "/odd $(id) 'name'/here.txt": "odd" })
    yield* expect((yield* sandbox.execute("cat here.txt")).output, "root", "the root")
    for (const [cwd, text] of [
      ["/", "root"],
      ["", "root"],
      ["/sub", "sub"],
      ["sub/", "sub"],
      ["/odd $(id) 'name'", "odd"]
    ] as const)
      // prettier-ignore
      yield* expect((yield* sandbox.execute("cat here.txt", { cwd })).output, text, `the folder "${cwd}"`)
    yield* fails(sandbox.execute("true", { cwd: "/none" }), "a folder that is not there", "NotFound")
    yield* fails(sandbox.execute("true", { cwd: "/here.txt" }), "a file as folder", "NotDirectory")
    for (const cwd of ["..", "/../x", "/sub/../..", "~"])
      yield* fails(sandbox.execute("true", { cwd }), `the folder ${cwd}`, "OutsideRoot")
    yield* fails(sandbox.execute("true", { cwd: "a\0b" }), "a folder with NUL", "InvalidPath")
  }),
  rule("a command gets the variables that it is given, as they are", function* ({ sandbox }) {
    const values = [
      "plain",
      "two words",
      "'\"",
      "$HOME `id` $(id)",
      "line\nline",
      "é\u{1F600}",
      "",
      "-n",
      "a=b",
      "\\n%s"
    ]
    for (const value of values)
      yield* expect(
        (yield* sandbox.execute('printf "%s" "$GIVEN"', { env: { GIVEN: value } })).output,
        value,
        "the value"
      )
    yield* expect((yield* sandbox.execute('echo "${GIVEN-unset}"')).output, "unset\n", "it is gone afterwards")
    for (const name of ["", "A=B", "A B", "A;touch injected", "A\0B", "1A", "é", "A-B", "$(touch injected)"]) {
      const label = `a variable called ${JSON.stringify(name)}`
      yield* fails(sandbox.execute("true", { env: { [name]: "x" } }), label, "InvalidPath")
    }
    yield* runWithoutDefect(sandbox.execute("true", { env: { ["__proto__"]: "x" } }), "a variable called __proto__")
    yield* fails(sandbox.execute("true", { env: { GIVEN: "a\0b" } }), "a value with NUL", "Unsupported")
    yield* expect((yield* sandbox.ls("/")).entries, [], "no name is run as a command")
    yield* assert(
      (yield* sandbox.execute("command -v cat")).exitCode === 0,
      "there is a PATH to find commands by",
      "none"
    )
  }),
  rule("files of the backend are there for commands, and theirs for the backend", function* ({ sandbox }) {
    yield* sandbox.write("/from backend/file.txt", "one\ntwo\n")
    yield* expect(
      (yield* sandbox.execute("cat 'from backend/file.txt'")).output,
      "one\ntwo\n",
      "a command reads a file"
    )
    yield* sandbox.execute("mkdir -p made/by && printf 'by command\\n' > made/by/command.txt")
    yield* expect((yield* readText(sandbox, "/made/by/command.txt")).text, "by command", "the backend reads a file")
    const { version } = yield* sandbox.read("/made/by/command.txt")
    yield* sandbox.execute("printf 'BY COMMAND\\n' > made/by/command.txt")
    const stale = sandbox.edit("/made/by/command.txt", [{ old: "BY", new: "x" }], { version })
    yield* fails(stale, "an edit of what a command changed", "Conflict")
    yield* sandbox.edit("/made/by/command.txt", [{ old: "BY", new: "EDITED BY" }])
    yield* expect(
      (yield* sandbox.execute("cat made/by/command.txt")).output,
      "EDITED BY COMMAND\n",
      "a command sees an edit"
    )
    yield* sandbox.move("/made", "/moved")
    yield* expect((yield* sandbox.execute("ls moved/by")).output, "command.txt\n", "a command sees a move")
    yield* sandbox.execute("rm -r moved")
    yield* fails(sandbox.ls("/moved"), "ls of what a command deleted", "NotFound")
    const result = yield* sandbox.grep({ pattern: "two", mode: "files" })
    yield* expect(
      result.files.map(({ path }) => path),
      ["/from backend/file.txt"],
      "grep sees what is there"
    )
  }),
  rule("bytes that are not UTF-8, and characters in pieces, break nothing", function* ({ sandbox }) {
    const odd = yield* sandbox.execute("printf 'a\\377\\376b\\n'")
    yield* assert(/^a.+b\n$/u.test(odd.output), "bytes that are no character are shown as something", odd.output)
    const nul = yield* sandbox.execute("printf 'a\\000b'")
    yield* assert(nul.output.startsWith("a") && nul.output.endsWith("b"), "NUL is no end", nul.output)
    const text = "é日\u{1F600}".repeat(3000)
    yield* sandbox.write("/text", text)
    yield* expect((yield* sandbox.execute("cat text")).output, text, "long texts keep their characters")
    yield* sandbox.execute("printf '\\377\\000\\001' > bytes")
    yield* expect([...(yield* readBytes(sandbox, "/bytes"))], [255, 0, 1], "a file of bytes")
  }),
  rule("an output that is too long is cut in its middle, and says so", function* ({ sandbox }) {
    const lines = Array.from({ length: 250_000 }, (_, index) => `${index}\n`)
    yield* sandbox.write("/long.txt", `first\n${lines.join("")}last\n`)
    const result = yield* sandbox.execute("cat long.txt; exit 5")
    yield* expect([result.truncated, result.exitCode], [true, 5], "it says so")
    yield* assert(byteLength(result.output) < 1_000_000, "most of it is left out", byteLength(result.output))
    yield* assert(result.output.startsWith("first\n0\n1\n"), "its beginning is there", result.output.slice(0, 40))
    yield* assert(result.output.endsWith("249999\nlast\n"), "its end is there", result.output.slice(-40))
    const events = yield* Stream.runCollect(sandbox.executeStream("cat long.txt; exit 5"))
    const last = events.at(-1)
    const streamed = outputOf(events).reduce((sum, { text }) => sum + byteLength(text), 0)
    yield* assert(
      last?._tag === "Exited" && last.exitCode === 5 && last.truncated === streamed < 1_500_000,
      "the stream gives all of it, or says so too",
      [last, streamed]
    )
  }),
  rule("a command that is over its time is ended", function* ({ sandbox }) {
    const began = yield* Clock.currentTimeMillis
    const error = yield* Effect.flip(
      sandbox.execute("echo working; sleep 30; echo late > late.txt", { timeout: "500 millis" })
    ).pipe(
      Effect.catch((result) =>
        assert(false, "a command over its time fails", result).pipe(Effect.andThen(Effect.never))
      )
    )
    const took = (yield* Clock.currentTimeMillis) - began
    yield* expect(error.reason, { _tag: "TimedOut", limit: 500 }, "the reason, with the limit in milliseconds")
    yield* expect(error.operation, "execute", "the operation")
    yield* assert(took < 10_000, "it does not wait for the command", `${took} ms`)
    const streamed = Stream.runCollect(sandbox.executeStream("echo working; sleep 30", { timeout: "500 millis" }))
    yield* fails(streamed, "the stream of a command over its time", "TimedOut")
    yield* expect((yield* sandbox.execute("echo next")).output, "next\n", "the next command runs")
  }),
  rule("an interruption ends a command", function* ({ sandbox }) {
    const running = yield* Effect.forkScoped(sandbox.execute("sleep 0.6; echo late > late.txt"))
    yield* Effect.sleep("150 millis")
    const interrupted = yield* Effect.timeoutOption(Fiber.interrupt(running), "5 seconds")
    yield* assert(Option.isSome(interrupted), "an interruption returns at once", "it did not")
    yield* Effect.sleep(grace)
    yield* expect((yield* sandbox.ls("/")).entries, [], "nothing went on")
  }),
  rule("commands and operations go on beside each other", function* ({ sandbox }) {
    const all = Array.from({ length: 8 }, (_, index) => index)
    const results = yield* Effect.forEach(
      all,
      (index) =>
        index % 2 === 0
          ? Effect.map(sandbox.execute(`echo ${index}; echo ${index} > ${index}.txt`), ({ output }) => output)
          : Effect.as(sandbox.write(`/${index}.txt`, `${index}\n`), `${index}\n`),
      { concurrency: "unbounded" }
    )
    yield* expect(
      results,
      all.map((index) => `${index}\n`),
      "each has its own output"
    )
    for (const index of all)
      yield* expect(yield* readWhole(sandbox, `/${index}.txt`), `${index}\n`, "each has its own file")
  })
]

/** Checks of background processes and signals. */
export const processRules: Rules<Pair> = [
  rule("a command that a signal ended has the exit code that a shell gives", function* ({ sandbox }) {
    yield* expect((yield* sandbox.execute("kill -TERM $$")).exitCode, 143, "TERM is 128 + 15")
    yield* expect((yield* sandbox.execute("kill -KILL $$")).exitCode, 137, "KILL is 128 + 9")
    yield* expect((yield* sandbox.execute("sh -c 'kill -KILL $$'; exit $?")).exitCode, 137, "of a child")
  }),
  rule("stdout and stderr are in the order of arrival", function* ({ sandbox }) {
    const command = "echo 1; sleep 0.15; echo 2 >&2; sleep 0.15; echo 3; sleep 0.15; echo 4 >&2"
    yield* expect((yield* sandbox.execute(command)).output, "1\n2\n3\n4\n", "the output")
    const pieces = yield* sandbox.execute("printf '\\303'; sleep 0.15; printf '\\251'")
    yield* expect(pieces.output, "é", "a character that comes in two pieces is one")
  }),
  rule(
    "a command over its time, or interrupted, is ended with all that it started, also what ignores a polite request",
    function* ({ sandbox }) {
      const stubborn = (name: string) =>
        `trap '' TERM INT HUP; (sleep 5; echo late > ${name}1) & sh -c 'trap "" TERM; sleep 5; echo late > ${name}2'`
      const timed = fails(sandbox.execute(stubborn("timed"), { timeout: "300 millis" }), "it", "TimedOut")
      const running = yield* Effect.forkScoped(sandbox.execute(stubborn("interrupted")))
      const interrupting = Effect.gen(function* () {
        yield* Effect.sleep("300 millis")
        yield* Fiber.interrupt(running)
      })
      const ended = yield* Effect.timeoutOption(Effect.all([timed, interrupting], { concurrency: 2 }), "4500 millis")
      yield* assert(Option.isSome(ended), "both end soon", "they did not")
      yield* Effect.sleep("5 seconds")
      yield* expect((yield* sandbox.ls("/")).entries, [], "nothing went on")
    }
  ),
  rule("output without end takes bounded memory and time", function* ({ sandbox }) {
    const error = yield* fails(sandbox.execute("yes", { timeout: "500 millis" }), "yes", "TimedOut")
    yield* expect(error.limit, 500, "its limit")
    const endless = yield* sandbox.execute("yes | head -c 20000000")
    yield* expect([endless.truncated, endless.exitCode], [true, 0], "20 MB are cut")
  })
]

/** Checks of output during a command. */
export const streamRules: Rules<Pair> = [
  rule("the stream tells stderr from stdout", function* ({ sandbox }) {
    const events = yield* Stream.runCollect(sandbox.executeStream("echo right; echo wrong >&2"))
    const on = (channel: string) =>
      outputOf(events)
        .flatMap((event) => (event.channel === channel ? [event.text] : []))
        .join("")
    yield* expect([on("stdout"), on("stderr")], ["right\n", "wrong\n"], "the channels")
  }),
  rule("the stream gives output as it comes, and leaving it ends the command", function* ({ sandbox }) {
    const first = yield* Stream.runHead(sandbox.executeStream("echo one; sleep 0.6; echo late > late.txt"))
    const text = Option.isSome(first) && first.value._tag === "Output" ? first.value.text : ""
    yield* expect(text, "one\n", "the first output")
    const error = yield* Effect.flip(
      Effect.asVoid(sandbox.execute("echo working; sleep 30", { timeout: "400 millis" }))
    ).pipe(Effect.catch(() => Effect.undefined))
    const detail = error === undefined ? undefined : error.detail
    yield* assert(detail?.includes("working") === true, "a command over its time says what it had said", detail)
    yield* Effect.sleep(grace)
    yield* expect((yield* sandbox.ls("/")).entries, [], "nothing went on")
  })
]

/** Checks of a secret environment variable. */
export const secretRules: Rules<Pair, string> = [
  rule("a command sees little of the environment of this process", function* ({ sandbox }, secret) {
    const { output } = yield* sandbox.execute("env; export -p; cat /proc/self/environ 2>/dev/null; true")
    yield* assert(!output.includes(secret), `${secret} is not among it`, "it is")
  })
]
