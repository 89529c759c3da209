/** Opens the extensions of a command. Their loader is loaded only if a command has extensions. */
import * as Effect from "effect/Effect"
import { findExtensions } from "../../config/extensionFiles.ts"
import type { Project } from "../../config/items.ts"
import type { Places } from "../../config/places.ts"
import { addThemes } from "../../render/themes.ts"
import type { LoadedExtension } from "./extensions.ts"

/** The extensions of a command, and the omitted extensions. */
export interface Extensions {
  readonly loaded: ReadonlyArray<LoadedExtension>
  readonly problems: ReadonlyArray<string>
}

export const noExtensions: Extensions = { loaded: [], problems: [] }

export const openExtensions = Effect.fnUntraced(function* (places: Places, project: Project) {
  const { entries, problems } = yield* findExtensions(places, project)
  if (entries.length === 0) return { loaded: [], problems } satisfies Extensions
  const { loadAll } = yield* Effect.promise(() => import("./extensions.ts"))
  const all = yield* loadAll(entries)
  for (const { extension } of all.loaded) {
    for (const [name, theme] of Object.entries(extension.themes ?? {})) addThemes(`${extension.name}:${name}`, theme)
  }
  return { loaded: all.loaded, problems: [...problems, ...all.problems] } satisfies Extensions
})
