/** A container is held to the suite of backends and to the one of commands, on a real engine. */
import * as fs from "node:fs"
import * as path from "node:path"
import { afterAll, beforeAll, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { Backend } from "effect-deepagents"
import * as DockerSandbox from "effect-deepagents/backends/DockerSandbox"
import { BackendConformance } from "effect-deepagents/testing/conformance"
import { isFull } from "../../scale.ts"
import { docker, hasDocker, image } from "../../servers/docker.ts"
import { inFolder, onDiskAgain, tenMebibytes } from "../conformance.ts"
import * as subjects from "../subjects.ts"

const { absent } = BackendConformance

/** Each check has a container of its own, which takes a second: a part of the suites runs, the same one each time. */
const share = isFull ? 8 : 60

const scope = Scope.makeUnsafe()
let socket = ""
beforeAll(async () => {
  if (hasDocker) socket = await Effect.runPromise(Scope.provide(docker, scope))
}, 120_000)
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)), 60_000)

const sandbox = (root: string) => DockerSandbox.layer({ socket, folder: root, manifest: { image } })

/** Closes a folder. In the container no capability opens it, not even to root. */
const deny = (at: string) =>
  Effect.flatMap(subjects.Folder, ({ root }) =>
    Effect.acquireRelease(
      Effect.sync(() => fs.chmodSync(path.join(root, at), 0)),
      () => Effect.sync(() => fs.chmodSync(path.join(root, at), 0o755))
    )
  )

const machine = absent("commands reach all of the container anyway")

/** The paths of the folder in the container, where links lead: it has another place there. */
const link = (at: string, to: string) =>
  Effect.flatMap(subjects.Folder, ({ root }) =>
    subjects.host.link(at, to === root || to.startsWith(`${root}/`) ? `/workspace${to.slice(root.length)}` : to)
  )

/** Files beside the folder are not in the container, so links to them lead nowhere. */
const isBesideFolder = ({ name }: { readonly name: string }) => name.startsWith("a link out of the root leads nowhere")

const again = Effect.map(
  Effect.flatMap(subjects.Folder, ({ root }) => Effect.orDie(Layer.build(sandbox(root)))),
  Context.get(Backend.Backend)
)

const holds = <E>(name: string, checks: ReadonlyArray<BackendConformance.Check<E, never>>) =>
  describe(name, () => {
    for (const check of checks.filter((_, index) => index % share === 0)) {
      const test = check.absent === undefined ? it.live : it.live.skip
      test(check.name, () => check.run, 180_000)
    }
  })

const describeContainers = hasDocker ? describe.concurrent : describe.skip

describeContainers("a container", () => {
  holds(
    "its files",
    BackendConformance.suite({
      layer: inFolder(sandbox),
      ...onDiskAgain,
      host: { ...subjects.host, link, resistsRaces: machine },
      again,
      deny,
      maxFileSize: tenMebibytes
    }).filter((check) => !isBesideFolder(check))
  )
  holds(
    "its commands",
    BackendConformance.sandboxSuite({
      layer: inFolder(sandbox),
      secret: "CONFORMANCE_SECRET",
      processes: true,
      streams: true
    })
  )
})
