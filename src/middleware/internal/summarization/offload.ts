/** Writes the folded part of a history to the backend for the agent to read again. */
import * as Effect from "effect/Effect"
import type * as Backend from "../../../core/Backend.ts"
import type { BackendError } from "../../../core/BackendError.ts"
import { IdGenerator } from "../../../core/IdGenerator.ts"
import type { Message } from "../../../core/Message.ts"
import type { Run } from "../../../core/Run.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Offload, Ref } from "./record.ts"
import { sectionOf } from "./transcript.ts"

const rootOf = ({ paths }: Backend.Service): string => `${paths?.scratch ?? ""}/conversation_history`

/** Characters of one file, unless a single message has more. */
const fileLength = 1_000_000

const longestName = 80

/** Two 32-bit hashes of a text, in hexadecimal. */
const hash = (text: string): string => {
  let one = 0x811c9dc5
  let two = 0x9e3779b9
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    one = Math.imul(one ^ code, 0x01000193)
    two = Math.imul(two ^ code, 0x85ebca6b)
    two ^= two >>> 13
  }
  return [one, two].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("")
}

/** The folder name of an id. Distinct ids have distinct names, except for hash collisions of very long ones. */
const nameOf = (id: string): string => {
  const name = id.replaceAll(/[^A-Za-z0-9-]/g, (char) => `_${char.charCodeAt(0).toString(16)}_`)
  return name.length <= longestName ? name : `${name.slice(0, longestName - 17)}_${hash(id)}`
}

/** The folder of a run. A sub-agent shares its parent's thread, but must not mix its files with the parent's. */
const folderOf = (backend: Backend.Service, run: Run): string => {
  const thread = run.depth === 0 && run.threadId !== undefined && run.threadId !== "" ? run.threadId : run.runId
  return `${rootOf(backend)}/${nameOf(thread)}`
}

const isThere = (error: BackendError): boolean => error.reason._tag === "AlreadyExists"

/** Finds the start of the unwritten messages. */
const startOf = (history: ReadonlyArray<Message>, through: Ref | undefined): number => {
  if (through === undefined) return 0
  if (history[through.index]?.id === through.id) return through.index + 1
  return history.findIndex((message) => message.id === through.id) + 1
}

/** Messages as texts of about {@link fileLength}. */
const textsOf = (history: ReadonlyArray<Message>, start: number, end: number): ReadonlyArray<string> => {
  const texts: Array<string> = []
  let sections: Array<string> = []
  let length = 0
  const close = () => {
    if (sections.length > 0) texts.push(`${sections.join("\n\n")}\n`)
    sections = []
    length = 0
  }
  for (let index = start; index < end; index++) {
    const message = history[index]
    if (message === undefined) continue
    const section = sectionOf(message, index)
    if (length + section.length > fileLength) close()
    sections.push(section)
    length += section.length
  }
  close()
  return texts
}

/**
 * Writes the unwritten messages before `end` to new files: nothing is read or written twice. If another branch of the
 * thread used the name, the file gets a name of its own.
 */
export const offload = Effect.fnUntraced(function* (
  backend: Backend.Service,
  run: Run,
  history: ReadonlyArray<Message>,
  before: Offload | undefined,
  end: number
) {
  // Files in a place that is gone can't be added to.
  const isHere = before?.folder.startsWith(`${rootOf(backend)}/`) === true
  const base =
    before !== undefined && isHere
      ? before
      : { ...defined({ through: before?.through }), folder: folderOf(backend, run), files: [] }
  const start = startOf(history, base.through)
  if (start >= end) return base
  const files = [...base.files]
  const makeId = yield* IdGenerator
  for (const text of textsOf(history, start, end)) {
    const number = String(files.length + 1).padStart(4, "0")
    const write = (name: string) => Effect.as(backend.write(`${base.folder}/${name}`, text, { create: true }), name)
    const name = yield* Effect.catchIf(write(`${number}.md`), isThere, () =>
      write(`${number}-${nameOf(makeId()).slice(0, 40)}.md`)
    )
    files.push(name)
  }
  const last = history[end - 1]
  const through = last === undefined ? undefined : { id: last.id, index: end - 1 }
  return defined({ folder: base.folder, files, through }) satisfies Offload
})
