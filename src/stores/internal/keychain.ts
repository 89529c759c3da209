/** Reads and writes keys by the keychain of the operating system. */
import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"

/** The result of a command. */
interface CommandResult {
  readonly code: number
  readonly stdout: Redacted.Redacted
  readonly stderr: string
}

/** A program that keeps secrets. They go through its input and output: everybody can read arguments. */
interface Keychain {
  readonly find: ChildProcess.StandardCommand
  readonly store: (secret: Redacted.Redacted) => ChildProcess.StandardCommand
  readonly isAbsent: (ended: CommandResult) => boolean
}

const account = "effect-deepagents"
/** The time to answer: a person may have to unlock the keychain. */
const patience = "2 minutes"
const mostCharacters = 4096

const input = (text: string) => ({ stdin: Stream.make(new TextEncoder().encode(text)) })

const keychains = (service: string): ReadonlyArray<Keychain> => [
  {
    find: ChildProcess.make("/usr/bin/security", ["find-generic-password", "-a", account, "-s", service, "-w"]),
    store: (secret) =>
      ChildProcess.make(
        "/usr/bin/security",
        ["-i"],
        input(`add-generic-password -a ${account} -s ${service} -w ${Redacted.value(secret)}\n`)
      ),
    isAbsent: ({ code }) => code === 44
  },
  {
    find: ChildProcess.make("secret-tool", ["lookup", "service", service, "account", account]),
    store: (secret) =>
      ChildProcess.make(
        "secret-tool",
        ["store", `--label=${service}`, "service", service, "account", account],
        input(Redacted.value(secret))
      ),
    isAbsent: ({ code, stderr }) => code === 1 && stderr === ""
  }
]

const text = <E>(stream: Stream.Stream<Uint8Array, E>): Effect.Effect<string, E> =>
  Effect.map(
    Stream.runFold(
      Stream.decodeText(stream),
      () => "",
      (all, part) => (all + part).slice(0, mostCharacters)
    ),
    (all) => all.trim()
  )

/** Runs a command; `undefined` if there is no such program. */
const run = Effect.fnUntraced(function* (command: ChildProcess.StandardCommand) {
  const spawner = yield* ChildProcessSpawner
  const ended = Effect.gen(function* () {
    const handle = yield* spawner.spawn(command)
    const [stdout, stderr, code] = yield* Effect.all([text(handle.stdout), text(handle.stderr), handle.exitCode], {
      concurrency: "unbounded"
    })
    return { code, stdout: Redacted.make(stdout), stderr } satisfies CommandResult
  })
  return yield* Effect.scoped(ended).pipe(
    Effect.catchIf(
      (error) => error.reason._tag === "NotFound",
      () => Effect.undefined
    ),
    Effect.mapError((error) => `the keychain could not be asked: ${error.message}`),
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () => Effect.fail("the keychain did not answer in two minutes; unlock it, and try again")
    })
  )
})

const advice =
  "On Linux, install libsecret-tools and a keyring that is unlocked; on servers and in containers, use CredentialKey.layerConfig"

/** Gives the secret of a service, and stores a new one before if it has none. Fails with advice for a person. */
export const getOrPut = Effect.fnUntraced(function* (service: string, make: Effect.Effect<Redacted.Redacted>) {
  if (!/^[A-Za-z0-9._-]{1,64}$/u.test(service)) {
    return yield* Effect.fail("a service has 1 to 64 letters, digits, dots, underscores and hyphens")
  }
  for (const { find, isAbsent, store } of keychains(service)) {
    const before = yield* run(find)
    if (before === undefined) continue
    if (before.code !== 0 && !isAbsent(before)) {
      return yield* Effect.fail(`the keychain refused (${before.stderr.slice(0, 200)}). ${advice}`)
    }
    if (before.code === 0) return before.stdout
    yield* run(store(yield* make))
    // Another process may have been first: the stored key counts.
    const after = yield* run(find)
    if (after?.code === 0) return after.stdout
    return yield* Effect.fail(`the keychain does not keep a new key. ${advice}`)
  }
  return yield* Effect.fail(`this machine has no keychain that can be asked. ${advice}`)
})
