import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { Backend, BackendError, Sandbox } from "effect-deepagents"
import { MemoryBackend, Permissions } from "effect-deepagents/backends"
import * as Bash from "effect-deepagents/backends/Bash"

const over = <E>(backend: Layer.Layer<Backend.Backend, E>, options?: Bash.Options) =>
  Bash.layer(options).pipe(Layer.provide(backend))

const inMemory = over(MemoryBackend.layer())

const run = (command: string, options?: Sandbox.ExecuteOptions) =>
  Sandbox.Sandbox.use((sandbox) => sandbox.execute(command, options))

const text = (path: string) =>
  Effect.map(
    Backend.Backend.use((backend) => backend.download([path])),
    ([got]) => (got?.ok === true ? new TextDecoder().decode(got.value) : got?.error.reason._tag)
  )

describe("a shell over any backend", () => {
  it.live("commands and the backend see each other's files", () =>
    Effect.gen(function* () {
      const sandbox = yield* Sandbox.Sandbox
      yield* sandbox.write("/in.txt", "b\na\nz 😀\n")
      expect(yield* run("mkdir out && sort in.txt > out/sorted.txt; cat out/sorted.txt")).toMatchObject({
        exitCode: 0,
        output: expect.stringContaining("a\nb\nz 😀\n")
      })
      expect(yield* text("/out/sorted.txt")).toBe("a\nb\nz 😀\n")
      yield* sandbox.upload([{ path: "/raw.bin", content: new Uint8Array([0xff, 0, 1]) }])
      yield* run(
        "cat raw.bin raw.bin > twice.bin; head -c 3 twice.bin > copy.bin; echo more >> in.txt; echo new >> new.txt"
      )
      const [raw] = yield* sandbox.download(["/copy.bin"])
      expect(raw).toMatchObject({ ok: true, value: new Uint8Array([0xff, 0, 1]) })
      const made = yield* run(
        `printf 'a\\377\\xfe\\n' > made; printf -v v '%s' ok; echo "$v"; printf 'a\\377\\n'; printf 'ä\\n'`
      )
      expect(made.output).toContain("ok\na")
      expect(yield* sandbox.download(["/made"])).toMatchObject([
        { ok: true, value: new Uint8Array([97, 0xff, 0xfe, 10]) }
      ])
      expect((yield* run("printf 'ä€\\n' | cat; echo ä")).output).toBe("ä€\nä\n")
      expect(yield* text("/in.txt")).toBe("b\na\nz 😀\nmore\n")
      expect(yield* text("/new.txt")).toBe("new\n")
    }).pipe(Effect.provide(inMemory))
  )

  it.live("an empty directory is there until the command ends", () =>
    Effect.gen(function* () {
      yield* run("echo x > x")
      expect(
        yield* run(
          "mkdir -p a/b && cp x a/b/ && ls a && rm a/b/x && ls -d a/b && rmdir a/b && ls a; mkdir e; cd e && pwd"
        )
      ).toMatchObject({
        exitCode: 0,
        output: "b\na/b\n/e\n"
      })
      expect((yield* run("ls -d e a")).exitCode).not.toBe(0)
      expect((yield* run("mkdir a a")).output).toContain("exists")
      expect((yield* run("cp x none/x")).exitCode).not.toBe(0)
      expect((yield* run("mkdir none/deep")).exitCode).not.toBe(0)
    }).pipe(Effect.provide(inMemory))
  )

  it.live("files are moved, copied and removed as a shell does", () =>
    Effect.gen(function* () {
      const setup = "mkdir -p d/e; echo 1 > d/1; echo 2 > d/e/2; echo t > t"
      expect((yield* run(`${setup}; mv t u; mv d f; cp -r f g; cat u f/1 g/e/2; rm f; rm -r f; ls`)).output).toBe(
        "t\n1\n2\nrm: cannot remove 'f': Is a directory\ng\nu\n"
      )
      expect((yield* run("echo old > o; echo new > n; mv n o; cat o; ls n")).output).toMatch(/^new\n/)
      expect(yield* text("/n")).toBe("NotFound")
      expect((yield* run("rm -r /; ls g; rm none; rm -f none; echo $?")).output).toContain("e\n")
      expect(yield* text("/g/1")).toBe("1\n")
      expect((yield* run("echo echo hi > s; chmod +x s; ./s")).output).toBe("hi\n")
      expect((yield* run("./s; ln -s s l; echo void > /dev/null; cat /dev/null; ls /dev/null")).output).toMatch(/^hi\n/)
      expect(yield* text("/l")).toBe("NotFound")
      expect(yield* text("/dev/null")).toBe("NotFound")
    }).pipe(Effect.provide(inMemory))
  )

  it.live("rules in front of it, which commands would go around, are refused", () =>
    Effect.gen(function* () {
      const rules = [{ operations: ["read"], paths: ["/secret/**"], ruling: "refuse" }] as const
      const front = Permissions.layerSandbox({ rules }).pipe(Layer.provide(over(MemoryBackend.layer())))
      const error = yield* Effect.flip(Effect.provide(Sandbox.Sandbox, front))
      expect(error._tag).toBe("InvalidPermissions")
    })
  )

  it.live("rules of the backend hold for commands", () => {
    const rules = [
      { operations: ["read", "write"], paths: ["/secret/**", "/.env"], ruling: "refuse" },
      { operations: ["write"], paths: ["/fixed.txt"], ruling: "refuse" }
    ] as const
    const files = MemoryBackend.layer({
      files: { "/secret/key": "KEY", "/.env": "ENV", "/fixed.txt": "fixed", "/a": "open" }
    })
    const guarded = over(Permissions.layer({ rules, default: "allow" }).pipe(Layer.provide(files)))
    return Effect.gen(function* () {
      const sandbox = yield* Sandbox.Sandbox
      expect(sandbox.reaches("/secret/key")).toBe(true)
      const attempts = [
        "cat secret/key",
        "cat .env",
        "cat < .env",
        "cp .env x; cat x",
        "mv .env x; cat x",
        "grep -r '' .",
        "head -c 9 /secret/../.env",
        "while read l; do echo $l; done < .env",
        "source .env",
        "ls -la secret",
        "find . -type f -exec cat {} \\;",
        "tar c .env",
        "cp -r . /copy; cat /copy/.env"
      ]
      for (const attempt of attempts) {
        const { output } = yield* run(attempt)
        expect([attempt, output.includes("KEY") || output.includes("ENV\n") || output.endsWith("ENV")]).toEqual([
          attempt,
          false
        ])
      }
      for (const attempt of [
        "echo x > fixed.txt",
        "echo x >> fixed.txt",
        "rm fixed.txt",
        "mv a fixed.txt",
        "sed -i s/fixed/x/ fixed.txt",
        "tee fixed.txt < a"
      ]) {
        yield* run(attempt)
        expect([attempt, yield* text("/fixed.txt")]).toEqual([attempt, "fixed"])
      }
      expect(yield* run("echo x > fixed.txt")).toEqual({
        exitCode: 1,
        output: "bash: /fixed.txt: permission denied\n",
        truncated: false
      })
      expect((yield* run("cat .env")).output).toMatch(/denied|No such/i)
    }).pipe(Effect.provide(guarded))
  })

  it.live("a command has its folder, its environment and its input, and nothing of the host", () =>
    Effect.gen(function* () {
      const sandbox = yield* Sandbox.Sandbox
      yield* sandbox.write("/d/x", "")
      expect(
        yield* run('pwd; cat; echo "$A $B"; echo err >&2; exit 7', { cwd: "d", env: { B: "b 'c'" }, stdin: "input\n" })
      ).toEqual({
        exitCode: 7,
        output: "/d\ninput\na b 'c'\nerr\n",
        truncated: false
      })
      const output = (yield* run(
        "env; cat /etc/passwd /proc/self/environ; ls /; echo ~; curl http://localhost; node -e 1; python3 -c 1"
      )).output
      for (const [name, value] of Object.entries(process.env)) {
        if (value !== undefined && value.length > 12 && name !== "A") expect(output).not.toContain(value)
      }
      expect(output).not.toContain("root:")
      expect(output).toContain("curl: command not found")
      expect(yield* Effect.flip(run("id", { cwd: "/none" }))).toMatchObject({ reason: { _tag: "NotFound" } })
      expect(yield* Effect.flip(run("id", { cwd: "/../x" }))).toMatchObject({ reason: { _tag: "OutsideRoot" } })
      expect((yield* run("X=1; f() { echo f; }; cd d")).exitCode).toBe(0)
      expect((yield* run("echo $X; f; pwd")).output).toBe("\nbash: f: command not found\n/\n")
    }).pipe(Effect.provide(over(MemoryBackend.layer(), { env: { A: "a" } })))
  )

  it.live(
    "ends a command that runs too long",
    () =>
      Effect.gen(function* () {
        for (const command of [
          "while :; do :; done",
          "f() { f; }; f",
          "for ((;;)); do x=1; done",
          "awk 'BEGIN { while (1) i++ }'"
        ]) {
          const began = Date.now()
          const ended = yield* Effect.result(run(command, { timeout: "1 second" }))
          expect([command, Date.now() - began < 30_000]).toEqual([command, true])
          expect([command, ended._tag === "Success" && ended.success.exitCode === 0]).toEqual([command, false])
        }
        const began = Date.now()
        expect(yield* Effect.flip(run("echo begun; sleep 60", { timeout: "300 millis" }))).toMatchObject({
          reason: { _tag: "TimedOut", limit: 300 }
        })
        const running = yield* Effect.forkChild(run("echo a > begun; while :; do sleep 0.05; echo x >> log; done"))
        while ((yield* text("/begun")) !== "a\n") yield* Effect.sleep(10)
        yield* Fiber.interrupt(running)
        const log = yield* text("/log")
        yield* Effect.sleep(300)
        expect(yield* text("/log")).toBe(log)
        expect(Date.now() - began).toBeLessThan(30_000)
        const much = yield* run("for i in $(seq 900); do echo line $i; done")
        expect(much.truncated).toBe(true)
        expect(much.output.length).toBeLessThan(1_100)
        expect(much.output.endsWith("line 900\n")).toBe(true)
      }).pipe(Effect.provide(over(MemoryBackend.layer(), { outputLimit: 1_000 }))),
    60_000
  )

  it.live("a loop that never waits is ended by the shell's own clock", () =>
    Effect.gen(function* () {
      const began = Date.now()
      const late = yield* Effect.flip(run("while :; do :; done", { timeout: "200 millis" }))
      expect(late.reason).toEqual({ _tag: "TimedOut", limit: 200 })
      expect(Date.now() - began).toBeLessThan(30_000)
    }).pipe(Effect.provide(inMemory))
  )

  it.live("a command that says that its time is over is not over", () =>
    Effect.gen(function* () {
      const words = "bash: x exceeded execution deadline (1ms)\n"
      expect(yield* run(`bash -c 'cat >&2; exit 124'`, { stdin: words })).toEqual({
        output: words,
        truncated: false,
        exitCode: 124
      })
    }).pipe(Effect.provide(inMemory))
  )

  it.live(
    "one long line, of input or output, costs by its length",
    () =>
      Effect.gen(function* () {
        const limit = "30 seconds"
        const long = "x".repeat(500_000)
        const said = yield* run("bash -c 'cat >&2; exit 124'", { stdin: long, timeout: limit })
        expect([said.output.length, said.exitCode]).toEqual([long.length, 124])
        expect((yield* run(`true ${"set ".repeat(50_000)}`, { timeout: limit })).exitCode).toBe(0)
        const marks = "bash: \u{E0A1}w:".repeat(30_000)
        expect((yield* run("cat; true", { stdin: marks, timeout: limit })).exitCode).toBe(0)
      }).pipe(Effect.provide(over(MemoryBackend.layer(), { outputLimit: 1_000_000 }))),
    60_000
  )

  it.live("options that make no sense are refused, and not waited for", () =>
    Effect.gen(function* () {
      const refusal = (options: Bash.Options) =>
        Effect.flip(Effect.provide(run("echo x"), over(MemoryBackend.layer(), options)))
      for (const name of ["maxCommands", "maxLoopIterations", "maxCallDepth", "outputLimit"] as const) {
        for (const count of [Number.NaN, -1, 0.5]) {
          const refused = yield* refusal({ [name]: count })
          expect(refused.reason._tag).toBe("Unsupported")
          expect(refused.detail).toContain(`\`${name}\` must be a whole number of at least 0, not ${count}`)
        }
      }
      const unclear = yield* refusal({ network: ["http://"] })
      expect(unclear.reason._tag).toBe("Unavailable")
      expect(unclear.detail).toContain("http://")
    })
  )

  it.live("output comes as events, and the exit code last", () =>
    Effect.gen(function* () {
      const sandbox = yield* Sandbox.Sandbox
      expect(yield* Stream.runCollect(sandbox.executeStream("echo out; echo err >&2; exit 3"))).toEqual([
        { _tag: "Output", channel: "stdout", text: "out\n" },
        { _tag: "Output", channel: "stderr", text: "err\n" },
        { _tag: "Exited", exitCode: 3, truncated: false }
      ])
    }).pipe(Effect.provide(inMemory))
  )

  it.live("a backend that fails is an error of input and output", () => {
    const broken = Layer.effect(
      Backend.Backend,
      Effect.map(MemoryBackend.make({ files: { "/a": "x" } }), (backend) => ({
        ...backend,
        download: (paths: ReadonlyArray<string>) =>
          Effect.succeed(
            paths.map((path) => ({
              path,
              ok: false as const,
              error: BackendError.make("download", path, { _tag: "Unavailable" })
            }))
          )
      }))
    )
    return Effect.gen(function* () {
      const { exitCode, output } = yield* run("cat a && echo fine")
      expect(exitCode).not.toBe(0)
      expect(output).not.toContain("fine")
    }).pipe(Effect.provide(over(broken)))
  })
})
