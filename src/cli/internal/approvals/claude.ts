/** Rules for calls in the settings of Claude Code: of the user, and of a trusted project. */
import { homedir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { itemsOf, type Project } from "../config/items.ts"
import { smallFile } from "../project/folders.ts"
import type { Origin } from "./permission.ts"

const Texts = Schema.optionalKey(Schema.Array(Schema.String))

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({ permissions: Schema.optionalKey(Schema.Struct({ allow: Texts, ask: Texts, deny: Texts })) })
  )
)

type Lists = NonNullable<Option.Option.Value<ReturnType<typeof decode>>["permissions"]>

/** Rules of a file. It is written for another program too, so rules that mean nothing here are left out. */
interface Source extends Origin {
  readonly lists: Lists
  readonly isForeign: true
}

/** The most bytes of a file of settings. */
const mostBytes = 1_000_000

const sourceOf = (from: Origin["from"], where: string, text: string | undefined): ReadonlyArray<Source> =>
  Option.match(decode(text ?? ""), {
    onNone: () => [],
    onSome: ({ permissions }) =>
      permissions === undefined ? [] : [{ from, where, lists: permissions, isForeign: true }]
  })

/** Reads the rules of both. */
export const claudeRules = Effect.fnUntraced(function* (project: Project) {
  const own = join(homedir(), ".claude", "settings.json")
  return [
    ...sourceOf("user", own, yield* smallFile(own, mostBytes)),
    ...itemsOf(project, "permissions").flatMap(({ file, text }) => sourceOf("project", file, text))
  ]
})
