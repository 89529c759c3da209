/** Any command is over at its time, and this process goes on meanwhile. The findings that led to this froze the process for minutes, or took all of its memory. */
import * as fs from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { Sandbox } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import * as Bash from "effect-deepagents/backends/Bash"
import { isFull, scaled } from "../../scale.ts"
import { watched } from "../../watchdog.ts"

/** Commands that never end, or take all there is. The worst come first. */
const bombs: ReadonlyArray<string> = [
  "sed ':a;s/^/xx/;ta' <<< x",
  'jq -n \'reduce range(10000000) as $i (""; . + "aaaaaaaaaaaaaaaaaaaaaaaaaaaa")\'',
  "awk 'BEGIN { for (i = 0; i < 100000; i++) a[i] = sprintf(\"%10000d\", i); print length(a) }'",
  ":(){ :|:& };:",
  "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | grep -E '^(a+)+$'",
  "find / -type f -exec cat {} + | xargs cat",
  "while :; do :; done",
  "echo {1..1000}{1..1000}{1..1000}",
  "printf '%0999999999d' 1",
  "cat /dev/zero",
  "x=x; while :; do x=$x$x$x$x; done",
  "f() { f | f; }; f",
  // As bad, in other ways.
  "sed ':a;s/.*/&&/;ta' <<< x",
  "sed ':a;N;$!ba;s/\\n/&&/g;ta' <<< x",
  "sed 's/\\(a*\\)*b/x/' <<< aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac",
  'awk \'BEGIN { s = "x"; while (1) { s = s "yyyyyyyyyy"; n = index(s, "z") } }\'',
  'awk \'BEGIN { s = "x"; for (;;) gsub(/x/, "xx", s) }\'',
  "awk 'BEGIN { while (1) i++ }'",
  "awk 'function f(n) { return f(n + 1) + 1 } BEGIN { f(0) }'",
  'awk \'BEGIN { printf "%999999999s", "x" }\'',
  "jq -n 'def f: f; f'",
  "jq -n '[limit(100000000; repeat(1))] | length'",
  "jq -n '[range(900000)] | map(tostring) | . + . | join(\"-\") | . * 100 | length'",
  "jq -n 'reduce range(1000) as $i ([]; [., .]) | tojson | length'",
  "jq -n '\"a\" * 900000000'",
  "for ((;;)); do x=1; done",
  "until false; do true; done",
  "f() { f; }; f",
  "x=1; while [ $x -gt 0 ]; do x=$((x + 1)); done",
  "a=(); for i in {1..100000}; do a+=(\"$(printf '%01000d' $i)\"); done; echo ${#a[@]}",
  "seq 1 1000000000",
  "seq 1 99999999 | sort -R | uniq | wc -l",
  "eval \"$(printf 'echo $(%.0s' {1..3000})\"",
  "printf '(%.0s' {1..100000} | bash",
  'bash -c \'bash -c "bash -c \\"while :; do :; done\\""\'',
  "[[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab =~ ^(a|a)*c$ ]]",
  "case $(printf 'a%.0s' {1..5000}) in *a*a*a*a*a*a*a*a*a*a*b) echo;; esac",
  "x=$(printf 'a%.0s' {1..50000}); echo ${x//a*a*a*b/}",
  'while read -r l; do echo "$l$l"; done < <(while :; do echo x; done)',
  "head -c 2000000000 /dev/zero | tr '\\0' x | wc -c",
  "cat <<E | cat - - - | sort | rev | tac\n$(printf '%0100000d\\n%.0s' {1..100})\nE",
  "yes | head -c 1000000000 | gzip | gunzip | wc -c",
  "tr -dc a < /dev/zero | head -c 100",
  "dd if=/dev/zero of=big bs=1M count=100000",
  "echo {a..z}{a..z}{a..z}{a..z}{a..z}{a..z}",
  "printf '%s\\n' {1..100000} | xargs -n 1 bash -c 'echo $0' | wc -l",
  "base64 /dev/urandom | head -c 1000000000 | md5sum",
  "split -b 1 <(seq 1 1000000)",
  "echo 'a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]' | yq -o json",
  "mkdir -p $(printf 'd/%.0s' {1..2000}); find . | wc -l",
  "sleep 1000",
  "timeout 1000 sleep 1000",
  "diff <(seq 1 50000) <(seq 50000 -1 1) | wc -l",
  "x=99999999999; echo $((x ** x ** x)); bc <<< '9^9^9^9'",
  "tail -f x",
  "while :; do echo x >> log; done"
]

const shell = Bash.layer().pipe(Layer.provide(MemoryBackend.layer({ files: { "/x": "x" } })), Layer.fresh)

const run = (command: string, options?: Sandbox.ExecuteOptions) =>
  Sandbox.Sandbox.use((sandbox) => sandbox.execute(command, options))

const megabyte = 1024 * 1024

/** The memory of processes that this one started, if the system tells. */
const memoryOfChildren = (): ReadonlyArray<number> =>
  fs.existsSync("/proc/self/stat")
    ? fs.readdirSync("/proc").flatMap((name) => {
        if (!/^\d+$/.test(name) || !fs.existsSync(`/proc/${name}/stat`)) return []
        const [, , ...fields] = readProcess(`/proc/${name}/stat`).split(/\) | /)
        return Number(fields[1]) === process.pid ? [Number(fields[21]) * 4096] : []
      })
    : []

const readProcess = (file: string): string => {
  try {
    return fs.readFileSync(file, "utf8")
  } catch {
    return ""
  }
}

/** The most memory that a child had, in bytes. */
const mostMemory: Effect.Effect<() => number, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => {
    let memory = 0
    const looks = setInterval(() => {
      memory = Math.max(memory, ...memoryOfChildren())
    }, 50)
    return { looks, memory: () => memory }
  }),
  ({ looks }) => Effect.sync(() => clearInterval(looks))
).pipe(Effect.map(({ memory }) => memory))

describe("commands that never end", () => {
  it.live(
    "are over at their time, and this process goes on",
    () =>
      Effect.gen(function* () {
        const memory = yield* mostMemory
        const limit = 400
        for (const bomb of bombs.slice(0, scaled(bombs.length))) {
          // A process to run in: the last one was ended.
          yield* run("true; true | true")
          const exploding = Effect.suspend(() => {
            const began = performance.now()
            return Effect.map(Effect.result(run(bomb, { timeout: limit })), (ended) => {
              expect([bomb, performance.now() - began < 30_000]).toEqual([bomb, true])
              if (ended._tag === "Failure") expect([bomb, ended.failure.reason._tag]).toEqual([bomb, "TimedOut"])
            })
          })
          yield* watched(exploding)
        }
        expect(memory()).toBeLessThan(900 * megabyte)
      }).pipe(Effect.scoped, Effect.provide(shell)),
    180_000
  )

  it.live(
    "one that takes too much memory fails, and says so",
    () =>
      Effect.gen(function* () {
        const memory = yield* mostMemory
        const script = `s = sprintf("%10000s", "x"); for (i = 0; i < 9; i++) s = s s; for (i = 0; i < 1000; i++) a[i] = toupper(s)`
        const error = yield* Effect.flip(run(`echo early; awk 'BEGIN { ${script}; print length(a) }'`))
        expect(error.reason._tag).toBe("Unavailable")
        expect(error.detail).toMatch(/more than 512 MiB of memory.*early\n/s)
        expect(memory()).toBeLessThan(1_000 * megabyte)
        expect((yield* run("echo fine")).output).toBe("fine\n")
      }).pipe(Effect.scoped, Effect.provide(shell)),
    60_000
  )

  it.live(
    "several run at once, and each ends by itself",
    () =>
      Effect.gen(function* () {
        const endless = ["sed ':a;s/^/xx/;ta' <<< x", "sleep 100", "while :; do :; done"]
        const commands = [...endless.map((command) => ({ command, timeout: "1 second" as const })), { command: "ls x" }]
        const rounds = isFull ? 3 : 1
        const ended = yield* watched(
          Effect.forEach(
            Array.from({ length: rounds }, () => commands).flat(),
            ({ command, ...options }) => Effect.result(run(command, options)),
            { concurrency: "unbounded" }
          )
        )
        const outcomes = ended.map((one) => (one._tag === "Success" ? one.success.output : one.failure.reason._tag))
        const expected = ["TimedOut", "TimedOut", "TimedOut", "x\n"]
        expect(outcomes).toEqual(Array.from({ length: rounds }, () => expected).flat())
      }).pipe(Effect.scoped, Effect.provide(shell)),
    60_000
  )
})
