/**
 * Asking whether an operation may go on.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Backend from "../../core/Backend.ts"
import type * as Sandbox from "../../core/Sandbox.ts"
import type { Rule } from "./permissionsPolicy.ts"

/** An operation with all that it was given: what would be written is in it, as it would be written. */
export type Action =
  | { readonly operation: "read"; readonly path: string; readonly window?: Backend.Window }
  | { readonly operation: "write"; readonly path: string; readonly content: string }
  | { readonly operation: "edit"; readonly path: string; readonly replacements: ReadonlyArray<Backend.Replacement> }
  | { readonly operation: "delete"; readonly path: string; readonly recursive: boolean }
  | { readonly operation: "move"; readonly from: string; readonly to: string }
  | { readonly operation: "grep"; readonly query: Backend.GrepQuery }
  | {
      readonly operation: "upload"
      readonly files: ReadonlyArray<{ readonly path: string; readonly content: Uint8Array }>
    }
  | { readonly operation: "download"; readonly paths: ReadonlyArray<string> }
  | { readonly operation: "execute"; readonly command: string; readonly options?: Sandbox.ExecuteOptions }

/** What has to be allowed. `path` is where it really leads, if that is through a link; a command has none. */
export interface Access {
  readonly operation: "read" | "write" | "execute"
  readonly path?: string
  readonly rule: Rule
}

/** A question: may this be done? `accesses` is all that rules ask about, asked at once. */
export interface Request {
  readonly action: Action
  readonly accesses: ReadonlyArray<Access>
}

/** The answer. The message of a refusal is told to who called the operation, a model as a rule. */
export type Answer = { readonly _tag: "Approved" } | { readonly _tag: "Refused"; readonly message: string }

/** Who is asked. */
export interface Service {
  readonly ask: (request: Request) => Effect.Effect<Answer>
}

export const Approver = Context.Reference<Service>("effect-deepagents/Permissions/Approver", {
  defaultValue: () => ({
    ask: () =>
      Effect.succeed({ _tag: "Refused", message: "this needs approval, and nobody is there to ask; do without it" })
  })
})
