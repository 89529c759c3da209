/** Decides which entries of a thread a run may resume from. */
import * as Effect from "effect/Effect"
import { isObject } from "../../core/Json.ts"
import { callIds } from "../../core/Message.ts"
import type { StoredEntry } from "../../core/SessionStore.ts"
import { isOpenCallSlot } from "../../core/thread/suspension.ts"

const window = 64

const insideOfOpenCall =
  "a call or a program is at work there, or waits; choose an entry before it began, or behind its end"

/**
 * The reason why no run can resume behind an entry, `undefined` if one can: every call of the turn before it must have
 * its answer, and no call and no program may be open. Looks back as far as that turn, not at the whole path.
 */
export const problemAt = Effect.fnUntraced(function* <E>(
  path: (from: string, limit: number) => Effect.Effect<ReadonlyArray<StoredEntry>, E>,
  entryId: string
) {
  const answered = new Set<string>()
  /** Slots with a later value than the entry that is looked at. */
  const later = new Set<string>()
  /** The message that a suspension is about: of a program, what it was asked. */
  let suspendedId: unknown
  const isReplaced = (slot: string): boolean => [...later].some((one) => slot === one || slot.startsWith(`${one}/`))
  let from: string | null = entryId
  while (from !== null) {
    const part: ReadonlyArray<StoredEntry> = yield* path(from, window)
    for (const { entry } of part) {
      if (entry._tag === "State" && isOpenCallSlot(entry.slot)) {
        const { slot, value = null } = entry
        if (value !== null && !isReplaced(slot)) {
          if (slot.startsWith("inside/")) return insideOfOpenCall
          suspendedId = isObject(value) ? value["messageId"] : undefined
        }
        later.add(slot)
      }
      if (entry._tag !== "Message") continue
      const { message } = entry
      if (message.role === "tool") {
        answered.add(message.toolCallId)
        continue
      }
      if (message.role === "human" && message.id === suspendedId) return insideOfOpenCall
      const open = message.role === "ai" ? callIds(message).filter((id) => !answered.has(id)) : []
      return open.length === 0
        ? undefined
        : "it is inside of a group of calls and results; choose an entry before the calls, or behind the last result"
    }
    from = part.at(-1)?.parentId ?? null
  }
  return undefined
})
