/** The protection of a repository's own files: its refusal, and the places that a person approved. */
import * as Context from "effect/Context"

/** The protected places that a person approved, for the work in progress. Paths are real ones below the root. */
export const Allowed = Context.Reference<ReadonlySet<string>>("effect-deepagents/backends/AllowedGitPlaces", {
  defaultValue: () => new Set()
})

/** The detail of a refusal. */
export const refusalDetail =
  "this belongs to a git repository, or to the settings of git, which decide what programs run; a person must approve the change"

/** Tells whether an operation failed because of the protection. */
export const isRefusal = ({ detail }: { readonly detail?: string | undefined }): boolean => detail === refusalDetail
