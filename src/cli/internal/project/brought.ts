/** Finds plugins, and the folders of skills and commands of plugins and the user. */
import { homedir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type { Places } from "../config/places.ts"
import type { Settings } from "../config/settings.ts"
import type { CommandFolder } from "../slash/fileCommands.ts"
import { realOf } from "./folders.ts"
import { findPlugins } from "./plugins.ts"

interface Of {
  readonly places: Places
  readonly settings: Settings
}

/** Lists the plugins of the settings, and the ones enabled in Claude Code. */
export const pluginsOf = ({ places, settings }: Of) => findPlugins(settings.plugins?.value ?? [], places.project)

/** A folder of skills. `label` says whose it is. */
interface SkillFolder {
  readonly label: string
  readonly folder: string
}

/** Lists the folders of skills that exist. Of two skills with one name, the one in the later folder counts. */
export const skillsOf = Effect.fnUntraced(function* (of: Of) {
  const { places, settings } = of
  const { plugins } = yield* pluginsOf(of)
  const all: ReadonlyArray<SkillFolder> = [
    ...plugins.map(({ folder, name }) => ({ label: `plugin-${name}`, folder: join(folder, "skills") })),
    { label: "claude", folder: join(homedir(), ".claude", "skills") },
    { label: "agents", folder: join(homedir(), ".agents", "skills") },
    { label: "user", folder: join(places.config, "skills") },
    ...(settings.skills?.value ?? []).map((folder, index) => ({ label: `${index}`, folder }))
  ]
  const results = yield* Effect.forEach(all, ({ folder, label }) =>
    Effect.map(realOf(folder), (real): ReadonlyArray<SkillFolder> =>
      real === undefined ? [] : [{ label, folder: real }]
    )
  )
  return results.flat()
})

/** Lists the folders of slash commands. The later folder wins. */
export const commandFolders = Effect.fnUntraced(function* (of: Of) {
  const { plugins } = yield* pluginsOf(of)
  return [
    ...plugins.map(({ folder, name }) => ({ folder: join(folder, "commands"), prefix: name })),
    { folder: join(homedir(), ".claude", "commands") },
    { folder: join(of.places.config, "commands") }
  ] satisfies ReadonlyArray<CommandFolder>
})
