/**
 * Every sandbox is held to the suite of backends, and to the one of commands.
 */
import { describe } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Backend } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import * as Bash from "effect-deepagents/backends/Bash"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { BackendConformance } from "effect-deepagents/testing/conformance"
import { folder, holds, inFolder, onDiskAgain, tenMebibytes } from "./conformance.ts"
import * as subjects from "./subjects.ts"

const { absent } = BackendConformance

const secret = "CONFORMANCE_SECRET"
process.env[secret] = "must not be seen"

const bash =
  <E>(files: (root: string) => Layer.Layer<Backend.Backend, E>) =>
  (root: string) =>
    Bash.layer().pipe(Layer.provide(files(root)))

const inProcess = {
  secret,
  processes: absent("there are no processes"),
  streams: absent("output comes when a command is done")
}

holds(
  "a local shell",
  BackendConformance.suite({ layer: inFolder((root) => LocalShell.layer({ root, ripgrep: false })), ...onDiskAgain })
)
holds("bash over a folder", BackendConformance.suite({ layer: inFolder(bash(folder(false))), ...onDiskAgain }))
holds(
  "bash over memory: commands",
  BackendConformance.sandboxSuite({ layer: inFolder(bash(() => MemoryBackend.layer())), ...inProcess })
)
holds(
  "bash over a folder: commands",
  BackendConformance.sandboxSuite({ layer: inFolder(bash(folder(false))), ...inProcess })
)

// These wait for processes and not for this one, so they go on beside each other.
describe.concurrent("by a shell", () => {
  const shell = (streams: boolean) => inFolder((root) => subjects.shellSandbox(root, streams))
  const machine = absent("commands reach all of the machine anyway")
  holds(
    "a local shell: commands",
    BackendConformance.sandboxSuite({
      layer: inFolder((root) => LocalShell.layer({ root, ripgrep: false })),
      secret,
      processes: true,
      streams: true
    })
  )
  holds(
    "a sandbox of three functions",
    BackendConformance.suite({
      layer: shell(false),
      ...onDiskAgain,
      host: { ...subjects.host, resistsRaces: machine },
      again: Effect.map(
        Effect.flatMap(subjects.Folder, ({ root }) => Effect.orDie(Layer.build(subjects.shellSandbox(root, false)))),
        Context.get(Backend.Backend)
      ),
      deny: subjects.denyShell,
      maxFileSize: tenMebibytes
    })
  )
  holds(
    "a sandbox of three functions: its stream",
    BackendConformance.sandboxSuite({
      layer: shell(false),
      secret,
      processes: true,
      streams: absent("it was not given")
    }).filter(({ name }) => name.includes("stream"))
  )
  holds(
    "a sandbox of four functions: commands",
    BackendConformance.sandboxSuite({ layer: shell(true), secret, processes: true, streams: true })
  )
})
