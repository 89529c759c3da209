/** The engine of manifests: all that providers and containers share when they make a machine from data. */
import * as Effect from "effect/Effect"
import * as BackendError from "../../../core/BackendError.ts"
import type * as Sandbox from "../../../core/Sandbox.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import type { Manifest } from "../../Manifest.ts"
import { quote } from "../posix/shell.ts"

type Failing<A> = Effect.Effect<A, BackendError.BackendError>

/** Refuses a field that a provider can't do. */
export const refuseField = (provider: string, field: string, problem: string): Failing<never> =>
  Effect.fail(
    BackendError.make("open", "/", { _tag: "Unsupported" }, { detail: `${provider}: \`manifest.${field}\` ${problem}` })
  )

/** Refuses ports without a network: no server of the machine could be reached. */
export const checkPorts = (
  provider: string,
  { network = "none", ports = [] }: Pick<Manifest, "network" | "ports">
): Failing<void> =>
  ports.length > 0 && network === "none"
    ? refuseField(provider, "ports", "needs a network: set `network`")
    : Effect.void

/** An amount of a limit in the unit of an API, which takes whole numbers only. */
export const wholeUnits = (
  provider: string,
  limit: string,
  amount: number | undefined,
  unit: { readonly size: number; readonly name: string }
): Failing<number | undefined> => {
  if (amount === undefined) return Effect.succeed(undefined)
  const units = amount / unit.size
  return Number.isInteger(units) && units > 0
    ? Effect.succeed(units)
    : refuseField(provider, `limits.${limit}`, `is ${amount}, and must be a multiple of ${unit.name}`)
}

/** Marks the images that are snapshots. No name of an image has two slashes in a row. */
const snapshotScheme = "snapshot://"

/** The image of a snapshot, for a manifest. */
export const toImage = (snapshotId: string): string => `${snapshotScheme}${snapshotId}`

/** Reports whether an image is a snapshot. Other images come from a registry. */
export const readImage = (
  image: string
): { readonly snapshot: string; readonly name?: never } | { readonly name: string; readonly snapshot?: never } =>
  image.startsWith(snapshotScheme) ? { snapshot: image.slice(snapshotScheme.length) } : { name: image }

/** Puts the files and the repositories of a manifest into a new machine. */
export const furnish = Effect.fnUntraced(function* (
  service: Sandbox.Service,
  { files = {}, repositories = [] }: Pick<Manifest, "files" | "repositories">
) {
  yield* Effect.forEach(Object.entries(files), ([path, text]) => service.write(path, text), { discard: true })
  for (const { path, ref, url } of repositories) {
    const branch = ref === undefined ? "" : `--branch ${quote(ref)} `
    const to = path.replace(/^\/+/, "")
    const { exitCode, output } = yield* service.execute(`git clone ${branch}-- ${quote(url)} ${quote(to)}`, {
      timeout: "10 minutes",
      env: { GIT_TERMINAL_PROMPT: "0" }
    })
    if (exitCode !== 0) {
      const detail = `${url} could not be cloned: ${cut(oneLine(output.trim().slice(-500)), 500)}`
      return yield* Effect.fail(BackendError.make("open", path, { _tag: "Unavailable" }, { detail }))
    }
  }
})
