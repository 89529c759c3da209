/** Names of the file tools, and failures in words for the model. */
import * as Effect from "effect/Effect"
import * as BackendError from "../../../core/BackendError.ts"
import type { Format } from "../../../core/Document.ts"
import type { ToolError as ToolErrorType } from "../../../core/ToolError.ts"
import { ToolError } from "../../../core/ToolError.ts"

/** The names of the tools for files, in the order in which they are offered. */
export const names = ["ls", "read_file", "write_file", "edit_file", "delete_file", "move_file", "glob", "grep"] as const

/** The name of a tool for files. */
export type Name = (typeof names)[number]

/** Advises the model on its next step. Mentions only tools that the agent has. */
const advice = ({ operation, reason }: BackendError.BackendError, offers: (name: Name) => boolean): string => {
  switch (reason._tag) {
    case "NotFound":
    case "NotDirectory": {
      const finders = (["ls", "glob"] as const).filter(offers)
      return finders.length === 0 ? "Check the path." : `Find the path with ${finders.join(" or ")}.`
    }
    case "IsDirectory":
      if (operation === "delete") return "To delete it with all that is in it, set recursive to true."
      return offers("ls") ? "To see what is in it, use ls." : "Give the path of a file."
    case "PermissionDenied":
      return "Don't try to get around it: go on without it, or say that you need it."
    case "Unavailable":
      return "Try it once more; if it fails again, go on without it, or say so."
    case "Unsupported":
      return "Go another way."
    case "AlreadyExists":
    case "InvalidPath":
    case "InvalidPattern":
    case "OutsideRoot":
    case "NotUnique":
    case "NoMatch":
    case "TooLarge":
    case "NotText":
    case "Conflict":
    case "TimedOut":
      return ""
  }
}

/** An error of the backend as the model reads it. */
const toToolError =
  (offers: (name: Name) => boolean) =>
  (error: BackendError.BackendError | ToolErrorType): ToolErrorType => {
    if (!BackendError.isBackendError(error)) return error
    const next = advice(error, offers)
    return new ToolError({
      reason: error.reason._tag === "TimedOut" ? "TimedOut" : "Failed",
      message: next === "" ? error.message : `${error.message}. ${next}`,
      ...(error.reason._tag === "Unavailable" ? { isRetryable: true } : {}),
      cause: error
    })
  }

/** Helpers that all file tools share. */
export interface Kit {
  /** The formats of documents that `read_file` understands. */
  readonly documents: ReadonlyArray<Format>
  readonly offers: (name: Name) => boolean
  readonly tell: <A, R>(
    effect: Effect.Effect<A, BackendError.BackendError | ToolErrorType, R>
  ) => Effect.Effect<A, ToolErrorType, R>
}

export const makeKit = (offered: ReadonlySet<Name>, documents: ReadonlyArray<Format> = []): Kit => {
  const offers = (name: Name) => offered.has(name)
  return { documents, offers, tell: Effect.mapError(toToolError(offers)) }
}
