/**
 * Where the key of credentials comes from.
 */
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import { inspect } from "node:util"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Config, ConfigProvider, Effect, Layer, type Redacted, Result, Sink, Stream } from "effect"
import { CredentialKey } from "effect-deepagents/stores"
import { Aead } from "effect/crypto"
import { ChildProcessSpawner } from "effect/process"
import { folder } from "./places.ts"

const bytesOf = <E, R>(layer: Layer.Layer<CredentialKey.CredentialKey, E, R>) =>
  Effect.provide(
    CredentialKey.CredentialKey.use((key) => Effect.orDie(Aead.toBytes(key))),
    layer
  )
const problemOf = <E, R>(layer: Layer.Layer<CredentialKey.CredentialKey, E, R>) =>
  Effect.map(Effect.result(bytesOf(layer)), (result) =>
    String(Result.isFailure(result) ? result.failure : "there was one")
  )

const configured = (values: Record<string, string>, config?: Config.Config<Redacted.Redacted>) =>
  CredentialKey.layerConfig(config).pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(values))))

describe("layerConfig", () => {
  it.effect("reads 32 bytes as base 64", () =>
    Effect.gen(function* () {
      const bytes = Uint8Array.from({ length: 32 }, (_, index) => index)
      const text = Buffer.from(bytes).toString("base64")
      assert.deepStrictEqual(yield* bytesOf(configured({ CREDENTIAL_KEY: `${text}\n` })), bytes)
      assert.deepStrictEqual(yield* bytesOf(configured({ OTHER: text }, Config.Redacted("OTHER"))), bytes)
    })
  )

  it.effect("says the next step, and not the value", () =>
    Effect.gen(function* () {
      assert.include(yield* problemOf(configured({})), "set it (CREDENTIAL_KEY")
      for (const wrong of ["hunter2 hunter2", Buffer.alloc(31, "h").toString("base64"), ""]) {
        const problem = yield* problemOf(configured({ CREDENTIAL_KEY: wrong }))
        assert.include(problem, "openssl rand -base64 32")
        assert.notMatch(problem, /hunter|aGho|104,104/)
      }
    })
  )
})

/** A program with the ways of `secret-tool`, that keeps its secret in a file. */
const secretTool = `#!/bin/sh
echo "$@" >> "$KEYRING.calls"
case "$1" in
  lookup) [ -f "$KEYRING" ] && cat "$KEYRING" || exit 1 ;;
  store) cat > "$KEYRING" ;;
esac
`

/** A PATH with this program first, and nothing else that could answer. */
const onPath = (path: string, script: string | undefined) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = { PATH: process.env["PATH"], KEYRING: process.env["KEYRING"] }
      if (script !== undefined) {
        writeFileSync(join(path, "secret-tool"), script)
        chmodSync(join(path, "secret-tool"), 0o755)
      }
      process.env["PATH"] = script === undefined ? path : `${path}${delimiter}${before.PATH}`
      process.env["KEYRING"] = join(path, "keyring")
      return before
    }),
    (before) => Effect.sync(() => Object.assign(process.env, before))
  )

const keychain = CredentialKey.layerKeychain({ service: "my-app" }).pipe(Layer.provide(NodeServices.layer))

// `security` of macOS would answer first.
describe.skipIf(existsSync("/usr/bin/security"))("layerKeychain with secret-tool", () => {
  it.live(
    "makes a key the first time, and finds it again; no argument of a process has it",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      yield* onPath(path, secretTool)
      const first = yield* bytesOf(keychain)
      assert.strictEqual(first.length, 32)
      assert.deepStrictEqual(yield* bytesOf(keychain), first)
      const kept = readFileSync(join(path, "keyring"), "utf8")
      assert.deepStrictEqual(Buffer.from(kept, "base64"), Buffer.from(first))
      const calls = readFileSync(join(path, "keyring.calls"), "utf8")
      assert.notInclude(calls, kept)
      assert.deepStrictEqual(
        calls
          .trim()
          .split("\n")
          .map((call) => call.split(" ")[0]),
        ["lookup", "store", "lookup", "lookup"]
      )
    })
  )

  it.live(
    "says the next step for a missing, locked or foreign key",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const problem = (script: string | undefined) =>
        Effect.scoped(Effect.andThen(onPath(path, script), problemOf(keychain)))
      assert.include(yield* problem(undefined), "no keychain that can be asked")
      const locked = yield* problem("#!/bin/sh\necho 'Cannot autolaunch D-Bus' >&2\nexit 1\n")
      assert.include(locked, "Cannot autolaunch D-Bus")
      assert.include(locked, "CredentialKey.layerConfig")
      assert.include(yield* problem("#!/bin/sh\nexit 1\n"), "does not keep a new key")
      const other = yield* problem("#!/bin/sh\necho hunter2-hunter2\n")
      assert.include(other, "remove it there")
      assert.notInclude(other, "hunter2")
      const unsafe = CredentialKey.layerKeychain({ service: 'a" -w x\n' }).pipe(Layer.provide(NodeServices.layer))
      assert.include(yield* problemOf(unsafe), "letters, digits")
    })
  )
})

it.effect("layerKeychain with security: finds nothing, adds by its input, finds it", () =>
  Effect.gen(function* () {
    let kept: string | undefined
    const calls: Array<string> = []
    const spawner = ChildProcessSpawner.make((command) =>
      Effect.gen(function* () {
        if (command._tag !== "StandardCommand") return yield* Effect.die("a pipe")
        const { args, command: program, options } = command
        calls.push([program, ...args.map(String)].join(" "))
        const { stdin } = options
        const said = Stream.isStream(stdin) ? yield* Stream.mkString(Stream.decodeText(stdin)) : ""
        const added = /^add-generic-password -a effect-deepagents -s my-app -w (\S+)\n$/.exec(said)?.[1]
        if (added !== undefined) kept = added
        const isFound = args[0] === "find-generic-password" && kept !== undefined
        const code = args[0] === "-i" || isFound ? 0 : 44
        return ChildProcessSpawner.makeHandle({
          pid: ChildProcessSpawner.ProcessId(1),
          exitCode: Effect.succeed(ChildProcessSpawner.ExitCode(code)),
          isRunning: Effect.succeed(false),
          kill: () => Effect.void,
          stdin: Sink.drain,
          stdout: Stream.make(new TextEncoder().encode(isFound ? `${kept}\n` : "")),
          stderr: Stream.make(new TextEncoder().encode(code === 0 ? "" : "could not be found")),
          all: Stream.empty,
          getInputFd: () => Sink.drain,
          getOutputFd: () => Stream.empty,
          unref: Effect.succeed(Effect.void)
        })
      })
    )
    const layer = CredentialKey.layerKeychain({ service: "my-app" }).pipe(
      Layer.provide(Layer.succeed(ChildProcessSpawner.ChildProcessSpawner, spawner))
    )
    const bytes = yield* bytesOf(layer)
    assert.deepStrictEqual(Buffer.from(kept ?? "", "base64"), Buffer.from(bytes))
    assert.deepStrictEqual(calls, [
      "/usr/bin/security find-generic-password -a effect-deepagents -s my-app -w",
      "/usr/bin/security -i",
      "/usr/bin/security find-generic-password -a effect-deepagents -s my-app -w"
    ])
  })
)

it.effect("a key can't be printed, and a random one is another each time", () =>
  Effect.gen(function* () {
    const key = yield* Effect.provide(CredentialKey.CredentialKey, CredentialKey.layerRandom)
    const bytes = Buffer.from(yield* Aead.toBytes(key))
    for (const text of [String(key), JSON.stringify(key), inspect(key, { depth: 9 })]) {
      for (const encoding of ["base64", "hex"] as const) assert.notInclude(text, bytes.toString(encoding))
    }
    assert.notDeepEqual(yield* bytesOf(Layer.fresh(CredentialKey.layerRandom)), new Uint8Array(bytes))
  })
)
