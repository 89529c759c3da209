import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Sandbox } from "effect-deepagents"
import { MemoryBackend, Permissions } from "effect-deepagents/backends"
import * as Bash from "effect-deepagents/backends/Bash"
import { isFull } from "../../scale.ts"

const rules = [{ operations: ["write"], paths: ["/ro/**"], ruling: "refuse" }] as const
const files = MemoryBackend.layer({ files: { "/ro/x": "fixed", "/a": "file\n", "/d/f": "f\n" } })
const shellOf = (options?: Bash.Options) =>
  Bash.layer(options).pipe(
    Layer.provide(Permissions.layer({ rules, default: "allow" })),
    Layer.provide(files),
    Layer.fresh
  )
const shell = shellOf()
/** A shell that only the clock stops. */
const tireless = shellOf({ maxCommands: 1_000_000_000, maxLoopIterations: 1_000_000_000 })

const run = (command: string, options?: Sandbox.ExecuteOptions) =>
  Sandbox.Sandbox.use((sandbox) => sandbox.execute(command, options))

const denied = "bash: /ro/x: permission denied\n"

/** What a shell does: the complaint, a status that is not 0, and on to the next command. */
const refusals: ReadonlyArray<readonly [command: string, output: string, exitCode?: number]> = [
  ["echo before; echo x > /ro/x; echo after", `before\n${denied}after\n`],
  ["echo x > /ro/x", denied, 1],
  ["echo x > /ro/x || echo refused", `${denied}refused\n`],
  ["echo x > /ro/x && echo not", denied, 1],
  ["! echo x > /ro/x; echo $?", `${denied}0\n`],
  ["echo x >> /ro/x || echo refused", `${denied}refused\n`],
  ["echo x >| /ro/x; echo $?", `${denied}1\n`],
  ["echo x &> /ro/x; echo $?", `${denied}1\n`],
  ["echo x > ro/x 2>/dev/null; echo $?", `${denied.replace("/ro", "/ro")}1\n`],
  ["cd ro; echo x > x; echo $?", `${denied}1\n`],
  ['F=/ro/x; echo x > $F; echo x > "$F"; echo $?', `${denied}${denied}1\n`],
  ["{ echo a; echo b; } > /ro/x; echo $?", `${denied}1\n`],
  ["(echo a) > /ro/x; echo $?", `${denied}1\n`],
  ["for i in 1 2; do echo $i > /ro/x; done; echo end", `${denied}${denied}end\n`],
  ["for i in 1 2; do echo $i; done > /ro/x; echo $?", `${denied}1\n`],
  ["while read l; do echo $l; done > /ro/x < a; echo $?", `${denied}1\n`],
  ["f() { echo f; }; f > /ro/x; f", `${denied}f\n`],
  ['v=$(echo y > /ro/x); echo "[$v] $?"', `[] 1\n${denied}`],
  ["if echo x > /ro/x; then echo yes; else echo no; fi", `${denied}no\n`],
  ["bash -c 'echo x > /ro/x; echo in'; echo out", `in\n${denied}out\n`],
  ["exec 3> /ro/x; echo after", `after\n${denied}`],
  ["set -u; echo before; echo x > /ro/x; echo after", `before\n${denied}after\n`],
  ["echo before; set -e; echo x > /ro/x; echo not", `before\n${denied}`, 1],
  ["echo x > /a/b; echo $?", "bash: /a/b: not a directory\n1\n"],
  ["echo x > /none/b; echo $?", "bash: /none/b: no such file or directory\n1\n"],
  ["echo x > /d; echo $?", "bash: /d: is a directory\n1\n"],
  ["cat < /none; echo $?", "bash: /none: No such file or directory\n1\n"]
]

describe("redirections", () => {
  it.live("a refused one fails its command, and the line goes on", () =>
    Effect.gen(function* () {
      for (const [command, output, exitCode = 0] of refusals) {
        expect([command, yield* run(command)]).toEqual([command, { output, exitCode, truncated: false }])
      }
      expect((yield* run("cat /ro/x /a")).output).toBe("fixedfile\n")
    }).pipe(Effect.provide(shell))
  )

  it.live("an allowed one writes its output", () =>
    Effect.gen(function* () {
      const commands: ReadonlyArray<readonly [command: string, output: string]> = [
        ["echo x > n; echo y >> n; cat n", "x\ny\n"],
        ["echo home > ~/h; cat /h", "home\n"],
        ["D=d; echo z > $D/z.txt; cat d/z.txt", "z\n"],
        ["echo s > 'a b'; cat 'a b'", "s\n"],
        ["sort < a > s; cat s", "file\n"],
        ["echo o > /dev/null; cat /dev/null; echo e > /dev/stderr", "e\n"],
        ["O=/dev/stderr; echo p > $O; echo q", "p\nq\n"],
        ["echo x &> b; echo y 2>&1 >> b; cat b", "x\ny\n"],
        ["set -C; echo 1 > c; echo 2 > c; cat c", "bash: c: cannot overwrite existing file\n1\n"],
        ["exec 3> t; echo t >&3; cat t", "t\n"],
        ["> e; wc -c < e", "0\n"],
        ["f() { echo > g; }; f; declare -f f > h; wc -l < g", "1\n"]
      ]
      for (const [command, output] of commands) {
        expect([command, (yield* run(command)).output]).toEqual([command, output])
      }
    }).pipe(Effect.provide(shell))
  )

  it.live("output comes while the line runs, in the right channels", () =>
    Effect.gen(function* () {
      const sandbox = yield* Sandbox.Sandbox
      const events = yield* Stream.runCollect(sandbox.executeStream("echo 1; echo 2 >&2; echo 3"))
      expect(events).toEqual([
        { _tag: "Output", channel: "stdout", text: "1\n" },
        { _tag: "Output", channel: "stderr", text: "2\n" },
        { _tag: "Output", channel: "stdout", text: "3\n" },
        { _tag: "Exited", exitCode: 0, truncated: false }
      ])
      const commands: ReadonlyArray<readonly [command: string, output: string, exitCode?: number]> = [
        ["false || echo x; set -e; false || echo y; echo z; false; echo not", "x\ny\nz\n", 1],
        ["false | echo a | cat; echo ${PIPESTATUS[@]}", "a\n1 0 0\n"],
        ["bash -c 'echo a; echo b' | wc -l; echo x", "2\nx\n"],
        ["cat none |& wc -l; { echo o; echo e >&2; } 2>&1 | wc -l; echo x", "1\n2\nx\n"],
        ["echo e 2>&1 >&2; { echo g >&2; } 2>/dev/null; echo x", "e\nx\n"],
        ["for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; [ $i = 3 ] && break; done; echo end", "1\n3\nend\n"],
        ["while read l; do read m; echo $l-$m; done <<< $'1\\n2\\n3\\n4'; echo end", "1-2\n3-4\nend\n"],
        ["echo out; exit 3; echo not", "out\n", 3],
        ["x=1; x=$((x + 1)); echo $x; { x=5; }; echo $x", "2\n5\n"],
        ["read l; echo $l; cat", "one\ntwo\n"],
        ["case a in a) echo A;; esac; if false; then echo; elif true; then echo B; fi", "A\nB\n"],
        ["printf 'a\\377'; printf '\\n'; echo ä€😀; printf '\\xc3'; printf '\\xa4\\n'", "a\uFFFD\nä€😀\nä\n"],
        ["echo a; exec > file; echo b; cat file >&2", "a\nb\n"],
        ["f() { echo f; return 4; }; f; echo $?; f && echo not; echo end", "f\n4\nf\nend\n"],
        ["time_() { :; }; ! true; echo $?; (exit 5); echo $?", "1\n5\n"],
        ["cat <<E\nhere $((1 + 1))\nE\necho next", "here 2\nnext\n"],
        ["echo 'unfinished", "bash: line 1: unexpected EOF while looking for matching `''\n", 2]
      ]
      for (const [command, output, exitCode = 0] of commands) {
        const ended = yield* run(command, { stdin: "one\ntwo\n" })
        expect([command, ended.output, ended.exitCode]).toEqual([command, output, exitCode])
      }
    }).pipe(Effect.provide(shell))
  )

  it.live(
    "a command that is over its time fails with its output until then",
    () =>
      Effect.gen(function* () {
        const late: ReadonlyArray<readonly [command: string, detail: string | undefined]> = [
          ["echo early; sleep 5", "early\n"],
          ["echo early; echo bad >&2; sleep 5", "early\nbad\n"],
          ["echo early; sed ':a;s/^/xx/;ta' <<< x", "early\n"],
          ["echo early && sed ':a;s/.*/&&/;ta' <<< x", "early\n"],
          ["for i in 1 2 3; do echo $i; done; while :; do :; done", "1\n2\n3\n"],
          ["sleep 5", undefined]
        ]
        for (const [command, detail] of isFull ? late : late.slice(2, 5)) {
          const error = yield* Effect.flip(run(command, { timeout: "1 second" }))
          expect([command, error.reason, error.detail]).toEqual([command, { _tag: "TimedOut", limit: 1_000 }, detail])
        }
        expect((yield* run("echo fine")).output).toBe("fine\n")
      }).pipe(Effect.provide(tireless)),
    60_000
  )
})
